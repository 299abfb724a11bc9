/* Tests of the outcome of a trial in a campaign, with a simulated device. */
#include "autotune/archive/archive.h"
#include "tests/autotune/search/campaign_fixture.h"

#include "autotune/store/frozen.h"
#include "base/memory.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

/* Runs the first trial of a new campaign, and returns its outcome. */
static mgl_trial try_one(fixture *f, const char *name, const runner_script *script)
{
    set_up(f, name);
    f->runner.script = script;
    f->runner.script_count = 1;
    f->proposer.list = proposals;
    f->proposer.count = 1;
    must(run(f, 1), &f->err);
    return trial_of(f, 1);
}

/* ---- outcomes of a trial --------------------------------------------------------------------- */

START_TEST(a_gain_is_kept)
{
    fixture f;
    mgl_trial trial = try_one(&f, "keep", &(runner_script){.gain = 0.05});
    ck_assert_str_eq(mgl_outcome_name(trial.verdict.outcome), "OK");
    ck_assert_int_eq(f.tune.record.incumbent, 1);
    ck_assert_int_eq(f.runner.promotions, 1);
    ck_assert_str_eq(f.runner.incumbent, trial.digest);
    ck_assert_double_eq_tol(trial.gain, 0.05, 0.003);
    ck_assert_int_eq(count_events(&f, 'k'), 1);
    mgl_trial_clear(&trial);
    tear_down(&f);
}
END_TEST

START_TEST(what_is_kept_has_all_its_evidence)
{
    fixture f;
    mgl_trial trial = try_one(&f, "evidence", &(runner_script){.gain = 0.05});
    ck_assert_int_eq(trial.pair_count, 8 + 24 + 64);
    ck_assert_uint_eq(strlen(trial.nonce), 64);
    ck_assert_str_eq(trial.manifest, mgl_frozen_digest());
    ck_assert_double_gt(trial.level, 0);
    ck_assert_double_eq_tol(trial.workloads[0].error, 1e-3, 1e-12);
    ck_assert_double_gt(trial.workloads[0].candidate_us, 0);
    ck_assert_double_gt(trial.predicted_us, 0);
    mgl_trial_clear(&trial);
    tear_down(&f);
}
END_TEST

/* One row each: a script of the runner, and the outcome that the trial must have. */
static const struct {
    const char *name;
    runner_script script;
    mgl_outcome outcome;
} verdicts[] = {
    {"nothing gained", {.gain = 0}, MGL_OUTCOME_NO_GAIN},
    {"too little gained", {.gain = 0.004}, MGL_OUTCOME_NO_GAIN},
    {"slower", {.gain = -0.1}, MGL_OUTCOME_REGRESSION},
    {"twice as fast", {.gain = 0.8}, MGL_OUTCOME_SUSPICIOUS},
    {"faster than its bytes", {.gain = 0.05, .below_floor = true}, MGL_OUTCOME_SUBFLOOR},
    {"wrong", {.check = MGL_OUTCOME_MISMATCH}, MGL_OUTCOME_MISMATCH},
    {"hangs", {.check = MGL_OUTCOME_HANG}, MGL_OUTCOME_HANG},
    {"hangs later", {.pair = MGL_OUTCOME_HANG}, MGL_OUTCOME_HANG},
    {"the runner fails", {.failure = MGL_DEVICE}, MGL_OUTCOME_UNMEASURED},
};

START_TEST(a_trial_has_its_verdict)
{
    fixture f;
    mgl_trial trial = try_one(&f, verdicts[_i].name, &verdicts[_i].script);
    ck_assert_msg(trial.verdict.outcome == verdicts[_i].outcome, "%s is %s: %s", verdicts[_i].name,
                  mgl_outcome_name(trial.verdict.outcome), trial.verdict.diagnostic);
    ck_assert_int_eq(f.runner.promotions, 0);
    ck_assert_int_eq(f.tune.record.incumbent, 0);
    ck_assert(trial.verdict.diagnostic[0]);
    mgl_trial_clear(&trial);
    tear_down(&f);
}
END_TEST

/* The second measurement, in a new process, of a candidate that was twice as fast, and the
 * outcome. */
static const struct {
    const char *name;
    runner_script again;
    mgl_outcome outcome;
} repeats[] = {
    {"again as fast", {.gain = 0.81}, MGL_OUTCOME_OK},
    {"not so fast", {.gain = 0.6}, MGL_OUTCOME_SUSPICIOUS},
    {"no faster", {.gain = 0}, MGL_OUTCOME_SUSPICIOUS},
    {"wrong again", {.check = MGL_OUTCOME_MISMATCH}, MGL_OUTCOME_MISMATCH},
    {"below again", {.gain = 0.8, .below_floor = true}, MGL_OUTCOME_SUBFLOOR},
};

