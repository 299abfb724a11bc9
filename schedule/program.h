/*
 * The program: the task DAG that lowering makes, the text form carries, the validator proves and
 * both machines run. Plain data: arrays and indices, so that every reader sees all of it.
 *
 * Tasks stand in one array, queue after queue, in the order in which each queue runs them; regions,
 * segments and edges stand in arrays of their own, and a task names its run in each. Names point
 * into the program and belong to it.
 *
 * A program has one task list, or two: the first for epochs of few rows, the second (`many`) for
 * epochs of many. The row table of an epoch says which list all queues run. The second list is a
 * program of its own. Its declarations begin with all of the first one's, by the same indices:
 * tensors, const and kv buffers, and those of io that hand an epoch to the next, are the same
 * memory for both lists, and so are counters. Buffers with rows belong to the list that declares
 * them. It has no tapes: its segments are parts of the first list's.
 */
#ifndef MGL_SCHEDULE_PROGRAM_H
#define MGL_SCHEDULE_PROGRAM_H

#include "base/dtype.h"
#include "base/error.h"
#include "base/sha256.h"
#include "importer/graph.h"
#include "instructions/operands.h"
#include "schedule/formats.h"
#include "schedule/tape.h"

enum {
    MGL_MAX_RANK = 4,
    MGL_MAX_ROWS = 16,         /* rows of an epoch of the first list, and, where there is no other,
                                  sequences of a launch */
    MGL_MAX_SECOND_ROWS = 128, /* rows of an epoch of the second list */
    MGL_MAX_SEQUENCES = 64,    /* of a launch of a program with two lists */
    MGL_MAX_QUEUES = 256,
    MGL_MAX_SPLITS = 64,
    MGL_MAX_CAPACITY = 1 << 20,  /* positions of a sequence */
    MGL_SHARED_RESERVED = 24576, /* bytes of shared memory that the CUDA VM keeps for itself */
    MGL_SHARED_SECOND = 4096, /* and so many more for a row table of more than MGL_MAX_ROWS rows */
};

/*  enum   name   what it holds */
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

/* Ops that are done alike. */
typedef enum mgl_family {
#define MGL_FAMILY(id, ...) MGL_FAMILY_##id,
#include "instructions/ops.def"
    MGL_FAMILY_COUNT
} mgl_family;

/* Which code of an op runs a task (schedule/variants.h). */
typedef enum mgl_variant {
    MGL_VARIANT_GENERAL,
#define MGL_VARIANT(id, ...) MGL_VARIANT_##id,
#include "schedule/variants.def"
    MGL_VARIANT_COUNT
} mgl_variant;

/* Steps of a token whose rows, or tasks, are spread over a run of queues: those of a layer, then
 * the head. */
typedef enum mgl_step {
    MGL_STEP_QKV,
    MGL_STEP_ATTEND,
    MGL_STEP_O,
    MGL_STEP_GATE_UP,
    MGL_STEP_DOWN,
    MGL_STEP_HEAD,
    MGL_STEP_COUNT,
    MGL_STEP_NONE = MGL_STEP_COUNT /* of an op that is no such step, or a part of several */
} mgl_step;

/* An extent: a number, or a symbol that the limits of the program give a value. */
typedef enum mgl_symbol {
    MGL_FIXED,
    MGL_ROWS,      /* limits.rows: regions say [:rows], this epoch's share of it */
    MGL_SEQUENCES, /* limits.sequences */
    MGL_CAPACITY   /* limits.capacity */
} mgl_symbol;

typedef struct mgl_extent {
    mgl_symbol symbol;
    int64_t count; /* always the resolved number */
} mgl_extent;

/* Where the host gets the bytes of a const buffer. */
typedef enum mgl_source {
    MGL_SOURCE_NONE,
    MGL_SOURCE_TENSOR, /* the tensor, converted to the buffer's dtype */
    MGL_SOURCE_ROPE    /* (capacity, head_dim): cos (head_dim/2), then sin (head_dim/2) */
} mgl_source;

typedef struct mgl_buffer {
    const char *name;
    mgl_space space;
    mgl_dtype dtype;
    int rank;
    mgl_extent extents[MGL_MAX_RANK];
    mgl_source source;
    int tensor; /* of MGL_SOURCE_TENSOR, else -1 */
    int sets;   /* copies of a flagged buffer: epoch e uses set e mod sets; 1 without flags */
    bool paged; /* it lies in pages (schedule/pages.h) */
    int line;   /* of the text, 0 when lowered */
} mgl_buffer;

