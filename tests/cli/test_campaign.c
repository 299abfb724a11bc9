/*
 * Tests of campaigns on the command line: killed, interrupted, rejected and ended ones, and those
 * with a language model as proposer.
 */
#include "command.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "tests/autotune/agents/stub_server.h"
#include "tests/time_limit.h"

#include <check.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROPOSAL "{\"schema\":\"megalith.proposal/1\",\"config\":{\"page_bytes\":8192}}"

/* The state printed by `campaign status`; static storage. */
static const char *state_of(const char *store)
{
    static char state[40];
    command_result result = command_runf("campaign status --store %s --json", store);
    state[0] = 0;
    if (result.code == 0) {
        mgl_json json = command_json(&result, "megalith.campaign/1");
        snprintf(state, sizeof state, "%s", json_string(&json, "state"));
        mgl_json_clear(&json);
    }
    command_clear(&result);
    return state;
}

/* A campaign that waits for proposals, and has made one trial. */
static command start(const char *store)
{
    char line[1000];
    snprintf(line, sizeof line,
             "tune %s --device none --seed 5 --store %s --proposer external --name outside",
             model_path("tales-5m"), store);
    command running = command_start(line);
    for (int i = 0; i < time_limit(500) && strcmp(state_of(store), "running") != 0; i++)
        usleep(20000);
    command_result first =
        command_runf("campaign submit %s --wait --store %s",
                     scratch_file("first.json", "{\"schema\":\"megalith.proposal/1\","
                                                "\"config\":{\"page_bytes\":4096}}"),
                     store);
    ck_assert_msg(first.code == 13, "%s%s", first.out, first.err);
    command_clear(&first);
    return running;
}

START_TEST(a_killed_campaign_is_killed)
{
    const char *store = scratch_store("killed");
    command running = start(store);
    ck_assert_str_eq(state_of(store), "running");
    kill(running.pid, SIGKILL);
    command_result ended = command_end(&running);
    ck_assert_str_eq(state_of(store), "killed");
    command_result list = command_runf("campaign list --store %s", store);
    ck_assert_int_eq(strncmp(list.out, "killed ", 7), 0);
    command_clear(&list);
    command_clear(&ended);
}
END_TEST

/* A proposal for a large model takes seconds without a check for signals: the signal ends the verb
 * during that work, and the store records nothing. */
START_TEST(an_interrupted_campaign_is_paused)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    char line[1000], name[20];
    snprintf(name, sizeof name, "signal%d", _i);
    const char *store = scratch_store(name);
    snprintf(line, sizeof line,
             "tune --shape llama-1b --device none --seed 5 --proposer surrogate --store %s", store);
    command running = command_start(line);
    for (int i = 0; i < time_limit(500) && strcmp(state_of(store), "running") != 0; i++)
        usleep(20000);
    usleep(300000);
    kill(running.pid, numbers[_i]);
    command_result ended = command_end(&running);
    ck_assert_int_eq(ended.code, 128 + numbers[_i]);
    ck_assert_str_eq(state_of(store), "paused");
    command_result status = command_runf("campaign status --store %s", store);
    ck_assert_ptr_nonnull(strstr(status.out, "paused: it was interrupted"));
    command_clear(&status);
    command_clear(&ended);
}
END_TEST

/* The command that the message names continues the campaign, and takes the proposal. */
START_TEST(the_hint_continues_an_ended_campaign)
{
    const char *store = scratch_store("over"), *proposal = scratch_file("over.json", PROPOSAL);
    command_result result =
        command_runf("tune %s --device none --seed 5 --trials 1 --store %s --name over --quiet",
                     model_path("tales-5m"), store);
    ck_assert_msg(result.code == 0, "%s", result.err);
    command_clear(&result);
    result = command_runf("campaign submit %s --wait --store %s", proposal, store);
    ck_assert_int_eq(result.code, 1);
    ck_assert_ptr_nonnull(strstr(result.err, "run `megalith campaign resume over --trials 2`"));
    command_clear(&result);
    result = command_runf("campaign resume over --trials 2 --store %s --quiet", store);
    ck_assert_msg(result.code == 0, "%s", result.err);
    command_clear(&result);
    result = command_runf("campaign history over --store %s", store);
    ck_assert_ptr_nonnull(strstr(result.out, "submit"));
    command_clear(&result);
}
END_TEST

