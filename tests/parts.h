/*
 * Splits a long test into parts: MGL_TEST_PART=K/N runs every Nth check, from check number K on (K
 * from 1 to N). The N parts are disjoint and together cover all checks. A device may be available
 * only for some minutes, and parts can run at the same time. Without MGL_TEST_PART, every check
 * runs.
 */
#ifndef MGL_TESTS_PARTS_H
#define MGL_TESTS_PARTS_H

#include <check.h>
#include <stdbool.h>

typedef struct test_part {
    int index, count; /* index from 0 */
} test_part;

/* Reads "K/N"; NULL: the whole test. False: the text is malformed. */
bool test_part_read(const char *text, test_part *out);

/* Whether the check with this number, from 0, is in the part. */
bool test_part_has(test_part part, int number);

/* Counts the checks of this process. Returns whether the next check is in the part of
 * MGL_TEST_PART. A malformed value ends the process with a message. */
bool next_is_in_part(void);

/* Adds the checks of a loop test (`count`) that are in the part. */
void add_cases(TCase *tests, const TTest *test, int count);

#endif
