/* Bindings of libpq, PostgreSQL's client library, loaded at run time with dlopen. Only the
 * functions that the store needs are declared. Names, numbers and meanings follow libpq's reference
 * (ABI 5); the declarations are our own. Called by store_postgres*.c. */
#ifndef MGL_AUTOTUNE_STORE_LIBPQ_H
#define MGL_AUTOTUNE_STORE_LIBPQ_H

#include "base/error.h"

/* Element of the list of PQconninfoParse, which ends with a NULL keyword. */
typedef struct mgl_libpq_option {
    char *keyword, *environment, *compiled, *value, *label, *display;
    int size;
} mgl_libpq_option;

/*  member, result, symbol, arguments */
#define MGL_LIBPQ_FUNCTIONS(X)                                                                     \
    X(parse, mgl_libpq_option *, "PQconninfoParse", (const char *text, char **why))                \
    X(free_options, void, "PQconninfoFree", (mgl_libpq_option * options))                          \
    X(free_memory, void, "PQfreemem", (void *memory))                                              \
    X(connect, void *, "PQconnectdbParams",                                                        \
      (const char *const *keywords, const char *const *values, int expand))                        \
    X(finish, void, "PQfinish", (void *connection))                                                \
    X(status, int, "PQstatus", (const void *connection))                                           \
    X(in_transaction, int, "PQtransactionStatus", (const void *connection))                        \
    X(error, char *, "PQerrorMessage", (const void *connection))                                   \
    X(host, char *, "PQhost", (const void *connection))                                            \
    X(port, char *, "PQport", (const void *connection))                                            \
    X(database, char *, "PQdb", (const void *connection))                                          \
    X(on_notice, void *, "PQsetNoticeProcessor",                                                   \
      (void *connection, void (*each)(void *user, const char *text), void *user))                  \
    X(execute, void *, "PQexec", (void *connection, const char *sql))                              \
    X(execute_with, void *, "PQexecParams",                                                        \
      (void *connection, const char *sql, int count, const unsigned *types,                        \
       const char *const *values, const int *lengths, const int *formats, int result_format))      \
    X(result_status, int, "PQresultStatus", (const void *result))                                  \
    X(result_field, char *, "PQresultErrorField", (const void *result, int field))                 \
    X(clear, void, "PQclear", (void *result))                                                      \
    X(rows, int, "PQntuples", (const void *result))                                                \
    X(columns, int, "PQnfields", (const void *result))                                             \
    X(name, char *, "PQfname", (const void *result, int column))                                   \
    X(type, unsigned, "PQftype", (const void *result, int column))                                 \
    X(value, char *, "PQgetvalue", (const void *result, int row, int column))                      \
    X(length, int, "PQgetlength", (const void *result, int row, int column))                       \
    X(is_null, int, "PQgetisnull", (const void *result, int row, int column))

typedef struct mgl_libpq {
#define MGL_X(member, result, symbol, arguments) result(*member) arguments;
    MGL_LIBPQ_FUNCTIONS(MGL_X)
#undef MGL_X
} mgl_libpq;

enum {
    MGL_LIBPQ_CONNECTED = 0,
    MGL_LIBPQ_RESULT_COMMAND = 1, /* success without rows */
    MGL_LIBPQ_RESULT_ROWS = 2,
    MGL_LIBPQ_FIELD_CODE = 'C', /* SQLSTATE */
    MGL_LIBPQ_FIELD_TEXT = 'M',
    MGL_LIBPQ_IDLE = 0, /* no transaction */
    /* type numbers (OIDs) of values */
    MGL_LIBPQ_INT64 = 20,
    MGL_LIBPQ_TEXT = 25,
    MGL_LIBPQ_REAL = 701
};

/* Returns the function table, which is loaded on first use and kept. MGL_USAGE: the library is
 * missing or too old. Not thread-safe. */
mgl_status mgl_libpq_open(const mgl_libpq **out, mgl_error *err);

#endif
