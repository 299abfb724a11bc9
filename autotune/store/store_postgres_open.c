/*
 * Connection to a PostgreSQL store: parsing of the URL, connecting, and migration. libpq parses the
 * URL and finds missing parts (PGPASSWORD, ~/.pgpass). A URL may contain a password, and a mistyped
 * URL may contain parts of it anywhere. Therefore messages contain only host and database, and only
 * after the URL was parsed successfully.
 */
#include "autotune/store/store_postgres.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/sha256.h"

#include <stdio.h>
#include <string.h>

bool mgl_postgres_is_url(const char *path)
{
    return !strncmp(path, "postgresql://", 13) || !strncmp(path, "postgres://", 11);
}

static mgl_status fail_url(mgl_error *err)
{
    return mgl_fail(err, MGL_USAGE, "--store",
                    "this is no URL of a PostgreSQL server: postgresql://USER@HOST:PORT/DATABASE, "
                    "where a '@', '/', ':', '?' or '%%' of a name is written %%40, %%2F, %%3A, "
                    "%%3F or %%25");
}

/* Whether host and port, which libpq repeats in its errors, contain no part of a password. */
static bool is_plain(const mgl_libpq_option *option)
{
    if (!option->value)
        return true;
    if (!strcmp(option->keyword, "port"))
        return option->value[strspn(option->value, "0123456789,")] == 0;
    return strcmp(option->keyword, "host") != 0 || !strchr(option->value, '@');
}

static mgl_status check_url(const mgl_libpq *api, const char *url, mgl_error *err)
{
    char *why = NULL;
    mgl_libpq_option *options = api->parse(url, &why);
    bool good = options != NULL;
    for (const mgl_libpq_option *o = options; good && o->keyword; o++)
        good = is_plain(o);
    if (options)
        api->free_options(options);
    if (why)
        api->free_memory(why);
    return good ? MGL_OK : fail_url(err);
}

static void ignore_notice(void *user, const char *text)
{
    (void)user, (void)text;
}

/* Sets the name used in errors, and the local path prefix of files that belong to the store. */
static mgl_status take_names(mgl_store *store, mgl_error *err)
{
    const mgl_postgres *p = store->postgres;
    const char *host = p->api->host(p->connection), *database = p->api->database(p->connection);
    const char *port = p->api->port(p->connection);
    mgl_text name = {0};
    mgl_text_format(&name, "postgresql://%.200s/%.100s", host ? host : "",
                    database ? database : "");
    if (!name.failed)
        store->path = mgl_strdup(name.bytes);
    mgl_text_format(&name, ":%s", port ? port : "");
    if (name.failed || !store->path) {
        mgl_text_clear(&name);
        return mgl_fail_memory(err, 0);
    }
    unsigned char hash[MGL_SHA256_BYTES];
    char hex[MGL_SHA256_HEX];
    mgl_sha256_of(name.bytes, name.length, hash);
    mgl_sha256_hex(hash, hex);
    mgl_text_clear(&name);
    mgl_text beside = {0};
    mgl_status status = mgl_store_state_folder(&beside, err);
    mgl_text_format(&beside, "/postgresql-%.12s", hex);
    if (!status)
        status = beside.failed ? mgl_fail_memory(err, 0) : mgl_folder_make(beside.bytes, 0700, err);
    if (!status && !(store->beside = mgl_strdup(beside.bytes)))
        status = mgl_fail_memory(err, beside.length);
    mgl_text_clear(&beside);
    return status;
}

