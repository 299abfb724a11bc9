/*
 * The PostgreSQL engine of the store, for a server that several machines write to. Its tables are
 * those of store_schema.c, in the schema "megalith" of the URL's database.
 */
#ifndef MGL_AUTOTUNE_STORE_STORE_POSTGRES_H
#define MGL_AUTOTUNE_STORE_STORE_POSTGRES_H

#include "autotune/store/libpq.h"
#include "autotune/store/store_query.h"

struct mgl_postgres {
    const mgl_libpq *api;
    void *connection;
};

/* Whether it begins with "postgresql://" or "postgres://". */
bool mgl_postgres_is_url(const char *path);
/* Connects a zeroed store. MGL_USAGE: libpq is missing, or the URL is invalid. MGL_SYSTEM: the
 * server does not answer. Messages never contain a password. */
mgl_status mgl_postgres_connect(mgl_store *store, const char *url, bool write, mgl_error *err);

extern const mgl_store_engine mgl_store_postgres;

/* Translates a SQLite statement to PostgreSQL: `?` becomes $1, $2, ..., and type and table keywords
 * are replaced. */
void mgl_postgres_adapt(const char *sql, mgl_text *out);

#endif
