/*
 * The reference implementation of the ops in plain C over the packed bytes.
 * instructions/<op>/<op>.c defines an op; every machine's own code is tested against it. Used by
 * the CPU VM and explore.
 *
 * An op receives one call: its task and the addresses of buffers and tapes. Every address comes
 * from the task's regions and segments, so the program's text shows the whole footprint. Sums of
 * products use one fixed order (mgl_dot). Results do not depend on other tasks' timing, so a
 * program gives the same bits in any order of its queues.
 */
#ifndef MGL_INSTRUCTIONS_REFERENCE_REFERENCE_H
#define MGL_INSTRUCTIONS_REFERENCE_REFERENCE_H

#include "schedule/program.h"
#include "schedule/step.h"

/* The copy that `enter` makes for the queue; all later tasks of the queue in the epoch use it. */
typedef struct mgl_epoch_rows {
    int32_t go;        /* 0: the queue leaves */
    int32_t rows;      /* of this epoch */
    int32_t epoch;     /* its number */
    int32_t next_list; /* list of the following epoch: MGL_CONTROL_NEXT */
    int32_t turn;      /* number of earlier epochs of this list, which selects the set of a
                          buffer; set by the caller that steps the queue */
    int32_t table[MGL_MAX_SECOND_ROWS * MGL_TABLE_WORDS];
} mgl_epoch_rows;

/* Arithmetic of attention: the plain loops, or a machine's own code with the same meaning. */
typedef struct mgl_arithmetic {
    float (*dot)(const float *a, const float *b, int64_t n);               /* sum of a[i] b[i] */
    void (*add_scaled)(float *to, float scale, const float *v, int64_t n); /* to[i] += scale v[i] */
} mgl_arithmetic;

typedef struct mgl_call {
    const mgl_program *program;
    const mgl_task *task;
    void *const *buffers;     /* (buffer_count) */
    const void *const *tapes; /* (segments of the task) the tape of each segment */
    mgl_epoch_rows *epoch;
    float *scratch;       /* mgl_reference_scratch(program) floats */
    const int32_t *asked; /* (MGL_ASKED_WORDS) requests of the host; only sample reads them */
    int32_t *likely;      /* (sequences, capacity, 1 + 2 likely), see schedule/step.h; sample writes
                             it on request */
    const mgl_arithmetic *arithmetic; /* NULL: the plain loops */
    const float *now; /* (rows, 2, head_dim) with attend_rows: this epoch's keys and values as
                         the cache stores them; else NULL */
} mgl_call;

typedef void mgl_op_fn(const mgl_call *call);

/* The reference of an op; NULL if there is no such op. */
mgl_op_fn *mgl_reference_op(mgl_op op);

/* Maximum floats of scratch of the program's ops. */
size_t mgl_reference_scratch(const mgl_program *program);

#define MGL_OP(id, name, ...) mgl_op_fn mgl_reference_##name;
#include "instructions/ops.def"

/* ---- for the ops ----------------------------------------------------------------------------- */

static inline const mgl_region *mgl_call_in(const mgl_call *call, int i)
{
    return &call->program->regions[call->task->in.first + i];
}

static inline const mgl_region *mgl_call_out(const mgl_call *call, int i)
{
    return &call->program->regions[call->task->out.first + i];
}

/* The region of an operand, MGL_CALL(call, norm_linear, x); NULL if the task omits it. */
#define MGL_CALL(call, op, name) mgl_call_operand(call, MGL_OPERAND(op, name))
static inline const mgl_region *mgl_call_operand(const mgl_call *call, int operand)
{
    return mgl_task_operand(call->program, call->task, operand);
}

static inline const mgl_buffer *mgl_call_buffer(const mgl_call *call, const mgl_region *region)
{
    return &call->program->buffers[region->buffer];
}

/* Elements between neighbors in dimension `dim`; dim -1: elements of one set. */
static inline int64_t mgl_buffer_stride(const mgl_buffer *buffer, int dim)
{
    int64_t stride = 1;
    for (int i = dim + 1; i < buffer->rank; i++)
        stride *= buffer->extents[i].count;
    return stride;
}

/* A region's first element (row 0, position 0 for symbols), in the buffer's set for this epoch;
 * for `clear` in the set of the next epoch. */
void *mgl_call_at(const mgl_call *call, const mgl_region *region);

/* The row factors of a tensor of a segment, from the segment's first row on; NULL: it has none.
 * `which`: 0, or 1 for the second tensor. */
const float *mgl_call_factors(const mgl_call *call, const mgl_segment *segment, int which);

/* The column map of a tensor of a segment: column i of the segment is column order[i] of the
 * tensor. NULL: columns are not reordered. `which`: as above. */
const int32_t *mgl_call_order(const mgl_call *call, const mgl_segment *segment, int which);

