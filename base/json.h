/*
 * Strict JSON reader: the only wrapper around cJSON, used for every JSON file and text of the
 * project. The following are rejected, with the reason and the position:
 *
 *     more than `cap` bytes, 2^24 values or 64 levels of nesting
 *     invalid UTF-8, control characters in strings, lone surrogates in \u escapes
 *     \u0000 in keys or strings (a C string cannot contain it)
 *     numbers that JSON does not allow (01, 1., +1, NaN) or that overflow a double
 *     duplicate keys in one object, text after the value
 *
 * Getters take the object, a key and a pointer for the value. A value of another type is
 * MGL_BAD_INPUT with the file and the key's path. If `required` is false and the key is missing or
 * null, *out is left unchanged.
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
/* Same, reading the file with mgl_file_read_regular. */
mgl_status mgl_json_read_regular(const char *path, size_t cap, mgl_json *out, mgl_error *err);
/* Same for a regular file, and for a text, in the dialect of Python's json module: NaN, Infinity
 * and -Infinity are values too. They become strings, which no getter of numbers accepts. */
mgl_status mgl_json_read_python(const char *path, size_t cap, mgl_json *out, mgl_error *err);
mgl_status mgl_json_parse_python(const char *text, size_t length, size_t cap, const char *file,
                                 mgl_json *out, mgl_error *err);
/* Parses a text and keeps its values exactly: strings may contain U+0000, which only the next two
 * functions read, and each number also keeps its source text in valuestring. A text longer than the
 * cap is an error. */
mgl_status mgl_json_parse_values(const char *text, size_t length, size_t cap, const char *file,
                                 mgl_json *out, mgl_error *err);
/* Returns the bytes of a string of such a file, followed by a 0. The tree owns them. Call at
 * most once per string. */
const char *mgl_json_take_text(cJSON *string, size_t *length);
/* Same for a required member. */
mgl_status mgl_json_get_text(const mgl_json *json, const cJSON *object, const char *key,
                             const char **out, size_t *length, mgl_error *err);
void mgl_json_clear(mgl_json *json);

/* Integers are exact: no fraction, within +-2^53, and within [lo, hi]. */
mgl_status mgl_json_get_int(const mgl_json *json, const cJSON *object, const char *key,
                            bool required, int64_t lo, int64_t hi, int64_t *out, mgl_error *err);
mgl_status mgl_json_get_double(const mgl_json *json, const cJSON *object, const char *key,
                               bool required, double *out, mgl_error *err);
mgl_status mgl_json_get_bool(const mgl_json *json, const cJSON *object, const char *key,
                             bool required, bool *out, mgl_error *err);
/* *out points into the tree. */
mgl_status mgl_json_get_string(const mgl_json *json, const cJSON *object, const char *key,
                               bool required, const char **out, mgl_error *err);
/* Objects and arrays; *out becomes NULL if the key is missing or null and not required. */
mgl_status mgl_json_get_object(const mgl_json *json, const cJSON *object, const char *key,
                               bool required, const cJSON **out, mgl_error *err);
mgl_status mgl_json_get_array(const mgl_json *json, const cJSON *object, const char *key,
                              bool required, const cJSON **out, mgl_error *err);
/* Reads the exact integer of one item (an array's element). */
mgl_status mgl_json_item_int(const mgl_json *json, const cJSON *item, const char *what, int64_t lo,
                             int64_t hi, int64_t *out, mgl_error *err);

/* Checks that the root is an object with this "schema", or with its old name (base/aliases.def).
 * The schema of a foreign file is not quoted in the message. */
mgl_status mgl_json_check_schema(const mgl_json *json, const char *schema, mgl_error *err);

/* Returns the member of `object` called `key` (case sensitive), or NULL. Linear search: for
 * large objects, iterate over the children instead. */
const cJSON *mgl_json_member(const cJSON *object, const char *key);

#endif
