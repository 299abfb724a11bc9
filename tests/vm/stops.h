/* Declares the check of replies that a stop string ends, on any machine. */
#ifndef MGL_TESTS_VM_STOPS_H
#define MGL_TESTS_VM_STOPS_H

#include "vm/vm.h"

/* Of `count` sequences (3 at most) in one launch, some end with a token of the host's choice: that
 * token is the last of each, the others go on as without, and what the record has of the cache is
 * right: a prompt that goes on from such a reply has the tokens of a fresh start on `fresh`, a
 * machine of the same program in f32. Room for 64 positions. */
void check_stops(mgl_vm *vm, mgl_vm *fresh, int count);

#endif
