/*
 * Tests of whole transformation scripts: a scripted model edits the kernel's own texts, and the
 * gates up to the compiler check the results.
 */
#include "autotune/kernels/methods/gate_evaluator.h"
#include "autotune/kernels/methods/script_engine.h"
#include "base/output.h"
#include "tests/scratch.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = MGL_BINARY_DIR "/script-XXXXXX";
static mgl_library library;
static mgl_versions *points;
static mgl_model_client *model_client;
static mgl_gates gates;
static mgl_text ends; /* name, end and calls of each step */
static int limit;     /* number of accepted texts; 0: all */
static int evaluated;

static void setup(void)
{
    scratch_make(folder);
    ck_assert_int_eq(mgl_library_open(NULL, &library, NULL), MGL_OK);
    ck_assert_int_eq(mgl_versions_open(folder, false, &points, NULL), MGL_OK);
    limit = evaluated = 0;
}

static void teardown(void)
{
    mgl_versions_close(points);
    mgl_model_client_close(model_client);
    model_client = NULL;
    mgl_library_clear(&library);
    mgl_text_clear(&ends);
    scratch_remove(folder);
}

/* A scripted model that returns the region of each request with one more comment. */
typedef struct echo {
    mgl_model_client model_client;
    int calls;
} echo;

/* The new body: the text in the request from the region's mark to the next mark. */
static void put_answer(const char *body, int call, mgl_text *out)
{
    mgl_json json;
    char mark[64];
    const char *at, *region, *end;
    ck_assert_int_eq(mgl_json_parse(body, strlen(body), 8 << 20, "request", &json, NULL), MGL_OK);
    const cJSON *messages = mgl_json_member(json.root, "messages");
    const char *user = mgl_json_member(messages->child->next, "content")->valuestring;
    region = strstr(user, "you edit the region `") + strlen("you edit the region `");
    snprintf(mark, sizeof mark, "/* region: %.*s */\n", (int)strcspn(region, "`"), region);
    at = strstr(user, mark) + strlen(mark);
    end = strstr(at, "/* region: ");
    mgl_text_format(out, "So:\n```cuda\n");
    mgl_text_append(out, at, (size_t)(end - at));
    mgl_text_format(out, "/* change %d */\n```\n", call);
    mgl_json_clear(&json);
}

static mgl_status ask_echo(mgl_model_client *self, const char *body, size_t length, mgl_reply *out,
                           mgl_error *err)
{
    echo *e = (echo *)self;
    (void)length, (void)err;
    *out = (mgl_reply){.retry_after_s = -1};
    put_answer(body, e->calls++, &out->content);
    return MGL_OK;
}

static void on_step(void *user, const mgl_step_report *step)
{
    (void)user;
    mgl_text_format(&ends, "%s %s %d%s%s\n", step->transformation->name,
                    mgl_step_end_name(step->end), step->calls, step->verdict ? " " : "",
                    step->verdict ? step->verdict->diagnostic : "");
}

/* The gates, except that a change of comments counts as a change. */
static mgl_status evaluate(void *user, const char *text, size_t length,
                           const mgl_kernel_value *values, int count, mgl_trial_verdict *out,
                           mgl_error *err)
{
    const mgl_evaluator whole = mgl_gates_evaluator(user);
    mgl_status status = whole.evaluate(whole.user, text, length, values, count, out, err);
    if (!status && out->outcome == MGL_OUTCOME_DUPLICATE)
        out->outcome = MGL_OUTCOME_UNMEASURED;
    if (limit && evaluated++ >= limit)
        out->outcome = MGL_OUTCOME_COMPILE_OTHER;
    return status;
}

static mgl_script_engine_result run(const char *op, const char *arch)
{
    echo model = {.model_client = {"echo", ask_echo, NULL}};
    const mgl_transformation *steps[MGL_MAX_NAMES];
    mgl_script_engine_result result;
    mgl_error err = {0};
    gates = (mgl_gates){.unit = mgl_kernel_unit_find(op),
                        .options = {.arch = arch, .no_compile = true}};
    const mgl_work work = {
        .unit = op, .op = op, .arch = arch, .model = "echo", .evaluator = {evaluate, &gates}};
    mgl_waiter waiter = mgl_waiter_real(NULL);
    mgl_script_engine_options options = {.work = &work,
                                         .steps = steps,
                                         .versions = points,
                                         .carry = 2,
                                         .evaluations = 3,
                                         .on_step = on_step};
    options.text = mgl_kernel_unit_text(gates.unit, &options.length);
    ck_assert_int_eq(mgl_transform_script_steps(&library, mgl_library_find_script(&library, arch),
                                                op, steps, &options.step_count, NULL),
                     MGL_OK);
    ck_assert_msg(mgl_script_engine_run(&options, &model.model_client, &waiter, &result, &err) ==
                      MGL_OK,
                  "%s: %s", err.where, err.message);
    ck_assert_int_eq(result.calls, model.calls);
    return result;
}

static mgl_status count_one(void *user, const mgl_version_record *r, mgl_error *err)
{
    (void)err;
    ck_assert_int_eq(r->verdict.outcome, MGL_OUTCOME_UNMEASURED);
    ++*(int *)user;
    return MGL_OK;
}

static const struct {
    const char *op, *arch;
} scripts[] = {{"norm_linear", "sm_90a"}, {"merge", "sm_90a"}};

START_TEST(a_model_drives_a_whole_script)
{
    int count = 0, calls = 0;
    mgl_script_engine_result result = run(scripts[_i].op, scripts[_i].arch);
    ck_assert_msg(result.failed == 0 && result.left_out == 0, "%s", ends.bytes);
    ck_assert_int_ge(result.done, 4);
    ck_assert_int_eq(mgl_versions_log(points, NULL, count_one, &count, NULL), MGL_OK);
    ck_assert_int_eq(count, result.done);
    for (size_t i = 0; i < library.count; i++)
        if (strstr(ends.bytes, library.list[i].name) &&
            (strstr(ends.bytes, library.list[i].name) == ends.bytes ||
             strstr(ends.bytes, library.list[i].name)[-1] == '\n'))
            calls += mgl_transformation_calls(&library.list[i]);
    ck_assert_int_eq(result.calls, calls);
}
END_TEST

/* All steps after the first two fail, and steps that require failed steps are skipped. */
START_TEST(a_step_that_fails_is_left_out_with_its_followers)
{
    limit = 5;
    mgl_script_engine_result result = run("attend", "sm_90a");
    int count = 0;
    ck_assert_msg(result.failed > 0 && result.left_out > 0, "%s", ends.bytes);
    ck_assert_ptr_nonnull(strstr(ends.bytes, "refactor done 3"));
    ck_assert_ptr_nonnull(strstr(ends.bytes, "bulk_ring left out 0"));
    ck_assert_int_eq(mgl_versions_log(points, NULL, count_one, &count, NULL), MGL_OK);
    ck_assert_int_eq(count, result.done);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("course");
    TCase *tests = tcase_create("course");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 100);
    tcase_add_loop_test(tests, a_model_drives_a_whole_script, 0,
                        (int)(sizeof scripts / sizeof *scripts));
    tcase_add_test(tests, a_step_that_fails_is_left_out_with_its_followers);
    suite_add_tcase(suite, tests);
    SRunner *suite_runner = srunner_create(suite);
    srunner_run_all(suite_runner, CK_NORMAL);
    int failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
