/*
 * Opening and closing of a store, with SQLite as the default engine.
 *
 * Durability: write-ahead log with synchronous=FULL, so a commit is on the disk when it returns.
 * SQLite copies the log into the file periodically and at the last close. A killed process leaves
 * the log beside the file, and the next process that opens the store recovers from it.
 *
 * The path of a store is user input, so the file is untrusted. A file that is not a store, is newer
 * or is damaged is rejected before anything is changed, and values are checked when they are read.
 */
#include "autotune/store/store_postgres.h"

#include "base/file.h"
#include "base/memory.h"

#include <stdio.h>
#include <string.h>

enum {
    APPLICATION = 0x4D676C43, /* "MglC": SQLite application id of the file */
    WAIT_MS = 5000,           /* longest wait for a lock of another writer */
    LARGEST_TEXT = 96 << 20,  /* bytes; a schedule text may have 64 MiB */
    LOG_BYTES = 64 << 20,     /* size to which the log is truncated after a checkpoint */
    CHECKED_BYTES = 256 << 20 /* largest store that is checked fully when opened (0.7 s) */
};

const char *mgl_store_path(const mgl_store *store)
{
    return store->path;
}

const char *mgl_store_url(const mgl_store *store)
{
    return store->url ? store->url : store->path;
}

bool mgl_store_is_path(const char *path)
{
    return !mgl_postgres_is_url(path);
}

const char *mgl_store_shown(const char *path)
{
    return mgl_store_is_path(path) ? path : "a PostgreSQL server";
}

const char *mgl_store_beside(const mgl_store *store)
{
    return store->beside ? store->beside : store->path;
}

bool mgl_store_is_shared(const mgl_store *store)
{
    return store->engine->shared;
}

void mgl_store_close(mgl_store *store)
{
    if (!store)
        return;
    store->engine->close_store(store);
    mgl_free(store->path);
    mgl_free(store->beside);
    mgl_free(store->url);
    mgl_free(store);
}

/* ---- identity of the file -------------------------------------------------------------------- */

typedef struct identity {
    int64_t application, version, tables;
} identity;

/* Reads the identity in one snapshot: the open first statement hides commits of other processes. */
static mgl_status read_identity(mgl_store *store, identity *out, mgl_error *err)
{
    *out = (identity){0};
    mgl_query q = mgl_query_open(store, "SELECT count(*) FROM sqlite_schema", err);
    if (!mgl_query_step(&q))
        return mgl_query_close(&q);
    out->tables = mgl_query_get_int(&q, 0);
    const mgl_query_ints none = {0};
    mgl_status status = mgl_store_ask(store, "PRAGMA application_id", none, &out->application, err);
    if (!status)
        status = mgl_store_ask(store, "PRAGMA user_version", none, &out->version, err);
    mgl_status closed = mgl_query_close(&q);
    return status ? status : closed;
}

/* Reads and checks the identity. *old: the store has to be migrated, or created. */
static mgl_status check_identity(mgl_store *store, bool write, identity *is, bool *old,
                                 mgl_error *err)
{
    mgl_status status = read_identity(store, is, err);
    if (status)
        return status;
    bool empty = !is->application && !is->version && !is->tables;
    if (!empty && (is->application != APPLICATION || is->version < 1))
        return mgl_fail(err, MGL_BAD_INPUT, store->path,
                        "is a database of another program, no store of campaigns; take another "
                        "--store");
    return mgl_store_check_version(store, is->version, write, old, err);
}

/* Migrates a store of `version` to the newest version, inside the open transaction. */
static mgl_status migrate(mgl_store *store, int64_t version, mgl_error *err)
{
    char sql[80];
    mgl_status status = MGL_OK;
    for (; !status && version < MGL_STORE_VERSION; version++)
        status = mgl_store_execute(store, mgl_store_migrations[version], err);
    snprintf(sql, sizeof sql, "PRAGMA application_id = %d; PRAGMA user_version = %d", APPLICATION,
             MGL_STORE_VERSION);
    return status ? status : mgl_store_execute(store, sql, err);
}

