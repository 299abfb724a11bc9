/* Scenarios of keys and values that come through the ring, which test_emulator runs in its group
 * `replies`. */
#ifndef MGL_TESTS_EMULATOR_PAST_H
#define MGL_TESTS_EMULATOR_PAST_H

#include "cases.h"

enum { PAST_REPLIES = 5 };

/* Each is a test by itself. */
extern const emulator_case past_replies[PAST_REPLIES];

#endif
