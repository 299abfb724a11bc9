/*
 * Multi-threaded vector implementation of the ops that stream weights, attention, and embedding
 * lookup. machine.c calls mgl_fast_execute; all other ops use the reference.
 *
 * Linear ops are split at row groups, attention at heads of rows. One thread computes each output
 * in one order, so results do not depend on the number of threads or on the split. The order of
 * sums equals the reference's; multiply and add are fused. If the columns of a tensor are
 * reordered, each task gathers the input rows once, in the order of the column map, and the sums
 * have this order.
 */
#include "base/assert.h"
#include "instructions/embed/embed.h"
#include "instructions/head/head.h"
#include "instructions/merge/merge.h"
#include "instructions/reference/linear.h"
#include "schedule/unpack.h"
#include "vm/cpu/machine.h"

#include <string.h>

enum {
    SINGLE_BYTES = 128 << 10, /* bytes of tape times rows; smaller tasks use one thread */
    LEAST_ITEM = 32 << 10,    /* bytes of tape per item, at least */
    MOST_ITEM = 1 << 20,      /* at most; the first weights of an item are not prefetched */
    ITEMS = 4 /* minimum number of items per thread, for load balance when a thread is delayed */
};

/* Runs items on the pool's threads. An end other than DONE is stored in the machine. */
static void share(mgl_machine *m, size_t count, mgl_pool_fn *work, void *user)
{
    mgl_pool_end end = mgl_pool_run(m->pool, count, m->abort, work, user);
    if (end != MGL_POOL_DONE)
        m->end = end;
}

/* ---- products ------------------------------------------------------------------------------- */

/* A product of a task, split over the threads. */
struct product {
    const mgl_machine *machine;
    const mgl_run *run; /* segments */
    int64_t x_stride, to_stride;
    int rows;
    float *to;    /* (rows, to_stride): the outputs of the segments, one segment after the
                     other */
    float *to2;   /* outputs of the second tensor (up); NULL: no SwiGLU */
    int64_t step; /* row groups per item */
    const float *x[MGL_CPU_SEGMENTS +
                   1]; /* input of each tensor: (rows, x_stride), zeros after the inputs */
    const float *factors[MGL_CPU_SEGMENTS + 1]; /* row factors of each tensor, as bias */
    const float *bias[MGL_CPU_SEGMENTS + 1]; /* of each tensor, from its segment's first row on; or
                                                NULL */
    int64_t items[MGL_CPU_SEGMENTS + 1];     /* first item of each segment; last: their number */
    int64_t columns[MGL_CPU_SEGMENTS + 1];   /* first output column of each segment; last: their
                                                number */
};

/* Columns of a padded row: whole blocks of every format. */
static int64_t padded(int64_t columns)
{
    return (columns + MGL_FORMAT_COLUMNS - 1) / MGL_FORMAT_COLUMNS * MGL_FORMAT_COLUMNS;
}

static const mgl_segment *segment_at(const mgl_call *call, int i)
{
    return &call->program->segments[call->task->segments.first + i];
}

/* Multiplies outputs [lo, end) of all rows by row factors, if not NULL. */
static void scale_outputs(const struct product *p, const float *factors, float *to, int64_t lo,
                          int64_t end)
{
    for (int r = 0; factors && r < p->rows; r++)
        for (int64_t i = lo; i < end; i++)
            to[r * p->to_stride + i] *= factors[i];
}

/* Adds a bias, if not NULL, to outputs [lo, end) of all rows. */
static void add_bias(const struct product *p, const float *bias, float *to, int64_t lo, int64_t end)
{
    for (int r = 0; bias && r < p->rows; r++)
        for (int64_t i = lo; i < end; i++)
            to[r * p->to_stride + i] += bias[i];
}

