/*
 * What merge and merge_add compute alike: the mean of a row's heads over the splits of attention.
 * One function, so that a value has the same bits whichever of them makes it.
 */
#ifndef MGL_INSTRUCTIONS_MERGE_MERGE_H
#define MGL_INSTRUCTIONS_MERGE_MERGE_H

#include "instructions/reference.h"

/* to (heads of the region, head_dim): the merged heads of row r of a region of partials. */
void mgl_merge_row(const mgl_call *call, const mgl_region *part, int r, float *to);

#endif
