/*
 * Sizes of product inputs in the activation buffer (the stage): into how many parts an input is
 * split, and how many bytes it takes. Used by choose.c.
 */
#ifndef MGL_SCHEDULE_LOWER_STAGED_H
#define MGL_SCHEDULE_LOWER_STAGED_H

#include "schedule/program.h"

/* The inputs: residual stream, attention output, ffn values. */
enum { MGL_STAGED_INPUTS = 3 };

/* Columns and parts of an input. With 16-bit weights, a normalized or f32 input is split into
 * two parts. */
typedef struct mgl_staged {
    int64_t columns;
    int parts;
    bool wide; /* exchanged in f32 */
} mgl_staged;

/* The input of weights of `dtype`; `narrow`: exchange precision. */
mgl_staged mgl_staged_input(const mgl_geometry *geometry, mgl_dtype dtype, int exchange_precision,
                            int input);

/* Bytes of the activation buffer for `rows` rows of an input, stored as rows or as a batch.
 * Fewer rows fit too. */
int64_t mgl_staged_bytes(const mgl_staged *in, mgl_dtype dtype, int warps, int rows);

#endif
