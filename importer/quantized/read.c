/*
 * Reads rows of quantized matrices. See read.h. Rows are read in runs of stored rows that follow
 * one another. A run of a layout that is packed across rows is a strip of the stored tensor: one
 * piece of each of its rows. The strip is copied first, then transposed (unpack.h). The rows of a
 * run of GPTQ may also be in any order (m->view.order): elements are picked from each piece.
 */
#include "importer/quantized/read.h"

#include "base/memory.h"
#include "importer/quantized/unpack.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Codes of one run: a strip stays in the cache of a core. */
enum { RUN_CODES = 1 << 20, NUMBERS_RUN = 1 << 18, PART_COLUMNS = 256 };

/* Stored rows: `count` rows from `row`, or rows `row` + places[i]. */
typedef struct run {
    int64_t row, count;
    const int32_t *places; /* (count), not owned; NULL: the rows follow one another */
} run;

static int64_t stored_row(const run *r, int64_t i)
{
    return r->row + (r->places ? r->places[i] : i);
}

static int bits_of(const mgl_quantized *m)
{
    return mgl_weight_code_get(m->format.code)->bits;
}

static const char *name_of(const mgl_safetensors *files, int stored)
{
    return files->tensors.items[stored].name;
}

/* ---- codes ----------------------------------------------------------------------------------- */

static mgl_status read_bytes(const mgl_safetensors *files, const mgl_quantized *m, int64_t row,
                             int64_t count, uint8_t *to, mgl_error *err)
{
    const size_t all = (size_t)(count * m->columns);
    mgl_status status =
        mgl_safetensors_read(files, m->codes, (size_t)(row * m->columns), all, to, err);
    for (size_t i = 0; i < all && !status && m->is_signed; i++)
        to[i] ^= 0x80;
    return status;
}

/* Reads and unpacks a run of AWQ in parts of a few columns, whose words stay in the cache. */
static mgl_status read_awq(const mgl_safetensors *files, const mgl_quantized *m, int64_t row,
                           int64_t count, uint32_t *words, uint8_t *to, mgl_error *err)
{
    const int64_t first = row / 8, width = (row + count + 7) / 8 - first, all = m->view.total / 8;
    mgl_status status = MGL_OK;
    for (int64_t k = 0; k < m->columns && !status; k += PART_COLUMNS) {
        const int64_t some = m->columns - k < PART_COLUMNS ? m->columns - k : PART_COLUMNS;
        status = mgl_safetensors_read_strided(files, m->codes, (size_t)(k * all + first) * 4,
                                              (size_t)width * 4, (size_t)all * 4, (size_t)some,
                                              words, err);
        if (!status)
            mgl_unpack_awq(words, width, row % 8, count, some, m->columns, to + k);
    }
    return status;
}

/* Copies a run of a tensor that is packed across rows: `pieces` pieces, in which an element of
 * `size` bytes belongs to each of `total` rows. */
static mgl_status copy_strip(const mgl_safetensors *files, int tensor, size_t size, int64_t total,
                             int64_t pieces, const run *r, void *to, mgl_error *err)
{
    const size_t offset = (size_t)r->row * size, stride = (size_t)total * size;
    const size_t count = (size_t)r->count;
    if (!r->places)
        return mgl_safetensors_read_strided(files, tensor, offset, count * size, stride,
                                            (size_t)pieces, to, err);
    const mgl_picks picks = {offset, size, stride, (size_t)pieces, count, r->places};
    return mgl_safetensors_pick(files, tensor, &picks, to, err);
}

/* Reads the words of a run into `words`, and unpacks them. */
static mgl_status read_words(const mgl_safetensors *files, const mgl_quantized *m, const run *r,
                             uint32_t *words, uint8_t *to, mgl_error *err)
{
    const size_t columns = (size_t)m->columns, first = (size_t)r->row;
    const int bits = bits_of(m);
    mgl_status status;
    if (m->packing == MGL_CODES_NIBBLES) {
        status = mgl_safetensors_read(files, m->codes, first * columns / 2,
                                      (size_t)r->count * columns / 2, words, err);
        if (!status)
            mgl_unpack_nibbles((const uint8_t *)words, r->count * m->columns, to);
    } else if (m->packing == MGL_CODES_GPTQ) {
        status =
            copy_strip(files, m->codes, 4, m->view.total, m->columns * bits / 32, r, words, err);
        if (!status && m->order)
            mgl_unpack_gptq_sorted(words, bits, r->count, m->columns, m->order,
                                   (uint8_t *)words + r->count * m->columns, to);
        else if (!status)
            mgl_unpack_gptq(words, bits, r->count, m->columns, to);
    } else {
        status = read_awq(files, m, r->row, r->count, words, to, err);
    }
    return status;
}

