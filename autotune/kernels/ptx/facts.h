/* A list of facts about a PTX text, while the list is being built: rows are added in any order,
 * then sorted and merged. collect.c and condense.c use it. */
#ifndef MGL_AUTOTUNE_KERNELS_PTX_FACTS_H
#define MGL_AUTOTUNE_KERNELS_PTX_FACTS_H

#include "autotune/kernels/ptx/condense.h"

typedef struct mgl_ptx_facts {
    mgl_ptx_fact *rows;
    size_t count, capacity, merge_at;
    bool failed; /* out of memory */
} mgl_ptx_facts;

void mgl_ptx_facts_add(mgl_ptx_facts *facts, const char *feature, const char *value, int64_t count);
/* Sorts by feature, then value, and merges equal pairs. Counts are added; for value "" the
 * maximum is kept. */
void mgl_ptx_facts_merge(mgl_ptx_facts *facts);
void mgl_ptx_facts_clear(mgl_ptx_facts *facts);

#endif
