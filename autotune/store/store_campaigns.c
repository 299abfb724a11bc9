/* Campaigns in the store: adding, finding, changing and deleting their rows. Implements the
 * campaign part of store.h. */
#include "autotune/store/store_query.h"

#include "base/memory.h"

#include <string.h>
#include <time.h>

enum { LONGEST_NAME = 128 };

#define COLUMNS                                                                                    \
    "id, (SELECT count(*) FROM trials WHERE campaign = campaigns.id), "                            \
    "coalesce((SELECT number FROM trials WHERE campaign = campaigns.id AND outcome = 'OK'"         \
    " AND control = 0 ORDER BY id DESC LIMIT 1), 0)" MGL_CAMPAIGN_FIELDS(MGL_COLUMN_NAME)

/* ---- adding --------------------------------------------------------------------------------- */

/* A name is also the name of a kernel folder, and appears in messages. */
mgl_status mgl_store_check_name(const char *name, mgl_error *err)
{
    size_t length = name ? strlen(name) : 0;
    bool plain = length > 0 && length <= LONGEST_NAME && name[0] != '.' && name[0] != '-';
    for (size_t i = 0; i < length; i++)
        plain = plain && (unsigned char)name[i] >= ' ' && name[i] != 0x7F && name[i] != '/';
    if (plain)
        return MGL_OK;
    return mgl_fail(err, MGL_USAGE, "--name",
                    "\"%.80s\" cannot be the name of a campaign: 1 to %d bytes without '/' and "
                    "controls that do not begin with '.' or '-'",
                    name ? name : "", LONGEST_NAME);
}

mgl_status mgl_store_add_campaign(mgl_store *store, mgl_campaign_record *campaign, mgl_error *err)
{
    mgl_status status = mgl_store_check_name(campaign->name, err);
    if (status)
        return status;
    if (!campaign->created_unix)
        campaign->created_unix = (int64_t)time(NULL);
    campaign->updated_unix = campaign->created_unix;
    mgl_query q = mgl_query_open(
        store,
        "INSERT INTO campaigns (stop" MGL_CAMPAIGN_FIELDS(MGL_COLUMN_NAME) ") VALUES (0" //
        MGL_CAMPAIGN_FIELDS(MGL_COLUMN_MARK) ") RETURNING id",
        err);
    mgl_query_put_fields(&q, &mgl_campaign_fields, campaign);
    int64_t id = mgl_query_change(&q);
    status = mgl_query_close(&q);
    if (!status)
        campaign->id = id;
    if (status == MGL_USAGE)
        return mgl_fail(err, MGL_USAGE, "--name",
                        "there is a campaign \"%.80s\" already: take another name, or go on with "
                        "that one",
                        campaign->name);
    return status;
}

/* ---- reading -------------------------------------------------------------------------------- */

/* Reads the current row of the query. */
static mgl_status get_campaign(mgl_query *query, mgl_campaign_record *out)
{
    *out = (mgl_campaign_record){0};
    out->id = mgl_query_get_int(query, 0);
    out->trials = mgl_query_get_int(query, 1);
    out->incumbent = mgl_query_get_int(query, 2);
    mgl_query_get_fields(query, 3, &mgl_campaign_fields, out);
    if (query->status)
        mgl_campaign_record_clear(out);
    return query->status;
}

/* Fails with the newest existing names. */
static mgl_status fail_unknown(mgl_store *store, const char *name, mgl_error *err)
{
    enum { SHOWN = 8 };
    mgl_text names = {0};
    int count = 0;
    mgl_query q = mgl_query_open(store, "SELECT name FROM campaigns ORDER BY id DESC", err);
    while (mgl_query_step(&q)) {
        char *one = ++count <= SHOWN ? mgl_query_get_text(&q, 0) : NULL;
        if (one)
            mgl_text_format(&names, "%s\"%.60s\"", count > 1 ? ", " : "", one);
        mgl_free(one);
    }
    if (count > SHOWN)
        mgl_text_put(&names, ", ...");
    mgl_status status = mgl_query_close(&q);
    if (!status && names.failed)
        status = mgl_fail_memory(err, 0);
    if (!status && !count)
        status = mgl_fail(err, MGL_BAD_INPUT, store->path,
                          "there is no campaign yet; `megalith tune` begins one");
    else if (!status)
        status = mgl_fail(err, MGL_BAD_INPUT, store->path,
                          "there is no campaign \"%.80s\"; there are %s", name, names.bytes);
    mgl_text_clear(&names);
    return status;
}

