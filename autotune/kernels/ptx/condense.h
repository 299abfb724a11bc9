/*
 * Condensed form of a PTX module: the features that matter for performance. It lists how memory is
 * read and written, asynchronous copies and their depth, matrix instructions, barriers, warp roles,
 * blocks and loops. Input: a parsed module. Output: rows of facts, as text or JSON. The form is
 * deterministic and does not contain names, so a renamed module gives the same text. `megalith
 * kernel ptx` and the agents' tools call it.
 *
 * A fact is a row: a feature, a value, and the number of occurrences of the value. A numeric
 * feature has one row with an empty value.
 *
 *     global.load.vector   v4      12
 *     async.stages                  3
 */
#ifndef MGL_AUTOTUNE_KERNELS_PTX_CONDENSE_H
#define MGL_AUTOTUNE_KERNELS_PTX_CONDENSE_H

#include "autotune/kernels/ptx/flow.h"
#include "base/json_out.h"

typedef struct mgl_ptx_fact {
    char *feature, *value; /* owned, one allocation */
    int64_t count;
} mgl_ptx_fact;

typedef struct mgl_ptx_condensed_function {
    bool entry;
    mgl_ptx_fact *facts; /* (fact_count) sorted by feature, then value */
    size_t fact_count;
    mgl_ptx_loop *loops; /* (loop_count) */
    size_t loop_count;
    char *blocks; /* one line per block: "d1 >3,7 i4 ld1" */
    size_t block_count;
} mgl_ptx_condensed_function;

typedef struct mgl_ptx_condensed {
    char *version, *target;                /* owned */
    mgl_ptx_condensed_function *functions; /* (function_count) functions with a body */
    size_t function_count;
    mgl_ptx_fact *totals; /* (total_count) over all functions: maxima of numeric features, sums
                           * of counts */
    size_t total_count;
} mgl_ptx_condensed;

mgl_status mgl_ptx_condense(const mgl_ptx *ptx, mgl_ptx_condensed *out, mgl_error *err);
/* Parses and condenses a PTX text. */
mgl_status mgl_ptx_condense_text(const char *text, size_t length, const char *file,
                                 mgl_ptx_condensed *out, mgl_error *err);
void mgl_ptx_condensed_clear(mgl_ptx_condensed *condensed);

void mgl_ptx_condensed_write(const mgl_ptx_condensed *condensed, mgl_text *out);
/* Writes the members of an open object. */
void mgl_ptx_condensed_put(const mgl_ptx_condensed *condensed, mgl_json_out *out);

#endif
