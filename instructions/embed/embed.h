/* The gather loop that embed and embed_gamma share. */
#ifndef MGL_INSTRUCTIONS_EMBED_EMBED_H
#define MGL_INSTRUCTIONS_EMBED_EMBED_H

#include "instructions/reference/reference.h"

/* Writes the embedding rows of the epoch's tokens, columns of the task's slice, to y, and to
 * `copy` unless it is NULL. */
void mgl_reference_gather(const mgl_call *call, const mgl_region *y, const mgl_region *copy);

#endif
