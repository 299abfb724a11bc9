/*
 * A scratch folder for a test. Tests call scratch_make at the start and scratch_remove at the end;
 * `folder` is an array that ends with six characters for mkdtemp, such as "/tmp/name-XXXXXX". A
 * failure fails the test.
 */
#ifndef MGL_TESTS_SCRATCH_H
#define MGL_TESTS_SCRATCH_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Makes a new folder, also if `folder` was made and removed before. */
static inline void scratch_make(char *folder)
{
    memset(folder + strlen(folder) - 6, 'X', 6);
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

/* Removes the folder and its contents. */
static inline void scratch_remove(const char *folder)
{
    char command[1000];
    ck_assert_int_lt(snprintf(command, sizeof command, "rm -rf '%s'", folder), (int)sizeof command);
    ck_assert_int_eq(system(command), 0);
}

#endif
