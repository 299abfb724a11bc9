/*
 * Tests of the correctness check of micro-kernels. In each harness program, for each unit, the
 * result of the CPU machine replaces the candidate's result, unchanged or with a damage that a
 * dishonest candidate might cause. The unchanged result must pass, and each damage must get its
 * verdict.
 *
 *     test_kernel_correctness          with dense values
 *     test_kernel_correctness kinds    with values of each kind
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/kernels/trial/correctness.h"
#include "autotune/kernels/trial/harness.h"
#include "autotune/runner/runner_state.h"
#include "base/memory.h"
#include "eval/paired_bench.h"
#include "vm/cuda/cuda.h"
#include "vm/cuda/encode.h"

#define ok(call) ck_assert_msg((call) == MGL_OK, "%s: %s", err.where, err.message)

enum { POISON_A = 0, POISON_B = 1 };

static mgl_error err;
static mgl_harness_set set;
static mgl_paired_bench *paired_bench;
static mgl_correctness_level levels[128];
static const mgl_kernel_unit *unit;
static size_t bytes;
static unsigned char *memories[2], *damaged[3]; /* correct results for two poison patterns; results
                                                   of a candidate */
static int32_t tokens[MGL_MAX_ROWS], other_tokens[MGL_MAX_ROWS];
static unsigned char constants[MGL_SHA256_BYTES];
static mgl_correctness_result found;
static mgl_trial_verdict verdict;
static int kinds; /* kinds of values, from MGL_SYNTHETIC_DENSE on */

static const mgl_program *program(void)
{
    return set.program.programs[0];
}

static void open_harness(int index)
{
    const mgl_target target = {.arch = "sm_90a", .queues = 3, .shared_bytes = 232448};
    mgl_paired_bench_facts facts;
    mgl_text text = {0};
    mgl_program *copy;
    ok(mgl_harness_open(mgl_harness_get(index), &target, &set, &err));
    const mgl_paired_bench_options options = {.config = set.subject.config, .device = "cpu"};
    ok(mgl_paired_bench_open(&options, &paired_bench, &err));
    mgl_schedule_print(program(), &text);
    ok(mgl_schedule_parse(text.bytes, text.length, "harness", &copy, &err));
    mgl_text_clear(&text);
    ok(mgl_paired_bench_set(paired_bench, MGL_INCUMBENT, copy, &facts, &err));
    bytes = mgl_paired_bench_side_bytes(paired_bench, MGL_INCUMBENT);
    for (int i = 0; i < 2; i++)
        memories[i] = mgl_alloc(bytes);
    for (int i = 0; i < 3; i++)
        damaged[i] = mgl_alloc(bytes);
}

static void close_harness(void)
{
    for (int i = 0; i < 2; i++)
        mgl_free(memories[i]);
    for (int i = 0; i < 3; i++)
        mgl_free(damaged[i]);
    mgl_paired_bench_close(paired_bench);
    mgl_harness_clear(&set);
}

/* Two launches, one with each poison pattern. */
static void look(int workload, mgl_synthetic_kind kind)
{
    unsigned char none[MGL_SHA256_BYTES];
    double seconds;
    const mgl_workload *w = &set.subject.workloads.list[workload];
    const mgl_paired_bench_load load = {.batch = w->batch,
                                        .context = w->context,
                                        .tokens = 1,
                                        .seed = 77,
                                        .kind = kind,
                                        .poison = true};
    for (int i = 0; i < 2; i++) {
        ok(mgl_paired_bench_run(paired_bench, MGL_INCUMBENT, &load, tokens, &seconds, &err));
        ok(mgl_paired_bench_get_memory(paired_bench, MGL_INCUMBENT, memories[i], none, &err));
    }
    memcpy(other_tokens, tokens, sizeof tokens);
}

/* Starts from three correct launches of the candidate, with the first, the second and the first
 * poison pattern. */
static void begin(void)
{
    for (int i = 0; i < 3; i++)
        memcpy(damaged[i], memories[i % 2], bytes);
}

