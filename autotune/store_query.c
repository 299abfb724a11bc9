/*
 * Statements of the store: preparing, arguments, columns, transactions, and what SQLite's codes mean
 * to whoever runs a campaign. Every error of SQLite becomes a sentence here and nowhere else.
 */
#include "autotune/store_query.h"

#include "base/memory.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* ---- errors --------------------------------------------------------------------------------- */

static mgl_status fail_busy(const mgl_store *store, mgl_error *err)
{
    int64_t pid = mgl_store_find_writer(store->path);
    if (pid > 0)
        return mgl_fail(err, MGL_SYSTEM, store->path,
                        "process %lld writes to it and does not let go; end that process or wait "
                        "for it, then try again",
                        (long long)pid);
    return mgl_fail(err, MGL_SYSTEM, store->path,
                    "another process writes to it and does not let go; wait for it, then try "
                    "again");
}

static mgl_status fail_open(const mgl_store *store, mgl_error *err)
{
    errno = sqlite3_system_errno(store->database);
    if (errno)
        return mgl_fail_path(err, store->path, "the store can not be opened");
    return mgl_fail(err, MGL_BAD_INPUT, store->path,
                    "the store can not be opened: its folder is missing or may not be used");
}

/* The disk, or what stands between it and us. */
static mgl_status fail_disk(const mgl_store *store, mgl_error *err)
{
    int why = sqlite3_system_errno(store->database);
    if (why == ENOSPC || why == EDQUOT || why == EFBIG)
        return mgl_store_fail(store, SQLITE_FULL, err);
    return mgl_fail(err, MGL_SYSTEM, store->path,
                    "the disk failed (%s); what was stored before is kept: look at the disk, then "
                    "run the same command again",
                    why ? strerror(why) : sqlite3_errmsg(store->database));
}

static mgl_status fail_constraint(const mgl_store *store, int code, mgl_error *err)
{
    if (code == SQLITE_CONSTRAINT_UNIQUE || code == SQLITE_CONSTRAINT_PRIMARYKEY)
        return mgl_fail(err, MGL_USAGE, store->path, "stands already (%s)",
                        sqlite3_errmsg(store->database));
    if (code == SQLITE_CONSTRAINT_FOREIGNKEY)
        return mgl_fail(err, MGL_BAD_INPUT, store->path,
                        "the campaign is not in the store any more; was it deleted?");
    return mgl_fail(err, MGL_BAD_INPUT, store->path, "the store refuses the value: %s",
                    sqlite3_errmsg(store->database));
}

mgl_status mgl_store_fail(const mgl_store *store, int code, mgl_error *err)
{
    const char *path = store->path, *what = sqlite3_errmsg(store->database);
    switch (code & 0xFF) {
    case SQLITE_NOMEM:
        return mgl_fail_memory(err, 0);
    case SQLITE_FULL:
        return mgl_fail(err, MGL_SYSTEM, path,
                        "the disk is full; what was stored before is kept: free some space, then "
                        "run the same command again");
    case SQLITE_READONLY:
        return mgl_fail(err, MGL_SYSTEM, path,
                        "the store can not be written: make the file and its folder writable, or "
                        "take another --store");
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
        return fail_open(store, err);
    case SQLITE_NOTADB:
        return mgl_fail(err, MGL_BAD_INPUT, path, "is no store of campaigns; take another --store");
    case SQLITE_CORRUPT:
        return mgl_fail(err, MGL_BAD_INPUT, path,
                        "the store is damaged (%.160s); restore a copy, or take another --store",
                        what);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return fail_busy(store, err);
    case SQLITE_IOERR:
        return code == SQLITE_IOERR_NOMEM ? mgl_fail_memory(err, 0) : fail_disk(store, err);
    case SQLITE_TOOBIG:
        return mgl_fail(err, MGL_BAD_INPUT, path, "a text is too large for the store");
    case SQLITE_CONSTRAINT:
        return fail_constraint(store, code, err);
    default:
        return mgl_fail(err, MGL_BAD_INPUT, path,
                        "the store is not one that this version wrote (%.160s); restore a copy, "
                        "or take another --store",
                        what);
    }
}

