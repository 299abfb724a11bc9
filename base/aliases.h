/* Published names that have a new name (base/aliases.def), for every reader of names: of configs,
 * schedule texts, micro-kernels, the command line and MCP requests. */
#ifndef MGL_BASE_ALIASES_H
#define MGL_BASE_ALIASES_H

#include "base/json.h"

typedef enum mgl_alias_class {
    MGL_ALIAS_KNOB,
    MGL_ALIAS_OP,
    MGL_ALIAS_VARIANT,
    MGL_ALIAS_DIMENSION,
    MGL_ALIAS_UNIT,
    MGL_ALIAS_WORD,
    MGL_ALIAS_FLAG,
    MGL_ALIAS_ARGUMENT,
    MGL_ALIAS_VERB,
    MGL_ALIAS_TOOL,
    MGL_ALIAS_SCHEMA,
    MGL_ALIAS_FILE,
    MGL_ALIAS_KEY,
    MGL_ALIAS_VERSION,
    MGL_ALIAS_TIME,
    MGL_ALIAS_EVENT
} mgl_alias_class;

/* The new name (static) of the old name `name` (`length` bytes); NULL: `name` is not an old name.
 */
const char *mgl_alias_new(mgl_alias_class kind, const char *name, size_t length);

/* The first published name (static) of the new name `name`; `name` itself if it never changed. Used
 * where a digest covers names, so that the digest outlives the renaming. */
const char *mgl_alias_published(mgl_alias_class kind, const char *name);

/* Whether `given` is the new name `name` or its first published name. */
bool mgl_alias_is(mgl_alias_class kind, const char *name, const char *given);

/* Sets *out (static) to the key of `object` in place of the new name `key`: the published name if
 * the object has it, else `key`. `path` is in front of the key in errors ("" at the root).
 * MGL_BAD_INPUT: the object has both. */
mgl_status mgl_alias_key(mgl_alias_class kind, const mgl_json *json, const cJSON *object,
                         const char *path, const char *key, const char **out, mgl_error *err);

#endif
