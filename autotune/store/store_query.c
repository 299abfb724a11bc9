/*
 * Implements store_query.h: arguments and columns by the field lists, and transactions.
 * Engine-specific code is in mgl_store_engine.
 */
#include "autotune/store/store_query.h"

#include "base/memory.h"

#include <math.h>
#include <string.h>

/* ---- errors --------------------------------------------------------------------------------- */

mgl_status mgl_store_fail_gone(const mgl_store *store, mgl_error *err)
{
    return mgl_fail(err, MGL_BAD_INPUT, store->path,
                    "the campaign is not in the store any more; was it deleted?");
}

mgl_status mgl_store_fail_value(const mgl_store *store, const char *column, mgl_error *err)
{
    return mgl_fail(err, MGL_BAD_INPUT, store->path,
                    "the store holds a value of \"%s\" that this version does not know; use the "
                    "version that wrote it, or take another --store",
                    column);
}

mgl_status mgl_store_check_version(const mgl_store *store, int64_t version, bool write, bool *old,
                                   mgl_error *err)
{
    *old = version < MGL_STORE_VERSION;
    if (version > MGL_STORE_VERSION)
        return mgl_fail(err, MGL_BAD_INPUT, store->path,
                        "was written by a newer Megalith (version %lld of the store; this one "
                        "knows %d); use that one, or take another --store",
                        (long long)version, MGL_STORE_VERSION);
    if (!*old || write)
        return MGL_OK;
    return mgl_fail(err, MGL_BAD_INPUT, store->path,
                    version ? "was written by an older Megalith; `megalith tune` brings it up to "
                              "date"
                            : "is empty: no campaign was ever kept there");
}

/* ---- statements ----------------------------------------------------------------------------- */

mgl_query mgl_query_open(mgl_store *store, const char *sql, mgl_error *err)
{
    mgl_query query = {.store = store, .err = err};
    store->engine->open(&query, sql);
    return query;
}

mgl_query mgl_query_open_with(mgl_store *store, const char *sql, mgl_query_ints ids, mgl_error *err)
{
    mgl_query query = mgl_query_open(store, sql, err);
    for (int i = 0; i < ids.count; i++)
        mgl_query_put_int(&query, ids.list[i]);
    return query;
}

mgl_status mgl_query_close(mgl_query *query)
{
    if (query->statement)
        query->store->engine->close(query);
    query->statement = NULL;
    return query->status;
}

bool mgl_query_step(mgl_query *query)
{
    return !query->status && query->store->engine->step(query);
}

void mgl_query_run(mgl_query *query)
{
    while (mgl_query_step(query))
        ;
    if (query->statement)
        query->store->engine->reset(query);
    query->put = 0;
}

/* ---- arguments ------------------------------------------------------------------------------ */

void mgl_query_put_int(mgl_query *query, int64_t value)
{
    if (!query->status)
        query->store->engine->put_int(query, ++query->put, value);
}

void mgl_query_put_real(mgl_query *query, double value)
{
    if (!query->status)
        query->store->engine->put_real(query, ++query->put, value);
}

void mgl_query_put_text(mgl_query *query, const char *text)
{
    if (!query->status)
        query->store->engine->put_text(query, ++query->put, text, text ? strlen(text) : 0, true);
}

/* Binds a temporary text, which the engine copies. An empty text becomes NULL. */
static void put_made(mgl_query *query, mgl_text *text)
{
    if (!query->status && text->failed)
        query->status = mgl_fail_memory(query->err, 0);
    if (!query->status)
        query->store->engine->put_text(query, ++query->put, text->bytes, text->length, false);
    mgl_text_clear(text);
}

/* Binds a config. A config that could not be parsed again is rejected before the trial is
 * stored. */
static void put_config(mgl_query *query, const mgl_schedule_config *config)
{
    mgl_text text = {0};
    mgl_schedule_config again;
    if (!mgl_config_is_none(config))
        mgl_schedule_config_print(config, &text);
    if (text.length && !text.failed && !query->status)
        query->status =
            mgl_schedule_config_parse(text.bytes, text.length, "config", &again, query->err);
    put_made(query, &text);
}

static void put_moves(mgl_query *query, const mgl_moves *moves)
{
    mgl_text text = {0};
    if (moves->count)
        mgl_moves_print(moves, &text);
    put_made(query, &text);
}

static void put_field(mgl_query *query, mgl_field_kind kind, const void *at)
{
    if (mgl_field_is_int(kind))
        mgl_query_put_int(query, mgl_field_int(kind, at));
    else if (kind == MGL_FIELD_REAL)
        mgl_query_put_real(query, *(const double *)at);
    else if (kind == MGL_FIELD_CONFIG)
        put_config(query, at);
    else if (kind == MGL_FIELD_MOVES)
        put_moves(query, at);
    else
        mgl_query_put_text(query, mgl_field_text(kind, at));
}

void mgl_query_put_fields(mgl_query *query, const mgl_fields *fields, const void *record)
{
    for (int i = 0; i < fields->count && !query->status; i++)
        put_field(query, fields->list[i].kind, mgl_field_in(&fields->list[i], record));
}

/* ---- columns -------------------------------------------------------------------------------- */

int64_t mgl_query_get_int(mgl_query *query, int column)
{
    return query->status ? 0 : query->store->engine->get_int(query, column);
}

double mgl_query_get_real(mgl_query *query, int column)
{
    if (query->status || query->store->engine->is_null(query, column))
        return NAN;
    return query->store->engine->get_real(query, column);
}

static void fail_column(mgl_query *query, int column)
{
    if (!query->status)
        query->status = mgl_store_fail_value(
            query->store, query->store->engine->get_name(query, column), query->err);
}

