/*
 * Each published method of optimizing kernels has an effect on a prompt or a verdict:
 *
 *     PEAK          transformations in natural language   the instruction of the pass, the verdict
 *     LLM-Triton    feedback of the gates                 the failed attempt in the next prompt
 *     TritonForge   profile-guided rounds                 the hint in the request
 *     AutoKernel    experiment log                        what was tried, in the prompt
 *     PTX layer     ideas, hardware features, scan        both in the prompt; the verdict
 *
 * All prompts are those of a kernel session.
 */
#include "autotune/kernels/methods/rounds.h"
#include "autotune/kernels/ptx/ideas.h"
#include "autotune/kernels/ptx/scan.h"
#include "autotune/kernels/sessions/background.h"
#include "autotune/kernels/sessions/kernel_session.h"
#include "autotune/kernels/versions/experiment_log.h"
#include "base/memory.h"
#include "base/output.h"
#include "tests/autotune/kernels/ptx_support.h"
#include "tests/scratch.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char folder[] = MGL_BINARY_DIR "/methods-XXXXXX";
static mgl_library library;
static mgl_kernel_session *session;

static void open_session(const char *arch)
{
    const mgl_kernel_session_options options = {.folder = folder,
                                                .unit = mgl_kernel_unit_find("merge"),
                                                .library = &library,
                                                .arch = arch,
                                                .no_compile = true};
    mgl_error err = {0};
    mgl_kernel_session_close(session);
    session = NULL;
    ck_assert_msg(mgl_kernel_session_open(&options, &session, &err) == MGL_OK, "%s: %s", err.where,
                  err.message);
}

static void setup(void)
{
    scratch_make(folder);
    ck_assert_int_eq(mgl_library_open(NULL, &library, NULL), MGL_OK);
    open_session(NULL);
}

static void teardown(void)
{
    mgl_kernel_session_close(session);
    session = NULL;
    mgl_library_clear(&library);
    scratch_remove(folder);
}

static void begin_task(void)
{
    mgl_error err = {0};
    ck_assert_msg(
        mgl_kernel_session_begin_task(session, MGL_KERNEL_REGION_DEVICE, "faster", &err) == MGL_OK,
        "%s: %s", err.where, err.message);
}

/* Whether the prompt of the open work contains the words. */
static bool prompt_has(const char *words)
{
    mgl_text prompt = {0};
    ck_assert_int_eq(mgl_kernel_session_prompt(session, false, &prompt, NULL), MGL_OK);
    bool has = strstr(prompt.bytes, words) != NULL;
    mgl_text_clear(&prompt);
    return has;
}

/* ---- PEAK ------------------------------------------------------------------------------------ */

START_TEST(a_transformation_instructs_pass_by_pass)
{
    const mgl_transformation *t = mgl_library_find(&library, "refactor");
    mgl_work_end end;
    char answer[300];
    ck_assert_int_eq(mgl_kernel_session_begin_transformation(session, t, NULL), MGL_OK);
    ck_assert(prompt_has(t->passes[0].instruction));
    snprintf(answer, sizeof answer, "```cuda\nint merge_%s;\n```\n", "broken");
    ck_assert_int_eq(mgl_kernel_session_submit(session, answer, strlen(answer), false, &end, NULL),
                     MGL_OK);
    ck_assert_int_eq(end.verdict.outcome, MGL_OUTCOME_UNMEASURED); /* a pass may produce a wrong
                                                                      text */
    ck_assert_int_eq(mgl_kernel_session_state(session).pass, 2 - (t->passes[0].region_count > 1));
    ck_assert(prompt_has("What the hardware offers:"));
}
END_TEST

/* ---- LLM-Triton ------------------------------------------------------------------------------ */

START_TEST(a_failed_attempt_is_in_the_next_prompt)
{
    static const char answer[] = "```cuda\nvoid f()\n{\n    clock64();\n}\n```\n";
    mgl_work_end end;
    begin_task();
    ck_assert(!prompt_has("clock64"));
    ck_assert_int_eq(mgl_kernel_session_submit(session, answer, strlen(answer), false, &end, NULL),
                     MGL_OK);
    ck_assert_int_eq(end.verdict.outcome, MGL_OUTCOME_STATIC_FORBIDDEN);
    ck_assert(prompt_has("`clock64` reads a clock"));
    ck_assert(prompt_has(mgl_outcome_kernel_hint(MGL_OUTCOME_STATIC_FORBIDDEN)));
}
END_TEST

