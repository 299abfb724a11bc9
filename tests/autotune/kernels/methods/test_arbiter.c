/*
 * Tests of the arbiter's decision table, of profiles read from CSV files, and of classes and hints.
 */
#include "autotune/kernels/methods/arbiter.h"
#include "autotune/kernels/methods/profile.h"
#include "base/file.h"
#include "base/memory.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the arbiter ----------------------------------------------------------------------------- */

static mgl_trial_verdict verdict(mgl_outcome outcome, double gain, double lo)
{
    mgl_trial_verdict v = {.outcome = outcome};
    v.facts.gain = gain;
    v.facts.gain_lo = lo;
    v.facts.gain_hi = 2 * gain - lo;
    return v;
}

#define OUT(name) MGL_OUTCOME_##name

static const struct {
    const char *what;
    mgl_outcome outcome;
    double gain, lo;
    mgl_decision decision;
    bool kept, stand;
} table[] = {
    {"1 % beyond doubt", OUT(OK), 0.01, 0.001, MGL_DECISION_ACCEPT, true, true},
    {"0.99 %", OUT(OK), 0.0099, 0.005, MGL_DECISION_CONTINUE, false, true},
    {"1 % with an interval over zero", OUT(OK), 0.01, -0.001, MGL_DECISION_CONTINUE, false, true},
    {"a lower end of zero", OUT(OK), 0.02, 0, MGL_DECISION_CONTINUE, false, true},
    {"5 %", OUT(OK), 0.05, 0.04, MGL_DECISION_ACCEPT, true, true},
    {"a loss", OUT(REGRESSION), -0.05, -0.06, MGL_DECISION_CONTINUE, false, true},
    {"no gain", OUT(NO_GAIN), 0.02, 0.01, MGL_DECISION_CONTINUE, false, true},
    {"faster than its bytes", OUT(SUBFLOOR), 0.5, 0.4, MGL_DECISION_CONTINUE, false, false},
    {"twice as fast", OUT(SUSPICIOUS), 1.5, 1.4, MGL_DECISION_CONTINUE, false, false},
    {"wrong", OUT(MISMATCH), 0.5, 0.4, MGL_DECISION_CONTINUE, false, false},
    {"refused", OUT(COMPILE_SYNTAX), 0.5, 0.4, MGL_DECISION_CONTINUE, false, false},
    {"unmeasured", OUT(UNMEASURED), 0.5, 0.4, MGL_DECISION_CONTINUE, false, true},
    {"no number", OUT(OK), NAN, 0.1, MGL_DECISION_CONTINUE, false, true},
    {"no interval", OUT(OK), 0.1, NAN, MGL_DECISION_CONTINUE, false, true},
    {"without end", OUT(OK), INFINITY, INFINITY, MGL_DECISION_CONTINUE, false, true},
};

START_TEST(decides_by_the_table)
{
    mgl_arbiter a = {0};
    mgl_trial_verdict v = verdict(table[_i].outcome, table[_i].gain, table[_i].lo);
    mgl_ruling r = mgl_arbiter_decide(&a, &v);
    ck_assert_msg(r.decision == table[_i].decision, "%s: %s", table[_i].what,
                  mgl_decision_name(r.decision));
    ck_assert_msg(r.kept == table[_i].kept, "%s", table[_i].what);
    ck_assert_msg(r.stand == table[_i].stand, "%s", table[_i].what);
}
END_TEST

START_TEST(stands_three_steps_deep_at_most)
{
    mgl_arbiter a = {.rounds = 100};
    mgl_trial_verdict v = verdict(OUT(NO_GAIN), 0, -0.01);
    for (int i = 0; i < 3; i++)
        ck_assert(mgl_arbiter_decide(&a, &v).stand);
    ck_assert(!mgl_arbiter_decide(&a, &v).stand);
    ck_assert(mgl_arbiter_decide(&a, &v).stand);
}
END_TEST

START_TEST(an_acceptance_begins_anew)
{
    mgl_arbiter a = {.rounds = 100};
    mgl_trial_verdict no = verdict(OUT(NO_GAIN), 0, -0.01), yes = verdict(OUT(OK), 0.05, 0.04);
    for (int i = 0; i < 4; i++)
        mgl_arbiter_decide(&a, &no);
    ck_assert_int_eq(mgl_arbiter_decide(&a, &yes).decision, MGL_DECISION_ACCEPT);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(mgl_arbiter_decide(&a, &no).decision, MGL_DECISION_CONTINUE);
    mgl_ruling r = mgl_arbiter_decide(&a, &no);
    ck_assert_int_eq(r.decision, MGL_DECISION_FINISH);
    ck_assert_int_eq(r.finish, MGL_FINISH_PLATEAU);
    ck_assert_int_eq(a.accepted, 1);
}
END_TEST

