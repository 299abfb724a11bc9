/* Tests of paired benchmarks on the CPU: two programs of one model make the same tokens from the
 * same seed, regardless of old memory contents; the reference agrees; errors are detected. */
#include <check.h>
#include <stdlib.h>

#include "base/memory.h"
#include "eval/paired_bench.h"
#include "eval/reference.h"
#include "schedule/schedule.h"

#define ok(call, err) ck_assert_msg((call) == MGL_OK, "%s: %s", (err).where, (err).message)

enum { BATCH = 2, TOKENS = 5, CONTEXT = 9, CAPACITY = 32, VOCAB = 301 };

static const mgl_config small = {
    .geometry = {128, 2, 4, 2, 32, 256, VOCAB, 1e-5f},
    .max_positions = 64,
    .tied = true,
    .rope = {.type = MGL_ROPE_DEFAULT, .theta = 10000, .factor = 1, .attention_factor = 1},
    .extras = 0};

static const mgl_paired_bench_load load = {
    .batch = BATCH, .context = CONTEXT, .tokens = TOKENS, .seed = 7};

static mgl_paired_bench *paired_bench;

/* ---- programs -------------------------------------------------------------------------------- */

typedef struct shape {
    const mgl_config *config;
    const char *target;
    mgl_dtype dtype;
    int sequences, exchange; /* 1: counters; 2: flags */
} shape;

static mgl_program *lower(shape of)
{
    mgl_error err;
    mgl_graph *graph;
    mgl_program *program;
    mgl_target target;
    mgl_schedule_config config;
    mgl_lower_options options = {
        .dtype = of.dtype, .capacity = CAPACITY, .sequences = of.sequences};
    mgl_schedule_config_default(&config);
    config.exchange = of.exchange;
    ok(mgl_target_parse(of.target, &target, &err), err);
    ok(mgl_synthetic_open(of.config, 0, &graph, &err), err);
    ok(mgl_schedule_lower(graph, &target, &options, &config, &program, &err), err);
    mgl_graph_free(graph);
    return program;
}

static mgl_program *one_queue(void)
{
    return lower((shape){&small, "cpu:1", MGL_F32, BATCH, 1});
}

static mgl_program *with_counters(void)
{
    return lower((shape){&small, "sm_90a:4", MGL_BF16, BATCH, 1});
}

static mgl_program *with_flags(void)
{
    return lower((shape){&small, "sm_90a:4", MGL_BF16, BATCH, 2});
}

static void set(mgl_side side, mgl_program *program)
{
    mgl_error err;
    mgl_paired_bench_facts facts;
    ok(mgl_paired_bench_set(paired_bench, side, program, &facts, &err), err);
}

/* ---- launches -------------------------------------------------------------------------------- */

/* The results of a launch. */
typedef struct outcome {
    int32_t tokens[BATCH * TOKENS];
    float logits[BATCH * VOCAB];
} outcome;

static void run(mgl_side side, const mgl_paired_bench_load *of, outcome *out)
{
    mgl_error err;
    double seconds;
    ok(mgl_paired_bench_run(paired_bench, side, of, out->tokens, &seconds, &err), err);
    ok(mgl_paired_bench_get_logits(paired_bench, side, out->logits, &err), err);
    ck_assert_double_gt(seconds, 0);
}

static void ck_assert_same(const outcome *a, const outcome *b)
{
    ck_assert_mem_eq(a->tokens, b->tokens, sizeof a->tokens);
    ck_assert_mem_eq(a->logits, b->logits, sizeof a->logits);
}

typedef struct reference {
    float largest[BATCH * TOKENS], chosen[BATCH * TOKENS], norms[BATCH * TOKENS];
    float logits[BATCH * VOCAB]; /* logits of the last step */
} reference;

static void refer(const mgl_paired_bench_load *of, const int32_t *made, reference *out)
{
    mgl_error err;
    int last = of->tokens - 1;
    mgl_paired_bench_reference how = {.largest = out->largest,
                                      .chosen = out->chosen,
                                      .norms = out->norms,
                                      .steps = &last,
                                      .step_count = 1,
                                      .logits = out->logits};
    ok(mgl_paired_bench_refer(paired_bench, of, made, &how, &err), err);
}

