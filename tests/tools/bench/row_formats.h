/* Weight formats of a row of `megalith bench --json`. */
#ifndef MGL_TESTS_ROW_FORMATS_H
#define MGL_TESTS_ROW_FORMATS_H

#include <string.h>

#include "base/json.h"
#include "base/weight_format.h"

/* Reads the format of the layers' weights (`weights`) or of the head (`head`). Returns its text;
 * NULL and {0}: the matrices are unscaled, or the row does not name it. */
static inline const char *row_format(const mgl_json *json, const cJSON *row, const char *key,
                                     mgl_weight_format *out)
{
    mgl_error err;
    const char *text = NULL, *at;
    if (mgl_json_get_string(json, row, key, false, &text, &err))
        text = NULL;
    at = text;
    if (text && mgl_weight_format_read(&at, text + strlen(text), out) == MGL_FORMAT_READ &&
        mgl_weight_format_is_scaled(*out))
        return text;
    *out = (mgl_weight_format){0};
    return NULL;
}

#endif