/* Returns the text of a column, valid as long as the statement; NULL: no value, or an error. */
static const char *peek_text(mgl_query *query, int column)
{
    size_t length = 0;
    if (query->status || query->store->engine->is_null(query, column))
        return NULL;
    const char *text = query->store->engine->get_text(query, column, &length);
    if (text && strlen(text) != length)
        fail_column(query, column);
    return query->status ? NULL : text;
}

char *mgl_query_get_text(mgl_query *query, int column)
{
    const char *text = peek_text(query, column);
    char *copy = text ? mgl_strdup(text) : NULL;
    if (text && !copy)
        query->status = mgl_fail_memory(query->err, strlen(text));
    return copy;
}

static void get_chars(mgl_query *query, int column, char *to, size_t size)
{
    const char *text = peek_text(query, column);
    if (!text)
        to[0] = 0;
    else if (strlen(text) >= size)
        fail_column(query, column);
    else
        memcpy(to, text, strlen(text) + 1);
}

static void get_outcome(mgl_query *query, int column, mgl_outcome *to)
{
    const char *text = peek_text(query, column);
    if (!query->status && (!text || !mgl_outcome_parse(text, to)))
        fail_column(query, column);
}

static void get_config(mgl_query *query, int column, mgl_schedule_config *to)
{
    const char *text = peek_text(query, column);
    *to = (mgl_schedule_config){0};
    if (text)
        query->status =
            mgl_schedule_config_parse(text, strlen(text), query->store->path, to, query->err);
}

static void get_moves(mgl_query *query, int column, mgl_moves *to)
{
    const char *text = peek_text(query, column);
    *to = (mgl_moves){0};
    if (text)
        query->status = mgl_moves_parse(text, strlen(text), query->store->path, to, query->err);
}

static void get_field(mgl_query *query, int column, const mgl_field *field, void *to)
{
    const mgl_field_kind kind = field->kind;
    if (mgl_field_is_int(kind) && !mgl_field_set_int(kind, to, mgl_query_get_int(query, column)))
        fail_column(query, column);
    else if (kind == MGL_FIELD_REAL)
        *(double *)to = mgl_query_get_real(query, column);
    else if (kind == MGL_FIELD_TEXT)
        *(char **)to = mgl_query_get_text(query, column);
    else if (kind == MGL_FIELD_CHARS)
        get_chars(query, column, to, field->size);
    else if (kind == MGL_FIELD_OUTCOME)
        get_outcome(query, column, to);
    else if (kind == MGL_FIELD_CONFIG)
        get_config(query, column, to);
    else if (kind == MGL_FIELD_MOVES)
        get_moves(query, column, to);
}

void mgl_query_get_fields(mgl_query *query, int column, const mgl_fields *fields, void *record)
{
    for (int i = 0; i < fields->count && !query->status; i++)
        get_field(query, column + i, &fields->list[i], mgl_field_of(&fields->list[i], record));
}

/* ---- whole statements ----------------------------------------------------------------------- */

int64_t mgl_query_change(mgl_query *query)
{
    int64_t id = mgl_query_step(query) ? mgl_query_get_int(query, 0) : 0;
    mgl_query_run(query);
    return query->status ? 0 : id;
}

mgl_status mgl_store_run(mgl_store *store, const char *sql, mgl_query_ints ids, mgl_error *err)
{
    mgl_query q = mgl_query_open_with(store, sql, ids, err);
    mgl_query_run(&q);
    return mgl_query_close(&q);
}

mgl_status mgl_store_ask(mgl_store *store, const char *sql, mgl_query_ints ids, int64_t *out,
                         mgl_error *err)
{
    mgl_query q = mgl_query_open_with(store, sql, ids, err);
    *out = mgl_query_change(&q);
    return mgl_query_close(&q);
}

mgl_status mgl_store_ask_outcomes(mgl_store *store, const char *sql, mgl_query_ints ids,
                                  int64_t counts[MGL_OUTCOME_COUNT], mgl_error *err)
{
    memset(counts, 0, MGL_OUTCOME_COUNT * sizeof *counts);
    mgl_query q = mgl_query_open_with(store, sql, ids, err);
    while (mgl_query_step(&q)) {
        mgl_outcome outcome = MGL_OUTCOME_OK;
        get_outcome(&q, 0, &outcome);
        counts[outcome] = mgl_query_get_int(&q, 1);
    }
    return mgl_query_close(&q);
}

/* ---- transactions --------------------------------------------------------------------------- */

mgl_status mgl_store_execute(mgl_store *store, const char *sql, mgl_error *err)
{
    return store->engine->execute(store, sql, err);
}

mgl_status mgl_store_begin(mgl_store *store, mgl_error *err)
{
    return store->engine->begin(store, true, err);
}

mgl_status mgl_store_begin_reading(mgl_store *store, mgl_error *err)
{
    return store->engine->begin(store, false, err);
}

mgl_status mgl_store_lock_campaign(mgl_store *store, int64_t campaign, mgl_error *err)
{
    if (!store->engine->shared)
        return MGL_OK;
    int64_t found = 0;
    mgl_status status =
        mgl_store_ask(store, "SELECT id FROM campaigns WHERE id = ? FOR NO KEY UPDATE",
                      MGL_INTS(campaign), &found, err);
    return status || found ? status : mgl_store_fail_gone(store, err);
}

mgl_status mgl_store_end(mgl_store *store, mgl_status status, mgl_error *err)
{
    if (!status)
        status = mgl_store_execute(store, "COMMIT", err);
    if (status)
        store->engine->undo(store);
    return status;
}
