/* Tests of paired benchmarks on a GPU, with two layers of llama-1b: both sides stay resident,
 * weights are regenerated, poison changes no bit, the reference agrees, and errors are detected.
 * Speed is not tested. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "eval/bench.h"
#include "eval/paired_bench_state.h"
#include "eval/reference.h"
#include "schedule/schedule.h"

#define ok(call, err) ck_assert_msg((call) == MGL_OK, "%s: %s", (err).where, (err).message)

enum { SKIP = 77 };
enum { BATCH = 2, TOKENS = 6, CONTEXT = 300, CAPACITY = 512, VOCAB = 128256 };

static const mgl_paired_bench_load load = {
    .batch = BATCH, .context = CONTEXT, .tokens = TOKENS, .seed = 7};

static mgl_config config; /* configuration of the model */
static mgl_paired_bench *paired_bench;

/* ---- programs -------------------------------------------------------------------------------- */

typedef enum kind { COUNTERS, FLAGS, OTHER_QUEUES, KINDS } kind;

static mgl_program *lower_for(const mgl_config *model, mgl_dtype dtype, kind which, int capacity,
                              int sequences)
{
    mgl_error err;
    mgl_graph *graph;
    mgl_program *program;
    mgl_schedule_config how;
    mgl_target target = paired_bench->target;
    mgl_lower_options options = {.dtype = dtype, .capacity = capacity, .sequences = sequences};
    mgl_schedule_config_default(&how);
    how.exchange = which == COUNTERS ? MGL_EXCHANGE_COUNTERS : MGL_EXCHANGE_FLAGS;
    if (which == OTHER_QUEUES) /* the head's rows on half of the queues: the same kernel as FLAGS */
        how.queues[MGL_STEP_HEAD].count = target.queues / 2;
    ok(mgl_synthetic_open(model, 0, &graph, &err), err);
    ok(mgl_schedule_lower(graph, &target, &options, &how, &program, &err), err);
    mgl_graph_free(graph);
    return program;
}

static mgl_program *lower(kind which)
{
    return lower_for(&config, MGL_BF16, which, CAPACITY, BATCH);
}

/* Whether the program was exchanged on the existing machine. */
static bool set(mgl_side side, kind which)
{
    mgl_error err;
    mgl_paired_bench_facts facts;
    ok(mgl_paired_bench_set(paired_bench, side, lower(which), &facts, &err), err);
    printf("program %d: exchanged %d, check %.3f s, compiler %.3f s, in all %.3f s\n", which,
           facts.exchanged, facts.check_s, facts.kernel_s, facts.total_s);
    return facts.exchanged;
}

/* ---- launches -------------------------------------------------------------------------------- */

typedef struct outcome {
    int32_t tokens[BATCH * TOKENS];
    float logits[BATCH * VOCAB];
} outcome;

static outcome a, b, c; /* large */

static void run(mgl_side side, const mgl_paired_bench_load *of, outcome *out)
{
    mgl_error err;
    double seconds;
    ok(mgl_paired_bench_run(paired_bench, side, of, out->tokens, &seconds, &err), err);
    ok(mgl_paired_bench_get_logits(paired_bench, side, out->logits, &err), err);
    ck_assert_double_gt(seconds, 0);
}

static void ck_assert_same(const outcome *x, const outcome *y)
{
    ck_assert_mem_eq(x->tokens, y->tokens, sizeof x->tokens);
    ck_assert_mem_eq(x->logits, y->logits, sizeof x->logits);
}

typedef struct reference {
    float largest[BATCH * TOKENS], chosen[BATCH * TOKENS], norms[BATCH * TOKENS];
    float logits[BATCH * VOCAB]; /* of the last step */
} reference;

static reference wanted;

