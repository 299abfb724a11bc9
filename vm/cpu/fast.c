/*
 * The fast path: the four ops that stream weights, over segments that were unpacked to row-major
 * f32 once, as one matrix product a task. All else is the reference.
 *
 * It changes the order of the sums against the reference and nothing else; the tests hold both
 * together.
 */
#include "instructions/head/head.h"
#include "instructions/linear.h"
#include "vm/cpu/machine.h"

/* Rows of a task's segments, and its inputs; one segment's columns are all segments'. */
static int outputs_of(const mgl_call *call)
{
    const mgl_run *run = &call->task->segments;
    int64_t rows = 0;
    for (int s = run->first; s < run->first + run->count; s++)
        rows += mgl_segment_rows(&call->program->segments[s]);
    return (int)rows;
}

static const mgl_segment *first_segment(const mgl_call *call)
{
    return &call->program->segments[call->task->segments.first];
}

static int inputs_of(const mgl_call *call)
{
    return (int)(first_segment(call)->col_hi - first_segment(call)->col_lo);
}

/* x normed into scratch (rows, hidden); the first input column of the product. */
static const float *normed(const mgl_call *call)
{
    mgl_reference_norm(call, mgl_call_in(call, 0), mgl_call_in(call, 1), call->scratch);
    return call->scratch + first_segment(call)->col_lo;
}

/* Where a task's products go: into scratch, behind its rows of inputs. */
static float *products(const mgl_call *call)
{
    return call->scratch + MGL_MAX_ROWS * mgl_region_width(mgl_call_in(call, 0), 1);
}

/* The first n of each `stride` products are the columns of an output. */
static void store_rows(const mgl_call *call, const mgl_region *to, int n, int stride)
{
    for (int r = 0; r < call->epoch->rows; r++)
        mgl_call_store(call, to, r, 0, n, products(call) + (int64_t)r * stride);
}

static void norm_linear(const mgl_call *call, const float *w, mgl_matmul_fn *matmul)
{
    int outputs = outputs_of(call);
    matmul(normed(call), (int)mgl_region_width(mgl_call_in(call, 0), 1), w, products(call), outputs,
           call->epoch->rows, inputs_of(call), outputs, false);
    store_rows(call, mgl_call_out(call, 0), outputs, outputs);
}

static void linear_add(const mgl_call *call, const float *w, mgl_matmul_fn *matmul)
{
    const mgl_region *a = mgl_call_in(call, 0), *copy = mgl_call_optional(call, 1);
    int outputs = outputs_of(call), width = (int)mgl_region_width(a, 1);
    mgl_reference_load(call, a, call->scratch);
    for (int r = 0; r < call->epoch->rows; r++)
        mgl_call_load(call, mgl_call_in(call, 1), r, 0, outputs,
                      products(call) + (int64_t)r * outputs);
    matmul(call->scratch + first_segment(call)->col_lo, width, w, products(call), outputs,
           call->epoch->rows, inputs_of(call), outputs, true);
    store_rows(call, mgl_call_out(call, 0), outputs, outputs);
    if (copy)
        store_rows(call, copy, outputs, outputs);
}

/* gate and up lie one after the other in w: one product; the values take the place of gate's. */
static void norm_swiglu(const mgl_call *call, const float *w, mgl_matmul_fn *matmul)
{
    int rows = call->epoch->rows, outputs = outputs_of(call);
    float *both = products(call); /* (rows, 2 outputs) */
    matmul(normed(call), (int)mgl_region_width(mgl_call_in(call, 0), 1), w, both, 2 * outputs, rows,
           inputs_of(call), 2 * outputs, false);
    for (int r = 0; r < rows; r++) {
        float *gate = both + (int64_t)r * 2 * outputs;
        for (int i = 0; i < outputs; i++)
            gate[i] = mgl_swiglu(gate[i], gate[outputs + i]);
    }
    store_rows(call, mgl_call_out(call, 0), outputs, 2 * outputs);
}

/* One product for each run of rows that want logits. */
static void head(const mgl_call *call, const float *w, mgl_matmul_fn *matmul)
{
    const mgl_region *y = mgl_call_out(call, 0);
    int width = (int)mgl_region_width(mgl_call_in(call, 0), 1), rows = call->epoch->rows, end;
    int stride = (int)mgl_buffer_stride(mgl_call_buffer(call, y), 0);
    const float *x = normed(call);
    for (int r = 0; r < rows; r = end + 1) {
        for (end = r; end < rows && mgl_head_wants(call, end);)
            end++;
        if (end > r)
            matmul(x + (int64_t)r * width, width, w, mgl_call_row(call, y, r), stride, end - r,
                   inputs_of(call), outputs_of(call), false);
        for (; r < end; r++)
            mgl_head_best(call, r);
    }
}

bool mgl_fast_execute(const mgl_machine *machine, int task, const mgl_call *call)
{
    const float *w = machine->weights[task];
    mgl_matmul_fn *matmul = machine->blas.matmul;
    switch (call->task->op) {
    case MGL_OP_NORM_LINEAR:
        return norm_linear(call, w, matmul), true;
    case MGL_OP_LINEAR_ADD:
        return linear_add(call, w, matmul), true;
    case MGL_OP_NORM_SWIGLU:
        return norm_swiglu(call, w, matmul), true;
    case MGL_OP_HEAD:
        return head(call, w, matmul), true;
    default:
        return false;
    }
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
    size_t outputs = larger(larger(hidden, 2 * ffn), (size_t)(m->heads + 2 * m->kv_heads) * d);
    return MGL_MAX_ROWS * (inputs + outputs);
}
