/* Helpers of the tests of schedule/: fixtures as texts, and running a suite. */
#ifndef MGL_TESTS_SCHEDULE_SUPPORT_H
#define MGL_TESTS_SCHEDULE_SUPPORT_H

#include "base/memory.h"
#include "schedule/schedule.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* The bytes of a file of the source tree, with a 0 behind them; aborts the test when it cannot be
 * read. Release with mgl_text_clear. */
mgl_text fixture(const char *path);

/* Parses; a failure is the test's, with the message. */
mgl_program *parsed(const char *text, size_t length);
/* Prints. Release with mgl_text_clear. */
mgl_text printed(const mgl_program *program);

/* `text` with the first `from` replaced by `to`; the test fails when there is none. */
mgl_text edited(const char *text, const char *from, const char *to);

/* Calls `each` with every file of a folder of the source tree, in the order of their names. Answers
 * how many there were. */
int each_file(const char *folder, void (*each)(const char *path, const char *name, void *user),
              void *user);

/* Runs the suite; the exit status of the program. */
int run_suite(Suite *suite);

#endif
