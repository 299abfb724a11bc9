/* Campaigns that come to other ends than their own: killed, and asked of a language model. */
#include "command.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PROPOSAL "{\"schema\":\"megalith.proposal/1\",\"config\":{\"page_bytes\":8192}}"

/* A store of its own for each test. */
static const char *store_of(const char *name)
{
    static char path[300];
    snprintf(path, sizeof path, "%s/%s.db", scratch_folder(), name);
    return path;
}

/* The state that `campaign status` tells; of static storage. */
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
    for (int i = 0; i < 500 && strcmp(state_of(store), "running") != 0; i++)
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
    const char *store = store_of("killed");
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

START_TEST(nobody_waits_for_a_killed_campaign)
{
    const char *store = store_of("alone");
    command running = start(store);
    kill(running.pid, SIGKILL);
    command_result ended = command_end(&running);
    command_result result = command_runf("campaign submit %s --wait --store %s",
                                         scratch_file("second.json", PROPOSAL), store);
    ck_assert_int_eq(result.code, 13);
    ck_assert_ptr_nonnull(strstr(result.out, "nobody runs the campaign"));
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

int main(void)
{
    Suite *suite = suite_create("campaign");
    TCase *tests = tcase_create("campaign");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_killed_campaign_is_killed);
    tcase_add_test(tests, nobody_waits_for_a_killed_campaign);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
