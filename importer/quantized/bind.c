/*
 * Binds quantized matrices. See bind.h. Each layout has one function, which checks the dtypes and
 * shapes of the stored tensors of a matrix, and fills its description. Zero points are read here:
 * if all are 2^(bits - 1), the matrix has a format without zero points.
 */
#include "importer/quantized/bind.h"

#include "base/format.h"
#include "base/memory.h"
#include "base/text.h"
#include "importer/quantized/order.h"
#include "importer/quantized/read.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { NAME = 192, SHAPE_TEXT = 160, MAX_INTS = 1 << 20, ZERO_ROWS = 1024 };

/* A matrix that is being bound. */
typedef struct matrix {
    mgl_binder *b;
    const mgl_quantization_group *group;
    mgl_quantization_group own; /* may hold `group` */
    mgl_quantized *out;
    char base[NAME];       /* the stored name up to its last point */
    int64_t rows, columns; /* of the whole stored matrix */
} matrix;

/* ---- reasons --------------------------------------------------------------------------------- */

static bool reject(mgl_binder *b, const char *where, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Counts a rejected matrix, and keeps the first message. Returns false. */
static bool reject(mgl_binder *b, const char *where, const char *format, ...)
{
    va_list args;
    if (!b->failures++) {
        va_start(args, format);
        mgl_format_into(b->where, sizeof b->where, "%s", where);
        mgl_format_list(b->message, sizeof b->message, format, args);
        va_end(args);
    }
    return false;
}

/* Keeps the failure of a read. Returns false. */
static bool fail_read(mgl_binder *b, mgl_status status, const mgl_error *cause)
{
    if (status == MGL_BAD_INPUT)
        return reject(b, cause->where, "%s", cause->message);
    if (!b->status) {
        b->status = status;
        if (b->err)
            *b->err = *cause;
    }
    return reject(b, cause->where, "%s", cause->message);
}

void mgl_quantized_report(const mgl_binder *b, mgl_reasons *reasons)
{
    if (b->failures == 1)
        mgl_reasons_add(reasons, b->where, "%s", b->message);
    else if (b->failures)
        mgl_reasons_add(reasons, b->where, "%s (%zu matrices are rejected)", b->message,
                        b->failures);
}

/* ---- stored tensors -------------------------------------------------------------------------- */

static const mgl_stored_tensor *stored_of(const mgl_binder *b, int index)
{
    return &b->files->tensors.items[index];
}

/* Finds "<base><suffix>"; -1: missing. */
static int find(const matrix *m, const char *suffix)
{
    char name[NAME + 32];
    snprintf(name, sizeof name, "%s%s", m->base, suffix);
    return mgl_safetensors_find(m->b->files, name);
}

/* Same, for a tensor that the layout requires. */
static bool need(matrix *m, const char *suffix, int *out)
{
    char name[NAME + 32];
    *out = find(m, suffix);
    if (*out >= 0)
        return true;
    snprintf(name, sizeof name, "%s%s", m->base, suffix);
    return reject(m->b, name, "the tensor is missing; the layout of %s needs this tensor beside %s",
                  mgl_quantizer_name(m->b->quantization->quantizer),
                  stored_of(m->b, m->out->codes)->name);
}

static const char *print_shape(int rank, const int64_t *shape, char text[SHAPE_TEXT])
{
    size_t used = (size_t)snprintf(text, SHAPE_TEXT, "[");
    for (int i = 0; i < rank && used < SHAPE_TEXT; i++)
        used +=
            (size_t)snprintf(text + used, SHAPE_TEXT - used, "%s%" PRId64, i ? ", " : "", shape[i]);
    if (used < SHAPE_TEXT)
        snprintf(text + used, SHAPE_TEXT - used, "]");
    return text;
}

static bool has_dtype(const mgl_stored_tensor *t, const char *dtype)
{
    return !strcmp(t->stored_dtype, dtype);
}

static bool check_dtype(matrix *m, int index, const char *dtype)
{
    const mgl_stored_tensor *t = stored_of(m->b, index);
    return has_dtype(t, dtype) ||
           reject(m->b, t->name, "its dtype is %s; the layout of %s makes it %s", t->stored_dtype,
                  mgl_quantizer_name(m->b->quantization->quantizer), dtype);
}

static bool is_shape(const mgl_stored_tensor *t, int64_t rows, int64_t columns)
{
    return t->rank == 2 && t->shape[0] == rows && t->shape[1] == columns;
}

static bool check_shape(matrix *m, int index, int64_t rows, int64_t columns)
{
    char is[SHAPE_TEXT], must[SHAPE_TEXT];
    const mgl_stored_tensor *t = stored_of(m->b, index);
    const int64_t shape[2] = {rows, columns};
    return is_shape(t, rows, columns) ||
           reject(
               m->b, t->name,
               "its shape is %s; a matrix of %" PRId64 " rows and %" PRId64
               " columns in the declared quantization makes it %s; correct the size of groups or "
               "blocks and the number of bits in the quantization config, or download the model "
               "again",
               print_shape(t->rank, t->shape, is), m->rows, m->columns,
               print_shape(2, shape, must));
}

/* Reads a tensor of I32 or I64 into a new array; returns NULL after a reason. */
static int64_t *read_integers(matrix *m, int index, int64_t count)
{
    const mgl_stored_tensor *t = stored_of(m->b, index);
    const bool is_wide = has_dtype(t, "I64");
    mgl_error cause;
    if ((!is_wide && !check_dtype(m, index, "I32")))
        return NULL;
    if (t->rank != 1 || t->shape[0] != count || count > MAX_INTS) {
        char is[SHAPE_TEXT];
        reject(m->b, t->name, "its shape is %s; it must be [%" PRId64 "]",
               print_shape(t->rank, t->shape, is), count);
        return NULL;
    }
    int64_t *values = mgl_alloc_zero((size_t)count, 8);
    mgl_status status = values
                            ? mgl_safetensors_read(m->b->files, index, 0, t->bytes, values, &cause)
                            : mgl_fail_memory(&cause, (size_t)count * 8);
    if (status) {
        fail_read(m->b, status, &cause);
        mgl_free(values);
        return NULL;
    }
    for (int64_t i = count - 1; i >= 0 && !is_wide; i--) {
        int32_t value;
        memcpy(&value, (const char *)values + i * 4, 4);
        values[i] = value;
    }
    return values;
}

/* ---- scales ---------------------------------------------------------------------------------- */

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static bool check_scale_dtype(matrix *m)
{
    const mgl_stored_tensor *t = stored_of(m->b, m->out->scales);
    m->out->scales_are_powers =
        has_dtype(t, "F8_E8M0") && m->b->quantization->quantizer == MGL_QUANTIZER_FP8;
    m->out->format.scales = m->out->scales_are_powers ? MGL_F32 : t->dtype;
    return t->usable || m->out->scales_are_powers ||
           reject(m->b, t->name,
                  "scales of dtype %s are not supported; supported: F32, F16 and BF16",
                  t->stored_dtype);
}

/* The number of columns of a group. */
static int64_t group_columns(const matrix *m)
{
    const bool grouped =
        m->group->strategy == MGL_SCALES_GROUP || m->group->strategy == MGL_SCALES_BLOCK;
    return grouped && m->group->group > 0 ? m->group->group : m->columns;
}

/* Sets the groups of the format and of the description. */
static bool set_groups(matrix *m)
{
    mgl_quantized *q = m->out;
    const mgl_scale_strategy strategy = m->group->strategy;
    const int64_t group = group_columns(m);
    if (strategy == MGL_SCALES_GROUP && group > m->columns)
        return reject(m->b, stored_of(m->b, q->codes)->name,
                      "groups of %" PRId64 " columns are larger than a row of %" PRId64
                      " columns; use a checkpoint with smaller groups",
                      group, m->columns);
    const bool is_row = strategy == MGL_SCALES_TENSOR || strategy == MGL_SCALES_CHANNEL ||
                        (strategy == MGL_SCALES_GROUP && group == m->columns);
    q->groups = ceil_div(m->columns, group);
    q->scale_rows = strategy == MGL_SCALES_TENSOR  ? m->rows
                    : strategy == MGL_SCALES_BLOCK ? m->group->group_rows
                                                   : 1;
    q->format.group = is_row ? MGL_GROUP_ALL : (int32_t)group;
    q->format.group_rows = strategy == MGL_SCALES_TENSOR ? MGL_GROUP_ALL : (int32_t)q->scale_rows;
    /* A part of a fused matrix may begin inside a block: then each row has copies of its scales. */
    const int32_t head = q->view.interleave;
    if (strategy == MGL_SCALES_BLOCK &&
        (q->view.row % q->scale_rows || (head && q->scale_rows % head)))
        q->format.group_rows = 1;
    return true;
}

/* Finds and checks scales of which each stored row belongs to rows of the matrix. */
static bool bind_row_scales(matrix *m, int index)
{
    mgl_quantized *q = m->out;
    const mgl_stored_tensor *t = stored_of(m->b, index);
    if (m->b->quantization->is_block_default &&
        (t->rank == 0 ||
         (t->shape[0] == 1 && m->rows > 128 && (t->rank == 1 || t->shape[1] == 1)))) {
        m->own = *m->group;
        m->own.strategy = MGL_SCALES_TENSOR;
        m->group = &m->own;
    }
    q->scales = index;
    if (!set_groups(m) || !check_scale_dtype(m))
        return false;
    const int64_t rows = ceil_div(m->rows, q->scale_rows);
    if (m->group->strategy == MGL_SCALES_TENSOR &&
        (t->rank == 0 || (t->rank == 1 && t->shape[0] == 1)))
        return true;
    if (m->group->strategy == MGL_SCALES_CHANNEL && t->rank == 1 && t->shape[0] == rows)
        return true;
    return check_shape(m, index, rows, q->groups);
}

/* ---- order of columns ------------------------------------------------------------------------ */

/* Whether columns may be reordered in the layout of the matrix. */
static bool may_reorder(const matrix *m)
{
    const mgl_quantizer quantizer = m->b->quantization->quantizer;
    return (quantizer == MGL_QUANTIZER_GPTQ || quantizer == MGL_QUANTIZER_COMPRESSED) &&
           m->group->strategy == MGL_SCALES_GROUP;
}

/* Reads a stored map of columns to groups. If the map reorders columns, `out` gets their order. */
static bool bind_map(matrix *m, int index)
{
    mgl_error cause;
    int32_t *order = NULL;
    const char *name = stored_of(m->b, index)->name;
    int64_t *group_of = read_integers(m, index, m->columns);
    const mgl_column_map map = {.group_of = group_of,
                                .columns = m->columns,
                                .groups = m->out->groups,
                                .size = group_columns(m),
                                .zeros_ignored =
                                    m->b->quantization->quantizer == MGL_QUANTIZER_GPTQ};
    mgl_status status = group_of ? mgl_column_map_sort(&map, name, &order, &cause) : MGL_OK;
    bool good = group_of && (!status || fail_read(m->b, status, &cause));
    mgl_free(group_of);
    m->b->used[index] |= good;
    if (order && m->out->order)
        good = reject(m->b, name,
                      "the matrix has two orders of columns; keep one of g_idx and weight_g_idx");
    else if (order && !may_reorder(m))
        good = reject(m->b, name,
                      "the columns are reordered, which the declared layout does not allow; "
                      "download the model again");
    if (good && order)
        m->out->order = order;
    else
        mgl_free(order);
    return good;
}

/* Reads all stored maps of a matrix, even if its layout needs none. */
static bool bind_maps(matrix *m)
{
    static const char *const suffixes[] = {"weight_g_idx", "g_idx"};
    bool good = true;
    for (int i = 0; i < 2 && good; i++) {
        const int index = find(m, suffixes[i]);
        good = index < 0 || bind_map(m, index);
    }
    return good;
}

/* ---- zero points ----------------------------------------------------------------------------- */

/* The stored zero points of the rows of a matrix. */
typedef struct zero_range {
    int least, most;
} zero_range;

static bool scan_zeros(matrix *m, zero_range *out)
{
    const mgl_quantized *q = m->out;
    const int64_t rows = m->rows < ZERO_ROWS ? m->rows : ZERO_ROWS;
    uint8_t *zeros = mgl_alloc((size_t)(rows * q->groups));
    mgl_error cause;
    mgl_status status = zeros ? MGL_OK : mgl_fail_memory(&cause, (size_t)(rows * q->groups));
    *out = (zero_range){255, 0};
    for (int64_t row = 0; row < m->rows && !status; row += rows) {
        const int64_t count = m->rows - row < rows ? m->rows - row : rows;
        status = mgl_quantized_read_zeros(m->b->files, q, row, count, zeros, &cause);
        for (int64_t i = 0; i < count * q->groups && !status; i++) {
            out->least = zeros[i] < out->least ? zeros[i] : out->least;
            out->most = zeros[i] > out->most ? zeros[i] : out->most;
        }
    }
    mgl_free(zeros);
    return !status || fail_read(m->b, status, &cause);
}

/* Keeps the zero points only if one is not the default. `may_differ`: false: this is an error. */
static bool decide_zeros(matrix *m, bool may_differ)
{
    mgl_quantized *q = m->out;
    const int bits = mgl_weight_code_get(q->format.code)->bits;
    const int stored = (mgl_weight_code_zero(q->format.code) - q->zero_add) & ((1 << bits) - 1);
    zero_range range;
    if (!scan_zeros(m, &range))
        return false;
    if (range.most >> bits)
        return reject(m->b, stored_of(m->b, q->zeros)->name,
                      "a zero point is not in the range of %d bits; download the model again",
                      bits);
    q->format.zeros = range.least != stored || range.most != stored;
    if (!q->format.zeros)
        q->zero_packing = MGL_ZEROS_NONE;
    return !q->format.zeros || may_differ ||
           reject(m->b, stored_of(m->b, q->zeros)->name,
                  "the config declares symmetric weights, but zero points differ from the middle "
                  "of the range; correct the key \"sym\", \"symmetric\" or \"zero_point\", or "
                  "download the model again");
}

/* Same for GPTQ. Symmetric files of both versions exist under either name of the layout. */
static bool decide_gptq_zeros(matrix *m)
{
    const mgl_quantization *declared = m->b->quantization;
    const int middle = mgl_weight_code_zero(m->out->format.code);
    zero_range range;
    m->out->zero_add = declared->is_v2 ? 0 : 1;
    if (m->group->symmetric) {
        if (!scan_zeros(m, &range))
            return false;
        if (range.least == range.most && (range.least == middle || range.least == middle - 1)) {
            m->out->zero_add = middle - range.least;
            m->out->zero_packing = MGL_ZEROS_NONE;
            return true;
        }
    }
    return decide_zeros(m, !m->group->symmetric || !declared->is_symmetry_declared);
}

/* compressed-tensors: weight_zero_point, which symmetric weights do not need. */
static bool bind_compressed_zeros(matrix *m)
{
    mgl_quantized *q = m->out;
    const int index = find(m, "weight_zero_point");
    q->zeros = index;
    if (index < 0) /* all zero points are 0, also of asymmetric weights */
        return true;
    const mgl_stored_tensor *t = stored_of(m->b, index);
    const mgl_stored_tensor *scales = stored_of(m->b, q->scales);
    const int bits = mgl_weight_code_get(q->format.code)->bits;
    const bool is_packed = has_dtype(t, "I32") && q->format.code != MGL_CODE_E4M3;
    m->b->used[index] = true;
    if (is_packed && !check_shape(m, index, ceil_div(m->rows * bits, 32), q->groups))
        return false;
    if (!is_packed &&
        (t->rank != scales->rank || (t->rank > 0 && t->shape[0] != scales->shape[0]) ||
         (t->rank > 1 && t->shape[1] != scales->shape[1])))
        return reject(m->b, t->name, "its shape differs from the shape of %s; both must be equal",
                      scales->name);
    const bool is_float = q->format.code == MGL_CODE_E4M3;
    if (!is_packed && !has_dtype(t, "I8") && !(is_float && has_dtype(t, "F8_E4M3")))
        return reject(m->b, t->name,
                      "zero points of dtype %s are not supported; supported: I8, "
                      "and I32 for packed ones",
                      t->stored_dtype);
    q->zero_packing = is_packed ? MGL_ZEROS_ROWS : MGL_ZEROS_BYTES;
    return decide_zeros(m, !m->group->symmetric && !is_float);
}

/* Whether all bytes of a stored tensor are zero. */
static bool is_zero(const mgl_binder *b, int index)
{
    unsigned char bytes[512];
    const size_t all = stored_of(b, index)->bytes;
    for (size_t at = 0; at < all; at += sizeof bytes) {
        const size_t some = all - at < sizeof bytes ? all - at : sizeof bytes;
        if (mgl_safetensors_read(b->files, index, at, some, bytes, NULL))
            return false;
        for (size_t i = 0; i < some; i++)
            if (bytes[i])
                return false;
    }
    return true;
}

/* ---- layouts --------------------------------------------------------------------------------- */

static bool set_code(matrix *m)
{
    m->out->format.code = m->group->is_float    ? MGL_CODE_E4M3
                          : m->group->bits == 4 ? MGL_CODE_INT4
                                                : MGL_CODE_INT8;
    return true;
}

static bool check_words(matrix *m, int64_t extent, const char *what)
{
    const int64_t fields = 8; /* the device reads 8 codes at a time */
    return extent % fields == 0 ||
           reject(m->b, stored_of(m->b, m->out->codes)->name,
                  "a packed matrix with %" PRId64 " %s is not supported; supported: multiples of 8",
                  extent, what);
}

/* `weight` of bytes: int8 of compressed-tensors, or e4m3. */
static bool bind_bytes(matrix *m)
{
    mgl_quantized *q = m->out;
    mgl_binder *b = m->b;
    const mgl_stored_tensor *t = stored_of(b, q->codes);
    const bool is_float = has_dtype(t, "F8_E4M3");
    const bool is_fp8 = b->quantization->quantizer == MGL_QUANTIZER_FP8;
    if (is_float != m->group->is_float)
        return reject(b, t->name,
                      "its dtype is %s, but the config declares %s weights; correct "
                      "the config or download the model again",
                      t->stored_dtype, m->group->is_float ? "floating-point" : "integer");
    q->packing = MGL_CODES_BYTES;
    q->is_signed = !is_float;
    q->format.code = is_float ? MGL_CODE_E4M3 : MGL_CODE_INT8;
    const int inverse = find(m, "weight_scale_inv"), plain = find(m, "weight_scale");
    int scale = is_fp8 && inverse >= 0 ? inverse : plain;
    if (inverse >= 0 && plain >= 0)
        return reject(
            b, stored_of(b, plain)->name,
            "both weight_scale and weight_scale_inv are stored; keep the one that belongs "
            "to the weights");
    if (scale < 0 && !need(m, is_fp8 ? "weight_scale_inv" : "weight_scale", &scale))
        return false;
    const int zeros = find(m, "weight_zero_point");
    const bool is_compressed = b->quantization->quantizer == MGL_QUANTIZER_COMPRESSED;
    if (!is_compressed && zeros >= 0 && !is_zero(b, zeros))
        return reject(b, stored_of(b, zeros)->name,
                      "the layout of %s has no zero points; download the model again",
                      mgl_quantizer_name(b->quantization->quantizer));
    return check_shape(m, q->codes, m->rows, m->columns) && bind_row_scales(m, scale) &&
           (!is_compressed || bind_compressed_zeros(m));
}

/* Checks weight_shape of compressed-tensors. */
static bool check_weight_shape(matrix *m)
{
    int index;
    if (!need(m, "weight_shape", &index))
        return false;
    int64_t *shape = read_integers(m, index, 2);
    bool good = shape != NULL;
    if (good && (shape[0] != m->rows || shape[1] != m->columns))
        good = reject(m->b, stored_of(m->b, index)->name,
                      "the matrix is [%" PRId64 ", %" PRId64 "] there; config.json makes it "
                      "[%" PRId64 ", %" PRId64 "]",
                      shape[0], shape[1], m->rows, m->columns);
    mgl_free(shape);
    m->b->used[index] |= good;
    return good;
}

/* `weight_packed` of compressed-tensors. */
static bool bind_packed(matrix *m)
{
    mgl_quantized *q = m->out;
    int scale;
    if (m->group->is_float)
        return reject(
            m->b, stored_of(m->b, q->codes)->name,
            "packed weights are integers, but the config declares floating-point weights; "
            "correct the config or download the model again");
    set_code(m);
    q->packing = q->format.code == MGL_CODE_INT4 ? MGL_CODES_NIBBLES : MGL_CODES_BYTES;
    return check_dtype(m, q->codes, "I32") && check_words(m, m->columns, "columns") &&
           check_shape(m, q->codes, m->rows, m->columns * m->group->bits / 32) &&
           check_weight_shape(m) && need(m, "weight_scale", &scale) && bind_row_scales(m, scale) &&
           bind_compressed_zeros(m);
}

/* The shared part of GPTQ and AWQ: scales [G, N] and qzeros [G, N bits / 32]. */
static bool bind_columns(matrix *m, int64_t rows, int64_t columns)
{
    mgl_quantized *q = m->out;
    q->scales_by_group = true;
    set_code(m);
    return check_dtype(m, q->codes, "I32") && check_words(m, m->columns, "columns") &&
           check_words(m, m->rows, "rows") && check_shape(m, q->codes, rows, columns) &&
           set_groups(m) && need(m, "scales", &q->scales) && check_scale_dtype(m) &&
           check_shape(m, q->scales, q->groups, m->rows) && need(m, "qzeros", &q->zeros) &&
           check_dtype(m, q->zeros, "I32") &&
           check_shape(m, q->zeros, q->groups, m->rows * m->group->bits / 32);
}

static bool bind_gptq(matrix *m)
{
    mgl_quantized *q = m->out;
    int map = find(m, "g_idx");
    q->packing = MGL_CODES_GPTQ;
    q->zero_packing = MGL_ZEROS_GPTQ;
    if (!bind_columns(m, m->columns * m->group->bits / 32, m->rows))
        return false;
    m->b->used[q->zeros] = true;
    if (map < 0 && m->b->quantization->desc_act && !need(m, "g_idx", &map))
        return false;
    return decide_gptq_zeros(m);
}

static bool bind_awq(matrix *m)
{
    m->out->packing = MGL_CODES_AWQ;
    m->out->zero_packing = MGL_ZEROS_AWQ;
    if (!bind_columns(m, m->columns, m->rows / 8))
        return false;
    m->b->used[m->out->zeros] = true;
    return decide_zeros(m, !m->group->symmetric);
}

/* Blocks of a GGUF file, which hold the scales too. */
static bool bind_blocks(matrix *m, const mgl_view *view, int codes)
{
    const mgl_stored_tensor *t = stored_of(m->b, codes);
    const mgl_gguf_blocks *blocks = mgl_gguf_find_blocks(t->stored_dtype);
    if (!blocks)
        return reject(m->b, t->name,
                      "weights of the type %s are not supported; supported: " MGL_GGUF_SUPPORTED
                      "; use a file of another type of this model",
                      t->stored_dtype);
    *m->out = (mgl_quantized){.format = blocks->format,
                              .view = *view,
                              .columns = m->columns,
                              .groups = mgl_weight_format_groups(blocks->format, m->columns),
                              .codes = codes,
                              .scales = codes,
                              .zeros = -1,
                              .packing = MGL_CODES_BLOCKS,
                              .blocks = blocks};
    m->out->view.stored = codes;
    return check_shape(m, codes, m->rows, m->columns);
}

/* ---- which layout ---------------------------------------------------------------------------- */

static const char *const code_suffixes[] = {"weight", "weight_packed", "qweight"};

static void set_base(const char *name, char base[NAME])
{
    const char *point = strrchr(name, '.');
    snprintf(base, NAME, "%.*s", point ? (int)(point + 1 - name) : 0, name);
}

int mgl_quantized_find(const mgl_safetensors *files, const char *name)
{
    char base[NAME], full[NAME + 32];
    int found = -1;
    set_base(name, base);
    for (size_t i = 1; i < sizeof code_suffixes / sizeof *code_suffixes && found < 0; i++) {
        snprintf(full, sizeof full, "%s%s", base, code_suffixes[i]);
        found = mgl_safetensors_find(files, full);
    }
    return found;
}

/* Marks the stored tensors of a module that the graph does not need. GPTQ stores biases of zeros
 * for modules without bias. */
static void mark_companions(const matrix *m, bool is_quantized)
{
    static const char *const suffixes[] = {"input_scale",
                                           "activation_scale",
                                           "input_zero_point",
                                           "input_scale_ub",
                                           "activation_scale_ub",
                                           "weight_scale",
                                           "weight_scale_inv",
                                           "weight_zero_point",
                                           "weight_g_idx",
                                           "weight_shape",
                                           "scales",
                                           "qzeros",
                                           "g_idx"};
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        const int index = find(m, suffixes[i]);
        if (index >= 0)
            m->b->companion[index] = true;
    }
    const int bias = find(m, "bias");
    if (bias >= 0 && is_quantized && is_zero(m->b, bias))
        m->b->companion[bias] = true;
}

