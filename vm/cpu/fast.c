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

/* Elements between the rows of a region's buffer. */
static int stride_of(const mgl_call *call, const mgl_region *region)
{
    return (int)mgl_buffer_stride(mgl_call_buffer(call, region), 0);
}

/* x normed into scratch (rows, hidden); the first input column of the product. */
static const float *normed(const mgl_call *call)
{
    mgl_reference_norm(call, mgl_call_in(call, 0), mgl_call_in(call, 1), call->scratch);
    return call->scratch + first_segment(call)->col_lo;
}

static void norm_linear(const mgl_call *call, const float *w, mgl_matmul_fn *matmul)
{
    const mgl_region *x = mgl_call_in(call, 0), *y = mgl_call_out(call, 0);
    matmul(normed(call), (int)mgl_region_width(x, 1), w, mgl_call_row(call, y, 0),
           stride_of(call, y), call->epoch->rows, inputs_of(call), outputs_of(call), false);
}

static void linear_add(const mgl_call *call, const float *w, mgl_matmul_fn *matmul)
{
    const mgl_region *a = mgl_call_in(call, 0), *b = mgl_call_in(call, 1);
    const mgl_region *y = mgl_call_out(call, 0);
    int outputs = outputs_of(call);
    for (int r = 0; r < call->epoch->rows; r++) {
        const float *from = mgl_call_row(call, b, r);
        float *to = mgl_call_row(call, y, r);
        for (int i = 0; to != from && i < outputs; i++)
            to[i] = from[i];
    }
    matmul(mgl_call_row(call, a, 0) + first_segment(call)->col_lo, stride_of(call, a), w,
           mgl_call_row(call, y, 0), stride_of(call, y), call->epoch->rows, inputs_of(call),
           outputs, true);
}

/* gate and up lie one after the other in w: one product into scratch, behind the normed rows. */
static void norm_swiglu(const mgl_call *call, const float *w, mgl_matmul_fn *matmul)
{
    const mgl_region *x = mgl_call_in(call, 0), *y = mgl_call_out(call, 0);
    int64_t width = mgl_region_width(x, 1);
    int rows = call->epoch->rows, outputs = outputs_of(call);
    float *both = call->scratch + MGL_MAX_ROWS * width; /* (rows, 2 outputs) */
    matmul(normed(call), (int)width, w, both, 2 * outputs, rows, inputs_of(call), 2 * outputs,
           false);
    for (int r = 0; r < rows; r++) {
        const float *gate = both + (int64_t)r * 2 * outputs;
        float *to = mgl_call_row(call, y, r);
        for (int i = 0; i < outputs; i++)
            to[i] = mgl_swiglu(gate[i], gate[outputs + i]);
    }
}

/* One product for each run of rows that want logits. */
static void head(const mgl_call *call, const float *w, mgl_matmul_fn *matmul)
{
    const mgl_region *y = mgl_call_out(call, 0);
    int width = (int)mgl_region_width(mgl_call_in(call, 0), 1), rows = call->epoch->rows, end;
    const float *x = normed(call);
    for (int r = 0; r < rows; r = end + 1) {
        for (end = r; end < rows && mgl_head_wants(call, end);)
            end++;
        if (end > r)
            matmul(x + (int64_t)r * width, width, w, mgl_call_row(call, y, r), stride_of(call, y),
                   end - r, inputs_of(call), outputs_of(call), false);
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

size_t mgl_fast_scratch(const mgl_program *program)
{
    const mgl_geometry *m = &program->geometry;
    return MGL_MAX_ROWS * ((size_t)m->hidden + 2 * (size_t)m->ffn);
}
