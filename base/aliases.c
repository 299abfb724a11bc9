/* Lookup in the table of base/aliases.def, which has few rows: a linear search. See aliases.h. */
#include "base/aliases.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

static const struct {
    mgl_alias_class kind;
    const char *old_name, *new_name;
} rows[] = {
#define MGL_ALIAS(KIND, old_name, new_name) {MGL_ALIAS_##KIND, old_name, new_name},
#include "base/aliases.def"
};
enum { ROWS = sizeof rows / sizeof *rows };

const char *mgl_alias_new(mgl_alias_class kind, const char *name, size_t length)
{
    for (int i = 0; i < ROWS; i++)
        if (rows[i].kind == kind && mgl_text_is(name, length, rows[i].old_name))
            return rows[i].new_name;
    return NULL;
}

const char *mgl_alias_published(mgl_alias_class kind, const char *name)
{
    for (int i = 0; i < ROWS; i++)
        if (rows[i].kind == kind && !strcmp(rows[i].new_name, name))
            return rows[i].old_name;
    return name;
}

bool mgl_alias_is(mgl_alias_class kind, const char *name, const char *given)
{
    return !strcmp(given, name) || !strcmp(given, mgl_alias_published(kind, name));
}

mgl_status mgl_alias_key(mgl_alias_class kind, const mgl_json *json, const cJSON *object,
                         const char *path, const char *key, const char **out, mgl_error *err)
{
    const char *published = mgl_alias_published(kind, key);
    char where[300];
    *out = key;
    if (published == key || !mgl_json_member(object, published))
        return MGL_OK;
    *out = published;
    if (!mgl_json_member(object, key))
        return MGL_OK;
    snprintf(where, sizeof where, "%.100s: %s%.60s", json->file, path, published);
    return mgl_fail(err, MGL_BAD_INPUT, where,
                    "\"%s\" is the old name of \"%s\", which is given too: leave one out",
                    published, key);
}