START_TEST(nobody_waits_for_a_killed_campaign)
{
    const char *store = scratch_store("alone");
    command running = start(store);
    kill(running.pid, SIGKILL);
    command_result ended = command_end(&running);
    double began = mgl_clock_s();
    command_result result = command_runf("campaign submit %s --wait --store %s",
                                         scratch_file("second.json", PROPOSAL), store);
    ck_assert_int_eq(result.code, 1); /* an exit code that no verdict has */
    ck_assert_ptr_nonnull(strstr(result.err, "no process runs the campaign: proposal 2 is queued"));
    ck_assert_ptr_nonnull(strstr(result.err, "`megalith campaign resume outside`"));
    ck_assert_double_lt(mgl_clock_s() - began, time_limit(20)); /* it would wait forever */
    command_result resumed = command_runf("campaign resume --trials 2 --store %s --quiet", store);
    ck_assert_int_eq(resumed.code, 0);
    command_result history = command_runf("campaign history --store %s", store);
    ck_assert_ptr_nonnull(strstr(history.out, "2 UNMEASURED submit"));
    command_clear(&ended);
    command_clear(&result);
    command_clear(&resumed);
    command_clear(&history);
}
END_TEST

/* `campaign submit` works without a running campaign: the submission is no trial yet. */
START_TEST(what_is_too_large_is_rejected)
{
    const char *store = scratch_store("large");
    char file[400];
    command_result made =
        command_runf("tune %s --device none --seed 5 --trials 1 --store %s --quiet",
                     model_path("tales-5m"), store);
    snprintf(file, sizeof file, "%s", scratch_file("large.json", "{"));
    ck_assert_int_eq(truncate(file, 100 << 20), 0);
    command_result said = command_runf("campaign submit %s --wait --store %s", file, store);
    command_result told = command_runf("campaign submit %s --store %s --json", file, store);
    ck_assert_int_eq(said.code, 11);
    ck_assert_ptr_nonnull(
        strstr(said.out, "PARSE: the proposal is too large; at most 67108864 bytes"));
    ck_assert_int_eq(told.code, 11);
    mgl_json json = command_json(&told, "megalith.campaign/1");
    ck_assert_str_eq(json_string(&json, "outcome"), "PARSE");
    mgl_json_clear(&json);
    unlink(file);
    command_clear(&made);
    command_clear(&said);
    command_clear(&told);
}
END_TEST

