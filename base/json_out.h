/*
 * JSON that is written: one object, built in memory, so that a failure on the way never leaves half
 * of one where it goes. Commas are put by the writer. Strings
 * come out as valid UTF-8 whatever bytes they hold; numbers that JSON can not say become null.
 */
#ifndef MGL_BASE_JSON_OUT_H
#define MGL_BASE_JSON_OUT_H

#include "base/json.h"
#include "base/text.h"

#include <stdint.h>

typedef struct mgl_json_out {
    mgl_text text;
    bool comma; /* something stands before the next item */
} mgl_json_out;

/* Opens the outermost object with its "schema". Zero-initialise before. */
void mgl_json_out_begin(mgl_json_out *out, const char *schema);
/* Closes it. Where memory ran out on the way, text.failed tells. Release the text. */
void mgl_json_out_close(mgl_json_out *out);

/* `key` NULL: an element of an array. */
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
/* A value of a tree: numbers as they stand where mgl_json_parse_values made it, and as doubles
 * where not. It takes the texts of the tree. */
void mgl_json_out_value(mgl_json_out *out, const char *key, cJSON *value);
void mgl_json_out_ids(mgl_json_out *out, const char *key, const int32_t *ids, size_t count);

#endif