static mgl_status connect(mgl_store *store, const char *url, mgl_error *err)
{
    /* libpq uses the later value if a keyword appears twice */
    const char *const keywords[] = {"fallback_application_name", "connect_timeout",
                                    "tcp_user_timeout",          "dbname",
                                    "client_encoding",           NULL};
    const char *const values[] = {"megalith", "10", "30000", url, "UTF8", NULL};
    mgl_postgres *p = store->postgres;
    p->connection = p->api->connect(keywords, values, 1);
    if (!p->connection)
        return mgl_fail_memory(err, 0);
    mgl_status status = take_names(store, err);
    if (status)
        return status;
    if (p->api->status(p->connection) != MGL_LIBPQ_CONNECTED)
        return mgl_fail(err, MGL_SYSTEM, store->path, "the server cannot be used: %.400s",
                        p->api->error(p->connection));
    p->api->on_notice(p->connection, ignore_notice, NULL);
    return MGL_OK;
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* Returns 0 if there is no store yet. */
static mgl_status read_version(mgl_store *store, int64_t *out, mgl_error *err)
{
    /* The table is looked up by its row, because PostgreSQL caches missing names. */
    mgl_status status = mgl_store_ask(store,
                                      "SELECT count(*) FROM pg_catalog.pg_tables"
                                      " WHERE schemaname = 'megalith' AND tablename = 'about'",
                                      (mgl_query_ints){0}, out, err);
    return status || !*out ? status
                           : mgl_store_ask(store, "SELECT version FROM megalith.about",
                                           (mgl_query_ints){0}, out, err);
}

static mgl_status execute_adapted(mgl_store *store, const char *sql, mgl_error *err)
{
    mgl_text text = {0};
    mgl_postgres_adapt(sql, &text);
    mgl_status status =
        text.failed ? mgl_fail_memory(err, 0) : mgl_store_execute(store, text.bytes, err);
    mgl_text_clear(&text);
    return status;
}

static mgl_status migrate(mgl_store *store, int64_t version, mgl_error *err)
{
    char sql[100];
    mgl_status status = MGL_OK;
    if (!version)
        status = mgl_store_execute(store,
                                   "CREATE SCHEMA IF NOT EXISTS megalith;"
                                   "SET LOCAL search_path TO megalith;"
                                   "CREATE TABLE about (version BIGINT NOT NULL);"
                                   "INSERT INTO about VALUES (0)",
                                   err);
    if (!status)
        status = mgl_store_execute(store, "SET LOCAL search_path TO megalith", err);
    for (int64_t v = version; !status && v < MGL_STORE_VERSION; v++)
        status = execute_adapted(store, mgl_store_migrations[v], err);
    if (!status && !version)
        status = execute_adapted(store, mgl_store_sharing, err);
    snprintf(sql, sizeof sql, "UPDATE about SET version = %d", MGL_STORE_VERSION);
    return status ? status : mgl_store_execute(store, sql, err);
}

/* Another process may migrate at the same time: an advisory lock serializes both, and the second
 * one checks the version again. */
static mgl_status bring_up_to_date(mgl_store *store, mgl_error *err)
{
    int64_t version = 0;
    mgl_status status = mgl_store_begin(store, err);
    if (status)
        return status;
    status = mgl_store_execute(store, "SELECT pg_advisory_xact_lock(1298624579)", err); /* "MglC" */
    if (!status)
        status = read_version(store, &version, err);
    if (!status && version < MGL_STORE_VERSION)
        status = migrate(store, version, err);
    return mgl_store_end(store, status, err);
}

static mgl_status check_version(mgl_store *store, bool write, mgl_error *err)
{
    int64_t version = 0;
    bool old = false;
    mgl_status status = read_version(store, &version, err);
    if (!status)
        status = mgl_store_check_version(store, version, write, &old, err);
    return !status && old ? bring_up_to_date(store, err) : status;
}

mgl_status mgl_postgres_connect(mgl_store *store, const char *url, bool write, mgl_error *err)
{
    store->engine = &mgl_store_postgres;
    store->postgres = mgl_alloc_zero(1, sizeof *store->postgres);
    if (!store->postgres)
        return mgl_fail_memory(err, sizeof *store->postgres);
    mgl_status status = mgl_libpq_open(&store->postgres->api, err);
    if (!status)
        status = check_url(store->postgres->api, url, err);
    if (!status)
        status = connect(store, url, err);
    if (!status)
        status = check_version(store, write, err);
    if (!status)
        status = mgl_store_execute(store, "SET search_path TO megalith", err);
    if (!status && !write)
        status = mgl_store_execute(store, "SET default_transaction_read_only TO on", err);
    return status;
}
