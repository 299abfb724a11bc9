/*
 * The reference: what each op does, in plain C, over the packed bytes. instructions/<op>/<op>.c is
 * the definition that every machine's own code is tested against.
 *
 * An op gets one call: its task and where things are. Every address is taken from the task's
 * regions and segments, so the footprint is what the text of the program says. Sums of products run
 * in one stated order (mgl_dot); nothing depends on what ran before or elsewhere, so the same
 * program gives the same bits in whatever order its queues run.
 */
#ifndef MGL_INSTRUCTIONS_REFERENCE_H
#define MGL_INSTRUCTIONS_REFERENCE_H

#include "schedule/program.h"
#include "schedule/step.h"

/* What `enter` copies to the queue; all later tasks of the queue in the epoch read this copy. */
typedef struct mgl_epoch_rows {
    int32_t go;        /* 0: the queue leaves */
    int32_t rows;      /* of this epoch */
    int32_t epoch;     /* its number */
    int32_t next_list; /* the list of the epoch behind it: MGL_CONTROL_NEXT */
    int32_t turn;      /* epochs of its list before it, which say what set of a buffer it uses; kept
                          by whoever steps the queue */
    int32_t table[MGL_MAX_SECOND_ROWS * MGL_TABLE_WORDS];
} mgl_epoch_rows;

/* What attention computes with: the plain loops, or a machine's own of the same meaning. */
typedef struct mgl_arithmetic {
    float (*dot)(const float *a, const float *b, int64_t n);               /* sum of a[i] b[i] */
    void (*add_scaled)(float *to, float scale, const float *v, int64_t n); /* to[i] += scale v[i] */
} mgl_arithmetic;

typedef struct mgl_call {
    const mgl_program *program;
    const mgl_task *task;
    void *const *buffers;     /* (buffer_count) */
    const void *const *tapes; /* (segments of the task) the tape that each is on */
    mgl_epoch_rows *epoch;
    float *scratch;       /* mgl_reference_scratch(program) floats */
    const int32_t *asked; /* (MGL_ASKED_WORDS) of the host: read by sample alone */
    int32_t *likely; /* (sequences, capacity, 1 + 2 likely) of schedule/step.h: written by sample
                        where it is asked to */
    const mgl_arithmetic *arithmetic; /* NULL: the plain loops */
    const float *now; /* (rows, 2, head_dim) of attend_rows: this epoch's keys and values as the
                         cache keeps them, else NULL */
} mgl_call;

typedef void mgl_op_fn(const mgl_call *call);

/* The reference of an op; NULL: there is no such op. */
mgl_op_fn *mgl_reference_op(mgl_op op);

/* Floats of scratch that any op of the program needs. */
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

/* The region of an operand, MGL_CALL(call, norm_linear, x); NULL when the task leaves it out. */
#define MGL_CALL(call, op, name) mgl_call_operand(call, MGL_OPERAND(op, name))
static inline const mgl_region *mgl_call_operand(const mgl_call *call, int operand)
{
    return mgl_task_operand(call->program, call->task, operand);
}

static inline const mgl_buffer *mgl_call_buffer(const mgl_call *call, const mgl_region *region)
{
    return &call->program->buffers[region->buffer];
}

/* Columns of a slice, in dimension `dim`. */
static inline int64_t mgl_region_width(const mgl_region *region, int dim)
{
    return region->ranges[dim].hi - region->ranges[dim].lo;
}

/* Elements between neighbours in dimension `dim`; of one set: dim -1. */
static inline int64_t mgl_buffer_stride(const mgl_buffer *buffer, int dim)
{
    int64_t stride = 1;
    for (int i = dim + 1; i < buffer->rank; i++)
        stride *= buffer->extents[i].count;
    return stride;
}

/* A region's first element (row 0, position 0 where these are symbols), in the set of its buffer
 * that the task means: that of the epoch, and `clear` that of the next one. */
void *mgl_call_at(const mgl_call *call, const mgl_region *region);

/* Row r of a (rows, columns) region of f32, from its first column on. */
float *mgl_call_row(const mgl_call *call, const mgl_region *region, int r);

/* Columns [column, column + n) of row r of a (rows, columns) activation, counted from the region's
 * first, as f32 into `to`. */
