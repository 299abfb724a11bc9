/*
 * Tests of the feedback loop, with scripted answers, a stub of an endpoint, and a simulated clock.
 */
#include "tests/autotune/agents/stub_server.h"

#include "autotune/kernels/methods/feedback.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/output.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_WAITS = 16 };

static mgl_feedback *feedback;
static mgl_model_client *model_client;
static stub_server *server;
static int calls, evaluated;
static double waits[MOST_WAITS], temperatures[MGL_FEEDBACK_MOST_CALLS];
static int wait_count, tokens[MGL_FEEDBACK_MOST_CALLS];
static mgl_outcome outcomes[MGL_FEEDBACK_MOST_CALLS];
static mgl_text requests[MGL_FEEDBACK_MOST_CALLS]; /* (calls) bodies */
static mgl_text told;                              /* everything reported about the calls */
static mgl_fixups fixups;                          /* fix-ups of the last call */

/* ---- fixture --------------------------------------------------------------------------------- */

/* The simulated gates: a table of errors. The first word of the text selects one. */
static mgl_status evaluate(void *user, const char *text, size_t length,
                           const mgl_kernel_value *values, int count, mgl_trial_verdict *out,
                           mgl_error *err)
{
    static const struct {
        const char *word, *diagnostic;
        mgl_outcome outcome;
    } rows[] = {
        {"syntax", "COMPILE_SYNTAX at merge.cuh:3: expected a ';'", MGL_OUTCOME_COMPILE_SYNTAX},
        {"unknown", "COMPILE_UNDEFINED at merge.cuh:4: identifier \"lanes\" is undefined",
         MGL_OUTCOME_COMPILE_UNDEFINED},
        {"region", "REGION_VIOLATION at merge.cuh:9: a byte outside of the region differs",
         MGL_OUTCOME_REGION_VIOLATION},
        {"good", "", MGL_OUTCOME_UNMEASURED}};
    (void)user, (void)values, (void)count, (void)err;
    evaluated++;
    out->outcome = MGL_OUTCOME_MISMATCH;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (length >= strlen(rows[i].word) && !memcmp(text, rows[i].word, strlen(rows[i].word))) {
            out->outcome = rows[i].outcome;
            snprintf(out->diagnostic, sizeof out->diagnostic, "%s", rows[i].diagnostic);
        }
    return MGL_OK;
}

static void on_call(void *user, const mgl_feedback_call *call)
{
    (void)user;
    temperatures[calls] = call->temperature;
    tokens[calls] = call->max_tokens;
    outcomes[calls] = call->verdict->outcome;
    fixups = call->fixups;
    if (call->request)
        mgl_text_put(&requests[calls], call->request);
    mgl_text_format(&told, "%d %s %s\n", call->number, mgl_outcome_name(call->verdict->outcome),
                    call->verdict->diagnostic);
    mgl_text_put(&told, call->reply->content.bytes ? call->reply->content.bytes : "");
    calls++;
}

static mgl_status wait_virtually(void *user, double seconds, mgl_error *err)
{
    (void)user, (void)err;
    ck_assert_int_lt(wait_count, MOST_WAITS);
    waits[wait_count++] = seconds;
    return MGL_OK;
}

static const mgl_waiter waiter = {wait_virtually, NULL};

static void open_loop(void)
{
    const mgl_feedback_options options = {.model = "stub",
                                          .system = "You write device code.",
                                          .task = "Make merge faster. Edit the region device.\n",
                                          .seed = 7,
                                          .evaluator = {evaluate, NULL},
                                          .on_call = on_call};
    ck_assert_int_eq(mgl_feedback_open(&options, &feedback, NULL), MGL_OK);
}

static void open_script(const char *json)
{
    static const char path[] = MGL_BINARY_DIR "/test_feedback_script.json";
    mgl_error err = {0};
    ck_assert_int_eq(mgl_output_write_file(path, json, strlen(json), NULL), MGL_OK);
    ck_assert_msg(mgl_model_client_open_replay(path, &model_client, &err) == MGL_OK, "%s",
                  err.message);
    open_loop();
}

static void open_stub(const stub_answer *script, int count, double timeout_s)
{
    mgl_error err = {0};
    server = stub_start(script, count);
    const mgl_model_client_chat_options options = {stub_url(server), "sesame", timeout_s, NULL};
    ck_assert_msg(mgl_model_client_open_chat(&options, &model_client, &err) == MGL_OK, "%s",
                  err.message);
    open_loop();
}

