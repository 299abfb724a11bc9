/* Implements scaled_model.h. */
#include "scaled_model.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"

/* What a quantized graph reads from. */
struct scaled {
    mgl_tensor_read_fn *read; /* of the random graph, as the next two */
    void *reader;
    void (*close)(void *reader);
    mgl_weight_format format;
    bool embedding;
    int32_t *orders; /* owned: column maps of all reordered tensors, or NULL */
};

static void close_scaled(void *reader)
{
    struct scaled *s = reader;
    s->close(s->reader);
    mgl_free(s->orders);
    mgl_free(s);
}

static bool is_scaled(const mgl_graph *graph, int tensor)
{
    const struct scaled *s = graph->reader;
    const mgl_tensor *t = &graph->tensors[tensor];
    return t->rank == 2 && (s->embedding || strcmp(t->name, MGL_TENSOR_EMBEDDING) != 0);
}

/* Rows of the random graph, in the tensor's dtype. */
static mgl_status read_inner(const mgl_graph *graph, int tensor, int64_t row, int64_t count,
                             void *to, mgl_error *err)
{
    const struct scaled *s = graph->reader;
    mgl_graph inner = *graph;
    inner.reader = s->reader;
    return s->read(&inner, tensor, row, count, to, err);
}

/* The column of the tensor that read_codes delivers as column `place`. */
static int64_t column_of(const mgl_tensor *t, int64_t place)
{
    return t->order ? t->order[place] : place;
}

/* A number in [0, 16) of three numbers. */
static int draw(int a, int64_t b, int64_t c)
{
    uint64_t z = (uint64_t)a * UINT64_C(0x9E3779B97F4A7C15) + (uint64_t)(b * 4099 + c);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return (int)(z >> 60);
}

/* A scale that covers most of a matrix' weights (fixture.c), exact in the format's dtype. */
static float scale_of(const mgl_tensor *t, mgl_weight_format f, int tensor, int64_t row,
                      int64_t group)
{
    const int64_t of = f.group_rows ? row / f.group_rows : 0;
    const float steps = f.code == MGL_CODE_INT4 || f.code == MGL_CODE_UINT4 ? 7
                        : f.code == MGL_CODE_INT8                           ? 127
                                                                            : 448;
    const float drawn =
        2.5f / sqrtf((float)t->cols) / steps * (0.9f + 0.02f * (float)draw(tensor, of, group));
    char stored[4];
    float scale;
    mgl_convert(stored, f.scales, &drawn, MGL_F32, 1);
    mgl_convert(&scale, MGL_F32, stored, f.scales, 1);
    return scale;
}

static int zero_of(mgl_weight_format f, int tensor, int64_t row, int64_t group)
{
    const int64_t of = f.group_rows ? row / f.group_rows : 0;
    const int usual = mgl_weight_code_zero(f.code);
    return f.zeros ? usual + draw(tensor, of, group) % 5 - 2 : usual;
}

/* A minimum of uint4, exact in the format's dtype; 0 for other codes. */
static float minimum_of(mgl_weight_format f, float scale, int64_t group)
{
    const float drawn = f.code == MGL_CODE_UINT4 ? -(7 + 0.1f * (float)(group % 5)) * scale : 0;
    char stored[4];
    float minimum;
    mgl_convert(stored, f.scales, &drawn, MGL_F32, 1);
    mgl_convert(&minimum, MGL_F32, stored, f.scales, 1);
    return minimum;
}

/* The nearest e4m3 code. The numbers of the codes from 0 to 126 ascend; bit 7 is the sign. */
static int nearest_e4m3(float number)
{
    const float size = fabsf(number);
    int low = 0, high = 126;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (mgl_weight_code_number(MGL_CODE_E4M3, (unsigned)middle, 0) > size)
            high = middle;
        else
            low = middle;
    }
    const float below = size - mgl_weight_code_number(MGL_CODE_E4M3, (unsigned)low, 0),
                above = mgl_weight_code_number(MGL_CODE_E4M3, (unsigned)high, 0) - size;
    const int best = below <= above ? low : high;
    return best && number < 0 ? best | 128 : best;
}

static int code_of(mgl_weight_format f, float weight, float scale, int zero)
{
    if (f.code == MGL_CODE_E4M3)
        return nearest_e4m3(weight / scale);
    const int most = (1 << mgl_weight_code_get(f.code)->bits) - 1,
              code = (int)lrintf(weight / scale) + zero;
    return code < 0 ? 0 : code > most ? most : code;
}

