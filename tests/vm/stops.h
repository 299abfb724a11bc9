/* Declares the check of replies that a stop string ends, on any machine. */
#ifndef MGL_TESTS_VM_STOPS_H
#define MGL_TESTS_VM_STOPS_H

#include "vm/vm.h"

/* For `count` sequences (at most 3) in one launch, of which some end with a token of the host's
 * choice, checks that this token is the last of each, that the others are unchanged, and that the
 * record of the cache is right: a prompt that continues such a reply has the tokens of a fresh
 * start on `fresh`, a machine of the same program in f32. At least 64 positions. */
void check_stops(mgl_vm *vm, mgl_vm *fresh, int count);

#endif