mgl_status mgl_store_find_campaign(mgl_store *store, const char *name, mgl_campaign_record *out,
                                   mgl_error *err)
{
    *out = (mgl_campaign_record){0};
    mgl_query q = mgl_query_open(store,
                                 "SELECT " COLUMNS " FROM campaigns WHERE ?1 IS NULL OR name = ?1"
                                 " ORDER BY id DESC LIMIT 1",
                                 err);
    mgl_query_put_text(&q, name);
    bool found = mgl_query_step(&q);
    if (found)
        get_campaign(&q, out);
    mgl_status status = mgl_query_close(&q);
    return status || found ? status : fail_unknown(store, name, err);
}

mgl_status mgl_store_each_campaign(mgl_store *store, mgl_store_campaign_fn *each, void *user,
                                   mgl_error *err)
{
    mgl_query q = mgl_query_open(store, "SELECT " COLUMNS " FROM campaigns ORDER BY id", err);
    while (mgl_query_step(&q)) {
        mgl_campaign_record campaign;
        if (get_campaign(&q, &campaign))
            break;
        q.status = each(user, &campaign, err);
        mgl_campaign_record_clear(&campaign);
    }
    return mgl_query_close(&q);
}

/* ---- changing ------------------------------------------------------------------------------- */

/* Runs a change of one row, and closes the query. Fails if there was no row. */
static mgl_status change_one(mgl_query *query, mgl_error *err)
{
    int64_t id = mgl_query_change(query);
    mgl_status status = mgl_query_close(query);
    return status || id ? status : mgl_store_fail_gone(query->store, err);
}

mgl_status mgl_store_set_state(mgl_store *store, int64_t campaign, const char *state,
                               const char *reason, double seconds, mgl_error *err)
{
    mgl_query q =
        mgl_query_open_with(store,
                            "UPDATE campaigns SET updated_unix = ?2, state = ?3, reason = ?4,"
                            " seconds = ?5 WHERE id = ?1 RETURNING id",
                            MGL_INTS(campaign, (int64_t)time(NULL)), err);
    mgl_query_put_text(&q, state);
    mgl_query_put_text(&q, reason);
    mgl_query_put_real(&q, seconds);
    return change_one(&q, err);
}

mgl_status mgl_store_ask_stop(mgl_store *store, int64_t campaign, bool stop, mgl_error *err)
{
    mgl_query q =
        mgl_query_open_with(store, "UPDATE campaigns SET stop = ? WHERE id = ? RETURNING id",
                            MGL_INTS(stop, campaign), err);
    return change_one(&q, err);
}

mgl_status mgl_store_is_stop_asked(mgl_store *store, int64_t campaign, bool *out, mgl_error *err)
{
    int64_t stop = 0;
    mgl_status status = mgl_store_ask(store, "SELECT stop FROM campaigns WHERE id = ?",
                                      MGL_INTS(campaign), &stop, err);
    *out = stop != 0;
    return status;
}

mgl_status mgl_store_delete_campaign(mgl_store *store, int64_t campaign, mgl_error *err)
{
    mgl_query q = mgl_query_open_with(store, "DELETE FROM campaigns WHERE id = ? RETURNING id",
                                      MGL_INTS(campaign), err);
    mgl_status status = change_one(&q, err);
    if (!status) /* failing to free disk space does not fail the deletion */
        store->engine->give_back(store);
    return status;
}
