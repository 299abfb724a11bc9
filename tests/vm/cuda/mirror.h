/*
 * Programs whose second list repeats the first. Lowering makes no second list with flags, but a
 * schedule text may have one.
 */
#ifndef MGL_TESTS_VM_CUDA_MIRROR_H
#define MGL_TESTS_VM_CUDA_MIRROR_H

#include "schedule/program.h"

/* Replaces the second list of a program by a copy of the first list's tasks, including flags and
 * clears, on separate buffers and counters. Buffers with sets get this number of sets. */
void mirror_list(mgl_program *program, int sets);

#endif