static double distance(const outcome *made, const reference *wanted, int sequence)
{
    return mgl_reference_distance(made->logits + sequence * VOCAB,
                                  wanted->logits + sequence * VOCAB, VOCAB);
}

static void open_paired_bench(void)
{
    mgl_error err;
    mgl_paired_bench_options options = {.config = small, .device = "cpu"};
    ok(mgl_paired_bench_open(&options, &paired_bench, &err), err);
}

static void close_paired_bench(void)
{
    mgl_paired_bench_close(paired_bench);
}

/* ---- the tests ------------------------------------------------------------------------------- */

START_TEST(two_programs_of_a_model_make_the_same)
{
    outcome a, b;
    set(MGL_INCUMBENT, with_counters());
    set(MGL_CANDIDATE, with_flags());
    run(MGL_INCUMBENT, &load, &a);
    run(MGL_CANDIDATE, &load, &b);
    ck_assert_mem_eq(a.tokens, b.tokens, sizeof a.tokens);
}
END_TEST

START_TEST(a_second_launch_is_the_same_bit_for_bit)
{
    outcome a, b;
    set(MGL_INCUMBENT, one_queue());
    run(MGL_INCUMBENT, &load, &a);
    run(MGL_INCUMBENT, &load, &b);
    ck_assert_same(&a, &b);
}
END_TEST

START_TEST(a_seed_that_comes_back_gives_the_same)
{
    outcome a, b, c;
    mgl_paired_bench_load other = load;
    other.seed++;
    set(MGL_INCUMBENT, with_flags());
    run(MGL_INCUMBENT, &load, &a);
    run(MGL_INCUMBENT, &other, &b);
    run(MGL_INCUMBENT, &load, &c);
    ck_assert_same(&a, &c);
    ck_assert_mem_ne(a.logits, b.logits, sizeof a.logits);
}
END_TEST

START_TEST(a_context_that_comes_back_gives_the_same)
{
    outcome a, b, c;
    mgl_paired_bench_load other = load;
    other.context += 3;
    set(MGL_INCUMBENT, one_queue());
    run(MGL_INCUMBENT, &load, &a);
    run(MGL_INCUMBENT, &other, &b);
    run(MGL_INCUMBENT, &load, &c);
    ck_assert_same(&a, &c);
    ck_assert_mem_ne(a.logits, b.logits, sizeof a.logits);
}
END_TEST

START_TEST(each_side_gets_its_weights_when_it_runs)
{
    outcome a, b;
    mgl_paired_bench_load other = load;
    other.seed++;
    set(MGL_INCUMBENT, with_counters());
    set(MGL_CANDIDATE, with_counters());
    run(MGL_INCUMBENT, &other, &a);
    run(MGL_CANDIDATE, &load, &a);
    run(MGL_INCUMBENT, &load, &b);
    ck_assert_same(&a, &b);
}
END_TEST

static mgl_program *(*const programs[])(void) = {one_queue, with_counters, with_flags};
enum { PROGRAMS = sizeof programs / sizeof *programs };

START_TEST(poison_changes_no_bit)
{
    outcome clean, poisoned;
    mgl_paired_bench_load with = load;
    with.poison = true;
    set(MGL_CANDIDATE, programs[_i]());
    run(MGL_CANDIDATE, &load, &clean);
    for (int i = 0; i < 2; i++) {
        run(MGL_CANDIDATE, &with, &poisoned);
        ck_assert_same(&clean, &poisoned);
    }
    run(MGL_CANDIDATE, &load, &poisoned); /* and its leftovers change no token */
    ck_assert_same(&clean, &poisoned);
}
END_TEST