typedef struct mgl_program_tensor {
    const char *name;         /* in the text */
    const char *checkpoint;   /* in the checkpoint */
    mgl_weight_format format; /* as packed */
    int64_t rows, cols;       /* rank 1: rows = 1 */
    int rank;
    int line;
} mgl_program_tensor;

typedef struct mgl_counter {
    const char *name;
    int line;
} mgl_counter;

typedef enum mgl_range_kind {
    MGL_RANGE_FIXED, /* [lo:hi) */
    MGL_RANGE_ROWS,  /* [:rows] */
    MGL_RANGE_PAST,  /* [:pos]  positions written in earlier epochs */
    MGL_RANGE_NOW,   /* [pos]   positions of this epoch's rows */
    MGL_RANGE_SHARE  /* [:rows i/n]  share i of n of this epoch's rows (mgl_row_share) */
} mgl_range_kind;

typedef struct mgl_range {
    mgl_range_kind kind;
    int64_t lo, hi; /* of MGL_RANGE_FIXED; of MGL_RANGE_SHARE i and n; else 0 */
} mgl_range;

/* Whether a range has numbers. */
static inline bool mgl_range_has_numbers(const mgl_range *range)
{
    return range->kind == MGL_RANGE_FIXED || range->kind == MGL_RANGE_SHARE;
}

typedef struct mgl_region {
    int buffer;
    bool flag; /* a flag edge: its words tell by themselves whether they were written */
    mgl_range ranges[MGL_MAX_RANK];
} mgl_region;

typedef enum mgl_layout {
    MGL_LAYOUT_NONE,
    MGL_LAYOUT_G8,  /* [row group][k block][8 rows][64 bytes], zeros beyond the tensor's edge */
    MGL_LAYOUT_G8X2 /* two tensors of one shape, row groups in turn */
} mgl_layout;
const char *mgl_layout_name(mgl_layout layout); /* "none", "g8", "g8x2" */

/* A run of the queue's tape: rows [row_lo, row_hi), columns [col_lo, col_hi) of one tensor, or of
 * two. row_lo is a multiple of MGL_ROW_GROUP, row_hi too or the tensor's end. */
typedef struct mgl_segment {
    int tensor, tensor2; /* tensor2: -1 but for MGL_LAYOUT_G8X2 */
    mgl_layout layout;
    int64_t row_lo, row_hi, col_lo, col_hi;
    int64_t offset; /* bytes from the start of the queue's tape; of the second list 0 */
} mgl_segment;

/* The counter's value is at least all signals of the epochs before, and `threshold` of this one: in
 * epoch e of a program with one list e * P + threshold, P being its signals an epoch. */
typedef struct mgl_wait {
    int counter;
    int64_t threshold;
} mgl_wait;

typedef struct mgl_run {
    int first, count;
} mgl_run;

typedef struct mgl_task {
    mgl_op op;
    mgl_variant variant;
    mgl_run in, out;  /* of regions */
    mgl_run segments; /* of segments */
    mgl_run waits;    /* of waits */
    mgl_run signals;  /* of signals */
    int line;         /* of the text; 0 when lowered */
} mgl_task;

typedef struct mgl_queue {
    mgl_run tasks;
    int64_t
        tape_bytes;   /* segments and padding; a multiple of the page size; of the second list 0 */
    int64_t tape_pad; /* of these, declared padding at the end */
    int line;
} mgl_queue;

typedef struct mgl_target {
    char arch[16];        /* "sm_90a", "cpu" */
    int queues;           /* SMs used, one block each, all co-resident */
    int64_t shared_bytes; /* shared memory a block may have; 0: not limited */
} mgl_target;

typedef struct mgl_limits {
    int rows;      /* of an epoch of this list, at most MGL_MAX_ROWS, of the second 128 */
    int sequences; /* of a launch, at most the rows of the longest epoch */
    int capacity;  /* positions of a sequence */
    int many;      /* rows of an epoch of the second list; 0: there is none */
    int few;       /* of the second list: rows of the first; else 0 */
    int share;     /* of attention in splits: earlier positions for which one more is used (see
                      mgl_split_positions of schedule/variant_shapes.h); 0: all are */
} mgl_limits;