static void change_store(const char *store, const char *sql)
{
    sqlite3 *database;
    ck_assert_int_eq(sqlite3_open(store, &database), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(database, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(database);
}

START_TEST(a_campaign_of_other_frozen_files_has_a_successor)
{
    const char *store = scratch_store("rebase");
    command_result made =
        command_runf("tune %s --device none --seed 5 --trials 2 --store %s --name night --quiet",
                     model_path("tales-5m"), store);
    ck_assert_msg(made.code == 0, "%s", made.err);
    change_store(store, "UPDATE campaigns SET manifest = 'x' || substr(manifest, 2)");
    command_result refused = command_runf("campaign resume night --trials 3 --store %s", store);
    ck_assert_int_eq(refused.code, 6);
    ck_assert_ptr_nonnull(strstr(refused.err, "--rebase"));
    command_result rebased =
        command_runf("campaign resume night --rebase --trials 3 --store %s --quiet --json", store);
    ck_assert_msg(rebased.code == 0, "%s", rebased.err);
    mgl_json json = command_json(&rebased, "megalith.tune/1");
    ck_assert_str_eq(json_string(&json, "name"), "night-2");
    mgl_json_clear(&json);
    command_clear(&made);
    command_clear(&refused);
    command_clear(&rebased);
}
END_TEST

/* ---- number formats -------------------------------------------------------------------------- */

static const char *const formats[] = {"f16", "f32"};

/* On a CPU each candidate is executed and compared with the f32 reference. */
START_TEST(a_format_is_proved_and_executed)
{
    char name[20];
    snprintf(name, sizeof name, "%s", formats[_i]);
    const char *store = scratch_store(name);
    command_result proved = command_runf(
        "tune %s --device none --dtype %s --seed 5 --trials 2 --proposer random --store %s "
        "--verbose",
        model_path("tales-5m"), formats[_i], store);
    ck_assert_msg(proved.code == 0, "%s", proved.err);
    ck_assert_ptr_nonnull(strstr(proved.err, "2 UNMEASURED random: accepted"));
    command_result executed = command_runf(
        "tune %s --device cpu --dtype %s --seed 5 --trials 2 --proposer random --store %s "
        "--workloads ctx=0;batch=1 --verbose",
        model_path("tales-5m"), formats[_i], store);
    ck_assert_msg(executed.code == 0, "%s", executed.err);
    ck_assert_ptr_nonnull(strstr(executed.err, "UNMEASURED random: correct"));
    command_result status = command_runf("campaign status --store %s --json", store);
    mgl_json json = command_json(&status, "megalith.campaign/1");
    ck_assert_str_eq(json_string(&json, "dtype"), formats[_i]);
    mgl_json_clear(&json);
    command_clear(&proved);
    command_clear(&executed);
    command_clear(&status);
}
END_TEST

START_TEST(a_campaign_stays_with_its_format)
{
    const char *store = scratch_store("format");
    command_result begun =
        command_runf("tune %s --device none --seed 5 --dtype f16 --trials 1 --name n --store %s",
                     model_path("tales-5m"), store);
    command_result other =
        command_runf("tune %s --device none --seed 5 --trials 2 --name n --store %s",
                     model_path("tales-5m"), store);
    ck_assert_msg(begun.code == 0, "%s", begun.err);
    ck_assert_int_eq(other.code, 1);
    ck_assert_ptr_nonnull(
        strstr(other.err, "--dtype: the campaign \"n\" began with another value"));
    command_clear(&begun);
    command_clear(&other);
}
END_TEST

/* A device record from an archive; no device is searched for. */
START_TEST(a_gpu_has_one_format)
{
    const char *store = scratch_store("gpu");
    command_result begun =
        command_runf("tune %s --device none --seed 5 --dtype f16 --trials 1 --name n --store %s",
                     model_path("tales-5m"), store);
    ck_assert_msg(begun.code == 0, "%s", begun.err);
    change_store(store, "UPDATE campaigns SET device = 'NVIDIA H200'");
    command_result refused = command_runf("campaign resume n --trials 2 --store %s", store);
    ck_assert_int_eq(refused.code, 1);
    ck_assert_ptr_nonnull(strstr(refused.err, "trials on a GPU have bf16 weights, not f16"));
    command_clear(&begun);
    command_clear(&refused);
}
END_TEST

START_TEST(a_dry_run_asks_the_device)
{
    const char *store = scratch_store("dry");
    command_result result = command_runf("tune %s --device cpu --dry-run --json --store %s",
                                         model_path("tales-5m"), store);
    ck_assert_msg(result.code == 0, "%s", result.err);
    mgl_json json = command_json(&result, "megalith.tune/1");
    ck_assert_double_gt(json_number(&json, "memory_needed_bytes"), 1e6);
    ck_assert_ptr_null(mgl_json_member(json.root, "device_s")); /* the CPU's clock is unknown */
    ck_assert_int_ne(access(store, F_OK), 0);
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

START_TEST(a_size_is_a_size)
{
    static const char *const sizes[] = {"4X", "G", "4GG", "0"};
    const char *store = scratch_store("sizes");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        command_result result =
            command_runf("tune %s --device none --seed 5 --trials 1 --store %s --disk %s",
                         model_path("tales-5m"), store, sizes[i]);
        ck_assert_int_eq(result.code, 1);
        ck_assert_ptr_nonnull(strstr(result.err, "not a size: "));
        command_clear(&result);
    }
}
END_TEST

/* ---- a language model ------------------------------------------------------------------------ */

#define ANSWER(config) "```json\n{\"schema\":\"megalith.proposal/1\",\"config\":" config "}\n```\n"

static command_result ask_model_with(const char *store, const char *url, const char *flags,
                                     const char *input)
{
    char line[3000];
    snprintf(line, sizeof line,
             "tune %s --device none --seed 5 --store %s --proposer chat --chat-url %s "
             "--chat-model stub %s",
             model_path("tales-5m"), store, url, flags);
    return command_run(line, input);
}

static command_result ask_model(const char *store, const char *url, const char *flags)
{
    return ask_model_with(store, url, flags, NULL);
}

/* Whether a file contains that text. */
static bool holds(const char *path, const char *text)
{
    char *bytes = NULL;
    size_t length = 0;
    if (mgl_file_read(path, 1 << 26, &bytes, &length, NULL))
        return false;
    bool found = memmem(bytes, length, text, strlen(text)) != NULL;
    mgl_free(bytes);
    return found;
}

START_TEST(a_model_is_asked)
{
    const stub_answer script[] = {
        {.status = 200, .body = stub_completion(ANSWER("{\"page_bytes\":8192}"))},
        {.status = 500, .headers = "Retry-After: 0\r\n"},
        {.status = 200, .body = stub_completion(ANSWER("{\"page_bytes\":4096}"))},
        {.status = 200, .body = stub_completion(ANSWER("{\"warps\":4}"))}};
    const char *store = scratch_store("model");
    stub_server *server = stub_start(script, 4);
    setenv("MEGALITH_CHAT_KEY", "sesame-in-the-environment", 1);
    command_result result = ask_model(store, stub_url(server), "--trials 3 --quiet");
    unsetenv("MEGALITH_CHAT_KEY");
    ck_assert_msg(result.code == 0, "%s", result.err);
    ck_assert_ptr_nonnull(strstr(result.out, "asked     a language model, "));
    ck_assert_ptr_nonnull(strstr(result.out, "1 PROPOSER_HTTP"));
    ck_assert_ptr_nonnull(
        strstr(stub_head(server, 0), "Authorization: Bearer sesame-in-the-environment"));
    command_result history = command_runf("campaign history --store %s", store);
    ck_assert_ptr_nonnull(strstr(history.out, "3 UNMEASURED chat"));
    ck_assert(holds(store, "127.0.0.1"));
    ck_assert(!holds(store, "sesame"));
    command_clear(&history);
    command_clear(&result);
    stub_stop(server);
}
END_TEST

static int count_of(const char *text, const char *part)
{
    int count = 0;
    for (const char *at = text; (at = strstr(at, part)); at += strlen(part))
        count++;
    return count;
}

/* One line is printed when the endpoint begins to fail, and one when it answers again. */
START_TEST(an_endpoint_that_fails_is_told_of_once)
{
    const stub_answer script[] = {
        {.status = 500, .headers = "Retry-After: 0\r\n"},
        {.status = 500, .headers = "Retry-After: 0\r\n"},
        {.status = 500, .headers = "Retry-After: 0\r\n"},
        {.status = 200, .body = stub_completion(ANSWER("{\"page_bytes\":8192}"))},
        {.status = 200, .body = stub_completion(ANSWER("{\"page_bytes\":4096}"))},
        {.status = 200, .body = stub_completion(ANSWER("{\"warps\":4}"))}};
    const char *store = scratch_store("fails");
    stub_server *server = stub_start(script, 6);
    command_result result = ask_model(store, stub_url(server), "--trials 3 --json");
    ck_assert_msg(result.code == 0, "%s", result.err);
    ck_assert_int_eq(count_of(result.err, "chat: PROPOSER_HTTP: "), 1);
    ck_assert_int_eq(count_of(result.err, "chat: the endpoint answers again"), 1);
    mgl_json json = command_json(&result, "megalith.tune/1");
    ck_assert_int_eq((int)json_number(&json, "chat.failed"), 3);
    ck_assert_ptr_nonnull(strstr(json_string(&json, "chat.hint"), "answered with an error"));
    mgl_json_clear(&json);
    command_clear(&result);
    stub_stop(server);
}
END_TEST

START_TEST(a_key_that_is_rejected_is_told_of)
{
    const stub_answer script[] = {{.status = 401}};
    const char *store = scratch_store("unknown_key");
    stub_server *server = stub_start(script, 1);
    command_result result = ask_model(store, stub_url(server), "--trials 1");
    ck_assert_msg(result.code == 0, "%s", result.err);
    ck_assert_int_eq(count_of(result.err, "chat: PROPOSER_AUTH: "), 1);
    ck_assert_ptr_nonnull(strstr(result.err, "check the key"));
    ck_assert_ptr_nonnull(strstr(result.out, "requests failed, most with PROPOSER_AUTH: "));
    command_clear(&result);
    stub_stop(server);
}
END_TEST

/* The background process of the campaign has the key too. */
START_TEST(a_detached_campaign_has_the_key)
{
    const stub_answer script[] = {
        {.status = 200, .body = stub_completion(ANSWER("{\"page_bytes\":8192}"))}};
    const char *store = scratch_store("detached");
    stub_server *server = stub_start(script, 1);
    setenv("MEGALITH_CHAT_KEY", "sesame-detached", 1);
    command_result result = ask_model(store, stub_url(server), "--trials 1 --detach");
    unsetenv("MEGALITH_CHAT_KEY");
    ck_assert_msg(result.code == 0, "%s", result.err);
    for (int i = 0; i < time_limit(500) && strcmp(state_of(store), "ended") != 0; i++)
        usleep(20000);
    ck_assert_str_eq(state_of(store), "ended");
    ck_assert_ptr_nonnull(strstr(stub_head(server, 0), "Authorization: Bearer sesame-detached"));
    command_clear(&result);
    stub_stop(server);
}
END_TEST

/* The same with a key from a pipe, which can be read only once. */
static void check_piped_key(const char *store, const char *flags)
{
    const stub_answer script[] = {
        {.status = 200, .body = stub_completion(ANSWER("{\"page_bytes\":8192}"))}};
    stub_server *server = stub_start(script, 1);
    setenv("MEGALITH_CHAT_KEY", "sesame-of-old", 1);
    command_result result = ask_model_with(store, stub_url(server), flags, "sesame-piped\n");
    unsetenv("MEGALITH_CHAT_KEY");
    ck_assert_msg(result.code == 0, "%s", result.err);
    for (int i = 0; i < time_limit(500) && strcmp(state_of(store), "ended") != 0; i++)
        usleep(20000);
    ck_assert_ptr_nonnull(strstr(stub_head(server, 0), "Authorization: Bearer sesame-piped"));
    command_clear(&result);
    stub_stop(server);
}

START_TEST(a_key_may_come_through_a_pipe)
{
    check_piped_key(scratch_store("piped"), "--trials 1 --quiet --chat-key-file -");
}
END_TEST

START_TEST(a_detached_campaign_has_the_key_of_a_pipe)
{
    check_piped_key(scratch_store("piped-detached"), "--trials 1 --detach --chat-key-file -");
}
END_TEST

START_TEST(an_empty_pipe_has_no_key)
{
    command_result result = ask_model_with(scratch_store("piped-none"), "http://127.0.0.1:9/v1",
                                           "--trials 1 --chat-key-file -", "");
    ck_assert_int_eq(result.code, 1);
    ck_assert_msg(strstr(result.err, "the key file is empty") != NULL, "%s", result.err);
    command_clear(&result);
}
END_TEST

START_TEST(a_budget_ends_the_asking)
{
    const stub_answer script[] = {{.status = 200, .body = stub_completion("no idea")}};
    const char *store = scratch_store("budget");
    stub_server *server = stub_start(script, 1);
    command_result result =
        ask_model(store, stub_url(server), "--trials 3 --budget-requests 2 --quiet");
    ck_assert_msg(result.code == 0, "%s", result.err);
    ck_assert_ptr_nonnull(strstr(result.out, "2 times"));
    ck_assert_ptr_nonnull(strstr(result.out, "nothing left to propose"));
    command_clear(&result);
    stub_stop(server);
}
END_TEST

START_TEST(a_prompt_is_shown_and_not_sent)
{
    const char *store = scratch_store("prompt");
    command_result result = ask_model(store, "https://example.invalid/v1/chat", "--show-prompt");
    ck_assert_msg(result.code == 0, "%s", result.err);
    ck_assert_int_eq(strncmp(result.out, "{\"model\":\"stub\"", 15), 0);
    ck_assert_ptr_null(strstr(result.out, "tests/models"));
    ck_assert_int_ne(access(store, F_OK), 0);
    command_clear(&result);
}
END_TEST

/* Flags without a permitted endpoint. */
static const struct {
    const char *flags, *message;
} refused[] = {
    {"--proposer chat", "give --chat-url and --chat-model"},
    {"--proposer random --chat-url https://a.example/v1", "applies to the proposer chat only"},
    {"--proposer chat --chat-model m --chat-url https://u:p@a.example/v1", "name or password"},
    {"--proposer chat --chat-model m --chat-url https://a.example/v1?key=1", "contains a key"},
    {"--proposer chat --chat-model m --chat-url http://a.example/v1", "in the clear"},
};

START_TEST(an_endpoint_is_checked_first)
{
    const char *store = scratch_store("refused");
    command_result result = command_runf("tune %s --device none --trials 1 --store %s %s",
                                         model_path("tales-5m"), store, refused[_i].flags);
    ck_assert_int_eq(result.code, 1);
    ck_assert_msg(strstr(result.err, refused[_i].message) != NULL, "%s", result.err);
    command_clear(&result);
}
END_TEST

/* A campaign that ended needs a limit that extends it; without one it would never end. */
START_TEST(an_ended_campaign_needs_a_limit)
{
    const char *store = scratch_store("over");
    ck_assert_int_eq(
        command_code("tune %s --device none --seed 5 --trials 2 --name over --store %s "
                     "--quiet",
                     model_path("tales-5m"), store),
        0);
    static const char *const lines[] = {"campaign resume --store %s",
                                        "campaign resume over --store %s --detach",
                                        "tune " MGL_SOURCE_DIR "/tests/models/tales-5m --device "
                                        "none --seed 5 --name over --store %s --detach"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char line[1300];
        snprintf(line, sizeof line, lines[i], store);
        command_result result = command_run(line, NULL);
        ck_assert_msg(result.code == 1, "%s: exit %d: %s", line, result.code, result.err);
        ck_assert_msg(strstr(result.err, "the campaign \"over\" ended: its 2 trials are made; to "
                                         "extend it, pass --trials N or --hours H"),
                      "%s", result.err);
        ck_assert_ptr_nonnull(strstr(result.err, "so far 2 trials"));
        command_clear(&result);
    }
    command_result more = command_runf("campaign resume --trials 3 --store %s --quiet", store);
    ck_assert_msg(more.code == 0, "%s", more.err);
    ck_assert_ptr_nonnull(strstr(more.out, "3"));
    command_clear(&more);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("campaign");
    TCase *tests = tcase_create("campaign");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_killed_campaign_is_killed);
    tcase_add_loop_test(tests, an_interrupted_campaign_is_paused, 0, 3);
    tcase_add_test(tests, nobody_waits_for_a_killed_campaign);
    tcase_add_test(tests, the_hint_continues_an_ended_campaign);
    tcase_add_test(tests, a_campaign_of_other_frozen_files_has_a_successor);
    tcase_add_test(tests, what_is_too_large_is_rejected);
    tcase_add_loop_test(tests, a_format_is_proved_and_executed, 0, 2);
    tcase_add_test(tests, a_campaign_stays_with_its_format);
    tcase_add_test(tests, a_gpu_has_one_format);
    tcase_add_test(tests, a_dry_run_asks_the_device);
    tcase_add_test(tests, a_size_is_a_size);
    tcase_add_test(tests, a_model_is_asked);
    tcase_add_test(tests, an_endpoint_that_fails_is_told_of_once);
    tcase_add_test(tests, a_key_that_is_rejected_is_told_of);
    tcase_add_test(tests, a_detached_campaign_has_the_key);
    tcase_add_test(tests, a_key_may_come_through_a_pipe);
    tcase_add_test(tests, a_detached_campaign_has_the_key_of_a_pipe);
    tcase_add_test(tests, an_empty_pipe_has_no_key);
    tcase_add_test(tests, a_budget_ends_the_asking);
    tcase_add_test(tests, a_prompt_is_shown_and_not_sent);
    tcase_add_loop_test(tests, an_endpoint_is_checked_first, 0, sizeof refused / sizeof *refused);
    tcase_add_test(tests, an_ended_campaign_needs_a_limit);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
