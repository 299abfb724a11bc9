/*
 * The PostgreSQL engine of the store: statements, transactions, and error codes. Values are
 * transferred in binary, so numbers are exact. A statement is sent when all its arguments are
 * known, and all rows of the result are then in memory, so other statements may run between two
 * rows.
 *
 * Statements are written once, in SQL that both databases understand with the translation of
 * mgl_postgres_adapt. PostgreSQL requires a valid encoding, so each byte that is not UTF-8 becomes
 * a question mark. Implements mgl_store_engine.
 */
#include "autotune/store/store_postgres.h"

#include "base/memory.h"
#include "base/utf8.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

enum { MOST_ARGUMENTS = 64, BYTES = 8 };

typedef struct statement {
    char *sql;
    void *result; /* NULL: not sent yet */
    int row, count;
    unsigned types[MOST_ARGUMENTS];
    int lengths[MOST_ARGUMENTS];
    char *texts[MOST_ARGUMENTS]; /* owned; NULL: a number or no value */
    bool present[MOST_ARGUMENTS];
    char numbers[MOST_ARGUMENTS][BYTES];
} statement;

/* ---- translation ----------------------------------------------------------------------------- */

/* Longer patterns come first. */
static const struct {
    const char *from, *to;
} words[] = {
    {"INTEGER PRIMARY KEY AUTOINCREMENT", "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"},
    {"INTEGER PRIMARY KEY", "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"},
    {"INTEGER", "BIGINT"},
    {"REAL", "DOUBLE PRECISION"},
    {" STRICT, WITHOUT ROWID", ""},
    {" STRICT", ""},
};

/* Appends the translation of the start of `sql`, and returns the number of translated bytes. */
static size_t adapt_one(const char *sql, int *count, mgl_text *out)
{
    if (*sql == '?') {
        size_t digits = strspn(sql + 1, "0123456789");
        if (digits)
            mgl_text_format(out, "$%.*s", (int)digits, sql + 1);
        else
            mgl_text_format(out, "$%d", ++*count);
        return 1 + digits;
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t length = strlen(words[i].from);
        if (!strncmp(sql, words[i].from, length)) {
            mgl_text_put(out, words[i].to);
            return length;
        }
    }
    mgl_text_append(out, sql, 1);
    return 1;
}

void mgl_postgres_adapt(const char *sql, mgl_text *out)
{
    int count = 0;
    while (*sql)
        sql += adapt_one(sql, &count, out);
}

/* ---- errors --------------------------------------------------------------------------------- */

static const char *field_of(const mgl_postgres *p, const void *result, int field)
{
    const char *text = result ? p->api->result_field(result, field) : NULL;
    return text ? text : "";
}

/* Meaning of SQLSTATE codes by prefix; the first match is used. */
static const struct {
    const char *code;
    mgl_status status;
    const char *text;
} meanings[] = {
    {"23505", MGL_USAGE, "already exists"},
    {"53200", MGL_SYSTEM, "the server has no memory left; try again later"},
    {"53", MGL_SYSTEM,
     "the server has no room left; what was stored before is kept: make room there, then run the "
     "same command again"},
    {"25006", MGL_SYSTEM, "the store cannot be written: the server or this connection only reads"},
    {"42501", MGL_SYSTEM, "the user of the database may not do that; ask who runs the server"},
    {"40", MGL_SYSTEM,
     "another process changed the store at the same time; run the same command again"},
    {"57", MGL_SYSTEM, "the server aborted the statement; run the same command again"},
    {"22021", MGL_BAD_INPUT, "a text cannot be kept in the encoding of the database"},
    {"54", MGL_BAD_INPUT, "a text is too large for the store"},
};