/* The shape of tests/models/tales-5m, whose rows and columns fill the queues unevenly. */
START_TEST(poison_changes_no_bit_of_a_larger_model)
{
    enum { TALES_VOCAB = 913 };
    static float clean[BATCH * TALES_VOCAB], poisoned[BATCH * TALES_VOCAB];
    mgl_error err;
    mgl_paired_bench *tales;
    mgl_paired_bench_facts facts;
    mgl_paired_bench_load with = load;
    double seconds;
    mgl_paired_bench_options options = {.device = "cpu"};
    ok(mgl_synthetic_read_config(MGL_SOURCE_DIR "/tests/models/tales-5m", &options.config, &err),
       err);
    ck_assert_int_eq(options.config.geometry.vocab, TALES_VOCAB);
    shape of = {&options.config, "sm_90a:7", MGL_BF16, BATCH, 1 + _i};
    ok(mgl_paired_bench_open(&options, &tales, &err), err);
    ok(mgl_paired_bench_set(tales, MGL_CANDIDATE, lower(of), &facts, &err), err);
    ok(mgl_paired_bench_run(tales, MGL_CANDIDATE, &load, NULL, &seconds, &err), err);
    ok(mgl_paired_bench_get_logits(tales, MGL_CANDIDATE, clean, &err), err);
    with.poison = true;
    for (int i = 0; i < 2; i++) {
        ok(mgl_paired_bench_run(tales, MGL_CANDIDATE, &with, NULL, &seconds, &err), err);
        ok(mgl_paired_bench_get_logits(tales, MGL_CANDIDATE, poisoned, &err), err);
        ck_assert_mem_eq(clean, poisoned, sizeof clean);
    }
    mgl_paired_bench_close(tales);
}
END_TEST

START_TEST(the_reference_agrees)
{
    outcome made;
    reference wanted;
    set(MGL_CANDIDATE, programs[_i]());
    run(MGL_CANDIDATE, &load, &made);
    refer(&load, made.tokens, &wanted);
    for (int s = 0; s < BATCH; s++)
        ck_assert_double_lt(distance(&made, &wanted, s), _i == 0 ? 1e-5 : 0.02);
    for (int i = 0; i < BATCH * TOKENS; i++)
        ck_assert_float_ge(wanted.chosen[i], wanted.largest[i] - 0.02f * wanted.norms[i]);
}
END_TEST

/* ---- more sequences than an epoch of one list has rows --------------------------------------- */

enum { SEQUENCES = 20 };

/* 20 sequences, whose epochs use the second list. */
static mgl_program *with_two_lists(void)
{
    mgl_error err;
    mgl_graph *graph;
    mgl_program *program;
    mgl_target target;
    mgl_schedule_config config;
    mgl_lower_options options = {.dtype = MGL_F32, .capacity = CAPACITY, .sequences = SEQUENCES};
    mgl_schedule_config_default(&config);
    config.rows = 4;
    config.second_rows = SEQUENCES;
    ok(mgl_target_parse("cpu:2", &target, &err), err);
    ok(mgl_synthetic_open(&small, 0, &graph, &err), err);
    ok(mgl_schedule_lower(graph, &target, &options, &config, &program, &err), err);
    mgl_graph_free(graph);
    return program;
}

START_TEST(the_reference_agrees_with_a_second_list)
{
    enum { WORDS = SEQUENCES * TOKENS, LOGITS = SEQUENCES * VOCAB, LAST = TOKENS - 1 };
    mgl_error err;
    double seconds;
    int32_t made[WORDS];
    static float logits[LOGITS], wanted[LOGITS], largest[WORDS], chosen[WORDS], norms[WORDS];
    const int last = LAST;
    const mgl_paired_bench_load many = {
        .batch = SEQUENCES, .context = CONTEXT, .tokens = TOKENS, .seed = 7, .poison = true};
    mgl_paired_bench_reference how = {.largest = largest,
                                      .chosen = chosen,
                                      .norms = norms,
                                      .steps = &last,
                                      .step_count = 1,
                                      .logits = wanted};
    set(MGL_CANDIDATE, with_two_lists());
    ok(mgl_paired_bench_run(paired_bench, MGL_CANDIDATE, &many, made, &seconds, &err), err);
    ok(mgl_paired_bench_get_logits(paired_bench, MGL_CANDIDATE, logits, &err), err);
    ok(mgl_paired_bench_refer(paired_bench, &many, made, &how, &err), err);
    for (int s = 0; s < SEQUENCES; s++)
        ck_assert_double_lt(mgl_reference_distance(logits + s * VOCAB, wanted + s * VOCAB, VOCAB),
                            1e-5);
    for (int i = 0; i < WORDS; i++)
        ck_assert_float_ge(chosen[i], largest[i] - 0.02f * norms[i]);
}
END_TEST

