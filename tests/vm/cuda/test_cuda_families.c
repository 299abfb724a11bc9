/*
 * Tests of Qwen2, Qwen3, Mistral and the other families on the CUDA machine against Hugging Face's
 * results, and of random models with biases and with norms of q and k against the CPU, with every
 * attention path.
 */
#include "tests/vm/cuda/cuda_checks.h"

#include "tests/parts.h"

enum { FIRST = GOLDEN_MODELS - 3 }; /* first of the tested models in golden_names */

START_TEST(f32_is_hugging_face)
{
    golden_model m;
    open_device_model(&m, golden_names[FIRST + _i],
                      &(device_options){.dtype = MGL_F32, .capacity = 256});
    golden_check_greedy(&m, 1e-4);
    golden_check_likelihood(&m, 1e-5);
    golden_close(&m);
}
END_TEST

/* bf16 weights, f32 sums, bf16 cache; biases and norms of q and k are f32. */
START_TEST(bf16_is_close)
{
    golden_model m;
    open_device_model(&m, golden_names[FIRST + _i],
                      &(device_options){.dtype = MGL_BF16, .capacity = 256});
    golden_check_greedy(&m, 0.2);
    golden_check_likelihood(&m, 3e-3);
    golden_close(&m);
}
END_TEST

START_TEST(f32_of_families)
{
    golden_model m;
    open_device_model(&m, golden_families[_i],
                      &(device_options){.dtype = MGL_F32, .capacity = 256});
    golden_check_greedy(&m, 1e-4);
    golden_check_likelihood(&m, 1e-5);
    golden_close(&m);
}
END_TEST

START_TEST(bf16_of_families)
{
    golden_model m;
    open_device_model(&m, golden_families[_i],
                      &(device_options){.dtype = MGL_BF16, .capacity = 256});
    golden_check_greedy(&m, 0.2);
    golden_check_likelihood(&m, 3e-3);
    golden_close(&m);
}
END_TEST

static const mgl_geometry heads_of_96 = {256, 2, 4, 2, 96, 256, 120, 1e-5f};
static const mgl_geometry heads_of_64 = {512, 1, 8, 2, 64, 1024, 300, 1e-5f};
static const mgl_geometry heads_of_128 = {1024, 1, 8, 2, 128, 2048, 300, 1e-5f};
static const mgl_geometry one_group = {128, 1, 4, 1, 128, 128, 75, 1e-5f};

static const struct {
    const mgl_geometry *geometry;
    device_options options;
} shapes[] = {
    {&small_model, {.dtype = MGL_F32, .splits = 2, .extras = ALL_EXTRAS}},
    {&heads_of_96, {.dtype = MGL_BF16, .rows = 1, .extras = ALL_EXTRAS}},
    {&heads_of_64, {.dtype = MGL_BF16, .rows = 1, .extras = ALL_EXTRAS}},
    {&heads_of_128, {.dtype = MGL_BF16, .rows = 1, .splits = 2, .extras = MGL_EXTRA_QK_NORM}},
    {&heads_of_64, {.dtype = MGL_BF16, .rows = 8, .extras = ALL_EXTRAS}},
    {&heads_of_64, {.arch = "compute_80", .dtype = MGL_BF16, .rows = 1, .extras = ALL_EXTRAS}},
};

START_TEST(logits_are_the_cpus)
{
    check_logits(shapes[_i].geometry, &shapes[_i].options, _i, 37, 24);
}
END_TEST

START_TEST(ragged_sequences_are_as_alone)
{
    check_ragged(
        _i ? &one_group : &heads_of_64,
        &(device_options){
            .dtype = MGL_BF16, .splits = 1, .rows = _i ? 16 : 8, .extras = MGL_EXTRA_QK_NORM},
        20);
}
END_TEST

int main(void)
{
    int skip = skip_without_device("cuda_families");
    if (skip)
        return skip;
    TCase *tests = tcase_create("cuda_families");
    tcase_set_timeout(tests, 120);
    add_cases(tests, f32_is_hugging_face, 3);
    add_cases(tests, bf16_is_close, 3);
    add_cases(tests, f32_of_families, GOLDEN_FAMILIES);
    add_cases(tests, bf16_of_families, GOLDEN_FAMILIES);
    add_cases(tests, logits_are_the_cpus, (int)(sizeof shapes / sizeof *shapes));
    add_cases(tests, ragged_sequences_are_as_alone, 2);
    return fixture_main("cuda_families", tests);
}
