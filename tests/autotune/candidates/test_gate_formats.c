/*
 * Tests of the gates with quantized weights: every draw of the default space has an outcome,
 * programs and predictions know the formats, and NVRTC compiles a candidate.
 *
 *     test_gate_formats            no compiler
 *     test_gate_formats compile    the compiler; no device is needed
 */
#include "tests/autotune/search/subject.h"

#include "autotune/store/shape.h"
#include "base/memory.h"
#include "eval/synthetic.h"
#include "tests/sanitized.h"
#include "vm/cuda/cuda.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SKIP = 77, DRAWS = BY_SANITIZER(60, 12) };

static const struct {
    mgl_weight_format layers, head;
} formats[] = {
    {{MGL_CODE_INT4, MGL_F16, 64, 1, false}, {MGL_CODE_INT8, MGL_F32, 0, 1, false}},
    {{MGL_CODE_INT4, MGL_BF16, 32, 1, true}, {0}},
    {{MGL_CODE_INT8, MGL_F32, 0, 1, false}, {0}},
    {{MGL_CODE_E4M3, MGL_F32, 128, 128, false}, {0}},
};
enum { FORMATS = sizeof formats / sizeof *formats };

/* The small subject with these formats. */
static void make_subject(const char *workloads, int format, mgl_subject *out)
{
    mgl_error err = {0};
    subject_make(workloads, out);
    mgl_subject_close(out);
    mgl_synthetic_choose_formats(&out->config, formats[format].layers, formats[format].head);
    ck_assert_msg(mgl_subject_open(out, &err) == MGL_OK, "%s: %s", err.where, err.message);
}

static void pass(const mgl_subject *subject, const mgl_schedule_config *config, mgl_candidate *out)
{
    mgl_error err = {0};
    const mgl_proposal proposal = {.config = *config};
    ck_assert_msg(mgl_gate_pass(subject, &proposal, NULL, out, &err) == MGL_OK, "%s: %s", err.where,
                  err.message);
}

/* The planner's graph has the formats of the config. */
START_TEST(a_subject_has_its_formats)
{
    mgl_subject subject;
    mgl_weight_format layers, head;
    make_subject("ctx=0;batch=1", _i, &subject);
    ck_assert_int_eq(mgl_graph_find_formats(subject.graph, &layers, &head), -1);
    ck_assert(mgl_weight_format_equal(layers, formats[_i].layers));
    ck_assert(mgl_weight_format_equal(head, formats[_i].head));
    subject_free(&subject);
}
END_TEST

/* Fewer bytes are predicted to take less time, and programs of other formats are other programs. */
START_TEST(candidates_know_their_formats)
{
    mgl_subject plain, subject;
    mgl_candidate all, fewer;
    subject_make("ctx=0;batch=1", &plain);
    make_subject("ctx=0;batch=1", _i, &subject);
    pass(&plain, &plain.start, &all);
    pass(&subject, &subject.start, &fewer);
    ck_assert_int_eq(all.verdict.outcome, MGL_OUTCOME_UNMEASURED);
    ck_assert_msg(fewer.verdict.outcome == MGL_OUTCOME_UNMEASURED, "%s", fewer.verdict.diagnostic);
    ck_assert_str_ne(all.digest, fewer.digest);
    ck_assert_double_gt(fewer.predicted, 0);
    mgl_cost cost[2];
    const mgl_cost_load load = {1, 16, 32};
    mgl_error err = {0};
    ck_assert_int_eq(mgl_schedule_cost(all.programs[0], &plain.costs, &load, &cost[0], &err), 0);
    ck_assert_int_eq(mgl_schedule_cost(fewer.programs[0], &plain.costs, &load, &cost[1], &err), 0);
    ck_assert_double_lt(cost[1].tape_bytes, cost[0].tape_bytes);
    ck_assert_double_lt(cost[1].floor_us, cost[0].floor_us);
    mgl_candidate_clear(&all);
    mgl_candidate_clear(&fewer);
    subject_free(&plain);
    subject_free(&subject);
}
END_TEST

/* A linear congruential generator: the same draws in every run. */
static unsigned draw(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 16;
}

