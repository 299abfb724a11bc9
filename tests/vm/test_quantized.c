/*
 * Tests of quantized checkpoints on the CPU VM against Hugging Face's results on the decoded
 * weights in f32: compressed-tensors, GPTQ, AWQ and fp8. The matrices stay quantized on the tapes.
 */
#include "golden.h"

static void open_model(golden_model *m, const char *name, const fixture_options *options,
                       bool plain)
{
    golden_open(m, name);
    m->program = fixture_program(m->checkpoint->graph, options);
    m->vm = fixture_vm(m->program, m->checkpoint->graph, plain);
}

/* Every matrix of a layer is scaled on the tape. */
static void check_formats(const golden_model *m)
{
    const mgl_program *p = m->program;
    int scaled = 0;
    for (int i = 0; i < p->tensor_count; i++)
        scaled += mgl_weight_format_is_scaled(p->tensors[i].format);
    ck_assert_int_eq(scaled, 7 * p->geometry.layers);
}

START_TEST(f32_is_hugging_face)
{
    golden_model m;
    fixture_options together = {.dtype = MGL_F32, .capacity = 256, .queues = 5, .sequences = 4};
    open_model(&m, golden_quantized[_i], &together, false);
    check_formats(&m);
    golden_check_greedy(&m, 1e-4);
    golden_check_likelihood(&m, 1e-6);
    golden_close(&m);
}
END_TEST

START_TEST(the_reference_ops_agree)
{
    golden_model m;
    fixture_options one = {.dtype = MGL_F32, .capacity = 256, .queues = 2};
    open_model(&m, golden_quantized[_i], &one, true);
    golden_check_first(&m, 1e-4, 24);
    golden_close(&m);
}
END_TEST

/* Activations and cache in bf16: the tolerances of bf16 weights in test_golden.c. */
START_TEST(bf16_is_close)
{
    golden_model m;
    fixture_options half = {.dtype = MGL_BF16, .capacity = 256, .queues = 3, .sequences = 4};
    open_model(&m, golden_quantized[_i], &half, false);
    check_formats(&m);
    golden_check_greedy(&m, 0.2);
    golden_check_likelihood(&m, 3e-3);
    golden_close(&m);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("quantized");
    tcase_set_timeout(tests, 300);
    tcase_add_loop_test(tests, f32_is_hugging_face, 0, GOLDEN_QUANTIZED);
    tcase_add_loop_test(tests, the_reference_ops_agree, 0, GOLDEN_QUANTIZED);
    tcase_add_loop_test(tests, bf16_is_close, 0, GOLDEN_QUANTIZED);
    return fixture_main("quantized checkpoints", tests);
}
