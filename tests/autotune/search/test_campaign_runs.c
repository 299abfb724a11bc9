/*
 * Tests of the control trials of a campaign, of failures of the runner, and of how a run ends and
 * resumes.
 */
#include "autotune/answers/answer.h"
#include "autotune/report/report.h"
#include "tests/autotune/search/campaign_fixture.h"
#include "tests/autotune/store/store_support.h"

#include <check.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

/* ---- controls -------------------------------------------------------------------------------- */

START_TEST(every_tenth_trial_is_a_control)
{
    fixture f;
    set_up(&f, "controls");
    f.proposer.draws = true;
    must(run(&f, 20), &f.err);
    for (int64_t number = 1; number <= 20; number++) {
        mgl_trial trial = trial_of(&f, number);
        ck_assert_int_eq(trial.control, number % 10 == 0);
        if (trial.control)
            ck_assert_int_eq(trial.verdict.outcome, MGL_OUTCOME_NO_GAIN);
        mgl_trial_clear(&trial);
    }
    ck_assert_int_eq(f.proposer.told, 18);
    tear_down(&f);
}
END_TEST

START_TEST(a_machine_that_finds_gains_in_nothing_is_unfit)
{
    fixture f;
    set_up(&f, "unfit");
    f.runner.bad_controls = 100;
    f.proposer.draws = true;
    ck_assert_int_eq(run(&f, 20), MGL_DEVICE);
    ck_assert_ptr_nonnull(strstr(f.err.message, "the machine cannot measure reliably"));
    ck_assert_int_eq(f.tune.record.trials, 0);
    ck_assert_str_eq(f.tune.record.state, "paused");
    tear_down(&f);
}
END_TEST

/* Another process uses the device from trial 2 on, during two controls. */
static void compete(void *user, const mgl_campaign_event *event)
{
    fixture *f = user;
    on_event(user, event);
    if (event->trial && event->trial->number == 2)
        f->runner.competing = 3;
}

START_TEST(another_process_pauses_it_and_is_no_verdict)
{
    static const mgl_outcome outcomes[] = {MGL_OUTCOME_UNMEASURED, MGL_OUTCOME_SUSPICIOUS,
                                           MGL_OUTCOME_SUSPICIOUS, MGL_OUTCOME_NO_GAIN};
    fixture f;
    set_up(&f, "competitor");
    f.options.on_event = compete;
    f.proposer.list = proposals;
    f.proposer.count = PROPOSALS;
    must(run(&f, 8), &f.err);
    for (int i = 0; i < 4; i++) {
        mgl_trial trial = trial_of(&f, 3 + i);
        ck_assert_msg(trial.verdict.outcome == outcomes[i], "%d: %s", 3 + i,
                      trial.verdict.diagnostic);
        ck_assert_int_eq(trial.control, i > 0);
        ck_assert(trial.control || trial.p_value < 0);
        mgl_trial_clear(&trial);
    }
    mgl_trial after = trial_of(&f, 7);
    ck_assert(!after.control);
    ck_assert_int_eq(count_events(&f, 'p'), 1);
    mgl_trial_clear(&after);
    tear_down(&f);
}
END_TEST

static mgl_status count_costs(void *user, int64_t unix_s, const char *kind, const char *text,
                              mgl_error *err)
{
    (void)unix_s, (void)err;
    *(int *)user += !strcmp(kind, "costs") && strstr(text, "are not known") != NULL;
    return MGL_OK;
}

START_TEST(a_device_without_costs_is_told_of_once)
{
    for (int known = 0; known < 2; known++) {
        fixture f;
        int told = 0;
        set_up(&f, known ? "with costs" : "without costs");
        f.tune.subject.has_costs = known;
        f.proposer.draws = true;
        must(run(&f, 2), &f.err);
        must(run(&f, 4), &f.err);
        must(mgl_store_each_event(f.store, f.tune.record.id, count_costs, &told, &f.err), &f.err);
        ck_assert_int_eq(told, !known);
        tear_down(&f);
    }
}
END_TEST

/* A bad control is repeated at once. If the repeat is good, the bad one has no effect. */
static void spoil_once(void *user, const mgl_campaign_event *event)
{
    fixture *f = user;
    on_event(user, event);
    if (event->trial && event->trial->number == 9)
        f->runner.bad_controls = 1;
}

