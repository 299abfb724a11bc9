/*
 * Tests of campaigns that began under another manifest of frozen files. A successor takes over
 * their results, and gates, checks and measures each like any other proposal.
 */
#include "autotune/store/frozen.h"
#include "autotune/tune_checkpoint.h"
#include "tests/autotune/search/campaign_fixture.h"
#include "tests/autotune/store/store_support.h"

#include <check.h>

/* A campaign under another manifest, with an incumbent. */
static void begin_before(fixture *f, const mgl_tune_request *request)
{
    mgl_trial kept = {.number = 1, .verdict.outcome = MGL_OUTCOME_OK, .workload_count = 1};
    mgl_tune before;
    f->store = store_open(store_path("campaigns.db"));
    must(mgl_tune_prepare(f->store, request, false, &before, &f->err), &f->err);
    before.record.manifest[0] = before.record.manifest[0] == '0' ? '1' : '0';
    must(mgl_store_add_campaign(f->store, &before.record, &f->err), &f->err);
    kept.campaign = before.record.id;
    kept.proposal.config = before.subject.start;
    kept.proposal.config.page_bytes = 8192;
    must(mgl_store_add_trial(f->store, &kept, &f->err), &f->err);
    mgl_tune_clear(&before);
}

/* Gated, checked and measured again, as the first trial of the successor. */
START_TEST(a_successor_begins_with_the_incumbent)
{
    static const runner_script gain[] = {{.gain = 0.05}};
    const mgl_tune_request request = {.model = MGL_SOURCE_DIR "/tests/models/tales-5m",
                                      .device = "none",
                                      .name = "rebased",
                                      .workloads = "ctx=0;batch=1",
                                      .rebase = true};
    fixture f = {0};
    begin_before(&f, &request);
    must(mgl_tune_prepare(f.store, &request, true, &f.tune, &f.err), &f.err);
    ck_assert_str_eq(f.tune.record.name, "rebased-2");
    set_up_again(&f);
    f.runner.script = gain;
    f.runner.script_count = 1;
    must(run(&f, 1), &f.err);
    mgl_trial trial = trial_of(&f, 1);
    ck_assert_str_eq(trial.proposal.proposer, "rebase");
    ck_assert_int_eq(trial.proposal.config.page_bytes, 8192);
    ck_assert_int_eq(f.tune.record.incumbent, 1);
    mgl_trial_clear(&trial);
    mgl_tune_clear(&f.tune);
    must(mgl_tune_prepare(f.store, &request, true, &f.tune, &f.err), &f.err);
    ck_assert(f.tune.found); /* nothing is left to rebase */
    ck_assert_str_eq(f.tune.record.name, "rebased-2");
    tear_down(&f);
}
END_TEST

/* Rebases by name only, like `campaign resume`. The weights are those of the old campaign. */
START_TEST(a_successor_is_made_of_a_name)
{
    static const runner_script gain[] = {{.gain = 0.05}};
    const mgl_tune_request request = {.model = MGL_SOURCE_DIR "/tests/models/tales-5m",
                                      .device = "none",
                                      .name = "renewed",
                                      .workloads = "ctx=0;batch=1"};
    fixture f = {0};
    mgl_campaign_record before;
    begin_before(&f, &request);
    must(mgl_store_find_campaign(f.store, "renewed", &before, &f.err), &f.err);
    must(mgl_store_add_event(f.store, before.id, MGL_CHECKPOINT_EVENT, "/weights", &f.err), &f.err);
    must(mgl_tune_rebase(f.store, "renewed", &f.tune, &f.err), &f.err);
    ck_assert(!f.tune.found);
    ck_assert_str_eq(f.tune.record.name, "renewed-2");
    ck_assert_uint_eq(f.tune.record.seed, before.seed);
    ck_assert_str_eq(f.tune.record.manifest, mgl_frozen_digest());
    set_up_again(&f);
    f.runner.script = gain;
    f.runner.script_count = 1;
    must(run(&f, 1), &f.err);
    mgl_trial trial = trial_of(&f, 1);
    ck_assert_str_eq(trial.proposal.proposer, "rebase");
    ck_assert_int_eq(trial.proposal.config.page_bytes, 8192);
    ck_assert_int_eq(f.tune.record.incumbent, 1);
    mgl_trial_clear(&trial);
    mgl_tune_clear(&f.tune);
    must(mgl_tune_rebase(f.store, "renewed", &f.tune, &f.err), &f.err);
    ck_assert(f.tune.found); /* the successor is used */
    ck_assert_str_eq(f.tune.record.name, "renewed-2");
    ck_assert_str_eq(f.tune.checkpoint, "/weights");
    mgl_campaign_record_clear(&before);
    tear_down(&f);
}
END_TEST

/* A campaign that --new started with another subject is not a successor. */
START_TEST(a_successor_tunes_the_same)
{
    mgl_tune_request request = {.model = MGL_SOURCE_DIR "/tests/models/tales-5m",
                                .device = "none",
                                .name = "same",
                                .workloads = "ctx=0;batch=1"};
    fixture f = {0};
    mgl_tune other;
    begin_before(&f, &request);
    request.workloads = "ctx=0;batch=4";
    request.fresh = true;
    must(mgl_tune_prepare(f.store, &request, true, &other, &f.err), &f.err);
    ck_assert_str_eq(other.record.name, "same-2");
    must(mgl_tune_rebase(f.store, "same", &f.tune, &f.err), &f.err);
    ck_assert_str_eq(f.tune.record.name, "same-3");
    ck_assert_str_eq(f.tune.record.workloads, "ctx=0;batch=1");
    mgl_tune_clear(&other);
    mgl_tune_clear(&f.tune);
    must(mgl_tune_rebase(f.store, "same-2", &f.tune, &f.err), &f.err);
    ck_assert(f.tune.found); /* its manifest is this program's */
    ck_assert_str_eq(f.tune.record.name, "same-2");
    tear_down(&f);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("rebase");
    tcase_add_test(tests, a_successor_begins_with_the_incumbent);
    tcase_add_test(tests, a_successor_is_made_of_a_name);
    tcase_add_test(tests, a_successor_tunes_the_same);
    return run_suite("rebase", tests);
}