/* ---- families -------------------------------------------------------------------------------- */

enum { EVERY_BIAS = MGL_EXTRA_QKV_BIAS | MGL_EXTRA_O_BIAS | MGL_EXTRA_MLP_BIAS };
static const unsigned families[] = {MGL_EXTRA_QKV_BIAS, MGL_EXTRA_QK_NORM,
                                    EVERY_BIAS | MGL_EXTRA_QK_NORM};
enum { FAMILIES = sizeof families / sizeof *families };

/* Replaces the paired benchmark of `small`: the same sizes with the family's biases and norms. */
static mgl_config open_family(unsigned extras)
{
    mgl_error err;
    mgl_paired_bench_options options = {.config = small, .device = "cpu"};
    options.config.extras = extras;
    mgl_paired_bench_close(paired_bench);
    ok(mgl_paired_bench_open(&options, &paired_bench, &err), err);
    return options.config;
}

START_TEST(the_reference_agrees_with_a_family)
{
    outcome made;
    reference wanted;
    mgl_config config = open_family(families[_i % FAMILIES]);
    int exchange = 1 + _i / FAMILIES;
    set(MGL_CANDIDATE, lower((shape){&config, "sm_90a:4", MGL_BF16, BATCH, exchange}));
    run(MGL_CANDIDATE, &load, &made);
    refer(&load, made.tokens, &wanted);
    for (int s = 0; s < BATCH; s++)
        ck_assert_double_lt(distance(&made, &wanted, s), 0.02);
}
END_TEST

START_TEST(a_program_without_the_family_is_rejected)
{
    mgl_error err;
    mgl_paired_bench_facts facts;
    open_family(families[_i]);
    ck_assert_int_eq(
        mgl_paired_bench_set(paired_bench, MGL_CANDIDATE, with_counters(), &facts, &err),
        MGL_REJECTED);
}
END_TEST

/* A shorter run ends with the state of the longer run at that step. */
START_TEST(a_shorter_run_shows_an_earlier_step)
{
    outcome all, some = {0};
    reference wanted;
    mgl_paired_bench_load shorter = load;
    shorter.tokens = 3;
    set(MGL_INCUMBENT, one_queue());
    run(MGL_INCUMBENT, &load, &all);
    run(MGL_INCUMBENT, &shorter, &some);
    refer(&shorter, some.tokens, &wanted);
    ck_assert_int_eq(some.tokens[2], all.tokens[2]);
    ck_assert_double_lt(distance(&some, &wanted, BATCH - 1), 1e-5);
}
END_TEST

START_TEST(the_reference_gives_the_steps_that_were_asked)
{
    mgl_error err;
    outcome made;
    reference last;
    static float largest[BATCH * TOKENS], both[2 * BATCH * VOCAB];
    int steps[] = {TOKENS - 1, 1};
    mgl_paired_bench_reference how = {
        largest, (float[BATCH * TOKENS]){0}, (float[BATCH * TOKENS]){0}, steps, 2, both, NULL};
    set(MGL_INCUMBENT, one_queue());
    run(MGL_INCUMBENT, &load, &made);
    refer(&load, made.tokens, &last);
    ok(mgl_paired_bench_refer(paired_bench, &load, made.tokens, &how, &err), err);
    ck_assert_mem_eq(both, last.logits, sizeof last.logits);
    for (int s = 0; s < BATCH; s++) {
        const float *row = both + (BATCH + s) * VOCAB;
        float most = row[0];
        for (int i = 1; i < VOCAB; i++)
            most = row[i] > most ? row[i] : most;
        ck_assert_float_eq(most, largest[s * TOKENS + 1]);
    }
}
END_TEST

