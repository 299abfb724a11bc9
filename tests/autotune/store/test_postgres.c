/*
 * Tests of campaigns in a PostgreSQL store: workers that claim proposals from each other, two
 * processes of which one is killed, a lost server, and passwords that are never printed. Skipped
 * without a server; see postgres_server.h. test_store.c tests what both databases share.
 */
#include "tests/autotune/search/campaign_fixture.h"
#include "tests/autotune/store/postgres_server.h"
#include "tests/autotune/store/store_support.h"

#include "autotune/store/store_query.h"
#include "autotune/store/store_share.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "tests/time_limit.h"

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TRIALS = 60, FIRST_TRIALS = 5, MOST_S = 100 };

static mgl_store *stores[2];
static mgl_store_worker *workers[2];
static mgl_campaign_record campaign; /* "one", stored */
static mgl_error err;

static void open_both(void)
{
    store_make_folder();
    for (int i = 0; i < 2; i++) {
        stores[i] = store_open(store_place());
        workers[i] = NULL;
    }
    store_add_campaign(stores[0], "one", &campaign);
    err = (mgl_error){0};
}

static void close_both(void)
{
    for (int i = 0; i < 2; i++) {
        mgl_store_leave(workers[i]);
        mgl_store_close(stores[i]);
    }
    mgl_campaign_record_clear(&campaign);
    store_remove_folder();
}

static void is_ok(mgl_status status)
{
    ck_assert_msg(!status, "%s: %s", err.where, err.message);
}

static void join_both(void)
{
    for (int i = 0; i < 2; i++)
        is_ok(mgl_store_join(stores[i], campaign.id, "NVIDIA H200", i ? "GPU-1" : "GPU-0",
                             &workers[i], &err));
}

static int64_t take(int worker, int64_t most)
{
    int64_t number = -1;
    is_ok(mgl_store_take_number(workers[worker], most, &number, &err));
    return number;
}

static mgl_status add(int worker, int64_t number, mgl_outcome *outcome, int64_t against)
{
    mgl_trial trial;
    store_fill_trial(campaign.id, number, 2, &trial);
    trial.verdict.outcome = *outcome;
    trial.against = against;
    mgl_status status = mgl_store_add_trial(stores[worker], &trial, &err);
    *outcome = trial.verdict.outcome;
    mgl_trial_clear(&trial);
    return status;
}

static void run_sql(const char *sql)
{
    is_ok(mgl_store_execute(stores[0], sql, &err));
}

/* ---- trial numbers --------------------------------------------------------------------------- */

START_TEST(two_workers_take_different_numbers)
{
    join_both();
    ck_assert_int_eq(take(0, 0), 1);
    ck_assert_int_eq(take(1, 0), 2);
    ck_assert_int_eq(take(0, 2), 0);
    ck_assert_int_eq(take(0, 3), 3);
}
END_TEST

START_TEST(what_a_worker_leaves_is_taken_first)
{
    join_both();
    ck_assert_int_eq(take(0, 0), 1);
    ck_assert_int_eq(take(1, 0), 2);
    mgl_store_leave(workers[0]);
    workers[0] = NULL;
    ck_assert_int_eq(take(1, 0), 1);
    ck_assert_int_eq(take(1, 0), 3);
}
END_TEST

START_TEST(silent_worker_loses_its_trial)
{
    mgl_outcome outcome = MGL_OUTCOME_NO_GAIN;
    join_both();
    ck_assert_int_eq(take(0, 0), 1);
    run_sql("UPDATE workers SET until = 1 WHERE device_uuid = 'GPU-0'");
    ck_assert_int_eq(take(1, 0), 1);
    ck_assert_int_eq(add(0, 1, &outcome, 0), MGL_USAGE);
    ck_assert_int_eq(take(0, 0), 2); /* it continues under another id */
    is_ok(add(1, 1, &outcome, 0));
    is_ok(add(0, 2, &outcome, 0));
    ck_assert_int_eq(store_count_whole(stores[0], campaign.id, 2), 2);
}
END_TEST

