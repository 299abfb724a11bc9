/*
 * The flow of a function: basic blocks, the loops among them, and where registers are written.
 * Loops are natural loops: an edge to a block that dominates its source makes one (Cooper, Harvey
 * and Kennedy, "A Simple, Fast Dominance Algorithm", 2001, is how dominators are found).
 */
#ifndef MGL_AUTOTUNE_KERNELS_PTX_FLOW_H
#define MGL_AUTOTUNE_KERNELS_PTX_FLOW_H

#include "autotune/kernels/ptx/ptx.h"

enum { MGL_PTX_MAX_LOOPS = 4096 };

typedef struct mgl_ptx_block {
    uint32_t first, count;   /* instructions of the module */
    int32_t next[2];         /* blocks behind it, MGL_PTX_NONE: fewer */
    int32_t dominator, rank; /* its place in reverse postorder; MGL_PTX_NONE: never reached */
    int32_t depth;           /* of loops around it */
    int32_t loop;            /* the innermost; MGL_PTX_NONE */
} mgl_ptx_block;

typedef struct mgl_ptx_loop {
    int32_t header, latch, depth;
    int64_t trips; /* 0: not visible */
} mgl_ptx_loop;

typedef struct mgl_ptx_flow {
    const mgl_ptx *ptx;
    const mgl_ptx_function *function;
    mgl_ptx_block *blocks; /* (block_count) in the order of the text */
    int32_t block_count;
    int32_t *block_of; /* (function->count) */
    mgl_ptx_loop loops[MGL_PTX_MAX_LOOPS];
    int32_t loop_count;
    int32_t *writer;      /* (registers) the first instruction that writes it; MGL_PTX_NONE */
    int32_t *next_writer; /* (function->count) of the same register as its first result */
    uint32_t *writers;    /* (registers) how many there are */
} mgl_ptx_flow;

mgl_status mgl_ptx_flow_make(const mgl_ptx *ptx, const mgl_ptx_function *function,
                             mgl_ptx_flow **out, mgl_error *err);
void mgl_ptx_flow_free(mgl_ptx_flow *flow);

/* The register that an instruction writes as its first result; MGL_PTX_NONE. */
int32_t mgl_ptx_result(const mgl_ptx *ptx, const mgl_ptx_instruction *instruction);
/* Is a block within a loop? */
bool mgl_ptx_in_loop(const mgl_ptx_flow *flow, int32_t block, int32_t loop);
/* Works out the trips of each loop, where numbers show them. */
void mgl_ptx_count_trips(mgl_ptx_flow *flow);

#endif