/* Rows of the longest epoch. */
static inline int mgl_limits_most(const mgl_limits *limits)
{
    return limits->many > limits->rows ? limits->many : limits->rows;
}

/* Bytes of shared memory that the CUDA VM keeps for itself, where the longest epoch has so many
 * rows. */
static inline int mgl_shared_reserved(int rows)
{
    return MGL_SHARED_RESERVED + (rows > MGL_MAX_ROWS ? MGL_SHARED_SECOND : 0);
}

/* Rows of an epoch of the first list, at most. */
static inline int mgl_limits_first_rows(const mgl_limits *limits)
{
    return limits->few > 0 ? limits->few : limits->rows;
}

enum {
    MGL_PENDING_BYTES = 32768, /* of a program's text that leaves it out */
    /* what the numbers of mgl_exec are at most, or at least */
    MGL_MAX_PAGE_BYTES = 65536,
    MGL_MIN_PAGES = 2, /* of the ring */
    MGL_MAX_PAGES = 64,
    MGL_MAX_WARPS = 16,
    MGL_STAGE_UNIT = 1024, /* of which the stage is a multiple */
    MGL_MAX_STAGE_BYTES = 131072,
    MGL_MAX_STREAM_BYTES = 1 << 20 /* in flight, pending, and prefetched: each */
};

/* How the CUDA VM streams; no meaning on the CPU. */
typedef struct mgl_exec {
    int page_bytes; /* of the ring; a multiple of MGL_BLOCK_BYTES */
    int ring_pages;
    int warps;          /* that compute */
    int stage_bytes;    /* shared memory for activations */
    int flight_bytes;   /* of the tape, on their way to the ring at most */
    int pending_bytes;  /* the same while the queue waits for an edge */
    int prefetch_bytes; /* asked into the L2 cache ahead of the ring; 0: none */
} mgl_exec;

enum { MGL_MAX_SETS = 8 }; /* of a flagged buffer */

enum { MGL_TUNED_NAME = 64 }; /* bytes of the name of a tuned entry, at most */

typedef struct mgl_program {
    mgl_target target;
    mgl_geometry geometry;
    mgl_limits limits;
    mgl_exec exec;
    mgl_weight_format weight_format; /* of the matrices on tapes; f32 on a CPU: each has its own */
    mgl_dtype embedding_dtype;       /* of the embedding table; f32 on a CPU: any */
    mgl_dtype exchange_dtype;        /* of what queues exchange, beside f32 */
    mgl_dtype kv_dtype;              /* of the KV buffers */
    char tuned[MGL_TUNED_NAME + 1];  /* the entry that it was lowered with (schedule/tuned.h), or
                                        ""; says where the program is from, and nothing else */
    char tuned_digest[MGL_SHA256_HEX]; /* that entry's mgl_tuned_digest, or "" */
    mgl_program_tensor *tensors;
    mgl_buffer *buffers;
    mgl_counter *counters;
    mgl_queue *queues;
    mgl_task *tasks;
    mgl_region *regions;
    mgl_segment *segments;
    mgl_wait *waits;
    int *signals; /* indices of counters */
    int tensor_count, buffer_count, counter_count, queue_count, task_count, region_count,
        segment_count, wait_count, signal_count;
    struct mgl_program *many;        /* the second list; NULL: there is none */
    bool second;                     /* it is the second list of another program */
    struct mgl_program_store *store; /* capacities and names */
} mgl_program;

mgl_status mgl_program_new(mgl_program **out, mgl_error *err);
void mgl_program_free(mgl_program *program); /* NULL is fine */

/* Building: each appends and hands out the index through the return value, -1 when memory ran out
 * (sticky: mgl_program_failed tells once at the end). Names are copied. Tasks are appended to the
 * newest queue, regions, segments and edges to the newest task; all `in` before all `out`. */
int mgl_program_add_tensor(mgl_program *program, const char *name, const char *checkpoint,
                           mgl_weight_format format, int rank, int64_t rows, int64_t cols);
