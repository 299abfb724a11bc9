/*
 * Declares scenarios in which keys and values of earlier epochs come through the page ring.
 * test_emulator runs them in its group `replies`.
 */
#ifndef MGL_TESTS_EMULATOR_PAST_H
#define MGL_TESTS_EMULATOR_PAST_H

#include "cases.h"

enum { PAST_REPLIES = 5 };

/* Each function is one test. */
extern const emulator_case past_replies[PAST_REPLIES];

#endif
