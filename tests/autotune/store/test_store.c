/*
 * Tests of every function and field of the store, and of its answers to invalid requests.
 *
 *     test_store [postgres]
 *
 * With `postgres`, tests a PostgreSQL server of its own instead of a file; skipped if there is
 * none.
 */
#include "tests/autotune/store/failing_disk.h"
#include "tests/autotune/store/postgres_server.h"
#include "tests/autotune/store/store_support.h"

#include "base/memory.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static mgl_store *store;
static mgl_campaign_record campaign; /* "one", stored */
static mgl_error err;

static void set_up(void)
{
    store_make_folder();
    store = store_open(store_place());
    store_add_campaign(store, "one", &campaign);
    err = (mgl_error){0};
}

static void tear_down(void)
{
    mgl_campaign_record_clear(&campaign);
    mgl_store_close(store);
    store_remove_folder();
}

static void says(const char *part)
{
    ck_assert_msg(strstr(err.message, part) != NULL, "\"%s\" has no \"%s\"", err.message, part);
}

static void add(mgl_trial *trial)
{
    mgl_status status = mgl_store_add_trial(store, trial, &err);
    ck_assert_msg(!status, "%s: %s", err.where, err.message);
}

/* Adds trial `number` with this number of pairs. */
static void add_number(int64_t number, int pairs)
{
    mgl_trial trial;
    store_fill_trial(campaign.id, number, pairs, &trial);
    add(&trial);
    mgl_trial_clear(&trial);
}

static void is_same_campaign(const mgl_campaign_record *a, const mgl_campaign_record *b)
{
    const char *name = store_compare_fields(&mgl_campaign_fields, a, b);
    ck_assert_msg(!name, "%s differs", name);
    ck_assert_int_eq(a->id, b->id);
}

static mgl_campaign_record find(const char *name)
{
    mgl_campaign_record found;
    mgl_status status = mgl_store_find_campaign(store, name, &found, &err);
    ck_assert_msg(!status, "%s: %s", err.where, err.message);
    return found;
}

/* ---- campaigns ------------------------------------------------------------------------------- */

START_TEST(campaign_comes_back)
{
    mgl_campaign_record found = find("one");
    is_same_campaign(&found, &campaign);
    ck_assert_int_eq(found.trials, 0);
    ck_assert_int_eq(found.incumbent, 0);
    mgl_campaign_record_clear(&found);
}
END_TEST

START_TEST(campaign_of_nothing_but_a_name_comes_back)
{
    mgl_campaign_record bare = {.name = mgl_strdup("bare")}, found;
    ck_assert_int_eq(mgl_store_add_campaign(store, &bare, &err), MGL_OK);
    ck_assert_int_gt(bare.created_unix, 1600000000);
    found = find("bare");
    is_same_campaign(&found, &bare);
    mgl_campaign_record_clear(&found);
    mgl_campaign_record_clear(&bare);
}
END_TEST

START_TEST(name_that_stands_is_rejected)
{
    mgl_campaign_record second;
    store_fill_campaign("one", &second);
    ck_assert_int_eq(mgl_store_add_campaign(store, &second, &err), MGL_USAGE);
    says("there is a campaign \"one\" already");
    mgl_campaign_record_clear(&second);
}
END_TEST

START_TEST(names_that_are_none_are_rejected)
{
    char longest[130];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    const char *const names[] = {"", "a/b", "..", "a\nb", "a\x7F", longest};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        mgl_campaign_record bad = {.name = mgl_strdup(names[i])};
        ck_assert_int_eq(mgl_store_add_campaign(store, &bad, &err), MGL_USAGE);
        mgl_campaign_record_clear(&bad);
    }
    longest[128] = 0;
    mgl_campaign_record good = {.name = mgl_strdup(longest)}, none = {0};
    ck_assert_int_eq(mgl_store_add_campaign(store, &good, &err), MGL_OK);
    ck_assert_int_eq(mgl_store_add_campaign(store, &none, &err), MGL_USAGE);
    mgl_campaign_record_clear(&good);
}
END_TEST