static mgl_program *with_three_queues(void)
{
    return lower((shape){&small, "sm_90a:3", MGL_BF16, BATCH, 1});
}

/* The program is exchanged on the side's machine, which has the side's weights and cache. */
START_TEST(a_program_is_exchanged_for_another)
{
    mgl_error err;
    mgl_paired_bench_facts facts;
    outcome fresh, exchanged;
    set(MGL_INCUMBENT, with_three_queues());
    run(MGL_INCUMBENT, &load, &fresh);
    set(MGL_CANDIDATE, with_counters());
    run(MGL_CANDIDATE, &load, &exchanged);
    ok(mgl_paired_bench_set(paired_bench, MGL_CANDIDATE, with_three_queues(), &facts, &err), err);
    ck_assert(facts.exchanged);
    run(MGL_CANDIDATE, &load, &exchanged);
    ck_assert_same(&fresh, &exchanged);
}
END_TEST

START_TEST(a_program_of_other_formats_gets_a_machine)
{
    mgl_error err;
    mgl_paired_bench_facts facts;
    outcome fresh, opened;
    set(MGL_INCUMBENT, one_queue());
    run(MGL_INCUMBENT, &load, &fresh);
    set(MGL_CANDIDATE, with_counters());
    ok(mgl_paired_bench_set(paired_bench, MGL_CANDIDATE, one_queue(), &facts, &err), err);
    ck_assert(!facts.exchanged);
    run(MGL_CANDIDATE, &load, &opened);
    ck_assert_same(&fresh, &opened);
}
END_TEST

/* After a promotion or a rejection, the next program is exchanged into the remaining machine. */
START_TEST(a_machine_that_is_left_is_used_again)
{
    mgl_error err;
    mgl_paired_bench_facts facts;
    outcome made;
    mgl_config wider = small;
    wider.geometry.ffn = 384;
    set(MGL_INCUMBENT, with_counters());
    set(MGL_CANDIDATE, one_queue());
    mgl_paired_bench_promote(paired_bench);
    mgl_program *wrong = lower((shape){&wider, "sm_90a:4", MGL_BF16, BATCH, 1});
    ck_assert_int_eq(mgl_paired_bench_set(paired_bench, MGL_CANDIDATE, wrong, &facts, &err),
                     MGL_REJECTED);
    ok(mgl_paired_bench_set(paired_bench, MGL_CANDIDATE, with_three_queues(), &facts, &err), err);
    ck_assert(facts.exchanged);
    run(MGL_CANDIDATE, &load, &made);
}
END_TEST

/* With other weights, the logits differ clearly from those of the reference. */
START_TEST(wrong_weights_are_noticed)
{
    outcome made;
    reference wanted;
    mgl_paired_bench_load other = load;
    other.seed++;
    set(MGL_CANDIDATE, with_counters());
    run(MGL_CANDIDATE, &other, &made);
    refer(&load, made.tokens, &wanted);
    ck_assert_double_gt(distance(&made, &wanted, 0), 0.5);
}
END_TEST

START_TEST(altered_tokens_are_noticed)
{
    outcome made;
    reference wanted;
    set(MGL_CANDIDATE, one_queue());
    run(MGL_CANDIDATE, &load, &made);
    made.tokens[1] = (made.tokens[1] + 1) % VOCAB;
    refer(&load, made.tokens, &wanted);
    ck_assert_double_gt(distance(&made, &wanted, 0), 0.01);
    ck_assert_float_lt(wanted.chosen[1], wanted.largest[1]);
}
END_TEST

START_TEST(a_program_of_another_model_is_rejected)
{
    mgl_error err;
    mgl_paired_bench_facts facts;
    double seconds;
    mgl_config wider = small;
    wider.geometry.ffn = 384;
    set(MGL_CANDIDATE, one_queue());
    mgl_program *program = lower((shape){&wider, "cpu:1", MGL_F32, BATCH, 1});
    ck_assert_int_eq(mgl_paired_bench_set(paired_bench, MGL_CANDIDATE, program, &facts, &err),
                     MGL_REJECTED);
    ck_assert_int_eq(mgl_paired_bench_run(paired_bench, MGL_CANDIDATE, &load, NULL, &seconds, &err),
                     MGL_USAGE);
}
END_TEST