static mgl_status read_codes(const mgl_graph *graph, int tensor, int64_t row, int64_t count,
                             const mgl_quantized_rows *to, mgl_error *err)
{
    const mgl_weight_format f = ((const struct scaled *)graph->reader)->format;
    const mgl_tensor *t = &graph->tensors[tensor];
    const int64_t groups = mgl_weight_format_groups(f, t->cols);
    float *weights = mgl_alloc((size_t)t->cols * sizeof *weights);
    mgl_status status = MGL_OK;
    for (int64_t r = 0; r < count && !status; r++) {
        status = read_inner(graph, tensor, row + r, 1, weights, err);
        for (int64_t g = 0; g < groups; g++) {
            to->scales[r * groups + g] = scale_of(t, f, tensor, row + r, g);
            if (to->zeros)
                to->zeros[r * groups + g] = (uint8_t)zero_of(f, tensor, row + r, g);
            if (to->minimums)
                to->minimums[r * groups + g] = minimum_of(f, to->scales[r * groups + g], g);
        }
        for (int64_t k = 0; k < t->cols; k++) {
            const int64_t g = f.group ? k / f.group : 0;
            const float scale = to->scales[r * groups + g];
            to->codes[r * t->cols + k] =
                (uint8_t)code_of(f, weights[column_of(t, k)] - minimum_of(f, scale, g), scale,
                                 zero_of(f, tensor, row + r, g));
        }
    }
    mgl_free(weights);
    return status;
}

/* Decodes the codes by their definition. */
static mgl_status read_decoded(const mgl_graph *graph, int tensor, int64_t row, int64_t count,
                               void *to, mgl_error *err)
{
    if (!is_scaled(graph, tensor))
        return read_inner(graph, tensor, row, count, to, err);
    const mgl_weight_format f = ((const struct scaled *)graph->reader)->format;
    const mgl_tensor *t = &graph->tensors[tensor];
    const int64_t groups = mgl_weight_format_groups(f, t->cols);
    mgl_quantized_rows rows = {.codes = mgl_alloc((size_t)t->cols),
                               .scales = mgl_alloc((size_t)groups * sizeof(float))};
    mgl_status status = MGL_OK;
    float *at = to;
    for (int64_t r = row; r < row + count && !status; r++) {
        status = read_codes(graph, tensor, r, 1, &rows, err);
        for (int64_t k = 0; k < t->cols; k++) {
            const int64_t g = f.group ? k / f.group : 0;
            float *number = at + column_of(t, k);
            *number = mgl_weight_code_number(f.code, rows.codes[k], zero_of(f, tensor, r, g)) *
                      rows.scales[g];
            if (f.code == MGL_CODE_UINT4)
                *number += minimum_of(f, rows.scales[g], g);
        }
        at += t->cols;
    }
    mgl_free(rows.codes);
    mgl_free(rows.scales);
    return status;
}

void quantize_matrices(mgl_graph *graph, mgl_weight_format format, bool visible, bool embedding)
{
    struct scaled *s = mgl_alloc(sizeof *s);
    *s = (struct scaled){graph->read, graph->reader, graph->close_reader, format, embedding, NULL};
    graph->reader = s;
    graph->read = read_decoded;
    graph->read_codes = read_codes;
    graph->close_reader = close_scaled;
    for (int i = 0; i < graph->tensor_count; i++)
        if (is_scaled(graph, i)) {
            graph->tensors[i].dtype = MGL_F32;
            if (visible)
                graph->tensors[i].quantized = format;
        }
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    return b ? common_divisor(b, a % b) : a;
}

void reorder_matrices(mgl_graph *graph, bool pairs)
{
    struct scaled *s = graph->reader;
    size_t all = 0;
    for (int i = 0; i < graph->tensor_count; i++)
        all += (size_t)graph->tensors[i].cols;
    int32_t *order = s->orders = mgl_alloc(all * sizeof *order);
    for (int i = 0; i < graph->tensor_count; i++) {
        mgl_tensor *t = &graph->tensors[i];
        const bool paired = strstr(t->name, "gate_proj") || strstr(t->name, "up_proj");
        int64_t step = pairs && paired ? 7 : 5 + 2 * i;
        if (!mgl_tensor_is_quantized(t) || t->quantized.group == MGL_GROUP_ALL)
            continue;
        while (common_divisor(step, t->cols) != 1)
            step++;
        for (int64_t k = 0; k < t->cols; k++)
            order[k] = (int32_t)((3 + k * step) % t->cols);
        t->reordered = true;
        t->order = order;
        order += t->cols;
    }
}
