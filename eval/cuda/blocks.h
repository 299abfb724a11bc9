/*
 * Argument blocks of the benchmark's kernels, shared by host and device: one struct per kernel.
 * Addresses are integers; the comments give what they point to. Plain C that NVRTC compiles too.
 * eval/device.c launches the kernels; baseline.c, reference.c, stream.c and filler.c fill the
 * blocks.
 *
 * Shapes: B rows, one per sequence, or those of one sequence's prompt; D = head_dim, G = query
 * heads per kv head, wide = (heads + 2 kv_heads) D.
 */
#ifndef MGL_EVAL_CUDA_BLOCKS_H
#define MGL_EVAL_CUDA_BLOCKS_H

#include "eval/cuda/synthetic.h"

typedef unsigned long long mgl_address;

/* id, name of the kernel, type of its block */
#define MGL_BENCH_KERNELS(X)                                                                       \
    X(FILL_TAPE, fill_tape, mgl_synthetic_segment)                                                 \
    X(FILL_ROWS, fill_rows, mgl_block_fill_rows)                                                   \
    X(FILL_CACHE, fill_cache, mgl_block_fill_cache)                                                \
    X(STREAM, read_stream, mgl_block_stream)                                                       \
    X(NORM, baseline_norm, mgl_block_norm)                                                         \
    X(ROPE, baseline_rope, mgl_block_rope)                                                         \
    X(ATTEND, baseline_attend, mgl_block_attend)                                                   \
    X(MERGE, baseline_merge, mgl_block_merge)                                                      \
    X(PROMPT_ATTEND, prompt_attend, mgl_block_prompt_attend)                                       \
    X(PROMPT_SILU, prompt_silu, mgl_block_silu)                                                    \
    X(SILU, baseline_silu, mgl_block_silu)                                                         \
    X(ARGMAX, baseline_argmax, mgl_block_argmax)                                                   \
    X(ADVANCE, baseline_advance, mgl_block_advance)                                                \
    X(REFERENCE_EMBED, reference_embed, mgl_block_reference_embed)                                 \
    X(REFERENCE_NORM, reference_norm, mgl_block_reference_norm)                                    \
    X(REFERENCE_LINEAR, reference_linear, mgl_block_reference_linear)                              \
    X(REFERENCE_ROPE, reference_rope, mgl_block_reference_rope)                                    \
    X(REFERENCE_ATTEND, reference_attend, mgl_block_reference_attend)                              \
    X(REFERENCE_SWIGLU, reference_swiglu, mgl_block_reference_swiglu)                              \
    X(REFERENCE_LOOK, reference_look, mgl_block_reference_look)

/* ---- weights -------------------------------------------------------------------------------- */

typedef struct mgl_block_fill_rows {
    mgl_address to; /* (count) */
    mgl_synthetic_rule rule;
    long long count;
    int wide;    /* 1: f32; 0: 16 bits */
    int factors; /* 1: the scales of the rows instead, in f32 */
} mgl_block_fill_rows;

typedef struct mgl_block_fill_cache {
    mgl_address to; /* 16 bits (sequences, kv_heads, capacity, D) */
    mgl_synthetic_rule rule;
    int sequences, kv_heads, capacity;
    int positions; /* filled positions of each sequence */
    int value;     /* 1: values; 0: keys */
    int swizzled;  /* 1: chunks are in the order of mgl_kv_chunk */
} mgl_block_fill_cache;

/* ---- stream --------------------------------------------------------------------------------- */

typedef struct mgl_block_stream {
    mgl_address from; /* uint4 (chunks) */
    mgl_address sum;  /* u32: written only if a thread's sum equals one specific number */
    unsigned chunks;  /* of 16 bytes; at most 64 GiB */
    int unused;
} mgl_block_stream;

/* ---- baseline step -------------------------------------------------------------------------- */

typedef struct mgl_block_norm {
    mgl_address x;   /* f32 (B, hidden): the residual stream, updated */
    mgl_address add; /* bf16 (B, hidden): added to x; with `token`, the embedding (vocab, hidden) */
    mgl_address token;  /* i32 (B): x is set to these rows of `add`; or 0 */
    mgl_address bias;   /* f32 (hidden): added to x too; or 0 */
    mgl_address weight; /* f32 (hidden) */
    mgl_address out;    /* bf16 (B, hidden) */
    int hidden;
    float eps;
} mgl_block_norm;

typedef struct mgl_block_rope {
    mgl_address qkv;      /* bf16 (B, wide): q is rotated in place */
    mgl_address bias;     /* f32 (wide): of q, k and v; or 0 */
    mgl_address norm;     /* f32 (2, D): norm weights of q's and k's heads; or 0 */
    mgl_address table;    /* f32 (capacity, D): cosines, then sines */
    mgl_address position; /* i32 (B) */
    mgl_address keys;     /* bf16 (sequences, kv_heads, capacity, D) */
    mgl_address values;   /* the same */
    int sequences, heads, kv_heads, capacity; /* sequences: B */
    float eps;
    int tokens; /* rows per sequence: row r belongs to sequence r / tokens */
} mgl_block_rope;

