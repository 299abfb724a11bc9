/*
 * Tests of the benchmark's kernels in the emulator: the device's f32 reference against the plain
 * CPU machine, and the baseline against both, for models with and without biases and norms of q and
 * k. All three read the same tokens.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "eval/baseline.h"
#include "eval/bench.h"
#include "eval/paired_bench_state.h"
#include "eval/reference.h"
#include "tests/emulator/emulator.h"

#define ok(call, err) ck_assert_msg((call) == MGL_OK, "%s: %s", (err).where, (err).message)

enum { SKIP = 77, BATCH = 2, TOKENS = 4, WORDS = BATCH * TOKENS, VOCAB = 75 };
enum {
    EVERY_BIAS = MGL_EXTRA_QKV_BIAS | MGL_EXTRA_O_BIAS | MGL_EXTRA_MLP_BIAS,
    EVERY_EXTRA = EVERY_BIAS | MGL_EXTRA_QK_NORM
};

/* Head dimensions whose pairs need a quarter, a half, all, and twice the threads of a warp; as many
 * key heads as query heads, and fewer. */
static const mgl_geometry geometries[] = {{64, 2, 4, 2, 16, 96, VOCAB, 1e-5f},
                                          {64, 2, 6, 2, 32, 96, VOCAB, 1e-5f},
                                          {64, 2, 2, 2, 64, 96, VOCAB, 1e-5f},
                                          {64, 2, 3, 1, 128, 96, VOCAB, 1e-5f}};
enum { GEOMETRIES = sizeof geometries / sizeof *geometries };

static const unsigned families[] = {MGL_EXTRA_NONE, MGL_EXTRA_QKV_BIAS, EVERY_BIAS,
                                    MGL_EXTRA_QK_NORM, EVERY_EXTRA};
enum { FAMILIES = sizeof families / sizeof *families };

/* The results of a reference. */
typedef struct answer {
    float largest[WORDS], chosen[WORDS], norms[WORDS];
    float logits[BATCH * VOCAB]; /* logits of the last step */
} answer;

static int last = TOKENS - 1;

static mgl_paired_bench_reference asked(answer *to)
{
    return (mgl_paired_bench_reference){to->largest, to->chosen, to->norms, &last,
                                        1,           to->logits, NULL};
}

static void ck_assert_close(const float *a, const float *b, size_t count)
{
    double distance = mgl_reference_distance(a, b, count);
    ck_assert_msg(distance < 1e-5, "they are %.2g apart", distance);
}

static void check_reference(const mgl_bench_device *device, const mgl_bench_case *of,
                            const int32_t *made, const answer *cpu)
{
    mgl_error err;
    answer found;
    mgl_paired_bench_reference how = asked(&found);
    ok(mgl_reference_look(device, of, made, &how, &err), err);
    ck_assert_close(found.logits, cpu->logits, BATCH * VOCAB);
    ck_assert_close(found.largest, cpu->largest, WORDS);
    ck_assert_close(found.chosen, cpu->chosen, WORDS);
    ck_assert_close(found.norms, cpu->norms, WORDS);
}

static void check_baseline(const mgl_bench_device *device, const mgl_bench_case *of,
                           const int32_t *made, const answer *cpu)
{
    mgl_error err;
    mgl_baseline *baseline;
    int32_t output[WORDS];
    double seconds;
    ok(mgl_baseline_open(device, of, &baseline, &err), err);
    ok(mgl_baseline_run(baseline, made, output, &seconds, &err), err);
    for (int s = 0; s < BATCH; s++) {
        float logits[VOCAB];
        ok(mgl_baseline_get_logits(baseline, s, logits, &err), err);
        double error = mgl_reference_distance(logits, cpu->logits + s * VOCAB, VOCAB);
        printf("  sequence %d: the baseline's error %.1e\n", s, error);
        ck_assert_double_lt(error, MGL_BENCH_BASELINE_ERROR / 2);
    }
    mgl_baseline_close(baseline);
}