static mgl_outcome run(void)
{
    mgl_outcome stopped;
    mgl_error err = {0};
    ck_assert_msg(mgl_feedback_run(feedback, model_client, &waiter, &stopped, &err) == MGL_OK, "%s",
                  err.message);
    return stopped;
}

static void setup(void)
{
    calls = evaluated = wait_count = 0;
}

static void teardown(void)
{
    mgl_feedback_close(feedback);
    mgl_model_client_close(model_client);
    if (server)
        stub_stop(server);
    for (int i = 0; i < MGL_FEEDBACK_MOST_CALLS; i++)
        mgl_text_clear(&requests[i]);
    mgl_text_clear(&told);
    feedback = NULL;
    model_client = NULL;
    server = NULL;
}

#define FENCE(code) "```cuda\\n" code "\\n```\\n"

static const char four[] = "[\"I try.\\n" FENCE("syntax(") "\",\"" FENCE(
    "unknown lanes") "\",\"" FENCE("region \\\"outside\\\"") "\",\"" FENCE("good") "\"]";

/* ---- scripts --------------------------------------------------------------------------------- */

START_TEST(ends_at_the_first_good_text)
{
    open_script(four);
    ck_assert_int_eq(run(), MGL_OUTCOME_OK);
    ck_assert_int_eq(mgl_feedback_count(feedback), 4);
    ck_assert_int_eq(calls, 4);
    ck_assert_str_eq(mgl_feedback_code(feedback), "good\n");
    ck_assert_int_eq(mgl_feedback_verdict(feedback)->outcome, MGL_OUTCOME_UNMEASURED);
}
END_TEST

/* Compares the requests with stored (golden) files. Update the files when requests change on
 * purpose. */
START_TEST(the_requests_are_goldens)
{
    char path[256], *golden = NULL;
    size_t length = 0;
    open_script(four);
    run();
    snprintf(path, sizeof path, MGL_SOURCE_DIR "/tests/autotune/golden/feedback_%d.json", _i + 1);
    mgl_text_put(&requests[_i], "\n");
    if (getenv("MEGALITH_WRITE_GOLDENS"))
        ck_assert_int_eq(mgl_output_write_file(path, requests[_i].bytes, requests[_i].length, NULL),
                         MGL_OK);
    ck_assert_int_eq(mgl_file_read(path, 1 << 20, &golden, &length, NULL), MGL_OK);
    ck_assert_msg(!strcmp(requests[_i].bytes, golden), "%s is another one", path);
    mgl_free(golden);
}
END_TEST

START_TEST(tells_of_two_attempts_at_most)
{
    open_script(four);
    run();
    ck_assert_ptr_null(strstr(requests[3].bytes, "Attempt 1 of 15"));
    ck_assert_ptr_nonnull(strstr(requests[3].bytes, "Attempt 2 of 15"));
    ck_assert_ptr_nonnull(strstr(requests[3].bytes, "Attempt 3 of 15"));
}
END_TEST

START_TEST(tells_the_error_before_the_text_and_the_task_last)
{
    open_script(four);
    run();
    const char *error = strstr(requests[3].bytes, "REGION_VIOLATION at");
    const char *code = strstr(requests[3].bytes, "region \\\"outside");
    const char *task = strstr(requests[3].bytes, "Make merge faster");
    ck_assert(error && code && task);
    ck_assert(error < code);
    ck_assert(code < task);
}
END_TEST

static void open_repeated(const char *answer, int count)
{
    mgl_text script = {0};
    for (int i = 0; i < count; i++)
        mgl_text_format(&script, "%s\"```cuda\\n%s %d\\n```\"", i ? "," : "[", answer, i);
    mgl_text_put(&script, "]");
    open_script(script.bytes);
    mgl_text_clear(&script);
}

START_TEST(ends_after_exactly_fifteen_calls)
{
    open_repeated("bad", 40);
    ck_assert_int_eq(run(), MGL_OUTCOME_OK);
    ck_assert_int_eq(mgl_feedback_count(feedback), 15);
    ck_assert_int_eq(calls, 15);
    ck_assert_ptr_null(mgl_feedback_code(feedback));
    ck_assert(mgl_feedback_ended(feedback));
}
END_TEST