START_TEST(no_name_is_the_newest)
{
    mgl_campaign_record second, found;
    store_add_campaign(store, "two", &second);
    found = find(NULL);
    ck_assert_str_eq(found.name, "two");
    mgl_campaign_record_clear(&found);
    mgl_campaign_record_clear(&second);
}
END_TEST

START_TEST(unknown_name_is_told_with_those_there_are)
{
    mgl_campaign_record second, found;
    store_add_campaign(store, "two", &second);
    ck_assert_int_eq(mgl_store_find_campaign(store, "three", &found, &err), MGL_BAD_INPUT);
    says("there is no campaign \"three\"; there are \"two\", \"one\"");
    mgl_campaign_record_clear(&second);
}
END_TEST

START_TEST(store_without_campaigns_says_so)
{
    mgl_campaign_record found;
    ck_assert_int_eq(mgl_store_delete_campaign(store, campaign.id, &err), MGL_OK);
    ck_assert_int_eq(mgl_store_find_campaign(store, NULL, &found, &err), MGL_BAD_INPUT);
    says("there is no campaign yet");
    ck_assert_ptr_null(found.name);
}
END_TEST

static mgl_status join_names(void *user, const mgl_campaign_record *record, mgl_error *error)
{
    (void)error;
    mgl_text_format(user, "%s ", record->name);
    return record->name[0] == 's' ? MGL_GATE : MGL_OK;
}

START_TEST(each_campaign_comes_oldest_first)
{
    mgl_text names = {0};
    mgl_campaign_record second;
    store_add_campaign(store, "another", &second);
    ck_assert_int_eq(mgl_store_each_campaign(store, join_names, &names, &err), MGL_OK);
    ck_assert_str_eq(names.bytes, "one another ");
    mgl_text_clear(&names);
    mgl_campaign_record_clear(&second);
}
END_TEST

START_TEST(each_campaign_ends_with_the_status_of_the_call)
{
    mgl_text names = {0};
    mgl_campaign_record second, third;
    store_add_campaign(store, "stop", &second);
    store_add_campaign(store, "never", &third);
    ck_assert_int_eq(mgl_store_each_campaign(store, join_names, &names, &err), MGL_GATE);
    ck_assert_str_eq(names.bytes, "one stop ");
    mgl_text_clear(&names);
    mgl_campaign_record_clear(&second);
    mgl_campaign_record_clear(&third);
}
END_TEST

START_TEST(state_is_kept)
{
    ck_assert_int_eq(mgl_store_set_state(store, campaign.id, "paused", "no disk", 77.5, &err),
                     MGL_OK);
    mgl_campaign_record found = find("one");
    ck_assert_str_eq(found.state, "paused");
    ck_assert_str_eq(found.reason, "no disk");
    ck_assert_double_eq(found.seconds, 77.5);
    ck_assert_int_gt(found.updated_unix, campaign.updated_unix);
    mgl_campaign_record_clear(&found);
}
END_TEST

START_TEST(stop_is_asked_and_taken_back)
{
    bool asked = true;
    ck_assert_int_eq(mgl_store_is_stop_asked(store, campaign.id, &asked, &err), MGL_OK);
    ck_assert(!asked);
    ck_assert_int_eq(mgl_store_ask_stop(store, campaign.id, true, &err), MGL_OK);
    ck_assert_int_eq(mgl_store_is_stop_asked(store, campaign.id, &asked, &err), MGL_OK);
    ck_assert(asked);
    ck_assert_int_eq(mgl_store_ask_stop(store, campaign.id, false, &err), MGL_OK);
    ck_assert_int_eq(mgl_store_is_stop_asked(store, campaign.id, &asked, &err), MGL_OK);
    ck_assert(!asked);
}
END_TEST

