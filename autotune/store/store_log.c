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
    mgl_query q = mgl_query_open_with(
        store,
        "INSERT INTO submissions (campaign, unix, text, origin) VALUES (?, ?, ?, ?) RETURNING id",
        MGL_INTS(campaign, (int64_t)time(NULL)), err);
    mgl_query_put_text(&q, text);
    mgl_query_put_text(&q, origin);
    *id = mgl_query_change(&q);
    return mgl_query_close(&q);
}

/* Reads the only row of a statement with these columns. */
#define SUBMISSION "SELECT id, campaign, text, origin, trial FROM submissions "
static mgl_status take_submission(mgl_store *store, const char *sql, int64_t id, bool *found,
                                  mgl_submission *out, mgl_error *err)
{
    mgl_query q = mgl_query_open_with(store, sql, MGL_INTS(id), err);
    *out = (mgl_submission){0};
    *found = mgl_query_step(&q);
    if (*found)
        *out = (mgl_submission){.id = mgl_query_get_int(&q, 0),
                                .campaign = mgl_query_get_int(&q, 1),
                                .text = mgl_query_get_text(&q, 2),
                                .origin = mgl_query_get_text(&q, 3),
                                .trial = mgl_query_get_int(&q, 4)};
    if (q.status)
        mgl_submission_clear(out);
    return mgl_query_close(&q);
}

mgl_status mgl_store_next_submission(mgl_store *store, int64_t campaign, bool *found,
                                     mgl_submission *out, mgl_error *err)
{
    return take_submission(store, SUBMISSION "WHERE campaign = ? AND trial = 0 ORDER BY id LIMIT 1",
                           campaign, found, out, err);
}

mgl_status mgl_store_get_submission(mgl_store *store, int64_t id, mgl_submission *out,
                                    mgl_error *err)
{
    bool found;
    mgl_status status = take_submission(store, SUBMISSION "WHERE id = ?", id, &found, out, err);
    if (status || found)
        return status;
    return mgl_fail(err, MGL_BAD_INPUT, store->path, "there is no submission %lld", (long long)id);
}

/* ---- messages ------------------------------------------------------------------------------- */

mgl_status mgl_store_add_message(mgl_store *store, int64_t campaign,
                                 const mgl_store_message *message, mgl_error *err)
{
    mgl_query q =
        mgl_query_open_with(store,
                            "INSERT INTO messages (campaign, unix, trial, tokens_in, tokens_out,"
                            " estimated, request, response, outcome, seconds)"
                            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                            MGL_INTS(campaign, (int64_t)time(NULL), message->trial,
                                     message->tokens_in, message->tokens_out, message->estimated),
                            err);
    mgl_query_put_text(&q, message->request);
    mgl_query_put_text(&q, message->response);
    mgl_query_put_text(&q, mgl_outcome_name(message->outcome));
    mgl_query_put_real(&q, message->seconds);
    mgl_query_run(&q);
    return mgl_query_close(&q);
}

mgl_status mgl_store_sum_costs(mgl_store *store, int64_t campaign, int64_t *requests,
                               int64_t *tokens, mgl_error *err)
{
    *requests = *tokens = 0;
    mgl_query q = mgl_query_open_with(store,
                                      "SELECT count(*),"
                                      " CAST(coalesce(sum(tokens_in + tokens_out), 0) AS BIGINT)"
                                      " FROM messages WHERE campaign = ?",
                                      MGL_INTS(campaign), err);
    if (mgl_query_step(&q)) {
        *requests = mgl_query_get_int(&q, 0);
        *tokens = mgl_query_get_int(&q, 1);
    }
    return mgl_query_close(&q);
}

mgl_status mgl_store_count_messages(mgl_store *store, int64_t campaign,
                                    int64_t counts[MGL_OUTCOME_COUNT], mgl_error *err)
{
    return mgl_store_ask_outcomes(
        store, "SELECT outcome, count(*) FROM messages WHERE campaign = ? GROUP BY outcome",
        MGL_INTS(campaign), counts, err);
}

/* ---- events --------------------------------------------------------------------------------- */

mgl_status mgl_store_add_event(mgl_store *store, int64_t campaign, const char *kind,
                               const char *text, mgl_error *err)
{
    mgl_query q = mgl_query_open_with(
        store, "INSERT INTO events (campaign, unix, kind, text) VALUES (?, ?, ?, ?)",
        MGL_INTS(campaign, (int64_t)time(NULL)), err);
    mgl_query_put_text(&q, kind);
    mgl_query_put_text(&q, text);
    mgl_query_run(&q);
    return mgl_query_close(&q);
}

mgl_status mgl_store_each_event(mgl_store *store, int64_t campaign, mgl_store_event_fn *each,
                                void *user, mgl_error *err)
{
    mgl_query q = mgl_query_open_with(
        store, "SELECT unix, kind, text FROM events WHERE campaign = ? ORDER BY id",
        MGL_INTS(campaign), err);
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
