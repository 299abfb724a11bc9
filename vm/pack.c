/*
 * Weight packing: converts checkpoint rows to the tape layout that a queue streams.
 *
 * A segment is stored as row groups of MGL_ROW_GROUP (8) rows. A row group is stored as blocks
 * along k, in the order of schedule/tape.h. A block holds 64 bytes of each of the 8 rows, one row
 * after the other: 512 bytes.
 *
 *     g8      group 0: [a block: row 0..7 x 64 B][a block] ...   group 1: ...
 *     g8x2    group 0 of the first tensor, group 0 of the second, group 1 of the first, ...
 *
 * A row group of a format with scales on the tape starts with them (schedule/formats.h). Bytes of a
 * block past the segment's last row or column are zero, and so is the queue's padding.
 * mgl_unpack_row (schedule/unpack.h) is the inverse. It is written independently, and tests compare
 * the two.
 */
#include "vm/vm.h"

#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"

/* Weights that are read at once: of unscaled tensors, and of scaled ones. Layouts of checkpoints
 * that are packed across rows need many rows for whole cache lines. */
enum { STAGE_WEIGHTS = 64 << 10, STAGE_CODES = 1 << 20 };

int64_t mgl_buffer_elements(const mgl_buffer *buffer)
{
    int64_t elements = 1;
    for (int i = 0; i < buffer->rank; i++)
        elements *= buffer->extents[i].count;
    return elements;
}

size_t mgl_buffer_bytes(const mgl_buffer *buffer)
{
    return (size_t)mgl_buffer_elements(buffer) * mgl_dtype_size(buffer->dtype);
}

/* Finds the checkpoint tensor of a program's tensor and compares the shapes. */
static mgl_status find_tensor(const mgl_program *program, const mgl_graph *graph, int tensor,
                              int *out, mgl_error *err)
{
    const mgl_program_tensor *wanted = &program->tensors[tensor];
    int index = mgl_graph_find_tensor(graph, wanted->checkpoint);
    if (index < 0)
        return mgl_fail(err, MGL_BAD_INPUT, wanted->checkpoint,
                        "the checkpoint does not contain this tensor, which the program needs; use "
                        "the program's model");
    const mgl_tensor *found = &graph->tensors[index];
    if (found->rows != wanted->rows || found->cols != wanted->cols)
        return mgl_fail(err, MGL_BAD_INPUT, wanted->checkpoint,
                        "the program wants shape [%lld,%lld], but the checkpoint has [%lld,%lld]",
                        (long long)wanted->rows, (long long)wanted->cols, (long long)found->rows,
                        (long long)found->cols);
    if (!graph->read)
        return mgl_fail(err, MGL_USAGE, wanted->checkpoint, "the graph was opened without weights");
    *out = index;
    return MGL_OK;
}

/* Checks that the checkpoint stores a tensor in the program's scaled format. */
static mgl_status check_stored(const mgl_program_tensor *wanted, const mgl_tensor *found,
                               mgl_error *err)
{
    char own[MGL_WEIGHT_FORMAT_TEXT], stored[MGL_WEIGHT_FORMAT_TEXT];
    if ((wanted->order >= 0) != found->reordered)
        return mgl_fail(err, MGL_BAD_INPUT, wanted->checkpoint,
                        "the program and the checkpoint have different orders of the columns; "
                        "lower the model again");
    if (mgl_weight_format_equal(wanted->format, mgl_tensor_format(found)))
        return MGL_OK;
    return mgl_fail(err, MGL_BAD_INPUT, wanted->checkpoint,
                    "the program has it as %s, but the checkpoint stores it as %s; lower the "
                    "model again",
                    mgl_weight_format_print(wanted->format, own),
                    mgl_weight_format_print(mgl_tensor_format(found), stored));
}

/* Staging buffer for some row groups, as stored in the file and converted. Reading several groups
 * at once amortizes the file's checks. The data is still in the CPU cache when it is packed. */
struct stage {
    char *raw, *converted;
    int64_t rows; /* a multiple of the row group */
};

/* `most`: the rows that are needed. */
static mgl_status stage_open(struct stage *stage, const mgl_program_tensor *tensor, int64_t most,
                             mgl_error *err)
{
    const bool scaled = mgl_weight_format_is_scaled(tensor->format);
    const int64_t rows = (scaled ? STAGE_CODES : STAGE_WEIGHTS) / (tensor->cols + 1);
    const int64_t groups = ((rows < most ? rows : most) + MGL_ROW_GROUP - 1) / MGL_ROW_GROUP;
    size_t bytes = 0;
    stage->rows = (groups ? groups : 1) * MGL_ROW_GROUP;
    /* one more column: a row with one group has a scale and a zero point or a minimum */
    if (!mgl_mul((size_t)tensor->cols + 1, (size_t)stage->rows * sizeof(float), &bytes))
        return mgl_fail_memory(err, SIZE_MAX);
    stage->raw = mgl_alloc(bytes);
    stage->converted = mgl_alloc(bytes);
    return stage->raw && stage->converted ? MGL_OK : mgl_fail_memory(err, 2 * bytes);
}