typedef struct mgl_block_attend {
    mgl_address qkv;      /* bf16 (B, wide) */
    mgl_address position; /* i32 (B): of the newest cache entry */
    mgl_address keys;     /* bf16 (B, kv_heads, capacity, D) */
    mgl_address values;   /* the same */
    mgl_address part;     /* f32 (B, heads, splits, D + 2): maximum, sum, weighted values */
    mgl_address out;      /* bf16 (B, heads D): written if splits is 1 */
    int kv_heads, capacity, splits;
    float scale; /* log2(e) / sqrt(D) */
} mgl_block_attend;

typedef struct mgl_block_merge {
    mgl_address part; /* of mgl_block_attend */
    mgl_address out;  /* bf16 (B, heads D) */
    int splits;
    int unused;
} mgl_block_merge;

/* Rows of a block of prompt_attend; 16-row tiles per warp; threads of the block. */
#define MGL_PROMPT_ROWS              128
#define MGL_PROMPT_TILES(head_dim)   ((head_dim) <= 64 ? 2 : 1)
#define MGL_PROMPT_THREADS(head_dim) (MGL_PROMPT_ROWS / (16 * MGL_PROMPT_TILES(head_dim)) * 32)

typedef struct mgl_block_prompt_attend {
    mgl_address qkv;    /* bf16 (B, wide): row r is at position context + r */
    mgl_address keys;   /* bf16 (kv_heads, capacity, D), including the rows' own */
    mgl_address values; /* the same */
    mgl_address out;    /* bf16 (B, heads D) */
    int rows, kv_heads, capacity, context;
    float scale; /* log2(e) / sqrt(D) */
    int unused;
} mgl_block_prompt_attend;

typedef struct mgl_block_silu {
    mgl_address gate_up; /* bf16 (B, 2 ffn) */
    mgl_address bias;    /* f32 (2 ffn); or 0 */
    mgl_address out;     /* bf16 (B, ffn): silu(gate) up */
    int sequences, ffn;
} mgl_block_silu;

typedef struct mgl_block_argmax {
    mgl_address logits; /* f32 (B, vocab) */
    mgl_address value;  /* f32 (B, parts): largest value of each part */
    mgl_address id;     /* i32 (B, parts): its index; the lowest among equal values */
    int vocab, parts;
} mgl_block_argmax;

typedef struct mgl_block_advance {
    mgl_address value, id; /* of mgl_block_argmax */
    mgl_address token;     /* i32 (B): the next input */
    mgl_address position;  /* i32 (B): incremented */
    mgl_address output;    /* i32 (B, tokens) */
    mgl_address forced;    /* i32 (1 + B tokens): if the first is not 0, the others are the next
                              inputs, regardless of the choice */
    int parts, tokens;
    int context; /* position of the first step */
    int unused;
} mgl_block_advance;

/* ---- reference ------------------------------------------------------------------------------ */

/* R rows: `tokens` rows per sequence, one per position from `context` on. */

typedef struct mgl_block_reference_embed {
    mgl_address token; /* i32 (R) */
    mgl_address x;     /* f32 (R, hidden) */
    mgl_synthetic_rule rule;
    int hidden;
    int unused;
} mgl_block_reference_embed;

typedef struct mgl_block_reference_norm {
    mgl_address x;   /* f32 (rows, width): R rows of hidden, or their heads of D */
    mgl_address out; /* the same; may be x */
    mgl_synthetic_rule rule;
    int width;
    float eps;
} mgl_block_reference_norm;

typedef struct mgl_block_reference_linear {
    mgl_address x; /* f32 (R, inner) */
    mgl_address y; /* f32 (R, outer) */
    mgl_synthetic_rule rule, bias;
    int rows, inner, outer;
    int add;    /* 1: y += x W^T + bias; 0: y = x W^T + bias */
    int biased; /* 0: no bias */
    int unused;
} mgl_block_reference_linear;

typedef struct mgl_block_reference_rope {
    mgl_address x;     /* f32 (R, heads D): rotated in place */
    mgl_address table; /* f32 (capacity, D) */
    int heads, tokens, context;
    int unused;
} mgl_block_reference_rope;

typedef struct mgl_block_reference_attend {
    mgl_address q;    /* f32 (R, heads D), rotated */
    mgl_address k, v; /* f32 (R, kv_heads D), k rotated */
    mgl_address out;  /* f32 (R, heads D) */
    mgl_synthetic_rule keys, values;
    int kv_heads, tokens, context;
    int unused;
} mgl_block_reference_attend;

typedef struct mgl_block_reference_swiglu {
    mgl_address gate; /* f32 (count): set to silu(gate) up */
    mgl_address up;   /* f32 (count) */
    long long count;
} mgl_block_reference_swiglu;

typedef struct mgl_block_reference_look {
    mgl_address logits; /* f32 (R, vocab) */
    mgl_address made;   /* i32 (R): tokens made elsewhere from the same inputs */
    mgl_address id;     /* i32 (R): the token with the largest logit */
    mgl_address seen;   /* f32 (R, 3): the largest logit, the logit of `made`, the norm of all */
    int vocab;
    int unused;
} mgl_block_reference_look;

#endif
