/*
 * Writes the tensors of a quantized checkpoint. A matrix is divided into chunks of rows. Threads
 * read, round, pack and write the chunks of a batch in parallel; between two batches the caller's
 * step function is called. The bytes do not depend on the number of threads.
 */
#include "quantize/write.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "quantize/calibrate/calibrate.h"
#include "quantize/pack.h"

#include <inttypes.h>
#include <string.h>

enum {
    CHUNK_WEIGHTS = 1 << 18, /* weights of a chunk, about */
    CHUNK_ROWS = 8,          /* rows of a chunk are a multiple: whole words of zero points */
    BATCH = 4,               /* chunks of a thread between two calls of the step function */
    COPY_BYTES = 4 << 20
};

/* The memory of a thread, for one chunk. */
typedef struct buffers {
    char *stored;   /* (rows, columns) as in the file */
    float *weights; /* (rows, columns) */
    uint8_t *codes; /* (rows, columns) */
    uint8_t *packed;
    float *scales;  /* (rows, groups) */
    char *numbers;  /* the scales in their dtype */
    uint8_t *zeros; /* (rows, groups) */
    uint8_t *words; /* packed zero points */
} buffers;

/* A matrix in progress. */
typedef struct matrix {
    const mgl_quantize_plan *plan;
    mgl_output *const *outputs;
    const mgl_stored_tensor *stored;
    const mgl_planned_source *source;
    int index;                  /* stored tensor */
    const mgl_results *results; /* or NULL */
    mgl_fit fit;
    int64_t rows, columns, groups;
    int64_t chunk;   /* rows of a chunk */
    size_t first;    /* number of the first chunk of the batch */
    buffers *memory; /* (threads) */
} matrix;

/* The progress of all tensors. */
typedef struct progress {
    const mgl_quantize_request *request;
    const mgl_results *results; /* or NULL */
    uint64_t done, total;
} progress;

