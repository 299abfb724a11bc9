/*
 * Why a checkpoint can not be represented: a list that the readers of config.json and of the
 * tensor names fill as far as they get, so that a user sees all of it at once. Damage (a file that
 * does not follow its own format) is no reason but an error, at once.
 */
#ifndef MGL_IMPORTER_REASONS_H
#define MGL_IMPORTER_REASONS_H

#include "base/error.h"

typedef struct mgl_reason {
    char *where;   /* owned: file and key, or tensor */
    char *message; /* owned: what is there, and why it can not be represented */
} mgl_reason;

/* Zero-initialise; release with mgl_reasons_clear. */
typedef struct mgl_reasons {
    mgl_reason *items; /* (count) */
    size_t count, capacity;
    bool failed; /* memory ran out: the list is not complete */
} mgl_reasons;

void mgl_reasons_add(mgl_reasons *reasons, const char *where, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void mgl_reasons_clear(mgl_reasons *reasons);

/* Turns a failed getter into a reason; statuses other than MGL_BAD_INPUT are handed on. */
mgl_status mgl_reasons_take(mgl_reasons *reasons, mgl_status status, const mgl_error *cause,
                            mgl_error *err);

/* MGL_BAD_INPUT with the first reason, and how many more there are; MGL_OK when there is none. */
mgl_status mgl_reasons_fail(const mgl_reasons *reasons, mgl_error *err);

#endif