/* ---- TritonForge ----------------------------------------------------------------------------- */

static mgl_text request; /* request of the last call */

static void on_call(void *user, const mgl_feedback_call *call)
{
    (void)user;
    request.length = 0;
    mgl_text_put(&request, call->request);
}

static mgl_status give_profile(void *user, const char *text, size_t length, mgl_profile *out,
                               mgl_error *err)
{
    (void)user, (void)text, (void)length, (void)err;
    out->values[MGL_METRIC_STARVED] = 30;
    return MGL_OK;
}

START_TEST(the_hint_of_a_round_is_in_the_request)
{
    mgl_text text = {0};
    mgl_model_client *client = NULL;
    mgl_waiter waiter = mgl_waiter_real(NULL);
    mgl_rounds_result result;
    mgl_work work = *mgl_kernel_session_work(session);
    work.on_call = on_call;
    ck_assert_int_eq(mgl_model_client_open_replay_text("[\"none\"]", 8, "a", &client, NULL),
                     MGL_OK);
    ck_assert_int_eq(mgl_kernel_session_text(session, &text, NULL, NULL), MGL_OK);
    const mgl_rounds_options options = {.work = &work,
                                        .text = text.bytes,
                                        .length = text.length,
                                        .region = MGL_KERNEL_REGION_DEVICE,
                                        .profile = give_profile,
                                        .one_shot = true};
    ck_assert_int_eq(mgl_rounds_run(&options, client, &waiter, &result, NULL), MGL_OK);
    ck_assert_ptr_nonnull(strstr(request.bytes, mgl_class_hint(MGL_CLASS_STARVED_RING)));
    ck_assert_ptr_nonnull(strstr(request.bytes, "What the hardware offers:"));
    mgl_rounds_result_clear(&result);
    mgl_model_client_close(client);
    mgl_text_clear(&text);
    mgl_text_clear(&request);
}
END_TEST

/* Adds a version with one more function, and the facts of its verdict. */
static void add_version(const char *function, double registers, double spill)
{
    mgl_text text = {0};
    mgl_version_record r = {.unit = "merge",
                            .arch = "sm_90a",
                            .transformation = "",
                            .note = "more",
                            .provides = "",
                            .verdict = {.outcome = MGL_OUTCOME_UNMEASURED}};
    r.verdict.facts.registers = registers;
    r.verdict.facts.spill_bytes = spill;
    ck_assert_int_eq(mgl_kernel_session_text(session, &text, NULL, NULL), MGL_OK);
    mgl_text_format(&text, "/* %s */\n", function);
    r.text = text.bytes;
    ck_assert_int_eq(mgl_versions_add(mgl_kernel_session_versions(session), &r, NULL), MGL_OK);
    mgl_text_clear(&text);
}

START_TEST(the_bottleneck_of_a_version_is_in_the_next_prompt)
{
    begin_task();
    ck_assert(!prompt_has("What is in the way"));
    ck_assert_int_eq(mgl_kernel_session_drop(session, NULL), MGL_OK);
    add_version("first", 100, 0);
    add_version("second", 168, 48);
    begin_task();
    ck_assert(prompt_has("spill (bytes spilled a thread: 48)"));
    ck_assert(prompt_has("It got worse: bytes spilled a thread 0 -> 48; registers a thread 100 -> "
                         "168."));
    open_session(NULL); /* another process */
    ck_assert(prompt_has("spill (bytes spilled a thread: 48)"));
}
END_TEST

/* ---- AutoKernel ------------------------------------------------------------------------------ */

static void path_of(const char *name, char path[400])
{
    snprintf(path, 400, "%s/%s", folder, name);
}

/* The old file name of the log works too. */
START_TEST(what_was_tried_is_in_the_prompt)
{
    char path[400];
    size_t number;
    const mgl_experiment_log_row rows[] = {
        {.op = "merge",
         .idea = "wide_loads",
         .outcome = MGL_OUTCOME_OK,
         .kept = true,
         .gain = 0.05},
        {.op = "merge", .idea = "wide_loads", .outcome = MGL_OUTCOME_NO_GAIN, .gain = 0},
        {.op = "head", .idea = "other_op", .outcome = MGL_OUTCOME_NO_GAIN, .gain = 0}};
    path_of(_i ? MGL_BACKGROUND_LOG : "ledger.json", path);
    for (size_t i = 0; i < 3; i++)
        ck_assert_int_eq(mgl_experiment_log_record(path, &rows[i], &number, NULL), MGL_OK);
    begin_task();
    ck_assert(prompt_has("wide_loads: tried 2, kept 1, mean gain +2.50 %"));
    ck_assert(!prompt_has("other_op"));
}
END_TEST