static mgl_status step(progress *p, uint64_t bytes, mgl_error *err)
{
    p->done += bytes;
    return p->request->step ? p->request->step(p->request->user, p->done, p->total, err) : MGL_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Writes bytes of a planned tensor from byte `at` of the tensor on. */
static mgl_status write_part(const mgl_quantize_plan *plan, mgl_output *const *outputs, int tensor,
                             uint64_t at, const void *bytes, size_t length, mgl_error *err)
{
    const mgl_planned_tensor *t = &plan->tensors[tensor];
    return mgl_output_write(outputs[t->file], plan->headers[t->file] + t->offset + at, bytes,
                            length, err);
}

static mgl_status write_headers(mgl_quantize_plan *plan, mgl_output *const *outputs, mgl_error *err)
{
    mgl_status status = MGL_OK;
    for (int i = 0; i < plan->file_count && !status; i++) {
        mgl_text header = {0};
        mgl_quantize_put_header(plan, i, &header);
        status = header.failed ? mgl_fail_memory(err, 0)
                               : mgl_output_write(outputs[i], 0, header.bytes, header.length, err);
        plan->headers[i] = header.length;
        mgl_text_clear(&header);
    }
    return status;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void clear_buffers(buffers *b)
{
    mgl_free(b->stored);
    mgl_free(b->weights);
    mgl_free(b->codes);
    mgl_free(b->packed);
    mgl_free(b->scales);
    mgl_free(b->numbers);
    mgl_free(b->zeros);
    mgl_free(b->words);
}

static mgl_status make_buffers(const matrix *m, buffers *b, mgl_error *err)
{
    const size_t weights = (size_t)(m->chunk * m->columns), groups = (size_t)(m->chunk * m->groups);
    *b = (buffers){.stored = mgl_alloc(weights * mgl_dtype_size(m->stored->dtype)),
                   .weights = mgl_alloc(weights * sizeof(float)),
                   .codes = mgl_alloc(weights),
                   .packed = mgl_alloc(weights),
                   .scales = mgl_alloc(groups * sizeof(float)),
                   .numbers = mgl_alloc(groups * sizeof(float)),
                   .zeros = mgl_alloc(groups),
                   .words = mgl_alloc(groups + (size_t)m->groups * 4)};
    if (b->stored && b->weights && b->codes && b->packed && b->scales && b->numbers && b->zeros &&
        b->words)
        return MGL_OK;
    return mgl_fail_memory(err, weights * 10);
}

/* ---- matrices -------------------------------------------------------------------------------- */

mgl_status mgl_quantize_fail_row(const mgl_quantize_plan *plan, int source, mgl_rounded rounded,
                                 int64_t row, int64_t column, mgl_error *err)
{
    const char *name = plan->files->tensors.items[source].name;
    if (rounded == MGL_ROUND_NOT_FINITE)
        return mgl_fail(err, MGL_BAD_INPUT, name,
                        "the weight of row %" PRId64 " and column %" PRId64
                        " is not a finite number; use a checkpoint with finite weights",
                        row, column);
    const mgl_dtype scales = plan->sources[source].format.scales;
    return mgl_fail(err, MGL_BAD_INPUT, name,
                    "the weights of row %" PRId64 " from column %" PRId64
                    " are too large for scales of %s; %s",
                    row, column, mgl_dtype_name(scales),
                    scales == MGL_F16 ? "use --scales f32" : "use the model without quantizing it");
}

static mgl_status round_rows(const matrix *m, const buffers *b, int64_t row, int64_t count,
                             mgl_error *err)
{
    const int64_t c = m->columns, g = m->groups;
    for (int64_t i = 0; i < count; i++) {
        int64_t column = 0;
        const mgl_rounded rounded =
            mgl_round_row(b->weights + i * c, c, m->source->format, m->fit, b->codes + i * c,
                          b->scales + i * g, b->zeros + i * g, &column);
        if (rounded)
            return mgl_quantize_fail_row(m->plan, m->index, rounded, row + i, column, err);
    }
    return MGL_OK;
}

/* Packs and writes the codes, scales and zero points of a chunk. */
static mgl_status write_rows(const matrix *m, const buffers *b, int64_t row, int64_t count,
                             mgl_error *err)
{
    const mgl_weight_format f = m->source->format;
    const int *parts = m->source->parts;
    const int bits = mgl_weight_code_get(f.code)->bits;
    const size_t width = (size_t)(m->columns * bits / 8);
    const size_t scale = mgl_dtype_size(f.scales), line = (size_t)m->groups * scale;
    mgl_pack_codes(b->codes, count * m->columns, bits, b->packed);
    mgl_convert(b->numbers, f.scales, b->scales, MGL_F32, (size_t)(count * m->groups));
    mgl_status status = write_part(m->plan, m->outputs, parts[MGL_PART_CODES],
                                   (uint64_t)row * width, b->packed, (size_t)count * width, err);
    if (!status)
        status = write_part(m->plan, m->outputs, parts[MGL_PART_SCALES], (uint64_t)row * line,
                            b->numbers, (size_t)count * line, err);
    if (status || !f.zeros)
        return status;
    mgl_pack_zeros(b->zeros, count, m->groups, bits, b->words);
    return write_part(m->plan, m->outputs, parts[MGL_PART_ZEROS],
                      (uint64_t)mgl_packed_zero_bytes(row, m->groups, bits), b->words,
                      (size_t)mgl_packed_zero_bytes(count, m->groups, bits), err);
}

/* Reads a chunk and rounds it to nearest. */
static mgl_status round_chunk(const matrix *m, const buffers *b, int64_t row, int64_t count,
                              mgl_error *err)
{
    const size_t line = (size_t)m->columns * mgl_dtype_size(m->stored->dtype);
    mgl_status status = mgl_safetensors_read(m->plan->files, m->index, (size_t)row * line,
                                             (size_t)count * line, b->stored, err);
    if (status)
        return status;
    mgl_convert(b->weights, MGL_F32, b->stored, m->stored->dtype, (size_t)(count * m->columns));
    return round_rows(m, b, row, count, err);
}

/* One chunk: an item of mgl_parallel. */
static mgl_status quantize_chunk(void *user, int worker, size_t item, mgl_error *err)
{
    const matrix *m = user;
    buffers *b = &m->memory[worker];
    const int64_t row = (int64_t)(m->first + item) * m->chunk;
    const int64_t count = m->rows - row < m->chunk ? m->rows - row : m->chunk;
    mgl_status status = b->stored ? MGL_OK : make_buffers(m, b, err);
    const mgl_matrix_codes codes = {b->codes, b->scales, b->zeros};
    if (!status)
        status = m->results ? mgl_results_get(m->results, m->index, row, count, &codes, err)
                            : round_chunk(m, b, row, count, err);
    return status ? status : write_rows(m, b, row, count, err);
}

static mgl_status write_shape(const matrix *m, mgl_error *err)
{
    const int64_t shape[2] = {m->rows, m->columns};
    const int tensor = m->source->parts[MGL_PART_SHAPE];
    return tensor < 0 ? MGL_OK
                      : write_part(m->plan, m->outputs, tensor, 0, shape, sizeof shape, err);
}

static mgl_status quantize_chunks(matrix *m, int threads, progress *p, mgl_error *err)
{
    const size_t chunks = (size_t)((m->rows + m->chunk - 1) / m->chunk);
    const size_t batch = (size_t)threads * BATCH;
    mgl_status status = write_shape(m, err);
    for (m->first = 0; m->first < chunks && !status; m->first += batch) {
        const size_t count = chunks - m->first < batch ? chunks - m->first : batch;
        const int64_t row = (int64_t)m->first * m->chunk;
        int64_t rows = (int64_t)count * m->chunk;
        rows = rows < m->rows - row ? rows : m->rows - row;
        status = mgl_parallel(threads, count, quantize_chunk, m, err);
        if (!status)
            status = step(p, m->stored->bytes / (uint64_t)m->rows * (uint64_t)rows, err);
    }
    return status;
}

static mgl_status quantize_matrix(const mgl_quantize_plan *plan, mgl_output *const *outputs,
                                  int index, progress *p, mgl_error *err)
{
    const mgl_stored_tensor *stored = &plan->files->tensors.items[index];
    const mgl_fit fit = {.search = p->request->method != MGL_METHOD_RTN};
    const mgl_planned_source *source = &plan->sources[index];
    buffers memory[MGL_MAX_THREADS] = {0};
    const int threads = mgl_parallel_threads();
    const int64_t columns = stored->shape[1];
    matrix m = {.plan = plan,
                .outputs = outputs,
                .stored = stored,
                .source = source,
                .index = index,
                .results = p->results,
                .fit = fit,
                .rows = stored->shape[0],
                .columns = columns,
                .groups = mgl_weight_format_groups(source->format, columns),
                .memory = memory};
    m.chunk = CHUNK_WEIGHTS / columns / CHUNK_ROWS * CHUNK_ROWS;
    m.chunk = m.chunk ? m.chunk : CHUNK_ROWS;
    mgl_status status = quantize_chunks(&m, threads, p, err);
    for (int i = 0; i < threads; i++)
        clear_buffers(&memory[i]);
    return status;
}

/* ---- copies ---------------------------------------------------------------------------------- */

static mgl_status copy_tensor(const mgl_quantize_plan *plan, mgl_output *const *outputs, int index,
                              progress *p, mgl_error *err)
{
    const uint64_t all = plan->files->tensors.items[index].bytes;
    const int tensor = plan->sources[index].parts[MGL_PART_COPY];
    char *bytes = mgl_alloc(COPY_BYTES);
    mgl_status status = bytes ? MGL_OK : mgl_fail_memory(err, COPY_BYTES);
    for (uint64_t at = 0; at < all && !status; at += COPY_BYTES) {
        const size_t some = all - at < COPY_BYTES ? (size_t)(all - at) : COPY_BYTES;
        status = mgl_safetensors_read(plan->files, index, (size_t)at, some, bytes, err);
        if (!status)
            status = write_part(plan, outputs, tensor, at, bytes, some, err);
        if (!status)
            status = step(p, some, err);
    }
    mgl_free(bytes);
    return status;
}

/* The plan may have no tensors yet. */
uint64_t mgl_quantize_bytes(const mgl_quantize_plan *plan, const mgl_quantize_request *request)
{
    uint64_t total = mgl_calibrate_bytes(plan, request);
    for (size_t i = 0; i < plan->files->tensors.count; i++) {
        const mgl_planned_source *s = &plan->sources[i];
        const uint64_t copies = !s->dropped && (!s->quantized || s->copied);
        total += plan->files->tensors.items[i].bytes * (copies + s->quantized);
    }
    return total;
}

mgl_status mgl_quantize_write(mgl_quantize_plan *plan, mgl_output *const *outputs,
                              const mgl_quantize_request *request, const mgl_results *results,
                              mgl_error *err)
{
    progress p = {.request = request,
                  .results = results,
                  .done = mgl_calibrate_bytes(plan, request),
                  .total = mgl_quantize_bytes(plan, request)};
    mgl_status status = write_headers(plan, outputs, err);
    for (size_t i = 0; i < plan->files->tensors.count && !status; i++) {
        const mgl_planned_source *s = &plan->sources[i];
        if (s->quantized)
            status = quantize_matrix(plan, outputs, (int)i, &p, err);
        if (!status && s->parts[MGL_PART_COPY] >= 0)
            status = copy_tensor(plan, outputs, (int)i, &p, err);
    }
    return status;
}