mgl_status mgl_store_fail_value(const mgl_store *store, const char *column, mgl_error *err)
{
    return mgl_fail(err, MGL_BAD_INPUT, store->path,
                    "the store holds a value of \"%s\" that this version does not know; use the "
                    "version that wrote it, or take another --store",
                    column);
}

/* ---- statements ----------------------------------------------------------------------------- */

mgl_query mgl_query_open(mgl_store *store, const char *sql, mgl_error *err)
{
    mgl_query query = {.store = store, .err = err};
    int code = sqlite3_prepare_v2(store->database, sql, -1, &query.statement, NULL);
    if (code)
        query.status = mgl_store_fail(store, code, err);
    return query;
}

mgl_status mgl_query_close(mgl_query *query)
{
    sqlite3_finalize(query->statement);
    query->statement = NULL;
    return query->status;
}

static void take(mgl_query *query, int code)
{
    if (code && !query->status)
        query->status = mgl_store_fail(query->store, code, query->err);
}

bool mgl_query_step(mgl_query *query)
{
    if (query->status)
        return false;
    int code = sqlite3_step(query->statement);
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        take(query, code);
    return code == SQLITE_ROW;
}

void mgl_query_run(mgl_query *query)
{
    while (mgl_query_step(query))
        ;
    if (query->statement)
        sqlite3_reset(query->statement); /* its code is that of the step */
    query->put = 0;
}

/* ---- arguments ------------------------------------------------------------------------------ */

void mgl_query_put_int(mgl_query *query, int64_t value)
{
    if (!query->status)
        take(query, sqlite3_bind_int64(query->statement, ++query->put, value));
}

void mgl_query_put_real(mgl_query *query, double value)
{
    if (!query->status)
        take(query, sqlite3_bind_double(query->statement, ++query->put, value));
}

void mgl_query_put_text(mgl_query *query, const char *text)
{
    if (!query->status)
        take(query, sqlite3_bind_text(query->statement, ++query->put, text, -1, SQLITE_STATIC));
}

/* A text that is made here: the statement has a copy. One that is empty stands for none. */
static void put_made(mgl_query *query, mgl_text *text)
{
    if (!query->status && text->failed)
        query->status = mgl_fail_memory(query->err, 0);
    if (!query->status)
        take(query, sqlite3_bind_text(query->statement, ++query->put, text->bytes,
                                      (int)text->length, SQLITE_TRANSIENT));
    mgl_text_clear(text);
}

/* What would not be read back is refused while its trial is not yet stored. */
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
    switch (kind) {
    case MGL_FIELD_INT64:
    case MGL_FIELD_BITS64: /* its bits */
        mgl_query_put_int(query, *(const int64_t *)at);
        return;
    case MGL_FIELD_INT:
        mgl_query_put_int(query, *(const int *)at);
        return;
    case MGL_FIELD_UINT:
        mgl_query_put_int(query, *(const unsigned *)at);
        return;
    case MGL_FIELD_BOOL:
        mgl_query_put_int(query, *(const bool *)at);
        return;
    case MGL_FIELD_REAL:
        mgl_query_put_real(query, *(const double *)at);
        return;
    case MGL_FIELD_TEXT:
        mgl_query_put_text(query, *(char *const *)at);
        return;
    case MGL_FIELD_CHARS:
        mgl_query_put_text(query, at);
        return;
    case MGL_FIELD_OUTCOME:
        mgl_query_put_text(query, mgl_outcome_name(*(const mgl_outcome *)at));
        return;
    case MGL_FIELD_CONFIG:
        put_config(query, at);
        return;
    case MGL_FIELD_MOVES:
        put_moves(query, at);
        return;
    }
}

