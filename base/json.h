/*
 * JSON, strictly: the one wrapper around cJSON through which every JSON file and text of the
 * project is read. Refused, with the reason and the place: more than `cap` bytes or 2^24 values,
 * bytes that are not UTF-8, a key that stands twice in one object, anything behind the value,
 * nesting over 64 levels, numbers that JSON does not allow (01, 1., +1, NaN) or that overflow a
 * double, control characters in strings, lone surrogates in \u escapes, and \u0000 in keys or
 * strings, since a C string can not carry it.
 *
 * Getters take the object, a key and where to put the value; a value of another type is
 * MGL_BAD_INPUT with the file and the key's path. `required` false leaves *out untouched when the
 * key is missing or null.
 */
#ifndef MGL_BASE_JSON_H
#define MGL_BASE_JSON_H

#include "base/error.h"

#include <cjson/cJSON.h>

typedef struct mgl_json {
    cJSON *root; /* owned */
    char *file;  /* owned: for messages */
} mgl_json;

mgl_status mgl_json_parse(const char *text, size_t length, size_t cap, const char *file,
                          mgl_json *out, mgl_error *err);
mgl_status mgl_json_read_file(const char *path, size_t cap, mgl_json *out, mgl_error *err);
/* By mgl_file_read_regular. */
mgl_status mgl_json_read_regular(const char *path, size_t cap, mgl_json *out, mgl_error *err);
/* The same of a regular file, and of a text, as Python writes JSON: NaN, Infinity and -Infinity are
 * values too. They become strings, which no getter of numbers accepts. */
mgl_status mgl_json_read_python(const char *path, size_t cap, mgl_json *out, mgl_error *err);
mgl_status mgl_json_parse_python(const char *text, size_t length, size_t cap, const char *file,
                                 mgl_json *out, mgl_error *err);
/* The same, where a string may be a text that holds U+0000: only the next two read that. */
mgl_status mgl_json_read_texts(const char *path, size_t cap, mgl_json *out, mgl_error *err);
/* A text, of which the values are wanted as they stand: strings may be such texts, and of a number
 * there is the text too, as its valuestring. Larger ones than the cap are refused. */
mgl_status mgl_json_parse_values(const char *text, size_t length, size_t cap, const char *file,
                                 mgl_json *out, mgl_error *err);
/* The bytes of a string of such a file, with a 0 behind them; they are of the tree. Once a string.
 */
const char *mgl_json_take_text(cJSON *string, size_t *length);
/* The same of a member that must be there. */
mgl_status mgl_json_get_text(const mgl_json *json, const cJSON *object, const char *key,
                             const char **out, size_t *length, mgl_error *err);
void mgl_json_clear(mgl_json *json);

/* Integers are exact: within +-2^53 and without a fraction, then within [lo, hi]. */
mgl_status mgl_json_get_int(const mgl_json *json, const cJSON *object, const char *key,
                            bool required, int64_t lo, int64_t hi, int64_t *out, mgl_error *err);
mgl_status mgl_json_get_double(const mgl_json *json, const cJSON *object, const char *key,
                               bool required, double *out, mgl_error *err);
mgl_status mgl_json_get_bool(const mgl_json *json, const cJSON *object, const char *key,
                             bool required, bool *out, mgl_error *err);
/* *out points into the tree. */
mgl_status mgl_json_get_string(const mgl_json *json, const cJSON *object, const char *key,
                               bool required, const char **out, mgl_error *err);
/* Objects and arrays; *out NULL when missing or null and not required. */
mgl_status mgl_json_get_object(const mgl_json *json, const cJSON *object, const char *key,
                               bool required, const cJSON **out, mgl_error *err);
mgl_status mgl_json_get_array(const mgl_json *json, const cJSON *object, const char *key,
                              bool required, const cJSON **out, mgl_error *err);
/* The exact integer of one item (an array's element). */
mgl_status mgl_json_item_int(const mgl_json *json, const cJSON *item, const char *what, int64_t lo,
                             int64_t hi, int64_t *out, mgl_error *err);

/* The member of `object` called `key`, exact case; NULL when there is none. Linear: walk the
 * children yourself where objects are large. */
const cJSON *mgl_json_member(const cJSON *object, const char *key);

#endif
