/* Digests of programs (SHA-256): which program, and which weights at which place. */
#ifndef MGL_SCHEDULE_DIGEST_H
#define MGL_SCHEDULE_DIGEST_H

#include "base/sha256.h"
#include "schedule/program.h"

/* The SHA-256 of the program's canonical form without names and comments, so that equal programs
 * with different names have one digest. */
mgl_status mgl_program_digest(const mgl_program *program, unsigned char out[MGL_SHA256_BYTES],
                              mgl_error *err);

/* The SHA-256 of the placement of weights: equal for programs whose packed weights have the same
 * bytes in the same places. */
void mgl_program_layout(const mgl_program *program, unsigned char out[MGL_SHA256_BYTES]);

#endif