START_TEST(deleted_campaign_takes_all_of_its_own)
{
    int64_t id, requests, tokens;
    mgl_trial trial;
    mgl_campaign_record second;
    mgl_store_message message = {.outcome = MGL_OUTCOME_OK, .tokens_in = 3};
    store_add_campaign(store, "two", &second);
    add_number(1, 10);
    store_fill_trial(second.id, 1, 10, &trial);
    add(&trial);
    mgl_trial_clear(&trial);
    ck_assert_int_eq(mgl_store_add_submission(store, campaign.id, "{}", "mcp", &id, &err), MGL_OK);
    ck_assert_int_eq(mgl_store_add_message(store, campaign.id, &message, &err), MGL_OK);
    ck_assert_int_eq(mgl_store_delete_campaign(store, campaign.id, &err), MGL_OK);
    ck_assert_int_eq(mgl_store_get_trial(store, campaign.id, 1, true, &trial, &err), MGL_BAD_INPUT);
    ck_assert_int_eq(mgl_store_sum_costs(store, campaign.id, &requests, &tokens, &err), MGL_OK);
    ck_assert_int_eq(requests, 0);
    ck_assert_int_eq(store_count_whole(store, second.id, 10), 1);
    mgl_campaign_record_clear(&second);
}
END_TEST

START_TEST(what_is_told_of_a_deleted_campaign_is_rejected)
{
    int64_t id;
    mgl_trial trial;
    mgl_store_message message = {.outcome = MGL_OUTCOME_OK};
    ck_assert_int_eq(mgl_store_delete_campaign(store, campaign.id, &err), MGL_OK);
    store_fill_trial(campaign.id, 1, 10, &trial);
    ck_assert_int_eq(mgl_store_add_trial(store, &trial, &err), MGL_BAD_INPUT);
    says("was it deleted?");
    ck_assert_int_eq(mgl_store_delete_campaign(store, campaign.id, &err), MGL_BAD_INPUT);
    ck_assert_int_eq(mgl_store_set_state(store, campaign.id, "ended", NULL, 0, &err),
                     MGL_BAD_INPUT);
    ck_assert_int_eq(mgl_store_ask_stop(store, campaign.id, true, &err), MGL_BAD_INPUT);
    ck_assert_int_eq(mgl_store_add_event(store, campaign.id, "end", "text", &err), MGL_BAD_INPUT);
    ck_assert_int_eq(mgl_store_add_message(store, campaign.id, &message, &err), MGL_BAD_INPUT);
    ck_assert_int_eq(mgl_store_add_submission(store, campaign.id, "{}", "mcp", &id, &err),
                     MGL_BAD_INPUT);
    mgl_trial_clear(&trial);
}
END_TEST

START_TEST(id_of_a_deleted_campaign_is_not_given_again)
{
    mgl_campaign_record second;
    ck_assert_int_eq(mgl_store_delete_campaign(store, campaign.id, &err), MGL_OK);
    store_add_campaign(store, "two", &second);
    ck_assert_int_gt(second.id, campaign.id);
    mgl_campaign_record_clear(&second);
}
END_TEST

/* ---- trials ---------------------------------------------------------------------------------- */

/* Stored and read again, with and without pairs. */
static void comes_back(mgl_trial *trial)
{
    mgl_trial found;
    add(trial);
    ck_assert_int_gt(trial->id, 0);
    for (int pairs = 0; pairs < 2; pairs++) {
        mgl_status status =
            mgl_store_get_trial(store, campaign.id, trial->number, pairs, &found, &err);
        ck_assert_msg(!status, "%s: %s", err.where, err.message);
        const char *name = store_find_difference(trial, &found, pairs);
        ck_assert_msg(!name, "%s differs", name);
        ck_assert_int_eq(found.id, trial->id);
        ck_assert_int_eq(found.pair_count, pairs ? trial->pair_count : 0);
        mgl_trial_clear(&found);
    }
}

START_TEST(trial_comes_back)
{
    mgl_trial trial;
    store_fill_trial(campaign.id, _i, STORE_PAIRS, &trial);
    comes_back(&trial);
    mgl_trial_clear(&trial);
}
END_TEST

START_TEST(trial_of_nothing_comes_back)
{
    mgl_trial trial = {.campaign = campaign.id,
                       .number = 1,
                       .verdict.outcome = MGL_OUTCOME_PROPOSER_HTTP,
                       .gain = NAN,
                       .p_value = -1};
    comes_back(&trial);
}
END_TEST

