/*
 * The SQLite engine of the store: statements, transactions, and error codes. All SQLite errors are
 * converted to messages here. Implements mgl_store_engine.
 */
#include "autotune/store/store_query.h"

#include "base/memory.h"

#include <errno.h>
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
        return mgl_fail_path(err, store->path, "the store cannot be opened");
    return mgl_fail(err, MGL_BAD_INPUT, store->path,
                    "the store cannot be opened: its folder is missing or may not be used");
}

/* Fails with a disk error. */
static mgl_status fail_disk(const mgl_store *store, mgl_error *err)
{
    int why = sqlite3_system_errno(store->database);
    if (why == ENOSPC || why == EDQUOT || why == EFBIG)
        return mgl_store_fail(store, SQLITE_FULL, err);
    return mgl_fail(err, MGL_SYSTEM, store->path,
                    "the disk failed (%s); what was stored before is kept: check the disk, then "
                    "run the same command again",
                    why ? strerror(why) : sqlite3_errmsg(store->database));
}

static mgl_status fail_constraint(const mgl_store *store, int code, mgl_error *err)
{
    if (code == SQLITE_CONSTRAINT_UNIQUE || code == SQLITE_CONSTRAINT_PRIMARYKEY)
        return mgl_fail(err, MGL_USAGE, store->path, "already exists (%s)",
                        sqlite3_errmsg(store->database));
    if (code == SQLITE_CONSTRAINT_FOREIGNKEY)
        return mgl_store_fail_gone(store, err);
    return mgl_fail(err, MGL_BAD_INPUT, store->path, "the store rejects the value: %s",
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
                        "the store cannot be written: make the file and its folder writable, or "
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

/* ---- statements ----------------------------------------------------------------------------- */

static void take(mgl_query *query, int code)
{
    if (code && !query->status)
        query->status = mgl_store_fail(query->store, code, query->err);
}

static void open_query(mgl_query *query, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    take(query, sqlite3_prepare_v2(query->store->database, sql, -1, &statement, NULL));
    query->statement = statement;
}

static void close_query(mgl_query *query)
{
    sqlite3_finalize(query->statement);
}

static bool step(mgl_query *query)
{
    int code = sqlite3_step(query->statement);
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        take(query, code);
    return code == SQLITE_ROW;
}

static void reset(mgl_query *query)
{
    sqlite3_reset(query->statement); /* returns the code of the last step again */
}

static void put_int(mgl_query *query, int place, int64_t value)
{
    take(query, sqlite3_bind_int64(query->statement, place, value));
}

static void put_real(mgl_query *query, int place, double value)
{
    take(query, sqlite3_bind_double(query->statement, place, value));
}

static void put_text(mgl_query *query, int place, const char *text, size_t length, bool lasts)
{
    take(query, sqlite3_bind_text(query->statement, place, text, (int)length,
                                  lasts ? SQLITE_STATIC : SQLITE_TRANSIENT));
}

static bool is_null(mgl_query *query, int column)
{
    return sqlite3_column_type(query->statement, column) == SQLITE_NULL;
}

static int64_t get_int(mgl_query *query, int column)
{
    return sqlite3_column_int64(query->statement, column);
}

static double get_real(mgl_query *query, int column)
{
    return sqlite3_column_double(query->statement, column);
}

static const char *get_text(mgl_query *query, int column, size_t *length)
{
    const char *text = (const char *)sqlite3_column_text(query->statement, column);
    *length = (size_t)sqlite3_column_bytes(query->statement, column);
    if (!text)
        query->status = mgl_fail_memory(query->err, 0);
    return text;
}

static const char *get_name(mgl_query *query, int column)
{
    return sqlite3_column_name(query->statement, column);
}

/* ---- transactions --------------------------------------------------------------------------- */

static mgl_status execute(mgl_store *store, const char *sql, mgl_error *err)
{
    int code = sqlite3_exec(store->database, sql, NULL, NULL, NULL);
    return code ? mgl_store_fail(store, sqlite3_extended_errcode(store->database), err) : MGL_OK;
}

static mgl_status begin(mgl_store *store, bool write, mgl_error *err)
{
    return execute(store, write ? "BEGIN IMMEDIATE" : "BEGIN", err);
}

static void undo(mgl_store *store)
{
    if (!sqlite3_get_autocommit(store->database)) /* after some errors, SQLite has already rolled
                                                   * back */
        sqlite3_exec(store->database, "ROLLBACK", NULL, NULL, NULL);
}

static void give_back(mgl_store *store)
{
    sqlite3_exec(store->database, "PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE)",
                 NULL, NULL, NULL);
}

static void close_store(mgl_store *store)
{
    sqlite3_close(store->database);
}

const mgl_store_engine mgl_store_sqlite = {
    .open = open_query,
    .close = close_query,
    .step = step,
    .reset = reset,
    .put_int = put_int,
    .put_real = put_real,
    .put_text = put_text,
    .is_null = is_null,
    .get_int = get_int,
    .get_real = get_real,
    .get_text = get_text,
    .get_name = get_name,
    .execute = execute,
    .begin = begin,
    .undo = undo,
    .give_back = give_back,
    .close_store = close_store,
};
