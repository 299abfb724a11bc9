/*
 * How inputs of products are staged: in how many parts, and in how many bytes of the activation
 * buffer.
 */
#ifndef MGL_SCHEDULE_LOWER_STAGED_H
#define MGL_SCHEDULE_LOWER_STAGED_H

#include "schedule/program.h"

/* Inputs: the residual stream, attention's output, the ffn's values. */
enum { MGL_STAGED_INPUTS = 3 };

/* How many columns, and in how many parts; in 16 bits, what is normalised or exchanged in f32 has
 * two. */
typedef struct mgl_staged {
    int64_t columns;
    int parts;
    bool wide; /* exchanged in f32 */
} mgl_staged;

/* Of weights of `dtype`; `narrow`: the knob. */
mgl_staged mgl_staged_input(const mgl_geometry *geometry, mgl_dtype dtype, int narrow, int input);

/* Bytes of the activation buffer that `rows` rows of an input need, so that fewer of them find room
 * as well: as rows, or as a batch. */
int64_t mgl_staged_bytes(const mgl_staged *in, mgl_dtype dtype, int warps, int rows);

#endif