START_TEST(extremes_come_back)
{
    mgl_trial trial;
    store_fill_trial(campaign.id, 1, MGL_MAX_WORKLOADS, &trial);
    trial.number = INT64_MAX;
    trial.workload_count = MGL_MAX_WORKLOADS;
    trial.control = true;
    trial.gain = 5e-324;
    trial.gain_hi = INFINITY;
    trial.gain_lo = -INFINITY;
    trial.pairs[0].reasons = UINT64_MAX;
    trial.pairs[0].sm_mhz[1] = UINT32_MAX;
    trial.pairs[0].incumbent_us = 0.1 + 0.2;
    memset(trial.verdict.diagnostic, 0xC3,
           MGL_MAX_DIAGNOSTIC); /* invalid UTF-8: a file keeps the bytes */
    if (mgl_store_is_shared(store))
        memset(trial.verdict.diagnostic, '?', MGL_MAX_DIAGNOSTIC);
    comes_back(&trial);
    mgl_trial_clear(&trial);
}
END_TEST

START_TEST(number_that_stands_is_rejected)
{
    mgl_trial trial;
    add_number(1, 10);
    store_fill_trial(campaign.id, 1, 20, &trial);
    ck_assert_int_eq(mgl_store_add_trial(store, &trial, &err), MGL_USAGE);
    says("trial 1 of the campaign already exists");
    ck_assert_int_eq(store_count_whole(store, campaign.id, 10), 1);
    mgl_trial_clear(&trial);
}
END_TEST

START_TEST(config_that_would_not_be_read_back_is_rejected)
{
    mgl_trial trial;
    store_fill_trial(campaign.id, 1, 10, &trial);
    trial.proposal.config.page_bytes = -5;
    ck_assert_int_eq(mgl_store_add_trial(store, &trial, &err), MGL_BAD_INPUT);
    ck_assert_str_eq(err.where, "config: page_bytes");
    ck_assert_int_eq(store_count_whole(store, campaign.id, 10), 0);
    add_number(1, 10);
    mgl_trial_clear(&trial);
}
END_TEST

START_TEST(incumbent_is_the_newest_kept_trial)
{
    mgl_trial control;
    for (int64_t number = 1; number <= 14; number++)
        add_number(number, 2); /* 3 and 13 are kept */
    store_fill_trial(campaign.id, 15, 2, &control);
    control.control = true;
    control.verdict.outcome = MGL_OUTCOME_OK;
    add(&control);
    mgl_campaign_record found = find("one");
    ck_assert_int_eq(found.incumbent, 13);
    ck_assert_int_eq(found.trials, 15);
    mgl_campaign_record_clear(&found);
    mgl_trial_clear(&control);
}
END_TEST

START_TEST(missing_trial_is_told)
{
    mgl_trial trial;
    ck_assert_int_eq(mgl_store_get_trial(store, campaign.id, 5, true, &trial, &err), MGL_BAD_INPUT);
    says("no trial 5");
    ck_assert_ptr_null(trial.pairs);
}
END_TEST

START_TEST(digest_finds_the_first_that_was_tried)
{
    int64_t number = 0;
    mgl_trial trial;
    const mgl_outcome outcomes[] = {MGL_OUTCOME_OK, MGL_OUTCOME_DUPLICATE, MGL_OUTCOME_NO_GAIN,
                                    MGL_OUTCOME_NO_GAIN};
    for (int i = 0; i < 4; i++) {
        store_fill_trial(campaign.id, i + 1, 2, &trial);
        memset(trial.digest, 'd', MGL_SHA256_HEX - 1);
        trial.verdict.outcome = outcomes[i];
        trial.control = i == 0;
        add(&trial);
        mgl_trial_clear(&trial);
    }
    char digest[MGL_SHA256_HEX] = "";
    ck_assert_int_eq(mgl_store_find_digest(store, campaign.id, digest, &number, &err), MGL_OK);
    ck_assert_int_eq(number, 0);
    memset(digest, 'd', MGL_SHA256_HEX - 1);
    ck_assert_int_eq(mgl_store_find_digest(store, campaign.id, digest, &number, &err), MGL_OK);
    ck_assert_int_eq(number, 3);
    ck_assert_int_eq(mgl_store_find_digest(store, campaign.id + 1, digest, &number, &err), MGL_OK);
    ck_assert_int_eq(number, 0);
}
END_TEST