static void refer(const mgl_paired_bench_load *of, const int32_t *made)
{
    mgl_error err;
    int last = of->tokens - 1;
    mgl_paired_bench_reference how = {.largest = wanted.largest,
                                      .chosen = wanted.chosen,
                                      .norms = wanted.norms,
                                      .steps = &last,
                                      .step_count = 1,
                                      .logits = wanted.logits};
    ok(mgl_paired_bench_refer(paired_bench, of, made, &how, &err), err);
}

static double distance(const outcome *made, int sequence)
{
    return mgl_reference_distance(made->logits + sequence * VOCAB, wanted.logits + sequence * VOCAB,
                                  VOCAB);
}

/* ---- the tests ------------------------------------------------------------------------------- */

START_TEST(the_reference_agrees_with_both_sides)
{
    set(MGL_INCUMBENT, COUNTERS);
    set(MGL_CANDIDATE, FLAGS);
    for (mgl_side side = MGL_INCUMBENT; side < MGL_SIDES; side++) {
        run(side, &load, &a);
        const double before = mgl_paired_bench_device_s(paired_bench);
        refer(&load, a.tokens);
        ck_assert_double_gt(mgl_paired_bench_device_s(paired_bench), before);
        for (int s = 0; s < BATCH; s++) {
            printf("side %d, sequence %d: error %.2e\n", side, s, distance(&a, s));
            ck_assert_double_lt(distance(&a, s), MGL_BENCH_ERROR);
        }
        for (int i = 0; i < BATCH * TOKENS; i++)
            ck_assert_float_ge(wanted.chosen[i],
                               wanted.largest[i] - (float)MGL_BENCH_ERROR * wanted.norms[i]);
    }
}
END_TEST

/* The norms and the largest logits are those of the logits themselves. */
START_TEST(the_reference_is_summed_up_as_it_is)
{
    set(MGL_CANDIDATE, FLAGS);
    run(MGL_CANDIDATE, &load, &a);
    refer(&load, a.tokens);
    for (int s = 0; s < BATCH; s++) {
        const float *row = wanted.logits + s * VOCAB;
        double squares = 0;
        float most = row[0];
        for (int i = 0; i < VOCAB; i++) {
            squares += (double)row[i] * (double)row[i];
            most = row[i] > most ? row[i] : most;
        }
        int last = s * TOKENS + TOKENS - 1;
        ck_assert_float_eq(wanted.largest[last], most);
        ck_assert_float_eq(wanted.chosen[last], row[a.tokens[last]]);
        ck_assert_double_eq_tol((double)wanted.norms[last], sqrt(squares), 1e-4 * sqrt(squares));
    }
}
END_TEST

/* The reference of `bench`, which shares the kernels but no other code. */
START_TEST(the_reference_is_that_of_bench)
{
    mgl_error err;
    int32_t first[MGL_MAX_ROWS], chosen[BATCH * TOKENS];
    float *logits = mgl_alloc(VOCAB * sizeof *logits);
    mgl_bench_case of = {.graph = paired_bench->graph,
                         .sequences = BATCH,
                         .context = CONTEXT,
                         .tokens = TOKENS,
                         .capacity = CAPACITY,
                         .first = first};
    set(MGL_CANDIDATE, FLAGS);
    run(MGL_CANDIDATE, &load, &a);
    refer(&load, a.tokens);
    mgl_paired_bench_make_first(paired_bench, &load, first);
    ok(mgl_bench_device_enter(&paired_bench->device, &err), err);
    ok(mgl_bench_make_rope(&paired_bench->device, paired_bench->graph, CAPACITY, &of.rope, &err),
       err);
    ok(mgl_reference_run(&paired_bench->device, &of, a.tokens, chosen, logits, &err), err);
    mgl_bench_release(&paired_bench->device, of.rope);
    mgl_bench_device_leave(&paired_bench->device);
    ck_assert_double_lt(mgl_reference_distance(wanted.logits + (BATCH - 1) * VOCAB, logits, VOCAB),
                        1e-6);
    mgl_free(logits);
}
END_TEST

