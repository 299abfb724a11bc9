/*
 * Tests of the provided checkpoints on the CUDA machine against Hugging Face's results: greedy
 * tokens, and the negative log-likelihood of the validation texts.
 */
#include "tests/parts.h"
#include "tests/vm/cuda/cuda_support.h"

START_TEST(f32_is_hugging_face)
{
    golden_model m;
    open_device_model(&m, golden_names[_i], &(device_options){.dtype = MGL_F32, .capacity = 256});
    golden_check_greedy(&m, 1e-4);
    golden_check_likelihood(&m, 1e-5);
    golden_close(&m);
}
END_TEST

/* Few queues, several splits, a small ring and no stage: the other variants of the kernel. */
START_TEST(f32_in_another_shape_is_hugging_face)
{
    golden_model m;
    device_options options = {.dtype = MGL_F32,
                              .capacity = 256,
                              .queues = 7,
                              .splits = 3,
                              .rows = 5,
                              .page_bytes = 2048,
                              .ring_pages = 3,
                              .warps = 5,
                              .stage_bytes = 1024};
    open_device_model(&m, golden_names[_i], &options);
    golden_check_greedy(&m, 1e-4);
    golden_check_likelihood(&m, 1e-5);
    golden_close(&m);
}
END_TEST

/* 3e-4 and a gap of 0.1 for the trained model, 3e-3 and 0.2 for random weights. */
START_TEST(bf16_is_close)
{
    golden_model m;
    open_device_model(&m, golden_names[_i], &(device_options){.dtype = MGL_BF16, .capacity = 256});
    golden_check_greedy(&m, _i == 0 ? 0.1 : 0.2);
    golden_check_likelihood(&m, _i == 0 ? 3e-4 : 3e-3);
    golden_close(&m);
}
END_TEST

START_TEST(f16_is_close)
{
    golden_model m;
    open_device_model(&m, golden_names[2], &(device_options){.dtype = MGL_F16, .capacity = 256});
    golden_check_greedy(&m, 0.2);
    golden_check_likelihood(&m, 3e-3);
    golden_close(&m);
}
END_TEST

/* Quantized checkpoints, against Hugging Face on the decoded weights. */
START_TEST(quantized_f32_is_hugging_face)
{
    golden_model m;
    open_device_model(&m, golden_quantized[_i],
                      &(device_options){.dtype = MGL_F32, .capacity = 256});
    golden_check_greedy(&m, 1e-4);
    golden_check_likelihood(&m, 1e-5);
    golden_close(&m);
}
END_TEST

START_TEST(quantized_bf16_is_close)
{
    golden_model m;
    open_device_model(&m, golden_quantized[_i],
                      &(device_options){.dtype = MGL_BF16, .capacity = 256});
    golden_check_greedy(&m, 0.2);
    golden_check_likelihood(&m, 3e-3);
    golden_close(&m);
}
END_TEST

/* The cp.async path, as the driver compiles it from PTX. */
START_TEST(compute_80_is_hugging_face)
{
    golden_model m;
    device_options options = {.arch = "compute_80", .dtype = MGL_F32, .capacity = 256};
    open_device_model(&m, golden_names[_i], &options);
    golden_check_greedy(&m, 1e-4);
    golden_check_likelihood(&m, 1e-5);
    golden_close(&m);
}
END_TEST

int main(void)
{
    int skip = skip_without_device("cuda_golden");
    if (skip)
        return skip;
    TCase *tests = tcase_create("cuda_golden");
    tcase_set_timeout(tests, 120);
    add_cases(tests, f32_is_hugging_face, 3);
    add_cases(tests, f32_in_another_shape_is_hugging_face, 3);
    add_cases(tests, bf16_is_close, 3);
    add_cases(tests, f16_is_close, 1);
    add_cases(tests, quantized_f32_is_hugging_face, GOLDEN_QUANTIZED);
    add_cases(tests, quantized_bf16_is_close, GOLDEN_QUANTIZED);
    add_cases(tests, compute_80_is_hugging_face, 3);
    return fixture_main("cuda_golden", tests);
}
