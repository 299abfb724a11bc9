/*
 * A long test in parts: MGL_TEST_PART=K/N runs every Nth check, from check number K on (K from 1 to
 * N). The parts of one N are disjoint, and together they are all checks. A device is lent for some
 * minutes only, and parts may run at the same time. Without MGL_TEST_PART, every check runs.
 */
#ifndef MGL_TESTS_PARTS_H
#define MGL_TESTS_PARTS_H

#include <check.h>
#include <stdbool.h>

typedef struct test_part {
    int index, count; /* index from 0 */
} test_part;

/* Reads "K/N"; NULL is the whole test. False: the text is malformed. */
bool test_part_read(const char *text, test_part *out);

/* Is the check with this number, from 0, in the part? */
bool test_part_has(test_part part, int number);

/* Counts the checks of this process: is the next check in the part of MGL_TEST_PART? A malformed
 * value ends the process with a message. */
bool next_is_in_part(void);

/* Adds those of the `count` checks of a loop test that are in the part. */
void add_cases(TCase *tests, const TTest *test, int count);

#endif