START_TEST(finishes_after_eight_rounds)
{
    mgl_arbiter a = {0};
    mgl_trial_verdict yes = verdict(OUT(OK), 0.05, 0.04);
    for (int i = 0; i < 7; i++)
        ck_assert_int_eq(mgl_arbiter_decide(&a, &yes).decision, MGL_DECISION_ACCEPT);
    mgl_ruling r = mgl_arbiter_decide(&a, &yes);
    ck_assert_int_eq(r.finish, MGL_FINISH_ROUNDS);
    ck_assert(r.kept);
}
END_TEST

static const struct {
    mgl_outcome outcome;
    double floor, time;
    mgl_finish finish;
} floors[] = {{OUT(OK), 90, 100, MGL_FINISH_FLOOR},
              {OUT(OK), 89.9, 100, MGL_FINISH_NOTHING},
              {OUT(NO_GAIN), 95, 100, MGL_FINISH_FLOOR},
              {OUT(SUBFLOOR), 101, 100, 0},
              {OUT(MISMATCH), 95, 100, 0},
              {OUT(OK), NAN, 100, 0},
              {OUT(OK), 95, NAN, 0},
              {OUT(OK), 95, 0, 0},
              {OUT(UNMEASURED), 95, 100, 0}};

START_TEST(finishes_near_the_floor)
{
    mgl_arbiter a = {0};
    mgl_trial_verdict v = verdict(floors[_i].outcome, 0.05, 0.04);
    v.facts.floor_us = floors[_i].floor;
    v.facts.time_us = floors[_i].time;
    ck_assert_int_eq(mgl_arbiter_decide(&a, &v).finish, floors[_i].finish);
}
END_TEST

/* ---- profiles -------------------------------------------------------------------------------- */

static mgl_profile read_csv(const char *name, const char *kernel, int *found)
{
    mgl_text path = {0};
    char *text = NULL;
    size_t length = 0;
    mgl_error err = {0};
    mgl_profile p = mgl_profile_unknown();
    mgl_text_format(&path, "%s/tests/autotune/kernels/methods/ncu/%s.csv", MGL_SOURCE_DIR, name);
    ck_assert_int_eq(mgl_file_read(path.bytes, 1 << 20, &text, &length, NULL), MGL_OK);
    ck_assert_msg(mgl_profile_read_csv(text, length, kernel, &p, found, &err) == MGL_OK, "%s",
                  err.message);
    mgl_free(text);
    mgl_text_clear(&path);
    return p;
}

START_TEST(a_row_a_metric)
{
    int found;
    mgl_profile p = read_csv("long", "norm_linear", &found);
    ck_assert_int_eq(found, 4);
    ck_assert_double_eq_tol(p.values[MGL_METRIC_DRAM], 81.25, 1e-9);
    ck_assert_double_eq_tol(p.values[MGL_METRIC_TIME], 1234.5, 1e-6);
    ck_assert_double_eq_tol(p.values[MGL_METRIC_REGISTERS], 128, 1e-9);
    ck_assert_int_eq(mgl_profile_class(&p), MGL_CLASS_DRAM_BOUND);
}
END_TEST

START_TEST(a_column_a_metric)
{
    int found;
    mgl_profile p = read_csv("raw", NULL, &found);
    ck_assert_int_eq(found, 5);
    ck_assert_double_eq_tol(p.values[MGL_METRIC_TIME], 12.5, 1e-9);
    ck_assert_int_eq(mgl_profile_class(&p), MGL_CLASS_LATENCY_LONG);
}
END_TEST

START_TEST(missing_metrics_fall_back)
{
    int found;
    mgl_profile p = read_csv("few", NULL, &found);
    mgl_facts facts = {0};
    ck_assert_int_eq(found, 0);
    ck_assert_int_eq(mgl_profile_class(&p), MGL_CLASS_UNKNOWN);
    facts.spill_bytes = 16;
    mgl_profile_add_facts(&p, &facts);
    ck_assert_int_eq(mgl_profile_class(&p), MGL_CLASS_SPILL);
    p = mgl_profile_unknown();
    p.values[MGL_METRIC_EPILOGUE] = 40;
    ck_assert_int_eq(mgl_profile_class(&p), MGL_CLASS_SLOW_EPILOGUE);
}
END_TEST

START_TEST(a_kernel_that_is_not_there_has_no_numbers)
{
    int found;
    read_csv("long", "attend", &found);
    ck_assert_int_eq(found, 0);
}
END_TEST