/* Another process may migrate at the same time, so the identity is read again inside the
 * transaction. */
static mgl_status bring_up_to_date(mgl_store *store, mgl_error *err)
{
    identity is;
    bool old = false;
    mgl_status status = mgl_store_begin(store, err);
    if (status)
        return status;
    status = check_identity(store, true, &is, &old, err);
    if (!status && old)
        status = migrate(store, is.version, err);
    return mgl_store_end(store, status, err);
}

/* ---- open ------------------------------------------------------------------------------------ */

/* Configures a connection. The file is untrusted: its schema may not call functions with side
 * effects, and its cells are checked. */
static mgl_status configure(mgl_store *store, mgl_error *err)
{
    sqlite3 *database = store->database;
    sqlite3_extended_result_codes(database, 1);
    sqlite3_busy_timeout(database, WAIT_MS);
    sqlite3_limit(database, SQLITE_LIMIT_LENGTH, LARGEST_TEXT);
    sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    return mgl_store_execute(store,
                             "PRAGMA foreign_keys = ON; PRAGMA cell_size_check = ON;"
                             "PRAGMA mmap_size = 0; PRAGMA synchronous = FULL",
                             err);
}

/* Switches to the write-ahead log. Retries, because SQLite does not wait if two processes create
 * one store at the same time. */
static mgl_status start_log(mgl_store *store, mgl_error *err)
{
    enum { STEP_MS = 20 };
    mgl_status status = MGL_OK;
    char mode[16] = "";
    for (int waited = 0; waited < WAIT_MS; waited += STEP_MS) {
        sqlite3_stmt *statement = NULL;
        int code =
            sqlite3_prepare_v2(store->database, "PRAGMA journal_mode = WAL", -1, &statement, NULL);
        if (!code && (code = sqlite3_step(statement)) == SQLITE_ROW) {
            const char *text = (const char *)sqlite3_column_text(statement, 0);
            snprintf(mode, sizeof mode, "%s", text ? text : "");
            code = SQLITE_OK;
        }
        status = code ? mgl_store_fail(store, code, err) : MGL_OK;
        sqlite3_finalize(statement);
        if ((code & 0xFF) != SQLITE_BUSY)
            break;
        sqlite3_sleep(STEP_MS);
    }
    if (!status && strcmp(mode, "wal") != 0)
        return mgl_fail(err, MGL_BAD_INPUT, store->path,
                        "the file system cannot share memory between processes, as the store "
                        "needs it; take a --store on a local disk");
    return status;
}

/* Checks all pages and column types. In a larger store, damage is detected only where data is
 * read. */
static mgl_status check_integrity(mgl_store *store, mgl_error *err)
{
    struct stat facts;
    if (stat(store->path, &facts) || facts.st_size > CHECKED_BYTES)
        return MGL_OK;
    mgl_query q = mgl_query_open(store, "PRAGMA quick_check(1)", err);
    char *said = mgl_query_step(&q) ? mgl_query_get_text(&q, 0) : NULL;
    mgl_status status = mgl_query_close(&q);
    if (!status && said && strcmp(said, "ok") != 0)
        status = mgl_fail(err, MGL_BAD_INPUT, store->path,
                          "the store is damaged (%.160s); restore a copy, or take another --store",
                          said);
    mgl_free(said);
    return status;
}

static mgl_status set_up(mgl_store *store, mgl_error *err)
{
    char sql[120];
    identity is;
    bool old = false;
    mgl_status status = check_identity(store, true, &is, &old, err);
    if (!status && is.tables)
        status = check_integrity(store, err);
    if (!status &&
        !is.tables) /* possible only before the first table; deleted campaigns then free space */
        status = mgl_store_execute(store, "PRAGMA auto_vacuum = INCREMENTAL", err);
    if (!status)
        status = start_log(store, err);
    snprintf(sql, sizeof sql, "PRAGMA journal_size_limit = %d", LOG_BYTES);
    if (!status)
        status = mgl_store_execute(store, sql, err);
    if (!status && old)
        status = bring_up_to_date(store, err);
    return status;
}

