/*
 * Tests only: a worker that does something wrong on request, since a program that the validator
 * accepts and that is wrong is hard to come by. The list is MGL_FAULTS in protocol.h; nothing but
 * the options of a lab can ask for one.
 */
#ifndef MGL_AUTOTUNE_RUNNER_WORKER_FAULT_H
#define MGL_AUTOTUNE_RUNNER_WORKER_FAULT_H

#include "autotune/runner/protocol.h"

typedef struct mgl_worker_fault {
    mgl_fault kind;
    int looks; /* at logits, since it was armed */
} mgl_worker_fault;

void mgl_worker_fault_arm(mgl_worker_fault *fault, mgl_fault kind);
/* In place of a launch, or before it. May not return. */
mgl_status mgl_worker_fault_before(mgl_fault fault, const mgl_wire *wire, mgl_error *err);
/* To what came out. */
void mgl_worker_fault_behind(mgl_fault fault, int32_t *tokens, int vocab, double *seconds);
void mgl_worker_fault_logits(mgl_worker_fault *fault, float *logits, size_t count);

#endif
