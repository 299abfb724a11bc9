/*
 * Reads the trials of a campaign's store, for tools that end `tune` at any moment. Checks that the
 * stored trials are complete and equal those of an undisturbed run.
 */
#ifndef MGL_TESTS_TOOLS_STORED_H
#define MGL_TESTS_TOOLS_STORED_H

#include "autotune/store/store.h"

enum { MOST_STORED = 64 };

typedef struct stored {
    struct {
        char digest[MGL_SHA256_HEX];
        mgl_outcome outcome;
    } trials[MOST_STORED]; /* (count) */
    int64_t count;
    bool found;   /* there is such a campaign */
    bool killed;  /* its run was killed, and recorded no end */
    bool ordered; /* the numbers of its trials are 1, 2, ... */
} stored;

/* Reads the campaign of that name. An existing store that cannot be read is an error. */
mgl_status stored_read(const char *path, const char *name, stored *out, mgl_error *err);
/* Whether the stored trials have no gap and no duplicate, and are a prefix of `whole`. */
bool stored_agrees(const stored *part, const stored *whole);
/* Removes a store and the files beside it. */
void stored_remove(const char *path);

#endif
