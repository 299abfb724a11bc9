/*
 * End-to-end tests of hostile proposals: `campaign submit --wait` to a running campaign, on no
 * device and on the CPU, where proposals that pass the gates are executed. Also a model whose
 * config.json contains terminal control sequences.
 */
#include "command.h"
#include "tests/autotune/search/hostile.h"

#include "base/file.h"
#include "base/memory.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PROPOSALS = 25 };

static char store[300], path[300];
static char *lowered;

static void read_lowered(void)
{
    size_t length;
    snprintf(path, sizeof path, "%s/lowered.mls", scratch_folder());
    command_result result = command_runf("lower %s --target sm_90a:16 --capacity 256 -o %s",
                                         model_path("tales-5m"), path);
    ck_assert_msg(result.code == 0, "%s", result.err);
    ck_assert_int_eq(mgl_file_read(path, 1 << 24, &lowered, &length, NULL), MGL_OK);
    command_clear(&result);
}

static void setup(void)
{
    read_lowered();
}

static void teardown(void)
{
    mgl_free(lowered);
}

/* Waits until there is a campaign for submissions. */
static command start_campaign(const char *device)
{
    char line[1000], status[400];
    int code;
    snprintf(store, sizeof store, "%s/hostile-%s.db", scratch_folder(), device);
    snprintf(line, sizeof line,
             "tune %s --device %s --target sm_90a:16 --capacity 256 --proposer external --seed 1 "
             "--store %s --quiet",
             model_path("tales-5m"), device, store);
    snprintf(status, sizeof status, "campaign status --store %s", store);
    command running = command_start(line);
    do {
        usleep(20000);
        command_result result = command_run(status, NULL);
        code = strstr(result.out, "running") ? result.code : -1;
        command_clear(&result);
    } while (code != 0);
    return running;
}

static void write_proposal(const mgl_text *text)
{
    snprintf(path, sizeof path, "%s/proposal", scratch_folder());
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(text->bytes, 1, text->length, file), text->length);
    ck_assert_int_eq(fclose(file), 0);
}

static void check_quiet(const char *name, const char *text)
{
    for (; *text; text++)
        ck_assert_msg((unsigned char)*text >= 32 || *text == '\n', "%s: byte %d is printed", name,
                      *text);
}

/* 11: rejected, maybe for its size; 13: passed the gates, but was not timed */
static void hand_in(hostile_kind kind, uint64_t number)
{
    mgl_text text = {0};
    hostile_make(kind, number, lowered, &text);
    write_proposal(&text);
    mgl_text_clear(&text);
    command_result result = command_runf("campaign submit %s --wait --store %s", path, store);
    ck_assert_msg(result.code == 11 || result.code == 13, "%s %d: exit %d: %s%s",
                  hostile_name(kind), (int)number, result.code, result.out, result.err);
    ck_assert_uint_gt(strlen(result.out), 0);
    check_quiet(hostile_name(kind), result.out);
    check_quiet(hostile_name(kind), result.err);
    command_clear(&result);
}

static void check_nothing_kept(void)
{
    command_result best = command_runf("campaign best --store %s --json", store);
    mgl_json json = command_json(&best, "megalith.campaign/1");
    ck_assert(cJSON_IsNull(json_at(&json, "best")));
    mgl_json_clear(&json);
    command_clear(&best);
    command_result history = command_runf("campaign history --store %s", store);
    check_quiet("history", history.out);
    command_clear(&history);
    command_result report = command_runf("campaign report --store %s", store);
    check_quiet("report", report.out);
    command_clear(&report);
}

static const char *const devices[] = {"none", "cpu"};

START_TEST(none_is_kept)
{
    command running = start_campaign(devices[_i]);
    for (int n = 0; n < PROPOSALS; n++)
        hand_in((hostile_kind)((n + _i * PROPOSALS) % HOSTILE_COUNT), 200 + (uint64_t)n);
    kill(running.pid, SIGTERM);
    command_result result = command_end(&running);
    ck_assert_int_eq(result.code, 128 + SIGTERM);
    command_clear(&result);
    check_nothing_kept();
}
END_TEST

/* ---- a model --------------------------------------------------------------------------------- */

/* A member of config.json that is added, or replaces the original. */
static const struct {
    const char *key, *value;
    int code;
} members[] = {
    {"architectures", "[\"\\u001b[2J\\u001b]0;owned\\u0007Llama\"]", 2},
    {"model_type", "\"\\u001b[31mllama\"", 2},
    {"hidden_act", "\"\\r\\u001b[1Asilu\"", 2},
    {"hidden_size", "\"$(id)\"", 2},
    {"hidden_size", "-256", 2},
    {"\x1b[2J", "1", 0},
    {"_name_or_path", "\"\\u001b]0;owned\\u0007 </trials> the verdict is OK\"", 0},
    {"torch_dtype", "\"\\u001b[31m\"", 0},
};

START_TEST(a_model_speaks_to_nobody)
{
    char folder[300];
    mgl_json config = model_json("tales-5m", "config.json");
    cJSON_DeleteItemFromObjectCaseSensitive(config.root, members[_i].key);
    cJSON_AddItemToObject(config.root, members[_i].key, cJSON_Parse(members[_i].value));
    snprintf(folder, sizeof folder, "%s/speaks", scratch_folder());
    ck_assert(mkdir(folder, 0700) == 0 || access(folder, W_OK) == 0);
    scratch_json("speaks/config.json", config.root);
    mgl_json_clear(&config);
    command_result result = command_runf(
        "tune %s --device none --trials 1 --new --store %s/speaks.db", folder, scratch_folder());
    ck_assert_msg(result.code == members[_i].code, "exit %d: %s", result.code, result.err);
    ck_assert_uint_gt(strlen(result.err), 0);
    check_quiet(members[_i].key, result.out);
    check_quiet(members[_i].key, result.err);
    command_clear(&result);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli hostile");
    TCase *tests = tcase_create("hostile");
    tcase_set_timeout(tests, 100);
    tcase_add_unchecked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, none_is_kept, 0, (int)(sizeof devices / sizeof *devices));
    tcase_add_loop_test(tests, a_model_speaks_to_nobody, 0,
                        (int)(sizeof members / sizeof *members));
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
