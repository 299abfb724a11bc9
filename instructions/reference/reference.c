/*
 * Implements reference.h: shared arithmetic of the ops, and the addresses of their regions.
 */
#include "instructions/reference/reference.h"

#include "schedule/pages.h"
#include "schedule/tape.h"

#include <math.h>
#include <string.h>

mgl_op_fn *mgl_reference_op(mgl_op op)
{
    static mgl_op_fn *const ops[] = {
#define MGL_OP(id, name, ...) mgl_reference_##name,
#include "instructions/ops.def"
    };
    return mgl_op_is_known(op) ? ops[op] : NULL;
}

size_t mgl_reference_scratch(const mgl_program *program)
{
    const mgl_geometry *m = &program->geometry;
    size_t widest = (size_t)m->hidden > (size_t)m->ffn ? (size_t)m->hidden : (size_t)m->ffn;
    size_t heads = (size_t)m->heads * (size_t)m->head_dim;
    widest = widest > heads ? widest : heads;
    /* normalized rows and a weight row in both column orders; or q, k and sums of a head, and its
     * scores */
    size_t linear = ((size_t)mgl_limits_most(&program->limits) + 2) * widest;
    size_t attention = mgl_attention_scratch(program) + mgl_attention_now_floats(program);
    return linear > attention ? linear : attention;
}

/* The set of a flagged buffer for a task. */
static int set_of(const mgl_call *call, const mgl_buffer *buffer)
{
    if (buffer->sets == 1)
        return 0;
    return (call->epoch->turn + (call->task->op == MGL_OP_CLEAR)) % buffer->sets;
}

void *mgl_call_at(const mgl_call *call, const mgl_region *region)
{
    const mgl_buffer *buffer = mgl_call_buffer(call, region);
    int64_t offset = set_of(call, buffer) * mgl_buffer_stride(buffer, -1);
    for (int i = 0; i < buffer->rank; i++)
        if (region->ranges[i].kind == MGL_RANGE_FIXED)
            offset += region->ranges[i].lo * mgl_buffer_stride(buffer, i);
    return (char *)call->buffers[region->buffer] + offset * (int64_t)mgl_dtype_size(buffer->dtype);
}

const float *mgl_call_factors(const mgl_call *call, const mgl_segment *segment, int which)
{
    const mgl_program *program = call->program;
    const int factors = program->tensors[which ? segment->tensor2 : segment->tensor].factors;
    return factors < 0 ? NULL : (const float *)call->buffers[factors] + segment->row_lo;
}

const int32_t *mgl_call_order(const mgl_call *call, const mgl_segment *segment, int which)
{
    const mgl_program *program = call->program;
    const int order = program->tensors[which ? segment->tensor2 : segment->tensor].order;
    return order < 0 ? NULL : call->buffers[order];
}

float *mgl_call_row(const mgl_call *call, const mgl_region *region, int r)
{
    return (float *)mgl_call_at(call, region) +
           r * mgl_buffer_stride(mgl_call_buffer(call, region), 0);
}

/* The address of column `column` of row r of a (rows, columns) region. *run: how many columns
 * from there are contiguous, at most n. */
static void *element_at(const mgl_call *call, const mgl_region *region, int r, int64_t column,
                        int64_t n, int64_t *run)
{
    const mgl_buffer *buffer = mgl_call_buffer(call, region);
    *run = n;
    if (buffer->paged) {
        const int64_t at = region->ranges[1].lo + column;
        const int64_t rest = MGL_PAGE_QUARTER_COLUMNS - at % MGL_PAGE_QUARTER_COLUMNS;
        *run = n < rest ? n : rest;
        const int blocks = (int)buffer->extents[1].count / MGL_PAGE_BLOCK_COLUMNS;
        const int place = mgl_tape_place_of_block(blocks, call->program->exec.warps,
                                                  (int)at / MGL_PAGE_BLOCK_COLUMNS);
        return (char *)call->buffers[region->buffer] +
               mgl_page_at(mgl_page_rows((int)buffer->extents[0].count, call->epoch->rows), r,
                           place, (unsigned)at);
    }
    int64_t offset = r * mgl_buffer_stride(buffer, 0) + column;
    return (char *)mgl_call_at(call, region) + offset * (int64_t)mgl_dtype_size(buffer->dtype);
}

void mgl_call_load(const mgl_call *call, const mgl_region *region, int r, int64_t column, int64_t n,
                   float *to)
{
    const mgl_dtype dtype = mgl_call_buffer(call, region)->dtype;
    for (int64_t run, end = column + n; column < end; column += run, to += run) {
        const void *from = element_at(call, region, r, column, end - column, &run);
        mgl_convert(to, MGL_F32, from, dtype, (size_t)run);
    }
}

void mgl_call_store(const mgl_call *call, const mgl_region *region, int r, int64_t column,
                    int64_t n, const float *from)
{
    const mgl_dtype dtype = mgl_call_buffer(call, region)->dtype;
    for (int64_t run, end = column + n; column < end; column += run, from += run) {
        void *to = element_at(call, region, r, column, end - column, &run);
        mgl_publish(to, dtype, from, run);
    }
}

/* Elements in dimension `dim` of a region of `rows` rows. */
static int64_t count_of(const mgl_region *region, int dim, int rows)
{
    const mgl_range *range = &region->ranges[dim];
    return range->kind == MGL_RANGE_FIXED ? range->hi - range->lo : rows;
}

