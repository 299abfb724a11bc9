/* The real checkpoint in a worker: holds one program with its weights at a time. Serves the
 * requests CHECKPOINT and DECODE of protocol.h. Called by worker.c. */
#ifndef MGL_AUTOTUNE_RUNNER_WORKER_REAL_H
#define MGL_AUTOTUNE_RUNNER_WORKER_REAL_H

#include "autotune/runner/protocol.h"
#include "importer/checkpoint.h"

typedef struct mgl_worker_real {
    mgl_checkpoint *checkpoint;
    mgl_program *program; /* program of the machine */
    mgl_vm *vm;           /* NULL: none is open */
    int32_t side;         /* mgl_side of the program */
} mgl_worker_real;

/* Imports the checkpoint, and opens a machine of the program, given as text, with these weights. */
mgl_status mgl_worker_real_open(mgl_worker_real *real, const char *device,
                                const mgl_wire_checkpoint *wire, const char *text, size_t length,
                                mgl_error *err);
void mgl_worker_real_close(mgl_worker_real *real);

/* Runs one launch. Writes `made` (count, tokens), the tokens after the prompts (count, length), or
 * `scores` (count, length). */
mgl_status mgl_worker_real_run(mgl_worker_real *real, const mgl_wire_decode *wire,
                               const int32_t *prompts, int32_t *made, float *scores,
                               mgl_error *err);

#endif