static mgl_status check_codes(const mgl_safetensors *files, const mgl_quantized *m, const run *r,
                              const uint8_t *codes, mgl_error *err)
{
    const int64_t all = r->count * m->columns;
    unsigned bad = 0;
    for (int64_t i = 0; i < all; i++)
        bad |= (codes[i] & 0x7F) == 0x7F;
    for (int64_t i = 0; i < all && bad; i++)
        if ((codes[i] & 0x7F) == 0x7F)
            return mgl_fail(err, MGL_BAD_INPUT, name_of(files, m->codes),
                            "the weight of row %" PRId64 ", column %" PRId64
                            " is NaN; download the model again or use another checkpoint",
                            stored_row(r, i / m->columns), i % m->columns);
    return MGL_OK;
}

static mgl_status read_run_codes(const mgl_safetensors *files, const mgl_quantized *m, const run *r,
                                 uint8_t *to, mgl_error *err)
{
    if (m->packing == MGL_CODES_BYTES) {
        mgl_status status = read_bytes(files, m, r->row, r->count, to, err);
        return status || m->format.code != MGL_CODE_E4M3 ? status
                                                         : check_codes(files, m, r, to, err);
    }
    /* AWQ: up to 14 rows more than needed, since words cover 8 rows. GPTQ: a tile of 8 rows. */
    const size_t bytes = (size_t)(r->count + 14) * (size_t)m->columns;
    uint32_t *words = mgl_alloc(bytes);
    if (!words)
        return mgl_fail_memory(err, bytes);
    mgl_status status = read_words(files, m, r, words, to, err);
    mgl_free(words);
    return status;
}

/* ---- scales ---------------------------------------------------------------------------------- */

static size_t scale_size(const mgl_quantized *m)
{
    return m->scales_are_powers ? 1 : mgl_dtype_size(m->format.scales);
}

static void convert_scales(const mgl_quantized *m, const void *raw, size_t count, float *to)
{
    const uint8_t *bytes = raw;
    if (m->scales_are_powers)
        for (size_t i = 0; i < count; i++)
            to[i] = bytes[i] == 255 ? NAN : ldexpf(1, bytes[i] - 127);
    else
        mgl_convert(to, MGL_F32, raw, m->format.scales, count);
}

/* Reads the scales of a run into `raw`, and from there to (count, groups). */
static mgl_status read_raw_scales(const mgl_safetensors *files, const mgl_quantized *m,
                                  const run *r, char *raw, float *scales, float *to, mgl_error *err)
{
    const size_t size = scale_size(m), groups = (size_t)m->groups, count = (size_t)r->count;
    const size_t first = (size_t)(r->row / m->scale_rows);
    const size_t rows = (size_t)((r->row + r->count - 1) / m->scale_rows) - first + 1;
    mgl_status status =
        m->scales_by_group
            ? copy_strip(files, m->scales, size, m->view.total, m->groups, r, raw, err)
            : mgl_safetensors_read(files, m->scales, first * groups * size, rows * groups * size,
                                   raw, err);
    if (status)
        return status;
    convert_scales(m, raw, (m->scales_by_group ? count : rows) * groups, scales);
    for (size_t i = 0; i < count; i++) {
        const size_t from = ((size_t)r->row + i) / (size_t)m->scale_rows - first;
        for (size_t g = 0; g < groups; g++)
            to[i * groups + g] = scales[m->scales_by_group ? g * count + i : from * groups + g];
    }
    return MGL_OK;
}

