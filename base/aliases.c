/* Lookup in the table of base/aliases.def, which has few rows: a linear search. See aliases.h. */
#include "base/aliases.h"

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
        if (rows[i].kind == kind && strlen(rows[i].old_name) == length &&
            !memcmp(rows[i].old_name, name, length))
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