START_TEST(an_empty_side_does_not_run)
{
    mgl_error err;
    double seconds;
    float logits[BATCH * VOCAB];
    set(MGL_INCUMBENT, one_queue());
    ck_assert_int_eq(mgl_paired_bench_run(paired_bench, MGL_CANDIDATE, &load, NULL, &seconds, &err),
                     MGL_USAGE);
    ck_assert_str_eq(err.where, "candidate");
    ck_assert_int_eq(mgl_paired_bench_get_logits(paired_bench, MGL_INCUMBENT, logits, &err),
                     MGL_USAGE);
}
END_TEST

START_TEST(a_workload_that_has_no_room_is_rejected)
{
    static const mgl_paired_bench_load large[] = {
        {.batch = BATCH + 1, .context = 0, .tokens = 1},
        {.batch = 1, .context = CAPACITY - TOKENS, .tokens = TOKENS}};
    mgl_error err;
    double seconds;
    set(MGL_INCUMBENT, one_queue());
    ck_assert_int_eq(
        mgl_paired_bench_run(paired_bench, MGL_INCUMBENT, &large[_i], NULL, &seconds, &err),
        MGL_BAD_INPUT);
    ck_assert_str_eq(err.where, "workload");
}
END_TEST

START_TEST(what_is_promoted_runs_as_the_incumbent)
{
    mgl_error err;
    double seconds;
    outcome before, after;
    set(MGL_INCUMBENT, one_queue());
    set(MGL_CANDIDATE, with_flags());
    run(MGL_CANDIDATE, &load, &before);
    mgl_paired_bench_promote(paired_bench);
    run(MGL_INCUMBENT, &load, &after);
    ck_assert_same(&before, &after);
    ck_assert_int_eq(mgl_paired_bench_run(paired_bench, MGL_CANDIDATE, &load, NULL, &seconds, &err),
                     MGL_USAGE);
}
END_TEST

START_TEST(what_was_dropped_is_gone)
{
    mgl_error err;
    double seconds;
    outcome made;
    set(MGL_INCUMBENT, one_queue());
    set(MGL_CANDIDATE, one_queue());
    mgl_paired_bench_drop(paired_bench, MGL_CANDIDATE);
    ck_assert_int_eq(mgl_paired_bench_run(paired_bench, MGL_CANDIDATE, &load, NULL, &seconds, &err),
                     MGL_USAGE);
    run(MGL_INCUMBENT, &load, &made);
    set(MGL_CANDIDATE, with_counters());
    run(MGL_CANDIDATE, &load, &made);
}
END_TEST

START_TEST(an_abort_ends_a_paired_bench)
{
    static atomic_int abort;
    mgl_error err;
    double seconds;
    mgl_paired_bench *stopped;
    mgl_paired_bench_facts facts;
    mgl_paired_bench_options options = {.config = small, .device = "cpu", .abort = &abort};
    atomic_store(&abort, 0);
    ok(mgl_paired_bench_open(&options, &stopped, &err), err);
    ok(mgl_paired_bench_set(stopped, MGL_INCUMBENT, one_queue(), &facts, &err), err);
    atomic_store(&abort, 1);
    ck_assert_int_eq(mgl_paired_bench_run(stopped, MGL_INCUMBENT, &load, NULL, &seconds, &err),
                     MGL_INTERRUPTED);
    mgl_paired_bench_close(stopped);
}
END_TEST

START_TEST(a_cpu_says_what_it_is)
{
    mgl_error err;
    mgl_paired_bench_device device;
    mgl_paired_bench_clocks clocks;
    ok(mgl_paired_bench_get_device(paired_bench, &device, &err), err);
    mgl_paired_bench_look(paired_bench, &clocks);
    ck_assert_str_eq(device.name, "cpu");
    ck_assert_uint_gt(device.memory_total, 0);
    ck_assert_uint_eq(clocks.sm_mhz, 0);
    ck_assert_int_eq(clocks.processes, -1);
}
END_TEST