static void stage_close(struct stage *stage)
{
    mgl_free(stage->raw);
    mgl_free(stage->converted);
}

/* Packs one row group into blocks: `count` rows of the tensor's cols weights, in its format. */
static void pack_group(const mgl_program *program, const mgl_segment *segment, const char *rows,
                       int count, char *to)
{
    const mgl_program_tensor *tensor = &program->tensors[segment->tensor];
    const mgl_weight_format format = tensor->format;
    size_t row_bytes = (size_t)mgl_weight_code_bytes(format.code, tensor->cols);
    size_t width = (size_t)mgl_weight_code_bytes(format.code, segment->col_hi - segment->col_lo);
    size_t tail = width % MGL_BLOCK_ROW_BYTES;
    int64_t blocks = mgl_segment_blocks(program, segment);
    int64_t whole = (int64_t)(width / MGL_BLOCK_ROW_BYTES);
    MGL_ASSERT(count >= 1 && count <= MGL_ROW_GROUP);
    if (count < MGL_ROW_GROUP || tail)
        memset(to, 0, (size_t)blocks * MGL_BLOCK_BYTES);
    for (int64_t b = 0; b < blocks; b++) {
        const char *from = rows + (size_t)mgl_weight_code_bytes(format.code, segment->col_lo) +
                           (size_t)b * MGL_BLOCK_ROW_BYTES;
        char *at = to + (int64_t)mgl_tape_place_of_block((int)blocks, program->exec.warps, (int)b) *
                            MGL_BLOCK_BYTES;
        for (int r = 0; r < count && b < whole; r++) /* constant length, so that the compiler
                                                        inlines the copy */
            memcpy(at + r * MGL_BLOCK_ROW_BYTES, from + (size_t)r * row_bytes, MGL_BLOCK_ROW_BYTES);
        for (int r = 0; r < count && b == whole; r++)
            memcpy(at + r * MGL_BLOCK_ROW_BYTES, from + (size_t)r * row_bytes, tail);
    }
}

/* Index of the first of n values that is NaN or infinite; n if all are finite. */
static size_t find_not_finite(const void *from, mgl_dtype dtype, size_t n)
{
    const uint16_t exponent = dtype == MGL_F16 ? 0x7C00 : 0x7F80;
    const uint16_t *halves = from;
    const uint32_t *words = from;
    bool found = false;
    for (size_t i = 0; i < n && dtype != MGL_F32; i++)
        found |= (halves[i] & exponent) == exponent;
    for (size_t i = 0; i < n && dtype == MGL_F32; i++)
        found |= (words[i] & 0x7F800000) == 0x7F800000;
    for (size_t i = 0; i < n && found; i++)
        if (dtype == MGL_F32 ? (words[i] & 0x7F800000) == 0x7F800000
                             : (halves[i] & exponent) == exponent)
            return i;
    return n;
}

/* Rejects weights that are NaN or infinite. All weights pass through this function. */
static mgl_status check_finite(const mgl_program_tensor *t, mgl_dtype stored, const void *raw,
                               const void *packed, int64_t row, int64_t count, mgl_error *err)
{
    const mgl_weight_code_info *code = mgl_weight_code_get(t->format.code);
    size_t n = (size_t)(count * t->cols), at = find_not_finite(packed, code->numbers, n);
    if (at == n)
        return MGL_OK;
    const long long place[2] = {(long long)(row + (int64_t)at / t->cols),
                                (long long)((int64_t)at % t->cols)};
    float value;
    mgl_convert(&value, MGL_F32, (const char *)raw + at * mgl_dtype_size(stored), stored, 1);
    if (!isfinite(value))
        return mgl_fail(err, MGL_BAD_INPUT, t->checkpoint,
                        "row %lld, column %lld is not a finite number (%s): the checkpoint is "
                        "damaged; download it again",
                        place[0], place[1], mgl_dtype_name(stored));
    return mgl_fail(err, MGL_BAD_INPUT, t->checkpoint,
                    "row %lld, column %lld is %.9g, which is too large for %s; lower with dtype "
                    "%s, in which the checkpoint has it",
                    place[0], place[1], (double)value, code->name, mgl_dtype_name(stored));
}