START_TEST(one_bad_control_is_repeated)
{
    fixture f;
    set_up(&f, "one bad");
    f.options.on_event = spoil_once;
    f.proposer.draws = true;
    must(run(&f, 12), &f.err);
    ck_assert_int_eq(outcome_of(&f, 10), MGL_OUTCOME_SUSPICIOUS);
    ck_assert_int_eq(outcome_of(&f, 11), MGL_OUTCOME_NO_GAIN);
    ck_assert_int_eq(f.proposer.told, 10);
    ck_assert_int_eq(count_events(&f, 'p'), 0);
    tear_down(&f);
}
END_TEST

/* After a second bad control, no trial runs until a control is good. */
static void spoil(void *user, const mgl_campaign_event *event)
{
    fixture *f = user;
    on_event(user, event);
    if (event->trial && event->trial->number == 9)
        f->runner.bad_controls = 3;
}

START_TEST(two_bad_controls_stop_keeping)
{
    fixture f;
    set_up(&f, "bad controls");
    f.runner.by_digest = true;
    f.options.on_event = spoil;
    f.proposer.draws = true;
    must(run(&f, 15), &f.err);
    for (int64_t number = 10; number <= 13; number++) {
        mgl_trial trial = trial_of(&f, number);
        ck_assert(trial.control);
        ck_assert_int_eq(trial.verdict.outcome,
                         number == 13 ? MGL_OUTCOME_NO_GAIN : MGL_OUTCOME_SUSPICIOUS);
        mgl_trial_clear(&trial);
    }
    mgl_trial after = trial_of(&f, 14);
    ck_assert(!after.control);
    ck_assert_int_eq(count_events(&f, 'p'), 1);
    mgl_trial_clear(&after);
    tear_down(&f);
}
END_TEST

/* Submits a program that distributes the first steps of `count` layers over fewer queues. It is
 * simpler than that of `count` - 1. */
static void submit_simpler(fixture *f, int count)
{
    mgl_text text = {0};
    mgl_text_put(&text, "{\"schema\":\"megalith.proposal/1\",\"moves\":[");
    for (int i = 0; i < count; i++)
        mgl_text_format(&text, "%s\"queues layer=%d step=gate_up from=0 to=%d\"", i ? "," : "",
                        i / 2, i % 2 ? 8 : 16);
    mgl_text_put(&text, "]}");
    submit(f, text.bytes);
    mgl_text_clear(&text);
}

/* Each simpler program is as fast as the one before within the noise. Their total loss is limited,
 * even if the campaign is killed in between. */
START_TEST(simpler_programs_do_not_add_up_to_a_loss)
{
    static const runner_script gains[] = {{.gain = -0.001}, {.gain = -0.002}, {.gain = -0.003}};
    fixture f;
    set_up(&f, "simpler");
    f.runner.script = gains;
    f.runner.script_count = 3;
    f.runner.noise = 0.003;
    for (int i = 0; i < 2; i++)
        submit_simpler(&f, i + 1);
    must(run(&f, 2), &f.err);
    ck_assert_int_eq(outcome_of(&f, 1), MGL_OUTCOME_OK);
    ck_assert_int_eq(outcome_of(&f, 2), MGL_OUTCOME_OK);
    set_up_again(&f); /* the runner measures the incumbent as fast as the default */
    f.runner.script = gains;
    f.runner.script_count = 3;
    f.runner.noise = 0.003;
    for (int i = 2; i < 5; i++)
        submit_simpler(&f, i + 1);
    must(run(&f, 5), &f.err);
    int64_t number = 3;
    while (number < 5 && outcome_of(&f, number) == MGL_OUTCOME_OK)
        number++;
    mgl_trial trial = trial_of(&f, number);
    ck_assert_int_eq(trial.verdict.outcome, MGL_OUTCOME_NO_GAIN);
    ck_assert_msg(strstr(trial.verdict.diagnostic, "until one gains"), "%s",
                  trial.verdict.diagnostic);
    mgl_trial_clear(&trial);
    tear_down(&f);
}
END_TEST

