/* Tests of mgl_autotune by the public header alone: campaigns of a small model, each in its own
 * store.
 */
#include "base/memory.h"
#include "megalith.h"
#include "tests/autotune/agents/stub_server.h"
#include "tests/scratch.h"

#include <check.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = MGL_BINARY_DIR "/autotune-XXXXXX", store[240];
static mgl_error err;
static mgl_autotune_report report;

static const char *model_path(void)
{
    static char path[1024];
    const char *root = getenv("MGL_TEST_MODELS");
    snprintf(path, sizeof path, "%s/tales-5m", root ? root : MGL_SOURCE_DIR "/tests/models");
    return path;
}

static mgl_autotune_options without_device(void)
{
    return (mgl_autotune_options){.size = sizeof(mgl_autotune_options),
                                  .model = model_path(),
                                  .device = "none",
                                  .target = "sm_90a:8",
                                  .proposers = "random",
                                  .store = store,
                                  .name = "tales",
                                  .seed = 7,
                                  .trials = 10,
                                  .capacity = 256};
}

static void set_up(void)
{
    err = (mgl_error){0};
    scratch_make(folder);
    snprintf(store, sizeof store, "%s/campaigns.db", folder);
    report = (mgl_autotune_report){.size = sizeof report};
}

static void tear_down(void)
{
    char command[sizeof folder + 20];
    mgl_autotune_report_clear(&report);
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    ck_assert_int_eq(system(command), 0);
}

static void run(const mgl_autotune_options *options)
{
    mgl_status status = mgl_autotune(options, NULL, NULL, &report, &err);
    ck_assert_msg(!status, "%s: %s", err.where, err.message);
}

/* ---- a campaign ------------------------------------------------------------------------------ */

START_TEST(a_campaign_makes_its_trials)
{
    mgl_autotune_options options = without_device();
    run(&options);
    ck_assert_int_eq(report.trials, 10);
    ck_assert_str_eq(report.name, "tales");
    ck_assert_str_eq(report.reason, "its 10 trials are made");
}
END_TEST

/* Nothing is measured, so the best program is the one with which the campaign began. */
START_TEST(without_a_device_nothing_is_kept)
{
    mgl_autotune_options options = without_device();
    run(&options);
    ck_assert_int_eq(report.kept, 0);
    ck_assert_int_eq(report.best, 0);
    ck_assert_double_eq(report.gain, 0);
    ck_assert_str_eq(report.moves, "");
    ck_assert_ptr_null(report.schedule);
}
END_TEST

START_TEST(the_best_can_be_lowered)
{
    mgl_plan *plan = NULL;
    mgl_autotune_options options = without_device();
    run(&options);
    mgl_plan_options best = {.size = sizeof best,
                             .model = options.model,
                             .target = options.target,
                             .dtype = "bf16",
                             .config_text = report.config,
                             .moves = report.moves,
                             .capacity = options.capacity};
    ck_assert_int_eq(mgl_plan_lower(&best, &plan, &err), MGL_OK);
    mgl_plan_close(plan);
}
END_TEST

START_TEST(a_campaign_goes_on)
{
    mgl_autotune_options options = without_device();
    options.trials = 3;
    run(&options);
    options.trials = 5;
    run(&options);
    ck_assert_int_eq(report.trials, 5);
}
END_TEST

START_TEST(a_campaign_of_that_name_may_be_another_one)
{
    mgl_autotune_options options = without_device();
    options.trials = 1;
    run(&options);
    options.capacity = 128;
    ck_assert_int_eq(mgl_autotune(&options, NULL, NULL, &report, &err), MGL_USAGE);
    ck_assert_ptr_null(report.name);
    options.fresh = true;
    run(&options);
    ck_assert_str_eq(report.name, "tales-2");
}
END_TEST

/* ---- a language model ------------------------------------------------------------------------ */

static stub_server *server;
static char key_file[240];

/* Options with a chat proposer whose endpoint always gives this answer. */
static mgl_autotune_options with_chat(const stub_answer *answer, mode_t mode)
{
    mgl_autotune_options options = without_device();
    server = stub_start(answer, 1);
    snprintf(key_file, sizeof key_file, "%s/key", folder);
    int fd = open(key_file, O_WRONLY | O_CREAT | O_EXCL, mode);
    ck_assert_int_eq(write(fd, "sesame\n", 7), 7);
    close(fd);
    options.proposers = "chat";
    options.chat_url = stub_url(server);
    options.chat_model = "stub";
    options.chat_key_file = key_file;
    return options;
}