int mgl_program_add_buffer(mgl_program *program, const mgl_buffer *buffer); /* name is copied */
int mgl_program_add_counter(mgl_program *program, const char *name);
int mgl_program_add_queue(mgl_program *program);
int mgl_program_add_task(mgl_program *program, mgl_op op);
void mgl_program_set_variant(mgl_program *program, mgl_variant variant); /* of the newest task */
int mgl_program_add_in(mgl_program *program, const mgl_region *region);
int mgl_program_add_out(mgl_program *program, const mgl_region *region);
int mgl_program_add_segment(mgl_program *program, const mgl_segment *segment);
int mgl_program_add_wait(mgl_program *program, int counter, int64_t threshold);
int mgl_program_add_signal(mgl_program *program, int counter);
bool mgl_program_failed(const mgl_program *program);
/* Declares the tensors, buffers and counters of another program, in their order. */
void mgl_program_declare_all(mgl_program *program, const mgl_program *from);
/* Adds the second list: the first one's settings, with `limits.many` rows, and all that it has
 * declared so far, which must be everything. */
mgl_status mgl_program_add_second(mgl_program *program, mgl_error *err);
/* The list that declares everything: the second, where there is one. */
static inline const mgl_program *mgl_program_whole(const mgl_program *program)
{
    return program->many ? program->many : program;
}

/* Whether tokens can have penalties: sample counts them, of either list. */
bool mgl_program_has_penalties(const mgl_program *program);

/* Whether a matrix of this format can stand on a tape of the program. In f32 a CPU takes any: its
 * products widen exactly what they read. */
bool mgl_program_takes_format(const mgl_program *program, mgl_weight_format format);
/* Whether rows can be gathered from a table of this dtype: the same for the embedding. */
bool mgl_program_takes_table(const mgl_program *program, mgl_dtype dtype);
/* Lets weights, the embedding, what queues exchange and the cache have one dtype. */
void mgl_program_set_dtype(mgl_program *program, mgl_dtype dtype);
/* Whether they have. */
bool mgl_program_is_all(const mgl_program *program, mgl_dtype dtype);

/* Whether region b goes on, in one dimension, where region a ends: then a becomes both. */
bool mgl_region_join(mgl_region *a, const mgl_region *b);
/* Whether two regions of a buffer have an element in common. What is not fixed is everything, but
 * that two shares of one number of shares are not. */
bool mgl_regions_meet(const mgl_region *a, const mgl_region *b, int rank);

/* The same in every field, names by their letters, floats bit for bit; the lines of the text, which
 * are no part of what a program is, do not count. */
bool mgl_program_equal(const mgl_program *a, const mgl_program *b);

/* The same declaration, but for its line. */
bool mgl_program_same_tensor(const mgl_program_tensor *a, const mgl_program_tensor *b);
bool mgl_program_same_buffer(const mgl_buffer *a, const mgl_buffer *b);

/* ---- the list of ops ----------------------------------------------------------------------------
 */

enum { MGL_MAX_OPERANDS = 12 };

/* What the dtype of an operand must be. */
typedef enum mgl_operand_dtype {
    MGL_OPERAND_F32,
    MGL_OPERAND_I32,
    MGL_OPERAND_EMBEDDING, /* mgl_program_takes_table */
    MGL_OPERAND_CACHE,     /* program.kv_dtype */
    MGL_OPERAND_EXCHANGE   /* f32 or program.exchange_dtype, as the buffer was declared */
} mgl_operand_dtype;

typedef struct mgl_operand {
    const char *name;
    mgl_space space;
    mgl_operand_dtype dtype;
    const char *ranges; /* one letter a dimension: see ops.def */
    bool out;
    bool optional;    /* a task may leave it out, with those of its kind behind it: an optional
                         output, or an extra input */
    const char *over; /* the input that an output may be the same rectangle as; NULL: none */
} mgl_operand;

typedef struct mgl_op_info {
    const char *name;
    mgl_family family;
    mgl_step step;     /* O is DOWN where its input is what norm_swiglu made */
    mgl_layout layout; /* of its segments; MGL_LAYOUT_NONE: none */
    int segment_most;
    int in_count, out_count;     /* inputs that every task has; outputs, optional ones too */
    int out_least;               /* outputs that every task has; the others are optional */
    int extra_count;             /* extra inputs */
    const mgl_operand *operands; /* (in_count + out_count + extra_count): in, out, extra */
    const char *meaning;
} mgl_op_info;

/* The row of an op; of a number that is none, a row named "unknown" without operands. */
const mgl_op_info *mgl_op_get(mgl_op op);
bool mgl_op_is_known(mgl_op op);
bool mgl_op_parse(const char *name, size_t length, mgl_op *out);