static mgl_status fail_result(const mgl_store *store, const void *result, mgl_error *err)
{
    const mgl_postgres *p = store->postgres;
    const char *code = field_of(p, result, MGL_LIBPQ_FIELD_CODE);
    const char *text = field_of(p, result, MGL_LIBPQ_FIELD_TEXT);
    /* An empty code is a libpq error: sending or receiving failed. 57P: the server shuts down. */
    if (p->api->status(p->connection) != MGL_LIBPQ_CONNECTED || !code[0] ||
        !strncmp(code, "08", 2) || !strncmp(code, "57P", 3))
        return mgl_fail(err, MGL_SYSTEM, store->path,
                        "the connection to the server was lost; what was stored before is kept: "
                        "run the same command again once the server is there");
    if (!strcmp(code, "23503"))
        return mgl_store_fail_gone(store, err);
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++)
        if (!strncmp(code, meanings[i].code, strlen(meanings[i].code)))
            return mgl_fail(err, meanings[i].status, store->path, "%s (%.160s)", meanings[i].text,
                            text);
    return mgl_fail(err, MGL_BAD_INPUT, store->path,
                    "the store is not one that this version wrote (%s %.160s); take another "
                    "--store",
                    code, text);
}

static bool succeeded(const mgl_postgres *p, const void *result)
{
    int status = result ? p->api->result_status(result) : -1;
    return status == MGL_LIBPQ_RESULT_COMMAND || status == MGL_LIBPQ_RESULT_ROWS;
}

/* ---- statements ----------------------------------------------------------------------------- */

static void open_query(mgl_query *query, const char *sql)
{
    mgl_text text = {0};
    statement *s = mgl_alloc_zero(1, sizeof *s);
    mgl_postgres_adapt(sql, &text);
    query->statement = s;
    if (s && !text.failed)
        s->sql = mgl_strdup(text.bytes);
    if (!s || !s->sql)
        query->status = mgl_fail_memory(query->err, sizeof *s);
    mgl_text_clear(&text);
}

static void reset(mgl_query *query)
{
    statement *s = query->statement;
    if (s->result)
        query->store->postgres->api->clear(s->result);
    for (int i = 0; i < s->count; i++)
        mgl_free(s->texts[i]);
    *s = (statement){.sql = s->sql};
}

static void close_query(mgl_query *query)
{
    statement *s = query->statement;
    reset(query);
    mgl_free(s->sql);
    mgl_free(s);
}

static void send(mgl_query *query)
{
    statement *s = query->statement;
    const mgl_postgres *p = query->store->postgres;
    const char *values[MOST_ARGUMENTS] = {0};
    int formats[MOST_ARGUMENTS];
    for (int i = 0; i < s->count; i++) {
        formats[i] = 1;
        if (s->present[i])
            values[i] = s->texts[i] ? s->texts[i] : s->numbers[i];
    }
    s->result = p->api->execute_with(p->connection, s->sql, s->count, s->types, values, s->lengths,
                                     formats, 1);
    s->row = -1;
    if (!succeeded(p, s->result))
        query->status = fail_result(query->store, s->result, query->err);
}

static bool step(mgl_query *query)
{
    statement *s = query->statement;
    if (!s->result)
        send(query);
    return !query->status && ++s->row < query->store->postgres->api->rows(s->result);
}

/* ---- arguments ------------------------------------------------------------------------------ */

/* Reserves the argument at that position; -1: there is no room. */
static int take_place(mgl_query *query, int place, unsigned type, bool present)
{
    statement *s = query->statement;
    if (place > MOST_ARGUMENTS) {
        query->status = mgl_fail(query->err, MGL_BAD_INPUT, query->store->path,
                                 "a statement has more than %d arguments", MOST_ARGUMENTS);
        return -1;
    }
    s->count = place;
    s->types[place - 1] = type;
    s->present[place - 1] = present;
    return place - 1;
}

/* Stores a number in big-endian order. */
static void put_number(mgl_query *query, int place, unsigned type, bool present, uint64_t bits)
{
    statement *s = query->statement;
    int i = take_place(query, place, type, present);
    if (i < 0)
        return;
    for (int b = 0; b < BYTES; b++)
        s->numbers[i][b] = (char)(bits >> 8 * (BYTES - 1 - b));
    s->lengths[i] = BYTES;
}

static void put_int(mgl_query *query, int place, int64_t value)
{
    put_number(query, place, MGL_LIBPQ_INT64, true, (uint64_t)value);
}