/* Tests one family at one context. */
static void check(const mgl_bench_device *device, const mgl_geometry *geometry, unsigned extras,
                  int context)
{
    mgl_error err;
    mgl_paired_bench *cpu;
    answer wanted;
    int32_t first[MGL_MAX_ROWS], made[WORDS];
    mgl_paired_bench_reference how = asked(&wanted);
    const mgl_paired_bench_load load = {
        .batch = BATCH, .context = context, .tokens = TOKENS, .seed = 3 + extras};
    mgl_paired_bench_options options = {.config = {.geometry = *geometry,
                                                   .max_positions = 512,
                                                   .tied = extras % 2,
                                                   .rope = {.type = MGL_ROPE_DEFAULT,
                                                            .theta = 10000,
                                                            .factor = 1,
                                                            .attention_factor = 1},
                                                   .extras = extras},
                                        .device = "cpu"};
    printf("heads of %d, extras %u, context %d\n", (int)geometry->head_dim, extras, context);
    for (int i = 0; i < WORDS; i++)
        made[i] = (5 + 17 * i) % VOCAB;
    ok(mgl_paired_bench_open(&options, &cpu, &err), err);
    ok(mgl_paired_bench_refer(cpu, &load, made, &how, &err), err);
    mgl_paired_bench_make_first(cpu, &load, first);
    mgl_bench_case of = {.graph = cpu->graph,
                         .sequences = BATCH,
                         .context = context,
                         .tokens = TOKENS,
                         .capacity = context + TOKENS + 1,
                         .first = first};
    ok(mgl_bench_make_rope(device, of.graph, of.capacity, &of.rope, &err), err);
    check_reference(device, &of, made, &wanted);
    check_baseline(device, &of, made, &wanted);
    mgl_bench_release(device, of.rope);
    mgl_paired_bench_close(cpu);
}

START_TEST(device_and_cpu_have_one_reference)
{
    mgl_error err;
    mgl_bench_device device = {0};
    ok(mgl_bench_device_open(0, &geometries[_i], NULL, &device, &err), err);
    for (int f = 0; f < FAMILIES; f++)
        check(&device, &geometries[_i], families[f], f % 2 ? 9 : 0);
    mgl_bench_device_close(&device);
}
END_TEST

/* Prompts after a cache that does not end at a tile, or after none. The longest has more rows than
 * a block of the baseline's attention. The last row is compared; for each length it is in another
 * warp and another tile of sixteen rows. */
enum { MOST_PROMPT = MGL_PROMPT_ROWS + 9, PAST = 37 };

static void check_prompt(const mgl_bench_device *device, const mgl_geometry *geometry,
                         unsigned extras, int context, int tokens)
{
    mgl_error err;
    mgl_graph *graph;
    mgl_baseline *baseline;
    int32_t prompt[MOST_PROMPT + 1], chosen[MOST_PROMPT], output[1];
    float wanted[VOCAB], logits[VOCAB];
    double seconds;
    const mgl_config config = {
        .geometry = *geometry,
        .max_positions = 512,
        .tied = true,
        .rope = {.type = MGL_ROPE_DEFAULT, .theta = 10000, .factor = 1, .attention_factor = 1},
        .extras = extras};
    for (int i = 0; i <= tokens; i++)
        prompt[i] = (5 + 17 * i) % VOCAB;
    ok(mgl_synthetic_open(&config, 4, &graph, &err), err);
    mgl_bench_case of = {.graph = graph,
                         .sequences = 1,
                         .context = context,
                         .tokens = tokens,
                         .capacity = context + tokens + 3,
                         .first = prompt,
                         .prompt = true};
    ok(mgl_bench_make_rope(device, graph, of.capacity, &of.rope, &err), err);
    ok(mgl_reference_run(device, &of, prompt + 1, chosen, wanted, &err), err);
    ok(mgl_baseline_open(device, &of, &baseline, &err), err);
    for (int run = 0; run < (tokens == MOST_PROMPT ? 2 : 1); run++) {
        output[0] = -1;
        ok(mgl_baseline_run(baseline, NULL, output, &seconds, &err), err);
        ok(mgl_baseline_get_logits(baseline, 0, logits, &err), err);
        double error = mgl_reference_distance(logits, wanted, VOCAB);
        printf("  heads of %d, extras %u, context %d, prompt of %d: error %.1e\n",
               (int)geometry->head_dim, extras, context, tokens, error);
        ck_assert_double_lt(error, MGL_BENCH_BASELINE_ERROR / 2);
        ck_assert_int_eq(output[0], chosen[tokens - 1]);
    }
    mgl_baseline_close(baseline);
    mgl_bench_release(device, of.rope);
    mgl_graph_free(graph);
}

