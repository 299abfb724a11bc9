/*
 * Trials, results and pairs in the store. A trial is written in one transaction with all its
 * consequences, and never changed afterwards, except when an incumbent is quarantined. Implements
 * the trial part of store.h.
 */
#include "autotune/store/store_query.h"

#include "base/format.h"
#include "base/memory.h"

#include <string.h>
#include <time.h>

#define COLUMNS "id, campaign" MGL_TRIAL_FIELDS(MGL_COLUMN_NAME)

/* ---- adding --------------------------------------------------------------------------------- */

static bool has_decision(const mgl_trial *trial)
{
    for (int i = 0; i < trial->pair_count; i++)
        if (trial->pairs[i].stage == MGL_PAIRS_DECISION || trial->pairs[i].stage == MGL_PAIRS_CLEAR)
            return true;
    return false;
}

static mgl_status insert_trial(mgl_store *store, const mgl_trial *trial, int64_t *id,
                               mgl_error *err)
{
    mgl_query q = mgl_query_open_with(store,
                                      "INSERT INTO trials (campaign, decided" MGL_TRIAL_FIELDS(
                                          MGL_COLUMN_NAME) ") VALUES (?, ?" //
                                      MGL_TRIAL_FIELDS(MGL_COLUMN_MARK) ") RETURNING id",
                                      MGL_INTS(trial->campaign, has_decision(trial)), err);
    mgl_query_put_fields(&q, &mgl_trial_fields, trial);
    *id = mgl_query_change(&q);
    return mgl_query_close(&q);
}

/* Inserts rows of a trial: `count` records of `size` bytes. */
static mgl_status insert_rows(mgl_store *store, const char *sql, int64_t id,
                              const mgl_fields *fields, const void *records, int count, size_t size,
                              mgl_error *err)
{
    if (!count)
        return MGL_OK;
    mgl_query q = mgl_query_open(store, sql, err);
    for (int i = 0; i < count && !q.status; i++) {
        mgl_query_put_int(&q, id);
        mgl_query_put_int(&q, i);
        mgl_query_put_fields(&q, fields, (const char *)records + (size_t)i * size);
        mgl_query_run(&q);
    }
    return mgl_query_close(&q);
}

static mgl_status mark_submission(mgl_store *store, const mgl_trial *trial, mgl_error *err)
{
    if (!trial->proposal.queued)
        return MGL_OK;
    return mgl_store_run(store, "UPDATE submissions SET trial = ? WHERE id = ? AND campaign = ?",
                         MGL_INTS(trial->number, trial->proposal.queued, trial->campaign), err);
}

static mgl_status mark_campaign(mgl_store *store, int64_t campaign, mgl_error *err)
{
    return mgl_store_run(store, "UPDATE campaigns SET updated_unix = ? WHERE id = ?",
                         MGL_INTS((int64_t)time(NULL), campaign), err);
}

static mgl_status add_all(mgl_store *store, const mgl_trial *trial, int64_t *id, mgl_error *err)
{
    mgl_status status = insert_trial(store, trial, id, err);
    if (!status)
        status = insert_rows(store,
                             "INSERT INTO results (trial, place" MGL_RESULT_FIELDS(
                                 MGL_COLUMN_NAME) ") VALUES (?, ?" //
                             MGL_RESULT_FIELDS(MGL_COLUMN_MARK) ")",
                             *id, &mgl_result_fields, trial->workloads, trial->workload_count,
                             sizeof *trial->workloads, err);
    if (!status)
        status = insert_rows(
            store,
            "INSERT INTO pairs (trial, place" MGL_PAIR_FIELDS(MGL_COLUMN_NAME) ") VALUES (?, ?" //
            MGL_PAIR_FIELDS(MGL_COLUMN_MARK) ")",
            *id, &mgl_pair_fields, trial->pairs, trial->pair_count, sizeof *trial->pairs, err);
    if (!status)
        status = mark_submission(store, trial, err);
    return status ? status : mark_campaign(store, trial->campaign, err);
}

/* ---- trials of distributed workers ----------------------------------------------------------- */