START_TEST(a_second_launch_is_the_same_bit_for_bit)
{
    set(MGL_INCUMBENT, (kind)_i);
    run(MGL_INCUMBENT, &load, &a);
    run(MGL_INCUMBENT, &load, &b);
    ck_assert_same(&a, &b);
}
END_TEST

START_TEST(weights_are_made_anew)
{
    mgl_paired_bench_load other = load, longer = load;
    other.seed++;
    longer.context += 17;
    set(MGL_CANDIDATE, FLAGS);
    run(MGL_CANDIDATE, &load, &a);
    run(MGL_CANDIDATE, &other, &b);
    ck_assert_mem_ne(a.logits, b.logits, sizeof a.logits);
    run(MGL_CANDIDATE, &longer, &b);
    ck_assert_mem_ne(a.logits, b.logits, sizeof a.logits);
    refer(&longer, b.tokens);
    ck_assert_double_lt(distance(&b, 0), MGL_BENCH_ERROR);
    run(MGL_CANDIDATE, &load, &c);
    ck_assert_same(&a, &c);
}
END_TEST

START_TEST(poison_changes_no_bit)
{
    mgl_paired_bench_load with = load;
    with.poison = true;
    set(MGL_CANDIDATE, (kind)_i);
    run(MGL_CANDIDATE, &load, &a);
    for (int i = 0; i < 2; i++) {
        run(MGL_CANDIDATE, &with, &b);
        ck_assert_same(&a, &b);
    }
    run(MGL_CANDIDATE, &load, &b);
    ck_assert_same(&a, &b);
}
END_TEST

/* A machine exchanges its program with another of the same kernel, and back. */
START_TEST(programs_of_one_kernel_follow_one_another)
{
    set(MGL_CANDIDATE, FLAGS);
    run(MGL_CANDIDATE, &load, &a);
    ck_assert(set(MGL_CANDIDATE, OTHER_QUEUES));
    run(MGL_CANDIDATE, &load, &b);
    refer(&load, b.tokens);
    ck_assert_double_lt(distance(&b, BATCH - 1), MGL_BENCH_ERROR);
    ck_assert(set(MGL_CANDIDATE, FLAGS));
    run(MGL_CANDIDATE, &load, &b);
    ck_assert_same(&a, &b);
}
END_TEST

START_TEST(what_is_promoted_runs_as_the_incumbent)
{
    set(MGL_INCUMBENT, COUNTERS);
    set(MGL_CANDIDATE, FLAGS);
    run(MGL_CANDIDATE, &load, &a);
    mgl_paired_bench_promote(paired_bench);
    run(MGL_INCUMBENT, &load, &b);
    ck_assert_same(&a, &b);
    ck_assert(set(MGL_CANDIDATE, COUNTERS)); /* the machine of the old incumbent */
    run(MGL_CANDIDATE, &load, &b);
}
END_TEST

START_TEST(wrong_weights_are_noticed)
{
    mgl_paired_bench_load other = load;
    other.seed++;
    set(MGL_CANDIDATE, FLAGS);
    run(MGL_CANDIDATE, &other, &a);
    refer(&load, a.tokens);
    ck_assert_double_gt(distance(&a, 0), 0.5);
}
END_TEST

START_TEST(altered_tokens_are_noticed)
{
    set(MGL_CANDIDATE, FLAGS);
    run(MGL_CANDIDATE, &load, &a);
    a.tokens[TOKENS - 2] = (a.tokens[TOKENS - 2] + 1) % VOCAB;
    refer(&load, a.tokens);
    ck_assert_double_gt(distance(&a, 0), MGL_BENCH_ERROR);
    ck_assert_double_lt(distance(&a, 1), MGL_BENCH_ERROR);
    ck_assert_float_lt(wanted.chosen[TOKENS - 2], wanted.largest[TOKENS - 2]);
}
END_TEST