#define PROPOSAL                                                                                   \
    "```json\n{\"schema\":\"megalith.proposal/1\",\"config\":{\"prefetch_bytes\":65536}}\n```\n"

START_TEST(a_language_model_is_asked_with_its_key)
{
    const stub_answer answer = {.status = 200, .body = stub_completion(PROPOSAL)};
    mgl_autotune_options options = with_chat(&answer, 0600);
    options.trials = 1;
    run(&options);
    ck_assert_int_eq(report.trials, 1);
    ck_assert_ptr_nonnull(strstr(stub_head(server, 0), "Bearer sesame"));
    ck_assert_ptr_nonnull(strstr(stub_body(server, 0), "\"model\":\"stub\""));
    stub_stop(server);
}
END_TEST

START_TEST(requests_end_with_their_budget)
{
    const stub_answer answer = {.status = 200, .body = stub_completion("none")};
    mgl_autotune_options options = with_chat(&answer, 0600);
    options.budget_requests = 2;
    run(&options);
    ck_assert_int_eq(stub_requests(server), 2);
    ck_assert_int_eq(report.trials, 0);
    stub_stop(server);
}
END_TEST

START_TEST(tokens_end_with_their_budget)
{
    const stub_answer answer = {.status = 200, .body = stub_completion("none")};
    mgl_autotune_options options = with_chat(&answer, 0600);
    options.budget_tokens = 1;
    run(&options);
    ck_assert_int_le(stub_requests(server), 1);
    ck_assert_int_eq(report.trials, 0);
    stub_stop(server);
}
END_TEST

START_TEST(a_key_that_others_may_read_begins_nothing)
{
    const stub_answer answer = {.status = 200, .body = stub_completion("none")};
    mgl_autotune_options options = with_chat(&answer, 0644);
    ck_assert_int_eq(mgl_autotune(&options, NULL, NULL, &report, &err), MGL_USAGE);
    ck_assert_str_eq(err.where, key_file);
    ck_assert_int_ne(access(store, F_OK), 0);
    ck_assert_int_eq(stub_requests(server), 0);
    stub_stop(server);
}
END_TEST

/* ---- another manifest ------------------------------------------------------------------------ */

START_TEST(a_campaign_of_another_manifest_has_a_successor)
{
    sqlite3 *database;
    mgl_autotune_options options = without_device();
    options.trials = 1;
    run(&options);
    ck_assert_int_eq(sqlite3_open(store, &database), SQLITE_OK);
    ck_assert_int_eq(
        sqlite3_exec(database, "UPDATE campaigns SET manifest = 'other'", NULL, NULL, NULL),
        SQLITE_OK);
    sqlite3_close(database);
    options.trials = 2;
    ck_assert_int_eq(mgl_autotune(&options, NULL, NULL, &report, &err), MGL_GATE);
    options.rebase = 1;
    run(&options);
    ck_assert_str_eq(report.name, "tales-2");
    ck_assert_int_eq(report.trials, 2);
}
END_TEST

/* ---- events ---------------------------------------------------------------------------------- */

typedef struct ear {
    int starts, trials, ends;
    int64_t last;       /* number of the last trial */
    mgl_cancel *cancel; /* set at trial `until`; 0: never */
    int64_t until;
    bool spoken; /* every trial had an outcome, every event a text */
} ear;

static void listen(void *user, const mgl_autotune_event *event)
{
    ear *to = user;
    to->starts += !strcmp(event->kind, "start");
    to->ends += !strcmp(event->kind, "end");
    to->spoken &= event->text[0] && (event->trial == 0) == (event->outcome == NULL);
    if (strcmp(event->kind, "trial") != 0)
        return;
    to->trials++;
    to->last = event->trial;
    if (to->until == event->trial)
        mgl_cancel_set(to->cancel);
}

START_TEST(a_campaign_tells_of_itself)
{
    ear heard = {.spoken = true};
    mgl_autotune_options options = without_device();
    ck_assert_int_eq(mgl_autotune(&options, listen, &heard, NULL, &err), MGL_OK);
    ck_assert_int_eq(heard.starts, 1);
    ck_assert_int_eq(heard.ends, 1);
    ck_assert_int_eq(heard.last, 10);
    ck_assert(heard.spoken);
}
END_TEST