/* The first stored column of a group. */
static int64_t first_column(const mgl_quantized *m, int64_t group)
{
    const int64_t column = group * m->format.group;
    return m->order ? m->order[column] : column;
}

/* Rejects scales, or minimums, that make a weight infinite or NaN. The largest code is 448, of
 * e4m3. */
static mgl_status check_scales(const mgl_safetensors *files, const mgl_quantized *m,
                               const char *what, const run *r, const float *scales, mgl_error *err)
{
    const float most = 448;
    for (int64_t i = 0; i < r->count * m->groups; i++)
        if (!isfinite(scales[i] * most))
            return mgl_fail(err, MGL_BAD_INPUT, name_of(files, m->scales),
                            "the %s of row %" PRId64 ", group %" PRId64 " (from column %" PRId64
                            ") is %s; download the model again or use another checkpoint",
                            what, stored_row(r, i / m->groups), i % m->groups,
                            first_column(m, i % m->groups),
                            isnan(scales[i])   ? "NaN"
                            : isinf(scales[i]) ? "infinite"
                                               : "too large");
    return MGL_OK;
}

static mgl_status read_run_scales(const mgl_safetensors *files, const mgl_quantized *m,
                                  const run *r, float *to, mgl_error *err)
{
    const size_t all = (size_t)r->count * (size_t)m->groups, bytes = all * 2 * sizeof(float);
    float *raw = mgl_alloc(bytes);
    if (!raw)
        return mgl_fail_memory(err, bytes);
    mgl_status status = read_raw_scales(files, m, r, (char *)raw, raw + all, to, err);
    mgl_free(raw);
    return status ? status : check_scales(files, m, "scale", r, to, err);
}

/* ---- zero points ----------------------------------------------------------------------------- */

/* The words of the zero points of a run. */
typedef struct zero_words {
    size_t first, width; /* `width` words along N from word `first`, of each group */
    int32_t *places;     /* owned (count); NULL, or the word of each row, counted from `first`: the
                            words hold one row each */
    uint32_t *words;     /* owned (width, groups), or of GPTQ and AWQ (groups, width) */
} zero_words;

static mgl_status open_zero_words(const mgl_quantized *m, const run *r, zero_words *out,
                                  mgl_error *err)
{
    const int64_t fields = 32 / bits_of(m), first = r->row / fields;
    const int64_t width = r->places ? r->count : (r->row + r->count + fields - 1) / fields - first;
    const size_t bytes = (size_t)(width * m->groups) * 4;
    *out = (zero_words){.first = (size_t)first, .width = (size_t)width};
    out->words = mgl_alloc(bytes);
    out->places = r->places ? mgl_alloc((size_t)width * sizeof *out->places) : NULL;
    if (!out->words || (r->places && !out->places))
        return mgl_fail_memory(err, bytes);
    for (int64_t i = 0; r->places && i < width; i++)
        out->places[i] = (int32_t)(stored_row(r, i) / fields - first);
    return MGL_OK;
}

static mgl_status read_zero_words(const mgl_safetensors *files, const mgl_quantized *m,
                                  const zero_words *z, mgl_error *err)
{
    const size_t groups = (size_t)m->groups;
    const run words = {(int64_t)z->first, (int64_t)z->width, z->places};
    if (m->zero_packing == MGL_ZEROS_ROWS)
        return mgl_safetensors_read(files, m->zeros, z->first * groups * 4, z->width * groups * 4,
                                    z->words, err);
    return copy_strip(files, m->zeros, 4, m->view.total * bits_of(m) / 32, m->groups, &words,
                      z->words, err);
}

static void unpack_zeros(const mgl_quantized *m, const zero_words *z, const run *r, uint8_t *to)
{
    const int bits = bits_of(m), fields = 32 / bits;
    const size_t groups = (size_t)m->groups;
    for (int64_t i = 0; i < r->count; i++) {
        const int64_t row = stored_row(r, i);
        const size_t word = z->places ? (size_t)i : (size_t)(row / fields) - z->first;
        const int at = (int)(row % fields);
        const int shift = bits * (m->zero_packing == MGL_ZEROS_AWQ ? mgl_awq_field(at) : at);
        for (size_t g = 0; g < groups; g++) {
            const uint32_t w = m->zero_packing == MGL_ZEROS_ROWS ? z->words[word * groups + g]
                                                                 : z->words[g * z->width + word];
            to[(size_t)i * groups + g] = (uint8_t)(w >> shift & ((1u << bits) - 1));
        }
    }
}