static const char *const bad[] = {"", "a,b\n", "\"Kernel Name\",\"Metric Name\n",
                                  "\"Kernel Name\",\"Metric Name\"\n\"a"};

START_TEST(what_is_no_csv_is_rejected)
{
    mgl_profile p = mgl_profile_unknown();
    int found;
    ck_assert_int_eq(mgl_profile_read_csv(bad[_i], strlen(bad[_i]), NULL, &p, &found, NULL),
                     MGL_BAD_INPUT);
}
END_TEST

/* A profile in which only one metric exceeds its limit, and its class. */
static const struct {
    mgl_metric metric;
    double value;
    mgl_class class;
} single[] = {{MGL_METRIC_SPILL, 1, MGL_CLASS_SPILL},
              {MGL_METRIC_STARVED, 30, MGL_CLASS_STARVED_RING},
              {MGL_METRIC_INPUT, 30, MGL_CLASS_LATE_INPUT},
              {MGL_METRIC_EDGE, 30, MGL_CLASS_LATE_EDGE},
              {MGL_METRIC_EPILOGUE, 30, MGL_CLASS_SLOW_EPILOGUE},
              {MGL_METRIC_SECTORS, 25, MGL_CLASS_UNCOALESCED},
              {MGL_METRIC_CONFLICTS, 4, MGL_CLASS_BANK_CONFLICTS},
              {MGL_METRIC_DRAM, 90, MGL_CLASS_DRAM_BOUND},
              {MGL_METRIC_COMPUTE, 90, MGL_CLASS_COMPUTE_BOUND},
              {MGL_METRIC_L2, 90, MGL_CLASS_L2_BOUND},
              {MGL_METRIC_WAVES, 0.4, MGL_CLASS_TAIL},
              {MGL_METRIC_LIMIT_REGISTERS, 1, MGL_CLASS_OCCUPANCY_REGISTERS},
              {MGL_METRIC_LIMIT_SHARED, 1, MGL_CLASS_OCCUPANCY_SHARED},
              {MGL_METRIC_STALL_LONG, 5, MGL_CLASS_LATENCY_LONG},
              {MGL_METRIC_STALL_BARRIER, 5, MGL_CLASS_LATENCY_BARRIER},
              {MGL_METRIC_STALL_SHORT, 5, MGL_CLASS_LATENCY_SHORT},
              {MGL_METRIC_STALL_LG, 5, MGL_CLASS_LATENCY_LG},
              {MGL_METRIC_DRAM, NAN, MGL_CLASS_UNKNOWN},
              {MGL_METRIC_SPILL, 0, MGL_CLASS_UNKNOWN}};

START_TEST(each_class_has_its_metric_and_one_sentence)
{
    mgl_profile p = mgl_profile_unknown();
    p.values[single[_i].metric] = single[_i].value;
    mgl_class class = mgl_profile_class(&p);
    ck_assert_str_eq(mgl_class_name(class), mgl_class_name(single[_i].class));
    const char *hint = mgl_class_hint(class), *stop = strchr(hint, '.');
    ck_assert(class == MGL_CLASS_UNKNOWN ? !*hint : stop && !stop[1]);
}
END_TEST

START_TEST(the_hint_names_class_and_number)
{
    mgl_profile p = mgl_profile_unknown();
    mgl_text out = {0};
    p.values[MGL_METRIC_DRAM] = 81.25;
    mgl_profile_hint(&p, &out);
    ck_assert_str_eq(out.bytes, "DRAM bound (DRAM throughput, % of peak: 81.25): Memory is busy: "
                                "read fewer bytes, since reading them faster is hardly possible.");
    mgl_text_clear(&out);
}
END_TEST

START_TEST(the_delta_names_what_got_worse)
{
    mgl_profile a = mgl_profile_unknown(), b = mgl_profile_unknown();
    mgl_text out = {0};
    a.values[MGL_METRIC_REGISTERS] = 100;
    b.values[MGL_METRIC_REGISTERS] = 104; /* less than 5 % */
    a.values[MGL_METRIC_OCCUPANCY] = 50;
    b.values[MGL_METRIC_OCCUPANCY] = 25;
    a.values[MGL_METRIC_SPILL] = 0;
    b.values[MGL_METRIC_SPILL] = 8;
    a.values[MGL_METRIC_STALL_LONG] = 9;
    b.values[MGL_METRIC_STALL_LONG] = 1;
    b.values[MGL_METRIC_STALL_BARRIER] = 9; /* was unknown */
    mgl_profile_delta_hint(&a, &b, &out);
    ck_assert_str_eq(out.bytes, "It got worse: bytes spilled a thread 0 -> 8; warps that are "
                                "resident, % of the most 50 -> 25");
    mgl_text_clear(&out);
    mgl_profile_delta_hint(&a, &a, &out);
    ck_assert_ptr_null(out.bytes);
}
END_TEST

