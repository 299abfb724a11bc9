/*
 * Tests of archives: a written archive is read back bit by bit, contains nothing about the machine,
 * and is rejected with a message if it was modified.
 */
#include "autotune/archive/archive.h"
#include "tests/autotune/store/failing_disk.h"
#include "tests/autotune/store/store_support.h"

#include "autotune/candidates/judge.h"
#include "autotune/search/proposer.h"
#include "autotune/store/frozen.h"
#include "base/memory.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRIALS = 23, KEPT = 3 /* 3, 13 and 23 */ };

static const char shape[] =
    "{\"schema\":\"megalith.shape/1\",\"model_type\":\"llama\",\"hidden_size\":2048,"
    "\"num_hidden_layers\":16,\"num_attention_heads\":32,\"num_key_value_heads\":8,\"head_dim\":64,"
    "\"intermediate_size\":8192,\"vocab_size\":128256,\"rms_norm_eps\":1e-05,"
    "\"max_position_embeddings\":131072,\"tie_word_embeddings\":true,"
    "\"rope_parameters\":{\"rope_type\":\"default\",\"rope_theta\":500000}}";

static mgl_store *store;
static mgl_campaign_record campaign;
static mgl_text text; /* its archive */
static mgl_error err;

/* Turns a trial into a kept one by the judge's rule: adds pairs with a gain after its pairs. */
static void keep(mgl_trial *trial)
{
    int count = mgl_judge_pairs(MGL_PAIRS_DECISION), before = trial->pair_count;
    trial->pair_count += 2 * count;
    trial->pairs = mgl_realloc(trial->pairs, (size_t)trial->pair_count * sizeof *trial->pairs);
    for (int i = 0; i < before; i++)
        trial->pairs[i].stage = MGL_PAIRS_SCREEN;
    for (int i = 0; i < 2 * count; i++)
        trial->pairs[before + i] = (mgl_pair){.workload = i % 2,
                                              .stage = MGL_PAIRS_DECISION,
                                              .candidate_first = i % 3 == 0,
                                              .incumbent_us = 900 + i / 13.0,
                                              .candidate_us = 870 + i / 11.0};
    ck_assert_int_eq(mgl_judge_decide(trial, 2, trial->number, false, &err), MGL_OK);
    ck_assert_int_eq(trial->verdict.outcome, MGL_OUTCOME_OK);
}

/* The parent of trial n is trial n - 5, or the default (0). */
static void add_trials(void)
{
    for (int64_t number = 1; number <= TRIALS; number++) {
        mgl_trial trial;
        store_fill_trial(campaign.id, number, 12, &trial);
        trial.proposal.parent = number > 5 ? number - 5 : 0;
        for (int i = 0; i < trial.pair_count; i++)
            trial.pairs[i].reasons = UINT64_MAX;
        if (trial.verdict.outcome == MGL_OUTCOME_OK)
            keep(&trial);
        else
            trial.p_value = NAN;
        ck_assert_int_eq(mgl_store_add_trial(store, &trial, &err), MGL_OK);
        mgl_trial_clear(&trial);
    }
}

static void write_archive(void)
{
    mgl_status status = mgl_archive_write(store, NULL, &text, &err);
    ck_assert_msg(!status, "%s: %s", err.where, err.message);
}

/* The final measurements of trial 23 and of an earlier trial. */
static void add_finals(void)
{
    static const char *const finals[] = {
        "{\"schema\":\"megalith.final/1\",\"number\":13,\"outcome\":\"OK\",\"gain\":0.5,"
        "\"workloads\":[]}",
        "{\"schema\":\"megalith.final/1\",\"number\":23,\"outcome\":\"OK\","
        "\"diagnostic\":\"/home/x\",\"gain\":0.25,\"gain_lo\":0.125,\"gain_hi\":0.375,"
        "\"workloads\":[{\"incumbent_us\":900.5,\"us\":720.25,\"gain\":0.25},"
        "{\"incumbent_us\":910.5,\"us\":730.25,\"gain\":0.125}],"
        "\"cublas_graph\":{\"us\":[1500.5,0],\"note\":\"/home/y\"}}"};
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(mgl_store_add_event(store, campaign.id, MGL_FINAL_EVENT, finals[i], &err),
                         MGL_OK);
}

