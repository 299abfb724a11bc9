/* Declares the check of log-probabilities of generated tokens, on any machine. */
#ifndef MGL_TESTS_VM_LIKELY_H
#define MGL_TESTS_VM_LIKELY_H

#include "vm/vm.h"

/* Checks that the reported log-probabilities of each token equal those of the logits from which it
 * was chosen, alone and with `count` sequences (at most 3) in one launch, one of them sampled; and
 * that they equal the scores of prompt and reply. For a machine in f32 with at least 64
 * positions. */
void check_likely(mgl_vm *vm, int count);

#endif