/* Computes one item of the outputs, with bias and SwiGLU. */
static void multiply_item(void *user, int worker, size_t number)
{
    const struct product *p = user;
    const mgl_machine *m = p->machine;
    int64_t item = (int64_t)number;
    int s = 0;
    while (item >= p->items[s + 1])
        s++;
    const mgl_cpu_segment *segment = &m->segments[p->run->first + s];
    float *lane = m->lanes + (size_t)worker * m->lane;
    int64_t outputs = p->columns[s + 1] - p->columns[s], lo = (item - p->items[s]) * p->step;
    int64_t hi = lo + p->step, groups = (outputs + MGL_ROW_GROUP - 1) / MGL_ROW_GROUP;
    float *to = p->to + p->columns[s], *to2 = p->to2;
    hi = hi < groups ? hi : groups;
    m->products.multiply(&segment->matrix[0], lo, hi, outputs, p->x[s], p->x_stride, p->rows, to,
                         p->to_stride, lane);
    int64_t end = hi * MGL_ROW_GROUP < outputs ? hi * MGL_ROW_GROUP : outputs;
    scale_outputs(p, p->factors[s], to, lo * MGL_ROW_GROUP, end);
    add_bias(p, p->bias[s], to, lo * MGL_ROW_GROUP, end);
    if (!to2)
        return;
    m->products.multiply(&segment->matrix[1], lo, hi, outputs, p->x[1], p->x_stride, p->rows, to2,
                         p->to_stride, lane);
    scale_outputs(p, p->factors[1], to2, lo * MGL_ROW_GROUP, end);
    add_bias(p, p->bias[1], to2, lo * MGL_ROW_GROUP, end);
    for (int r = 0; r < p->rows; r++)
        for (int64_t i = lo * MGL_ROW_GROUP; i < end; i++)
            to[r * p->to_stride + i] =
                mgl_swiglu(to[r * p->to_stride + i], to2[r * p->to_stride + i]);
}

/* Row groups per item of a task that streams `bytes` bytes, `group` of them per row group. */
static int64_t step_of(const mgl_machine *m, int64_t bytes, int rows, int64_t group)
{
    int64_t item = bytes / (ITEMS * mgl_pool_threads(m->pool));
    if (bytes * rows <= SINGLE_BYTES)
        return INT32_MAX;
    item = item < LEAST_ITEM ? LEAST_ITEM : item > MOST_ITEM ? MOST_ITEM : item;
    return item > group ? item / group : 1;
}

/* The bias of one of the task's tensors, from the first row of its segment on; or NULL. */
static const float *bias_of(const mgl_call *call, int tensor, const mgl_segment *segment)
{
    const float *bias = mgl_call_bias(call, tensor);
    return bias ? bias + segment->row_lo : NULL;
}

/* Rows for which the scratch memory has room. */
static int64_t rows_of(const mgl_call *call)
{
    return mgl_limits_most(&call->program->limits);
}

/* Number of tensors of a task whose columns are reordered. */
static int reordered_tensors(const mgl_program *program, const mgl_task *task)
{
    int count = 0;
    for (int s = task->segments.first; s < task->segments.first + task->segments.count; s++) {
        const mgl_segment *segment = &program->segments[s];
        count += program->tensors[segment->tensor].order >= 0;
        count += segment->tensor2 >= 0 && program->tensors[segment->tensor2].order >= 0;
    }
    return count;
}

/* Returns the input (rows, stride) of a product with a tensor: x, or if the columns of the tensor
 * are reordered, a copy whose columns have the order of its column map. The copies are in scratch
 * after the inputs; *copies counts them. */
static const float *reorder(const mgl_call *call, const mgl_segment *segment, int which,
                            const float *x, int64_t stride, int rows, int *copies)
{
    const int32_t *order = mgl_call_order(call, segment, which);
    const int64_t columns = segment->col_hi - segment->col_lo;
    if (!order)
        return x;
    float *to = call->scratch + rows_of(call) * stride * ++*copies;
    for (int r = 0; r < rows; r++) {
        float *row = to + r * stride;
        for (int64_t i = 0; i < columns; i++)
            row[i] = x[r * stride + order[i]];
        memset(row + columns, 0, (size_t)(stride - columns) * sizeof *row);
    }
    return to;
}

/* Multiplies x by all segments of the task, into `to`. For g8x2: silu(x W^T) * (x W2^T). */
static void multiply(mgl_machine *m, const mgl_call *call, const float *x, int64_t x_stride,
                     int rows, float *to, int64_t to_stride, float *to2)
{
    struct product p = {.machine = m,
                        .run = &call->task->segments,
                        .x_stride = x_stride,
                        .to_stride = to_stride,
                        .rows = rows,
                        .to = to,
                        .to2 = to2};
    const mgl_matrix *first = &m->segments[p.run->first].matrix[0];
    int64_t bytes = 0;
    int copies = 0;
    for (int s = 0; s < p.run->count; s++)
        bytes += mgl_segment_bytes(call->program, segment_at(call, s));
    p.step = step_of(m, bytes, rows, (int64_t)first->group_stride);
    for (int s = 0; s < p.run->count; s++) {
        int64_t outputs = mgl_segment_rows(segment_at(call, s));
        int64_t groups = (outputs + MGL_ROW_GROUP - 1) / MGL_ROW_GROUP;
        p.x[s] = reorder(call, segment_at(call, s), 0, x, x_stride, rows, &copies);
        p.bias[s] = bias_of(call, s, segment_at(call, s));
        p.factors[s] = mgl_call_factors(call, segment_at(call, s), 0);
        p.columns[s + 1] = p.columns[s] + outputs;
        p.items[s + 1] = p.items[s] + (groups + p.step - 1) / p.step;
    }
    if (to2) {
        p.x[1] = reorder(call, segment_at(call, 0), 1, x, x_stride, rows, &copies);
        p.bias[1] = bias_of(call, 1, segment_at(call, 0));
        p.factors[1] = mgl_call_factors(call, segment_at(call, 0), 1);
    }
    share(m, (size_t)p.items[p.run->count], multiply_item, &p);
}