static void set_up(void)
{
    store_make_folder();
    store = store_open(store_path("store.db"));
    store_fill_campaign("a night", &campaign);
    mgl_free(campaign.shape);
    campaign.shape = mgl_strdup(shape);
    memcpy(campaign.manifest, mgl_frozen_digest(), MGL_SHA256_HEX);
    ck_assert_int_eq(mgl_store_add_campaign(store, &campaign, &err), MGL_OK);
    add_trials();
    add_finals();
    write_archive();
}

static void tear_down(void)
{
    mgl_text_clear(&text);
    mgl_campaign_record_clear(&campaign);
    mgl_store_close(store);
    store_remove_folder();
}

static void says(const char *part)
{
    ck_assert_msg(strstr(err.message, part) || strstr(err.where, part), "\"%s: %s\" has no \"%s\"",
                  err.where, err.message, part);
}

/* ---- contents of an archive ------------------------------------------------------------------ */

static mgl_archive parse(void)
{
    mgl_archive archive;
    mgl_status status = mgl_archive_parse(text.bytes, text.length, "a.json", &archive, &err);
    ck_assert_msg(!status, "%s: %s", err.where, err.message);
    return archive;
}

START_TEST(campaign_comes_back)
{
    mgl_archive archive = parse();
    const mgl_campaign_record *found = &archive.campaign;
    ck_assert_str_eq(found->name, "a night");
    ck_assert_str_eq(found->model, campaign.model);
    ck_assert_str_eq(found->device, campaign.device);
    ck_assert_str_eq(found->target, campaign.target);
    ck_assert_str_eq(found->workloads, campaign.workloads);
    ck_assert_str_eq(found->manifest, campaign.manifest);
    ck_assert_str_eq(found->shape, shape);
    ck_assert_uint_eq(found->seed, campaign.seed);
    ck_assert_int_eq(found->capacity, campaign.capacity);
    ck_assert_int_eq(found->trials, TRIALS);
    ck_assert_int_eq(found->incumbent, TRIALS);
    ck_assert_int_eq(archive.config.geometry.hidden, 2048);
    ck_assert_int_eq(archive.target.queues, 132);
    ck_assert_int_eq(archive.dtype, MGL_BF16);
    ck_assert_int_eq(archive.workloads.count, 2);
    ck_assert_int_eq(archive.manifest_version, mgl_frozen_version());
    mgl_archive_clear(&archive);
}
END_TEST

START_TEST(trials_come_back)
{
    mgl_archive archive = parse();
    ck_assert_uint_eq(archive.trial_count, 5); /* 3, 8, 13, 18, 23 */
    for (size_t i = 0; i < archive.trial_count; i++) {
        mgl_trial stored;
        mgl_trial *read = &archive.trials[i];
        ck_assert_int_eq(mgl_store_get_trial(store, campaign.id, read->number, true, &stored, &err),
                         MGL_OK);
        stored.campaign = read->campaign;
        if (stored.proposal.schedule) { /* a schedule instead of config and moves */
            mgl_schedule_config_default(&stored.proposal.config);
            mgl_moves_clear(&stored.proposal.moves);
        }
        bool kept = read->verdict.outcome == MGL_OUTCOME_OK;
        if (!kept)
            stored.p_value = read->p_value; /* a p-value of NaN may have other bits */
        const char *name = store_find_difference(&stored, read, true);
        ck_assert_msg(!name, "%s of trial %lld differs", name, (long long)read->number);
        ck_assert(kept == !isnan(read->p_value));
        mgl_trial_clear(&stored);
    }
    ck_assert_int_eq(archive.winner->number, TRIALS);
    mgl_archive_clear(&archive);
}
END_TEST