START_TEST(hanging_candidates_make_the_incumbent_show_itself)
{
    static const runner_script hangs[] = {
        {.check = MGL_OUTCOME_HANG}, {.check = MGL_OUTCOME_HANG}, {.check = MGL_OUTCOME_HANG}};
    fixture f;
    set_up(&f, "suspects");
    f.runner.script = hangs;
    f.runner.script_count = 3;
    f.proposer.list = proposals;
    f.proposer.count = 5;
    must(run(&f, 5), &f.err);
    mgl_trial fourth = trial_of(&f, 4);
    ck_assert(fourth.control);
    mgl_trial_clear(&fourth);
    tear_down(&f);
}
END_TEST

/* ---- failures of the runner itself ----------------------------------------------------------- */

START_TEST(a_runner_that_fails_once_is_started_again)
{
    static const runner_script once[] = {{.failure = MGL_DEVICE}};
    fixture f;
    set_up(&f, "fails once");
    f.runner.script = once;
    f.runner.script_count = 1;
    f.proposer.list = proposals;
    f.proposer.count = 3;
    must(run(&f, 4), &f.err);
    ck_assert_int_eq(f.runner.starts, 2);
    ck_assert_int_eq(outcome_of(&f, 1), MGL_OUTCOME_UNMEASURED);
    ck_assert_int_eq(outcome_of(&f, 3), MGL_OUTCOME_NO_GAIN);
    ck_assert_int_eq(count_events(&f, 'e'), 2); /* the error, and the end */
    tear_down(&f);
}
END_TEST

static void break_runner(void *user, const mgl_campaign_event *event)
{
    fixture *f = user;
    on_event(user, event);
    if (event->trial && event->trial->number == 2)
        f->runner.broken = true;
}

START_TEST(a_runner_that_keeps_failing_pauses_the_campaign)
{
    fixture f;
    set_up(&f, "broken");
    f.options.on_event = break_runner;
    f.proposer.list = proposals;
    f.proposer.count = 8;
    ck_assert_int_eq(run(&f, 8), MGL_DEVICE);
    ck_assert_ptr_nonnull(strstr(f.err.message, "failed 3 consecutive times"));
    ck_assert_str_eq(f.tune.record.state, "paused");
    ck_assert_ptr_nonnull(strstr(f.tune.record.reason, "fell off the bus"));
    ck_assert_int_eq(f.tune.record.trials, 2);
    tear_down(&f);
}
END_TEST

static void hang_incumbent(void *user, const mgl_campaign_event *event)
{
    fixture *f = user;
    on_event(user, event);
    if (event->trial && event->trial->number == 9)
        f->runner.failing_controls = 100;
}

START_TEST(an_incumbent_that_does_not_end_is_the_runners_failure)
{
    fixture f;
    set_up(&f, "hanging incumbent");
    f.options.on_event = hang_incumbent;
    f.proposer.draws = true;
    ck_assert_int_eq(run(&f, 30), MGL_DEVICE);
    ck_assert_ptr_nonnull(strstr(f.err.message, "the incumbent itself: HANG"));
    tear_down(&f);
}
END_TEST

/* After a run that ended between the store and the runner, the next run continues from the store.
 */
START_TEST(the_store_is_the_truth)
{
    static const runner_script gain[] = {{.gain = 0.05}};
    fixture f;
    set_up(&f, "torn");
    f.runner.script = gain;
    f.runner.script_count = 1;
    f.runner.fails_promotion = true;
    f.proposer.list = proposals;
    f.proposer.count = 2;
    ck_assert_int_eq(run(&f, 2), MGL_DEVICE);
    ck_assert_int_eq(f.tune.record.incumbent, 1);
    mgl_trial kept = trial_of(&f, 1);
    f.runner.broken = false;
    memset(f.runner.incumbent, 0, sizeof f.runner.incumbent);
    scripted_proposer_init(&f.proposer, &f.tune.subject);
    f.proposer.list = proposals;
    f.proposer.count = 2;
    must(run(&f, 2), &f.err);
    ck_assert_str_eq(f.runner.incumbent, kept.digest);
    ck_assert_int_eq(f.tune.record.trials, 2);
    mgl_trial_clear(&kept);
    tear_down(&f);
}
END_TEST

