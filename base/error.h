/*
 * Errors: how a function of the library fails. See mgl_status and mgl_error in megalith.h.
 *
 * A message goes to a terminal, and much of it comes from files. So `where` and `message` are made
 * with base/format.h: whatever an argument holds, they hold no controls, and line ends only where
 * the format has them. A name or pattern of any length is quoted with "%.80s", so that the sentence
 * that says what to do is not lost behind it.
 */
#ifndef MGL_BASE_ERROR_H
#define MGL_BASE_ERROR_H

#include "megalith.h"

#include <stdatomic.h>

/* Fills *err (which may be NULL) and returns `code`, so that a failure is one statement:
 *     return mgl_fail(err, MGL_BAD_INPUT, path, "the header is %zu bytes long", n);
 * `where` may be NULL. Too long a text is cut at the end of a character. */
mgl_status mgl_fail(mgl_error *err, mgl_status code, const char *where, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The end of messages about a GPU that cannot be used. The command line replaces these words by
 * the flags of its verb. */
#define MGL_HINT_CPU "; the device \"cpu\" needs no GPU"

/* MGL_NO_MEMORY, in words. */
mgl_status mgl_fail_memory(mgl_error *err, size_t bytes);

/* MGL_USAGE: `function` of the public header was given NULL for `argument`. */
mgl_status mgl_fail_null(mgl_error *err, const char *function, const char *argument);

/* MGL_SYSTEM, or MGL_NO_MEMORY, with errno's text: "<what>: <strerror>". */
mgl_status mgl_fail_errno(mgl_error *err, const char *where, const char *what);

/* The same of a path: what a wrong path makes errno say is MGL_BAD_INPUT; the rest is the system's
 * trouble. */
mgl_status mgl_fail_path(mgl_error *err, const char *path, const char *what);

/* MGL_INTERRUPTED, in words. */
mgl_status mgl_fail_interrupted(mgl_error *err);

/* For long work, between its parts: MGL_INTERRUPTED once the flag is set, else MGL_OK. `abort` may
 * be NULL. */
mgl_status mgl_check_abort(const atomic_int *abort, mgl_error *err);

/* Puts the name of what was being worked on in front of the place of an error: "name: where". */
void mgl_error_name(mgl_error *err, const char *name);

/* Adds lines to the message, such as a compiler's log; they end at its line ends. */
void mgl_error_add_lines(mgl_error *err, const char *lines);

#endif