START_TEST(an_error_has_three_hundred_bytes)
{
    mgl_reply reply = {.verdict.outcome = MGL_OUTCOME_PROPOSER_SCHEMA};
    mgl_text prompt = {0};
    memset(reply.verdict.diagnostic, 'x', MGL_MAX_DIAGNOSTIC);
    open_loop();
    ck_assert_int_eq(mgl_feedback_take(feedback, NULL, &reply, NULL), MGL_OK);
    ck_assert_int_eq(mgl_feedback_prompt(feedback, &prompt, NULL), MGL_OK);
    const char *error = strstr(prompt.bytes, "PROPOSER_SCHEMA");
    ck_assert_ptr_nonnull(error);
    ck_assert_uint_eq(strcspn(error, "\n"), MGL_MAX_DIAGNOSTIC);
    mgl_text_clear(&prompt);
}
END_TEST

/* Answers [a, a, a, b, good]: a repeated text raises temperature and length limit; a new text
 * resets them. */
START_TEST(a_repeated_text_makes_it_freer)
{
    open_script("[\"" FENCE("a") "\",\"" FENCE("a") "\",\"" FENCE(" a\\n") "\",\"" FENCE(
        "b") "\",\"" FENCE("good") "\"]");
    run();
    const double wanted[] = {0.2, 0.2, 0.4, 0.6, 0.2};
    const int most[] = {4000, 4000, 6000, 6000, 4000};
    for (int i = 0; i < 5; i++) {
        ck_assert_double_eq_tol(temperatures[i], wanted[i], 1e-9);
        ck_assert_int_eq(tokens[i], most[i]);
    }
}
END_TEST

START_TEST(a_repeated_text_is_not_evaluated_again)
{
    open_script("[\"" FENCE("syntax") "\",\"" FENCE("syntax") "\",\"" FENCE("good") "\"]");
    run();
    ck_assert_int_eq(evaluated, 2);
    ck_assert_int_eq(outcomes[1], MGL_OUTCOME_DUPLICATE);
    ck_assert_ptr_nonnull(strstr(requests[2].bytes, "expected a ';'"));
}
END_TEST

START_TEST(the_temperature_is_one_at_most)
{
    mgl_text script = {0};
    for (int i = 0; i < 12; i++)
        mgl_text_format(&script, "%s\"```cuda\\na\\n```\"", i ? "," : "[");
    mgl_text_put(&script, "]");
    open_script(script.bytes);
    run();
    ck_assert_double_eq_tol(temperatures[11], 1, 1e-9);
    mgl_text_clear(&script);
}
END_TEST

START_TEST(fixups_are_told)
{
    open_script(
        "[\"```cuda\\r\\ngood\\u00a0one\\r\\n\\u200b```\\r\\n```cuda\\n\\ufeffgood\\u00a0one"
        "\\r\\ntwo\\n```\\n\"]");
    run();
    ck_assert_str_eq(mgl_feedback_code(feedback), "good one\ntwo\n");
    ck_assert_uint_eq(fixups.uses[MGL_FIXUP_LINE_ENDS], 1);
    ck_assert_uint_eq(fixups.uses[MGL_FIXUP_SPACES], 1);
    ck_assert_uint_eq(fixups.uses[MGL_FIXUP_MARK], 1);
    ck_assert_uint_eq(fixups.uses[MGL_FIXUP_LAST_LINE], 0);
}
END_TEST

START_TEST(answers_without_a_text_are_calls)
{
    open_script("[\"no\",\"" FENCE("x") FENCE("y") "\",\"" FENCE("good") "\"]");
    run();
    ck_assert_int_eq(mgl_feedback_count(feedback), 3);
    ck_assert_int_eq(outcomes[0], MGL_OUTCOME_EXTRACT_NONE);
    ck_assert_int_eq(outcomes[1], MGL_OUTCOME_EXTRACT_AMBIGUOUS);
}
END_TEST

START_TEST(a_script_that_ends_stops_it)
{
    open_script("[\"" FENCE("x") "\"]");
    ck_assert_int_eq(run(), MGL_OUTCOME_PROPOSER_BUDGET);
    ck_assert_int_eq(mgl_feedback_count(feedback), 1);
}
END_TEST

START_TEST(failures_are_waited_for)
{
    open_script("[{\"outcome\":\"PROPOSER_HTTP\"},{\"outcome\":\"PROPOSER_TIMEOUT\"},"
                "{\"outcome\":\"PROPOSER_RATE\",\"retry_after_s\":30},"
                "{\"outcome\":\"PROPOSER_RATE\",\"retry_after_s\":9999},\"" FENCE("good") "\"]");
    ck_assert_int_eq(run(), MGL_OUTCOME_OK);
    ck_assert_int_eq(mgl_feedback_count(feedback), 1);
    ck_assert_int_eq(wait_count, 4);
    const double wanted[] = {1, 2, 30, 600};
    for (int i = 0; i < 4; i++)
        ck_assert_double_eq_tol(waits[i], wanted[i], 1e-9);
}
END_TEST