static mgl_outcome compare(mgl_synthetic_kind kind)
{
    const mgl_correctness correctness = {.program = program(),
                                         .unit = unit,
                                         .levels = levels,
                                         .tolerance_f32 = 1e-5,
                                         .tolerance_bf16 = 0.02,
                                         .tolerance_f16 = 3e-3,
                                         .exact_tokens = kind == MGL_SYNTHETIC_ZERO};
    mgl_correctness_shots shots = {.batch = 1, .reference = {memories[0], constants, tokens}};
    for (int i = 0; i < 2; i++)
        shots.incumbent[i] = (mgl_correctness_shot){memories[i], constants, tokens};
    for (int i = 0; i < 3; i++)
        shots.candidate[i] = (mgl_correctness_shot){damaged[i], constants, other_tokens};
    ok(mgl_correctness_compare(&correctness, &shots, &found, &verdict, &err));
    return verdict.outcome;
}

/* ---- damages --------------------------------------------------------------------------------- */

/* The offset of a buffer in the compared memory. */
static size_t place_of(int buffer)
{
    size_t at = 0;
    for (int b = 0; b < buffer; b++)
        if (mgl_paired_bench_keeps(&program()->buffers[b]))
            at += mgl_vm_buffer_bytes(&program()->buffers[b]);
    return at;
}

/* A floating-point buffer that tasks of the unit write; -1: none. */
static int find_output(void)
{
    const mgl_program *p = program();
    for (int t = 0; t < p->task_count; t++)
        for (int i = p->tasks[t].out.first; i < p->tasks[t].out.first + p->tasks[t].out.count;
             i++) {
            const mgl_buffer *b = &p->buffers[p->regions[i].buffer];
            if (mgl_correctness_is_task(&p->tasks[t], unit) && b->dtype != MGL_I32 &&
                b->space != MGL_SPACE_KV && strcmp(b->name, "best_value") != 0)
                return p->regions[i].buffer;
        }
    return -1;
}

static bool is_written(const mgl_buffer *b, size_t at, size_t size)
{
    static const unsigned char ones[4] = {255, 255, 255, 255};
    return !memcmp(memories[0] + at, memories[1] + at, size) &&
           !(b->sets > 1 && !memcmp(memories[0] + at, ones, size));
}

typedef enum damage {
    ZEROS,
    CONSTANT,
    SCALED,
    HALF,
    UNWRITTEN,
    DIFFERS,
    NO_NUMBER,
    DAMAGES
} damage;

static float damage_value(damage kind, float value)
{
    return kind == ZEROS ? 0 : kind == CONSTANT ? 1 : kind == SCALED ? 1.02F * value : value;
}

/* Damages all written elements, or every second. Returns whether one of them is not zero. */
static bool damage_output(int buffer, damage kind)
{
    const mgl_buffer *b = &program()->buffers[buffer];
    const size_t size = mgl_dtype_size(b->dtype), count = mgl_vm_buffer_bytes(b) / size;
    bool any = false;
    size_t seen = 0;
    begin();
    for (size_t i = 0; i < count; i++) {
        const size_t at = place_of(buffer) + i * size;
        float value, nan = (float)(0.0 / 0.0);
        if (!is_written(b, at, size))
            continue;
        mgl_convert(&value, MGL_F32, memories[0] + at, b->dtype, 1);
        if (!isfinite(value))
            continue;
        any |= value != 0;
        if (kind == HALF && ++seen % 2 == 0)
            continue;
        value = damage_value(kind, value);
        for (int k = 0; k < 3; k++)
            if (kind == UNWRITTEN || kind == HALF)
                memset(damaged[k] + at, b->sets > 1 ? 255 : k % 2 ? 0xA5 : 0x5A, size);
            else if (kind == DIFFERS && k == 2)
                damaged[k][at] ^= 1;
            else if (kind == NO_NUMBER)
                mgl_convert(damaged[k] + at, b->dtype, &nan, MGL_F32, 1);
            else if (kind != DIFFERS)
                mgl_convert(damaged[k] + at, b->dtype, &value, MGL_F32, 1);
    }
    return any;
}

