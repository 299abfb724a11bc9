/*
 * A module of PTX, condensed to what an expert looks for: how memory is read and written, what is
 * asynchronous and how deep, which matrix instructions, barriers and roles there are, and its
 * blocks and loops. No model takes part. Names do not: a renamed module gives the same text.
 *
 * All facts of a function are rows: a feature, a value, and how often the value stands there. A
 * feature that is a number has one row with an empty value.
 *
 *     global.load.vector   v4      12
 *     async.stages                  3
 */
#ifndef MGL_AUTOTUNE_KERNELS_PTX_CONDENSE_H
#define MGL_AUTOTUNE_KERNELS_PTX_CONDENSE_H

#include "autotune/kernels/ptx/flow.h"
#include "base/json_out.h"

typedef struct mgl_ptx_fact {
    char *feature, *value; /* owned, in one piece */
    int64_t count;
} mgl_ptx_fact;

typedef struct mgl_ptx_condensed_function {
    bool entry;
    mgl_ptx_fact *facts; /* (fact_count) by feature, then value */
    size_t fact_count, fact_capacity;
    mgl_ptx_loop *loops; /* (loop_count) */
    size_t loop_count;
    char *blocks; /* a line each: "d1 >3,7 i4 ld1" */
    size_t block_count;
} mgl_ptx_condensed_function;

typedef struct mgl_ptx_condensed {
    char *version, *target;                /* owned */
    mgl_ptx_condensed_function *functions; /* (function_count) those with a body */
    size_t function_count;
    mgl_ptx_fact *totals; /* (total_count) of all functions: numbers of largest, counts added */
    size_t total_count, total_capacity;
} mgl_ptx_condensed;

mgl_status mgl_ptx_condense(const mgl_ptx *ptx, mgl_ptx_condensed *out, mgl_error *err);
/* From text. */
mgl_status mgl_ptx_condense_text(const char *text, size_t length, const char *file,
                                 mgl_ptx_condensed *out, mgl_error *err);
void mgl_ptx_condensed_clear(mgl_ptx_condensed *condensed);

void mgl_ptx_condensed_write(const mgl_ptx_condensed *condensed, mgl_text *out);
/* The members of an object that is open. */
void mgl_ptx_condensed_put(const mgl_ptx_condensed *condensed, mgl_json_out *out);

/* How often a value stands in all functions; 0: never. `value` "" of a number. */
int64_t mgl_ptx_count(const mgl_ptx_condensed *condensed, const char *feature, const char *value);

#endif