/* Releases the worker's reservation of the number. Fails if the worker no longer holds it. */
static mgl_status give_up_claim(mgl_store *store, const mgl_trial *trial, mgl_error *err)
{
    int64_t found = 0;
    mgl_status status =
        mgl_store_ask(store,
                      "DELETE FROM claims WHERE campaign = ? AND number = ?"
                      " AND worker = ? RETURNING number",
                      MGL_INTS(trial->campaign, trial->number, store->worker), &found, err);
    return status || found ? status
                           : mgl_fail(err, MGL_USAGE, store->path, "its number was taken over");
}

/* Changes a kept trial to NO_GAIN if the incumbent changed meanwhile, because the gain is relative
 * to the old one. */
static mgl_status check_incumbent(mgl_store *store, mgl_trial *trial, mgl_error *err)
{
    int64_t now = 0;
    if (trial->verdict.outcome != MGL_OUTCOME_OK || trial->control)
        return MGL_OK;
    mgl_status status = mgl_store_find_incumbent(store, trial->campaign, &now, err);
    if (status || now == trial->against)
        return status;
    trial->verdict.outcome = MGL_OUTCOME_NO_GAIN;
    mgl_format_into(trial->verdict.diagnostic, sizeof trial->verdict.diagnostic,
                    "the incumbent changed meanwhile: it is trial %lld, and this one was "
                    "measured against %lld",
                    (long long)now, (long long)trial->against);
    return MGL_OK;
}

static mgl_status add_as_worker(mgl_store *store, mgl_trial *trial, int64_t *id, mgl_error *err)
{
    mgl_status status = mgl_store_lock_campaign(store, trial->campaign, err);
    if (!status && store->worker)
        status = give_up_claim(store, trial, err);
    if (!status && store->worker)
        status = check_incumbent(store, trial, err);
    return status ? status : add_all(store, trial, id, err);
}

mgl_status mgl_store_add_trial(mgl_store *store, mgl_trial *trial, mgl_error *err)
{
    int64_t id = 0;
    mgl_status status = mgl_store_begin(store, err);
    if (status)
        return status;
    status = mgl_store_end(store, add_as_worker(store, trial, &id, err), err);
    if (!status)
        trial->id = id;
    if (status == MGL_USAGE)
        return mgl_fail(
            err, MGL_USAGE, store->path,
            "trial %lld of the campaign already exists: another process runs the campaign",
            (long long)trial->number);
    return status;
}

/* ---- reading -------------------------------------------------------------------------------- */

static mgl_query open_results(mgl_store *store, mgl_error *err)
{
    return mgl_query_open(store,
                          "SELECT place" MGL_RESULT_FIELDS(MGL_COLUMN_NAME) //
                          " FROM results WHERE trial = ? ORDER BY place",
                          err);
}

/* Reads results. The store is untrusted: places must be consecutive and within the array. */
static void get_results(mgl_query *results, mgl_trial *trial)
{
    mgl_query_put_int(results, trial->id);
    while (mgl_query_step(results)) {
        if (mgl_query_get_int(results, 0) != trial->workload_count ||
            trial->workload_count == MGL_MAX_WORKLOADS) {
            results->status = mgl_store_fail_value(results->store, "results.place", results->err);
            break;
        }
        mgl_query_get_fields(results, 1, &mgl_result_fields,
                             &trial->workloads[trial->workload_count++]);
    }
    mgl_query_run(results);
}

/* Reads the current row of `trials`, with its results. */
static mgl_status get_trial(mgl_query *trials, mgl_query *results, mgl_trial *out)
{
    *out = (mgl_trial){0};
    out->id = mgl_query_get_int(trials, 0);
    out->campaign = mgl_query_get_int(trials, 1);
    mgl_query_get_fields(trials, 2, &mgl_trial_fields, out);
    if (!trials->status) {
        get_results(results, out);
        trials->status = results->status;
    }
    if (trials->status)
        mgl_trial_clear(out);
    return trials->status;
}

