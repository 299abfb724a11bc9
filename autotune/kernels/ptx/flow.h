/*
 * Control-flow analysis of a function: basic blocks, dominators, natural loops, and the writers of
 * each register. A back edge, that is, an edge to a block that dominates its source, makes a loop.
 * Dominators follow Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm", 2001.
 * condense.c calls it.
 */
#ifndef MGL_AUTOTUNE_KERNELS_PTX_FLOW_H
#define MGL_AUTOTUNE_KERNELS_PTX_FLOW_H

#include "autotune/kernels/ptx/ptx.h"

enum { MGL_PTX_MAX_LOOPS = 4096 };

typedef struct mgl_ptx_block {
    uint32_t first, count;   /* instructions of the module */
    int32_t next[2];         /* successor blocks; MGL_PTX_NONE: fewer */
    int32_t dominator, rank; /* rank: position in reverse postorder; MGL_PTX_NONE: unreachable */
    int32_t depth;           /* number of enclosing loops */
    int32_t loop;            /* the innermost loop; MGL_PTX_NONE: none */
} mgl_ptx_block;

typedef struct mgl_ptx_loop {
    int32_t header, latch, depth;
    int64_t trips; /* trip count; 0: unknown */
} mgl_ptx_loop;

typedef struct mgl_ptx_flow {
    const mgl_ptx *ptx;
    const mgl_ptx_function *function;
    mgl_ptx_block *blocks; /* (block_count) in text order */
    int32_t block_count;
    int32_t *block_of; /* (function->count) */
    mgl_ptx_loop loops[MGL_PTX_MAX_LOOPS];
    int32_t loop_count;
    int32_t *writer;      /* (registers) the last instruction, in text order, that writes the
                           * register; MGL_PTX_NONE: none */
    int32_t *next_writer; /* (function->count) the previous writer of the instruction's first
                           * result */
    uint32_t *writers;    /* (registers) number of writers */
} mgl_ptx_flow;

mgl_status mgl_ptx_flow_make(const mgl_ptx *ptx, const mgl_ptx_function *function,
                             mgl_ptx_flow **out, mgl_error *err);
void mgl_ptx_flow_free(mgl_ptx_flow *flow);

/* The register of an instruction's first result; MGL_PTX_NONE: none. */
int32_t mgl_ptx_result(const mgl_ptx *ptx, const mgl_ptx_instruction *instruction);
/* Whether each path from the entry to block `b` goes through block `a`; false if a block is
 * unreachable. */
bool mgl_ptx_dominates(const mgl_ptx_flow *flow, int32_t a, int32_t b);
/* Whether a block is in a loop. */
bool mgl_ptx_in_loop(const mgl_ptx_flow *flow, int32_t block, int32_t loop);
/* Computes the trip count of each loop if constants determine it (trips.c). */
void mgl_ptx_count_trips(mgl_ptx_flow *flow);

#endif