static void mark_used(const matrix *m)
{
    const mgl_quantized *q = m->out;
    m->b->used[q->codes] = m->b->used[q->scales] = true;
}

/* Removes ".weight" at the end. */
static void module_name(const char *name, char out[NAME])
{
    const char *point = strrchr(name, '.');
    snprintf(out, NAME, "%.*s", point ? (int)(point - name) : (int)strlen(name), name);
}

static const mgl_quantization_group *find_group(const matrix *m, const mgl_tensor *tensor)
{
    char stored[NAME], canonical[NAME];
    const bool is_table = !strcmp(tensor->name, MGL_TENSOR_EMBEDDING);
    snprintf(stored, sizeof stored, "%s", m->base);
    if (stored[0])
        stored[strlen(stored) - 1] = 0;
    module_name(tensor->name, canonical);
    return mgl_quantization_find(m->b->quantization, stored, canonical,
                                 is_table ? "Embedding" : "Linear");
}

static bool bind_with(matrix *m, const mgl_quantization_group *group, int suffix,
                      const mgl_view *view, int codes)
{
    const mgl_quantizer quantizer = m->b->quantization->quantizer;
    m->group = group;
    *m->out = (mgl_quantized){.view = *view, .columns = m->columns, .zeros = -1, .codes = codes};
    m->out->view.stored = codes;
    if (quantizer == MGL_QUANTIZER_GPTQ && suffix == 2)
        return bind_gptq(m);
    if (quantizer == MGL_QUANTIZER_AWQ && suffix == 2)
        return bind_awq(m);
    if (quantizer == MGL_QUANTIZER_COMPRESSED && suffix == 1)
        return bind_packed(m);
    if (quantizer != MGL_QUANTIZER_GPTQ && quantizer != MGL_QUANTIZER_AWQ && suffix == 0)
        return bind_bytes(m);
    return reject(m->b, stored_of(m->b, codes)->name,
                  "the layout of %s has no such tensor; correct quant_method or download the model "
                  "again",
                  mgl_quantizer_name(quantizer));
}

