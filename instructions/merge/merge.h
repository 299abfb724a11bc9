/*
 * The mean of a row's heads over the splits of attention, shared by merge and merge_add, so that
 * both compute the same bits.
 */
#ifndef MGL_INSTRUCTIONS_MERGE_MERGE_H
#define MGL_INSTRUCTIONS_MERGE_MERGE_H

#include "instructions/reference/reference.h"

/* Writes the merged heads of row r of a region of partial results to `to` (heads, head_dim). */
void mgl_merge_row(const mgl_call *call, const mgl_region *part, int r, float *to);

#endif
