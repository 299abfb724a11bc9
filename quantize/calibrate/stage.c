/*
 * A stage of a segment: the matrices that have the same input. Their common Hessian is summed over
 * batches of samples, with the quantized matrices of earlier stages, and then the rows of each
 * matrix are quantized in parallel.
 */
#include "base/memory.h"
#include "base/parallel.h"
#include "quantize/calibrate/calibration.h"
#include "quantize/calibrate/gptq.h"
#include "quantize/calibrate/hessian.h"
#include "quantize/write.h"

#include <math.h>
#include <string.h>

/* ---- the Hessian ----------------------------------------------------------------------------- */

/* A batch of samples, whose inputs are computed in parallel. */
typedef struct batch {
    const mgl_calibration *c;
    const mgl_segment *segment;
    int input; /* node */
    size_t first;
} batch;

static mgl_status compute_inputs(void *user, int worker, size_t item, mgl_error *err)
{
    const batch *b = user;
    const mgl_calibration *c = b->c;
    const size_t sample = b->first + item, start = c->starts[sample];
    const size_t width = (size_t)c->graph->nodes[b->input].width;
    const size_t rows = c->starts[sample + 1] - start;
    const float *values;
    mgl_status status = mgl_forward_run(&c->forward, b->segment->first, b->input,
                                        c->states + start * (size_t)c->graph->geometry.hidden,
                                        (int)rows, c->scratch[worker], &values, err);
    if (!status)
        memcpy(c->inputs + (start - c->starts[b->first]) * width, values,
               rows * width * sizeof *values);
    return status;
}

size_t mgl_calibration_batch(const mgl_calibration *c, size_t first)
{
    size_t end = first + 1;
    while (end < c->request->sample_count && c->starts[end] - c->starts[first] < MGL_BATCH_TOKENS)
        end++;
    return end;
}

/* Whether the whole Hessian is needed, not only its diagonal. */
static bool needs_hessian(const mgl_calibration *c)
{
    return c->measures || c->request->method == MGL_METHOD_GPTQ;
}

/* Adds the squares of the inputs to the diagonal of the Hessian. */
static void add_squares(const mgl_calibration *c, int n, size_t rows)
{
    for (size_t r = 0; r < rows; r++)
        for (int i = 0; i < n; i++) {
            const float x = c->inputs[r * (size_t)n + (size_t)i];
            c->hessian[(int64_t)i * n + i] += x * x;
        }
}

