/* Errors: how a function of the library fails. See mgl_status and mgl_error in megalith.h. */
#ifndef MGL_BASE_ERROR_H
#define MGL_BASE_ERROR_H

#include "megalith.h"

#include <stdatomic.h>

/* Fills *err (which may be NULL) and returns `code`, so that a failure is one statement:
 *     return mgl_fail(err, MGL_BAD_INPUT, path, "the header is %zu bytes long", n);
 * `where` may be NULL. Too long a text is cut at a UTF-8 boundary. */
mgl_status mgl_fail(mgl_error *err, mgl_status code, const char *where, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* MGL_NO_MEMORY, in words. */
mgl_status mgl_fail_memory(mgl_error *err, size_t bytes);

/* MGL_USAGE: `function` of the public header was given NULL for `argument`. */
mgl_status mgl_fail_null(mgl_error *err, const char *function, const char *argument);

/* MGL_SYSTEM with errno's text: "<what>: <strerror>". */
mgl_status mgl_fail_errno(mgl_error *err, const char *where, const char *what);

/* The same of a path: what a wrong path makes errno say is MGL_BAD_INPUT; the rest is the system's
 * trouble. */
mgl_status mgl_fail_path(mgl_error *err, const char *path, const char *what);

/* MGL_INTERRUPTED, in words. */
mgl_status mgl_fail_interrupted(mgl_error *err);

/* For long work, between its parts: MGL_INTERRUPTED once the flag is set, else MGL_OK. `abort` may be
 * NULL. */
mgl_status mgl_check_abort(const atomic_int *abort, mgl_error *err);

#endif
