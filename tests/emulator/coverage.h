/*
 * Coverage of kernel variants: records the ops, variants, formats and architectures of each program
 * that a case of test_emulator opens on the emulated device. The quick cases must cover everything
 * that coverage.c lists; test_emulator checks that at the end of a run of all of them.
 */
#ifndef MGL_TESTS_EMULATOR_COVERAGE_H
#define MGL_TESTS_EMULATOR_COVERAGE_H

#include <stdbool.h>

/* From now on, each program that device_vm opens counts. */
void coverage_start(void);

/* Prints what was covered, one name each, on one line. */
void coverage_print(void);

/* Prints the name of each requirement that was not covered; false if there is one. */
bool coverage_is_complete(void);

#endif
