/*
 * Declares the bound on the difference of scores that differ only by the order of sums. The bound
 * depends on the number formats of the program's buffers.
 */
#ifndef MGL_TESTS_VM_CUDA_ROUNDING_H
#define MGL_TESTS_VM_CUDA_ROUNDING_H

#include <stdbool.h>

#include "schedule/program.h"

/* What two ways to a score share: the machine, so that all before the first attention is the same
 * bits, or nothing. */
typedef enum { SAME_MACHINE, OTHER_MACHINE } rounding_kin;

/* Values of a token that are stored in 16 bits on the way to its score, and that the two ways may
 * round apart. */
int rounding_count(const mgl_program *program, rounding_kin kin);

/* The most that a score (a log-probability) of a random model (fixture.h) may differ. */
double rounding_of_scores(const mgl_program *program, rounding_kin kin);

#endif