/* Reads signed zero points; rows that share scales share zero points too. */
static mgl_status read_zero_bytes(const mgl_safetensors *files, const mgl_quantized *m, int64_t row,
                                  int64_t count, uint8_t *to, mgl_error *err)
{
    const size_t groups = (size_t)m->groups;
    mgl_status status = MGL_OK;
    for (int64_t r = 0; r < count && !status; r++) {
        const size_t from = (size_t)((row + r) / m->scale_rows);
        uint8_t *zeros = to + (size_t)r * groups;
        status = mgl_safetensors_read(files, m->zeros, from * groups, groups, zeros, err);
        for (size_t g = 0; g < groups && !status; g++)
            zeros[g] = (uint8_t)(zeros[g] + mgl_weight_code_zero(m->format.code));
    }
    return status;
}

static mgl_status read_zeros(const mgl_safetensors *files, const mgl_quantized *m, const run *r,
                             uint8_t *to, mgl_error *err)
{
    zero_words z;
    if (m->zero_packing == MGL_ZEROS_BYTES)
        return read_zero_bytes(files, m, r->row, r->count, to, err);
    mgl_status status = open_zero_words(m, r, &z, err);
    if (!status)
        status = read_zero_words(files, m, &z, err);
    if (!status)
        unpack_zeros(m, &z, r, to);
    mgl_free(z.words);
    mgl_free(z.places);
    return status;
}

mgl_status mgl_quantized_read_zeros(const mgl_safetensors *files, const mgl_quantized *m,
                                    int64_t row, int64_t count, uint8_t *to, mgl_error *err)
{
    return read_zeros(files, m, &(run){row, count, NULL}, to, err);
}

static mgl_status read_run_zeros(const mgl_safetensors *files, const mgl_quantized *m, const run *r,
                                 uint8_t *to, mgl_error *err)
{
    const unsigned mask = (1u << bits_of(m)) - 1;
    mgl_status status = read_zeros(files, m, r, to, err);
    for (int64_t i = 0; i < r->count * m->groups && !status; i++)
        to[i] = (uint8_t)((to[i] + (unsigned)m->zero_add) & mask);
    return status;
}

/* ---- runs ------------------------------------------------------------------------------------ */

/* Reads and unpacks blocks, a part of the rows at a time. */
static mgl_status read_blocks(const mgl_safetensors *files, const mgl_quantized *m, const run *r,
                              const mgl_quantized_rows *to, mgl_error *err)
{
    const mgl_gguf_blocks *blocks = m->blocks;
    const int64_t width = m->columns / blocks->weights, all = r->count * width;
    const int64_t most = RUN_CODES / blocks->weights, some = all < most ? all : most;
    const int groups = blocks->weights / blocks->format.group;
    const size_t size = (size_t)blocks->bytes;
    uint8_t *raw = mgl_alloc((size_t)some * size + 1);
    mgl_status status = raw ? MGL_OK : mgl_fail_memory(err, (size_t)some * size);
    for (int64_t at = 0, n; at < all && !status; at += n) {
        n = all - at < some ? all - at : some;
        status = mgl_safetensors_read(files, m->codes, (size_t)(r->row * width + at) * size,
                                      (size_t)n * size, raw, err);
        for (int64_t i = 0; i < n && !status; i++)
            blocks->unpack(raw + (size_t)i * size, to->codes + (at + i) * blocks->weights,
                           to->scales + (at + i) * groups,
                           to->minimums ? to->minimums + (at + i) * groups : NULL);
    }
    mgl_free(raw);
    if (!status)
        status = check_scales(files, m, "scale", r, to->scales, err);
    return status || !to->minimums ? status
                                   : check_scales(files, m, "minimum", r, to->minimums, err);
}

