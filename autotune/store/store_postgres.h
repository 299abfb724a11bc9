/*
 * PostgreSQL behind the store: a server that several machines write. Its tables are those of
 * store_schema.c, in the schema "megalith" of the database that the URL names.
 */
#ifndef MGL_AUTOTUNE_STORE_STORE_POSTGRES_H
#define MGL_AUTOTUNE_STORE_STORE_POSTGRES_H

#include "autotune/store/libpq.h"
#include "autotune/store/store_query.h"

struct mgl_postgres {
    const mgl_libpq *api;
    void *connection;
};

/* "postgresql://..." or "postgres://...". */
bool mgl_postgres_is_url(const char *path);
/* Fills a store that is all 0. MGL_USAGE: no libpq, or no URL; MGL_SYSTEM: the server does not
 * answer. No password is ever repeated. */
mgl_status mgl_postgres_connect(mgl_store *store, const char *url, bool write, mgl_error *err);

extern const mgl_store_engine mgl_store_postgres;

/* A statement of SQLite's in PostgreSQL's words: `?` is $1, $2, ...; types and tables by their
 * names. */
void mgl_postgres_adapt(const char *sql, mgl_text *out);

#endif