/* Output columns of a task: the rows of its segments. */
static int64_t outputs_of(const mgl_call *call)
{
    int64_t rows = 0;
    for (int s = 0; s < call->task->segments.count; s++)
        rows += mgl_segment_rows(segment_at(call, s));
    return rows;
}

/* Prepares an input row of `width` values for the products: keeps the columns of the task's
 * segments and zeros the rest. */
static void pad_row(const mgl_call *call, float *row, int64_t width, int64_t stride)
{
    const mgl_segment *segment = segment_at(call, 0);
    int64_t count = segment->col_hi - segment->col_lo;
    MGL_ASSERT(count <= width);
    if (segment->col_lo > 0)
        memmove(row, row + segment->col_lo, (size_t)count * sizeof *row);
    memset(row + count, 0, (size_t)(stride - count) * sizeof *row);
}

/* Loads the task's input into scratch as padded rows. If `g` is not NULL, normalizes the rows, or
 * scales them, by `g`. */
static const float *load_inputs(const mgl_call *call, const mgl_region *g, int64_t *stride)
{
    const mgl_region *x = mgl_call_operand(call, MGL_PRODUCT_INPUT);
    int64_t width = mgl_region_width(x, 1);
    *stride = padded(width);
    for (int r = 0; r < call->epoch->rows; r++) {
        float *row = call->scratch + r * *stride;
        mgl_call_load(call, x, r, 0, width, row);
        if (g)
            mgl_call_norm(call, g, r, row, width);
        pad_row(call, row, width, *stride);
    }
    return call->scratch;
}

/* Loads the merged attention heads of all splits into scratch as padded rows. */
static const float *merge_inputs(const mgl_call *call, const mgl_region *part, int64_t *stride)
{
    int64_t width = mgl_task_inputs(call->program, call->task);
    *stride = padded(width);
    for (int r = 0; r < call->epoch->rows; r++) {
        float *row = call->scratch + r * *stride;
        mgl_merge_row(call, part, r, row);
        pad_row(call, row, width, *stride);
    }
    return call->scratch;
}

/* Place of a task's products in scratch: after its inputs and their reordered copies. */
static float *results(const mgl_call *call, int64_t stride)
{
    return call->scratch +
           rows_of(call) * stride * (1 + reordered_tensors(call->program, call->task));
}

static void store_rows(const mgl_call *call, const mgl_region *to, const float *from, int64_t n)
{
    for (int r = 0; r < call->epoch->rows; r++)
        mgl_call_store(call, to, r, 0, n, from + r * n);
}

static void fast_norm_linear(mgl_machine *m, const mgl_call *call)
{
    int64_t stride, outputs = outputs_of(call);
    const float *x = load_inputs(call, MGL_CALL(call, norm_linear, g), &stride);
    float *y = results(call, stride);
    multiply(m, call, x, stride, call->epoch->rows, y, outputs, NULL);
    store_rows(call, MGL_CALL(call, norm_linear, y), y, outputs);
}

/* Computes b + x W^T into `to`, and into `copy` if not NULL. Operand b has the same number in
 * linear_add, merge_add and linear_add_gamma. */
static void add_product(mgl_machine *m, const mgl_call *call, const float *x, int64_t stride,
                        const mgl_region *to, const mgl_region *copy)
{
    int64_t outputs = outputs_of(call);
    float *y = results(call, stride), *b = y + rows_of(call) * outputs; /* (outputs) */
    multiply(m, call, x, stride, call->epoch->rows, y, outputs, NULL);
    for (int r = 0; r < call->epoch->rows; r++) {
        mgl_call_load(call, MGL_CALL(call, linear_add, b), r, 0, outputs, b);
        for (int64_t i = 0; i < outputs; i++)
            y[r * outputs + i] += b[i];
    }
    store_rows(call, to, y, outputs);
    if (copy)
        store_rows(call, copy, y, outputs);
}

