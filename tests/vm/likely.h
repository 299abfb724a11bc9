/* Declares the check of log-probabilities of generated tokens, on any machine. */
#ifndef MGL_TESTS_VM_LIKELY_H
#define MGL_TESTS_VM_LIKELY_H

#include "vm/vm.h"

/* What is told of each token of a reply is what the logits say that it was chosen by, alone and
 * with `count` sequences (3 at most) in one launch, of which one is drawn; its log-probability is
 * that of scoring prompt and reply. Of a machine in f32 with room for 64 positions. */
void check_likely(mgl_vm *vm, int count);

#endif