static mgl_status sum_numbers(void *user, const mgl_trial *trial, mgl_error *error)
{
    (void)error;
    int64_t *sum = user;
    *sum = *sum * 10 + trial->number;
    return MGL_OK;
}

START_TEST(trials_come_in_order_and_in_part)
{
    static const struct {
        int64_t from, limit, numbers;
    } cases[] = {{1, 0, 12345}, {3, 0, 345}, {2, 2, 23}, {9, 0, 0}};
    static const int order[] = {3, 1, 5, 2, 4};
    for (int i = 0; i < 5; i++)
        add_number(order[i], 2);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t numbers = 0;
        ck_assert_int_eq(mgl_store_each_trial(store, campaign.id, cases[i].from, cases[i].limit,
                                              sum_numbers, &numbers, &err),
                         MGL_OK);
        ck_assert_int_eq(numbers, cases[i].numbers);
    }
}
END_TEST

static mgl_status join_numbers(void *user, const mgl_trial *trial, mgl_error *error)
{
    (void)error;
    mgl_text_format(user, "%lld/%d ", (long long)trial->number, trial->pair_count);
    return MGL_OK;
}

START_TEST(line_is_the_incumbents_and_what_they_stand_on)
{
    static const int64_t parents[] = {0, 0, 1, 1, 0, 4, 5, 7, 0, 9, 11, 11, 8}; /* of 1, 2, ... */
    mgl_text numbers = {0};
    for (int64_t number = 1; number <= 13; number++) {
        mgl_trial trial; /* 3 and 13 are kept */
        store_fill_trial(campaign.id, number, 4, &trial);
        trial.proposal.parent = parents[number - 1];
        add(&trial);
        mgl_trial_clear(&trial);
    }
    ck_assert_int_eq(mgl_store_each_in_line(store, campaign.id, join_numbers, &numbers, &err),
                     MGL_OK);
    ck_assert_str_eq(numbers.bytes, "1/4 3/4 5/4 7/4 8/4 13/4 ");
    mgl_text_clear(&numbers);
}
END_TEST

static mgl_status join_shares(void *user, const char *proposer, int64_t trials, int64_t kept,
                              mgl_error *error)
{
    (void)error;
    mgl_text_format(user, "%s %lld %lld; ", proposer, (long long)trials, (long long)kept);
    return MGL_OK;
}

START_TEST(shares_are_counted)
{
    mgl_text shares = {0};
    for (int64_t number = 1; number <= 5; number++)
        add_number(number, 2);
    ck_assert_int_eq(mgl_store_each_share(store, campaign.id, join_shares, &shares, &err), MGL_OK);
    ck_assert_str_eq(shares.bytes, "evolve 3 1; surrogate 2 0; ");
    mgl_text_clear(&shares);
}
END_TEST

START_TEST(outcomes_are_counted_without_controls)
{
    int64_t counts[MGL_OUTCOME_COUNT];
    mgl_trial control;
    for (int64_t number = 1; number <= 12; number++)
        add_number(number, 2);
    store_fill_trial(campaign.id, 13, 2, &control);
    control.control = true;
    add(&control);
    ck_assert_int_eq(mgl_store_count_outcomes(store, campaign.id, counts, &err), MGL_OK);
    ck_assert_int_eq(counts[MGL_OUTCOME_OK], 1);
    ck_assert_int_eq(counts[MGL_OUTCOME_NO_GAIN], 11);
    ck_assert_int_eq(counts[MGL_OUTCOME_HANG], 0);
    mgl_trial_clear(&control);
}
END_TEST