/* ---- end and continuation of a run ----------------------------------------------------------- */

START_TEST(it_ends_when_nothing_is_left)
{
    fixture f;
    set_up(&f, "exhausted");
    f.proposer.list = proposals;
    f.proposer.count = 2;
    must(run(&f, 0), &f.err);
    ck_assert_int_eq(f.tune.record.trials, 2);
    ck_assert_str_eq(f.tune.record.state, "ended");
    tear_down(&f);
}
END_TEST

START_TEST(it_ends_when_its_hours_are_over)
{
    fixture f;
    set_up(&f, "hours");
    f.proposer.draws = true;
    f.options.max_seconds = 5;
    must(run(&f, 0), &f.err);
    ck_assert_double_ge(f.tune.record.seconds, 5);
    ck_assert_double_lt(f.tune.record.seconds, 7);
    int64_t trials = f.tune.record.trials;
    must(run(&f, 0), &f.err); /* the limit is for the campaign's whole life */
    ck_assert_int_eq(f.tune.record.trials, trials);
    tear_down(&f);
}
END_TEST

/* Two kept gains of 3 % each, the second on top of the first. Gains of earlier runs count too. */
START_TEST(it_ends_when_it_has_gained_enough)
{
    static const runner_script script[] = {
        {.gain = 0.03}, {.gain = 0.01}, {.gain = 0.06}, {.gain = 0.09}};
    fixture f;
    set_up(&f, "gain");
    f.runner.script = script;
    f.runner.script_count = sizeof script / sizeof *script;
    f.proposer.list = proposals;
    f.proposer.count = PROPOSALS;
    f.options.until_gain = 0.05;
    must(run(&f, 0), &f.err);
    ck_assert_int_eq(f.tune.record.trials, 3);
    ck_assert_str_eq(f.tune.record.state, "ended");
    set_up_again(&f);
    f.options.until_gain = 0.05;
    must(run(&f, 0), &f.err);
    ck_assert_int_eq(f.tune.record.trials, 3);
    tear_down(&f);
}
END_TEST

START_TEST(it_ends_when_it_is_asked_to)
{
    fixture f;
    set_up(&f, "stopped");
    f.proposer.draws = true;
    f.stop_at = 3;
    must(run(&f, 0), &f.err);
    ck_assert_int_eq(f.tune.record.trials, 3);
    ck_assert_str_eq(f.tune.record.state, "stopped");
    f.stop_at = 0;
    must(run(&f, 4), &f.err); /* the stop request was for the earlier run */
    ck_assert_int_eq(f.tune.record.trials, 4);
    tear_down(&f);
}
END_TEST

START_TEST(an_interruption_loses_no_trial)
{
    fixture f;
    set_up(&f, "aborted");
    f.proposer.draws = true;
    f.abort_at = 2;
    ck_assert_int_eq(run(&f, 0), MGL_INTERRUPTED);
    ck_assert_int_eq(f.tune.record.trials, 2);
    ck_assert_str_eq(f.tune.record.state, "paused");
    tear_down(&f);
}
END_TEST

START_TEST(it_leaves_room_on_the_disk)
{
    fixture f;
    set_up(&f, "disk");
    f.options.least_disk = UINT64_MAX;
    ck_assert_int_eq(run(&f, 1), MGL_SYSTEM);
    ck_assert_ptr_nonnull(strstr(f.err.message, "free some space"));
    tear_down(&f);
}
END_TEST

START_TEST(another_manifest_is_rejected)
{
    fixture f;
    set_up(&f, "frozen");
    f.tune.record.manifest[0] ^= 1;
    ck_assert_int_eq(run(&f, 1), MGL_GATE);
    ck_assert_ptr_nonnull(strstr(f.err.message, "FROZEN_TAMPERED"));
    ck_assert_int_eq(f.runner.starts, 0);
    tear_down(&f);
}
END_TEST

