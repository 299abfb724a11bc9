/* Implements calibrate.h: the segments of the graph, their memory, and the loop over them. */
#include "quantize/calibrate/calibrate.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "quantize/calibrate/calibration.h"
#include "quantize/write.h"

#include <inttypes.h>
#include <string.h>

bool mgl_calibrate_applies(const mgl_quantize_request *request)
{
    return request->sample_count > 0;
}

mgl_status mgl_calibration_step(mgl_calibration *c, uint64_t bytes, mgl_error *err)
{
    const mgl_quantize_request *r = c->request;
    c->done = c->done + bytes < c->total ? c->done + bytes : c->total;
    if (r->deadline_s > 0 && mgl_clock_s() > r->deadline_s && mgl_results_added(c->results) > 0)
        return mgl_fail(err, MGL_WATCHDOG, NULL,
                        "the time limit is reached: %.0f s; the finished halves of layers are "
                        "kept, and the same command continues after them",
                        r->time_limit_s);
    return r->step ? r->step(r->user, c->done, c->total, err) : MGL_OK;
}

/* ---- segments -------------------------------------------------------------------------------- */

/* Finds the stored tensor of each quantized matrix. */
static mgl_status find_sources(mgl_calibration *c, mgl_error *err)
{
    const mgl_graph *graph = c->graph;
    c->sources = mgl_alloc_zero((size_t)graph->node_count, sizeof *c->sources);
    if (!c->sources)
        return mgl_fail_memory(err, (size_t)graph->node_count * sizeof *c->sources);
    for (int i = 0; i < graph->node_count; i++) {
        const mgl_node *n = &graph->nodes[i];
        const bool is_linear = n->kind == MGL_NODE_LINEAR;
        const char *name =
            is_linear ? mgl_checkpoint_stored_name(c->plan->checkpoint, n->tensor) : "";
        const int source = is_linear ? mgl_safetensors_find(c->plan->files, name) : -1;
        const mgl_planned_source *s = source >= 0 ? &c->plan->sources[source] : NULL;
        c->sources[i] = s && s->quantized && !(c->measures && s->is_head) ? source : -1;
    }
    return MGL_OK;
}

/* Whether the value of node `cut` is the only one that later nodes use. */
static bool is_cut(const mgl_graph *graph, int cut)
{
    for (int i = cut + 1; i < graph->node_count; i++)
        for (int k = 0; k < 3; k++)
            if (graph->nodes[i].in[k] >= 0 && graph->nodes[i].in[k] < cut)
                return false;
    return true;
}

static bool lists(const mgl_segment *s, int source)
{
    for (int i = 0; i < s->count; i++)
        if (s->sources[i] == source)
            return true;
    return false;
}

/* Adds the segment from `first` to `last`. */
static mgl_status add_segment(mgl_calibration *c, int first, int last, mgl_error *err)
{
    mgl_segment *s = &c->segments[c->segment_count++];
    const mgl_segment *before = c->segment_count > 1 ? s - 1 : NULL;
    *s = (mgl_segment){.first = first, .last = last};
    s->part = before ? before->part + (before->count > 0) : 0;
    s->sources = mgl_alloc_zero((size_t)(last - first + 1), sizeof *s->sources);
    if (!s->sources)
        return mgl_fail_memory(err, (size_t)(last - first + 1) * sizeof *s->sources);
    for (int i = first; i <= last; i++)
        if (c->sources[i] >= 0 && !lists(s, c->sources[i]))
            s->sources[s->count++] = c->sources[i];
    return MGL_OK;
}