static const char *const bad_scripts[] = {
    "{}", "[7]", "[{}]", "[{\"outcome\":\"OK\"}]", "[{\"outcome\":\"x\"}]", "[\"a\",null]", "["};

START_TEST(a_bad_script_is_rejected_at_once)
{
    static const char path[] = MGL_BINARY_DIR "/test_feedback_bad.json";
    mgl_error err = {0};
    ck_assert_int_eq(mgl_output_write_file(path, bad_scripts[_i], strlen(bad_scripts[_i]), NULL),
                     MGL_OK);
    ck_assert_int_eq(mgl_model_client_open_replay(path, &model_client, &err), MGL_BAD_INPUT);
    ck_assert_ptr_null(model_client);
}
END_TEST

/* ---- continuation in another process --------------------------------------------------------- */

static void take(const char *content)
{
    mgl_reply reply = {.retry_after_s = -1};
    mgl_text_put(&reply.content, content);
    ck_assert_int_eq(mgl_feedback_take(feedback, NULL, &reply, NULL), MGL_OK);
    mgl_reply_clear(&reply);
}

START_TEST(goes_on_from_a_file)
{
    mgl_json_out out = {0};
    mgl_json json;
    mgl_text before = {0}, after = {0};
    open_loop();
    take("```cuda\nsyntax\n```");
    take("```cuda\nsyntax\n```");
    take("```cuda\nunknown\n```");
    take("```cuda\nunknown\n```");
    mgl_json_out_begin(&out, "test/1");
    mgl_feedback_write(feedback, &out, "loop");
    mgl_json_out_close(&out);
    ck_assert_int_eq(mgl_feedback_body(feedback, &before, NULL), MGL_OK);
    mgl_feedback_close(feedback);
    open_loop();
    ck_assert_int_eq(mgl_json_parse(out.text.bytes, out.text.length, 1 << 20, "loop", &json, NULL),
                     MGL_OK);
    ck_assert_int_eq(mgl_feedback_read(feedback, &json, mgl_json_member(json.root, "loop"), NULL),
                     MGL_OK);
    ck_assert_int_eq(mgl_feedback_body(feedback, &after, NULL), MGL_OK);
    ck_assert_str_eq(before.bytes, after.bytes);
    ck_assert_int_eq(mgl_feedback_count(feedback), 4);
    mgl_json_clear(&json);
    mgl_text_clear(&out.text);
    mgl_text_clear(&before);
    mgl_text_clear(&after);
}
END_TEST

START_TEST(takes_nothing_behind_its_end)
{
    mgl_reply reply = {0};
    open_loop();
    take("```cuda\ngood\n```");
    ck_assert_int_eq(mgl_feedback_take(feedback, NULL, &reply, NULL), MGL_USAGE);
}
END_TEST

/* ---- an endpoint ----------------------------------------------------------------------------- */

#define GOOD "```cuda\ngood\n```\n"

static const struct {
    stub_answer first;
    double timeout_s, wait_s; /* wait_s negative: no wait, because the answer is a call */
    mgl_outcome outcome;
} failing[] = {
    {{.status = 429, .headers = "Retry-After: 7\r\n", .body = "{}"},
     5,
     7,
     MGL_OUTCOME_PROPOSER_RATE},
    {{.status = 500, .body = "{}"}, 5, 1, MGL_OUTCOME_PROPOSER_HTTP},
    {{.status = 302, .headers = "Location: http://127.0.0.1:1/\r\n"},
     5,
     1,
     MGL_OUTCOME_PROPOSER_HTTP},
    {{.status = 0}, 5, 1, MGL_OUTCOME_PROPOSER_HTTP},
    {{.status = 200, .body = "{\"choices\":", .cut = 9}, 5, 1, MGL_OUTCOME_PROPOSER_HTTP},
    {{.status = 200, .body = "{}", .delay_s = 0.8}, 0.3, 1, MGL_OUTCOME_PROPOSER_TIMEOUT},
    {{.status = 200, .body = "{\"choices\":7}"}, 5, -1, MGL_OUTCOME_PROPOSER_SCHEMA},
    {{.status = 200, .body = "no json"}, 5, -1, MGL_OUTCOME_PROPOSER_SCHEMA},
    {{.status = 200, .body = "0123456789abcdef", .repeat = 300000},
     5,
     -1,
     MGL_OUTCOME_PROPOSER_SCHEMA},
};