/* An edited store: the kept program differs from the measured one. */
START_TEST(an_incumbent_is_the_program_that_was_measured)
{
    static const runner_script gain[] = {{.gain = 0.05}};
    fixture f;
    sqlite3 *database;
    set_up(&f, "edited");
    f.runner.script = gain;
    f.runner.script_count = 1;
    f.proposer.list = proposals;
    f.proposer.count = 1;
    must(run(&f, 1), &f.err);
    ck_assert_int_eq(sqlite3_open(store_path("campaigns.db"), &database), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(database,
                                  "UPDATE trials SET config = replace(config,"
                                  " '\"prefetch_bytes\": 65536', '\"prefetch_bytes\": 0')"
                                  " WHERE campaign = (SELECT max(id) FROM campaigns)",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    ck_assert_int_eq(sqlite3_changes(database), 1);
    sqlite3_close(database);
    ck_assert_int_eq(run(&f, 2), MGL_GATE);
    ck_assert_ptr_nonnull(strstr(f.err.message, "no longer gives the program"));
    ck_assert_int_eq(f.tune.record.trials, 1);
    tear_down(&f);
}
END_TEST

START_TEST(one_process_runs_it)
{
    fixture f;
    mgl_store_lock *lock;
    set_up(&f, "locked");
    must(mgl_campaign_lock(f.store, f.tune.record.id, &lock, &f.err), &f.err);
    ck_assert_int_eq(run(&f, 1), MGL_DEVICE);
    mgl_store_lock_release(lock);
    tear_down(&f);
}
END_TEST

/* Runs a campaign in this number of runs. Each run has a new runner and a new proposer. */
static void run_in_parts(fixture *f, const char *name, const int64_t *until, int parts)
{
    set_up(f, name);
    for (int i = 0; i < parts; i++) {
        set_up_again(f);
        f->runner.by_digest = true;
        f->proposer.draws = true;
        must(run(f, until[i]), &f->err);
    }
}

START_TEST(resumed_it_is_as_uninterrupted)
{
    static const int64_t whole[] = {14}, parts[] = {4, 11, 14};
    fixture a, b;
    run_in_parts(&a, "whole", whole, 1);
    run_in_parts(&b, "parts", parts, 3);
    ck_assert_int_eq(a.tune.record.incumbent, b.tune.record.incumbent);
    for (int64_t number = 1; number <= 14; number++) {
        mgl_trial one = trial_of(&a, number), other = trial_of(&b, number);
        ck_assert_str_eq(one.digest, other.digest);
        ck_assert_int_eq(one.verdict.outcome, other.verdict.outcome);
        ck_assert_double_eq(one.gain, other.gain);
        ck_assert_str_ne(one.nonce[0] ? one.nonce : "a", other.nonce[0] ? other.nonce : "b");
        mgl_trial_clear(&one);
        mgl_trial_clear(&other);
    }
    tear_down(&a);
    tear_down(&b);
}
END_TEST

/* An archive's winner is a proposal like any other: gated, checked and measured again. */
START_TEST(what_is_imported_is_measured_anew)
{
    static const runner_script gain[] = {{.gain = 0.05}};
    fixture f;
    mgl_text text = {0};
    mgl_archive archive = {0};
    set_up(&f, "exported");
    f.runner.script = gain;
    f.runner.script_count = 1;
    f.proposer.list = proposals;
    f.proposer.count = 1;
    must(run(&f, 1), &f.err);
    mgl_trial winner = trial_of(&f, 1);
    must(mgl_archive_write(f.store, "exported", &text, &f.err), &f.err);
    must(mgl_archive_parse(text.bytes, text.length, "archive", &archive, &f.err), &f.err);
    const mgl_tune_request request = {.name = "imported", .device = "none"};
    mgl_campaign_record record;
    must(mgl_tune_import(f.store, &archive, &request, &record, &f.err), &f.err);
    mgl_campaign_record_clear(&record);
    mgl_tune_clear(&f.tune);
    must(mgl_tune_find(f.store, "imported", &f.tune, &f.err), &f.err);
    set_up_again(&f); /* it gains nothing here */
    must(run(&f, 1), &f.err);
    mgl_trial trial = trial_of(&f, 1);
    ck_assert_str_eq(trial.digest, winner.digest);
    ck_assert_str_eq(trial.proposal.proposer, "import");
    ck_assert_int_eq(trial.verdict.outcome, MGL_OUTCOME_NO_GAIN);
    mgl_trial_clear(&trial);
    mgl_trial_clear(&winner);
    mgl_archive_clear(&archive);
    mgl_text_clear(&text);
    tear_down(&f);
}
END_TEST

static mgl_status time_graph(mgl_runner *self, int workload, double *us, mgl_error *err)
{
    (void)self, (void)workload, (void)err;
    *us = 123.4;
    return MGL_OK;
}

static mgl_status lack_cublas(mgl_runner *self, int workload, double *us, mgl_error *err)
{
    (void)self, (void)workload;
    *us = 0;
    return mgl_fail(err, MGL_DEVICE, "/opt/cublas", "cuBLAS was not found");
}

/* Measures the final result of a campaign; *line: its line of text. */
static void measure_end(fixture *f,
                        mgl_status (*baseline)(mgl_runner *, int, double *, mgl_error *),
                        mgl_answer_final_facts *last, mgl_text *line)
{
    set_up_again(f);
    f->runner.by_digest = true;
    f->runner.runner.baseline = baseline;
    must(mgl_campaign_measure_final(&f->options, &f->err), &f->err);
    must(mgl_answer_find_final(f->store, f->tune.record.id, last, &f->err), &f->err);
    mgl_text_clear(line);
    mgl_answer_final_line(last, line);
}

START_TEST(the_baseline_stands_beside_both)
{
    fixture f;
    mgl_answer_final_facts last;
    mgl_text line = {0};
    set_up(&f, "graph");
    f.proposer.draws = true;
    f.runner.by_digest = true;
    must(run(&f, 60), &f.err);
    ck_assert_int_gt(f.tune.record.incumbent, 0);
    measure_end(&f, time_graph, &last, &line);
    ck_assert_double_eq(last.cublas_us[0], 123.4);
    ck_assert_str_eq(last.no_cublas, "");
    ck_assert_ptr_nonnull(strstr(line.bytes, ", a CUDA graph of cuBLAS 123.4"));
    measure_end(&f, lack_cublas, &last, &line);
    ck_assert_double_eq(last.cublas_us[0], 0);
    ck_assert_int_eq(last.verdict.outcome, MGL_OUTCOME_OK);
    ck_assert_ptr_nonnull(strstr(line.bytes, "; cuBLAS was not measured: cuBLAS was not found"));
    ck_assert_ptr_null(strstr(line.bytes, "/opt"));
    mgl_text_clear(&line);
    tear_down(&f);
}
END_TEST

/* The runner knows each program's time, but no state of the campaign. */
START_TEST(the_winner_is_measured_against_the_default)
{
    fixture f;
    mgl_answer_final_facts last;
    set_up(&f, "final");
    f.proposer.draws = true;
    f.runner.by_digest = true;
    must(run(&f, 60), &f.err);
    ck_assert_int_gt(f.tune.record.incumbent, 0);
    must(mgl_answer_find_final(f.store, f.tune.record.id, &last, &f.err), &f.err);
    ck_assert_int_eq(last.number, 0);
    set_up_again(&f);
    f.runner.by_digest = true;
    f.runner.competing = 1;
    ck_assert_int_eq(mgl_campaign_measure_final(&f.options, &f.err), MGL_DEVICE);
    must(mgl_answer_find_final(f.store, f.tune.record.id, &last, &f.err), &f.err);
    ck_assert_int_eq(last.number, 0);
    must(mgl_campaign_measure_final(&f.options, &f.err), &f.err);
    must(mgl_answer_find_final(f.store, f.tune.record.id, &last, &f.err), &f.err);
    ck_assert_int_eq(last.number, f.tune.record.incumbent);
    ck_assert_int_eq(last.verdict.outcome, MGL_OUTCOME_OK);
    double truth = expm1(f.runner.candidate_gain - f.runner.incumbent_gain);
    ck_assert_double_eq_tol(last.all.gain, truth, 0.002);
    ck_assert_double_le(last.all.lo, last.all.gain);
    ck_assert_int_eq(last.workload_count, 1);
    ck_assert_double_gt(last.each[0].default_us, last.each[0].us);
    ck_assert_int_eq(count_events(&f, 'f'), 1);
    tear_down(&f);
}
END_TEST

/* Runs the campaign with this runner script and a fixed list of proposals. */
static void play(fixture *f, const runner_script *script, int count, int64_t trials)
{
    set_up_again(f);
    f->runner.script = script;
    f->runner.script_count = count;
    f->proposer.list = proposals;
    f->proposer.count = PROPOSALS;
    must(run(f, trials), &f->err);
}

/* Ends the campaign; the runner finds this outcome for the winner. */
static void end_with(fixture *f, mgl_outcome outcome)
{
    const runner_script once = {.check = outcome};
    set_up_again(f);
    f->runner.script = &once;
    f->runner.script_count = 1;
    must(mgl_campaign_measure_final(&f->options, &f->err), &f->err);
    must(mgl_campaign_quarantine(&f->options, &f->err), &f->err);
}

static const runner_script keeps[] = {{.gain = 0.05}, {.gain = 0}, {.gain = 0.1}};

START_TEST(behind_a_wrong_winner_stands_what_was_kept_before)
{
    fixture f;
    mgl_answer_best_facts best;
    set_up(&f, "condemned");
    play(&f, keeps, 3, 3);
    ck_assert_int_eq(f.tune.record.incumbent, 3);
    mgl_trial first = trial_of(&f, 1);
    end_with(&f, MGL_OUTCOME_NONDETERMINISTIC);
    ck_assert_int_eq(f.tune.record.incumbent, 1);
    ck_assert_int_eq(outcome_of(&f, 3), MGL_OUTCOME_NONDETERMINISTIC);
    end_with(&f, MGL_OUTCOME_OK);
    ck_assert_int_eq(f.tune.record.incumbent, 1);
    play(&f, NULL, 0, 5); /* continues */
    ck_assert_str_eq(f.runner.incumbent, first.digest);
    ck_assert_int_eq(f.proposer.outcomes[2], MGL_OUTCOME_NONDETERMINISTIC);
    ck_assert_int_eq(f.tune.record.incumbent, 1);
    must(mgl_answer_find_best(f.store, &f.tune.record, &best, &f.err), &f.err);
    ck_assert_int_eq(best.number, 1);
    ck_assert_int_eq(best.keeps, 1);
    ck_assert_double_eq_tol(best.gain, expm1(0.05), 0.002);
    mgl_trial_clear(&first);
    tear_down(&f);
}
END_TEST

START_TEST(what_was_quarantined_is_told_and_not_exported)
{
    fixture f;
    mgl_archive archive;
    mgl_text text = {0}, report = {0};
    mgl_json_out out = {0};
    set_up(&f, "told");
    play(&f, keeps, 3, 3);
    end_with(&f, MGL_OUTCOME_NONDETERMINISTIC);
    must(mgl_archive_write(f.store, "told", &text, &f.err), &f.err);
    must(mgl_archive_parse(text.bytes, text.length, "told", &archive, &f.err), &f.err);
    ck_assert_int_eq(archive.winner->number, 1);
    ck_assert_uint_eq(archive.trial_count, 1);
    must(mgl_report_markdown(f.store, &f.tune.record, &report, &f.err), &f.err);
    ck_assert_ptr_nonnull(strstr(report.bytes, "Trial 1: "));
    ck_assert_ptr_nonnull(strstr(report.bytes, "Found at an end: trial 3, which was kept"));
    must(mgl_answer_quarantined(&out, f.store, f.tune.record.id, &f.err), &f.err);
    ck_assert_str_eq(out.text.bytes, "\"condemned\":[{\"number\":3,\"outcome\":"
                                     "\"NONDETERMINISTIC\",\"diagnostic\":\"scripted\"}]");
    end_with(&f, MGL_OUTCOME_NONDETERMINISTIC);
    ck_assert_int_eq(f.tune.record.incumbent, 0);
    ck_assert_int_eq(mgl_archive_write(f.store, "told", &text, &f.err), MGL_GATE);
    mgl_archive_clear(&archive);
    mgl_text_clear(&text);
    mgl_text_clear(&report);
    mgl_text_clear(&out.text);
    tear_down(&f);
}
END_TEST

START_TEST(seeds_depend_on_seed_and_number)
{
    ck_assert_uint_eq(mgl_campaign_seed(7, 1), mgl_campaign_seed(7, 1));
    ck_assert_uint_ne(mgl_campaign_seed(7, 1), mgl_campaign_seed(7, 2));
    ck_assert_uint_ne(mgl_campaign_seed(7, 1), mgl_campaign_seed(8, 1));
}
END_TEST

/* ---- where the time went --------------------------------------------------------------------- */

/* Checks the event that reports where the time went: the parts add up to the total. */
static mgl_status sum_stretches(void *user, int64_t unix_s, const char *kind, const char *text,
                                mgl_error *err)
{
    (void)unix_s, (void)err;
    int *events = user;
    double all = -1, sum = 0, seconds;
    if (strcmp(kind, MGL_SPENT_EVENT) != 0)
        return MGL_OK;
    (*events)++;
    ck_assert_int_eq(sscanf(text, "of %lf s", &all), 1);
    ck_assert_ptr_nonnull(strstr(text, ": start "));
    ck_assert_ptr_nonnull(strstr(text, ", store "));
    const char *const end = strchr(text, ';'), *at = strchr(text, ':');
    ck_assert_msg(!end, "the scripted runner has no workers: %s", text);
    for (; at; at = strchr(at + 1, ',')) {
        ck_assert_int_eq(sscanf(at + 1, " %*[a-z-] %lf s", &seconds), 1);
        sum += seconds;
    }
    ck_assert_double_eq_tol(sum, all, 0.2);
    return MGL_OK;
}

START_TEST(a_run_tells_where_its_time_went)
{
    fixture f;
    int events = 0;
    set_up(&f, "spent");
    f.proposer.draws = true;
    must(run(&f, 12), &f.err);
    must(mgl_store_each_event(f.store, f.tune.record.id, sum_stretches, &events, &f.err), &f.err);
    ck_assert_int_eq(events, 1);
    must(run(&f, 14), &f.err);
    events = 0;
    must(mgl_store_each_event(f.store, f.tune.record.id, sum_stretches, &events, &f.err), &f.err);
    ck_assert_int_eq(events, 2);
    tear_down(&f);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("runs");
    tcase_set_timeout(tests, 100);
    tcase_add_test(tests, every_tenth_trial_is_a_control);
    tcase_add_test(tests, a_machine_that_finds_gains_in_nothing_is_unfit);
    tcase_add_test(tests, a_device_without_costs_is_told_of_once);
    tcase_add_test(tests, another_process_pauses_it_and_is_no_verdict);
    tcase_add_test(tests, one_bad_control_is_repeated);
    tcase_add_test(tests, two_bad_controls_stop_keeping);
    tcase_add_test(tests, simpler_programs_do_not_add_up_to_a_loss);
    tcase_add_test(tests, hanging_candidates_make_the_incumbent_show_itself);
    tcase_add_test(tests, a_runner_that_fails_once_is_started_again);
    tcase_add_test(tests, a_runner_that_keeps_failing_pauses_the_campaign);
    tcase_add_test(tests, an_incumbent_that_does_not_end_is_the_runners_failure);
    tcase_add_test(tests, the_store_is_the_truth);
    tcase_add_test(tests, it_ends_when_nothing_is_left);
    tcase_add_test(tests, it_ends_when_its_hours_are_over);
    tcase_add_test(tests, it_ends_when_it_has_gained_enough);
    tcase_add_test(tests, it_ends_when_it_is_asked_to);
    tcase_add_test(tests, an_interruption_loses_no_trial);
    tcase_add_test(tests, it_leaves_room_on_the_disk);
    tcase_add_test(tests, another_manifest_is_rejected);
    tcase_add_test(tests, an_incumbent_is_the_program_that_was_measured);
    tcase_add_test(tests, one_process_runs_it);
    tcase_add_test(tests, resumed_it_is_as_uninterrupted);
    tcase_add_test(tests, the_baseline_stands_beside_both);
    tcase_add_test(tests, what_is_imported_is_measured_anew);
    tcase_add_test(tests, the_winner_is_measured_against_the_default);
    tcase_add_test(tests, behind_a_wrong_winner_stands_what_was_kept_before);
    tcase_add_test(tests, what_was_quarantined_is_told_and_not_exported);
    tcase_add_test(tests, seeds_depend_on_seed_and_number);
    tcase_add_test(tests, a_run_tells_where_its_time_went);
    return run_suite("campaign runs", tests);
}