START_TEST(worker_whose_process_ended_is_removed_at_once)
{
    int64_t count = -1;
    char sql[100];
    join_both();
    ck_assert_int_eq(take(0, 0), 1);
    pid_t child = fork();
    if (!child)
        _exit(0);
    waitpid(child, NULL, 0);
    snprintf(sql, sizeof sql, "UPDATE workers SET pid = %ld WHERE device_uuid = 'GPU-0'",
             (long)child);
    run_sql(sql);
    is_ok(mgl_store_count_workers(stores[1], campaign.id, &count, &err));
    ck_assert_int_eq(count, 1);
    ck_assert_int_eq(take(1, 0), 1);
}
END_TEST

START_TEST(worker_of_another_machine_is_not_looked_for)
{
    join_both();
    ck_assert_int_eq(take(0, 0), 1);
    run_sql("UPDATE workers SET pid = 2147483647, boot = 'elsewhere' WHERE device_uuid = 'GPU-0'");
    ck_assert_int_eq(take(1, 0), 2);
}
END_TEST

START_TEST(submission_goes_to_one_worker)
{
    int64_t id;
    bool found = false;
    mgl_submission s;
    join_both();
    is_ok(mgl_store_add_submission(stores[0], campaign.id, "{}", "submit", &id, &err));
    int64_t one = take(0, 0), other = take(1, 0);
    is_ok(mgl_store_take_submission(workers[0], one, &found, &s, &err));
    ck_assert(found);
    ck_assert_int_eq(s.id, id);
    mgl_submission_clear(&s);
    is_ok(mgl_store_take_submission(workers[1], other, &found, &s, &err));
    ck_assert(!found);
    mgl_store_leave(workers[0]);
    workers[0] = NULL;
    is_ok(mgl_store_take_submission(workers[1], other, &found, &s, &err));
    ck_assert(found); /* the submission is available again */
    mgl_submission_clear(&s);
}
END_TEST

START_TEST(gain_over_an_earlier_incumbent_is_not_kept)
{
    mgl_outcome kept = MGL_OUTCOME_OK, late = MGL_OUTCOME_OK;
    mgl_campaign_record found;
    mgl_trial trial;
    join_both();
    ck_assert_int_eq(take(0, 0), 1);
    ck_assert_int_eq(take(1, 0), 2);
    is_ok(add(1, 2, &kept, 0));
    is_ok(add(0, 1, &late, 0));
    ck_assert_int_eq(kept, MGL_OUTCOME_OK);
    ck_assert_int_eq(late, MGL_OUTCOME_NO_GAIN);
    is_ok(mgl_store_get_trial(stores[0], campaign.id, 1, false, &trial, &err));
    ck_assert_ptr_nonnull(
        strstr(trial.verdict.diagnostic, "the incumbent changed meanwhile: it is trial 2"));
    is_ok(mgl_store_find_campaign(stores[0], "one", &found, &err));
    ck_assert_int_eq(found.incumbent, 2);
    mgl_campaign_record_clear(&found);
    mgl_trial_clear(&trial);
}
END_TEST

/* Callback: another worker makes and keeps trial 2. */
static void keep_another(void *user, const mgl_campaign_event *event)
{
    fixture *f = user;
    mgl_trial trial;
    on_event(user, event);
    if (strcmp(event->kind, "trial") != 0 || event->trial->number != 1)
        return;
    is_ok(mgl_store_join(stores[1], f->tune.record.id, "none", "", &workers[1], &err));
    int64_t number = take(1, 0);
    store_fill_trial(f->tune.record.id, number, 2, &trial);
    mgl_proposal_clear(&trial.proposal);
    trial.proposal.config = event->trial->proposal.config;
    memcpy(trial.digest, event->trial->digest, sizeof trial.digest);
    trial.verdict.outcome = MGL_OUTCOME_OK;
    trial.control = false;
    is_ok(mgl_store_add_trial(stores[1], &trial, &err));
    mgl_trial_clear(&trial);
    mgl_store_leave(workers[1]);
    workers[1] = NULL;
}