static mgl_status find_segments(mgl_calibration *c, mgl_error *err)
{
    const mgl_graph *graph = c->graph;
    int first = 0, last_matrix = -1;
    mgl_status status = find_sources(c, err);
    c->segments = mgl_alloc_zero((size_t)graph->node_count, sizeof *c->segments);
    if (!status && !c->segments)
        status = mgl_fail_memory(err, (size_t)graph->node_count * sizeof *c->segments);
    for (int i = 0; i < graph->node_count && !status; i++) {
        if (graph->nodes[i].kind == MGL_NODE_EMBED)
            first = i + 1;
        if (c->sources[i] >= 0)
            last_matrix = i;
    }
    for (int i = first; first <= last_matrix && !status; i++)
        if (is_cut(graph, i)) {
            status = add_segment(c, first, i, err);
            first = i + 1;
        }
    return status;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* The sizes of the buffers, in elements. */
typedef struct sizes {
    size_t tokens, widest, batch, weights, codes, scratch;
} sizes;

static bool is_head(const mgl_calibration *c, int node)
{
    return node + 1 < c->graph->node_count && c->graph->nodes[node + 1].kind == MGL_NODE_SAMPLE;
}

/* Whether a node's tensor is loaded: all but the head, which no later node uses. */
static bool is_loaded(const mgl_calibration *c, int node)
{
    return c->graph->nodes[node].tensor >= 0 && !is_head(c, node);
}

static size_t most(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Adds the sizes of a segment. */
static void size_segment(const mgl_calibration *c, const mgl_segment *s, sizes *to)
{
    size_t weights = 0, codes = 0;
    for (int i = s->first; i <= s->last; i++) {
        const mgl_node *n = &c->graph->nodes[i];
        if (n->tensor < 0)
            continue;
        const mgl_tensor *t = &c->graph->tensors[n->tensor];
        weights += is_loaded(c, i) ? (size_t)(t->rows * t->cols) : 0;
        if (c->sources[i] < 0)
            continue;
        const mgl_weight_format f = c->plan->sources[c->sources[i]].format;
        const int64_t groups = mgl_weight_format_groups(f, t->cols);
        codes += (size_t)(t->rows * (t->cols + groups * 5));
        to->widest = most(to->widest, (size_t)t->cols);
        to->scratch = most(to->scratch, mgl_calibration_rows_scratch(t->rows, t->cols, f));
    }
    to->weights = most(to->weights, weights);
    to->codes = most(to->codes, codes);
    const int last = is_head(c, s->last) ? s->last - 1 : s->last;
    to->scratch = most(to->scratch, mgl_forward_scratch(&c->forward, s->first, last));
}

static sizes find_sizes(const mgl_calibration *c)
{
    const size_t samples = c->request->sample_count;
    sizes to = {.tokens = c->starts[samples]};
    for (size_t first = 0; first < samples;) {
        const size_t end = mgl_calibration_batch(c, first);
        to.batch = most(to.batch, c->starts[end] - c->starts[first]);
        first = end;
    }
    for (int i = 0; i < c->segment_count; i++)
        size_segment(c, &c->segments[i], &to);
    return to;
}

static uint64_t bytes_of(const mgl_calibration *c, const sizes *s)
{
    const size_t hidden = (size_t)c->graph->geometry.hidden;
    return sizeof(float) *
               (uint64_t)(s->tokens * hidden + s->widest * s->widest + s->batch * s->widest +
                          s->weights + (size_t)c->threads * s->scratch) +
           2 * s->codes; /* the part is packed while it is written */
}

static mgl_status check_memory(const mgl_calibration *c, const sizes *s, mgl_error *err)
{
    const uint64_t bytes = bytes_of(c, s), available = mgl_memory_available();
    if (c->request->memory)
        c->request->memory(c->request->user, bytes, available);
    if (!available || bytes <= available)
        return MGL_OK;
    return mgl_fail(err, MGL_NO_MEMORY, NULL,
                    "the calibration needs %" PRIu64 " bytes of memory, and %" PRIu64
                    " are available; give fewer or shorter samples (--samples, --length), or use "
                    "--method clip without --texts",
                    bytes, available);
}

static mgl_status make_buffers(mgl_calibration *c, mgl_error *err)
{
    const sizes s = find_sizes(c);
    mgl_status status = check_memory(c, &s, err);
    if (status)
        return status;
    c->states = mgl_alloc(s.tokens * (size_t)c->graph->geometry.hidden * sizeof(float));
    c->inputs = mgl_alloc((s.batch * s.widest + 1) * sizeof(float));
    c->hessian = mgl_alloc((s.widest * s.widest + 1) * sizeof(float));
    c->weights = mgl_alloc_zero((size_t)c->graph->tensor_count, sizeof *c->weights);
    c->codes = mgl_alloc_zero(c->plan->files->tensors.count, sizeof *c->codes);
    c->scratch = mgl_alloc_zero((size_t)c->threads, sizeof *c->scratch);
    bool good = c->states && c->inputs && c->hessian && c->weights && c->codes && c->scratch;
    for (int i = 0; i < c->threads && good; i++)
        good = (c->scratch[i] = mgl_alloc((s.scratch + 1) * sizeof(float))) != NULL;
    c->forward.weights = c->weights;
    return good ? MGL_OK : mgl_fail_memory(err, bytes_of(c, &s));
}

static mgl_status count_tokens(mgl_calibration *c, int *longest, mgl_error *err)
{
    const mgl_quantize_request *r = c->request;
    c->starts = mgl_alloc_zero(r->sample_count + 1, sizeof *c->starts);
    if (!c->starts)
        return mgl_fail_memory(err, r->sample_count * sizeof *c->starts);
    *longest = 0;
    for (size_t i = 0; i < r->sample_count; i++) {
        const size_t count = r->samples[i].count;
        c->starts[i + 1] = c->starts[i] + count;
        if (count < 1 || count > (size_t)c->graph->max_positions)
            return mgl_fail(err, MGL_BAD_INPUT, NULL,
                            "sample %zu has %zu tokens; allowed: 1 to %" PRId32
                            ", the positions of the model",
                            i, count, c->graph->max_positions);
        *longest = (int)count > *longest ? (int)count : *longest;
    }
    return MGL_OK;
}

static void clear(mgl_calibration *c)
{
    for (int i = 0; i < c->segment_count; i++)
        mgl_free(c->segments[i].sources);
    for (int i = 0; i < c->threads && c->scratch; i++)
        mgl_free(c->scratch[i]);
    mgl_free(c->segments);
    mgl_free(c->sources);
    mgl_free(c->starts);
    mgl_free(c->states);
    mgl_free(c->inputs);
    mgl_free(c->hessian);
    mgl_free(c->weights);
    mgl_free(c->codes);
    mgl_free(c->scratch);
    mgl_forward_clear(&c->forward);
}

static mgl_status open_calibration(mgl_calibration *c, mgl_error *err)
{
    int longest = 0;
    c->graph = c->plan->checkpoint->graph;
    c->threads = mgl_parallel_threads();
    mgl_status status = mgl_blas_open(&c->blas, err);
    if (!status)
        status = count_tokens(c, &longest, err);
    if (!status)
        status = mgl_forward_make(c->blas, c->graph, NULL, longest, &c->forward, err);
    if (!status)
        status = find_segments(c, err);
    return status ? status : make_buffers(c, err);
}

/* ---- a segment ------------------------------------------------------------------------------- */

static void clear_segment(mgl_calibration *c, const mgl_segment *s)
{
    for (int i = s->first; i <= s->last; i++)
        if (c->graph->nodes[i].tensor >= 0) {
            mgl_free(c->weights[c->graph->nodes[i].tensor]);
            c->weights[c->graph->nodes[i].tensor] = NULL;
        }
    for (int i = 0; i < s->count; i++) {
        mgl_matrix_codes *codes = &c->codes[s->sources[i]];
        mgl_free(codes->codes);
        mgl_free(codes->scales);
        mgl_free(codes->zeros);
        *codes = (mgl_matrix_codes){0};
    }
}

/* A tensor that is loaded by rows in parallel. */
typedef struct load {
    const mgl_graph *graph;
    int tensor;
    float *to;
} load;

enum { LOAD_ROWS = 64 };

static mgl_status load_rows(void *user, int worker, size_t item, mgl_error *err)
{
    const load *l = user;
    const mgl_tensor *t = &l->graph->tensors[l->tensor];
    const int64_t row = (int64_t)item * LOAD_ROWS;
    const int64_t count = t->rows - row < LOAD_ROWS ? t->rows - row : LOAD_ROWS;
    const size_t numbers = (size_t)(count * t->cols);
    char *stored = mgl_alloc(numbers * mgl_dtype_size(t->dtype));
    (void)worker;
    if (!stored)
        return mgl_fail_memory(err, numbers * mgl_dtype_size(t->dtype));
    mgl_status status = l->graph->read(l->graph, l->tensor, row, count, stored, err);
    if (!status)
        mgl_convert(l->to + row * t->cols, MGL_F32, stored, t->dtype, numbers);
    mgl_free(stored);
    return status;
}

/* Loads the tensors of a segment. */
static mgl_status load_segment(mgl_calibration *c, const mgl_segment *s, mgl_error *err)
{
    mgl_status status = MGL_OK;
    for (int i = s->first; i <= s->last && !status; i++) {
        const int tensor = c->graph->nodes[i].tensor;
        if (!is_loaded(c, i) || c->weights[tensor])
            continue;
        const mgl_tensor *t = &c->graph->tensors[tensor];
        const size_t bytes = (size_t)(t->rows * t->cols) * sizeof(float);
        load l = {c->graph, tensor, mgl_alloc(bytes)};
        c->weights[tensor] = l.to;
        status = l.to ? mgl_parallel(c->threads, (size_t)(t->rows + LOAD_ROWS - 1) / LOAD_ROWS,
                                     load_rows, &l, err)
                      : mgl_fail_memory(err, bytes);
    }
    return status;
}

static mgl_status make_codes(mgl_calibration *c, const mgl_segment *s, mgl_error *err)
{
    for (int i = 0; i < s->count; i++) {
        const mgl_stored_tensor *t = &c->plan->files->tensors.items[s->sources[i]];
        const mgl_weight_format f = c->plan->sources[s->sources[i]].format;
        const size_t rows = (size_t)t->shape[0], columns = (size_t)t->shape[1];
        const size_t groups = (size_t)mgl_weight_format_groups(f, t->shape[1]);
        mgl_matrix_codes *codes = &c->codes[s->sources[i]];
        codes->codes = mgl_alloc_zero(rows, columns);
        codes->scales = mgl_alloc_zero(rows * groups, sizeof *codes->scales);
        codes->zeros = f.zeros ? mgl_alloc_zero(rows, groups) : NULL;
        if (!codes->codes || !codes->scales || (f.zeros && !codes->zeros))
            return mgl_fail_memory(err, rows * columns);
    }
    return MGL_OK;
}

/* Sets the weights of a matrix to the numbers of a finished part. */
static mgl_status take_result(mgl_calibration *c, int node, mgl_error *err)
{
    const int tensor = c->graph->nodes[node].tensor, source = c->sources[node];
    const mgl_tensor *t = &c->graph->tensors[tensor];
    const mgl_weight_format f = c->plan->sources[source].format;
    const int64_t groups = mgl_weight_format_groups(f, t->cols);
    const mgl_matrix_codes row = {.codes = mgl_alloc((size_t)t->cols),
                                  .scales = mgl_alloc((size_t)groups * sizeof(float)),
                                  .zeros = mgl_alloc((size_t)groups)};
    mgl_status status =
        row.codes && row.scales && row.zeros ? MGL_OK : mgl_fail_memory(err, (size_t)t->cols);
    for (int64_t r = 0; r < t->rows && !status; r++) {
        const int64_t stored = mgl_checkpoint_stored_row(c->plan->checkpoint, tensor, r);
        float *to = c->weights[tensor] + r * t->cols;
        status = mgl_results_get(c->results, source, stored, 1, &row, err);
        for (int64_t i = 0; i < t->cols && !status; i++) {
            const int64_t g = f.group == MGL_GROUP_ALL ? 0 : i / f.group;
            const int zero = f.zeros ? row.zeros[g] : mgl_weight_code_zero(f.code);
            to[i] = mgl_weight_code_number(f.code, row.codes[i], zero) * row.scales[g];
        }
    }
    mgl_free(row.codes);
    mgl_free(row.scales);
    mgl_free(row.zeros);
    return status;
}

/* Adds the matrices of a finished segment to the progress. */
static mgl_status step_over(mgl_calibration *c, const mgl_segment *s, mgl_error *err)
{
    mgl_status status = MGL_OK;
    for (int i = s->first; i <= s->last && !status; i++) {
        if (c->sources[i] < 0)
            continue;
        const mgl_tensor *t = &c->graph->tensors[c->graph->nodes[i].tensor];
        status =
            mgl_calibration_step(c, (uint64_t)(t->rows * t->cols) * mgl_dtype_size(t->dtype), err);
    }
    return status;
}

static mgl_status take_results(mgl_calibration *c, const mgl_segment *s, mgl_error *err)
{
    mgl_status status = MGL_OK;
    for (int i = s->first; i <= s->last && !status; i++)
        if (c->sources[i] >= 0 && is_loaded(c, i))
            status = take_result(c, i, err);
    return status ? status : step_over(c, s, err);
}

/* Quantizes or measures the matrices, stage by stage. */
static mgl_status run_stages(mgl_calibration *c, const mgl_segment *s, mgl_error *err)
{
    int done = -1; /* input of the last stage; the inputs of stages ascend */
    mgl_status status = MGL_OK;
    for (int i = s->first; i <= s->last && !status; i++)
        if (c->sources[i] >= 0 && c->graph->nodes[i].in[0] > done) {
            done = c->graph->nodes[i].in[0];
            status = mgl_calibration_stage(c, s, done, err);
        }
    return status;
}

/* A sample of the final pass: the output of the segment replaces its input. */
typedef struct pass {
    const mgl_calibration *c;
    const mgl_segment *segment;
} pass;

static mgl_status pass_sample(void *user, int worker, size_t item, mgl_error *err)
{
    const pass *p = user;
    const mgl_calibration *c = p->c;
    const size_t hidden = (size_t)c->graph->geometry.hidden;
    const size_t rows = c->starts[item + 1] - c->starts[item];
    float *state = c->states + c->starts[item] * hidden;
    const float *values;
    mgl_status status = mgl_forward_run(&c->forward, p->segment->first, p->segment->last, state,
                                        (int)rows, c->scratch[worker], &values, err);
    if (!status)
        memcpy(state, values, rows * hidden * sizeof *state);
    return status;
}

/* Measures the matrices of a segment, unless an earlier run has done so. */
static mgl_status measure_part(mgl_calibration *c, const mgl_segment *s, mgl_error *err)
{
    double *measured = &c->errors[mgl_calibrate_numbers(c->plan) - 1];
    if (s->part < *measured)
        return step_over(c, s, err);
    mgl_status status = run_stages(c, s, err);
    if (status)
        return status;
    *measured = s->part + 1;
    return mgl_results_put_numbers(c->results, MGL_CALIBRATE_NUMBERS, c->errors,
                                   mgl_calibrate_numbers(c->plan), err);
}

/* Quantizes the matrices of a segment, or takes the results of an earlier run. */
static mgl_status quantize_part(mgl_calibration *c, const mgl_segment *s, mgl_error *err)
{
    bool found = false;
    mgl_status status = mgl_results_find(c->results, s->part, s->sources, s->count, &found, err);
    if (status || found)
        return status ? status : take_results(c, s, err);
    status = make_codes(c, s, err);
    if (!status)
        status = run_stages(c, s, err);
    return status ? status
                  : mgl_results_put(c->results, s->part, s->sources, s->count, c->codes, err);
}

static mgl_status run_segment(mgl_calibration *c, const mgl_segment *s, bool is_last,
                              mgl_error *err)
{
    pass p = {c, s};
    mgl_status status = load_segment(c, s, err);
    if (!status && s->count)
        status = c->measures ? measure_part(c, s, err) : quantize_part(c, s, err);
    if (!status && !is_last)
        status = mgl_parallel(c->threads, c->request->sample_count, pass_sample, &p, err);
    clear_segment(c, s);
    return status;
}

static mgl_status run_segments(mgl_calibration *c, mgl_error *err)
{
    mgl_status status = MGL_OK;
    const size_t hidden = (size_t)c->graph->geometry.hidden;
    for (size_t i = 0; i < c->request->sample_count && !status; i++)
        status =
            mgl_forward_embed(c->graph, c->request->samples[i].ids, c->request->samples[i].count,
                              c->states + c->starts[i] * hidden, err);
    for (int i = 0; i < c->segment_count && !status; i++)
        status = run_segment(c, &c->segments[i], i + 1 == c->segment_count, err);
    return status;
}

size_t mgl_calibrate_numbers(const mgl_quantize_plan *plan)
{
    return 3 * plan->files->tensors.count + 1;
}

uint64_t mgl_calibrate_bytes(const mgl_quantize_plan *plan, const mgl_quantize_request *request)
{
    uint64_t bytes = 0;
    const uint64_t passes = request->bits_per_weight > 0 ? 2 : 1;
    for (size_t i = 0; i < plan->files->tensors.count && mgl_calibrate_applies(request); i++)
        bytes += plan->sources[i].quantized ? plan->files->tensors.items[i].bytes : 0;
    return passes * bytes;
}

static mgl_status run(mgl_calibration *c, mgl_error *err)
{
    mgl_status status = open_calibration(c, err);
    if (!status)
        status = run_segments(c, err);
    clear(c);
    return status;
}

mgl_status mgl_calibrate_measure(const mgl_quantize_plan *plan, const mgl_quantize_request *request,
                                 mgl_results *results, double *errors, mgl_error *err)
{
    mgl_calibration c = {.plan = plan,
                         .request = request,
                         .results = results,
                         .measures = true,
                         .errors = errors,
                         .total = mgl_quantize_bytes(plan, request)};
    return run(&c, err);
}

mgl_status mgl_calibrate(const mgl_quantize_plan *plan, const mgl_quantize_request *request,
                         mgl_results *results, mgl_error *err)
{
    const uint64_t own = mgl_calibrate_bytes(plan, request);
    mgl_calibration c = {.plan = plan,
                         .request = request,
                         .results = results,
                         .done = request->bits_per_weight > 0 ? own / 2 : 0,
                         .total = mgl_quantize_bytes(plan, request)};
    return run(&c, err);
}