START_TEST(what_is_twice_as_fast_is_seen_twice)
{
    const runner_script scripts[] = {{.gain = 0.8}, repeats[_i].again};
    bool kept = repeats[_i].outcome == MGL_OUTCOME_OK;
    mgl_text archive = {0};
    fixture f;
    set_up(&f, repeats[_i].name);
    f.runner.script = scripts;
    f.runner.script_count = 2;
    f.proposer.list = proposals;
    f.proposer.count = 1;
    must(run(&f, 1), &f.err);
    mgl_trial trial = trial_of(&f, 1);
    ck_assert_msg(trial.verdict.outcome == repeats[_i].outcome, "%s: %s",
                  mgl_outcome_name(trial.verdict.outcome), trial.verdict.diagnostic);
    ck_assert_int_eq(f.runner.starts, 2);
    ck_assert_int_eq(f.runner.promotions, kept);
    ck_assert_int_ne(memcmp(f.runner.nonces[0], f.runner.nonces[1], MGL_SHA256_BYTES), 0);
    ck_assert_double_eq_tol(trial.gain, kept ? 0.81 : 0, 0.003);
    if (kept) /* the pairs of both measurements confirm it */
        must(mgl_archive_write(f.store, repeats[_i].name, &archive, &f.err), &f.err);
    mgl_text_clear(&archive);
    mgl_trial_clear(&trial);
    tear_down(&f);
}
END_TEST

START_TEST(no_time_is_kept_of_what_nobody_may_believe)
{
    fixture f;
    mgl_trial trial = try_one(&f, "withheld", &(runner_script){.gain = 0.05, .below_floor = true});
    ck_assert_double_eq(trial.gain, 0);
    ck_assert_double_eq(trial.workloads[0].candidate_us, 0);
    mgl_trial_clear(&trial);
    tear_down(&f);
}
END_TEST

START_TEST(a_known_program_answers_with_its_verdict)
{
    static const scripted_proposal twice[] = {{"pending_bytes", 65536}, {"pending_bytes", 65536}};
    fixture f;
    set_up(&f, "twice");
    f.proposer.list = twice;
    f.proposer.count = 2;
    must(run(&f, 2), &f.err);
    mgl_trial second = trial_of(&f, 2);
    ck_assert_int_eq(second.verdict.outcome, MGL_OUTCOME_DUPLICATE);
    ck_assert_int_eq(second.duplicate_of, 1);
    ck_assert_ptr_nonnull(strstr(second.verdict.diagnostic, "NO_GAIN"));
    ck_assert_int_eq(f.runner.checks, 1);
    mgl_trial_clear(&second);
    tear_down(&f);
}
END_TEST

START_TEST(the_default_is_known)
{
    static const scripted_proposal itself[] = {{NULL, 0}};
    fixture f;
    set_up(&f, "default");
    f.proposer.list = itself;
    f.proposer.count = 1;
    must(run(&f, 1), &f.err);
    ck_assert_int_eq(outcome_of(&f, 1), MGL_OUTCOME_DUPLICATE);
    ck_assert_int_eq(f.runner.checks, 0);
    tear_down(&f);
}
END_TEST

START_TEST(what_is_not_in_the_space_is_pruned)
{
    static const scripted_proposal bad[] = {{"exchange_precision", 3}}; /* not in the space */
    fixture f;
    set_up(&f, "pruned");
    f.proposer.list = bad;
    f.proposer.count = 1;
    must(run(&f, 1), &f.err);
    ck_assert_int_eq(mgl_outcome_exit(outcome_of(&f, 1)), MGL_EXIT_REFUSED);
    ck_assert_int_eq(f.runner.checks, 0);
    tear_down(&f);
}
END_TEST

START_TEST(formats_have_a_limit_of_error)
{
    static const scripted_proposal narrow[] = {{"exchange_precision", 3}};
    static const runner_script script[] = {{.gain = 0.05, .error = 1.3}};
    fixture f;
    set_up_with(&f, "exchange_precision", true);
    f.proposer.list = narrow;
    f.proposer.count = 1;
    f.runner.script = script;
    f.runner.script_count = 1;
    must(run(&f, 1), &f.err);
    ck_assert_str_eq(mgl_outcome_name(outcome_of(&f, 1)), "MISMATCH");
    tear_down(&f);
}
END_TEST

