/*
 * Programs whose second list repeats the first. Lowering makes no second list with flags, but a
 * schedule text may have one.
 */
#ifndef MGL_TESTS_VM_CUDA_MIRROR_H
#define MGL_TESTS_VM_CUDA_MIRROR_H

#include "schedule/program.h"

/* Makes the second list of a program anew: the first one's tasks, flags and clears among them, over
 * buffers and counters of its own. Those that have sets have so many. */
void mirror_list(mgl_program *program, int sets);

#endif