/* Binds a matrix that no group targets, but that is stored quantized: the first group that fits
 * its tensors applies. */
static bool bind_untargeted(matrix *m, int suffix, const mgl_view *view, int codes)
{
    const mgl_quantization *q = m->b->quantization;
    const mgl_binder before = *m->b;
    bool bound = false;
    for (size_t i = 0; i < q->count && !bound; i++)
        if (!q->groups[i].plain) {
            m->b->failures = before.failures;
            memcpy(m->b->where, before.where, sizeof before.where);
            memcpy(m->b->message, before.message, sizeof before.message);
            bound = bind_with(m, &q->groups[i], suffix, view, codes);
        }
    if (bound || m->b->failures > before.failures)
        return bound;
    return reject(m->b, stored_of(m->b, codes)->name,
                  "the matrix is quantized, but the config declares no quantized weights; correct "
                  "the config or download the model again");
}

/* A plain matrix, beside which scales may be stored: they are ignored if the config excludes the
 * matrix. */
static mgl_binding bind_plain(matrix *m, const mgl_tensor *tensor, int codes)
{
    const int scale = find(m, "weight_scale"), inverse = find(m, "weight_scale_inv");
    const bool declared = m->b->quantization->quantizer && find_group(m, tensor);
    if (declared && (scale >= 0 || inverse >= 0)) {
        reject(m->b, stored_of(m->b, codes)->name,
               "the config declares quantized weights and scales are stored, but the weights are "
               "%s; list the module among those that are not quantized, or use the original "
               "checkpoint",
               stored_of(m->b, codes)->stored_dtype);
        return MGL_BINDING_REJECTED;
    }
    if (m->b->quantization->quantizer)
        mark_companions(m, false);
    return MGL_BINDING_PLAIN;
}

