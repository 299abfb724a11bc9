/*
 * Reasons: why a checkpoint cannot be represented. The readers of config.json and of the tensor
 * names add reasons and continue, so that the user sees all of them at once. Damage (a file that
 * violates its own format) is not a reason but an immediate error.
 */
#ifndef MGL_IMPORTER_REASONS_H
#define MGL_IMPORTER_REASONS_H

#include "base/error.h"

typedef struct mgl_reason {
    char *where;   /* owned: file and key, or tensor */
    char *message; /* owned: the value found, and why it cannot be represented */
} mgl_reason;

/* Zero-initialize; release with mgl_reasons_clear. */
typedef struct mgl_reasons {
    mgl_reason *items; /* (count) */
    size_t count, capacity;
    bool failed; /* memory ran out: the list is incomplete */
} mgl_reasons;

void mgl_reasons_add(mgl_reasons *reasons, const char *where, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void mgl_reasons_clear(mgl_reasons *reasons);

/* Converts the MGL_BAD_INPUT of a getter into a reason; other statuses are returned. */
mgl_status mgl_reasons_take(mgl_reasons *reasons, mgl_status status, const mgl_error *cause,
                            mgl_error *err);

/* Returns MGL_BAD_INPUT with the first reason and the number of others; MGL_OK if there are
 * none. */
mgl_status mgl_reasons_fail(const mgl_reasons *reasons, mgl_error *err);

#endif
