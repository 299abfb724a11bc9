/*
 * SQL statements of the store, shared by its parts and independent of the engine. A query has a
 * sticky error: after the first error later calls do nothing, and the caller checks the status on
 * close.
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
    sqlite3 *database;      /* used by the SQLite engine */
    mgl_postgres *postgres; /* used by the PostgreSQL engine */
    char *path;             /* owned: the given path; for a server, its host and database */
    char *beside;           /* path prefix of the files that belong to the store; owned; NULL: equal
                             * to `path` */
    int64_t worker; /* server only: id of the worker that stores trials; 0: none has joined */
    char *url;      /* owned; server only: the complete URL; NULL: none */
};

typedef struct mgl_query {
    mgl_store *store;
    void *statement; /* owned by the engine */
    int put;         /* number of arguments so far */
    mgl_status status;
    mgl_error *err;
} mgl_query;

/* The operations of a database engine. Arguments of a statement are `?`, `?1`, ... from left to
 * right; places are counted from 1, columns from 0. A failing function sets the query's status. */
struct mgl_store_engine {
    bool shared; /* several machines write to it */
    void (*open)(mgl_query *query, const char *sql);
    void (*close)(mgl_query *query);
    bool (*step)(mgl_query *query);
    void (*reset)(
        mgl_query *query); /* makes the statement ready to run again with other arguments */
    void (*put_int)(mgl_query *query, int place, int64_t value);
    void (*put_real)(mgl_query *query, int place, double value);
    void (*put_text)(mgl_query *query, int place, const char *text, size_t length, bool lasts);
    bool (*is_null)(mgl_query *query, int column);
    int64_t (*get_int)(mgl_query *query, int column);
    double (*get_real)(mgl_query *query, int column);
    /* valid as long as the statement */
    const char *(*get_text)(mgl_query *query, int column, size_t *length);
    const char *(*get_name)(mgl_query *query, int column);
    mgl_status (*execute)(mgl_store *store, const char *sql, mgl_error *err);
    mgl_status (*begin)(mgl_store *store, bool write, mgl_error *err);
    void (*undo)(mgl_store *store);      /* rolls back the open transaction, if any */
    void (*give_back)(mgl_store *store); /* frees the space of deleted rows; may do nothing */
    void (*close_store)(mgl_store *store);
};
extern const mgl_store_engine mgl_store_sqlite;

/* The first arguments of a statement, which are integers: MGL_INTS(campaign, number). */
typedef struct mgl_query_ints {
    const int64_t *list; /* (count) */
    int count;
} mgl_query_ints;
#define MGL_INTS(...)                                                                              \
    ((mgl_query_ints){(const int64_t[]){__VA_ARGS__},                                              \
                      (int)(sizeof(const int64_t[]){__VA_ARGS__} / sizeof(int64_t))})

mgl_query mgl_query_open(mgl_store *store, const char *sql, mgl_error *err);
mgl_query mgl_query_open_with(mgl_store *store, const char *sql, mgl_query_ints ids,
                              mgl_error *err);
/* Append arguments from left to right. */
void mgl_query_put_int(mgl_query *query, int64_t value);
void mgl_query_put_real(mgl_query *query, double value);
/* NULL is allowed; the text must stay valid */
void mgl_query_put_text(mgl_query *query, const char *text);
void mgl_query_put_fields(mgl_query *query, const mgl_fields *fields, const void *record);
/* True: a row is available. False: no more rows, or an error. */
bool mgl_query_step(mgl_query *query);
/* Runs the statement to its end, and makes it ready to run again with other arguments. */
void mgl_query_run(mgl_query *query);
/* Runs a change of one row that ends with RETURNING id, and returns the id; 0: no row, or an
 * error. */
int64_t mgl_query_change(mgl_query *query);
/* Columns of the current row. */
int64_t mgl_query_get_int(mgl_query *query, int column);
double mgl_query_get_real(mgl_query *query, int column);
char *mgl_query_get_text(mgl_query *query, int column); /* owned; NULL: no value, or an error */
/* Reads columns from `column` on. Existing values in the record are not released. */
void mgl_query_get_fields(mgl_query *query, int column, const mgl_fields *fields, void *record);
/* Releases the query and returns its status. If that is not MGL_OK, the data read may be
 * incomplete. */
mgl_status mgl_query_close(mgl_query *query);

/* Runs one statement. */
mgl_status mgl_store_run(mgl_store *store, const char *sql, mgl_query_ints ids, mgl_error *err);
/* Runs one statement and returns the integer of its only row; 0: no row. */
mgl_status mgl_store_ask(mgl_store *store, const char *sql, mgl_query_ints ids, int64_t *out,
                         mgl_error *err);
/* Fills the counts from rows of an outcome's name and a count. */
mgl_status mgl_store_ask_outcomes(mgl_store *store, const char *sql, mgl_query_ints ids,
                                  int64_t counts[MGL_OUTCOME_COUNT], mgl_error *err);

/* Executes statements without arguments and rows. */
mgl_status mgl_store_execute(mgl_store *store, const char *sql, mgl_error *err);
/* Begins a transaction that writes. mgl_store_end commits it, or rolls it back if `status` is not
 * MGL_OK. */
mgl_status mgl_store_begin(mgl_store *store, mgl_error *err);
/* Begins a read-only snapshot transaction. */
mgl_status mgl_store_begin_reading(mgl_store *store, mgl_error *err);
/* Inside a transaction of a shared store: prevents other workers from reserving or storing until
 * its end. Does nothing for a file, where a writing transaction is exclusive. */
mgl_status mgl_store_lock_campaign(mgl_store *store, int64_t campaign, mgl_error *err);
mgl_status mgl_store_end(mgl_store *store, mgl_status status, mgl_error *err);

/* Converts an SQLite code to an error. MGL_USAGE: a name or number exists already. */
mgl_status mgl_store_fail(const mgl_store *store, int code, mgl_error *err);
/* MGL_BAD_INPUT: the campaign was deleted. */
mgl_status mgl_store_fail_gone(const mgl_store *store, mgl_error *err);
/* MGL_BAD_INPUT: the column has a value that is invalid in this version. */
mgl_status mgl_store_fail_value(const mgl_store *store, const char *column, mgl_error *err);

/* MGL_BAD_INPUT: the store is newer than this program, or older and only opened for reading.
 * *old: the caller has to migrate it. */
mgl_status mgl_store_check_version(const mgl_store *store, int64_t version, bool write, bool *old,
                                   mgl_error *err);

/* SQL of the migrations: [0] creates version 1, [1] migrates it to version 2, and so on. */
extern const char *const mgl_store_migrations[];
enum { MGL_STORE_VERSION = 2 };
/* SQL of the additional tables of a shared store. */
extern const char mgl_store_sharing[];

/* For lists of columns in statements: ", name" and ", ?". */
#define MGL_COLUMN_NAME(kind, name, member) ", " #name
#define MGL_COLUMN_MARK(kind, name, member) ", ?"

#endif