static void fast_linear_add(mgl_machine *m, const mgl_call *call)
{
    int64_t stride;
    const float *x = load_inputs(call, NULL, &stride);
    add_product(m, call, x, stride, MGL_CALL(call, linear_add, y),
                MGL_CALL(call, linear_add, copy));
}

static void fast_linear_add_gamma(mgl_machine *m, const mgl_call *call)
{
    const mgl_region *y = MGL_CALL(call, linear_add_gamma, y);
    int64_t stride;
    const float *x = load_inputs(call, NULL, &stride);
    add_product(m, call, x, stride, y, NULL);
    mgl_call_scale_by_gamma(call, y, MGL_CALL(call, linear_add_gamma, g),
                            MGL_CALL(call, linear_add_gamma, n),
                            MGL_CALL(call, linear_add_gamma, s));
}

static void fast_merge_add(mgl_machine *m, const mgl_call *call)
{
    int64_t stride;
    const float *x = merge_inputs(call, MGL_CALL(call, merge_add, part), &stride);
    add_product(m, call, x, stride, MGL_CALL(call, merge_add, y), MGL_CALL(call, merge_add, copy));
}

static void fast_norm_swiglu(mgl_machine *m, const mgl_call *call)
{
    int64_t stride, outputs = outputs_of(call);
    const float *x = load_inputs(call, MGL_CALL(call, norm_swiglu, g), &stride);
    float *y = results(call, stride), *up = y + rows_of(call) * outputs;
    multiply(m, call, x, stride, call->epoch->rows, y, outputs, up);
    store_rows(call, MGL_CALL(call, norm_swiglu, y), y, outputs);
}

/* One product for each run of rows that need logits. */
static void fast_head(mgl_machine *m, const mgl_call *call)
{
    const mgl_region *y = MGL_CALL(call, head, logits);
    int rows = call->epoch->rows, end;
    int64_t stride, to_stride = mgl_buffer_stride(mgl_call_buffer(call, y), 0);
    const float *x = load_inputs(call, MGL_CALL(call, head, g), &stride);
    for (int r = 0; r < rows; r = end + 1) {
        for (end = r; end < rows && mgl_head_wants(call, end);)
            end++;
        if (end > r)
            multiply(m, call, x + r * stride, stride, end - r, mgl_call_row(call, y, r), to_stride,
                     NULL);
        for (; r < end; r++)
            mgl_head_best(call, r);
    }
}

/* ---- gamma-scaled inputs: same operand numbers, scaled by row statistics instead of normalized */

static void fast_rms_linear(mgl_machine *m, const mgl_call *call)
{
    fast_norm_linear(m, call);
}

static void fast_rms_swiglu(mgl_machine *m, const mgl_call *call)
{
    fast_norm_swiglu(m, call);
}

static void fast_rms_head(mgl_machine *m, const mgl_call *call)
{
    fast_head(m, call);
}

/* ---- attention ------------------------------------------------------------------------------ */

struct task {
    const mgl_machine *machine;
    const mgl_call *call;
};

static void attend_item(void *user, int worker, size_t item)
{
    const struct task *a = user;
    mgl_call call = *a->call;
    call.scratch = a->machine->lanes + (size_t)worker * a->machine->lane;
    mgl_attention_item(&call, (int)item);
}

static void fast_attend(mgl_machine *m, const mgl_call *call)
{
    mgl_call vectors = *call;
    vectors.arithmetic = &m->arithmetic;
    struct task a = {m, &vectors};
    mgl_attention_append(call);
    vectors.now = mgl_attention_now(call);
    share(m, (size_t)mgl_attention_items(&vectors), attend_item, &a);
}

static void fast_attend_tail(mgl_machine *m, const mgl_call *call)
{
    fast_attend(m, call);
}

static void fast_attend_past(mgl_machine *m, const mgl_call *call)
{
    fast_attend(m, call);
}

static void fast_attend_rows(mgl_machine *m, const mgl_call *call)
{
    fast_attend(m, call);
}

/* ---- the embedding -------------------------------------------------------------------------- */