START_TEST(a_prompt_is_read_at_once)
{
    mgl_error err;
    mgl_bench_device device = {0};
    const mgl_geometry *geometry = &geometries[_i];
    ok(mgl_bench_device_open(0, geometry, NULL, &device, &err), err);
    check_prompt(&device, geometry, _i % 2 ? EVERY_EXTRA : MGL_EXTRA_NONE, _i % 2 ? PAST : 0,
                 MOST_PROMPT);
    mgl_bench_device_close(&device);
}
END_TEST

START_TEST(prompts_of_any_length_are_read)
{
    /* with the cache, a tile begins within the rows of the last row's warp: at rows 27 and 91 */
    static const int lengths[] = {1, 29, 64, 93, 97};
    mgl_error err;
    mgl_bench_device device = {0};
    mgl_geometry geometry = geometries[_i];
    geometry.layers = 1;
    ok(mgl_bench_device_open(0, &geometry, NULL, &device, &err), err);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        check_prompt(&device, &geometry, MGL_EXTRA_NONE, i % 2 ? PAST : 0, lengths[i]);
    mgl_bench_device_close(&device);
}
END_TEST

/* Runs `bench` completely, with the machine's kernel and weights made on the device. Its accuracy
 * check must pass. */
START_TEST(a_family_is_benched)
{
    mgl_error err;
    mgl_bench_result result;
    mgl_bench_request request = {.config = {.geometry = {64, 1, 4, 2, 32, 96, VOCAB, 1e-5f},
                                            .max_positions = 512,
                                            .tied = true,
                                            .rope = {.type = MGL_ROPE_DEFAULT,
                                                     .theta = 10000,
                                                     .factor = 1,
                                                     .attention_factor = 1},
                                            .extras = EVERY_EXTRA},
                                 .dtype = MGL_BF16,
                                 .batch = 1,
                                 .context = 5,
                                 .tokens = 2,
                                 .samples = 1,
                                 .seed = 1};
    ok(mgl_bench_run(&request, NULL, NULL, &result, &err), err);
    printf("errors %.1e and %.1e\n", result.accuracy.machine_error, result.accuracy.baseline_error);
    ck_assert_double_gt(result.accuracy.machine_error, 0);
}
END_TEST

/* The same for a prompt after a cache, which the machine reads in several epochs. */
START_TEST(a_prompt_is_benched)
{
    mgl_error err;
    mgl_bench_result result;
    mgl_bench_request request = {.config = {.geometry = {64, 1, 4, 2, 32, 96, VOCAB, 1e-5f},
                                            .max_positions = 512,
                                            .tied = true,
                                            .rope = {.type = MGL_ROPE_DEFAULT,
                                                     .theta = 10000,
                                                     .factor = 1,
                                                     .attention_factor = 1},
                                            .extras = MGL_EXTRA_NONE},
                                 .dtype = MGL_BF16,
                                 .batch = 1,
                                 .context = 5,
                                 .capacity = 64,
                                 .prompt = 35,
                                 .tokens = 2,
                                 .samples = 1,
                                 .seed = 1};
    ok(mgl_bench_run(&request, NULL, NULL, &result, &err), err);
    printf("errors %.1e and %.1e, %d epochs of %d rows\n", result.accuracy.machine_error,
           result.accuracy.baseline_error, result.epochs, result.rows);
    ck_assert_double_gt(result.accuracy.machine_error, 0);
    ck_assert_double_gt(result.accuracy.baseline_error, 0);
    ck_assert_int_eq(result.accuracy.tokens, 1);
    ck_assert_int_eq(result.positions, 64);
    ck_assert_int_eq(result.epochs, mgl_bench_cut_prompt(result.rows, 5, 35).epochs);
    ck_assert_double_gt(result.bytes, 0);
}
END_TEST

int main(void)
{
    static mgl_cublas cublas;
    if (!emu_install("bench_kernels"))
        return SKIP;
    setenv("MEGALITH_CACHE", MGL_BINARY_DIR "/tests/emulator/kernels", 1);
    emu_fill_cublas(&cublas);
    mgl_cublas_override(&cublas);
    TCase *tests = tcase_create("bench_kernels");
    tcase_set_timeout(tests, 240);
    tcase_add_loop_test(tests, device_and_cpu_have_one_reference, 0, GEOMETRIES);
    tcase_add_loop_test(tests, a_prompt_is_read_at_once, 0, GEOMETRIES);
    tcase_add_loop_test(tests, prompts_of_any_length_are_read, 2, GEOMETRIES);
    tcase_add_test(tests, a_family_is_benched);
    tcase_add_test(tests, a_prompt_is_benched);
    Suite *suite = suite_create("bench_kernels");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
