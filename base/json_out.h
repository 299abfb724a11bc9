/*
 * JSON writer. It builds one object in memory, so a failure never leaves half an object in the
 * output. The writer inserts commas. Strings are written as valid UTF-8 whatever bytes they
 * contain; numbers that JSON cannot represent become null.
 */
#ifndef MGL_BASE_JSON_OUT_H
#define MGL_BASE_JSON_OUT_H

#include "base/json.h"
#include "base/text.h"

#include <stdint.h>

typedef struct mgl_json_out {
    mgl_text text;
    bool comma; /* the next item needs a comma before it */
} mgl_json_out;

/* Opens the outermost object with its "schema". Zero-initialize *out before. */
void mgl_json_out_begin(mgl_json_out *out, const char *schema);
/* Closes the outermost object. If memory ran out, text.failed is set. The caller releases the
 * text. */
void mgl_json_out_close(mgl_json_out *out);

/* `key` NULL: the value is an element of an array. */
void mgl_json_out_object(mgl_json_out *out, const char *key);
void mgl_json_out_close_object(mgl_json_out *out);
void mgl_json_out_array(mgl_json_out *out, const char *key);
void mgl_json_out_close_array(mgl_json_out *out);
void mgl_json_out_string(mgl_json_out *out, const char *key, const char *value); /* NULL: null */
void mgl_json_out_text(mgl_json_out *out, const char *key, const char *text, size_t length);
void mgl_json_out_int(mgl_json_out *out, const char *key, int64_t value);
void mgl_json_out_real(mgl_json_out *out, const char *key, double value);
/* The shortest number that reads back as the same float. */
void mgl_json_out_float(mgl_json_out *out, const char *key, float value);
/* The shortest number that reads back as the same double. */
void mgl_json_out_double(mgl_json_out *out, const char *key, double value);
void mgl_json_out_bool(mgl_json_out *out, const char *key, bool value);
void mgl_json_out_null(mgl_json_out *out, const char *key);
/* Writes a value of a cJSON tree: numbers with their source text if mgl_json_parse_values made
 * the tree, else as doubles. Consumes the texts of the tree (mgl_json_take_text). */
void mgl_json_out_value(mgl_json_out *out, const char *key, cJSON *value);
void mgl_json_out_ids(mgl_json_out *out, const char *key, const int32_t *ids, size_t count);

#endif