/* Reads `count` rows of a tensor, at most stage->rows, in the tensor's format. *out points into the
 * stage. */
static mgl_status read_rows(const mgl_program *program, const mgl_graph *graph, int tensor,
                            int source, int64_t row, int64_t count, const struct stage *stage,
                            const char **out, mgl_error *err)
{
    const mgl_program_tensor *t = &program->tensors[tensor];
    mgl_dtype stored = graph->tensors[source].dtype;
    mgl_status status = graph->read(graph, source, row, count, stage->raw, err);
    const bool as_stored = mgl_weight_format_is(t->format, stored);
    *out = as_stored ? stage->raw : stage->converted;
    if (!status && !as_stored)
        mgl_weight_code_encode(t->format.code, stage->converted, stage->raw, stored,
                               (size_t)(count * t->cols));
    if (status || graph->any_numbers)
        return status;
    return check_finite(t, stored, stage->raw, *out, row, count, err);
}

/* Packs `count` rows, in the segment's format, into row groups that are `stride` bytes apart. */
static void pack_groups(const mgl_program *program, const mgl_segment *segment, const char *rows,
                        int64_t count, char *to, int64_t stride)
{
    const mgl_program_tensor *tensor = &program->tensors[segment->tensor];
    size_t group_bytes =
        MGL_ROW_GROUP * (size_t)mgl_weight_code_bytes(tensor->format.code, tensor->cols);
    for (; count > 0; count -= MGL_ROW_GROUP, rows += group_bytes, to += stride)
        pack_group(program, segment, rows, count < MGL_ROW_GROUP ? (int)count : MGL_ROW_GROUP, to);
}

/* ---- quantized tensors ----------------------------------------------------------------------- */

/* Reads `count` rows of a quantized tensor into the stage: codes, then scales, then zero points or
 * minimums. */
static mgl_status read_codes(const mgl_graph *graph, int source, int64_t row, int64_t count,
                             const struct stage *stage, mgl_quantized_rows *out, mgl_error *err)
{
    const mgl_tensor *t = &graph->tensors[source];
    float *const scales = (float *)(void *)stage->converted;
    float *const after = scales + count * mgl_weight_format_groups(t->quantized, t->cols);
    *out = (mgl_quantized_rows){.codes = (uint8_t *)stage->raw,
                                .scales = scales,
                                .zeros = t->quantized.zeros ? (uint8_t *)after : NULL,
                                .minimums =
                                    mgl_weight_format_has_minimums(t->quantized) ? after : NULL};
    return graph->read_codes(graph, source, row, count, out, err);
}

/* Packs one row group: `count` rows of codes, from `row` of `rows` on. */
static void pack_scaled_group(const mgl_program *program, const mgl_segment *segment,
                              const mgl_quantized_rows *rows, int64_t row, int count, char *to)
{
    const mgl_program_tensor *tensor = &program->tensors[segment->tensor];
    const mgl_weight_format format = tensor->format;
    const int64_t width = segment->col_hi - segment->col_lo;
    const int64_t groups = mgl_tape_scale_groups(format, width);
    const int64_t all = mgl_weight_format_groups(format, tensor->cols);
    const int64_t first = format.group == MGL_GROUP_ALL ? 0 : segment->col_lo / format.group;
    const int64_t blocks = mgl_segment_blocks(program, segment);
    const int columns = mgl_weight_code_columns(format.code);
    char *const at = to + mgl_tape_scale_bytes(format, width);
    memset(to, 0, (size_t)mgl_segment_group_bytes(program, segment));
    for (int r = 0; r < count; r++) {
        const uint8_t *codes = rows->codes + (row + r) * tensor->cols + segment->col_lo;
        for (int64_t g = 0; g < groups; g++) {
            const int64_t i = (row + r) * all + first + g;
            mgl_tape_put_scale(format, to, g, r, rows->scales[i]);
            if (format.zeros)
                mgl_tape_put_zero(format, to, groups, g, r, rows->zeros[i]);
            if (rows->minimums)
                mgl_tape_put_minimum(format, to, groups, g, r, rows->minimums[i]);
        }
        for (int64_t b = 0; b < blocks; b++) {
            const int64_t left = width - b * columns;
            const int place = mgl_tape_place_of_block((int)blocks, program->exec.warps, (int)b);
            mgl_tape_pack_codes(format.code,
                                at + (int64_t)place * MGL_BLOCK_BYTES +
                                    (ptrdiff_t)r * MGL_BLOCK_ROW_BYTES,
                                codes + b * columns, (int)(left < columns ? left : columns));
        }
    }
}

