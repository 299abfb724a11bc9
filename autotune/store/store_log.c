/* Submissions, exchanges with a language model and their costs, and events in the store. Implements
 * the last parts of store.h. */
#include "autotune/store/store_query.h"

#include "base/memory.h"

#include <string.h>
#include <time.h>

/* ---- submissions ---------------------------------------------------------------------------- */

void mgl_submission_clear(mgl_submission *submission)
{
    mgl_free(submission->text);
    mgl_free(submission->origin);
    *submission = (mgl_submission){0};
}

mgl_status mgl_store_add_submission(mgl_store *store, int64_t campaign, const char *text,
                                    const char *origin, int64_t *id, mgl_error *err)
{
    mgl_query q = mgl_query_open(
        store,
        "INSERT INTO submissions (campaign, unix, text, origin) VALUES (?, ?, ?, ?) RETURNING id",
        err);
    mgl_query_put_int(&q, campaign);
    mgl_query_put_int(&q, (int64_t)time(NULL));
    mgl_query_put_text(&q, text);
    mgl_query_put_text(&q, origin);
    *id = mgl_query_change(&q);
    return mgl_query_close(&q);
}

/* Reads the only row of a query with these columns, and closes it. */
#define SUBMISSION "SELECT id, campaign, text, origin, trial FROM submissions "
static mgl_status take_submission(mgl_query *query, bool *found, mgl_submission *out)
{
    *out = (mgl_submission){0};
    *found = mgl_query_step(query);
    if (*found) {
        out->id = mgl_query_get_int(query, 0);
        out->campaign = mgl_query_get_int(query, 1);
        out->text = mgl_query_get_text(query, 2);
        out->origin = mgl_query_get_text(query, 3);
        out->trial = mgl_query_get_int(query, 4);
    }
    if (query->status)
        mgl_submission_clear(out);
    return mgl_query_close(query);
}

mgl_status mgl_store_next_submission(mgl_store *store, int64_t campaign, bool *found,
                                     mgl_submission *out, mgl_error *err)
{
    mgl_query q = mgl_query_open(
        store, SUBMISSION "WHERE campaign = ? AND trial = 0 ORDER BY id LIMIT 1", err);
    mgl_query_put_int(&q, campaign);
    return take_submission(&q, found, out);
}

mgl_status mgl_store_get_submission(mgl_store *store, int64_t id, mgl_submission *out,
                                    mgl_error *err)
{
    bool found;
    mgl_query q = mgl_query_open(store, SUBMISSION "WHERE id = ?", err);
    mgl_query_put_int(&q, id);
    mgl_status status = take_submission(&q, &found, out);
    if (status || found)
        return status;
    return mgl_fail(err, MGL_BAD_INPUT, store->path, "there is no submission %lld", (long long)id);
}

/* ---- messages ------------------------------------------------------------------------------- */

mgl_status mgl_store_add_message(mgl_store *store, int64_t campaign,
                                 const mgl_store_message *message, mgl_error *err)
{
    mgl_query q = mgl_query_open(store,
                                 "INSERT INTO messages (campaign, unix, trial, request, response,"
                                 " outcome, tokens_in, tokens_out, estimated, seconds)"
                                 " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                                 err);
    mgl_query_put_int(&q, campaign);
    mgl_query_put_int(&q, (int64_t)time(NULL));
    mgl_query_put_int(&q, message->trial);
    mgl_query_put_text(&q, message->request);
    mgl_query_put_text(&q, message->response);
    mgl_query_put_text(&q, mgl_outcome_name(message->outcome));
    mgl_query_put_int(&q, message->tokens_in);
    mgl_query_put_int(&q, message->tokens_out);
    mgl_query_put_int(&q, message->estimated);
    mgl_query_put_real(&q, message->seconds);
    mgl_query_run(&q);
    return mgl_query_close(&q);
}

mgl_status mgl_store_sum_costs(mgl_store *store, int64_t campaign, int64_t *requests,
                               int64_t *tokens, mgl_error *err)
{
    *requests = *tokens = 0;
    mgl_query q = mgl_query_open(store,
                                 "SELECT count(*),"
                                 " CAST(coalesce(sum(tokens_in + tokens_out), 0) AS BIGINT)"
                                 " FROM messages WHERE campaign = ?",
                                 err);
    mgl_query_put_int(&q, campaign);
    if (mgl_query_step(&q)) {
        *requests = mgl_query_get_int(&q, 0);
        *tokens = mgl_query_get_int(&q, 1);
    }
    return mgl_query_close(&q);
}

mgl_status mgl_store_count_messages(mgl_store *store, int64_t campaign,
                                    int64_t counts[MGL_OUTCOME_COUNT], mgl_error *err)
{
    memset(counts, 0, MGL_OUTCOME_COUNT * sizeof *counts);
    mgl_query q = mgl_query_open(
        store, "SELECT outcome, count(*) FROM messages WHERE campaign = ? GROUP BY outcome", err);
    mgl_query_put_int(&q, campaign);
    while (mgl_query_step(&q)) {
        mgl_outcome outcome;
        char *name = mgl_query_get_text(&q, 0);
        if (name && mgl_outcome_parse(name, &outcome))
            counts[outcome] = mgl_query_get_int(&q, 1);
        else if (!q.status)
            q.status = mgl_store_fail_value(store, "outcome", err);
        mgl_free(name);
    }
    return mgl_query_close(&q);
}

/* ---- events --------------------------------------------------------------------------------- */

mgl_status mgl_store_add_event(mgl_store *store, int64_t campaign, const char *kind,
                               const char *text, mgl_error *err)
{
    mgl_query q = mgl_query_open(
        store, "INSERT INTO events (campaign, unix, kind, text) VALUES (?, ?, ?, ?)", err);
    mgl_query_put_int(&q, campaign);
    mgl_query_put_int(&q, (int64_t)time(NULL));
    mgl_query_put_text(&q, kind);
    mgl_query_put_text(&q, text);
    mgl_query_run(&q);
    return mgl_query_close(&q);
}

mgl_status mgl_store_each_event(mgl_store *store, int64_t campaign, mgl_store_event_fn *each,
                                void *user, mgl_error *err)
{
    mgl_query q = mgl_query_open(
        store, "SELECT unix, kind, text FROM events WHERE campaign = ? ORDER BY id", err);
    mgl_query_put_int(&q, campaign);
    while (mgl_query_step(&q)) {
        int64_t unix_s = mgl_query_get_int(&q, 0);
        char *kind = mgl_query_get_text(&q, 1), *text = mgl_query_get_text(&q, 2);
        if (!q.status)
            q.status = each(user, unix_s, kind, text, err);
        mgl_free(kind);
        mgl_free(text);
    }
    return mgl_query_close(&q);
}