START_TEST(decisions_are_counted)
{
    int64_t count = -1;
    mgl_trial trial;
    for (int64_t number = 1; number <= 3; number++)
        add_number(number, 9); /* three of each stage */
    store_fill_trial(campaign.id, 4, 9, &trial);
    trial.pair_count = 6; /* a trial without this stage */
    add(&trial);
    ck_assert_int_eq(mgl_store_count_decisions(store, campaign.id, &count, &err), MGL_OK);
    ck_assert_int_eq(count, 3);
    mgl_trial_clear(&trial);
}
END_TEST

/* ---- the rest -------------------------------------------------------------------------------- */

START_TEST(submissions_wait_in_order)
{
    int64_t ids[2];
    bool found = false;
    mgl_submission next;
    mgl_trial trial;
    ck_assert_int_eq(
        mgl_store_add_submission(store, campaign.id, "{\"a\":1}", "submit", &ids[0], &err), MGL_OK);
    ck_assert_int_eq(mgl_store_add_submission(store, campaign.id, "second", "mcp", &ids[1], &err),
                     MGL_OK);
    ck_assert_int_eq(mgl_store_next_submission(store, campaign.id, &found, &next, &err), MGL_OK);
    ck_assert(found);
    ck_assert_int_eq(next.id, ids[0]);
    ck_assert_int_eq(next.campaign, campaign.id);
    ck_assert_str_eq(next.text, "{\"a\":1}");
    ck_assert_str_eq(next.origin, "submit");
    ck_assert_int_eq(next.trial, 0);
    mgl_submission_clear(&next);
    store_fill_trial(campaign.id, 1, 2, &trial);
    trial.proposal.queued = ids[0];
    add(&trial);
    mgl_trial_clear(&trial);
    ck_assert_int_eq(mgl_store_next_submission(store, campaign.id, &found, &next, &err), MGL_OK);
    ck_assert_int_eq(next.id, ids[1]);
    mgl_submission_clear(&next);
    ck_assert_int_eq(mgl_store_get_submission(store, ids[0], &next, &err), MGL_OK);
    ck_assert_int_eq(next.trial, 1);
    mgl_submission_clear(&next);
}
END_TEST

START_TEST(no_submission_is_no_error)
{
    bool found = true;
    mgl_submission next;
    ck_assert_int_eq(mgl_store_next_submission(store, campaign.id, &found, &next, &err), MGL_OK);
    ck_assert(!found);
    ck_assert_int_eq(mgl_store_get_submission(store, 99, &next, &err), MGL_BAD_INPUT);
    says("no submission 99");
}
END_TEST

START_TEST(costs_are_summed)
{
    int64_t requests = -1, tokens = -1;
    ck_assert_int_eq(mgl_store_sum_costs(store, campaign.id, &requests, &tokens, &err), MGL_OK);
    ck_assert_int_eq(requests, 0);
    ck_assert_int_eq(tokens, 0);
    for (int i = 1; i <= 3; i++) {
        mgl_store_message message = {.request = "{}",
                                     .outcome = i == 3 ? MGL_OUTCOME_PROPOSER_RATE : MGL_OUTCOME_OK,
                                     .tokens_in = i * 100,
                                     .tokens_out = i,
                                     .seconds = 0.5};
        ck_assert_int_eq(mgl_store_add_message(store, campaign.id, &message, &err), MGL_OK);
    }
    ck_assert_int_eq(mgl_store_sum_costs(store, campaign.id, &requests, &tokens, &err), MGL_OK);
    ck_assert_int_eq(requests, 3);
    ck_assert_int_eq(tokens, 606);
}
END_TEST

static mgl_status join_events(void *user, int64_t unix_s, const char *kind, const char *text,
                              mgl_error *error)
{
    (void)error;
    ck_assert_int_gt(unix_s, 1600000000);
    mgl_text_format(user, "%s: %s; ", kind, text);
    return MGL_OK;
}

