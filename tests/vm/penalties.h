/* Declares the check of penalties, on any machine. */
#ifndef MGL_TESTS_VM_PENALTIES_H
#define MGL_TESTS_VM_PENALTIES_H

#include "vm/vm.h"

/* For `states` random prompts, replies and penalties, checks that the last token, greedy or drawn,
 * follows from the published formulas applied to the raw logits, and that reported
 * log-probabilities are those of the raw logits. `count` sequences (at most 3) in one launch, each
 * with its own penalties, have the tokens of single runs; so have replies that a stop string ends,
 * and replies whose prompt is in the cache of `vm`, compared with a fresh start on `fresh`. For
 * machines in f32 with at least 64 positions. */
void check_penalties(mgl_vm *vm, mgl_vm *fresh, int count, int states);

/* Checks that a request is rejected with these words, for a reason that depends on `vm`. */
void check_penalty_refused(mgl_vm *vm, mgl_vm_sequence sequence, const char *words);

#endif
