/* Implements forward.h: the nodes of the graph as loops and products over the rows of a sample. */
#include "quantize/calibrate/forward.h"

#include "base/memory.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

mgl_status mgl_forward_make(const mgl_blas *blas, const mgl_graph *graph, float *const *weights,
                            int length, mgl_forward *out, mgl_error *err)
{
    const int head = graph->geometry.head_dim, half = head / 2;
    const float *frequencies = mgl_graph_frequencies(graph, length);
    *out = (mgl_forward){.blas = blas, .graph = graph, .weights = weights, .length = length};
    out->rope = mgl_alloc_zero((size_t)length * (size_t)head, sizeof *out->rope);
    if (!out->rope)
        return mgl_fail_memory(err, (size_t)length * (size_t)head * sizeof *out->rope);
    for (int p = 0; p < length; p++)
        for (int i = 0; i < half; i++) {
            const float angle = frequencies[i] * (float)p;
            out->rope[p * head + i] = (float)cos((double)angle) * graph->rope_scale;
            out->rope[p * head + half + i] = (float)sin((double)angle) * graph->rope_scale;
        }
    return MGL_OK;
}

void mgl_forward_clear(mgl_forward *forward)
{
    mgl_free(forward->rope);
    *forward = (mgl_forward){0};
}

/* A sample in progress. */
typedef struct pass {
    const mgl_forward *forward;
    int rows;
    int first;          /* node */
    const float *input; /* value of node first - 1 */
    float *values;      /* the values of the nodes from `first` on, (rows, width) each */
    float *spare;       /* scratch of attention */
} pass;

static const mgl_node *node_of(const pass *p, int node)
{
    return &p->forward->graph->nodes[node];
}

static float *value_of(const pass *p, int node)
{
    size_t at = 0;
    for (int i = p->first; i < node; i++)
        at += (size_t)node_of(p, i)->width;
    return p->values + at * (size_t)p->rows;
}

static const float *input_of(const pass *p, int node, int i)
{
    const int in = node_of(p, node)->in[i];
    return in < p->first ? p->input : value_of(p, in);
}

static int width_of(const pass *p, int node)
{
    return node_of(p, node)->width;
}

static const float *tensor_of(const pass *p, int node)
{
    return p->forward->weights[node_of(p, node)->tensor];
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* RMSNorm of vectors of `width` values, each with the same gains. */
static void norm(const float *x, int64_t vectors, int width, float eps, const float *gain,
                 float *to)
{
    for (int64_t r = 0; r < vectors; r++, x += width, to += width) {
        double sum = 0;
        for (int i = 0; i < width; i++)
            sum += (double)x[i] * (double)x[i];
        const float scale = (float)(1 / sqrt(sum / width + (double)eps));
        for (int i = 0; i < width; i++)
            to[i] = x[i] * scale * gain[i];
    }
}

static void linear(const pass *p, int node, const float *x, float *to)
{
    const int width = width_of(p, node);
    const int columns = (int)p->forward->graph->tensors[node_of(p, node)->tensor].cols;
    p->forward->blas->sgemm(MGL_BLAS_ROWS, MGL_BLAS_PLAIN, MGL_BLAS_TRANSPOSED, p->rows, width,
                            columns, 1, x, columns, tensor_of(p, node), columns, 0, to, width);
}

static void add_bias(const pass *p, int node, const float *x, float *to)
{
    const int width = width_of(p, node);
    const float *bias = tensor_of(p, node);
    for (int r = 0; r < p->rows; r++)
        for (int i = 0; i < width; i++)
            to[(int64_t)r * width + i] = x[(int64_t)r * width + i] + bias[i];
}

static void swiglu(const float *gate, const float *up, int64_t count, float *to)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = gate[i] / (1 + expf(-gate[i])) * up[i];
}

static void add(const float *a, const float *b, int64_t count, float *to)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = a[i] + b[i];
}

/* ---- attention ------------------------------------------------------------------------------- */

/* Writes a head of all rows, rotated by rope, as (rows, head_dim). */
static void rotate(const pass *p, const float *x, int width, int head, float *to)
{
    const int d = p->forward->graph->geometry.head_dim, half = d / 2;
    for (int r = 0; r < p->rows; r++, to += d) {
        const float *from = x + (int64_t)r * width + (int64_t)head * d;
        const float *cosine = p->forward->rope + (int64_t)r * d, *sine = cosine + half;
        for (int i = 0; i < half; i++) {
            to[i] = from[i] * cosine[i] - from[half + i] * sine[i];
            to[half + i] = from[half + i] * cosine[i] + from[i] * sine[i];
        }
    }
}

/* Causal softmax: row r keeps the positions up to r. */
static void softmax(float *scores, int rows)
{
    for (int r = 0; r < rows; r++, scores += rows) {
        float most = scores[0], total = 0;
        for (int i = 1; i <= r; i++)
            most = scores[i] > most ? scores[i] : most;
        for (int i = 0; i <= r; i++)
            total += scores[i] = expf(scores[i] - most);
        for (int i = 0; i <= r; i++)
            scores[i] /= total;
        memset(scores + r + 1, 0, (size_t)(rows - r - 1) * sizeof *scores);
    }
}