void mgl_query_put_fields(mgl_query *query, const mgl_fields *fields, const void *record)
{
    for (int i = 0; i < fields->count && !query->status; i++)
        put_field(query, fields->list[i].kind, (const char *)record + fields->list[i].offset);
}

/* ---- columns -------------------------------------------------------------------------------- */

int64_t mgl_query_get_int(mgl_query *query, int column)
{
    return query->status ? 0 : sqlite3_column_int64(query->statement, column);
}

double mgl_query_get_real(mgl_query *query, int column)
{
    if (query->status || sqlite3_column_type(query->statement, column) == SQLITE_NULL)
        return NAN;
    return sqlite3_column_double(query->statement, column);
}

static void fail_column(mgl_query *query, int column)
{
    if (!query->status)
        query->status = mgl_store_fail_value(
            query->store, sqlite3_column_name(query->statement, column), query->err);
}

/* The text of a column, of the statement; NULL: none, or it failed. */
static const char *peek_text(mgl_query *query, int column)
{
    if (query->status || sqlite3_column_type(query->statement, column) == SQLITE_NULL)
        return NULL;
    const char *text = (const char *)sqlite3_column_text(query->statement, column);
    if (!text)
        query->status = mgl_fail_memory(query->err, 0);
    else if (strlen(text) != (size_t)sqlite3_column_bytes(query->statement, column))
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

static int64_t get_within(mgl_query *query, int column, int64_t lo, int64_t hi)
{
    int64_t value = mgl_query_get_int(query, column);
    if (value >= lo && value <= hi)
        return value;
    fail_column(query, column);
    return lo;
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
    switch (field->kind) {
    case MGL_FIELD_INT64:
    case MGL_FIELD_BITS64:
        *(int64_t *)to = mgl_query_get_int(query, column);
        return;
    case MGL_FIELD_INT:
        *(int *)to = (int)get_within(query, column, INT32_MIN, INT32_MAX);
        return;
    case MGL_FIELD_UINT:
        *(unsigned *)to = (unsigned)get_within(query, column, 0, UINT32_MAX);
        return;
    case MGL_FIELD_BOOL:
        *(bool *)to = get_within(query, column, 0, 1);
        return;
    case MGL_FIELD_REAL:
        *(double *)to = mgl_query_get_real(query, column);
        return;
    case MGL_FIELD_TEXT:
        *(char **)to = mgl_query_get_text(query, column);
        return;
    case MGL_FIELD_CHARS:
        get_chars(query, column, to, field->size);
        return;
    case MGL_FIELD_OUTCOME:
        get_outcome(query, column, to);
        return;
    case MGL_FIELD_CONFIG:
        get_config(query, column, to);
        return;
    case MGL_FIELD_MOVES:
        get_moves(query, column, to);
        return;
    }
}

void mgl_query_get_fields(mgl_query *query, int column, const mgl_fields *fields, void *record)
{
    for (int i = 0; i < fields->count && !query->status; i++)
        get_field(query, column + i, &fields->list[i], mgl_field_of(&fields->list[i], record));
}

/* ---- transactions --------------------------------------------------------------------------- */

mgl_status mgl_store_execute(mgl_store *store, const char *sql, mgl_error *err)
{
    int code = sqlite3_exec(store->database, sql, NULL, NULL, NULL);
    return code ? mgl_store_fail(store, sqlite3_extended_errcode(store->database), err) : MGL_OK;
}

mgl_status mgl_store_begin(mgl_store *store, mgl_error *err)
{
    return mgl_store_execute(store, "BEGIN IMMEDIATE", err);
}

mgl_status mgl_store_end(mgl_store *store, mgl_status status, mgl_error *err)
{
    if (!status)
        status = mgl_store_execute(store, "COMMIT", err);
    if (status && !sqlite3_get_autocommit(store->database)) /* some errors undo it themselves */
        sqlite3_exec(store->database, "ROLLBACK", NULL, NULL, NULL);
    return status;
}
