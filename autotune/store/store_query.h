/*
 * Statements of the store, shared by its parts. A query fails once: its first error stays, later
 * calls do nothing, and the caller asks when it closes it.
 *
 *     mgl_query q = mgl_query_open(store, "SELECT id FROM campaigns WHERE name = ?", err);
 *     mgl_query_put_text(&q, name);
 *     while (mgl_query_step(&q))
 *         id = mgl_query_get_int(&q, 0);
 *     return mgl_query_close(&q);
 */
#ifndef MGL_AUTOTUNE_STORE_STORE_QUERY_H
#define MGL_AUTOTUNE_STORE_STORE_QUERY_H

#include "autotune/store/fields.h"
#include "autotune/store/store.h"
#include "autotune/store/store_place.h"

#include <sqlite3.h>

typedef struct mgl_store_engine mgl_store_engine;
typedef struct mgl_postgres mgl_postgres;

struct mgl_store {
    const mgl_store_engine *engine;
    sqlite3 *database;      /* SQLite's */
    mgl_postgres *postgres; /* PostgreSQL's */
    char *path;             /* owned: as it was given; of a server its host and database */
    char *beside;           /* owned; NULL: the path */
    int64_t worker;         /* of a server: who stores trials; 0: nobody has joined */
    char *url;              /* owned: of a server, with all it holds; NULL: none */
};

typedef struct mgl_query {
    mgl_store *store;
    void *statement; /* the engine's */
    int put;         /* arguments so far */
    mgl_status status;
    mgl_error *err;
} mgl_query;

/* What a database does in its own way. Arguments of a statement are `?`, `?1`, ... from left to
 * right; places count from 1, columns from 0. A function that fails says so in the query. */
struct mgl_store_engine {
    bool shared; /* several machines write it */
    void (*open)(mgl_query *query, const char *sql);
    void (*close)(mgl_query *query);
    bool (*step)(mgl_query *query);
    void (*reset)(mgl_query *query); /* ready for other arguments */
    void (*put_int)(mgl_query *query, int place, int64_t value);
    void (*put_real)(mgl_query *query, int place, double value);
    void (*put_text)(mgl_query *query, int place, const char *text, size_t length, bool lasts);
    bool (*is_null)(mgl_query *query, int column);
    int64_t (*get_int)(mgl_query *query, int column);
    double (*get_real)(mgl_query *query, int column);
    const char *(*get_text)(mgl_query *query, int column, size_t *length); /* of the statement */
    const char *(*get_name)(mgl_query *query, int column);
    mgl_status (*execute)(mgl_store *store, const char *sql, mgl_error *err);
    mgl_status (*begin)(mgl_store *store, bool write, mgl_error *err);
    void (*undo)(mgl_store *store);      /* the transaction, where one is open */
    void (*give_back)(mgl_store *store); /* the room of what was deleted; may do nothing */
    void (*close_store)(mgl_store *store);
};
extern const mgl_store_engine mgl_store_sqlite;

mgl_query mgl_query_open(mgl_store *store, const char *sql, mgl_error *err);
/* Arguments, from left to right. */
void mgl_query_put_int(mgl_query *query, int64_t value);
void mgl_query_put_real(mgl_query *query, double value);
void mgl_query_put_text(mgl_query *query, const char *text); /* NULL is fine; text must last */
void mgl_query_put_fields(mgl_query *query, const mgl_fields *fields, const void *record);
/* True: a row stands there. False: there is none, or it failed. */
bool mgl_query_step(mgl_query *query);
/* Runs it to its end and makes it ready for other arguments. */
void mgl_query_run(mgl_query *query);
/* Runs a change of one row that ends with RETURNING id: the id; 0: no row, or it failed. */
int64_t mgl_query_change(mgl_query *query);
/* Columns of the row. */
int64_t mgl_query_get_int(mgl_query *query, int column);
double mgl_query_get_real(mgl_query *query, int column);
char *mgl_query_get_text(mgl_query *query, int column); /* owned; NULL: none, or it failed */
/* Columns from `column` on. What is in the record already is not released. */
void mgl_query_get_fields(mgl_query *query, int column, const mgl_fields *fields, void *record);
/* Releases it. What it read may be incomplete where the status is not MGL_OK. */
mgl_status mgl_query_close(mgl_query *query);

/* Statements without arguments and rows. */
mgl_status mgl_store_execute(mgl_store *store, const char *sql, mgl_error *err);
/* A transaction that writes: begun, and ended, which undoes it where `status` is not MGL_OK. */
mgl_status mgl_store_begin(mgl_store *store, mgl_error *err);
/* One that sees the store as it is now, whatever others write meanwhile. */
mgl_status mgl_store_begin_reading(mgl_store *store, mgl_error *err);
/* Within a transaction of a shared store: no other worker takes or stores before its end. Nothing
 * in a file, where a transaction that writes is alone anyway. */
mgl_status mgl_store_lock_campaign(mgl_store *store, int64_t campaign, mgl_error *err);
mgl_status mgl_store_end(mgl_store *store, mgl_status status, mgl_error *err);

/* What an SQLite code means, in a sentence. MGL_USAGE: a name or a number that stands already. */
mgl_status mgl_store_fail(const mgl_store *store, int code, mgl_error *err);
/* MGL_BAD_INPUT: the campaign was deleted. */
mgl_status mgl_store_fail_gone(const mgl_store *store, mgl_error *err);
/* MGL_BAD_INPUT: a value that no store of this version has. */
mgl_status mgl_store_fail_value(const mgl_store *store, const char *column, mgl_error *err);

/* The statements that make and change the tables: [0] makes version 1, [1] version 2 of it, and so
 * on. */
extern const char *const mgl_store_migrations[];
enum { MGL_STORE_VERSION = 2 };
/* The tables that a shared store has besides. */
extern const char mgl_store_sharing[];

/* For lists of columns in statements: ", name" and ", ?". */
#define MGL_COLUMN_NAME(kind, name, member) ", " #name
#define MGL_COLUMN_MARK(kind, name, member) ", ?"

#endif
