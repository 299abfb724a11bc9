/* Rows of facts in the making: added in any order, sorted and merged at the end. */
#ifndef MGL_AUTOTUNE_KERNELS_PTX_FACTS_H
#define MGL_AUTOTUNE_KERNELS_PTX_FACTS_H

#include "autotune/kernels/ptx/condense.h"

typedef struct mgl_ptx_facts {
    mgl_ptx_fact *rows;
    size_t count, capacity, merge_at;
    bool failed; /* memory ran out */
} mgl_ptx_facts;

void mgl_ptx_facts_add(mgl_ptx_facts *facts, const char *feature, const char *value, int64_t count);
/* By feature, then value, each pair once. Counts are added; of a value "", the largest stays. */
void mgl_ptx_facts_merge(mgl_ptx_facts *facts);
void mgl_ptx_facts_clear(mgl_ptx_facts *facts);

#endif