/* Row r of a (rows, columns) region of f32, from its first column on. */
float *mgl_call_row(const mgl_call *call, const mgl_region *region, int r);

/* Loads columns [column, column + n) of row r of a (rows, columns) activation, counted from the
 * region's first column, as f32 into `to`. */
void mgl_call_load(const mgl_call *call, const mgl_region *region, int r, int64_t column, int64_t n,
                   float *to);

/* Stores them: the inverse of mgl_call_load. */
void mgl_call_store(const mgl_call *call, const mgl_region *region, int r, int64_t column,
                    int64_t n, const float *from);

/* Whether row r of the epoch is an unsplit row: its sequence has at most limits.unsplit positions
 * from earlier epochs. */
bool mgl_call_is_unsplit(const mgl_call *call, int r);

/* Whether a region has row r of the epoch. A region of unsplit rows has no split row, and a region
 * of split rows has no unsplit row; shares of the rows are not considered. */
bool mgl_call_has_row(const mgl_call *call, const mgl_region *region, int r);

/* Calls `each` for every run of bytes of a region of `rows` rows, one run for each line of the last
 * dimension, until a call returns false. Returns whether all calls returned true. */
typedef bool mgl_run_fn(void *run, size_t bytes);
bool mgl_call_each_run(const mgl_call *call, const mgl_region *region, int rows, mgl_run_fn *each);

/* Whether every word of a flag region is written, for the rows of this epoch. */
bool mgl_call_written(const mgl_call *call, const mgl_region *region);

/* Converts n values to `dtype`, rounding to nearest even. NaN becomes 0x7FFFFFFF or 0x7FFF, so
 * that no value equals the "not written" word. */
void mgl_publish(void *to, mgl_dtype dtype, const float *from, int64_t n);

/* Dot product in a fixed order: product i is added to partial sum i mod 16, in order of i. The
 * 16 sums are added pairwise: (p0 + p8, p1 + p9, ...), then 4 apart, 2 apart, 1 apart. */
float mgl_dot(const float *a, const float *b, int64_t n);

/* to[i] = x[i] / sqrt(mean(x^2) + eps) * g[i], in Hugging Face's order (modeling_llama.py,
 * LlamaRMSNorm): x is multiplied by the reciprocal root, then by g. */
void mgl_rms_norm(float *to, const float *x, const float *g, int64_t n, float eps);

/* Whether the op reads a gamma_scaled value and divides it by its root mean square. */
static inline bool mgl_op_scales(mgl_op op)
{
    return op == MGL_OP_RMS_LINEAR || op == MGL_OP_RMS_SWIGLU || op == MGL_OP_RMS_HEAD;
}

/* Normalizes row r (width) of a product's input in place. `by` is the second operand: the norm's
 * weight, or if mgl_op_scales, the parts of the sum of squares. */
void mgl_call_norm(const mgl_call *call, const mgl_region *by, int r, float *row, int64_t width);

/* For each row of y (f32), writes the row times the columns of g to n, and the sum of squares of
 * the row to s. Uses as many floats of call->scratch as y has columns. */
void mgl_call_scale_by_gamma(const mgl_call *call, const mgl_region *y, const mgl_region *g,
                             const mgl_region *n, const mgl_region *s);

/* silu(gate) * up, silu(z) = z / (1 + exp(-z)) in f32. */
float mgl_swiglu(float gate, float up);

/* Rotates a head (head_dim) by row `rope` of the rope table, in Hugging Face's rotate_half
 * convention: elements i and i + head_dim / 2 are a pair. */
void mgl_rope(float *to, const float *x, const float *rope, int head_dim);

/* The first row of the sequence that row r belongs to. Its position is the number of positions
 * written before this epoch. */
static inline int mgl_call_first_row(const mgl_call *call, int r)
{
    return mgl_step_first_row(call->epoch->table, r);
}

static inline const int32_t *mgl_call_table(const mgl_call *call, int r)
{
    return call->epoch->table + r * MGL_TABLE_WORDS;
}

/* ---- attention (attention.c) ---------------------------------------------------------------- */

/* An attention op runs in three steps. Append writes new keys and values to the cache.
 * mgl_attention_now fills call->now for attend_rows. Then each item is one head of one row;
 * items are independent and need mgl_attention_scratch floats each. */
void mgl_attention_append(const mgl_call *call);
/* Fills the first mgl_attention_now_floats(program) floats of call->scratch and returns them. NULL
 * if the op reads this epoch's keys and values from the cache. */
const float *mgl_attention_now(const mgl_call *call);
size_t mgl_attention_now_floats(const mgl_program *program);
int mgl_attention_items(const mgl_call *call); /* rows x heads of the task */
void mgl_attention_item(const mgl_call *call, int item);
size_t mgl_attention_scratch(const mgl_program *program);

/* Runs all steps of an attention task. */
void mgl_attention_all(const mgl_call *call);

#endif
