/*
 * The table of ops: ops.def as enumerations and rows that are looked up by number and by name. The
 * program (schedule/program.h), the validator and both machines use it. It includes nothing above
 * base/: what the ops compute is above the program, in reference/ and in one folder an op.
 */
#ifndef MGL_INSTRUCTIONS_OPS_H
#define MGL_INSTRUCTIONS_OPS_H

#include "instructions/operands.h"

#include <stdbool.h>
#include <stddef.h>

/* MGL_X(enum, name, what the space holds) */
#define MGL_SPACES(X)                                                                              \
    X(CONST, "const", "constants that are gathered; never written")                                \
    X(ACT, "act", "activations of an epoch")                                                       \
    X(KV, "kv", "the KV cache: persists over epochs; (sequences, kv_heads, capacity, head_dim)")   \
    X(IO, "io", "row table, tokens, sampling state, logits, output")

typedef enum mgl_space {
#define MGL_X(id, name, what) MGL_SPACE_##id,
    MGL_SPACES(MGL_X)
#undef MGL_X
        MGL_SPACE_COUNT
} mgl_space;
const char *mgl_space_name(mgl_space space);

typedef enum mgl_op {
#define MGL_OP(id, ...) MGL_OP_##id,
#include "instructions/ops.def"
    MGL_OP_COUNT
} mgl_op;

/* Groups of ops that share their implementation. */
typedef enum mgl_family {
#define MGL_FAMILY(id, ...) MGL_FAMILY_##id,
#include "instructions/ops.def"
    MGL_FAMILY_COUNT
} mgl_family;

/* The steps of a token whose rows or tasks are distributed over a range of queues: the steps of
 * a layer, then the head. */
typedef enum mgl_step {
    MGL_STEP_QKV,
    MGL_STEP_ATTEND,
    MGL_STEP_O,
    MGL_STEP_GATE_UP,
    MGL_STEP_DOWN,
    MGL_STEP_HEAD,
    MGL_STEP_COUNT,
    MGL_STEP_NONE = MGL_STEP_COUNT /* an op that is none of these steps, or covers several */
} mgl_step;

typedef enum mgl_layout {
    MGL_LAYOUT_NONE,
    MGL_LAYOUT_G8,  /* [row group][k block][8 rows][64 bytes], zeros beyond the tensor's edge */
    MGL_LAYOUT_G8X2 /* two tensors of one shape, alternating row groups */
} mgl_layout;
const char *mgl_layout_name(mgl_layout layout); /* "none", "g8", "g8x2" */

enum { MGL_MAX_OPERANDS = 12 };

/* The required dtype of an operand. */
typedef enum mgl_operand_dtype {
    MGL_OPERAND_F32,
    MGL_OPERAND_I32,
    MGL_OPERAND_EMBEDDING, /* mgl_program_takes_table */
    MGL_OPERAND_CACHE,     /* program.kv_dtype */
    MGL_OPERAND_EXCHANGE   /* f32 or program.exchange_dtype, as the buffer declares */
} mgl_operand_dtype;

typedef struct mgl_operand {
    const char *name;
    mgl_space space;
    mgl_operand_dtype dtype;
    const char *ranges; /* one letter for each dimension: see ops.def */
    bool out;
    bool optional;    /* a task may omit it together with the later operands of its kind: an
                         optional output, or an extra input */
    const char *over; /* the input whose rectangle this output may reuse (in place); NULL: none */
} mgl_operand;

typedef struct mgl_op_info {
    const char *name;
    mgl_family family;
    mgl_step step;     /* MGL_STEP_O means DOWN if the input comes from norm_swiglu */
    mgl_layout layout; /* of its segments; MGL_LAYOUT_NONE: none */
    int segment_most;
    int in_count, out_count;     /* inputs of every task; outputs, including optional outputs */
    int out_least;               /* outputs of every task; the others are optional */
    int extra_count;             /* extra inputs */
    const mgl_operand *operands; /* (in_count + out_count + extra_count): in, out, extra */
    const char *meaning;
} mgl_op_info;

/* The row of an op. An invalid number gives a row named "unknown" without operands. */
const mgl_op_info *mgl_op_get(mgl_op op);
bool mgl_op_is_known(mgl_op op);
bool mgl_op_parse(const char *name, size_t length, mgl_op *out);

static inline bool mgl_op_is_attention(mgl_op op)
{
    return mgl_op_get(op)->family == MGL_FAMILY_ATTENTION;
}

/* Whether the op is attention of the first list or of the second list. */
static inline bool mgl_op_attends(mgl_op op)
{
    return mgl_op_is_attention(op) || op == MGL_OP_ATTEND_ROWS;
}

/* Whether the op computes logits: head or rms_head. */
static inline bool mgl_op_heads(mgl_op op)
{
    return mgl_op_get(op)->step == MGL_STEP_HEAD;
}

/* Whether the op adds a product to the residual: linear_add or merge_add. */
static inline bool mgl_op_adds(mgl_op op)
{
    return mgl_op_get(op)->step == MGL_STEP_O;
}

/* The operands of an attention op; MGL_NO_OPERAND for operands that it lacks. */
typedef struct mgl_attention_operands {
    int q, k, v, rope, k_past, v_past;
    int part; /* the partial result of a split */
    int k_now, v_now;
    int q_g, k_g; /* extra inputs: the norm weights of q and k */
} mgl_attention_operands;
const mgl_attention_operands *mgl_op_attention(mgl_op op);

#endif