static inline bool mgl_op_is_attention(mgl_op op)
{
    return mgl_op_get(op)->family == MGL_FAMILY_ATTENTION;
}

/* Whether the op is attention of either list. */
static inline bool mgl_op_attends(mgl_op op)
{
    return mgl_op_is_attention(op) || op == MGL_OP_ATTEND_ROWS;
}

/* Whether the op makes logits: head, or scaled_head. */
static inline bool mgl_op_heads(mgl_op op)
{
    return mgl_op_get(op)->step == MGL_STEP_HEAD;
}

/* Biases of a product: its extra inputs, but that a head's are none. */
static inline int mgl_task_biases(const mgl_task *task)
{
    const bool none = task->segments.count == 0 || mgl_op_heads(task->op);
    return none ? 0 : task->in.count - mgl_op_get(task->op)->in_count;
}

/* Whether the op adds a product to the residual: linear_add, or merge_add. */
static inline bool mgl_op_adds(mgl_op op)
{
    return mgl_op_get(op)->step == MGL_STEP_O;
}

/* The place of an operand (MGL_OPERAND) among the task's regions, which are its inputs, then its
 * outputs; -1: the task leaves it out. */
static inline int mgl_task_place(const mgl_task *task, int operand)
{
    const mgl_op_info *op = mgl_op_get(task->op);
    const int out = operand - op->in_count, extra = out - op->out_count;
    if (out < 0)
        return operand;
    if (extra < 0)
        return out < task->out.count ? task->in.count + out : -1;
    return op->in_count + extra < task->in.count ? op->in_count + extra : -1;
}

/* The operand that stands at a place: the way back. */
static inline int mgl_task_operand_at(const mgl_task *task, int place)
{
    const mgl_op_info *op = mgl_op_get(task->op);
    if (place < op->in_count)
        return place;
    return place < task->in.count ? place + op->out_count : place - task->in.count + op->in_count;
}

/* The region of an operand; NULL: the task leaves it out. */
static inline mgl_region *mgl_task_operand(const mgl_program *program, const mgl_task *task,
                                           int operand)
{
    const int place = mgl_task_place(task, operand);
    return place < 0 ? NULL : &program->regions[task->in.first + place];
}

/* The region of its first output: what it is there for. */
static inline mgl_region *mgl_task_result(const mgl_program *program, const mgl_task *task)
{
    return &program->regions[task->out.first];
}

/* Columns of what a product multiplies: its input's, or those of all heads that it merges. */
static inline int64_t mgl_task_inputs(const mgl_program *program, const mgl_task *task)
{
    const mgl_region *in = mgl_task_operand(program, task, MGL_PRODUCT_INPUT);
    const mgl_range *range = &in->ranges[task->op == MGL_OP_MERGE_ADD ? 2 : 1];
    const int64_t each = task->op == MGL_OP_MERGE_ADD ? program->geometry.head_dim : 1;
    return (range->hi - range->lo) * each;
}

/* The operands of an op of attention; MGL_NO_OPERAND for what it does not have. */
typedef struct mgl_attention_operands {
    int q, k, v, rope, k_past, v_past;
    int part; /* the partial of a split */
    int k_now, v_now;
    int q_g, k_g; /* extra: the norms of q and k */
} mgl_attention_operands;
const mgl_attention_operands *mgl_op_attention(mgl_op op);

/* ---- geometry of the tape
 * ------------------------------------------------------------------------- */

/* The format of a segment's weights: that of its tensor, or of both. */
static inline mgl_weight_format mgl_segment_format(const mgl_program *program,
                                                   const mgl_segment *segment)
{
    return program->tensors[segment->tensor].format;
}
/* k blocks of a row of a segment. */
int64_t mgl_segment_blocks(const mgl_program *program, const mgl_segment *segment);
/* Bytes of a row group of one of its tensors. */
int64_t mgl_segment_group_bytes(const mgl_program *program, const mgl_segment *segment);
/* Bytes of a segment: row groups x bytes of one x tensors. */
int64_t mgl_segment_bytes(const mgl_program *program, const mgl_segment *segment);
/* Rows of a segment that become output columns: row_hi - row_lo. */
int64_t mgl_segment_rows(const mgl_segment *segment);

#endif