static void expect(int buffer, damage kind, mgl_synthetic_kind values, mgl_outcome wanted)
{
    if (!damage_output(buffer, kind) && (kind == ZEROS || kind == SCALED))
        return; /* that is right */
    const mgl_outcome outcome = compare(values);
    ck_assert_msg(outcome == wanted, "%s in \"%s\", %s values, damage %d: %s: %s", unit->name,
                  set.of->name, mgl_synthetic_kind_name(values), (int)kind,
                  mgl_outcome_name(outcome), verdict.diagnostic);
}

static void check_unit_correctness(mgl_synthetic_kind kind)
{
    static const mgl_outcome wanted[DAMAGES] = {
        [ZEROS] = MGL_OUTCOME_MISMATCH,      [CONSTANT] = MGL_OUTCOME_MISMATCH,
        [SCALED] = MGL_OUTCOME_MISMATCH,     [HALF] = MGL_OUTCOME_UNWRITTEN,
        [UNWRITTEN] = MGL_OUTCOME_UNWRITTEN, [DIFFERS] = MGL_OUTCOME_NONDETERMINISTIC,
        [NO_NUMBER] = MGL_OUTCOME_NONFINITE};
    const int buffer = find_output();
    mgl_correctness_levels(program(), unit, levels);
    begin();
    ck_assert_msg(compare(kind) == MGL_OUTCOME_OK, "%s in \"%s\": %s", unit->name, set.of->name,
                  verdict.diagnostic);
    ck_assert_int_ge(buffer, 0);
    const int last = kind == MGL_SYNTHETIC_DENSE ? DAMAGES : UNWRITTEN;
    for (int d = 0; d < last; d++)
        expect(buffer, (damage)d, kind, wanted[d]);
}

START_TEST(right_results_pass_and_damaged_ones_do_not)
{
    int units = 0;
    open_harness(_i);
    for (int k = 0; k < kinds; k++) {
        look(0, (mgl_synthetic_kind)k);
        for (int u = 0; u < mgl_kernel_unit_count(); u++) {
            unit = mgl_kernel_unit_get(u);
            if (!mgl_harness_runs(&set, unit))
                continue;
            check_unit_correctness((mgl_synthetic_kind)k);
            units++;
        }
    }
    ck_assert_int_gt(units, 0);
    close_harness();
}
END_TEST

/* Whether any harness program runs the unit, with as many queues as GPUs have. */
START_TEST(each_unit_has_a_harness)
{
    const mgl_target target = {.arch = "sm_90a", .queues = 132, .shared_bytes = 232448};
    for (int u = 0; u < mgl_kernel_unit_count(); u++) {
        bool has = false;
        unit = mgl_kernel_unit_get(u);
        for (int i = 0; i < mgl_harness_count() && !has; i++) {
            ok(mgl_harness_open(mgl_harness_get(i), &target, &set, &err));
            has = mgl_harness_runs(&set, unit);
            mgl_harness_clear(&set);
        }
        ck_assert_msg(has, "%s", unit->name);
    }
}
END_TEST

/* Features of a program that change its compiled kernel. */
typedef enum feature { BIASES, NORMS, F16, LISTS, PENALTIES, FEATURES } feature;

static bool has_feature(feature f)
{
    switch (f) {
    case BIASES:
        return mgl_cuda_has_biases(program());
    case NORMS:
        return mgl_cuda_has_norms(program());
    case F16:
        return program()->kv_dtype == MGL_F16;
    case LISTS:
        return program()->second != NULL;
    default:
        return mgl_program_has_penalties(program());
    }
}

/* Checks that the program runs the variant `general` of each op that has it. */
static void check_variants(void)
{
    static const char *const units[] = {"norm_linear.general", "linear_add.general",
                                        "norm_swiglu.general", "head.general", "attend.general"};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        ck_assert_msg(mgl_harness_runs(&set, mgl_kernel_unit_find(units[i])), "%s: no task of %s",
                      set.of->name, units[i]);
}

/* Each unit is checked in a program with each feature. The kernel of that check contains the
 * candidate's text, but not a promoted text. */