/* ---- the PTX layer --------------------------------------------------------------------------- */

static void learn(void)
{
    char path[400], *text = read_ptx("ring.ptx");
    mgl_ptx_condensed before = condense(text), after;
    size_t learned, count;
    text = replace(text, "st.global.v4", "st.global.cs.v4");
    after = condense(text);
    const mgl_ptx_pair pair = {&before, &after, "merge", "H100", 0.06};
    path_of(MGL_BACKGROUND_IDEAS, path);
    ck_assert_int_eq(mgl_ptx_ideas_learn(path, &pair, &learned, &count, NULL), MGL_OK);
    mgl_ptx_condensed_clear(&before);
    mgl_ptx_condensed_clear(&after);
    mgl_free(text);
}

START_TEST(ideas_are_in_the_prompt)
{
    learn();
    begin_task();
    ck_assert(prompt_has("global.store.hint: from [none: 1] to [cs: 1]; needs sm_80; 1 of 1 uses "
                         "helped; merge on H100 +6.0 %"));
}
END_TEST

/* The prompt lists the target's hardware features that a micro-kernel may use. */
START_TEST(hardware_features_are_in_the_prompt)
{
    static const struct {
        const char *arch, *words;
        bool has;
    } rows[] = {{"sm_90a", "wgmma multiplies", true},   {"sm_80", "wgmma multiplies", false},
                {"sm_100a", "wgmma multiplies", false}, {"sm_80", "cp.async copies", true},
                {"sm_90a", "setmaxnreg", false},        {"sm_90a", "createpolicy", true},
                {"sm_100a", "an mbarrier counts", true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        open_session(rows[i].arch);
        begin_task();
        ck_assert_msg(prompt_has(rows[i].words) == rows[i].has, "%s: %s", rows[i].arch,
                      rows[i].words);
        ck_assert_int_eq(mgl_kernel_session_drop(session, NULL), MGL_OK);
    }
}
END_TEST

START_TEST(the_scan_of_ptx_decides_a_verdict)
{
    char *text = read_ptx("ring.ptx");
    mgl_ptx before, after;
    mgl_ptx_finding found;
    ck_assert_int_eq(mgl_ptx_parse(text, strlen(text), "a.ptx", &before, NULL), MGL_OK);
    text = replace(text, "bar.sync 0;", "nanosleep.u32 100;");
    ck_assert_int_eq(mgl_ptx_parse(text, strlen(text), "b.ptx", &after, NULL), MGL_OK);
    ck_assert_int_eq(mgl_ptx_scan(&after, &before, true, &found, NULL), MGL_OK);
    ck_assert_int_eq(found.outcome, MGL_OUTCOME_STATIC_FORBIDDEN);
    mgl_ptx_clear(&before);
    mgl_ptx_clear(&after);
    mgl_free(text);
}
END_TEST

START_TEST(a_damaged_file_of_the_background_is_named)
{
    char path[400];
    mgl_error err = {0};
    path_of(MGL_BACKGROUND_IDEAS, path);
    ck_assert_int_eq(mgl_output_write_file(path, "[]", 2, NULL), MGL_OK);
    ck_assert_int_eq(
        mgl_kernel_session_begin_task(session, MGL_KERNEL_REGION_DEVICE, "faster", &err),
        MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.where, "ideas.json"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("methods");
    TCase *tests = tcase_create("methods");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_transformation_instructs_pass_by_pass);
    tcase_add_test(tests, a_failed_attempt_is_in_the_next_prompt);
    tcase_add_test(tests, the_hint_of_a_round_is_in_the_request);
    tcase_add_test(tests, the_bottleneck_of_a_version_is_in_the_next_prompt);
    tcase_add_loop_test(tests, what_was_tried_is_in_the_prompt, 0, 2);
    tcase_add_test(tests, ideas_are_in_the_prompt);
    tcase_add_test(tests, hardware_features_are_in_the_prompt);
    tcase_add_test(tests, the_scan_of_ptx_decides_a_verdict);
    tcase_add_test(tests, a_damaged_file_of_the_background_is_named);
    suite_add_tcase(suite, tests);
    SRunner *suite_runner = srunner_create(suite);
    srunner_run_all(suite_runner, CK_NORMAL);
    int failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