START_TEST(stands_what_endpoints_do)
{
    /* a late answer is read after the test has ended */
    static stub_answer scripts[sizeof failing / sizeof *failing][2];
    stub_answer *script = scripts[_i];
    script[0] = failing[_i].first;
    script[1] = (stub_answer){.status = 200, .body = stub_completion(GOOD)};
    open_stub(script, 2, failing[_i].timeout_s);
    ck_assert_int_eq(run(), MGL_OUTCOME_OK);
    ck_assert_int_eq(outcomes[0], failing[_i].outcome);
    ck_assert_int_eq(outcomes[1], MGL_OUTCOME_UNMEASURED);
    ck_assert_int_eq(wait_count, failing[_i].wait_s >= 0);
    ck_assert_int_eq(mgl_feedback_count(feedback), failing[_i].wait_s >= 0 ? 1 : 2);
    if (wait_count)
        ck_assert_double_eq_tol(waits[0], failing[_i].wait_s, 1e-9);
}
END_TEST

START_TEST(a_key_that_is_rejected_ends_it)
{
    const stub_answer script[] = {{.status = 401, .body = "{}"}};
    open_stub(script, 1, 5);
    ck_assert_int_eq(run(), MGL_OUTCOME_PROPOSER_AUTH);
    ck_assert_int_eq(stub_requests(server), 1);
    ck_assert_int_eq(wait_count, 0);
}
END_TEST

START_TEST(seven_failures_in_a_row_end_it)
{
    const stub_answer script[] = {{.status = 503, .body = "{}"}};
    open_stub(script, 1, 5);
    ck_assert_int_eq(run(), MGL_OUTCOME_PROPOSER_HTTP);
    ck_assert_int_eq(stub_requests(server), 7);
    ck_assert_double_eq_tol(waits[5], 32, 1e-9);
}
END_TEST

START_TEST(the_key_is_in_the_header_alone)
{
    const stub_answer script[] = {{.status = 500, .body = "{}"},
                                  {.status = 200, .body = stub_completion(GOOD)}};
    mgl_json_out out = {0};
    open_stub(script, 2, 5);
    run();
    mgl_json_out_begin(&out, "test/1");
    mgl_feedback_write(feedback, &out, "loop");
    mgl_json_out_close(&out);
    ck_assert_ptr_nonnull(strstr(stub_head(server, 1), "sesame"));
    ck_assert_ptr_null(strstr(stub_body(server, 1), "sesame"));
    ck_assert_ptr_null(strstr(requests[1].bytes, "sesame"));
    ck_assert_ptr_null(strstr(told.bytes, "sesame"));
    ck_assert_ptr_null(strstr(out.text.bytes, "sesame"));
    mgl_text_clear(&out.text);
}
END_TEST

#define ADD(test)       tcase_add_test(tests, test)
#define ALL(test, rows) tcase_add_loop_test(tests, test, 0, (int)(sizeof(rows) / sizeof *(rows)))

int main(void)
{
    Suite *suite = suite_create("feedback");
    TCase *tests = tcase_create("feedback");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 60);
    ADD(ends_at_the_first_good_text);
    tcase_add_loop_test(tests, the_requests_are_goldens, 0, 4);
    ADD(tells_of_two_attempts_at_most);
    ADD(tells_the_error_before_the_text_and_the_task_last);
    ADD(ends_after_exactly_fifteen_calls);
    ADD(an_error_has_three_hundred_bytes);
    ADD(a_repeated_text_makes_it_freer);
    ADD(a_repeated_text_is_not_evaluated_again);
    ADD(the_temperature_is_one_at_most);
    ADD(fixups_are_told);
    ADD(answers_without_a_text_are_calls);
    ADD(a_script_that_ends_stops_it);
    ADD(failures_are_waited_for);
    ALL(a_bad_script_is_rejected_at_once, bad_scripts);
    ADD(goes_on_from_a_file);
    ADD(takes_nothing_behind_its_end);
    ALL(stands_what_endpoints_do, failing);
    ADD(a_key_that_is_rejected_ends_it);
    ADD(seven_failures_in_a_row_end_it);
    ADD(the_key_is_in_the_header_alone);
    suite_add_tcase(suite, tests);
    SRunner *suite_runner = srunner_create(suite);
    srunner_run_all(suite_runner, CK_NORMAL);
    int failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
