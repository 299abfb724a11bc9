/*
 * The entries of a list of prompts or texts. Each entry is found as text and is parsed later by
 * itself, so that a bad entry does not lose the others. The rules:
 *
 * 1. The file is UTF-8 without a byte order mark.
 * 2. If the file begins with `[`, it is a JSON array, and its elements are the entries. The
 *    exception is a file whose first line is a whole array and that has other lines.
 * 3. If the file is one text or one object, on any number of lines, it is the only entry.
 * 4. Every other file is JSON Lines: each line that is not blank is an entry. Two values on a line
 *    are an error of that line. If no line is JSON, the file is an error.
 */
#ifndef MGL_CLI_GENERATE_ENTRIES_H
#define MGL_CLI_GENERATE_ENTRIES_H

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

/* Splits the text of `file` into entries, which messages call `noun`. An empty array has none. A
 * text that has neither form is MGL_BAD_INPUT. */
mgl_status mgl_cli_entries_split(const char *text, size_t length, const char *file,
                                 const char *noun, mgl_cli_entries *out, mgl_error *err);
void mgl_cli_entries_clear(mgl_cli_entries *entries);

#endif