/* Packs `count` rows into row groups that are `stride` bytes apart. */
static void pack_scaled_groups(const mgl_program *program, const mgl_segment *segment,
                               const mgl_quantized_rows *rows, int64_t count, char *to,
                               int64_t stride)
{
    for (int64_t row = 0; row < count; row += MGL_ROW_GROUP, to += stride)
        pack_scaled_group(program, segment, rows, row,
                          count - row < MGL_ROW_GROUP ? (int)(count - row) : MGL_ROW_GROUP, to);
}

/* Writes rows [lo, hi) of the row factors of a tensor. */
static mgl_status pack_factors(const mgl_program *program, const mgl_graph *graph,
                               const mgl_buffer *buffer, int64_t lo, int64_t hi, float *to,
                               mgl_error *err)
{
    int source;
    const mgl_program_tensor *t = &program->tensors[buffer->tensor];
    mgl_status status = find_tensor(program, graph, buffer->tensor, &source, err);
    if (!status)
        status = check_stored(t, &graph->tensors[source], err);
    if (status)
        return status;
    struct stage stage = {0};
    status = stage_open(&stage, t, hi - lo, err);
    for (int64_t row = lo; !status && row < hi; row += stage.rows) {
        const int64_t count = hi - row < stage.rows ? hi - row : stage.rows;
        mgl_quantized_rows rows;
        status = read_codes(graph, source, row, count, &stage, &rows, err);
        if (!status)
            memcpy(to + (row - lo), rows.scales, (size_t)count * sizeof *to);
    }
    stage_close(&stage);
    return status;
}

/* Writes the column map of a tensor to `to` (columns of the tensor). */
static mgl_status pack_order(const mgl_program *program, const mgl_graph *graph,
                             const mgl_buffer *buffer, int32_t *to, mgl_error *err)
{
    int source;
    const mgl_program_tensor *t = &program->tensors[buffer->tensor];
    mgl_status status = find_tensor(program, graph, buffer->tensor, &source, err);
    if (status)
        return status;
    if (!graph->tensors[source].order || mgl_buffer_elements(buffer) != t->cols)
        return mgl_fail(err, MGL_BAD_INPUT, buffer->name,
                        "the checkpoint has no order of the columns of %s; lower the model again",
                        t->checkpoint);
    memcpy(to, graph->tensors[source].order, (size_t)t->cols * sizeof *to);
    return MGL_OK;
}

/* ---- segments and const buffers -------------------------------------------------------------- */

/* Packs rows [lo, hi) of tensor `which` of a segment. `lo` is the first row of a row group, whose
 * place is `to`. */
static mgl_status pack_tensor(const mgl_program *program, const mgl_graph *graph,
                              const mgl_segment *segment, int which, int64_t lo, int64_t hi,
                              const struct stage *stage, char *to, mgl_error *err)
{
    int tensor = which ? segment->tensor2 : segment->tensor, source;
    const bool scaled = mgl_weight_format_is_scaled(program->tensors[tensor].format);
    mgl_status status = find_tensor(program, graph, tensor, &source, err);
    if (!status && scaled)
        status = check_stored(&program->tensors[tensor], &graph->tensors[source], err);
    if (status)
        return status;
    int64_t group_bytes = mgl_segment_group_bytes(program, segment);
    int64_t stride = segment->layout == MGL_LAYOUT_G8X2 ? 2 * group_bytes : group_bytes;
    to += which * group_bytes;
    for (int64_t row = lo; row < hi; row += stage->rows) {
        int64_t count = hi - row < stage->rows ? hi - row : stage->rows;
        char *const at = to + (row - lo) / MGL_ROW_GROUP * stride;
        const char *rows;
        mgl_quantized_rows codes;
        status = scaled ? read_codes(graph, source, row, count, stage, &codes, err)
                        : read_rows(program, graph, tensor, source, row, count, stage, &rows, err);
        if (status)
            return status;
        if (scaled)
            pack_scaled_groups(program, segment, &codes, count, at, stride);
        else
            pack_groups(program, segment, rows, count, at, stride);
    }
    return MGL_OK;
}

