/*
 * Constructors of errors: every function of the library that can fail returns a mgl_status and
 * fills a mgl_error (megalith.h) through one of these functions.
 *
 * Messages are printed on a terminal, and parts of them come from files. So `where` and `message`
 * are formatted with base/format.h: arguments cannot add control characters, and a line ends only
 * where the format has a newline. A name or pattern of any length is quoted with "%.80s", so that
 * the sentence about what to do is not cut off.
 */
#ifndef MGL_BASE_ERROR_H
#define MGL_BASE_ERROR_H

#include "megalith.h"

#include <stdatomic.h>

/* Fills *err (which may be NULL) and returns `code`, so that a failure is one statement:
 *     return mgl_fail(err, MGL_BAD_INPUT, path, "the header is %zu bytes long", n);
 * `where` may be NULL. A text that is too long is cut at a character boundary. */
mgl_status mgl_fail(mgl_error *err, mgl_status code, const char *where, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The end of messages about a GPU that cannot be used. The command line replaces this text by
 * the flags of its verb. */
#define MGL_HINT_CPU "; the device \"cpu\" needs no GPU"

/* MGL_NO_MEMORY: `bytes` could not be allocated (0: the size is not known). */
mgl_status mgl_fail_memory(mgl_error *err, size_t bytes);

/* MGL_USAGE: `function` of the public header was given NULL for `argument`. */
mgl_status mgl_fail_null(mgl_error *err, const char *function, const char *argument);

/* MGL_SYSTEM, or MGL_NO_MEMORY if errno is ENOMEM. Message: "<what>: <strerror>". */
mgl_status mgl_fail_errno(mgl_error *err, const char *where, const char *what);

/* Same for an operation on a path: MGL_BAD_INPUT if errno means that the path is wrong,
 * otherwise as above. */
mgl_status mgl_fail_path(mgl_error *err, const char *path, const char *what);

/* MGL_INTERRUPTED, with its message. */
mgl_status mgl_fail_interrupted(mgl_error *err);

/* Call between the parts of long work: returns MGL_INTERRUPTED once the flag is set, else
 * MGL_OK. `abort` may be NULL. */
mgl_status mgl_check_abort(const atomic_int *abort, mgl_error *err);

/* Prefixes `where` with the name of the object that was processed: "name: where". */
void mgl_error_name(mgl_error *err, const char *name);

/* Appends lines to the message, such as a compiler's log. Line ends are kept. */
void mgl_error_add_lines(mgl_error *err, const char *lines);

#endif