START_TEST(the_stream_is_timed)
{
    mgl_error err;
    double large, small;
    ok(mgl_paired_bench_stream(paired_bench, 2e9, 3, &large, &err), err);
    ok(mgl_paired_bench_stream(paired_bench, 1e9, 3, &small, &err), err);
    printf("stream: %.0f GB/s\n", 2 / large);
    ck_assert_double_gt(small, 0);
    ck_assert_double_lt(small, large);
    ck_assert_double_gt(2e9 / large, 1e11); /* bytes per second */
    ck_assert_int_eq(mgl_paired_bench_stream(paired_bench, 1e18, 1, &large, &err), MGL_USAGE);
}
END_TEST

START_TEST(the_device_says_what_it_is)
{
    mgl_error err;
    mgl_paired_bench_device device;
    mgl_paired_bench_clocks clocks;
    ok(mgl_paired_bench_get_device(paired_bench, &device, &err), err);
    mgl_paired_bench_look(paired_bench, &clocks);
    printf("%s, %s, driver %d, %.1f of %.1f GB free, L2 %.1f MB\n", device.name, device.uuid,
           device.driver_version, (double)device.memory_free * 1e-9,
           (double)device.memory_total * 1e-9, (double)device.l2_bytes * 1e-6);
    printf("clocks: %u and %u MHz, %u degrees, reasons %llx, %d others\n", clocks.sm_mhz,
           clocks.memory_mhz, clocks.temperature, (unsigned long long)clocks.reasons,
           clocks.processes);
    ck_assert_uint_eq(strlen(device.uuid), strlen("GPU-00000000-0000-0000-0000-000000000000"));
    ck_assert_uint_gt(device.l2_bytes, 0);
    ck_assert_uint_gt(device.memory_total, device.memory_free);
}
END_TEST

/* A cache larger than any device's memory. */
START_TEST(too_little_memory_is_told_in_bytes)
{
    mgl_error err;
    mgl_paired_bench_facts facts;
    mgl_paired_bench *other;
    mgl_paired_bench_options options = {.device = "cuda"};
    ok(mgl_synthetic_find_shape("llama-8b", &options.config, &err), err);
    ok(mgl_paired_bench_open(&options, &other, &err), err);
    mgl_program *program =
        lower_for(&options.config, MGL_BF16, COUNTERS, options.config.max_positions, 16);
    ck_assert_int_eq(mgl_paired_bench_set(other, MGL_CANDIDATE, program, &facts, &err), MGL_DEVICE);
    ck_assert_ptr_nonnull(strstr(err.message, "bytes are needed"));
    ck_assert_ptr_nonnull(strstr(err.message, "are free"));
    mgl_paired_bench_close(other);
}
END_TEST

/* ---- families -------------------------------------------------------------------------------- */

/* Two layers of a model with biases and of one with norms of q and k. */
static const char *const families[] = {"qwen2.5-0.5b", "qwen3-0.6b"};
enum { FAMILIES = 2, FAMILY_VOCAB = 151936 };

static mgl_paired_bench *open_family(const char *shape, mgl_config *out)
{
    mgl_error err;
    mgl_paired_bench *of;
    mgl_paired_bench_options options = {.device = "cuda"};
    ok(mgl_synthetic_find_shape(shape, &options.config, &err), err);
    options.config.geometry.layers = 2;
    *out = options.config;
    ok(mgl_paired_bench_open(&options, &of, &err), err);
    return of;
}