START_TEST(shares_come_back)
{
    mgl_archive archive = parse();
    ck_assert_uint_eq(archive.share_count, 2);
    ck_assert_str_eq(archive.shares[0].proposer, "evolve");
    ck_assert_int_eq(archive.shares[0].trials, 12);
    ck_assert_int_eq(archive.shares[0].kept, KEPT);
    ck_assert_str_eq(archive.shares[1].proposer, "surrogate");
    mgl_archive_clear(&archive);
}
END_TEST

START_TEST(what_was_measured_at_the_end_comes_back)
{
    mgl_archive archive = parse();
    const mgl_answer_final_facts *final = &archive.final;
    ck_assert_int_eq(final->number, TRIALS);
    ck_assert(final->all.gain == 0.25 && final->all.lo == 0.125 && final->all.hi == 0.375);
    ck_assert_int_eq(final->workload_count, 2);
    ck_assert(final->each[0].us == 720.25 && final->each[0].default_us == 900.5);
    ck_assert(final->each[1].us == 730.25 && final->each[1].gain == 0.125);
    ck_assert(final->cublas_us[0] == 1500.5 && final->cublas_us[1] == 0);
    mgl_archive_clear(&archive);
}
END_TEST

/* Archives of earlier versions, and of campaigns that did not end, have no final measurement. */
START_TEST(an_archive_needs_no_end)
{
    static const char *const instead[] = {"", ",\"final\":null"};
    for (int i = 0; i < 2; i++) {
        mgl_archive archive;
        mgl_text other = {0};
        const char *at = strstr(text.bytes, ",\"final\":");
        mgl_text_append(&other, text.bytes, (size_t)(at - text.bytes));
        mgl_text_put(&other, instead[i]);
        mgl_text_put(&other, "}\n");
        mgl_status status = mgl_archive_parse(other.bytes, other.length, "a.json", &archive, &err);
        ck_assert_msg(!status, "%s: %s", err.where, err.message);
        ck_assert_int_eq(archive.final.number, 0);
        mgl_archive_clear(&archive);
        mgl_text_clear(&other);
    }
}
END_TEST

/* The stored final measurement belongs to trial 23, but a later trial is now the winner. */
START_TEST(the_end_of_another_winner_is_not_exported)
{
    mgl_trial trial;
    store_fill_trial(campaign.id, TRIALS + 1, 2, &trial);
    keep(&trial);
    ck_assert_int_eq(mgl_store_add_trial(store, &trial, &err), MGL_OK);
    mgl_trial_clear(&trial);
    mgl_text_clear(&text);
    write_archive();
    mgl_archive archive = parse();
    ck_assert_int_eq(archive.final.number, 0);
    mgl_archive_clear(&archive);
}
END_TEST

START_TEST(nothing_of_the_machine_is_in_it)
{
    static const char *const secrets[] = {"/home",    "night.log",   "megalith.space", "sk-secret",
                                          "store.db", "\"options\"", "\"messages\""};
    mgl_trial trial;
    mgl_store_message message = {.request = "sk-secret", .response = "sk-secret"};
    ck_assert_int_eq(mgl_store_add_message(store, campaign.id, &message, &err), MGL_OK);
    store_fill_trial(campaign.id, 33, 2, &trial);
    snprintf(trial.driver, sizeof trial.driver, "/home/x");
    keep(&trial);
    snprintf(trial.verdict.diagnostic, sizeof trial.verdict.diagnostic,
             "see /home/someone/x.mls:3");
    trial.proposal.parent = 0;
    ck_assert_int_eq(mgl_store_add_trial(store, &trial, &err), MGL_OK);
    mgl_trial_clear(&trial);
    mgl_text_clear(&text);
    write_archive();
    for (size_t i = 0; i < sizeof secrets / sizeof *secrets; i++)
        ck_assert_msg(!strstr(text.bytes, secrets[i]), "%s", secrets[i]);
    mgl_archive archive;
    ck_assert_int_eq(mgl_archive_parse(text.bytes, text.length, "a", &archive, &err),
                     MGL_BAD_INPUT); /* the store does not have 33 trials */
    says("must be between 1 and 24");
}
END_TEST