START_TEST(events_come_in_order)
{
    mgl_text log = {0};
    ck_assert_int_eq(mgl_store_add_event(store, campaign.id, "keep", "1 %", &err), MGL_OK);
    ck_assert_int_eq(mgl_store_add_event(store, campaign.id, "end", "done", &err), MGL_OK);
    ck_assert_int_eq(mgl_store_each_event(store, campaign.id, join_events, &log, &err), MGL_OK);
    ck_assert_str_eq(log.bytes, "keep: 1 %; end: done; ");
    mgl_text_clear(&log);
}
END_TEST

START_TEST(all_stands_there_when_opened_again)
{
    mgl_campaign_record found;
    for (int64_t number = 1; number <= 5; number++)
        add_number(number, STORE_PAIRS);
    mgl_store_close(store);
    store = store_open(store_place());
    found = find("one");
    ck_assert_int_eq(store_count_whole(store, found.id, STORE_PAIRS), 5);
    mgl_campaign_record_clear(&found);
}
END_TEST

/* Reads and writes a trial while an allocation fails. */
static mgl_status use_trial(int64_t number)
{
    mgl_trial trial, found;
    mgl_campaign_record record;
    mgl_alloc_fail_at(0, false);
    store_fill_trial(campaign.id, number, 10, &trial);
    mgl_alloc_fail_at((uint64_t)number, false);
    mgl_status status = mgl_store_add_trial(store, &trial, &err);
    if (!status)
        status = mgl_store_get_trial(store, campaign.id, number, true, &found, &err);
    if (!status)
        mgl_trial_clear(&found);
    if (!status)
        status = mgl_store_find_campaign(store, NULL, &record, &err);
    if (!status)
        mgl_campaign_record_clear(&record);
    mgl_alloc_fail_at(0, false);
    mgl_trial_clear(&trial);
    return status;
}

START_TEST(every_allocation_fails)
{
    mgl_status status = MGL_NO_MEMORY;
    int64_t number = 0;
    while (status == MGL_NO_MEMORY)
        status = use_trial(++number);
    ck_assert_int_eq(status, MGL_OK);
    ck_assert_int_gt(number, 15);
}
END_TEST

int main(int count, char **arguments)
{
    const TTest *const tests[] = {
        campaign_comes_back,
        campaign_of_nothing_but_a_name_comes_back,
        name_that_stands_is_rejected,
        names_that_are_none_are_rejected,
        no_name_is_the_newest,
        unknown_name_is_told_with_those_there_are,
        store_without_campaigns_says_so,
        each_campaign_comes_oldest_first,
        each_campaign_ends_with_the_status_of_the_call,
        state_is_kept,
        stop_is_asked_and_taken_back,
        deleted_campaign_takes_all_of_its_own,
        what_is_told_of_a_deleted_campaign_is_rejected,
        id_of_a_deleted_campaign_is_not_given_again,
        trial_of_nothing_comes_back,
        extremes_come_back,
        number_that_stands_is_rejected,
        config_that_would_not_be_read_back_is_rejected,
        incumbent_is_the_newest_kept_trial,
        missing_trial_is_told,
        digest_finds_the_first_that_was_tried,
        trials_come_in_order_and_in_part,
        line_is_the_incumbents_and_what_they_stand_on,
        shares_are_counted,
        outcomes_are_counted_without_controls,
        decisions_are_counted,
        submissions_wait_in_order,
        no_submission_is_no_error,
        costs_are_summed,
        events_come_in_order,
        all_stands_there_when_opened_again,
        every_allocation_fails,
    };
    bool shared = count > 1 && !strcmp(arguments[1], "postgres");
    if (shared && !server_start())
        return 77;
    if (shared)
        store_use_server(server_url());
    Suite *suite = suite_create("store");
    TCase *cases = tcase_create("store");
    disk_install();
    tcase_set_timeout(cases, 60);
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_loop_test(cases, trial_comes_back, 1, 15);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tcase_add_test(cases, tests[i]);
    suite_add_tcase(suite, cases);
    SRunner *suite_runner = srunner_create(suite);
    srunner_run_all(suite_runner, CK_NORMAL);
    int failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    if (shared)
        server_stop();
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
