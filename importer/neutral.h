/* Neutral values: those of a JSON key that change nothing, as if the key were missing. */
#ifndef MGL_IMPORTER_NEUTRAL_H
#define MGL_IMPORTER_NEUTRAL_H

#include "base/json.h"

typedef enum mgl_neutral {
    MGL_NEUTRAL_OFF, /* null, false, 0 or [] */
    MGL_NEUTRAL_ONE, /* null or 1 */
    MGL_NEUTRAL_TRUE /* true */
} mgl_neutral;

/* Whether the value of a key is neutral; NULL: the key is missing, which is neutral too. */
bool mgl_is_neutral(const cJSON *item, mgl_neutral neutral);

/* Prints a value as JSON, cut to the size of `text`. Returns `text`. */
const char *mgl_value_print(const cJSON *item, char *text, size_t size);

#endif