/* The tokens of a launch with poisoned memory, and the reference's results. */
static void check_family(mgl_paired_bench *of, const mgl_config *family)
{
    static float logits[BATCH * FAMILY_VOCAB], all[BATCH * FAMILY_VOCAB];
    mgl_error err;
    double seconds;
    int32_t tokens[BATCH * TOKENS];
    const size_t vocab = FAMILY_VOCAB;
    int last = TOKENS - 1;
    mgl_paired_bench_load with = load;
    mgl_paired_bench_reference how = {
        wanted.largest, wanted.chosen, wanted.norms, &last, 1, all, NULL};
    with.poison = true;
    ok(mgl_paired_bench_run(of, MGL_CANDIDATE, &with, tokens, &seconds, &err), err);
    ok(mgl_paired_bench_get_logits(of, MGL_CANDIDATE, logits, &err), err);
    ok(mgl_paired_bench_refer(of, &load, tokens, &how, &err), err);
    for (size_t s = 0; s < BATCH; s++) {
        double error = mgl_reference_distance(logits + s * vocab, all + s * vocab, vocab);
        printf("extras %u, sequence %zu: error %.2e\n", family->extras, s, error);
        ck_assert_double_lt(error, MGL_BENCH_ERROR);
    }
    for (int i = 0; i < BATCH * TOKENS; i++)
        ck_assert_float_ge(wanted.chosen[i],
                           wanted.largest[i] - (float)MGL_BENCH_ERROR * wanted.norms[i]);
}

START_TEST(the_reference_agrees_with_families)
{
    mgl_error err;
    mgl_config family;
    mgl_paired_bench_facts facts;
    mgl_paired_bench *of = open_family(families[_i / 2], &family);
    ck_assert_uint_ne(family.extras, MGL_EXTRA_NONE);
    ck_assert_int_eq(family.geometry.vocab, FAMILY_VOCAB);
    mgl_program *program = lower_for(&family, MGL_BF16, _i % 2 ? FLAGS : COUNTERS, CAPACITY, BATCH);
    ok(mgl_paired_bench_set(of, MGL_CANDIDATE, program, &facts, &err), err);
    check_family(of, &family);
    mgl_paired_bench_close(of);
}
END_TEST

/* ---- the suite ------------------------------------------------------------------------------- */

static void open_paired_bench(void)
{
    mgl_error err;
    mgl_paired_bench_options options = {.device = "cuda"};
    ok(mgl_synthetic_find_shape("llama-1b", &config, &err), err);
    config.geometry.layers = 2;
    options.config = config;
    ok(mgl_paired_bench_open(&options, &paired_bench, &err), err);
}

static void close_paired_bench(void)
{
    mgl_paired_bench_close(paired_bench);
    ck_assert(!mgl_cu_is_busy());
}

int main(void)
{
    mgl_cuda_probe probe;
    mgl_cuda_get_probe(&probe);
    if (!probe.device_count || !probe.nvrtc) {
        printf("SKIPPED paired_bench_gpu: no CUDA device, or no NVRTC: %s%s\n", probe.driver_reason,
               probe.nvrtc_reason);
        return SKIP;
    }
    TCase *tests = tcase_create("paired_bench_gpu");
    tcase_set_timeout(tests, 240);
    tcase_add_unchecked_fixture(tests, open_paired_bench, close_paired_bench);
    tcase_add_test(tests, the_reference_agrees_with_both_sides);
    tcase_add_test(tests, the_reference_is_summed_up_as_it_is);
    tcase_add_test(tests, the_reference_is_that_of_bench);
    tcase_add_loop_test(tests, a_second_launch_is_the_same_bit_for_bit, 0, KINDS);
    tcase_add_test(tests, weights_are_made_anew);
    tcase_add_loop_test(tests, poison_changes_no_bit, 0, KINDS);
    tcase_add_test(tests, programs_of_one_kernel_follow_one_another);
    tcase_add_test(tests, what_is_promoted_runs_as_the_incumbent);
    tcase_add_test(tests, wrong_weights_are_noticed);
    tcase_add_test(tests, altered_tokens_are_noticed);
    tcase_add_test(tests, the_stream_is_timed);
    tcase_add_test(tests, the_device_says_what_it_is);
    tcase_add_test(tests, too_little_memory_is_told_in_bytes);
    tcase_add_loop_test(tests, the_reference_agrees_with_families, 0, 2 * FAMILIES);
    Suite *suite = suite_create("paired_bench_gpu");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