START_TEST(each_unit_is_checked_in_each_kind_of_program)
{
    const mgl_target target = {.arch = "sm_90a", .queues = 132, .shared_bytes = 232448};
    const mgl_cuda_source text = {"instructions/merge/merge.cuh", (const unsigned char *)"text"};
    const mgl_cuda_source with_comment = {text.name, (const unsigned char *)"/* a\n */ text // b"};
    int units[FEATURES] = {0};
    for (int i = 0; i < mgl_harness_count(); i++) {
        if (!mgl_harness_get(i)->kind)
            continue;
        char built[MGL_SHA256_HEX], own[MGL_SHA256_HEX], promoted[MGL_SHA256_HEX];
        char reworded[MGL_SHA256_HEX];
        ok(mgl_harness_open(mgl_harness_get(i), &target, &set, &err));
        mgl_candidate candidate = set.program;
        mgl_runner_kernel_key(&candidate, 0, "sm_90a", built);
        candidate.sources = &text;
        candidate.source_count = 1;
        mgl_runner_kernel_key(&candidate, 0, "sm_90a", promoted);
        candidate.everywhere = true;
        mgl_runner_kernel_key(&candidate, 0, "sm_90a", own);
        candidate.sources = &with_comment;
        mgl_runner_kernel_key(&candidate, 0, "sm_90a", reworded);
        ck_assert_str_ne(own, built);
        ck_assert_str_eq(own, reworded);
        ck_assert_int_eq(!strcmp(promoted, built), !mgl_cuda_takes_sources(program()));
        check_variants();
        for (int u = 0; u < mgl_kernel_unit_count(); u++)
            for (int f = 0; f < FEATURES; f++)
                units[f] +=
                    has_feature((feature)f) && mgl_harness_may_run(&set, mgl_kernel_unit_get(u));
        mgl_harness_clear(&set);
    }
    for (int f = 0; f < FEATURES; f++)
        ck_assert_int_eq(units[f], mgl_kernel_unit_count());
}
END_TEST

/* No task of the program names the unit, but its `by_rows` variants run the unit in epochs of one
 * row. Replies of a checkpoint test such units. */
START_TEST(by_rows_may_run_the_unit_of_a_row_range)
{
    static const mgl_workloads workloads = {.list = {{1, 0}, {8, 0}}, .count = 2};
    const mgl_target target = {.arch = "sm_90a", .queues = 132, .shared_bytes = 232448};
    mgl_config config;
    ok(mgl_synthetic_read_config(MGL_SOURCE_DIR "/tests/models/tales-5m", &config, &err));
    ok(mgl_harness_open_config(&config, &workloads, 1024, &target, &set, &err));
    unit = mgl_kernel_unit_find("norm_linear.skinny");
    ck_assert(!mgl_harness_runs(&set, unit));
    ck_assert(mgl_harness_may_run(&set, unit));
    mgl_harness_clear(&set);
}
END_TEST

/* ---- damages outside the op's outputs -------------------------------------------------------- */

static void open_merge(void)
{
    open_harness(1);
    unit = mgl_kernel_unit_find("merge");
    mgl_correctness_levels(program(), unit, levels);
    look(0, MGL_SYNTHETIC_DENSE);
    begin();
}

static int find_buffer(const char *name)
{
    for (int b = 0; b < program()->buffer_count; b++)
        if (!strcmp(program()->buffers[b].name, name))
            return b;
    ck_abort_msg("no buffer %s", name);
    return -1;
}

START_TEST(an_input_that_changed_is_told)
{
    open_merge();
    for (int k = 0; k < 3; k++)
        damaged[k][place_of(find_buffer("l0.part"))] ^= 1;
    ck_assert_int_eq(compare(MGL_SYNTHETIC_DENSE), MGL_OUTCOME_INPUT_MUTATED);
    begin();
    for (int k = 0; k < 3; k++)
        damaged[k][place_of(find_buffer("l0.qkv"))] ^= 1;
    ck_assert_int_eq(compare(MGL_SYNTHETIC_DENSE), MGL_OUTCOME_OOB_WRITE);
    close_harness();
}
END_TEST