START_TEST(a_switch_ends_it)
{
    ear heard = {.until = 3};
    mgl_autotune_options options = without_device();
    ck_assert_int_eq(mgl_cancel_new(&heard.cancel, &err), MGL_OK);
    options.cancel = heard.cancel;
    ck_assert_int_eq(mgl_autotune(&options, listen, &heard, &report, &err), MGL_INTERRUPTED);
    ck_assert_int_eq(report.trials, 3);
    ck_assert_str_eq(report.name, "tales");
    ck_assert_ptr_nonnull(report.config);
    mgl_cancel_free(heard.cancel);
}
END_TEST

START_TEST(a_switch_that_is_set_begins_nothing)
{
    mgl_autotune_options options = without_device();
    ck_assert_int_eq(mgl_cancel_new(&options.cancel, &err), MGL_OK);
    mgl_cancel_set(options.cancel);
    ck_assert_int_eq(mgl_autotune(&options, NULL, NULL, &report, &err), MGL_INTERRUPTED);
    ck_assert_ptr_null(report.name);
    ck_assert_int_ne(access(store, F_OK), 0);
    mgl_cancel_free(options.cancel);
}
END_TEST

/* ---- a device -------------------------------------------------------------------------------- */

/* Candidates run on the CPU in workers, which are new processes of this program. */
START_TEST(workers_of_this_program_execute)
{
    ear heard = {.spoken = true};
    mgl_autotune_options options = without_device();
    options.device = "cpu";
    options.target = NULL;
    options.trials = 1;
    ck_assert_msg(!mgl_autotune(&options, listen, &heard, &report, &err), "%s: %s", err.where,
                  err.message);
    ck_assert_int_eq(report.trials, 1);
    ck_assert(heard.spoken);
}
END_TEST

/* ---- misuse ---------------------------------------------------------------------------------- */

static void refuses(const mgl_autotune_options *options, const char *where)
{
    err = (mgl_error){0};
    ck_assert_int_eq(mgl_autotune(options, NULL, NULL, &report, &err), MGL_USAGE);
    ck_assert_str_eq(err.where, where);
    ck_assert_int_ne(access(store, F_OK), 0);
}

START_TEST(options_that_make_no_sense_are_rejected)
{
    mgl_autotune_options options = without_device();
    options.trials = 0;
    refuses(&options, "trials");
    options.trials = -1;
    refuses(&options, "trials");
    options = without_device();
    options.hours = -1;
    refuses(&options, "hours");
    options = without_device();
    options.capacity = -1;
    refuses(&options, "capacity");
    options = without_device();
    options.budget_tokens = -1;
    refuses(&options, "budget_tokens");
    options = without_device();
    options.budget_requests = -1;
    refuses(&options, "budget_requests");
    options.size = 0;
    refuses(&options, "mgl_autotune_options");
    options = without_device();
    report.size = sizeof report.size;
    refuses(&options, "mgl_autotune_report");
}
END_TEST

START_TEST(null_is_rejected)
{
    ck_assert_int_eq(mgl_autotune(NULL, NULL, NULL, &report, &err), MGL_USAGE);
    ck_assert_ptr_nonnull(strstr(err.message, "\"options\" is NULL"));
    mgl_autotune_report_clear(NULL);
}
END_TEST

START_TEST(an_outcome_is_explained)
{
    mgl_explanation out = {.size = sizeof out};
    ck_assert_int_eq(mgl_explain_code("NO_GAIN", &out, &err), MGL_OK);
    ck_assert_int_eq(out.exit_code, 10);
    ck_assert_ptr_nonnull(strstr(out.remedy, "not certainly 1 % faster"));
    ck_assert_ptr_null(out.title);
    ck_assert_ptr_null(out.meaning);
}
END_TEST

START_TEST(a_diagnostic_is_explained)
{
    mgl_explanation out = {.size = sizeof out};
    ck_assert_int_eq(mgl_explain_code("MG203", &out, &err), MGL_OK);
    ck_assert_int_eq(out.exit_code, MGL_REJECTED);
    ck_assert_ptr_nonnull(out.title);
    ck_assert_ptr_nonnull(out.meaning);
    ck_assert_ptr_nonnull(out.example);
    ck_assert_ptr_nonnull(out.remedy);
    ck_assert_int_eq(mgl_explain_code("MG801", &out, &err), MGL_OK); /* a warning */
    ck_assert_int_eq(out.exit_code, 0);
    ck_assert_ptr_nonnull(out.title);
}
END_TEST