mgl_binding mgl_quantized_bind(mgl_binder *b, const mgl_tensor *tensor, const mgl_view *view,
                               mgl_quantized *out)
{
    char name[160];
    int codes = -1, suffix = 0, count = 0;
    matrix m = {.b = b, .out = out, .rows = view->total, .columns = tensor->cols};
    if (tensor->rank != 2 || !b->files->file_count || !mgl_text_ends(tensor->name, ".weight"))
        return MGL_BINDING_PLAIN;
    if (view->stored >= 0) /* a tied model may store its table as the head */
        snprintf(name, sizeof name, "%s", stored_of(b, view->stored)->name);
    else
        mgl_naming_name(b->naming, tensor->name, name);
    set_base(name, m.base);
    for (int i = 0; i < (int)(sizeof code_suffixes / sizeof *code_suffixes); i++) {
        const int index = find(&m, code_suffixes[i]);
        if (index < 0)
            continue;
        count++;
        codes = index;
        suffix = i;
    }
    if (count == 0)
        return MGL_BINDING_PLAIN;
    b->used[codes] = true;
    if (count > 1) {
        reject(b, stored_of(b, codes)->name, "the matrix is stored in two forms; keep one of them");
        return MGL_BINDING_REJECTED;
    }
    const mgl_stored_tensor *t = stored_of(b, codes);
    if (mgl_gguf_is_quantized(t->stored_dtype)) {
        return bind_blocks(&m, view, codes) ? MGL_BINDING_QUANTIZED : MGL_BINDING_REJECTED;
    }
    const bool is_code = suffix || has_dtype(t, "I8") || has_dtype(t, "F8_E4M3");
    if (!is_code)
        return t->usable ? bind_plain(&m, tensor, codes) : MGL_BINDING_PLAIN;
    if (b->quantization->rejected) {
        mark_companions(&m, false);
        return MGL_BINDING_REJECTED;
    }
    if (!b->quantization->quantizer) {
        mark_companions(&m, false);
        reject(b, t->name,
               "the matrix is quantized (%s), but config.json has no usable "
               "quantization_config; download the model's whole config.json",
               t->stored_dtype);
        return MGL_BINDING_REJECTED;
    }
    const mgl_quantization_group *group = find_group(&m, tensor);
    const bool bound = group ? bind_with(&m, group, suffix, view, codes)
                             : bind_untargeted(&m, suffix, view, codes);
    const bool good = bound && bind_maps(&m);
    mark_companions(&m, true);
    if (!good)
        return MGL_BINDING_REJECTED;
    mark_used(&m);
    return MGL_BINDING_QUANTIZED;
}

void mgl_quantized_skip_head(mgl_binder *b)
{
    char name[160];
    const mgl_tensor head = {.name = (char[]){MGL_TENSOR_HEAD}, .rank = 2};
    matrix m = {.b = b};
    mgl_naming_name(b->naming, head.name, name);
    set_base(name, m.base);
    if (b->quantization->quantizer && !find_group(&m, &head))
        mark_companions(&m, false);
}
