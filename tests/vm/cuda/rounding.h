/*
 * Declares the bound on the difference of scores that differ only by the order of sums. The bound
 * depends on the number formats of the program's buffers.
 */
#ifndef MGL_TESTS_VM_CUDA_ROUNDING_H
#define MGL_TESTS_VM_CUDA_ROUNDING_H

#include <stdbool.h>

#include "schedule/program.h"

/* What two computations of a score share: the machine, so that everything before the first
 * attention is bitwise equal, or nothing. */
typedef enum { SAME_MACHINE, OTHER_MACHINE } rounding_kin;

/* The number of values of a token that are stored in 16 bits before its score, and that the two
 * computations may round differently. */
int rounding_count(const mgl_program *program, rounding_kin kin);

/* The maximum difference of a score (a log-probability) of a random model (fixture.h). */
double rounding_of_scores(const mgl_program *program, rounding_kin kin);

#endif