START_TEST(long_hypothesis_is_cut)
{
    mgl_trial trial;
    store_fill_trial(campaign.id, TRIALS + 1, 2, &trial);
    mgl_free(trial.proposal.hypothesis);
    trial.proposal.hypothesis = mgl_alloc_zero(1000, 1);
    memset(trial.proposal.hypothesis, 'h', 999);
    keep(&trial);
    ck_assert_int_eq(mgl_store_add_trial(store, &trial, &err), MGL_OK);
    mgl_trial_clear(&trial);
    mgl_text_clear(&text);
    write_archive();
    mgl_archive archive = parse();
    ck_assert_uint_le(strlen(archive.winner->proposal.hypothesis), MGL_MAX_HYPOTHESIS);
    mgl_archive_clear(&archive);
}
END_TEST

START_TEST(campaign_that_kept_nothing_is_not_exported)
{
    mgl_campaign_record second;
    mgl_text none = {0};
    store_add_campaign(store, "two", &second);
    ck_assert_int_eq(mgl_archive_write(store, "two", &none, &err), MGL_BAD_INPUT);
    says("kept nothing");
    ck_assert_int_eq(mgl_archive_write(store, "three", &none, &err), MGL_BAD_INPUT);
    ck_assert_uint_eq(none.length, 0);
    mgl_campaign_record_clear(&second);
}
END_TEST

START_TEST(other_manifest_has_no_version)
{
    mgl_campaign_record second;
    mgl_trial trial;
    store_fill_campaign("two", &second);
    mgl_free(second.shape);
    second.shape = mgl_strdup(shape);
    ck_assert_int_eq(mgl_store_add_campaign(store, &second, &err), MGL_OK);
    store_fill_trial(second.id, 1, 2, &trial);
    keep(&trial);
    ck_assert_int_eq(mgl_store_add_trial(store, &trial, &err), MGL_OK);
    mgl_text_clear(&text);
    write_archive();
    mgl_archive archive = parse();
    ck_assert_int_eq(archive.manifest_version, 0);
    mgl_archive_clear(&archive);
    mgl_trial_clear(&trial);
    mgl_campaign_record_clear(&second);
}
END_TEST

/* ---- trials that contradict their pairs ------------------------------------------------------ */

/* Forged facts of a kept trial, each with the error message that it must cause. */
static void forge_outcome(mgl_trial *trial)
{
    for (int i = 0; i < trial->pair_count; i++)
        trial->pairs[i].candidate_us = trial->pairs[i].incumbent_us * 1.03;
}

static void forge_gain(mgl_trial *trial)
{
    trial->gain += 0.001;
}

static void forge_interval(mgl_trial *trial)
{
    trial->gain_lo = trial->gain;
}

static void forge_p_value(mgl_trial *trial)
{
    trial->p_value /= 2;
}

static void forge_workload(mgl_trial *trial)
{
    trial->workloads[1].gain = 0.9;
}

static void forge_level(mgl_trial *trial)
{
    trial->level = 0.04;
}

static void forge_pairs(mgl_trial *trial)
{
    trial->pair_count--;
}

static void forge_clocks(mgl_trial *trial)
{
    for (int i = 0; i < trial->pair_count; i++)
        trial->pairs[i].reasons = 0x08; /* slowed down, but not dropped */
}

static const struct {
    void (*forge)(mgl_trial *);
    const char *says;
} forged[] = {
    {forge_outcome, "its outcome: they give REGRESSION"},
    {forge_gain, "its gain"},
    {forge_interval, "its interval"},
    {forge_p_value, "its p value"},
    {forge_workload, "its gain of a workload"},
    {forge_level, "its level"},
    {forge_pairs, "63 pairs"},
    {forge_clocks, "its outcome"},
};