mgl_status mgl_pack_rows(const mgl_program *program, const mgl_graph *graph,
                         const mgl_segment *segment, int64_t lo, int64_t hi, void *to,
                         mgl_error *err)
{
    struct stage stage = {0};
    int count = segment->layout == MGL_LAYOUT_G8X2 ? 2 : 1;
    MGL_ASSERT(lo >= segment->row_lo && lo < hi && hi <= segment->row_hi);
    MGL_ASSERT((lo - segment->row_lo) % MGL_ROW_GROUP == 0);
    mgl_status status = stage_open(&stage, &program->tensors[segment->tensor], hi - lo, err);
    for (int which = 0; which < count && !status; which++)
        status = pack_tensor(program, graph, segment, which, lo, hi, &stage, to, err);
    stage_close(&stage);
    return status;
}

/* Packs rows [lo, hi) of a const buffer that is a tensor. */
static mgl_status pack_table(const mgl_program *program, const mgl_graph *graph,
                             const mgl_buffer *buffer, int64_t lo, int64_t hi, char *to,
                             mgl_error *err)
{
    int source;
    const mgl_program_tensor *t = &program->tensors[buffer->tensor];
    size_t row_bytes = (size_t)t->cols * mgl_dtype_size(buffer->dtype);
    mgl_status status = find_tensor(program, graph, buffer->tensor, &source, err);
    if (status)
        return status;
    if (mgl_buffer_elements(buffer) != t->rows * t->cols)
        return mgl_fail(err, MGL_BAD_INPUT, buffer->name,
                        "the buffer and its tensor %s differ in shape", t->name);
    struct stage stage = {0};
    status = stage_open(&stage, t, hi - lo, err);
    for (int64_t row = lo; !status && row < hi; row += stage.rows) {
        int64_t count = hi - row < stage.rows ? hi - row : stage.rows;
        const char *rows; /* in the tensor's format, so that each copy of a weight is rounded the
                             same way, once */
        status = read_rows(program, graph, buffer->tensor, source, row, count, &stage, &rows, err);
        if (!status)
            mgl_convert(to + (size_t)(row - lo) * row_bytes, buffer->dtype, rows,
                        mgl_weight_code_get(t->format.code)->numbers, (size_t)(count * t->cols));
    }
    stage_close(&stage);
    return status;
}

/* Writes rows [lo, hi) of the rope table. Row p holds the cosines, then the sines, of inv_freq[i] *
 * (float)p (one f32 product, as in Hugging Face's LlamaRotaryEmbedding). Each is computed in f64,
 * rounded to f32, and then multiplied by rope's scale. */
static mgl_status pack_rope(const mgl_graph *graph, const mgl_buffer *buffer, int64_t lo,
                            int64_t hi, float *to, mgl_error *err)
{
    int64_t half = buffer->extents[1].count / 2;
    if (buffer->rank != 2 || buffer->extents[1].count != graph->geometry.head_dim)
        return mgl_fail(err, MGL_BAD_INPUT, buffer->name, "a rope buffer has one row a position");
    const float *inv_freq = mgl_graph_frequencies(graph, buffer->extents[0].count);
    for (int64_t p = lo; p < hi; p++, to += 2 * half) {
        for (int64_t i = 0; i < half; i++) {
            float angle = inv_freq[i] * (float)p;
            to[i] = (float)cos((double)angle) * graph->rope_scale;
            to[half + i] = (float)sin((double)angle) * graph->rope_scale;
        }
    }
    return MGL_OK;
}

int64_t mgl_pack_const_rows(const mgl_program *program, int buffer)
{
    const mgl_buffer *b = &program->buffers[buffer];
    if (b->source == MGL_SOURCE_TENSOR || b->source == MGL_SOURCE_SCALES)
        return program->tensors[b->tensor].rows;
    return b->source == MGL_SOURCE_ROPE ? b->extents[0].count : 1;
}

mgl_status mgl_pack_const_part(const mgl_program *program, const mgl_graph *graph, int buffer,
                               int64_t lo, int64_t hi, void *to, mgl_error *err)
{
    const mgl_buffer *b = &program->buffers[buffer];
    if (b->source == MGL_SOURCE_TENSOR)
        return pack_table(program, graph, b, lo, hi, to, err);
    if (b->source == MGL_SOURCE_SCALES)
        return pack_factors(program, graph, b, lo, hi, to, err);
    if (b->source == MGL_SOURCE_ORDER)
        return pack_order(program, graph, b, to, err);
    if (b->source == MGL_SOURCE_ROPE)
        return pack_rope(graph, b, lo, hi, to, err);
    memset(to, 0, mgl_buffer_bytes(b));
    return MGL_OK;
}

mgl_status mgl_pack_const(const mgl_program *program, const mgl_graph *graph, int buffer, void *to,
                          mgl_error *err)
{
    return mgl_pack_const_part(program, graph, buffer, 0, mgl_pack_const_rows(program, buffer), to,
                               err);
}