START_TEST(every_outcome_is_explained)
{
    size_t count = 0;
    mgl_explanation out = {.size = sizeof out};
    ck_assert_str_eq(mgl_autotune_outcome(0), "OK");
    for (const char *name; (name = mgl_autotune_outcome(count)) != NULL; count++) {
        ck_assert_msg(!mgl_explain_code(name, &out, &err), "%s", name);
        ck_assert_msg(out.exit_code == 0 || (out.exit_code >= 10 && out.exit_code <= 14), "%s",
                      name);
    }
    ck_assert_uint_gt(count, 40);
}
END_TEST

START_TEST(what_is_no_code_is_rejected)
{
    static const char *const no_codes[] = {"",      "MG",    "MG2",     "MG2034", "MG 03",
                                           "mg203", "MG000", "NOTHING", "no_gain"};
    mgl_explanation out = {.size = sizeof out};
    for (size_t i = 0; i < sizeof no_codes / sizeof *no_codes; i++)
        ck_assert_msg(mgl_explain_code(no_codes[i], &out, &err) == MGL_BAD_INPUT, "'%s'",
                      no_codes[i]);
    ck_assert_int_eq(mgl_explain_code(NULL, &out, &err), MGL_USAGE);
    ck_assert_int_eq(mgl_explain_code("OK", NULL, &err), MGL_USAGE);
    out.size = 0;
    ck_assert_int_eq(mgl_explain_code("OK", &out, &err), MGL_USAGE);
}
END_TEST

START_TEST(a_report_without_memory_is_told)
{
    mgl_autotune_options options = without_device();
    mgl_status status = MGL_NO_MEMORY;
    options.trials = 1;
    run(&options); /* so that most of the counted allocations are of the report */
    for (uint64_t n = 1; status; n += 1 + n / 8) {
        mgl_alloc_fail_at(n, true);
        status = mgl_autotune(&options, NULL, NULL, &report, &err);
        mgl_alloc_fail_at(0, false);
        ck_assert_msg(!status || status == MGL_NO_MEMORY, "%s: %s", err.where, err.message);
    }
}
END_TEST

/* Checks that devices are rejected before the first call of mgl_autotune_is_worker. */
static int refuse_devices(void)
{
    mgl_autotune_options options = without_device();
    options.device = "cpu";
    return mgl_autotune(&options, NULL, NULL, NULL, &err) == MGL_USAGE &&
                   strstr(err.message, "mgl_autotune_is_worker")
               ? 0
               : 1;
}

int main(int argc, char **argv)
{
    int code = argc == 1 ? refuse_devices() : 0;
    if (code)
        fprintf(stderr, "a program that has no workers was not rejected: %s\n", err.message);
    if (code || mgl_autotune_is_worker(argc, argv, &code))
        return code;
    Suite *suite = suite_create("autotune");
    TCase *tests = tcase_create("autotune");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_campaign_makes_its_trials);
    tcase_add_test(tests, without_a_device_nothing_is_kept);
    tcase_add_test(tests, the_best_can_be_lowered);
    tcase_add_test(tests, a_campaign_goes_on);
    tcase_add_test(tests, a_campaign_of_that_name_may_be_another_one);
    tcase_add_test(tests, a_language_model_is_asked_with_its_key);
    tcase_add_test(tests, requests_end_with_their_budget);
    tcase_add_test(tests, tokens_end_with_their_budget);
    tcase_add_test(tests, a_key_that_others_may_read_begins_nothing);
    tcase_add_test(tests, a_campaign_of_another_manifest_has_a_successor);
    tcase_add_test(tests, a_campaign_tells_of_itself);
    tcase_add_test(tests, a_switch_ends_it);
    tcase_add_test(tests, a_switch_that_is_set_begins_nothing);
    tcase_add_test(tests, workers_of_this_program_execute);
    tcase_add_test(tests, options_that_make_no_sense_are_rejected);
    tcase_add_test(tests, null_is_rejected);
    tcase_add_test(tests, an_outcome_is_explained);
    tcase_add_test(tests, a_diagnostic_is_explained);
    tcase_add_test(tests, every_outcome_is_explained);
    tcase_add_test(tests, what_is_no_code_is_rejected);
    tcase_add_test(tests, a_report_without_memory_is_told);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