START_TEST(a_forged_keep_is_not_exported)
{
    mgl_trial trial;
    mgl_text none = {0};
    store_fill_trial(campaign.id, TRIALS + 1, 2, &trial);
    keep(&trial);
    forged[_i].forge(&trial);
    trial.verdict.outcome = MGL_OUTCOME_OK;
    ck_assert_int_eq(mgl_store_add_trial(store, &trial, &err), MGL_OK);
    ck_assert_int_eq(mgl_archive_write(store, NULL, &none, &err), MGL_BAD_INPUT);
    says("trial 24");
    says(forged[_i].says);
    ck_assert_uint_eq(none.length, 0);
    mgl_trial_clear(&trial);
}
END_TEST

/* ---- rejected archives ----------------------------------------------------------------------- */

static const struct {
    const char *from, *to; /* first occurrence in the archive; NULL: the end of the archive */
    const char *says;
} hostile[] = {
    {"megalith.archive/1", "megalith.archive/2", "its schema must be"},
    {"{\"schema\":\"megalith.archive/1\",", "{", "schema"},
    {"{\"schema\"", "[{\"schema\"", "JSON"},
    {NULL, "{}", "JSON"},
    {"\"program\"", "\"more\":1,\"program\"", "keys that this version does not know"},
    {"\"program\":", "\"program\":\"1\",\"program\":", "is given twice"},
    {"\"name\":\"a night\"", "\"name\":\"../../etc\"", "\"name\""},
    {"\"name\":\"a night\"", "\"name\":\"a\\u001b[2J\"", "\"name\""},
    {"\"name\":\"a night\"", "\"name\":\"\"", "name of a campaign"},
    {"\"name\":\"a night\"", "\"name\":null", "name of a campaign"},
    {"\"name\":\"a night\"", "\"name\":7", "\"name\""},
    {"\"model\":\"llama-1b\"", "\"model\":\"C:\\\\x\"", "\"model\""},
    {"\"device\":\"NVIDIA H200\"", "\"device\":null", "must be texts"},
    {"\"target\":\"sm_90a:132\"", "\"target\":\"sm_1:0\"", ""},
    {"\"dtype\":\"bf16\"", "\"dtype\":\"q4\"", "is no dtype"},
    {"\"workloads\":\"ctx=0,8192;batch=1\"", "\"workloads\":\"ctx=x\"", ""},
    {"\"workloads\":\"ctx=0,8192;batch=1\"", "\"workloads\":\"ctx=0;batch=1\"", "results of 1"},
    {"\"capacity\":4096", "\"capacity\":0", "capacity"},
    {"\"capacity\":4096", "\"capacity\":NaN", "JSON"},
    {"\"capacity\":4096", "\"capacity\":1e999", "too large"},
    {"\"capacity\":4096", "\"capacity\":4096.5", "capacity"},
    {"\"seed\":\"", "\"seed\":\"9999", "2^64"},
    {"\"seed\":\"", "\"seed\":\"-", "2^64"},
    {"\"seconds\":1.5", "\"seconds\":\"1.5\"", "number or null"},
    {"\"hidden_size\":2048", "\"hidden_size\":-2048", "hidden_size"},
    {"\"num_hidden_layers\":16", "\"num_hidden_layers\":16000000", "num_hidden_layers"},
    {"\"model_type\":\"llama\"", "\"model_type\":\"../llama\"", "model_type"},
    {"\"incumbent\":23", "\"incumbent\":13", "the last trial that was kept"},
    {"\"incumbent\":23", "\"incumbent\":24", "incumbent"},
    {"\"kept\":3", "\"kept\":9000", "kept"},
    {"\"proposer\":\"evolve\",\"trials\"", "\"other\":\"evolve\",\"trials\"", "proposer"},
    {"\"number\":3,", "\"number\":0,", "above that of the trial before"},
    {"\"number\":8,", "\"number\":3,", "above that of the trial before"},
    {"\"number\":3,", "\"number\":3,\"extra\":0,", "keys that this version does not know"},
    {"\"parent\":8", "\"parent\":9", "which is not before it"},
    {"\"outcome\":\"OK\"", "\"outcome\":\"WON\"", "the name of an outcome"},
    {"\"digest\":\"", "\"digest\":\"x", "\"digest\""},
    {"\"commit_id\":\"", "\"commit_id\":\"/", "\"commit_id\""},
    {"\"control\":false", "\"control\":0", "true or false"},
    {"\"duplicate_of\":0", "\"duplicate_of\":-1", "duplicate_of"},
    {"\"page_bytes\"", "\"page_bites\"", "page_bites"},
    {"rows layer=3", "rm layer=3", "moves"},
    {"\"hypothesis\":\"", "\"hypotheses\":\"", "unknown key"},
    {"\"results\":[{", "\"results\":[{\"more\":1,", "keys that this version does not know"},
    {"\"results\":[{", "\"results\":[{},{},{", "results of 2 workloads"},
    {"\"results\":[{", "\"results\":7,\"x\":[{", ""},
    {"\"pairs\":[[0,", "\"pairs\":[[2,", "that there is not"},
    {"\"pairs\":[[0,0,", "\"pairs\":[[0,6,", "that there is not"},
    {"\"pairs\":[[0,0,", "\"pairs\":[[0,0,0,", "an array of 11 values"},
    {"\"pairs\":[[", "\"pairs\":[[],[", "an array of 11 values"},
    {"\"pairs\":[[", "\"pairs\":[{\"a\":1},[", "an array of 11 values"},
    {"\"pairs\":[[0,0,true,false,9", "\"pairs\":[[0,0,true,false,-9", "without its two times"},
    {"\"pairs\":[[0,0,true", "\"pairs\":[[0,0,null", "true or false"},
    {"\"final\":{", "\"final\":[],\"x\":{", "keys that this version does not know"},
    {"\"final\":{", "\"final\":{\"more\":1,", "it must have number"},
    {"\"final\":{\"number\":23", "\"final\":{\"number\":13", "number"},
    {"\"gain\":0.25,\"gain_lo\"", "\"gain\":\"much\",\"gain_lo\"", "number or null"},
    {"\"gain\":0.25,\"gain_lo\"", "\"gain\":9.5,\"gain_lo\"", "must lie between gain_lo"},
    {"\"us\":720.25", "\"us\":-720.25", "a time must be 0 or more"},
    {"\"us\":720.25", "\"them\":720.25", "\"us\" is missing"},
    {"\"us\":720.25", "\"us\":720.25,\"more\":1", "keys that this version does not know"},
    {"\"us\":720.25,\"default_us\":900.5,\"cublas_us\":1500.5}", "\"us\":1},{}", ""},
};