/* Each is slower than the one before, because an equally fast and simpler program would be kept. */
START_TEST(incumbent_of_another_worker_goes_into_the_runner)
{
    static const runner_script slower[] = {{.gain = -0.1}, {.gain = -0.3}, {.gain = -0.5}};
    fixture f;
    set_up(&f, "shared");
    f.runner.script = slower;
    f.runner.script_count = 3;
    f.proposer.draws = true;
    f.options.on_event = keep_another;
    mgl_free(f.tune.record.device);
    f.tune.record.device = mgl_strdup("scripted"); /* the name that the scripted runner gives */
    must(run(&f, 4), &f.err);
    ck_assert_int_eq(f.tune.record.incumbent, 2);
    ck_assert_int_eq(f.runner.starts, 2);
    ck_assert_int_eq(f.proposer.told, 4);
    for (int64_t number = 1; number <= 4; number++)
        outcome_of(&f, number);
    tear_down(&f);
}
END_TEST

/* Callback: another worker's final check finds trial 1 wrong. */
static void quarantine_it(void *user, const mgl_campaign_event *event)
{
    static const mgl_trial_verdict wrong = {.outcome = MGL_OUTCOME_MODEL_MISMATCH,
                                            .diagnostic = "another token"};
    fixture *f = user;
    on_event(user, event);
    if (event->trial && event->trial->number == 2)
        is_ok(mgl_store_quarantine(stores[1], f->tune.record.id, 1, &wrong, &err));
}

START_TEST(worker_steps_back_from_what_another_one_quarantined)
{
    static const runner_script faster[] = {{.gain = 0.05}, {.gain = 0}};
    fixture f;
    set_up(&f, "stepping");
    f.runner.script = faster;
    f.runner.script_count = 2;
    f.proposer.list = proposals;
    f.proposer.count = PROPOSALS;
    f.options.on_event = quarantine_it;
    mgl_free(f.tune.record.device);
    f.tune.record.device = mgl_strdup("scripted");
    must(run(&f, 4), &f.err);
    ck_assert_str_eq(f.tune.record.state, "running"); /* with other proposers */
    ck_assert_int_eq(f.tune.record.trials, 2);
    set_up_again(&f);
    f.proposer.list = proposals;
    f.proposer.count = PROPOSALS;
    must(run(&f, 4), &f.err);
    ck_assert_str_eq(f.tune.record.state, "ended");
    ck_assert_int_eq(f.tune.record.incumbent, 0);
    ck_assert_int_eq(f.proposer.outcomes[0], MGL_OUTCOME_MODEL_MISMATCH);
    ck_assert_int_eq(outcome_of(&f, 4), MGL_OUTCOME_NO_GAIN);
    tear_down(&f);
}
END_TEST

START_TEST(device_of_another_kind_is_rejected)
{
    fixture f;
    set_up(&f, "kinds");
    ck_assert_int_eq(run(&f, 4), MGL_USAGE);
    ck_assert_ptr_nonnull(strstr(f.err.message, "their times cannot be compared"));
    ck_assert_int_eq(f.tune.record.trials, 0);
    tear_down(&f);
}
END_TEST

/* ---- passwords ------------------------------------------------------------------------------- */

START_TEST(no_error_repeats_a_password)
{
    static const char *const urls[] = {
        "postgresql://user:s3cret@/none?host=/nowhere", /* the first two are URLs */
        "postgresql://user:s3cret?x@127.0.0.1:1/none",
        "postgresql://user:p@s3cret@host/none",
        "postgresql://user:s3cret/x@host/none",
        "postgresql://user:s3cret%zz@host/none",
        "postgresql://[s3cret/none",
        "postgres://host/none?port=s3cret",
    };
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        mgl_store *store;
        mgl_status status = mgl_store_open(urls[i], true, &store, &err);
        ck_assert_int_eq(status, i < 2 ? MGL_SYSTEM : MGL_USAGE);
        ck_assert_ptr_null(strstr(err.message, "s3cret"));
        ck_assert_ptr_null(strstr(err.where, "s3cret"));
    }
}
END_TEST