static mgl_status sum_hessian(mgl_calibration *c, const mgl_segment *segment, int input,
                              uint64_t bytes, mgl_error *err)
{
    const int n = c->graph->nodes[input].width;
    const size_t samples = c->request->sample_count, tokens = c->starts[samples];
    batch b = {.c = c, .segment = segment, .input = input};
    mgl_status status = MGL_OK;
    memset(c->hessian, 0, (size_t)n * (size_t)n * sizeof *c->hessian);
    while (b.first < samples && !status) {
        const size_t end = mgl_calibration_batch(c, b.first);
        const size_t rows = c->starts[end] - c->starts[b.first];
        status = mgl_parallel(c->threads, end - b.first, compute_inputs, &b, err);
        if (!status && needs_hessian(c))
            status = mgl_hessian_add(c->blas, c->threads, c->hessian, n, c->inputs, (int)rows, err);
        else if (!status)
            add_squares(c, n, rows);
        if (!status)
            status = mgl_calibration_step(c, bytes * rows / tokens, err);
        b.first = end;
    }
    return status;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* A matrix in progress. */
typedef struct matrix {
    mgl_calibration *c;
    int tensor, source;
    mgl_weight_format format;
    int64_t rows, columns, groups, chunk;
    const float *importance; /* (columns): the diagonal of the Hessian; NULL with GPTQ */
    double *errors;          /* (chunks, 2), when measuring: squared output error, and output */
} matrix;

/* Rows of a chunk: at most 1/16 of the matrix, a multiple of 8. */
static int64_t chunk_of(int64_t rows)
{
    const int64_t share = (rows / 16 + 7) / 8 * 8;
    return share < 8 ? 8 : share > 256 ? 256 : share;
}

/* The memory of a chunk in the scratch of a thread. */
typedef struct chunk {
    int64_t row, count;
    float *weights, *before; /* (count, columns): the numbers of the codes, and the weights */
    mgl_matrix_codes codes;
    float *scratch;
} chunk;

size_t mgl_calibration_rows_scratch(int64_t rows, int64_t columns, mgl_weight_format format)
{
    const size_t count = (size_t)chunk_of(rows), n = (size_t)columns;
    const size_t groups = (size_t)mgl_weight_format_groups(format, columns);
    return count * (2 * n + n / 4 + 1 + groups + groups / 4 + 1) + 4 +
           mgl_gptq_scratch((int)count, (int)columns, format);
}

static chunk chunk_in(const matrix *m, int worker, size_t item)
{
    const size_t n = (size_t)m->columns, groups = (size_t)m->groups, rows = (size_t)m->chunk;
    const int64_t row = (int64_t)item * m->chunk;
    chunk k = {.row = row,
               .count = m->rows - row < m->chunk ? m->rows - row : m->chunk,
               .weights = m->c->scratch[worker]};
    k.before = k.weights + rows * n;
    k.codes.scales = k.before + rows * n;
    k.scratch = k.codes.scales + rows * groups;
    k.codes.codes = (uint8_t *)(k.scratch + mgl_gptq_scratch((int)rows, (int)n, m->format));
    k.codes.zeros = m->format.zeros ? k.codes.codes + rows * n : NULL;
    return k;
}

/* Reads the weights of the chunk, which must be finite. */
static mgl_status read_chunk(const matrix *m, const chunk *k, mgl_error *err)
{
    const mgl_graph *graph = m->c->graph;
    const float *loaded = m->c->weights[m->tensor];
    const size_t count = (size_t)(k->count * m->columns);
    mgl_status status = MGL_OK;
    if (loaded) {
        memcpy(k->weights, loaded + k->row * m->columns, count * sizeof(float));
    } else { /* the second buffer takes the stored weights, which are not wider than f32 */
        status = graph->read(graph, m->tensor, k->row, k->count, k->before, err);
        if (!status)
            mgl_convert(k->weights, MGL_F32, k->before, graph->tensors[m->tensor].dtype, count);
    }
    for (size_t i = 0; i < count && !status; i++)
        if (!isfinite(k->weights[i]))
            status = mgl_quantize_fail_row(m->c->plan, m->source, MGL_ROUND_NOT_FINITE,
                                           k->row + (int64_t)i / m->columns,
                                           (int64_t)i % m->columns, err);
    return status;
}

/* Rounds the rows of the chunk without error compensation. */
static mgl_rounded round_chunk(const matrix *m, const chunk *k, int64_t *row, int64_t *column)
{
    const int64_t n = m->columns, g = m->groups;
    const mgl_fit fit = {.search = m->c->request->method != MGL_METHOD_RTN,
                         .importance = m->importance};
    const bool has_zeros = m->format.zeros;
    for (*row = 0; *row < k->count; ++*row) {
        const int64_t i = *row;
        const mgl_rounded rounded = mgl_round_row(
            k->weights + i * n, n, m->format, fit, k->codes.codes + i * n, k->codes.scales + i * g,
            has_zeros ? k->codes.zeros + i * g : NULL, column);
        if (rounded)
            return rounded;
        for (int64_t j = 0; j < n; j++) {
            const int64_t group = m->format.group == MGL_GROUP_ALL ? 0 : j / m->format.group;
            const int zero =
                has_zeros ? k->codes.zeros[i * g + group] : mgl_weight_code_zero(m->format.code);
            k->weights[i * n + j] =
                mgl_weight_code_number(m->format.code, k->codes.codes[i * n + j], zero) *
                k->codes.scales[i * g + group];
        }
    }
    return MGL_ROUNDED;
}

static mgl_status quantize_chunk(const matrix *m, const chunk *k, mgl_error *err)
{
    int64_t row = 0, column = 0;
    mgl_rounded rounded;
    const mgl_gptq_rows rows = {.weights = k->weights,
                                .rows = (int)k->count,
                                .columns = (int)m->columns,
                                .codes = k->codes.codes,
                                .scales = k->codes.scales,
                                .zeros = k->codes.zeros,
                                .scratch = k->scratch};
    if (m->c->request->method == MGL_METHOD_GPTQ)
        rounded = mgl_gptq_quantize(m->c->blas, m->c->hessian, m->format, (mgl_fit){true, NULL},
                                    &rows, &row, &column);
    else
        rounded = round_chunk(m, k, &row, &column);
    return rounded
               ? mgl_quantize_fail_row(m->c->plan, m->source, rounded, k->row + row, column, err)
               : MGL_OK;
}

/* The sum of the squares of a times the factor of the Hessian. Overwrites `spare`. */
static double measure(const matrix *m, const float *a, int64_t rows, float *spare)
{
    const int n = (int)m->columns;
    double sum = 0;
    m->c->blas->sgemm(MGL_BLAS_ROWS, MGL_BLAS_PLAIN, MGL_BLAS_PLAIN, (int)rows, n, n, 1, a, n,
                      m->c->hessian, n, 0, spare, n);
    for (int64_t i = 0; i < rows * n; i++)
        sum += (double)spare[i] * (double)spare[i];
    return sum;
}

/* Measures the squared output error and the squared output of the chunk. */
static void measure_chunk(const matrix *m, const chunk *k, size_t item)
{
    for (int64_t i = 0; i < k->count * m->columns; i++)
        k->weights[i] = k->before[i] - k->weights[i];
    m->errors[2 * item] = measure(m, k->weights, k->count, k->scratch);
    m->errors[2 * item + 1] = measure(m, k->before, k->count, k->scratch);
}

/* Copies the results of the chunk to the rows of the stored matrix. */
static void keep_chunk(const matrix *m, const chunk *k)
{
    const mgl_checkpoint *checkpoint = m->c->plan->checkpoint;
    const mgl_matrix_codes *to = &m->c->codes[m->source];
    const int64_t n = m->columns, g = m->groups;
    for (int64_t i = 0; i < k->count; i++) {
        const int64_t row = mgl_checkpoint_stored_row(checkpoint, m->tensor, k->row + i);
        memcpy(to->codes + row * n, k->codes.codes + i * n, (size_t)n);
        memcpy(to->scales + row * g, k->codes.scales + i * g, (size_t)g * sizeof(float));
        if (to->zeros)
            memcpy(to->zeros + row * g, k->codes.zeros + i * g, (size_t)g);
    }
    if (m->c->weights[m->tensor])
        memcpy(m->c->weights[m->tensor] + k->row * n, k->weights,
               (size_t)(k->count * n) * sizeof(float));
}

static mgl_status work_on_chunk(void *user, int worker, size_t item, mgl_error *err)
{
    const matrix *m = user;
    const chunk k = chunk_in(m, worker, item);
    mgl_status status = read_chunk(m, &k, err);
    if (!status)
        memcpy(k.before, k.weights, (size_t)(k.count * m->columns) * sizeof(float));
    if (!status)
        status = quantize_chunk(m, &k, err);
    if (!status && m->errors)
        measure_chunk(m, &k, item);
    else if (!status)
        keep_chunk(m, &k);
    return status;
}

/* ---- matrices -------------------------------------------------------------------------------- */

static matrix matrix_of(mgl_calibration *c, int node, const float *importance)
{
    const mgl_tensor *t = &c->graph->tensors[c->graph->nodes[node].tensor];
    matrix m = {.c = c,
                .tensor = c->graph->nodes[node].tensor,
                .source = c->sources[node],
                .format = c->plan->sources[c->sources[node]].format,
                .rows = t->rows,
                .columns = t->cols,
                .importance = importance};
    m.groups = mgl_weight_format_groups(m.format, m.columns);
    m.chunk = chunk_of(m.rows);
    return m;
}

static mgl_status quantize_matrix(mgl_calibration *c, int node, const float *importance,
                                  mgl_error *err)
{
    matrix m = matrix_of(c, node, importance);
    const size_t chunks = (size_t)((m.rows + m.chunk - 1) / m.chunk);
    return mgl_parallel(c->threads, chunks, work_on_chunk, &m, err);
}

/* Measures a matrix with the format of the layers and with 8 bits. */
static mgl_status measure_matrix(mgl_calibration *c, int node, const float *importance,
                                 mgl_error *err)
{
    matrix m = matrix_of(c, node, importance);
    const size_t chunks = (size_t)((m.rows + m.chunk - 1) / m.chunk);
    mgl_status status = MGL_OK;
    m.errors = mgl_alloc_zero(2 * chunks, sizeof *m.errors);
    if (!m.errors)
        return mgl_fail_memory(err, 2 * chunks * sizeof *m.errors);
    for (int i = 0; i < 2 && !status; i++) {
        double *to = c->errors + 3 * (size_t)m.source, output = 0;
        m.format.code = i ? MGL_CODE_INT8 : MGL_CODE_INT4;
        status = mgl_parallel(c->threads, chunks, work_on_chunk, &m, err);
        for (size_t k = 0; k < chunks && !status; k++) {
            to[i] += m.errors[2 * k];
            output += m.errors[2 * k + 1];
        }
        to[2] += i ? output : 0;
    }
    mgl_free(m.errors);
    return status;
}

static uint64_t bytes_of(const mgl_calibration *c, int node)
{
    const mgl_tensor *t = &c->graph->tensors[c->graph->nodes[node].tensor];
    return (uint64_t)(t->rows * t->cols) * mgl_dtype_size(t->dtype);
}

static bool belongs(const mgl_calibration *c, int node, int input)
{
    return c->sources[node] >= 0 && c->graph->nodes[node].in[0] == input;
}

mgl_status mgl_calibration_stage(mgl_calibration *c, const mgl_segment *segment, int input,
                                 mgl_error *err)
{
    const int n = c->graph->nodes[input].width;
    uint64_t bytes = 0;
    const char *name = NULL;
    for (int i = segment->first; i <= segment->last; i++)
        if (belongs(c, i, input)) {
            bytes += bytes_of(c, i);
            name = c->graph->tensors[c->graph->nodes[i].tensor].name;
        }
    float *importance = mgl_alloc_zero((size_t)n, sizeof *importance);
    mgl_status status = importance ? MGL_OK : mgl_fail_memory(err, (size_t)n * sizeof(float));
    if (!status)
        status = sum_hessian(c, segment, input, bytes / 2, err);
    for (int i = 0; i < n && !status; i++)
        importance[i] = c->hessian[(int64_t)i * n + i];
    if (!status && needs_hessian(c))
        status = mgl_hessian_factor(c->blas, c->threads, c->hessian, n, name, err);
    for (int i = segment->first; i <= segment->last && !status; i++) {
        if (!belongs(c, i, input))
            continue;
        status = c->measures ? measure_matrix(c, i, importance, err)
                             : quantize_matrix(c, i, importance, err);
        if (!status)
            status = mgl_calibration_step(c, bytes_of(c, i) / 2, err);
    }
    mgl_free(importance);
    return status;
}