START_TEST(the_cost_model_screens)
{
    static const scripted_proposal slow[] = {{"exchange", MGL_EXCHANGE_COUNTERS}};
    fixture f;
    set_up(&f, "screened");
    f.proposer.list = slow;
    f.proposer.count = 1;
    must(run(&f, 1), &f.err);
    mgl_trial trial = trial_of(&f, 1);
    ck_assert_int_eq(trial.verdict.outcome, MGL_OUTCOME_UNMEASURED);
    ck_assert_ptr_nonnull(strstr(trial.verdict.diagnostic, "screened: predicted"));
    ck_assert_int_eq(f.runner.checks, 0);
    mgl_trial_clear(&trial);
    tear_down(&f);
}
END_TEST

START_TEST(what_is_handed_in_is_not_screened)
{
    fixture f;
    set_up(&f, "not screened");
    f.options.proposer_count = 0;
    submit(&f, "{\"schema\":\"megalith.proposal/1\",\"config\":{\"exchange\":1}}");
    must(run(&f, 1), &f.err);
    ck_assert_int_eq(f.runner.checks, 1);
    ck_assert_int_eq(outcome_of(&f, 1), MGL_OUTCOME_NO_GAIN);
    tear_down(&f);
}
END_TEST

/* ---- submissions ----------------------------------------------------------------------------- */

START_TEST(submissions_go_first)
{
    fixture f;
    set_up(&f, "submissions");
    f.proposer.draws = true;
    int64_t id = submit(&f, "{\"schema\":\"megalith.proposal/1\",\"hypothesis\":\"it is late\","
                            "\"config\":{\"pending_bytes\":65536}}");
    must(run(&f, 1), &f.err);
    mgl_trial trial = trial_of(&f, 1);
    ck_assert_int_eq(trial.proposal.queued, id);
    ck_assert_str_eq(trial.proposal.proposer, "submit");
    ck_assert_str_eq(trial.proposal.hypothesis, "it is late");
    ck_assert_int_eq(trial.verdict.outcome, MGL_OUTCOME_NO_GAIN);
    mgl_trial_clear(&trial);
    must(mgl_tune_await(f.store, &f.tune.record, id, NULL, &trial, &f.err), &f.err);
    ck_assert_int_eq(trial.number, 1);
    mgl_trial_clear(&trial);
    tear_down(&f);
}
END_TEST

/* None of these texts may reach the runner. */
static const char *const hostile[] = {
    "",
    "x",
    "{",
    "{}",
    "[]",
    "{\"schema\":\"megalith.proposal/1\",\"config\":{\"rows\":1,\"rows\":2}}",
    "{\"schema\":\"megalith.proposal/1\",\"config\":{\"rows\":NaN}}",
    "{\"schema\":\"megalith.proposal/1\",\"config\":{\"rows\":1e99}}",
    "{\"schema\":\"megalith.proposal/1\",\"config\":{\"pending_bytes\":-5}}",
    "{\"schema\":\"megalith.proposal/1\",\"path\":\"../../etc/passwd\"}",
    "{\"schema\":\"megalith.proposal/1\",\"parent\":99}",
    "{\"schema\":\"megalith.proposal/1\",\"schedule\":\"megalith 1\"}",
    "{\"schema\":\"megalith.proposal/2\"}",
    "megalith 1\ntarget sm_90a queues 132 shared 1\n",
};
enum { HOSTILE = sizeof hostile / sizeof *hostile };

START_TEST(hostile_texts_are_rejected)
{
    fixture f;
    char name[32];
    snprintf(name, sizeof name, "hostile %d", _i);
    set_up(&f, name);
    f.options.proposer_count = 0;
    int64_t id;
    mgl_status status = mgl_tune_submit(f.store, &f.tune.record, hostile[_i], strlen(hostile[_i]),
                                        "submit", &id, &f.err);
    if (!*hostile[_i]) {
        ck_assert_int_eq(status, MGL_BAD_INPUT);
    } else {
        must(run(&f, 0), &f.err);
        mgl_trial trial = trial_of(&f, 1);
        ck_assert_msg(mgl_outcome_exit(trial.verdict.outcome) == MGL_EXIT_REFUSED, "%s: %s",
                      hostile[_i], mgl_outcome_name(trial.verdict.outcome));
        ck_assert(trial.verdict.diagnostic[0]);
        mgl_trial_clear(&trial);
    }
    ck_assert_int_eq(f.runner.checks, 0);
    tear_down(&f);
}
END_TEST

/* The default's text without the first of its clears. */
static char *make_unsafe_text(const fixture *f)
{
    mgl_candidate c;
    mgl_text text = {0};
    const mgl_proposal start = {.config = f->tune.subject.start};
    ck_assert_int_eq(mgl_gate_make(&f->tune.subject, &start, &c, NULL), MGL_OK);
    mgl_schedule_print(c.programs[0], &text);
    char *line = strstr(text.bytes, "\nclear ");
    ck_assert_ptr_nonnull(line);
    const char *next = strchr(line + 1, '\n');
    memmove(line, next, strlen(next) + 1);
    mgl_candidate_clear(&c);
    return text.bytes;
}