/* Every allocation of a paired benchmark fails once: no leak, no crash, and an error each time. */
START_TEST(a_lack_of_memory_is_an_error)
{
    mgl_paired_bench_options options = {.config = small, .device = "cpu"};
    mgl_status status = MGL_NO_MEMORY;
    for (uint64_t n = 1; status; n++) {
        mgl_error err;
        mgl_paired_bench *of = NULL;
        mgl_paired_bench_facts facts;
        double seconds;
        int32_t tokens[BATCH * TOKENS];
        reference wanted;
        int last = TOKENS - 1;
        mgl_paired_bench_reference how = {wanted.largest, wanted.chosen, wanted.norms, &last, 1,
                                          wanted.logits,  NULL};
        mgl_program *program = one_queue(), *next = one_queue();
        mgl_alloc_fail_at(n, false);
        status = mgl_paired_bench_open(&options, &of, &err);
        if (status)
            mgl_program_free(program);
        else
            status = mgl_paired_bench_set(of, MGL_INCUMBENT, program, &facts, &err);
        if (!status)
            status = mgl_paired_bench_set(of, MGL_INCUMBENT, next, &facts, &err);
        else
            mgl_program_free(next);
        if (!status)
            status = mgl_paired_bench_run(of, MGL_INCUMBENT, &load, tokens, &seconds, &err);
        if (!status)
            status = mgl_paired_bench_refer(of, &load, tokens, &how, &err);
        mgl_paired_bench_close(of);
        mgl_alloc_fail_at(0, false);
        ck_assert_msg(!status || status == MGL_NO_MEMORY, "allocation %d: %s", (int)n, err.message);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("paired_bench");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, open_paired_bench, close_paired_bench);
    tcase_add_test(tests, two_programs_of_a_model_make_the_same);
    tcase_add_test(tests, a_second_launch_is_the_same_bit_for_bit);
    tcase_add_test(tests, a_seed_that_comes_back_gives_the_same);
    tcase_add_test(tests, a_context_that_comes_back_gives_the_same);
    tcase_add_test(tests, each_side_gets_its_weights_when_it_runs);
    tcase_add_loop_test(tests, poison_changes_no_bit, 0, PROGRAMS);
    tcase_add_loop_test(tests, poison_changes_no_bit_of_a_larger_model, 0, 2);
    tcase_add_loop_test(tests, the_reference_agrees, 0, PROGRAMS);
    tcase_add_test(tests, the_reference_agrees_with_a_second_list);
    tcase_add_loop_test(tests, the_reference_agrees_with_a_family, 0, 2 * FAMILIES);
    tcase_add_loop_test(tests, a_program_without_the_family_is_rejected, 0, FAMILIES);
    tcase_add_test(tests, a_shorter_run_shows_an_earlier_step);
    tcase_add_test(tests, the_reference_gives_the_steps_that_were_asked);
    tcase_add_test(tests, a_program_is_exchanged_for_another);
    tcase_add_test(tests, a_program_of_other_formats_gets_a_machine);
    tcase_add_test(tests, a_machine_that_is_left_is_used_again);
    tcase_add_test(tests, wrong_weights_are_noticed);
    tcase_add_test(tests, altered_tokens_are_noticed);
    tcase_add_test(tests, a_program_of_another_model_is_rejected);
    tcase_add_test(tests, an_empty_side_does_not_run);
    tcase_add_loop_test(tests, a_workload_that_has_no_room_is_rejected, 0, 2);
    tcase_add_test(tests, what_is_promoted_runs_as_the_incumbent);
    tcase_add_test(tests, what_was_dropped_is_gone);
    tcase_add_test(tests, an_abort_ends_a_paired_bench);
    tcase_add_test(tests, a_cpu_says_what_it_is);
    tcase_add_test(tests, a_lack_of_memory_is_an_error);
    Suite *suite = suite_create("paired_bench");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
