/* Helpers of the tests of schedule/: fixtures as texts, and running a suite. */
#ifndef MGL_TESTS_SCHEDULE_SUPPORT_H
#define MGL_TESTS_SCHEDULE_SUPPORT_H

#include "base/memory.h"
#include "schedule/schedule.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* Reads a file of the source tree and appends a 0 byte; the test aborts on an error. Release with
 * mgl_text_clear. */
mgl_text fixture(const char *path);

/* Parses a text; an error fails the test with its message. */
mgl_program *parsed(const char *text, size_t length);
/* Prints a program. Release with mgl_text_clear. */
mgl_text printed(const mgl_program *program);

/* Replaces the first `from` in `text` by `to`; the test fails if there is none. */
mgl_text edited(const char *text, const char *from, const char *to);

/* Calls `each` with every file of a folder of the source tree, in the order of names. Returns their
 * number. */
int each_file(const char *folder, void (*each)(const char *path, const char *name, void *user),
              void *user);

/* Runs the suite. Returns the exit status of the program. */
int run_suite(Suite *suite);

#endif