/* Gathers a row of a table from the tapes; zeros if no tape has the row. */
static void gather_row(const mgl_machine *m, const mgl_buffer *table, int64_t row, float *to)
{
    const mgl_program *p = m->program;
    for (int i = 0; i < p->segment_count; i++) {
        const mgl_segment *s = &p->segments[i];
        if (row < s->row_lo || row >= s->row_hi || !mgl_weights_has_rows(p, s, table))
            continue;
        mgl_unpack_row(p, s, m->segment_tapes[i], 0, row - s->row_lo, to);
        return;
    }
    memset(to, 0, (size_t)table->extents[1].count * sizeof *to);
}

static void gather(const mgl_machine *m, const mgl_call *call, const mgl_region *y,
                   const mgl_region *copy)
{
    const mgl_region *from = MGL_CALL(call, embed, embedding);
    int64_t lo = from->ranges[1].lo, width = mgl_region_width(from, 1);
    for (int r = 0; r < call->epoch->rows; r++) {
        gather_row(m, mgl_call_buffer(call, from), mgl_call_table(call, r)[MGL_TABLE_TOKEN],
                   call->scratch);
        mgl_call_store(call, y, r, 0, width, call->scratch + lo);
        if (copy)
            mgl_call_store(call, copy, r, 0, width, call->scratch + lo);
    }
}

/* Runs in the pool because of its map guard: the table may be mapped. */
static void embed_item(void *user, int worker, size_t item)
{
    const struct task *a = user;
    (void)worker;
    (void)item;
    const mgl_call *call = a->call;
    if (a->machine->buffers[MGL_CALL(call, embed, embedding)->buffer])
        mgl_reference_embed(call);
    else
        gather(a->machine, call, MGL_CALL(call, embed, y), MGL_CALL(call, embed, copy));
}

static void embed_gamma_item(void *user, int worker, size_t item)
{
    const struct task *a = user;
    (void)worker;
    (void)item;
    const mgl_call *call = a->call;
    const mgl_region *y = MGL_CALL(call, embed_gamma, y);
    if (a->machine->buffers[MGL_CALL(call, embed_gamma, embedding)->buffer])
        mgl_reference_gather(call, y, NULL);
    else
        gather(a->machine, call, y, NULL);
    mgl_call_scale_by_gamma(call, y, MGL_CALL(call, embed_gamma, g), MGL_CALL(call, embed_gamma, n),
                            MGL_CALL(call, embed_gamma, s));
}

static void fast_embed(mgl_machine *m, const mgl_call *call)
{
    struct task a = {m, call};
    share(m, 1, embed_item, &a);
}

static void fast_embed_gamma(mgl_machine *m, const mgl_call *call)
{
    struct task a = {m, call};
    share(m, 1, embed_gamma_item, &a);
}

/* ---- dispatch ------------------------------------------------------------------------------- */

typedef void fast_fn(mgl_machine *m, const mgl_call *call);

bool mgl_fast_execute(mgl_machine *m, const mgl_call *call)
{
#define FAST(name)                                       fast_##name
#define PLAIN(name)                                      NULL
#define MGL_OP(id, name, family, step, device, cpu, ...) cpu(name),
    static fast_fn *const ops[] = {
#include "instructions/ops.def"
    };
    fast_fn *fast = mgl_op_is_known(call->task->op) ? ops[call->task->op] : NULL;
    if (fast)
        fast(m, call);
    return fast != NULL;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

size_t mgl_fast_scratch(const mgl_program *program)
{
    const mgl_geometry *m = &program->geometry;
    size_t hidden = (size_t)m->hidden, ffn = (size_t)m->ffn, d = (size_t)m->head_dim;
    size_t inputs = larger(larger(hidden, ffn), (size_t)m->heads * d);
    size_t outputs = larger(larger(2 * hidden, 2 * ffn), (size_t)(m->heads + 2 * m->kv_heads) * d);
    int copies = 1;
    for (int t = 0; t < program->task_count; t++) {
        const int count = 1 + reordered_tensors(program, &program->tasks[t]);
        copies = count > copies ? count : copies;
    }
    return (size_t)mgl_limits_most(&program->limits) *
           ((size_t)copies * (inputs + MGL_FORMAT_COLUMNS) + outputs);
}

size_t mgl_fast_lane(const mgl_program *program)
{
    size_t most = mgl_attention_scratch(program);
    for (int i = 0; i < program->segment_count; i++) {
        const mgl_segment *s = &program->segments[i];
        const mgl_weight_format format = mgl_segment_format(program, s);
        most = larger(most, mgl_products_scratch((int)mgl_segment_blocks(program, s), format));
    }
    return (most + 15) / 16 * 16; /* a multiple of the cache line */
}