/* ---- launch traces --------------------------------------------------------------------------- */

#define STEP(name, tasks, wait, input, products, output, starved)                                  \
    "{\"step\":\"" name "\",\"tasks\":" #tasks ",\"wait\":{\"mean\":" #wait                        \
    "},\"input\":{\"mean\":" #input "},\"products\":{\"mean\":" #products                          \
    "},\"output\":{\"mean\":" #output "},\"starved\":{\"mean\":" #starved "}}"
#define TRACE(steps) "{\"schema\":\"megalith.trace/1\",\"steps\":[" steps "]}"

static mgl_status read_trace(const char *text, const char *op, mgl_profile *p, int *found)
{
    mgl_json json = {0};
    *p = mgl_profile_unknown();
    ck_assert_int_eq(mgl_json_parse(text, strlen(text), 1 << 20, "trace.json", &json, NULL),
                     MGL_OK);
    mgl_status status = mgl_profile_read_trace(&json, op, p, found, NULL);
    mgl_json_clear(&json);
    return status;
}

/* Two steps of the op, weighted by their tasks; the other op does not count. */
START_TEST(a_trace_gives_shares_of_the_op)
{
    static const char text[] = TRACE(STEP("linear_add o", 1, 1, 2, 3, 4, 2) "," STEP(
        "linear_add down", 3, 1, 0, 9, 0, 4) "," STEP("linear", 9, 50, 0, 0, 0, 0));
    mgl_profile p;
    int found;
    ck_assert_int_eq(read_trace(text, "linear_add", &p, &found), MGL_OK);
    ck_assert_int_eq(found, 4);
    ck_assert_double_eq_tol(p.values[MGL_METRIC_EDGE], 10, 1e-9);
    ck_assert_double_eq_tol(p.values[MGL_METRIC_INPUT], 5, 1e-9);
    ck_assert_double_eq_tol(p.values[MGL_METRIC_EPILOGUE], 10, 1e-9);
    ck_assert_double_eq_tol(p.values[MGL_METRIC_STARVED], 35, 1e-9);
    ck_assert_int_eq(mgl_profile_class(&p), MGL_CLASS_STARVED_RING);
    ck_assert_int_eq(read_trace(text, "merge", &p, &found), MGL_OK);
    ck_assert_int_eq(found, 0);
    ck_assert_int_eq(mgl_profile_class(&p), MGL_CLASS_UNKNOWN);
}
END_TEST

static const char *const bad_traces[] = {"{}", "{\"schema\":\"megalith.run/1\",\"steps\":[]}",
                                         "{\"schema\":\"megalith.trace/1\"}", TRACE("{}"),
                                         TRACE("{\"step\":\"merge\",\"tasks\":1}")};

START_TEST(what_is_no_trace_is_rejected)
{
    mgl_profile p;
    int found;
    ck_assert_int_eq(read_trace(bad_traces[_i], "merge", &p, &found), MGL_BAD_INPUT);
}
END_TEST

#define ADD(test)       tcase_add_test(tests, test)
#define ALL(test, rows) tcase_add_loop_test(tests, test, 0, (int)(sizeof(rows) / sizeof *(rows)))

int main(void)
{
    Suite *suite = suite_create("arbiter");
    TCase *tests = tcase_create("arbiter");
    ALL(decides_by_the_table, table);
    ADD(stands_three_steps_deep_at_most);
    ADD(an_acceptance_begins_anew);
    ADD(finishes_after_eight_rounds);
    ALL(finishes_near_the_floor, floors);
    ADD(a_row_a_metric);
    ADD(a_column_a_metric);
    ADD(missing_metrics_fall_back);
    ADD(a_kernel_that_is_not_there_has_no_numbers);
    ALL(what_is_no_csv_is_rejected, bad);
    ALL(each_class_has_its_metric_and_one_sentence, single);
    ADD(the_hint_names_class_and_number);
    ADD(the_delta_names_what_got_worse);
    ADD(a_trace_gives_shares_of_the_op);
    ALL(what_is_no_trace_is_rejected, bad_traces);
    suite_add_tcase(suite, tests);
    SRunner *suite_runner = srunner_create(suite);
    srunner_run_all(suite_runner, CK_NORMAL);
    int failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