bool mgl_call_is_unsplit(const mgl_call *call, int r)
{
    const int first = mgl_call_first_row(call, r);
    return mgl_call_table(call, first)[MGL_TABLE_POSITION] <= call->program->limits.unsplit;
}

bool mgl_call_has_row(const mgl_call *call, const mgl_region *region, int r)
{
    for (int i = 0; i < MGL_MAX_RANK; i++) {
        const mgl_range *range = &region->ranges[i];
        if (mgl_range_has_row_kind(range) &&
            (range->lo == MGL_ROWS_UNSPLIT) != mgl_call_is_unsplit(call, r))
            return false;
    }
    return true;
}

bool mgl_call_each_run(const mgl_call *call, const mgl_region *region, int rows, mgl_run_fn *each)
{
    const mgl_buffer *buffer = mgl_call_buffer(call, region);
    int64_t size = (int64_t)mgl_dtype_size(buffer->dtype), lines = 1;
    int last = buffer->rank - 1;
    char *at = mgl_call_at(call, region);
    for (int i = 0; i < last; i++)
        lines *= count_of(region, i, rows);
    for (int64_t line = 0; line < lines; line++) {
        int64_t offset = 0, rest = line;
        bool has_row = true; /* the region has the line's row */
        for (int i = last - 1; i >= 0; rest /= count_of(region, i, rows), i--) {
            const int64_t index = rest % count_of(region, i, rows);
            offset += index * mgl_buffer_stride(buffer, i);
            if (region->ranges[i].kind == MGL_RANGE_ROW_KIND)
                has_row = mgl_call_has_row(call, region, (int)index);
        }
        if (has_row && !each(at + offset * size, (size_t)(count_of(region, last, rows) * size)))
            return false;
    }
    return true;
}

static bool is_written(void *run, size_t bytes)
{
    const uint32_t *words = run;
    bool all = true;
    for (size_t i = 0; i < bytes / sizeof *words; i++)
        all &= words[i] != UINT32_MAX;
    return all;
}

bool mgl_call_written(const mgl_call *call, const mgl_region *region)
{
    return mgl_call_each_run(call, region, call->epoch->rows, is_written);
}

void mgl_publish(void *to, mgl_dtype dtype, const float *from, int64_t n)
{
    const uint32_t word = 0x7FFFFFFF;
    const uint16_t half = 0x7FFF;
    mgl_convert(to, dtype, from, MGL_F32, (size_t)n);
    for (int64_t i = 0; i < n; i++) {
        if (!isnan(from[i]))
            continue;
        if (dtype == MGL_F32)
            memcpy((char *)to + 4 * i, &word, sizeof word);
        else
            memcpy((char *)to + 2 * i, &half, sizeof half);
    }
}

float mgl_dot(const float *a, const float *b, int64_t n)
{
    float sums[16] = {0};
    int64_t whole = n - n % 16;
    for (int64_t i = 0; i < whole; i += 16)
        for (int j = 0; j < 16; j++)
            sums[j] += a[i + j] * b[i + j];
    for (int64_t i = whole; i < n; i++)
        sums[i - whole] += a[i] * b[i];
    for (int half = 8; half > 0; half /= 2)
        for (int j = 0; j < half; j++)
            sums[j] += sums[j + half];
    return sums[0];
}

void mgl_rms_norm(float *to, const float *x, const float *g, int64_t n, float eps)
{
    float mean = mgl_dot(x, x, n) / (float)n;
    float scale = 1.0f / sqrtf(mean + eps);
    for (int64_t i = 0; i < n; i++)
        to[i] = x[i] * scale * g[i];
}

/* 1 / sqrt(sum of row r of s / hidden + eps): the RMS scale of row r of a gamma_scaled value. */
static float row_scale(const mgl_call *call, const mgl_region *s, int r)
{
    const mgl_geometry *m = &call->program->geometry;
    const float *parts = mgl_call_row(call, s, r);
    float sum = 0;
    for (int64_t i = 0; i < mgl_region_width(s, 1); i++)
        sum += parts[i];
    return 1.0f / sqrtf(sum / (float)m->hidden + m->eps);
}

void mgl_call_norm(const mgl_call *call, const mgl_region *by, int r, float *row, int64_t width)
{
    if (!mgl_op_scales(call->task->op)) {
        mgl_rms_norm(row, row, mgl_call_at(call, by), width, call->program->geometry.eps);
        return;
    }
    const float scale = row_scale(call, by, r);
    for (int64_t i = 0; i < width; i++)
        row[i] *= scale;
}

void mgl_call_scale_by_gamma(const mgl_call *call, const mgl_region *y, const mgl_region *g,
                             const mgl_region *n, const mgl_region *s)
{
    const float *weights = mgl_call_at(call, g);
    const int64_t width = mgl_region_width(y, 1);
    for (int r = 0; r < call->epoch->rows; r++) {
        const float *x = mgl_call_row(call, y, r);
        for (int64_t i = 0; i < width; i++)
            call->scratch[i] = x[i] * weights[i];
        mgl_call_store(call, n, r, 0, width, call->scratch);
        *mgl_call_row(call, s, r) = mgl_dot(x, x, width);
    }
}

float mgl_swiglu(float gate, float up)
{
    return gate / (1.0f + expf(-gate)) * up;
}

void mgl_rope(float *to, const float *x, const float *rope, int head_dim)
{
    int half = head_dim / 2;
    for (int i = 0; i < half; i++) {
        float a = x[i], b = x[i + half];
        to[i] = a * rope[i] - b * rope[half + i];
        to[i + half] = b * rope[i] + a * rope[half + i];
    }
}
