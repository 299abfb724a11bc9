/*
 * Fault injection, for tests only: a worker that misbehaves on request, because a wrong program
 * that the validator accepts is hard to construct. The list is MGL_FAULTS in protocol.h. Faults are
 * requested only through the options of a runner. Called by worker.c.
 */
#ifndef MGL_AUTOTUNE_RUNNER_WORKER_FAULT_H
#define MGL_AUTOTUNE_RUNNER_WORKER_FAULT_H

#include "autotune/runner/protocol.h"

typedef struct mgl_worker_fault {
    mgl_fault kind;
    int looks; /* number of logit requests since it was armed */
} mgl_worker_fault;

void mgl_worker_fault_arm(mgl_worker_fault *fault, mgl_fault kind);
/* Applied before a launch or instead of it. May not return. */
mgl_status mgl_worker_fault_before(mgl_fault fault, const mgl_wire *wire, mgl_error *err);
/* Applied to the results of a launch. */
void mgl_worker_fault_behind(mgl_fault fault, int32_t *tokens, int vocab, double *seconds);
void mgl_worker_fault_logits(mgl_worker_fault *fault, float *logits, size_t count);

#endif