START_TEST(what_the_validator_rejects_is_not_launched)
{
    fixture f;
    set_up(&f, "unsafe");
    f.options.proposer_count = 0;
    char *text = make_unsafe_text(&f);
    submit(&f, text);
    mgl_free(text);
    must(run(&f, 0), &f.err);
    mgl_trial trial = trial_of(&f, 1);
    ck_assert_int_eq(trial.verdict.outcome, MGL_OUTCOME_REJECTED);
    ck_assert_ptr_nonnull(strstr(trial.verdict.diagnostic, "MG604"));
    ck_assert_int_eq(f.runner.checks, 0);
    mgl_trial_clear(&trial);
    tear_down(&f);
}
END_TEST

/* ---- a runner without a device --------------------------------------------------------------- */

START_TEST(without_a_device_nothing_is_measured)
{
    fixture f;
    mgl_runner *none;
    set_up(&f, "none");
    must(mgl_runner_none_open(&f.tune.subject, &none, &f.err), &f.err);
    f.options.runner = none;
    f.proposer.list = proposals;
    f.proposer.count = 8;
    must(run(&f, 8), &f.err);
    none->close(none);
    for (int64_t number = 1; number <= 8; number++) {
        mgl_trial trial = trial_of(&f, number);
        ck_assert_int_eq(trial.verdict.outcome, MGL_OUTCOME_UNMEASURED);
        ck_assert_ptr_nonnull(strstr(trial.verdict.diagnostic, "predicted"));
        ck_assert_int_eq(trial.pair_count, 0);
        mgl_trial_clear(&trial);
    }
    tear_down(&f);
}
END_TEST

/* The campaign's state and reason as other processes read them; static storage. */
static const char *state_of(fixture *f)
{
    static char text[200];
    mgl_campaign_record record;
    must(mgl_store_find_campaign(f->store, f->tune.record.name, &record, &f->err), &f->err);
    must(mgl_tune_look_state(f->store, &record, &f->err), &f->err);
    snprintf(text, sizeof text, "%s: %s", record.state, record.reason ? record.reason : "");
    mgl_campaign_record_clear(&record);
    return text;
}

/* The campaign is `paused` from the signal on, although the process holds its lock until it
 * ends. */
START_TEST(who_was_interrupted_is_paused_at_once)
{
    fixture f;
    mgl_store_lock *lock = NULL;
    mgl_text path = {0};
    set_up(&f, "marked");
    const int64_t id = f.tune.record.id;
    must(mgl_store_set_state(f.store, id, "running", NULL, 1, &f.err), &f.err);
    must(mgl_campaign_lock(f.store, id, &lock, &f.err), &f.err);
    ck_assert_str_eq(state_of(&f), "running: ");
    must(mgl_campaign_lock_path(f.store, id, &path, &f.err), &f.err);
    mgl_store_lock_mark(path.bytes);
    mgl_store_lock_mark(path.bytes);
    ck_assert_str_eq(state_of(&f), "paused: it was interrupted");
    mgl_store_lock_release(lock);
    must(mgl_campaign_lock(f.store, id, &lock, &f.err), &f.err);
    ck_assert_str_eq(state_of(&f), "running: ");
    mgl_store_lock_release(lock);
    mgl_text_clear(&path);
    tear_down(&f);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("trials");
    tcase_set_timeout(tests, 100);
    tcase_add_test(tests, a_gain_is_kept);
    tcase_add_test(tests, what_is_kept_has_all_its_evidence);
    tcase_add_loop_test(tests, a_trial_has_its_verdict, 0,
                        (int)(sizeof verdicts / sizeof *verdicts));
    tcase_add_loop_test(tests, what_is_twice_as_fast_is_seen_twice, 0,
                        sizeof repeats / sizeof *repeats);
    tcase_add_test(tests, no_time_is_kept_of_what_nobody_may_believe);
    tcase_add_test(tests, a_known_program_answers_with_its_verdict);
    tcase_add_test(tests, the_default_is_known);
    tcase_add_test(tests, what_is_not_in_the_space_is_pruned);
    tcase_add_test(tests, formats_have_a_limit_of_error);
    tcase_add_test(tests, the_cost_model_screens);
    tcase_add_test(tests, what_is_handed_in_is_not_screened);
    tcase_add_test(tests, submissions_go_first);
    tcase_add_loop_test(tests, hostile_texts_are_rejected, 0, HOSTILE);
    tcase_add_test(tests, what_the_validator_rejects_is_not_launched);
    tcase_add_test(tests, without_a_device_nothing_is_measured);
    tcase_add_test(tests, who_was_interrupted_is_paused_at_once);
    return run_suite("campaign trials", tests);
}