/* The archive with the first `from` replaced by another text. */
static mgl_text tamper(const char *from, const char *to)
{
    mgl_text out = {0};
    const char *at = from ? strstr(text.bytes, from) : text.bytes + text.length;
    ck_assert_msg(at != NULL, "the archive has no %s", from);
    mgl_text_append(&out, text.bytes, (size_t)(at - text.bytes));
    mgl_text_put(&out, to);
    mgl_text_put(&out, at + (from ? strlen(from) : 0));
    return out;
}

START_TEST(hostile_archives_are_rejected)
{
    mgl_archive archive;
    mgl_text bad = tamper(hostile[_i].from, hostile[_i].to);
    err = (mgl_error){0};
    ck_assert_int_eq(mgl_archive_parse(bad.bytes, bad.length, "a.json", &archive, &err),
                     MGL_BAD_INPUT);
    ck_assert_int_eq(err.code, MGL_BAD_INPUT);
    says(hostile[_i].says);
    ck_assert_ptr_null(archive.trials);
    mgl_text_clear(&bad);
}
END_TEST

START_TEST(large_archive_is_rejected)
{
    enum { BYTES = 100 << 20 };
    mgl_archive archive;
    char *bytes = mgl_alloc(BYTES);
    memset(bytes, ' ', BYTES);
    ck_assert_int_eq(mgl_archive_parse(bytes, BYTES, "a.json", &archive, &err), MGL_BAD_INPUT);
    mgl_free(bytes);
}
END_TEST