static void put_real(mgl_query *query, int place, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_number(query, place, MGL_LIBPQ_REAL, !isnan(value), bits);
}

/* Copies text. Bytes that are not UTF-8 become question marks, so the length is unchanged. */
static char *copy_valid(const char *text, size_t length)
{
    char *copy = mgl_alloc(length + 1);
    if (!copy)
        return NULL;
    for (size_t at = 0; at < length;) {
        size_t good = mgl_utf8_valid(text + at, length - at);
        memcpy(copy + at, text + at, good);
        at += good;
        if (at < length)
            copy[at++] = '?';
    }
    copy[length] = 0;
    return copy;
}

static void put_text(mgl_query *query, int place, const char *text, size_t length, bool lasts)
{
    (void)lasts;
    statement *s = query->statement;
    int i = take_place(query, place, MGL_LIBPQ_TEXT, text != NULL);
    if (i < 0 || !text)
        return;
    s->texts[i] = copy_valid(text, length);
    s->lengths[i] = (int)length;
    if (!s->texts[i])
        query->status = mgl_fail_memory(query->err, length + 1);
}

/* ---- columns -------------------------------------------------------------------------------- */

static const char *get_name(mgl_query *query, int column)
{
    const statement *s = query->statement;
    const char *name = query->store->postgres->api->name(s->result, column);
    return name ? name : "?";
}

static bool is_null(mgl_query *query, int column)
{
    const statement *s = query->statement;
    return query->store->postgres->api->is_null(s->result, s->row, column);
}

/* Reads a number. A value of another type is rejected, because the server is untrusted. */
static uint64_t get_number(mgl_query *query, int column, unsigned type)
{
    const statement *s = query->statement;
    const mgl_libpq *api = query->store->postgres->api;
    uint64_t bits = 0;
    if (is_null(query, column))
        return 0;
    if (api->type(s->result, column) != type || api->length(s->result, s->row, column) != BYTES) {
        query->status = mgl_store_fail_value(query->store, get_name(query, column), query->err);
        return 0;
    }
    const char *bytes = api->value(s->result, s->row, column);
    for (int b = 0; b < BYTES; b++)
        bits = bits << 8 | (unsigned char)bytes[b];
    return bits;
}

static int64_t get_int(mgl_query *query, int column)
{
    return (int64_t)get_number(query, column, MGL_LIBPQ_INT64);
}

static double get_real(mgl_query *query, int column)
{
    double value;
    uint64_t bits = get_number(query, column, MGL_LIBPQ_REAL);
    memcpy(&value, &bits, sizeof value);
    return value;
}

static const char *get_text(mgl_query *query, int column, size_t *length)
{
    const statement *s = query->statement;
    const mgl_libpq *api = query->store->postgres->api;
    if (api->type(s->result, column) != MGL_LIBPQ_TEXT) {
        query->status = mgl_store_fail_value(query->store, get_name(query, column), query->err);
        return NULL;
    }
    *length = (size_t)api->length(s->result, s->row, column);
    return api->value(s->result, s->row, column);
}

/* ---- transactions --------------------------------------------------------------------------- */

static mgl_status execute(mgl_store *store, const char *sql, mgl_error *err)
{
    const mgl_postgres *p = store->postgres;
    void *result = p->api->execute(p->connection, sql);
    mgl_status status = succeeded(p, result) ? MGL_OK : fail_result(store, result, err);
    if (result)
        p->api->clear(result);
    return status;
}

static mgl_status begin(mgl_store *store, bool write, mgl_error *err)
{
    return execute(store, write ? "BEGIN" : "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", err);
}

static void undo(mgl_store *store)
{
    const mgl_postgres *p = store->postgres;
    if (p->api->in_transaction(p->connection) != MGL_LIBPQ_IDLE)
        execute(store, "ROLLBACK", NULL);
}

static void give_back(mgl_store *store)
{
    (void)store; /* the server frees space itself */
}

static void close_store(mgl_store *store)
{
    mgl_postgres *p = store->postgres;
    if (p && p->connection)
        p->api->finish(p->connection);
    mgl_free(p);
}

const mgl_store_engine mgl_store_postgres = {
    .shared = true,
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
