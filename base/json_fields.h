/* Reads several members of a JSON object by a table. */
#ifndef MGL_BASE_JSON_FIELDS_H
#define MGL_BASE_JSON_FIELDS_H

#include "base/json.h"

/* A member of an object, as a row of a table. The macros name the key and the pointer for the
 * value, as in the getters; members of MGL_JSON_OPTIONAL_... may be missing. */
typedef struct mgl_json_field {
    const char *key;
    enum {
        MGL_JSON_FIELD_INT,
        MGL_JSON_FIELD_REAL,
        MGL_JSON_FIELD_BOOL,
        MGL_JSON_FIELD_STRING,
        MGL_JSON_FIELD_OBJECT,
        MGL_JSON_FIELD_ARRAY
    } kind;
    bool required;
    union {
        int64_t *integer;
        double *real;
        bool *flag;
        const char **string;
        const cJSON **tree;
    } to;
    int64_t lo, hi; /* of an integer */
} mgl_json_field;
#define MGL_JSON_INT(key, lo, hi, out)                                                             \
    {                                                                                              \
        key, MGL_JSON_FIELD_INT, true, {.integer = (out)}, lo, hi                                  \
    }
#define MGL_JSON_OPTIONAL_INT(key, lo, hi, out)                                                    \
    {                                                                                              \
        key, MGL_JSON_FIELD_INT, false, {.integer = (out)}, lo, hi                                 \
    }
#define MGL_JSON_REAL(key, out)                                                                    \
    {                                                                                              \
        key, MGL_JSON_FIELD_REAL, true, {.real = (out)}, 0, 0                                      \
    }
#define MGL_JSON_OPTIONAL_REAL(key, out)                                                           \
    {                                                                                              \
        key, MGL_JSON_FIELD_REAL, false, {.real = (out)}, 0, 0                                     \
    }
#define MGL_JSON_BOOL(key, out)                                                                    \
    {                                                                                              \
        key, MGL_JSON_FIELD_BOOL, true, {.flag = (out)}, 0, 0                                      \
    }
#define MGL_JSON_STRING(key, out)                                                                  \
    {                                                                                              \
        key, MGL_JSON_FIELD_STRING, true, {.string = (out)}, 0, 0                                  \
    }
#define MGL_JSON_OBJECT(key, out)                                                                  \
    {                                                                                              \
        key, MGL_JSON_FIELD_OBJECT, true, {.tree = (out)}, 0, 0                                    \
    }
#define MGL_JSON_ARRAY(key, out)                                                                   \
    {                                                                                              \
        key, MGL_JSON_FIELD_ARRAY, true, {.tree = (out)}, 0, 0                                     \
    }
/* Reads the members in the order of the table; the first error ends it. */
mgl_status mgl_json_get_fields(const mgl_json *json, const cJSON *object,
                               const mgl_json_field *fields, size_t count, mgl_error *err);
#define MGL_JSON_GET(json, object, fields, err)                                                    \
    mgl_json_get_fields(json, object, fields, sizeof(fields) / sizeof *(fields), err)

#endif