/* Reads a run. Only GPTQ supports places. */
static mgl_status read_run(const mgl_safetensors *files, const mgl_quantized *m, const run *r,
                           const mgl_quantized_rows *to, mgl_error *err)
{
    if (m->packing == MGL_CODES_BLOCKS)
        return read_blocks(files, m, r, to, err);
    mgl_status status = read_run_codes(files, m, r, to->codes, err);
    if (!status)
        status = read_run_scales(files, m, r, to->scales, err);
    if (!status && m->format.zeros)
        status = read_run_zeros(files, m, r, to->zeros, err);
    return status;
}

static mgl_quantized_rows rows_from(const mgl_quantized *m, const mgl_quantized_rows *to,
                                    int64_t row)
{
    return (mgl_quantized_rows){to->codes + row * m->columns, to->scales + row * m->groups,
                                to->zeros ? to->zeros + row * m->groups : NULL,
                                to->minimums ? to->minimums + row * m->groups : NULL};
}

static mgl_status allocate(const mgl_quantized *m, int64_t count, mgl_quantized_rows *out,
                           mgl_error *err)
{
    const size_t codes = (size_t)(count * m->columns), groups = (size_t)(count * m->groups);
    const size_t bytes = 2 * groups * sizeof(float) + codes + groups;
    float *memory = mgl_alloc(bytes);
    if (!memory)
        return mgl_fail_memory(err, bytes);
    uint8_t *after = (uint8_t *)(memory + 2 * groups);
    *out = (mgl_quantized_rows){after, memory, m->format.zeros ? after + codes : NULL,
                                mgl_weight_format_has_minimums(m->format) ? memory + groups : NULL};
    return MGL_OK;
}

/* Copies row `from` of b to row `to` of a. */
static void copy_row(const mgl_quantized *m, const mgl_quantized_rows *a, int64_t to,
                     const mgl_quantized_rows *b, int64_t from)
{
    const mgl_quantized_rows x = rows_from(m, a, to), y = rows_from(m, b, from);
    memcpy(x.codes, y.codes, (size_t)m->columns);
    memcpy(x.scales, y.scales, (size_t)m->groups * sizeof *x.scales);
    if (x.zeros)
        memcpy(x.zeros, y.zeros, (size_t)m->groups);
    if (x.minimums)
        memcpy(x.minimums, y.minimums, (size_t)m->groups * sizeof *x.minimums);
}

/* Reads rows of one head whose rows are stored in another order: reads the whole head. */
static mgl_status read_head(const mgl_safetensors *files, const mgl_quantized *m, int64_t row,
                            int64_t count, const mgl_quantized_rows *to, mgl_error *err)
{
    const int64_t size = m->view.interleave, start = row / size * size;
    mgl_quantized_rows head = {0};
    mgl_status status = allocate(m, size, &head, err);
    if (status)
        return status;
    status = read_run(files, m, &(run){m->view.row + start, size, NULL}, &head, err);
    for (int64_t i = 0; i < count && !status; i++) {
        const int64_t from = mgl_view_row(&m->view, row + i) - m->view.row - start;
        copy_row(m, to, i, &head, from);
    }
    mgl_free(head.scales);
    return status;
}

/* Rows of a run of about `codes` codes; a multiple of 8. */
static int64_t run_rows(const mgl_quantized *m, int64_t codes)
{
    const int64_t rows = codes / m->columns / 8 * 8;
    return rows > 8 ? rows : 8;
}

/* Reads rows in the order of the view. The columns have their stored order. */
static mgl_status read_stored(const mgl_safetensors *files, const mgl_quantized *m, int64_t row,
                              int64_t count, const mgl_quantized_rows *to, mgl_error *err)
{
    const int32_t *order = m->view.order;
    const bool is_picked = order && m->packing == MGL_CODES_GPTQ;
    mgl_status status = MGL_OK;
    for (int64_t at = 0, some; at < count && !status; at += some) {
        const int64_t head = m->view.interleave;
        const int64_t most = head                  ? head - (row + at) % head
                             : order && !is_picked ? 1
                                                   : run_rows(m, RUN_CODES);
        const mgl_quantized_rows part = rows_from(m, to, at);
        some = count - at < most ? count - at : most;
        const run r = is_picked ? (run){m->view.row, some, order + row + at}
                                : (run){mgl_view_row(&m->view, row + at), some, NULL};
        status = head ? read_head(files, m, row + at, some, &part, err)
                      : read_run(files, m, &r, &part, err);
    }
    return status;
}