static mgl_status get_pairs(mgl_store *store, mgl_trial *trial, mgl_error *err)
{
    size_t capacity = 0;
    mgl_query q = mgl_query_open_with(store,
                                      "SELECT place" MGL_PAIR_FIELDS(MGL_COLUMN_NAME) //
                                      " FROM pairs WHERE trial = ? ORDER BY place",
                                      MGL_INTS(trial->id), err);
    while (mgl_query_step(&q)) {
        void *grown = trial->pairs;
        if (!mgl_grow(&grown, &capacity, (size_t)trial->pair_count, sizeof *trial->pairs))
            q.status = mgl_fail_memory(err, 0);
        trial->pairs = grown;
        if (q.status)
            break;
        mgl_pair *pair = &trial->pairs[trial->pair_count++];
        *pair = (mgl_pair){0};
        mgl_query_get_fields(&q, 1, &mgl_pair_fields, pair);
    }
    return mgl_query_close(&q);
}

mgl_status mgl_store_get_trial(mgl_store *store, int64_t campaign, int64_t number, bool pairs,
                               mgl_trial *out, mgl_error *err)
{
    *out = (mgl_trial){0};
    mgl_query results = open_results(store, err);
    mgl_query q = mgl_query_open_with(
        store, "SELECT " COLUMNS " FROM trials WHERE campaign = ? AND number = ?",
        MGL_INTS(campaign, number), err);
    bool found = mgl_query_step(&q);
    if (found && !get_trial(&q, &results, out) && pairs)
        q.status = get_pairs(store, out, err);
    mgl_query_close(&results);
    mgl_status status = mgl_query_close(&q);
    if (!status && !found)
        status = mgl_fail(err, MGL_BAD_INPUT, store->path, "the campaign has no trial %lld",
                          (long long)number);
    if (status)
        mgl_trial_clear(out);
    return status;
}

/* Visits the trials that a statement selects. */
static mgl_status tell_trials(mgl_store *store, const char *sql, mgl_query_ints ids,
                              mgl_store_trial_fn *each, void *user, mgl_error *err)
{
    mgl_query trials = mgl_query_open_with(store, sql, ids, err);
    mgl_query results = open_results(store, err);
    while (mgl_query_step(&trials)) {
        mgl_trial trial;
        if (get_trial(&trials, &results, &trial))
            break;
        trials.status = each(user, &trial, err);
        mgl_trial_clear(&trial);
    }
    mgl_query_close(&results);
    return mgl_query_close(&trials);
}

mgl_status mgl_store_each_trial(mgl_store *store, int64_t campaign, int64_t from, int64_t limit,
                                mgl_store_trial_fn *each, void *user, mgl_error *err)
{
    return tell_trials(store,
                       "SELECT " COLUMNS " FROM trials WHERE campaign = ? AND number >= ?"
                       " ORDER BY number LIMIT ?",
                       MGL_INTS(campaign, from, limit > 0 ? limit : INT64_MAX), each, user, err);
}

mgl_status mgl_store_each_newer(mgl_store *store, int64_t campaign, int64_t after,
                                mgl_store_trial_fn *each, void *user, mgl_error *err)
{
    return tell_trials(store,
                       "SELECT " COLUMNS " FROM trials WHERE campaign = ? AND id > ? ORDER BY id",
                       MGL_INTS(campaign, after), each, user, err);
}

/* ---- incumbents ----------------------------------------------------------------------------- */

mgl_status mgl_store_find_incumbent(mgl_store *store, int64_t campaign, int64_t *out,
                                    mgl_error *err)
{
    return mgl_store_ask(store,
                         "SELECT number FROM trials WHERE campaign = ? AND outcome = 'OK'"
                         " AND control = 0 ORDER BY id DESC LIMIT 1",
                         MGL_INTS(campaign), out, err);
}

mgl_status mgl_store_quarantine(mgl_store *store, int64_t campaign, int64_t number,
                                const mgl_trial_verdict *verdict, mgl_error *err)
{
    mgl_query q = mgl_query_open_with(store,
                                      "UPDATE trials SET outcome = ?3, diagnostic = ?4, condemned ="
                                      " (SELECT max(id) FROM trials AS those"
                                      "  WHERE those.campaign = ?1)"
                                      " WHERE campaign = ?1 AND number = ?2 AND outcome = 'OK'"
                                      " AND control = 0",
                                      MGL_INTS(campaign, number), err);
    mgl_query_put_text(&q, mgl_outcome_name(verdict->outcome));
    mgl_query_put_text(&q, verdict->diagnostic);
    mgl_query_run(&q);
    return mgl_query_close(&q);
}