/* Checks a store that is opened for reading: it must already have this version. */
static mgl_status look_at(mgl_store *store, mgl_error *err)
{
    identity is;
    bool old = false;
    return check_identity(store, false, &is, &old, err);
}

/* Opens the file by a name that SQLite cannot interpret in another way. */
static mgl_status connect(mgl_store *store, const char *name, int flags, mgl_error *err)
{
    int code = sqlite3_open_v2(name, &store->database, flags | SQLITE_OPEN_NOMUTEX, NULL);
    if (!store->database)
        return mgl_fail_memory(err, 0);
    if (!code && (flags & SQLITE_OPEN_READWRITE) && sqlite3_db_readonly(store->database, NULL))
        code = SQLITE_READONLY; /* SQLite silently opens files that it cannot write for reading */
    return code ? mgl_store_fail(store, code, err) : configure(store, err);
}

/* Opens the file as an immutable URI, for a folder in which no log files can be created. */
static mgl_status connect_frozen(mgl_store *store, mgl_error *err)
{
    mgl_text uri = {0};
    mgl_text_put(&uri, store->path[0] == '/' ? "file:" : "file:./");
    for (const char *c = store->path; *c; c++)
        if (strchr("%?#", *c))
            mgl_text_format(&uri, "%%%02X", (unsigned)(unsigned char)*c);
        else
            mgl_text_append(&uri, c, 1);
    mgl_text_put(&uri, "?immutable=1");
    mgl_status status = uri.failed ? mgl_fail_memory(err, 0) : MGL_OK;
    sqlite3_close(store->database);
    store->database = NULL;
    if (!status)
        status = connect(store, uri.bytes, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, err);
    mgl_text_clear(&uri);
    return status ? status : look_at(store, err);
}

/* Whether opening failed because the log files of a store could not be created in its folder. */
static bool is_frozen(const mgl_store *store)
{
    char log[PATH_MAX + 8];
    struct stat facts;
    int code = store->database ? sqlite3_errcode(store->database) & 0xFF : SQLITE_OK;
    snprintf(log, sizeof log, "%s-wal", store->path);
    return (code == SQLITE_CANTOPEN || code == SQLITE_READONLY) &&
           (stat(log, &facts) || facts.st_size == 0);
}

static mgl_status open_store(mgl_store *store, bool write, mgl_error *err)
{
    char name[PATH_MAX + 4];
    snprintf(name, sizeof name, "%s%s", store->path[0] == '/' ? "" : "./", store->path);
    mgl_status status = mgl_store_prepare_place(store->path, write, err);
    if (status)
        return status;
    status = connect(store, name, write ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY, err);
    if (!status)
        status = write ? set_up(store, err) : look_at(store, err);
    return status && !write && is_frozen(store) ? connect_frozen(store, err) : status;
}

static mgl_status open_any(mgl_store *store, const char *path, bool write, mgl_error *err)
{
    char **kept = mgl_postgres_is_url(path) ? &store->url : &store->path;
    *kept = mgl_strdup(path);
    if (!*kept)
        return mgl_fail_memory(err, strlen(path));
    return store->url ? mgl_postgres_connect(store, path, write, err)
                      : open_store(store, write, err);
}

static mgl_status open_default(bool write, mgl_store **out, mgl_error *err)
{
    mgl_text path = {0};
    mgl_status status = mgl_store_default_path(&path, err);
    if (!status)
        status = mgl_store_open(path.bytes, write, out, err);
    mgl_text_clear(&path);
    return status;
}

mgl_status mgl_store_open(const char *path, bool write, mgl_store **out, mgl_error *err)
{
    *out = NULL;
    if (!path)
        return open_default(write, out, err);
    mgl_store *store = mgl_alloc_zero(1, sizeof *store);
    if (!store)
        return mgl_fail_memory(err, sizeof *store);
    store->engine = &mgl_store_sqlite;
    mgl_status status = open_any(store, path, write, err);
    if (status) {
        mgl_store_close(store);
        return status;
    }
    *out = store;
    return MGL_OK;
}