START_TEST(a_write_elsewhere_is_told)
{
    open_merge();
    const int buffer = find_buffer("l0.att");
    static const float one = 1;
    const size_t next = mgl_buffer_bytes(&program()->buffers[buffer]); /* the next epoch's set */
    for (int k = 0; k < 3; k++)
        memcpy(damaged[k] + place_of(buffer) + next + 64, &one, sizeof one);
    ck_assert_int_eq(compare(MGL_SYNTHETIC_DENSE), MGL_OUTCOME_OOB_WRITE);
    close_harness();
}
END_TEST

START_TEST(changed_weights_are_told)
{
    unsigned char others[MGL_SHA256_BYTES] = {1};
    open_merge();
    const mgl_correctness correctness = {.program = program(), .unit = unit, .levels = levels};
    mgl_correctness_shots shots = {.batch = 1, .reference = {memories[0], constants, tokens}};
    for (int i = 0; i < 2; i++)
        shots.incumbent[i] = (mgl_correctness_shot){memories[i], constants, tokens};
    for (int i = 0; i < 3; i++)
        shots.candidate[i] =
            (mgl_correctness_shot){damaged[i], i == 2 ? others : constants, tokens};
    ok(mgl_correctness_compare(&correctness, &shots, &found, &verdict, &err));
    ck_assert_int_eq(verdict.outcome, MGL_OUTCOME_INPUT_MUTATED);
    close_harness();
}
END_TEST

START_TEST(equal_logits_have_one_token)
{
    open_merge();
    other_tokens[0]++;
    ck_assert_int_eq(compare(MGL_SYNTHETIC_DENSE), MGL_OUTCOME_OK);
    ck_assert_int_eq(compare(MGL_SYNTHETIC_ZERO), MGL_OUTCOME_SEMANTIC);
    close_harness();
}
END_TEST

/* Errors within the tolerance, but with the same sign everywhere. */
START_TEST(a_bias_is_found)
{
    open_merge();
    const int buffer = find_buffer("l0.att");
    const mgl_buffer *b = &program()->buffers[buffer];
    const size_t count = mgl_vm_buffer_bytes(b) / sizeof(float);
    for (size_t i = 0; i < count; i++) {
        const size_t at = place_of(buffer) + i * sizeof(float);
        float value;
        if (!is_written(b, at, sizeof value))
            continue;
        memcpy(&value, memories[0] + at, sizeof value);
        value *= 1.000004F;
        for (int k = 0; k < 3; k++)
            memcpy(damaged[k] + at, &value, sizeof value);
    }
    ck_assert_int_eq(compare(MGL_SYNTHETIC_DENSE), MGL_OUTCOME_MISMATCH);
    ck_assert_msg(strstr(verdict.diagnostic, "mean signed error") != NULL, "%s",
                  verdict.diagnostic);
    close_harness();
}
END_TEST

int main(int argc, char **argv)
{
    kinds = argc > 1 && !strcmp(argv[1], "kinds") ? MGL_SYNTHETIC_KIND_COUNT : 1;
    Suite *suite = suite_create("kernel_correctness");
    TCase *all = tcase_create("all");
    tcase_set_timeout(all, 110);
    tcase_add_loop_test(all, right_results_pass_and_damaged_ones_do_not, 0, mgl_harness_count());
    tcase_add_test(all, each_unit_has_a_harness);
    tcase_add_test(all, each_unit_is_checked_in_each_kind_of_program);
    tcase_add_test(all, by_rows_may_run_the_unit_of_a_row_range);
    tcase_add_test(all, an_input_that_changed_is_told);
    tcase_add_test(all, a_write_elsewhere_is_told);
    tcase_add_test(all, changed_weights_are_told);
    tcase_add_test(all, equal_logits_have_one_token);
    tcase_add_test(all, a_bias_is_found);
    suite_add_tcase(suite, all);
    SRunner *suite_runner = srunner_create(suite);
    srunner_run_all(suite_runner, CK_NORMAL);
    int failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