mgl_status mgl_store_each_quarantined(mgl_store *store, int64_t campaign, mgl_store_trial_fn *each,
                                      void *user, mgl_error *err)
{
    return tell_trials(store,
                       "SELECT " COLUMNS
                       " FROM trials WHERE campaign = ? AND condemned > 0 ORDER BY number",
                       MGL_INTS(campaign), each, user, err);
}

mgl_status mgl_store_count_quarantined(mgl_store *store, int64_t campaign, int64_t *out,
                                       mgl_error *err)
{
    return mgl_store_ask(store, "SELECT count(*) FROM trials WHERE campaign = ? AND condemned > 0",
                         MGL_INTS(campaign), out, err);
}

#define LINE                                                                                       \
    "WITH RECURSIVE line(number) AS ("                                                             \
    "  SELECT number FROM trials WHERE campaign = ?1 AND outcome = 'OK' AND control = 0"           \
    "  UNION"                                                                                      \
    "  SELECT parent FROM line JOIN trials ON trials.campaign = ?1"                                \
    "   AND trials.number = line.number WHERE parent > 0)"                                         \
    "SELECT number FROM line ORDER BY number LIMIT ?2"

mgl_status mgl_store_each_in_line(mgl_store *store, int64_t campaign, mgl_store_trial_fn *each,
                                  void *user, mgl_error *err)
{
    int count = 0;
    mgl_query q = mgl_query_open_with(store, LINE, MGL_INTS(campaign, MGL_MAX_LINE + 1), err);
    while (mgl_query_step(&q)) {
        mgl_trial trial;
        if (++count > MGL_MAX_LINE) {
            q.status = mgl_fail(err, MGL_BAD_INPUT, store->path,
                                "the chain of incumbents has more than %d trials", MGL_MAX_LINE);
            break;
        }
        q.status =
            mgl_store_get_trial(store, campaign, mgl_query_get_int(&q, 0), true, &trial, err);
        if (!q.status)
            q.status = each(user, &trial, err);
        mgl_trial_clear(&trial);
    }
    return mgl_query_close(&q);
}

mgl_status mgl_store_each_share(mgl_store *store, int64_t campaign, mgl_store_share_fn *each,
                                void *user, mgl_error *err)
{
    mgl_query q = mgl_query_open_with(store,
                                      "SELECT coalesce(proposer, ''), count(*), "
                                      " count(CASE WHEN outcome = 'OK' THEN 1 END)"
                                      " FROM trials WHERE campaign = ? AND control = 0"
                                      " GROUP BY 1 ORDER BY 1",
                                      MGL_INTS(campaign), err);
    while (mgl_query_step(&q)) {
        char *proposer = mgl_query_get_text(&q, 0);
        int64_t trials = mgl_query_get_int(&q, 1), kept = mgl_query_get_int(&q, 2);
        if (!q.status)
            q.status = each(user, proposer, trials, kept, err);
        mgl_free(proposer);
    }
    return mgl_query_close(&q);
}

mgl_status mgl_store_find_digest(mgl_store *store, int64_t campaign, const char *digest,
                                 int64_t *number, mgl_error *err)
{
    mgl_query q =
        mgl_query_open_with(store,
                            "SELECT min(number) FROM trials WHERE campaign = ? AND digest = ?"
                            " AND digest <> '' AND outcome <> 'DUPLICATE' AND control = 0",
                            MGL_INTS(campaign), err);
    mgl_query_put_text(&q, digest);
    *number = mgl_query_change(&q);
    return mgl_query_close(&q);
}

mgl_status mgl_store_count_outcomes(mgl_store *store, int64_t campaign,
                                    int64_t counts[MGL_OUTCOME_COUNT], mgl_error *err)
{
    return mgl_store_ask_outcomes(store,
                                  "SELECT outcome, count(*) FROM trials WHERE campaign = ?"
                                  " AND control = 0 GROUP BY outcome",
                                  MGL_INTS(campaign), counts, err);
}

mgl_status mgl_store_count_decisions(mgl_store *store, int64_t campaign, int64_t *out,
                                     mgl_error *err)
{
    return mgl_store_ask(store, "SELECT count(*) FROM trials WHERE campaign = ? AND decided = 1",
                         MGL_INTS(campaign), out, err);
}