/* Sorts the columns of codes (count, columns) by group. */
static mgl_status sort_columns(const mgl_quantized *m, int64_t count, uint8_t *codes,
                               mgl_error *err)
{
    const size_t columns = (size_t)m->columns;
    uint8_t *row = mgl_alloc(columns);
    if (!row)
        return mgl_fail_memory(err, columns);
    for (int64_t i = 0; i < count; i++, codes += columns) {
        memcpy(row, codes, columns);
        mgl_sort_codes(row, m->order, m->columns, codes);
    }
    mgl_free(row);
    return MGL_OK;
}

mgl_status mgl_quantized_read_codes(const mgl_safetensors *files, const mgl_quantized *m,
                                    int64_t row, int64_t count, const mgl_quantized_rows *to,
                                    mgl_error *err)
{
    mgl_status status = read_stored(files, m, row, count, to, err);
    return status || !m->order || m->packing == MGL_CODES_GPTQ
               ? status
               : sort_columns(m, count, to->codes, err);
}

/* Multiplies the codes of a row. `numbers`: of all e4m3 codes. */
static void multiply(const mgl_quantized *m, const mgl_quantized_rows *row, const float *numbers,
                     float *to)
{
    const int64_t group = m->format.group ? m->format.group : m->columns;
    for (int64_t g = 0; g < m->groups; g++) {
        const int64_t end = (g + 1) * group < m->columns ? (g + 1) * group : m->columns;
        const int zero = row->zeros ? row->zeros[g] : mgl_weight_code_zero(m->format.code);
        const float scale = row->scales[g];
        if (m->format.code == MGL_CODE_E4M3)
            for (int64_t k = g * group; k < end; k++)
                to[k] = numbers[row->codes[k]] * scale;
        else if (row->minimums)
            for (int64_t k = g * group; k < end; k++)
                to[k] = (float)row->codes[k] * scale + row->minimums[g];
        else
            for (int64_t k = g * group; k < end; k++)
                to[k] = (float)(row->codes[k] - zero) * scale;
    }
}

/* Multiplies the codes of `count` rows. If `sorted` is not NULL, the columns of the codes are
 * sorted by group and the columns of `to` have their stored order; `sorted` is scratch memory
 * (columns). */
static void multiply_rows(const mgl_quantized *m, const mgl_quantized_rows *rows, int64_t count,
                          float *sorted, float *to)
{
    float numbers[256];
    for (unsigned i = 0; i < 256; i++)
        numbers[i] = mgl_weight_code_number(MGL_CODE_E4M3, i, 0);
    for (int64_t i = 0; i < count; i++, to += m->columns) {
        const mgl_quantized_rows from = rows_from(m, rows, i);
        multiply(m, &from, numbers, sorted ? sorted : to);
        for (int64_t k = 0; k < m->columns && sorted; k++)
            to[m->order[k]] = sorted[k];
    }
}

mgl_status mgl_quantized_read(const mgl_safetensors *files, const mgl_quantized *m, int64_t row,
                              int64_t count, float *to, mgl_error *err)
{
    const int64_t rows = run_rows(m, NUMBERS_RUN), most = count < rows ? count : rows;
    const bool is_sorted = m->order && !m->relabeled;
    const size_t bytes = (size_t)m->columns * sizeof(float);
    mgl_quantized_rows part = {0};
    if (!count)
        return MGL_OK;
    mgl_status status = allocate(m, most, &part, err);
    float *sorted = is_sorted && !status ? mgl_alloc(bytes) : NULL;
    if (is_sorted && !status && !sorted)
        status = mgl_fail_memory(err, bytes);
    for (int64_t at = 0, some; at < count && !status; at += some) {
        some = count - at < most ? count - at : most;
        status = mgl_quantized_read_codes(files, m, row + at, some, &part, err);
        if (!status)
            multiply_rows(m, &part, some, sorted, to + at * m->columns);
    }
    mgl_free(sorted);
    mgl_free(part.scales);
    return status;
}
