/*
 * Implements the strict JSON reader of json.h in two passes. `scan_*` checks the text by the
 * grammar of RFC 8259 and records the position of the first error. cJSON, which is lenient about
 * most of the grammar, then builds the tree. `check_tree` walks the tree for what the grammar
 * does not cover: duplicate keys, and numbers that overflow. After a successful scan, cJSON
 * fails only if memory runs out.
 */
#include "base/json.h"

#include "base/aliases.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum {
    MAX_DEPTH = 64,
    MAX_VALUES = 1 << 24, /* about 64 bytes each in the tree */
    MAX_NUMBER = 63,      /* characters of a number; cJSON reads no more */
};

/* ---- the grammar ---------------------------------------------------------------------------- */

typedef struct scanner {
    const unsigned char *at, *end;
    int depth;
    bool zeros;         /* strings may hold U+0000 */
    size_t values;      /* so far */
    const char *reason; /* why the text is rejected; NULL so far */
} scanner;

static bool refuse(scanner *s, const char *reason)
{
    if (!s->reason)
        s->reason = reason;
    return false;
}

static void skip_space(scanner *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\t' || *s->at == '\n' || *s->at == '\r'))
        s->at++;
}

static int peek(const scanner *s)
{
    return s->at < s->end ? *s->at : -1;
}

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static int hex_value(int c)
{
    if (is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Reads the four hex digits after \u, at s->at; -1 if they are invalid. */
static int scan_hex4(scanner *s)
{
    int value = 0;
    for (int i = 0; i < 4; i++) {
        int digit = hex_value(peek(s));
        if (digit < 0)
            return refuse(s, "\\u needs four hexadecimal digits"), -1;
        value = value << 4 | digit;
        s->at++;
    }
    return value;
}

/* Scans the rest of an escape; s->at is after the backslash. */
static bool scan_escape(scanner *s, bool zeros)
{
    int c = peek(s);
    if (c < 0 || !memchr("\"\\/bfnrtu", c, 9))
        return refuse(s, "an escape that JSON does not know");
    s->at++;
    if (c != 'u')
        return true;
    int code = scan_hex4(s);
    if (code < 0)
        return false;
    if (code == 0 && !zeros)
        return refuse(s, "\\u0000 is not accepted in strings");
    if (code >= 0xDC00 && code <= 0xDFFF)
        return refuse(s, "a low surrogate without its high surrogate");
    if (code < 0xD800 || code > 0xDBFF)
        return true;
    if (s->end - s->at < 2 || s->at[0] != '\\' || s->at[1] != 'u')
        return refuse(s, "a high surrogate without its low surrogate");
    s->at += 2;
    code = scan_hex4(s);
    if (code < 0)
        return false;
    return (code >= 0xDC00 && code <= 0xDFFF) ||
           refuse(s, "a high surrogate without its low surrogate");
}

/* Scans one multi-byte character by Unicode's table of well-formed UTF-8. */
static bool scan_utf8(scanner *s)
{
    unsigned c = *s->at, low = 0x80, high = 0xBF;
    int more = c >= 0xC2 && c <= 0xDF ? 1 : c >= 0xE0 && c <= 0xEF ? 2 : 3;
    if (c < 0xC2 || c > 0xF4)
        return refuse(s, "a byte that is not UTF-8");
    if (c == 0xE0)
        low = 0xA0; /* excludes overlong forms */
    else if (c == 0xED)
        high = 0x9F; /* surrogates */
    else if (c == 0xF0)
        low = 0x90;
    else if (c == 0xF4)
        high = 0x8F; /* above U+10FFFF */
    for (int i = 1; i <= more; i++, low = 0x80, high = 0xBF)
        if (s->end - s->at <= i || s->at[i] < low || s->at[i] > high)
            return refuse(s, "a byte that is not UTF-8");
    s->at += 1 + more;
    return true;
}

static bool scan_string(scanner *s, bool zeros)
{
    s->at++; /* the quote */
    while (s->at < s->end) {
        unsigned char c = *s->at;
        if (c == '"')
            return s->at++, true;
        if (c < 0x20)
            return refuse(s, "a control character inside a string; write it as an escape");
        if (c >= 0x80) {
            if (!scan_utf8(s))
                return false;
            continue;
        }
        s->at++;
        if (c == '\\' && !scan_escape(s, zeros))
            return false;
    }
    return refuse(s, "the text ends inside a string");
}

static bool scan_digits(scanner *s)
{
    if (!is_digit(peek(s)))
        return refuse(s, "a number that JSON does not allow");
    while (is_digit(peek(s)))
        s->at++;
    return true;
}

static bool scan_number(scanner *s)
{
    const unsigned char *start = s->at;
    if (peek(s) == '-')
        s->at++;
    if (peek(s) == '0') {
        s->at++;
        if (is_digit(peek(s)))
            return refuse(s, "a number must not begin with 0");
    } else if (!scan_digits(s)) {
        return false;
    }
    if (peek(s) == '.') {
        s->at++;
        if (!scan_digits(s))
            return false;
    }
    if (peek(s) == 'e' || peek(s) == 'E') {
        s->at++;
        if (peek(s) == '+' || peek(s) == '-')
            s->at++;
        if (!scan_digits(s))
            return false;
    }
    if (s->at - start > MAX_NUMBER) {
        s->at = start;
        return refuse(s, "a number of more than 63 characters");
    }
    return true;
}

static bool scan_word(scanner *s, const char *word)
{
    size_t length = strlen(word);
    if ((size_t)(s->end - s->at) < length || memcmp(s->at, word, length) != 0)
        return refuse(s, "neither a value nor true, false or null");
    s->at += length;
    return true;
}

static bool scan_value(scanner *s);

/* `"key" :` */
static bool scan_key(scanner *s)
{
    if (peek(s) != '"')
        return refuse(s, "a key in double quotes is expected here");
    if (!scan_string(s, false))
        return false;
    skip_space(s);
    if (peek(s) != ':')
        return refuse(s, "':' is expected here");
    s->at++;
    return true;
}

/* Scans an object (keyed) or an array. */
static bool scan_children(scanner *s, bool keyed)
{
    int close = keyed ? '}' : ']';
    s->at++;
    skip_space(s);
    if (peek(s) == close)
        return s->at++, true;
    for (;;) {
        skip_space(s);
        if ((keyed && !scan_key(s)) || !scan_value(s))
            return false;
        skip_space(s);
        int c = peek(s);
        if (c != ',' && c != close)
            return refuse(s, keyed ? "',' or '}' is expected here" : "',' or ']' is expected here");
        s->at++;
        if (c == close)
            return true;
    }
}

static bool scan_value(scanner *s)
{
    skip_space(s);
    int c = peek(s);
    if (++s->values > MAX_VALUES)
        return refuse(s, "more than 16,777,216 values");
    if (c == '{' || c == '[') {
        if (s->depth == MAX_DEPTH)
            return refuse(s, "more than 64 levels of nesting");
        s->depth++;
        bool good = scan_children(s, c == '{');
        s->depth--;
        return good;
    }
    if (c == '"')
        return scan_string(s, s->zeros);
    if (c == '-' || is_digit(c))
        return scan_number(s);
    if (c < 0)
        return refuse(s, "the text ends where a value is expected");
    return scan_word(s, c == 't' ? "true" : c == 'f' ? "false" : "null");
}

static mgl_status scan_text(const char *text, size_t length, bool zeros, const char *file,
                            mgl_error *err)
{
    const unsigned char *start = (const unsigned char *)text;
    scanner s = {.at = start, .end = start + length, .zeros = zeros};
    mgl_status status = mgl_utf8_check_mark(text, length, file, err);
    if (status)
        return status;
    if (scan_value(&s)) {
        skip_space(&s);
        if (s.at == s.end)
            return MGL_OK;
        refuse(&s, "unexpected text after the end of the value");
    }
    size_t line = 1, column = 1;
    for (const unsigned char *c = start; c < s.at; c++) {
        if (*c == '\n')
            line++, column = 1;
        else if ((*c & 0xC0) != 0x80)
            column++;
    }
    char where[sizeof err->where];
    snprintf(where, sizeof where, "%s:%zu:%zu", file, line, column);
    return mgl_fail(err, MGL_BAD_INPUT, where, "not valid JSON: %s", s.reason);
}

/* ---- the tree ------------------------------------------------------------------------------- */

/* Appends the path of `node` below `from`, such as "rope_scaling.factor"; false: not found. */
static bool find_path(const cJSON *from, const cJSON *node, mgl_text *path)
{
    size_t length = path->length, index = 0;
    if (from == node)
        return true;
    for (const cJSON *child = from->child; child; child = child->next, index++) {
        if (child->string)
            mgl_text_format(path, "%s%s", length ? "." : "", child->string);
        else
            mgl_text_format(path, "[%zu]", index);
        if (path->failed)
            return false;
        if (find_path(child, node, path))
            return true;
        path->length = length;
        path->bytes[length] = 0;
    }
    return false;
}

/* Fills `where` with "file: path.of.node.key"; key may be NULL. */
static void describe(const mgl_json *json, const cJSON *node, const char *key, char *where,
                     size_t size)
{
    mgl_text path = {0};
    bool found = json->root && node && find_path(json->root, node, &path) && path.length;
    const char *dot = found && key ? "." : "";
    if (found || key)
        snprintf(where, size, "%s: %s%s%s", json->file, found ? path.bytes : "", dot,
                 key ? key : "");
    else
        snprintf(where, size, "%s", json->file);
    mgl_text_clear(&path);
}

static uint64_t hash_key(const char *key)
{
    uint64_t hash = 0xCBF29CE484222325; /* FNV-1a */
    for (; *key; key++)
        hash = (hash ^ (unsigned char)*key) * 0x100000001B3;
    return hash ^ hash >> 29;
}

/* Finds the first member whose key occurred before in the same object; NULL if there is none.
 * Objects of a few keys are compared pairwise, larger ones through a hash set (a vocabulary has
 * 128,000 keys). */
static mgl_status find_twice(const cJSON *object, const cJSON **twice, mgl_error *err)
{
    size_t count = 0, slots = 16;
    *twice = NULL;
    for (const cJSON *member = object->child; member; member = member->next)
        count++;
    if (count <= 8) {
        for (const cJSON *a = object->child; a; a = a->next)
            for (const cJSON *b = object->child; b != a; b = b->next)
                if (!strcmp(a->string, b->string))
                    return *twice = a, MGL_OK;
        return MGL_OK;
    }
    while (slots < 2 * count)
        slots *= 2;
    const char **set = mgl_alloc_zero(slots, sizeof *set);
    if (!set)
        return mgl_fail_memory(err, slots * sizeof *set);
    for (const cJSON *member = object->child; member && !*twice; member = member->next) {
        size_t slot = (size_t)hash_key(member->string) & (slots - 1);
        while (set[slot] && strcmp(set[slot], member->string) != 0)
            slot = (slot + 1) & (slots - 1);
        if (set[slot])
            *twice = member;
        set[slot] = member->string;
    }
    mgl_free(set);
    return MGL_OK;
}

static mgl_status check_tree(const mgl_json *json, const cJSON *node, mgl_error *err)
{
    char where[sizeof err->where];
    const cJSON *twice;
    if (cJSON_IsNumber(node) && !isfinite(node->valuedouble)) {
        describe(json, node, NULL, where, sizeof where);
        return mgl_fail(err, MGL_BAD_INPUT, where, "the number is too large");
    }
    if (cJSON_IsObject(node)) {
        mgl_status status = find_twice(node, &twice, err);
        if (status)
            return status;
        if (twice) {
            describe(json, node, NULL, where, sizeof where);
            return mgl_fail(err, MGL_BAD_INPUT, where, "the key \"%.80s\" is given twice",
                            twice->string);
        }
    }
    for (const cJSON *child = node->child; child; child = child->next) {
        if (!(child->type & (cJSON_Object | cJSON_Array | cJSON_Number)))
            continue;
        mgl_status status = check_tree(json, child, err);
        if (status)
            return status;
    }
    return MGL_OK;
}

static void set_hooks(void)
{
    cJSON_Hooks hooks = {.malloc_fn = mgl_alloc, .free_fn = mgl_free};
    cJSON_InitHooks(&hooks);
}

/* Builds the tree of a text that passed the scan. */
static mgl_status build(const char *text, size_t length, const char *file, mgl_json *out,
                        mgl_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, set_hooks);
    mgl_status status = MGL_OK;
    mgl_json json = {.file = mgl_strdup(file)};
    if (json.file)
        json.root = cJSON_ParseWithLength(text, length);
    if (!json.root)
        status = mgl_fail_memory(err, length);
    else
        status = check_tree(&json, json.root, err);
    if (status) {
        mgl_json_clear(&json);
        return status;
    }
    *out = json;
    return MGL_OK;
}

/* Checks the size and the grammar of a whole text. */
static mgl_status check_text(const char *text, size_t length, size_t cap, bool zeros,
                             const char *file, mgl_error *err)
{
    if (length > cap)
        return mgl_fail(err, MGL_BAD_INPUT, file, "%zu bytes of JSON; %zu are the most accepted",
                        length, cap);
    return scan_text(text, length, zeros, file, err);
}

mgl_status mgl_json_parse(const char *text, size_t length, size_t cap, const char *file,
                          mgl_json *out, mgl_error *err)
{
    mgl_status status = check_text(text, length, cap, false, file, err);
    return status ? status : build(text, length, file, out, err);
}

/* Parses the text of a file, and frees it. */
static mgl_status parse_owned(char *text, size_t length, size_t cap, const char *file,
                              mgl_json *out, mgl_error *err)
{
    mgl_status status = mgl_json_parse(text, length, cap, file, out, err);
    mgl_free(text);
    return status;
}

mgl_status mgl_json_read_file(const char *path, size_t cap, mgl_json *out, mgl_error *err)
{
    char *text;
    size_t length;
    mgl_status status = mgl_file_read(path, cap, &text, &length, err);
    return status ? status : parse_owned(text, length, cap, path, out, err);
}

mgl_status mgl_json_read_regular(const char *path, size_t cap, mgl_json *out, mgl_error *err)
{
    char *text;
    size_t length;
    mgl_status status = mgl_file_read_regular(path, cap, &text, &length, err);
    return status ? status : parse_owned(text, length, cap, path, out, err);
}

/* ---- strings with U+0000 --------------------------------------------------------------------- */

/* U+0000 in a C string, as in Java's modified UTF-8: two bytes that are not valid UTF-8. */
static const char zero[] = "\xC0\x80";
enum { ZERO = sizeof zero - 1, ZERO_ESCAPE = 6 /* \u0000 */ };

static bool is_zero_escape(const char *at, size_t length)
{
    return length >= ZERO_ESCAPE && !memcmp(at, "\\u0000", ZERO_ESCAPE);
}

/* Replaces each escape of U+0000 by `zero`; backslashes occur only in strings. Returns the new
 * length. */
static size_t mask_zeros(char *text, size_t length)
{
    size_t to = 0, at = 0;
    while (at < length) {
        if (is_zero_escape(text + at, length - at)) {
            memcpy(text + to, zero, ZERO);
            to += ZERO;
            at += ZERO_ESCAPE;
            continue;
        }
        if (text[at] == '\\') /* copy the escaped character too: it may be a backslash */
            text[to++] = text[at++];
        text[to++] = text[at++];
    }
    text[to] = 0;
    return to;
}

/* ---- numbers with their source text ---------------------------------------------------------- */

/* Moves *at to the first character of the next number of a scanned text; returns the end of the
 * number. */
static const char *find_number(const char **at)
{
    const char *c = *at;
    while (*c != '-' && !is_digit(*c)) {
        if (*c++ != '"')
            continue;
        for (; *c != '"'; c++)
            c += *c == '\\';
        c++;
    }
    *at = c;
    return c + strspn(c, "+-.0123456789eE");
}

/* Stores each number's source text in its node. Numbers occur in the text in the order of the
 * tree. */
static bool keep_numbers(cJSON *node, const char **at)
{
    if (cJSON_IsNumber(node)) {
        const char *end = find_number(at);
        node->valuestring = mgl_strndup(*at, (size_t)(end - *at));
        *at = end;
        return node->valuestring != NULL;
    }
    for (cJSON *child = node->child; child; child = child->next)
        if (!keep_numbers(child, at))
            return false;
    return true;
}

mgl_status mgl_json_parse_values(const char *text, size_t length, size_t cap, const char *file,
                                 mgl_json *out, mgl_error *err)
{
    mgl_status status = check_text(text, length, cap, true, file, err);
    if (status)
        return status;
    char *masked = mgl_strndup(text, length);
    if (!masked)
        return mgl_fail_memory(err, length);
    const char *at = masked;
    status = build(masked, mask_zeros(masked, length), file, out, err);
    if (!status && !keep_numbers(out->root, &at)) {
        mgl_json_clear(out);
        status = mgl_fail_memory(err, length);
    }
    mgl_free(masked);
    return status;
}

const char *mgl_json_take_text(cJSON *string, size_t *length)
{
    char *to = string->valuestring;
    for (const char *at = to; *at; to++) {
        bool masked = !strncmp(at, zero, ZERO);
        *to = masked ? 0 : *at;
        at += masked ? ZERO : 1;
    }
    *to = 0;
    *length = (size_t)(to - string->valuestring);
    return string->valuestring;
}

void mgl_json_clear(mgl_json *json)
{
    cJSON_Delete(json->root);
    mgl_free(json->file);
    *json = (mgl_json){0};
}

/* ---- getters -------------------------------------------------------------------------------- */

static const char *type_name(const cJSON *item)
{
    switch (item->type & 0xFF) {
    case cJSON_False:
    case cJSON_True:
        return "true or false";
    case cJSON_NULL:
        return "null";
    case cJSON_Number:
        return "a number";
    case cJSON_String: /* a non-finite number: base/json_python.c */
        return !strcmp(item->valuestring, "NaN")         ? "NaN"
               : !strcmp(item->valuestring, "Infinity")  ? "Infinity"
               : !strcmp(item->valuestring, "-Infinity") ? "-Infinity"
                                                         : "a string";
    case cJSON_Array:
        return "an array";
    default:
        return "an object";
    }
}

const cJSON *mgl_json_member(const cJSON *object, const char *key)
{
    for (const cJSON *member = object->child; member; member = member->next)
        if (member->string && !strcmp(member->string, key))
            return member;
    return NULL;
}

/* Finds the member whose cJSON type is in the mask `types` (named `wanted` in messages). *out is
 * NULL without an error if the member is missing or null and not required. */
static mgl_status get_typed(const mgl_json *json, const cJSON *object, const char *key,
                            bool required, int types, const char *wanted, const cJSON **out,
                            mgl_error *err)
{
    char where[sizeof err->where];
    const cJSON *item = mgl_json_member(object, key);
    *out = NULL;
    if ((!item || cJSON_IsNull(item)) && !required)
        return MGL_OK;
    if (item && (item->type & types)) {
        *out = item;
        return MGL_OK;
    }
    describe(json, object, key, where, sizeof where);
    if (!cJSON_IsObject(object))
        return mgl_fail(err, MGL_BAD_INPUT, where, "the value that should hold this key is %s",
                        type_name(object));
    if (!item)
        return mgl_fail(err, MGL_BAD_INPUT, where, "the key is missing; it must be %s", wanted);
    return mgl_fail(err, MGL_BAD_INPUT, where, "must be %s, not %s", wanted, type_name(item));
}

static mgl_status to_int(const cJSON *item, const char *where, int64_t lo, int64_t hi, int64_t *out,
                         mgl_error *err)
{
    double value = item->valuedouble;
    if (!cJSON_IsNumber(item))
        return mgl_fail(err, MGL_BAD_INPUT, where, "must be a whole number, not %s",
                        type_name(item));
    if (value != floor(value))
        return mgl_fail(err, MGL_BAD_INPUT, where, "must be a whole number, not %.17g", value);
    if (fabs(value) >= 0x1p53 || (int64_t)value < lo || (int64_t)value > hi)
        return mgl_fail(err, MGL_BAD_INPUT, where,
                        "must be between %" PRId64 " and %" PRId64 ", not %.17g", lo, hi, value);
    *out = (int64_t)value;
    return MGL_OK;
}

mgl_status mgl_json_get_int(const mgl_json *json, const cJSON *object, const char *key,
                            bool required, int64_t lo, int64_t hi, int64_t *out, mgl_error *err)
{
    char where[sizeof err->where];
    const cJSON *item;
    mgl_status status =
        get_typed(json, object, key, required, cJSON_Number, "a whole number", &item, err);
    if (status || !item)
        return status;
    int64_t value = 0;
    status = to_int(item, "", lo, hi, &value, NULL);
    if (status) { /* the path is computed only for errors, because it needs a walk */
        describe(json, object, key, where, sizeof where);
        return to_int(item, where, lo, hi, &value, err);
    }
    *out = value;
    return MGL_OK;
}

mgl_status mgl_json_get_double(const mgl_json *json, const cJSON *object, const char *key,
                               bool required, double *out, mgl_error *err)
{
    const cJSON *item;
    mgl_status status =
        get_typed(json, object, key, required, cJSON_Number, "a number", &item, err);
    if (!status && item)
        *out = item->valuedouble;
    return status;
}

mgl_status mgl_json_get_bool(const mgl_json *json, const cJSON *object, const char *key,
                             bool required, bool *out, mgl_error *err)
{
    const cJSON *item;
    mgl_status status = get_typed(json, object, key, required, cJSON_True | cJSON_False,
                                  "true or false", &item, err);
    if (!status && item)
        *out = cJSON_IsTrue(item);
    return status;
}

mgl_status mgl_json_get_string(const mgl_json *json, const cJSON *object, const char *key,
                               bool required, const char **out, mgl_error *err)
{
    const cJSON *item;
    mgl_status status =
        get_typed(json, object, key, required, cJSON_String, "a string", &item, err);
    if (!status && item)
        *out = item->valuestring;
    return status;
}

mgl_status mgl_json_get_text(const mgl_json *json, const cJSON *object, const char *key,
                             const char **out, size_t *length, mgl_error *err)
{
    mgl_status status = mgl_json_get_string(json, object, key, true, out, err);
    if (!status)
        *out = mgl_json_take_text(cJSON_GetObjectItemCaseSensitive(object, key), length);
    return status;
}

mgl_status mgl_json_get_object(const mgl_json *json, const cJSON *object, const char *key,
                               bool required, const cJSON **out, mgl_error *err)
{
    return get_typed(json, object, key, required, cJSON_Object, "an object", out, err);
}

mgl_status mgl_json_get_array(const mgl_json *json, const cJSON *object, const char *key,
                              bool required, const cJSON **out, mgl_error *err)
{
    return get_typed(json, object, key, required, cJSON_Array, "an array", out, err);
}

mgl_status mgl_json_item_int(const mgl_json *json, const cJSON *item, const char *what, int64_t lo,
                             int64_t hi, int64_t *out, mgl_error *err)
{
    char where[sizeof err->where];
    int64_t value = 0;
    if (!to_int(item, "", lo, hi, &value, NULL)) {
        *out = value;
        return MGL_OK;
    }
    snprintf(where, sizeof where, "%s: %s", json->file, what);
    return to_int(item, where, lo, hi, &value, err);
}

mgl_status mgl_json_check_schema(const mgl_json *json, const char *schema, mgl_error *err)
{
    const char *found = NULL;
    if (!cJSON_IsObject(json->root))
        return mgl_fail(err, MGL_BAD_INPUT, json->file,
                        "it must be a JSON object: {\"schema\": \"%s\", ...}", schema);
    mgl_status status = mgl_json_get_string(json, json->root, "schema", true, &found, err);
    const char *renamed = found ? mgl_alias_new(MGL_ALIAS_SCHEMA, found, strlen(found)) : NULL;
    if (status || !strcmp(renamed ? renamed : found, schema))
        return status;
    return strncmp(found, "megalith.", 9)
               ? mgl_fail(err, MGL_BAD_INPUT, json->file,
                          "its schema must be \"%s\", not another one", schema)
               : mgl_fail(err, MGL_BAD_INPUT, json->file,
                          "its schema must be \"%s\", not \"%.80s\"", schema, found);
}