START_TEST(store_is_named_by_host_and_database)
{
    mgl_store *store;
    char url[400];
    snprintf(url, sizeof url, "%s&password=s3cret", server_url());
    is_ok(mgl_store_open(url, false, &store, &err));
    ck_assert_int_eq(strncmp(mgl_store_path(store), "postgresql://", 13), 0);
    ck_assert_ptr_null(strstr(mgl_store_path(store), "s3cret"));
    ck_assert_ptr_null(strstr(mgl_store_beside(store), "s3cret"));
    ck_assert_str_eq(mgl_store_url(store), url);
    mgl_store_close(store);
}
END_TEST

START_TEST(store_that_is_only_read_is_not_made)
{
    mgl_store *store;
    run_sql("DROP SCHEMA megalith CASCADE");
    ck_assert_int_eq(mgl_store_open(server_url(), false, &store, &err), MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "is empty"));
}
END_TEST

START_TEST(newer_store_is_rejected)
{
    mgl_store *store;
    run_sql("UPDATE about SET version = 99");
    ck_assert_int_eq(mgl_store_open(server_url(), true, &store, &err), MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "newer Megalith"));
    char sql[60];
    snprintf(sql, sizeof sql, "UPDATE about SET version = %d", MGL_STORE_VERSION);
    run_sql(sql);
}
END_TEST

/* ---- processes ------------------------------------------------------------------------------- */

static pid_t start_tune(const char *log)
{
    char trials[20];
    snprintf(trials, sizeof trials, "%d", TRIALS);
    pid_t child = fork();
    if (child)
        return child;
    int out = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (out < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0)
        _exit(126);
    execl(MGL_BINARY_DIR "/megalith", "megalith", "tune", MGL_SOURCE_DIR "/tests/models/tales-5m",
          "--device", "none", "--trials", trials, "--seed", "7", "--name", "two", "--proposer",
          "random", "--store", server_url(), NULL);
    _exit(127);
}

static int64_t count_rows(const char *sql)
{
    int64_t count = 0;
    mgl_query q = mgl_query_open(stores[0], sql, &err);
    if (mgl_query_step(&q))
        count = mgl_query_get_int(&q, 0);
    is_ok(mgl_query_close(&q));
    return count;
}

#define MADE                                                                                       \
    "SELECT count(*) FROM trials WHERE campaign = (SELECT id FROM campaigns WHERE name = 'two')"

static void await_trials(int64_t wanted)
{
    double end = mgl_clock_s() + time_limit(MOST_S);
    while (count_rows(MADE) < wanted && mgl_clock_s() < end)
        nanosleep(&(struct timespec){.tv_nsec = 20 * 1000 * 1000}, NULL);
    ck_assert_int_ge(count_rows(MADE), wanted);
}

static int await_end(pid_t child)
{
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return status;
}

START_TEST(two_workers_of_which_one_is_killed_make_every_trial)
{
    pid_t one = start_tune(store_path("one.log")), other = start_tune(store_path("other.log"));
    await_trials(FIRST_TRIALS);
    kill(one, SIGKILL);
    int killed = await_end(one), ended = await_end(other);
    ck_assert(WIFSIGNALED(killed));
    ck_assert(WIFEXITED(ended));
    ck_assert_int_eq(WEXITSTATUS(ended), 0);
    ck_assert_int_eq(count_rows(MADE), TRIALS);
    ck_assert_int_eq(count_rows("SELECT max(number) FROM trials"), TRIALS);
    ck_assert_int_eq(count_rows("SELECT count(*) FROM claims"), 0);
    ck_assert_int_eq(
        count_rows("SELECT count(*) FROM campaigns WHERE name = 'two' AND state = 'ended'"), 1);
}
END_TEST

/* Simulates a reboot of the worker's and the server's machine. The worker's process id now belongs
 * to another process, and the boot id is old (or, after a restart of a container only,
 * unchanged). */
static const char *const boots[] = {"boot = '00000000-0000-4000-8000-000000000000 pid:[1]', ", ""};