START_TEST(cut_archives_are_rejected)
{
    mgl_archive archive;
    for (size_t length = 0; length + 2 < text.length; length += 397)
        ck_assert_int_eq(mgl_archive_parse(text.bytes, length, "a.json", &archive, &err),
                         MGL_BAD_INPUT);
}
END_TEST

/* An archive with one damaged byte is rejected, or is read and released without a leak. */
START_TEST(damaged_archives_do_no_harm)
{
    uint64_t state = 1;
    for (int i = 0; i < 100; i++) {
        mgl_archive archive;
        size_t at = (size_t)mgl_draw_below(&state, text.length);
        char before = text.bytes[at];
        text.bytes[at] = (char)mgl_draw(&state);
        mgl_status status = mgl_archive_parse(text.bytes, text.length, "a.json", &archive, &err);
        ck_assert(status == MGL_OK || status == MGL_BAD_INPUT);
        mgl_archive_clear(&archive);
        text.bytes[at] = before;
    }
}
END_TEST

START_TEST(every_allocation_fails)
{
    mgl_status status = MGL_NO_MEMORY;
    uint64_t n = 0;
    for (; status == MGL_NO_MEMORY; n += 1 + n / 8) {
        mgl_archive archive;
        mgl_alloc_fail_at(n + 1, true);
        status = mgl_archive_parse(text.bytes, text.length, "a.json", &archive, &err);
        mgl_alloc_fail_at(0, false);
        mgl_archive_clear(&archive);
    }
    ck_assert_int_eq(status, MGL_OK);
    for (n = 0, status = MGL_NO_MEMORY; status == MGL_NO_MEMORY; n += 1 + n / 8) {
        mgl_text out = {0};
        mgl_alloc_fail_at(n + 1, true);
        status = mgl_archive_write(store, NULL, &out, &err);
        mgl_alloc_fail_at(0, false);
        mgl_text_clear(&out);
    }
    ck_assert_int_eq(status, MGL_OK);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        campaign_comes_back,
        trials_come_back,
        shares_come_back,
        what_was_measured_at_the_end_comes_back,
        an_archive_needs_no_end,
        the_end_of_another_winner_is_not_exported,
        nothing_of_the_machine_is_in_it,
        long_hypothesis_is_cut,
        campaign_that_kept_nothing_is_not_exported,
        other_manifest_has_no_version,
        every_allocation_fails,
    };
    Suite *suite = suite_create("archive");
    TCase *cases = tcase_create("archive"), *refused = tcase_create("hostile");
    disk_install();
    tcase_set_timeout(cases, 60);
    tcase_add_checked_fixture(cases, set_up, tear_down);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tcase_add_test(cases, tests[i]);
    tcase_add_loop_test(cases, a_forged_keep_is_not_exported, 0,
                        (int)(sizeof forged / sizeof *forged));
    tcase_set_timeout(refused, 60);
    tcase_add_unchecked_fixture(refused, set_up, tear_down); /* one archive for all tests */
    tcase_add_test(refused, large_archive_is_rejected);
    tcase_add_test(refused, cut_archives_are_rejected);
    tcase_add_test(refused, damaged_archives_do_no_harm);
    tcase_add_loop_test(refused, hostile_archives_are_rejected, 0,
                        (int)(sizeof hostile / sizeof *hostile));
    suite_add_tcase(suite, cases);
    suite_add_tcase(suite, refused);
    SRunner *suite_runner = srunner_create(suite);
    srunner_run_all(suite_runner, CK_NORMAL);
    int failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
