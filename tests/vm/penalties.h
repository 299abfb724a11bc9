/* Declares the check of penalties, on any machine. */
#ifndef MGL_TESTS_VM_PENALTIES_H
#define MGL_TESTS_VM_PENALTIES_H

#include "vm/vm.h"

/* Of `states` random ones, prompt and reply and penalties: the last token, greedy or drawn, is what
 * the published formulas make of the raw logits; what is told of likely tokens is of these. `count`
 * sequences (3 at most) in one launch, each with its own penalties, have the tokens that each has
 * alone; so have replies that are cut by a stop text, and those whose prompt the cache of `vm`
 * holds, against a fresh start on `fresh`. Of machines in f32 with room for 64 positions. */
void check_penalties(mgl_vm *vm, mgl_vm *fresh, int count, int states);

/* One sequence more of a request that is refused with these words, for the reason that `vm` has. */
void check_penalty_refused(mgl_vm *vm, mgl_vm_sequence sequence, const char *words);

#endif