static void reboot(pid_t worker, const char *boot)
{
    char sql[300];
    kill(worker, SIGKILL);
    server_kill();
    ck_assert(WIFSIGNALED(await_end(worker)));
    server_restart();
    mgl_store_close(stores[0]);
    stores[0] = store_open(store_place());
    ck_assert_int_eq(count_rows("SELECT count(*) FROM workers"), 1);
    snprintf(sql, sizeof sql, /* the last beat was 28 s ago */
             "UPDATE workers SET %s pid = %ld, until ="
             " CAST(extract(epoch FROM clock_timestamp()) AS DOUBLE PRECISION) + 2",
             boot, (long)getpid());
    run_sql(sql);
}

START_TEST(after_a_reboot_the_same_command_makes_every_trial)
{
    char others[80];
    pid_t child = start_tune(store_path("before.log"));
    await_trials(FIRST_TRIALS);
    reboot(child, boots[_i]);
    int64_t before = count_rows(MADE);
    ck_assert_int_ge(before, FIRST_TRIALS);
    ck_assert_int_lt(before, TRIALS);
    int ended = await_end(start_tune(store_path("after.log")));
    ck_assert(WIFEXITED(ended));
    ck_assert_int_eq(WEXITSTATUS(ended), 0);
    ck_assert_int_eq(count_rows(MADE), TRIALS);
    ck_assert_int_eq(count_rows("SELECT count(DISTINCT number) FROM trials"), TRIALS);
    ck_assert_int_eq(count_rows("SELECT max(number) FROM trials"), TRIALS);
    ck_assert_int_eq(count_rows("SELECT count(*) FROM claims"), 0);
    snprintf(others, sizeof others, "SELECT count(*) FROM workers WHERE pid <> %ld",
             (long)getpid()); /* the earlier worker's lease may not have expired yet */
    ck_assert_int_eq(count_rows(others), 0);
}
END_TEST

START_TEST(server_that_goes_away_ends_a_worker_with_a_sentence)
{
    char *said = NULL;
    size_t length = 0;
    pid_t child = start_tune(store_path("lost.log"));
    await_trials(FIRST_TRIALS);
    server_kill();
    int ended = await_end(child);
    ck_assert(WIFEXITED(ended));
    ck_assert_int_eq(WEXITSTATUS(ended), 2);
    is_ok(mgl_file_read(store_path("lost.log"), 1 << 20, &said, &length, &err));
    bool lost = strstr(said, "the connection to the server was lost") != NULL;
    ck_assert_msg(lost, "%s", said);
    mgl_free(said);
    server_restart();
    mgl_store_close(stores[0]);
    stores[0] = store_open(store_place());
    ck_assert_int_ge(count_rows(MADE), FIRST_TRIALS);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        two_workers_take_different_numbers,
        what_a_worker_leaves_is_taken_first,
        silent_worker_loses_its_trial,
        worker_whose_process_ended_is_removed_at_once,
        worker_of_another_machine_is_not_looked_for,
        submission_goes_to_one_worker,
        gain_over_an_earlier_incumbent_is_not_kept,
        incumbent_of_another_worker_goes_into_the_runner,
        worker_steps_back_from_what_another_one_quarantined,
        device_of_another_kind_is_rejected,
        no_error_repeats_a_password,
        store_is_named_by_host_and_database,
        store_that_is_only_read_is_not_made,
        newer_store_is_rejected,
        two_workers_of_which_one_is_killed_make_every_trial,
        server_that_goes_away_ends_a_worker_with_a_sentence,
    };
    if (!server_start())
        return 77;
    store_use_server(server_url());
    Suite *suite = suite_create("postgres");
    TCase *cases = tcase_create("postgres");
    tcase_set_timeout(cases, MOST_S + 20);
    tcase_add_checked_fixture(cases, open_both, close_both);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tcase_add_test(cases, tests[i]);
    tcase_add_loop_test(cases, after_a_reboot_the_same_command_makes_every_trial, 0,
                        sizeof boots / sizeof *boots);
    suite_add_tcase(suite, cases);
    SRunner *suite_runner = srunner_create(suite);
    srunner_set_fork_status(suite_runner, CK_NOFORK); /* the server is this process's child */
    srunner_run_all(suite_runner, CK_NORMAL);
    int failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    server_stop();
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
