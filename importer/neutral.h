/* Neutral values of a JSON key: values that have the same effect as a missing key. Used by
 * config.c, config_rope.c and generation.c. */
#ifndef MGL_IMPORTER_NEUTRAL_H
#define MGL_IMPORTER_NEUTRAL_H

#include "base/json.h"

typedef enum mgl_neutral {
    MGL_NEUTRAL_OFF, /* null, false, 0 or [] */
    MGL_NEUTRAL_ONE, /* null or 1 */
    MGL_NEUTRAL_TRUE /* true */
} mgl_neutral;

/* Returns whether the value of a key is neutral. NULL (the key is missing) is neutral too. */
bool mgl_is_neutral(const cJSON *item, mgl_neutral neutral);

/* Prints a value as JSON, cut to the size of `text`. Returns `text`. */
const char *mgl_value_print(const cJSON *item, char *text, size_t size);

#endif
