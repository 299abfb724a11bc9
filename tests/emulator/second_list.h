/*
 * Declares scenarios of programs with two task lists. test_emulator runs them in its groups
 * `replies` and `many`.
 */
#ifndef MGL_TESTS_EMULATOR_SECOND_LIST_H
#define MGL_TESTS_EMULATOR_SECOND_LIST_H

#include "cases.h"
#include "models.h"

/* Tasks of attention that shares rows, in a second list. */
int second_list_shares(const mgl_geometry *geometry, const device_options *options);

enum { SECOND_LIST_REPLIES = 27, SECOND_LIST_ROWS = 23 };

/* Each is a test by itself. */
extern const emulator_case second_list_replies[SECOND_LIST_REPLIES];
/* Of more rows than the first list may have, and traces of both lists. */
extern const emulator_case second_list_rows[SECOND_LIST_ROWS];

#endif
