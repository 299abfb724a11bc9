/*
 * Coverage of the kernel: records the ops, variants and kernel paths of each program that a case of
 * test_emulator opens on the emulated device. The quick cases together must cover all ops
 * (ops.def), all variants (variants.def) and all paths (coverage.c). `test_emulator quick` checks
 * this after its last case.
 */
#ifndef MGL_TESTS_EMULATOR_COVERAGE_H
#define MGL_TESTS_EMULATOR_COVERAGE_H

#include <stdbool.h>

/* Starts recording: each program that device_vm opens counts from now on. */
void coverage_start(void);

/* Prints the names of all covered ops, variants and paths on one line. */
void coverage_print(void);

/* Prints the name of each requirement that was not covered; false if there is one. */
bool coverage_is_complete(void);

#endif