static void attend(const pass *p, int node, float *to)
{
    const mgl_blas *blas = p->forward->blas;
    const mgl_geometry *g = &p->forward->graph->geometry;
    const int d = g->head_dim, rows = p->rows, share = g->heads / g->kv_heads;
    const int width = width_of(p, node), kv_width = g->kv_heads * d;
    const float *q = input_of(p, node, 0), *k = input_of(p, node, 1), *v = input_of(p, node, 2);
    float *query = p->spare, *key = query + (int64_t)rows * d, *scores = key + (int64_t)rows * d;
    for (int h = 0; h < g->heads; h++) {
        rotate(p, q, width, h, query);
        if (h % share == 0)
            rotate(p, k, kv_width, h / share, key);
        blas->sgemm(MGL_BLAS_ROWS, MGL_BLAS_PLAIN, MGL_BLAS_TRANSPOSED, rows, rows, d,
                    (float)(1 / sqrt((double)d)), query, d, key, d, 0, scores, rows);
        softmax(scores, rows);
        blas->sgemm(MGL_BLAS_ROWS, MGL_BLAS_PLAIN, MGL_BLAS_PLAIN, rows, d, rows, 1, scores, rows,
                    v + (int64_t)(h / share) * d, kv_width, 0, to + (int64_t)h * d, width);
    }
}

/* ---- the pass -------------------------------------------------------------------------------- */

static mgl_status compute(const pass *p, int node, mgl_error *err)
{
    const mgl_node *n = node_of(p, node);
    const mgl_geometry *g = &p->forward->graph->geometry;
    const int64_t count = (int64_t)p->rows * n->width;
    const float *x = input_of(p, node, 0);
    float *to = value_of(p, node);
    if (n->kind == MGL_NODE_NORM)
        norm(x, p->rows, n->width, g->eps, tensor_of(p, node), to);
    else if (n->kind == MGL_NODE_HEAD_NORM)
        norm(x, count / g->head_dim, g->head_dim, g->eps, tensor_of(p, node), to);
    else if (n->kind == MGL_NODE_LINEAR)
        linear(p, node, x, to);
    else if (n->kind == MGL_NODE_BIAS)
        add_bias(p, node, x, to);
    else if (n->kind == MGL_NODE_ATTENTION)
        attend(p, node, to);
    else if (n->kind == MGL_NODE_SWIGLU)
        swiglu(x, input_of(p, node, 1), count, to);
    else if (n->kind == MGL_NODE_ADD)
        add(x, input_of(p, node, 1), count, to);
    else
        return mgl_fail(err, MGL_BAD_INPUT, NULL,
                        "the model has a node that cannot be calibrated: %s; use --method rtn or "
                        "clip",
                        mgl_node_kind_name(n->kind));
    return MGL_OK;
}

size_t mgl_forward_scratch(const mgl_forward *forward, int first, int last)
{
    const size_t rows = (size_t)forward->length, d = (size_t)forward->graph->geometry.head_dim;
    size_t widths = 0;
    for (int i = first; i <= last; i++)
        widths += (size_t)forward->graph->nodes[i].width;
    return rows * (widths + 2 * d + rows) + (size_t)(last - first + 1);
}

mgl_status mgl_forward_run(const mgl_forward *forward, int first, int last, const float *input,
                           int rows, float *scratch, const float **out, mgl_error *err)
{
    const int count = last - first + 1;
    bool *needed = (bool *)scratch;
    pass p = {.forward = forward, .rows = rows, .first = first, .input = input};
    mgl_status status = MGL_OK;
    *out = input;
    if (count <= 0)
        return MGL_OK;
    p.values = scratch + count; /* the flags take less than a float each */
    p.spare = value_of(&p, last + 1);
    memset(needed, 0, (size_t)count);
    needed[count - 1] = true;
    for (int i = last; i >= first; i--)
        for (int k = 0; k < 3 && needed[i - first]; k++)
            if (node_of(&p, i)->in[k] >= first)
                needed[node_of(&p, i)->in[k] - first] = true;
    for (int i = first; i <= last && !status; i++)
        if (needed[i - first])
            status = compute(&p, i, err);
    *out = value_of(&p, last);
    return status;
}

mgl_status mgl_forward_embed(const mgl_graph *graph, const int32_t *ids, size_t count, float *to,
                             mgl_error *err)
{
    const int table = mgl_graph_find_tensor(graph, MGL_TENSOR_EMBEDDING);
    const size_t hidden = (size_t)graph->geometry.hidden;
    mgl_status status = MGL_OK;
    char *row = mgl_alloc(hidden * sizeof(float));
    if (!row)
        return mgl_fail_memory(err, hidden * sizeof(float));
    for (size_t i = 0; i < count && !status; i++, to += hidden) {
        if (ids[i] < 0 || ids[i] >= graph->geometry.vocab)
            status = mgl_fail(err, MGL_BAD_INPUT, NULL,
                              "unknown token id: %" PRId32 "; the model has ids below %" PRId32,
                              ids[i], graph->geometry.vocab);
        if (!status)
            status = graph->read(graph, table, ids[i], 1, row, err);
        if (!status)
            mgl_convert(to, MGL_F32, row, graph->tensors[table].dtype, hidden);
    }
    mgl_free(row);
    return status;
}