void mgl_call_load(const mgl_call *call, const mgl_region *region, int r, int64_t column, int64_t n,
                   float *to);

/* The way back. */
void mgl_call_store(const mgl_call *call, const mgl_region *region, int r, int64_t column,
                    int64_t n, const float *from);

/* Calls `each` with the runs of bytes of a region of `rows` rows, one a line of the last dimension,
 * until it answers false. Whether it never did. */
typedef bool mgl_run_fn(void *run, size_t bytes);
bool mgl_call_each_run(const mgl_call *call, const mgl_region *region, int rows, mgl_run_fn *each);

/* Whether every word of a flag region, of the rows of this epoch, is written. */
bool mgl_call_written(const mgl_call *call, const mgl_region *region);

/* Publishes n values as `dtype`: rounded to nearest, ties to even, and a NaN as 0x7FFFFFFF or
 * 0x7FFF, so that no value looks like a word that is not written. */
void mgl_publish(void *to, mgl_dtype dtype, const float *from, int64_t n);

/* sum of a[i] b[i]: product i goes to partial sum i mod 16, each partial sum adds its products in
 * order, and the 16 are added pairwise: (p0 + p8, p1 + p9, ...), then 4 apart, 2 apart, 1 apart. */
float mgl_dot(const float *a, const float *b, int64_t n);

/* to[i] = x[i] / sqrt(mean(x^2) + eps) * g[i], in Hugging Face's order (modeling_llama.py,
 * LlamaRMSNorm): x is multiplied by the reciprocal root, then by g. */
void mgl_rms_norm(float *to, const float *x, const float *g, int64_t n, float eps);

/* Whether the op reads a value that was weighed, and divides it by its root mean square itself. */
static inline bool mgl_op_scales(mgl_op op)
{
    return op == MGL_OP_SCALED_LINEAR || op == MGL_OP_SCALED_SWIGLU || op == MGL_OP_SCALED_HEAD;
}

/* 1 / sqrt(sum of row r of s / hidden + eps): what scales row r of a weighed value. */
float mgl_call_scale(const mgl_call *call, const mgl_region *s, int r);

/* Norms row r (width) of what the task multiplies, in place; `by` is its second operand: the norm's
 * weight, or where the op scales the parts of the sum of squares. */
void mgl_call_norm(const mgl_call *call, const mgl_region *by, int r, float *row, int64_t width);

/* Row r of y (f32), times the columns of g, to n; and the sum of its squares to s. Uses as many
 * floats of `scratch` as y has columns. */
void mgl_call_scale_by_gamma(const mgl_call *call, int r, const mgl_region *y, const mgl_region *g,
                             const mgl_region *n, const mgl_region *s, float *scratch);

/* silu(gate) * up, silu(z) = z / (1 + exp(-z)) in f32. */
float mgl_swiglu(float gate, float up);

/* Rotates a head (head_dim) by row `rope` of the rope table, in Hugging Face's rotate_half
 * convention: elements i and i + head_dim / 2 are a pair. */
void mgl_rope(float *to, const float *x, const float *rope, int head_dim);

/* The first row of the sequence that row r belongs to, and the positions written before this
 * epoch. */
static inline int mgl_call_first_row(const mgl_call *call, int r)
{
    return mgl_step_first_row(call->epoch->table, r);
}

static inline const int32_t *mgl_call_table(const mgl_call *call, int r)
{
    return call->epoch->table + r * MGL_TABLE_WORDS;
}

/* ---- attention (instructions/attend/attention.c) --------------------------------------------- */

/* The attention ops are three steps: what the task appends to the cache; of attend_rows, what the
 * call has as `now`; then a head of a row after the other, each of which needs nothing of the
 * others and mgl_attention_scratch floats. */
void mgl_attention_append(const mgl_call *call);
/* Fills `to`, mgl_attention_now_floats(program) of them, and returns it; NULL where the op takes
 * this epoch's keys and values from the cache. */
const float *mgl_attention_now(const mgl_call *call, float *to);
size_t mgl_attention_now_floats(const mgl_program *program);
int mgl_attention_items(const mgl_call *call); /* rows x heads of the task */
void mgl_attention_item(const mgl_call *call, int item);
size_t mgl_attention_scratch(const mgl_program *program);

/* All of an attention task. */
void mgl_attention_all(const mgl_call *call);

#endif
