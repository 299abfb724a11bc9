/*
 * The entries of a list of prompts: the elements of a JSON array, or JSON Lines (one value a line;
 * blank lines are ignored). Each entry is found as text and is parsed later by itself, so that a
 * bad entry does not lose the others.
 */
#ifndef MGL_CLI_ENTRIES_H
#define MGL_CLI_ENTRIES_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct mgl_cli_entry {
    const char *text; /* (length) bytes of the file's text */
    size_t length;
    size_t number; /* index in the array, from 0; or line in the file, from 1 */
} mgl_cli_entry;

/* Zero-initialize; release with mgl_cli_entries_clear. */
typedef struct mgl_cli_entries {
    mgl_cli_entry *items; /* owned (count), room for `capacity` */
    size_t count, capacity;
    bool lines; /* JSON Lines */
} mgl_cli_entries;

/* Splits the text of `file` into entries. A text that has neither form is MGL_BAD_INPUT. */
mgl_status mgl_cli_entries_split(const char *text, size_t length, const char *file,
                                 mgl_cli_entries *out, mgl_error *err);
void mgl_cli_entries_clear(mgl_cli_entries *entries);

#endif