/* Changes about a third of the knobs to a value of the space. */
static mgl_schedule_config draw_config(const mgl_subject *subject, unsigned *state)
{
    mgl_schedule_config config = subject->start;
    for (int k = 0; k < subject->space.count; k++) {
        const mgl_knob *knob = &subject->space.knobs[k];
        const unsigned chosen = draw(state) % (unsigned)knob->count;
        if (draw(state) % 3 == 0)
            mgl_knob_set(&config, mgl_knob_find(knob->name), knob->values[chosen]);
    }
    return config;
}

/* Every config of the space is accepted, or rejected before anything is built. 17 sequences need a
 * second list, which may have no kernel variant for the weights. */
START_TEST(every_draw_has_an_outcome)
{
    static const char *const workloads[] = {"ctx=0;batch=1", "ctx=0;batch=17"};
    unsigned state = (unsigned)_i;
    mgl_subject subject;
    int accepted = 0;
    char last[sizeof(((mgl_trial_verdict *)0)->diagnostic)] = "";
    make_subject(workloads[_i / FORMATS], _i % FORMATS, &subject);
    if (_i / FORMATS) {
        subject.start.rows = 4;
        subject.start.second_rows = 32;
    }
    for (int i = 0; i < DRAWS; i++) {
        mgl_candidate c;
        const mgl_schedule_config config = draw_config(&subject, &state);
        pass(&subject, &config, &c);
        accepted += c.verdict.outcome == MGL_OUTCOME_UNMEASURED;
        memcpy(last, c.verdict.diagnostic, sizeof last);
        ck_assert_msg(c.verdict.outcome == MGL_OUTCOME_UNMEASURED ||
                          c.verdict.outcome == MGL_OUTCOME_INVALID_CONFIG ||
                          c.verdict.outcome == MGL_OUTCOME_REJECTED ||
                          c.verdict.outcome == MGL_OUTCOME_RESOURCE_SHARED ||
                          c.verdict.outcome == MGL_OUTCOME_VM_RESOURCES,
                      "%s: %s", mgl_outcome_name(c.verdict.outcome), c.verdict.diagnostic);
        ck_assert(c.verdict.outcome == MGL_OUTCOME_UNMEASURED || c.verdict.diagnostic[0]);
        mgl_candidate_clear(&c);
    }
    ck_assert_msg(accepted > 0 || _i >= FORMATS, "%s", last);
    subject_free(&subject);
}
END_TEST

/* ---- with a compiler ------------------------------------------------------------------------- */

START_TEST(a_candidate_compiles)
{
    mgl_subject subject;
    mgl_candidate c;
    mgl_error err = {0};
    mgl_cuda_image image;
    make_subject("ctx=0;batch=1", 0, &subject);
    mgl_schedule_config config = subject.start;
    mgl_knob_set(&config, mgl_knob_find("page_bytes"), 8192);
    pass(&subject, &config, &c);
    ck_assert_msg(c.verdict.outcome == MGL_OUTCOME_UNMEASURED, "%s", c.verdict.diagnostic);
    ck_assert_msg(mgl_cuda_compile(c.programs[0], subject.target.arch, 0, NULL, &image, &err) ==
                      MGL_OK,
                  "%s: %s", err.where, err.message);
    ck_assert(!memcmp(image.bytes, "\177ELF", 4));
    mgl_cuda_image_clear(&image);
    mgl_candidate_clear(&c);
    subject_free(&subject);
}
END_TEST

static bool has_compiler(void)
{
    mgl_cuda_probe probe;
    mgl_cuda_get_probe(&probe);
    if (!probe.nvrtc)
        printf("SKIPPED gate_formats: nothing was compiled: %s\n", probe.nvrtc_reason);
    return probe.nvrtc;
}

int main(int argc, char **argv)
{
    const bool compiles = argc > 1 && !strcmp(argv[1], "compile");
    if (compiles && !has_compiler())
        return SKIP;
    TCase *tests = tcase_create("gate_formats");
    tcase_set_timeout(tests, 300);
    if (compiles) {
        tcase_add_test(tests, a_candidate_compiles);
    } else {
        tcase_add_loop_test(tests, a_subject_has_its_formats, 0, FORMATS);
        tcase_add_loop_test(tests, candidates_know_their_formats, 0, FORMATS);
        tcase_add_loop_test(tests, every_draw_has_an_outcome, 0, 2 * FORMATS);
    }
    Suite *suite = suite_create("gate_formats");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
