/* Implements the benchmark (bench.h): lowers the case, opens machine, baseline and stream, checks
 * accuracy against the f32 reference, takes samples in alternation, and computes order
 * statistics. */
#include "eval/bench.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/memory.h"
#include "eval/baseline.h"
#include "eval/device.h"
#include "eval/filler.h"
#include "eval/reference.h"
#include "eval/statistics.h"
#include "eval/stream.h"
#include "schedule/formats.h"
#include "schedule/step.h"
#include "vm/pipeline/pipeline.h"

/* State of a running case. */
struct bench {
    const mgl_bench_request *request;
    mgl_bench_progress_fn *progress;
    void *user;
    mgl_bench_result *out;
    mgl_device machine; /* the device found */
    mgl_graph *graph;
    mgl_program *program;
    mgl_bench_device device;
    mgl_bench_case of;
    mgl_filler filler;
    mgl_vm *vm;
    mgl_vm *also; /* the second machine, or NULL */
    mgl_baseline *baseline;
    mgl_stream stream;
    double streamed;        /* bytes per token, or per epoch of the prompt */
    int32_t *first;         /* (batch), or the prompt (prompt) */
    int32_t *made;          /* (batch, of.tokens) tokens of the machine, checked */
    int32_t *also_made;     /* (batch, of.tokens) tokens of the second machine, checked */
    int32_t *drawn;         /* (batch, of.tokens) tokens of the machine's first run with a
                               temperature */
    int32_t *other;         /* (batch, of.tokens) tokens to compare */
    float *logits, *wanted; /* (vocab) */
    double *times[5];       /* (samples) seconds: machine, baseline, stream, second machine,
                               machine with a temperature */
};
enum { MACHINE, BASELINE, STREAM, ALSO, DRAWN, TIMED };

/* Reports the next step, unless the run was aborted. */
static mgl_status begin(const struct bench *b, const char *what, int samples, mgl_error *err)
{
    mgl_status status = mgl_check_abort(b->request->abort, err);
    if (!status && b->progress)
        b->progress(b->user, what, samples);
    return status;
}

/* ---- request -------------------------------------------------------------------------------- */

/* Inputs of each sequence in a launch, and tokens that it makes. */
static int inputs_of(const mgl_bench_request *r)
{
    return r->prompt ? r->prompt : 1;
}

static int made_of(const mgl_bench_request *r)
{
    return r->prompt ? 1 : r->tokens;
}

/* Tokens of a sequence that are compared or fed: a prompt's tokens except the first, then the made
 * ones. */
static int words_of(const mgl_bench_request *r)
{
    return inputs_of(r) - 1 + made_of(r);
}

/* Index of the first made token. */
static int first_made(const mgl_bench_request *r)
{
    return inputs_of(r) - 1;
}

int64_t mgl_bench_needed(const mgl_bench_request *r)
{
    return (int64_t)r->context + inputs_of(r) + made_of(r);
}

mgl_bench_cuts mgl_bench_cut_prompt(int rows, int context, int prompt)
{
    mgl_bench_cuts cuts = {0};
    int sequence[MGL_SEQUENCE_WORDS] = {[MGL_SEQUENCE_MODE] = MGL_WANT_SAMPLE,
                                        [MGL_SEQUENCE_PROMPT] = context + prompt,
                                        [MGL_SEQUENCE_LENGTH] = context};
    while (sequence[MGL_SEQUENCE_LENGTH] < mgl_step_inputs(sequence)) {
        cuts.positions += sequence[MGL_SEQUENCE_LENGTH];
        sequence[MGL_SEQUENCE_LENGTH] += 1 + mgl_step_share(mgl_step_more(sequence), 0, rows - 1);
        cuts.epochs++;
    }
    cuts.positions /= cuts.epochs > 0 ? cuts.epochs : 1;
    return cuts;
}

/* Checks that the case fits the cache, and the cache the model. */
static mgl_status check_positions(const mgl_bench_request *r, mgl_error *err)
{
    int64_t most =
        r->config.max_positions < MGL_MAX_CAPACITY ? r->config.max_positions : MGL_MAX_CAPACITY;
    if (r->context < 0 || r->tokens < 1 || mgl_bench_needed(r) > most)
        return mgl_fail(err, MGL_USAGE, r->prompt ? "prompt" : "context",
                        "%d positions and %d tokens behind them: the model has %d positions",
                        r->context, words_of(r), (int)most);
    if (r->capacity < 0 || r->capacity > most)
        return mgl_fail(err, MGL_USAGE, "capacity", "%d positions; the model has %d", r->capacity,
                        (int)most);
    if (r->capacity && mgl_bench_needed(r) > r->capacity)
        return mgl_fail(err, MGL_USAGE, "capacity",
                        "%d positions and %d tokens behind them do not fit: %d are needed, and the "
                        "cache has %d",
                        r->context, words_of(r), (int)mgl_bench_needed(r), r->capacity);
    return MGL_OK;
}

mgl_status mgl_bench_check(const mgl_bench_request *r, mgl_error *err)
{
    mgl_status status;
    if (r->dtype != MGL_BF16)
        return mgl_fail(err, MGL_USAGE, mgl_dtype_name(r->dtype), "the benchmark takes bf16 alone");
    if (r->batch < 1 || r->batch > MGL_MAX_SEQUENCES)
        return mgl_fail(err, MGL_USAGE, "batch", "%d sequences; there may be 1 to %d", r->batch,
                        MGL_MAX_SEQUENCES);
    if (r->prompt < 0 || (r->prompt && r->batch != 1))
        return mgl_fail(err, MGL_USAGE, "prompt",
                        "%d tokens, %d sequences: a prompt of one token or more is read, of one "
                        "sequence",
                        r->prompt, r->batch);
    if (r->queues < 0 || r->queues > MGL_MAX_QUEUES)
        return mgl_fail(err, MGL_USAGE, "queues", "%d queues; there may be 1 to %d", r->queues,
                        MGL_MAX_QUEUES);
    if ((status = check_positions(r, err)))
        return status;
    if (r->samples < 1 || r->samples > MGL_MAX_SAMPLES)
        return mgl_fail(err, MGL_USAGE, "samples", "%d samples; there may be 1 to %d", r->samples,
                        MGL_MAX_SAMPLES);
    if (r->also && strncmp(r->also, "sm_", 3) != 0 && strncmp(r->also, "compute_", 8) != 0)
        return mgl_fail(err, MGL_USAGE, r->also,
                        "unknown architecture; examples: sm_90a, compute_80");
    if (!(r->temperature >= 0) || !(r->top_p >= 0 && r->top_p <= 1))
        return mgl_fail(err, MGL_USAGE, "temperature",
                        "%g, and top-p %g; temperature must be 0 or more, and top-p 0 to 1",
                        (double)r->temperature, (double)r->top_p);
    return mgl_baseline_check(&r->config.geometry, err);
}

mgl_status mgl_bench_gate(const mgl_bench_accuracy *a, mgl_error *err)
{
    /* written so that NaN fails */
    if (!(a->machine_error <= MGL_BENCH_ERROR))
        return mgl_fail(err, MGL_GATE, "accuracy",
                        "the machine's logits are %.3g away from the f32 reference (relative L2; "
                        "at most %g is allowed), and %d of %d tokens are the reference's: nothing "
                        "was timed",
                        a->machine_error, MGL_BENCH_ERROR, a->machine_agrees, a->tokens);
    if (!(a->baseline_error <= MGL_BENCH_BASELINE_ERROR))
        return mgl_fail(err, MGL_GATE, "accuracy",
                        "the baseline's logits are %.3g away from the f32 reference (relative L2; "
                        "at most %g is allowed): there is nothing to compare with",
                        a->baseline_error, MGL_BENCH_BASELINE_ERROR);
    if (!(a->also_error <= MGL_BENCH_ERROR))
        return mgl_fail(
            err, MGL_GATE, "accuracy",
            "the second machine's logits are %.3g away from the f32 reference (relative "
            "L2; at most %g is allowed): nothing was timed",
            a->also_error, MGL_BENCH_ERROR);
    return MGL_OK;
}

/* ---- opening -------------------------------------------------------------------------------- */

static mgl_status allocate_host(struct bench *b, mgl_error *err)
{
    const mgl_bench_request *r = b->request;
    size_t words = (size_t)r->batch * (size_t)words_of(r), samples = (size_t)r->samples;
    size_t vocab = (size_t)r->config.geometry.vocab;
    size_t inputs = (size_t)r->batch * (size_t)inputs_of(r);
    b->first = mgl_alloc_zero(inputs, sizeof *b->first);
    b->made = mgl_alloc_zero(words, sizeof *b->made);
    b->also_made = mgl_alloc_zero(words, sizeof *b->also_made);
    b->drawn = mgl_alloc_zero(words, sizeof *b->drawn);
    b->other = mgl_alloc_zero(words, sizeof *b->other);
    b->logits = mgl_alloc_zero(vocab, sizeof *b->logits);
    b->wanted = mgl_alloc_zero(vocab, sizeof *b->wanted);
    bool timed = true;
    for (int i = 0; i < TIMED; i++)
        timed = (b->times[i] = mgl_alloc_zero(samples, sizeof **b->times)) && timed;
    if (!b->first || !b->made || !b->also_made || !b->drawn || !b->other || !b->logits ||
        !b->wanted || !timed)
        return mgl_fail_memory(err, vocab * sizeof *b->logits);
    /* arbitrary tokens, different for each sequence or prompt position */
    for (size_t i = 0; i < inputs; i++)
        b->first[i] = (int32_t)((17 + 7919 * i) % vocab);
    return MGL_OK;
}

static mgl_status find_device(struct bench *b, mgl_error *err)
{
    const char *name = b->request->device ? b->request->device : "cuda";
    mgl_status status = mgl_device_find(name, &b->machine, err);
    if (!status && b->machine.kind != MGL_VM_CUDA)
        status = mgl_fail(err, MGL_USAGE, name, "the benchmark needs a GPU: cuda or cuda:N");
    int queues = b->request->queues, there = b->machine.target.queues;
    if (!status && queues > there)
        status = mgl_fail(err, MGL_USAGE, "queues", "%d queues; the device has %d", queues, there);
    if (!status && queues > 0)
        b->machine.target.queues = queues;
    return status;
}

/* Lowers as `run` would, with the capacity that `run` would choose. */
static mgl_status lower_tuned(struct bench *b, mgl_error *err)
{
    const mgl_bench_request *r = b->request;
    mgl_tuned_report report;
    mgl_lower_request request = {.dtype = mgl_dtype_name(r->dtype),
                                 .capacity = r->capacity,
                                 .wanted = (int32_t)mgl_bench_needed(r),
                                 .sequences = r->batch,
                                 .prompt = r->prompt,
                                 .device = b->machine.name,
                                 .unproved = true};
    mgl_status status =
        mgl_pipeline_lower_tuned(b->graph, &b->machine.target, &request, &b->program, &report, err);
    memcpy(b->out->note, report.note, sizeof report.note);
    if (!status)
        memcpy(b->out->tuned, b->program->tuned, sizeof b->program->tuned);
    return status;
}

/* Whether the requested tuned entry does not exist. */
static bool lacks_entry(const struct bench *b)
{
    return b->request->tuned && !b->out->tuned[0];
}

/* Lowers as `run` does, with the case's number of sequences and positions. */
static mgl_status lower(struct bench *b, mgl_error *err)
{
    const mgl_bench_request *r = b->request;
    mgl_schedule_config config;
    int positions = r->capacity ? r->capacity : (int)mgl_bench_needed(r);
    mgl_lower_options options = {
        .dtype = r->dtype, .capacity = positions, .sequences = r->batch, .prompt = r->prompt};
    mgl_schedule_config_default(&config);
    if (r->knobs)
        config = *r->knobs;
    const int most = config.rows > config.second_rows ? config.rows : config.second_rows;
    if (config.rows > 0 && most < r->batch)
        return mgl_fail(err, MGL_USAGE, "batch", "%d sequences, but the config has %d rows",
                        r->batch, most);
    return mgl_schedule_lower(b->graph, &b->machine.target, &options, &config, &b->program, err);
}

mgl_status mgl_bench_find_kernel(const mgl_bench_request *request, const char *device,
                                 const mgl_target *target, char out[MGL_KERNEL_DIGEST],
                                 mgl_error *err)
{
    mgl_bench_result result = {0};
    struct bench b = {.request = request, .out = &result};
    snprintf(b.machine.name, sizeof b.machine.name, "%s", device);
    b.machine.target = *target;
    out[0] = 0;
    mgl_status status = mgl_synthetic_open(&request->config, request->seed, &b.graph, err);
    if (!status)
        status = request->tuned ? lower_tuned(&b, err) : lower(&b, err);
    if (!status && !lacks_entry(&b))
        status = mgl_cuda_kernel_digest(b.program, target->arch, out, err);
    mgl_program_free(b.program);
    mgl_graph_free(b.graph);
    return status;
}

/* Opens the machine, and the second one if requested. */
static mgl_status open_vms(struct bench *b, mgl_error *err)
{
    b->filler =
        (mgl_filler){.device = &b->device, .graph = b->graph, .positions = b->request->context};
    mgl_vm_options options = {.kind = MGL_VM_CUDA,
                              .device = b->machine.device,
                              .fill = mgl_filler_run,
                              .fill_user = &b->filler,
                              .abort = b->request->abort};
    mgl_status status = begin(b, "validating, compiling and making the machine's weights", 0, err);
    if (!status)
        status = mgl_vm_open(b->program, b->graph, &options, &b->vm, err);
    if (status)
        return status;
    mgl_vm_get_facts(b->vm, &b->out->facts);
    options.arch = b->request->also;
    return options.arch ? mgl_vm_open(b->program, b->graph, &options, &b->also, err) : MGL_OK;
}

static mgl_status open_case(struct bench *b, mgl_error *err)
{
    const mgl_bench_request *r = b->request;
    mgl_status status =
        mgl_bench_make_rope(&b->device, b->graph, b->program->limits.capacity, &b->of.rope, err);
    b->of.graph = b->graph;
    b->of.sequences = r->batch;
    b->of.context = r->context;
    b->of.tokens = words_of(r);
    b->of.prompt = r->prompt > 0;
    b->of.capacity = b->program->limits.capacity;
    b->of.first = b->first;
    if (!status)
        status = begin(b, "making the baseline", 0, err);
    return status ? status : mgl_baseline_open(&b->device, &b->of, &b->baseline, err);
}

/* Mean cache length. Token t of a sample follows context + t positions. */
static double mean_positions(const struct bench *b)
{
    const mgl_bench_request *r = b->request;
    if (r->prompt)
        return mgl_bench_cut_prompt(b->program->limits.rows, r->context, r->prompt).positions;
    return (double)r->context + (double)(r->tokens - 1) / 2;
}

/* Predicts the time per token with the cost model; 0 if the device's costs are unknown. */
static void predict(struct bench *b)
{
    const mgl_bench_request *r = b->request;
    mgl_costs costs;
    mgl_cost_load load = {r->batch, mean_positions(b), r->tokens};
    if (r->prompt || mgl_costs_find(b->out->device, &costs, NULL) ||
        mgl_schedule_cost(b->program, &costs, &load, &b->out->predicted, NULL))
        b->out->predicted = (mgl_cost){0};
}

/* Bytes of the weights, and of the tapes and row factors beyond these. */
static void measure_weights(struct bench *b)
{
    const mgl_program *p = b->program;
    double bytes = 0;
    for (int i = 0; i < p->segment_count; i++) {
        const mgl_segment *s = &p->segments[i];
        const mgl_weight_format format = mgl_segment_format(p, s);
        const int tensors = s->layout == MGL_LAYOUT_G8X2 ? 2 : 1;
        bytes += (double)mgl_segment_bytes(p, s);
        if (mgl_weight_format_has_factors(format))
            bytes += (double)(mgl_segment_rows(s) * tensors) * sizeof(float);
    }
    b->out->weight_bytes = mgl_synthetic_streamed_bytes(b->graph, 0, 0);
    for (int i = 0; i < b->graph->node_count; i++) /* biases are not on the tapes */
        if (b->graph->nodes[i].kind == MGL_NODE_BIAS) {
            const mgl_tensor *t = &b->graph->tensors[b->graph->nodes[i].tensor];
            b->out->weight_bytes -= (double)(t->rows * t->cols) * (double)mgl_dtype_size(MGL_BF16);
        }
    b->out->padding = bytes - b->out->weight_bytes;
}

static void describe(struct bench *b)
{
    char bus_id[32] = "";
    snprintf(b->out->device, sizeof b->out->device, "%s", b->device.name);
    snprintf(b->out->arch, sizeof b->out->arch, "%s", b->machine.target.arch);
    b->device.cu->driver_version(&b->out->driver_version);
    b->out->cublas_version = mgl_baseline_cublas_version(b->baseline);
    b->out->queues = b->program->queue_count;
    b->out->unsplit = b->program->limits.unsplit;
    b->out->rows = b->program->limits.rows;
    b->out->layers = b->request->config.layers;
    b->out->head = b->request->config.head;
    measure_weights(b);
    b->out->positions = b->program->limits.capacity;
    b->out->derived = !b->request->capacity && b->out->positions == mgl_bench_needed(b->request);
    if (!b->device.cu->device_bus_id(bus_id, (int)sizeof bus_id, b->device.device))
        mgl_clocks_open(bus_id, &b->out->clocks);
}

static mgl_status open_bench(struct bench *b, mgl_error *err)
{
    const mgl_bench_request *r = b->request;
    mgl_status status = find_device(b, err);
    if (!status)
        status = allocate_host(b, err);
    if (!status)
        status = mgl_synthetic_open(&r->config, r->seed, &b->graph, err);
    if (!status)
        status = b->request->tuned ? lower_tuned(b, err) : lower(b, err);
    if (!status && !lacks_entry(b))
        status = mgl_cuda_kernel_digest(b->program, b->machine.target.arch, b->out->kernel, err);
    if (status || lacks_entry(b))
        return status;
    b->streamed = mgl_synthetic_streamed_bytes(b->graph, r->batch, mean_positions(b));
    status = begin(b, "compiling the benchmark's kernels", 0, err);
    if (!status)
        status = mgl_bench_device_open(b->machine.device, &r->config.geometry, r->abort, &b->device,
                                       err);
    if (!status)
        status = open_vms(b, err);
    if (!status)
        status = open_case(b, err);
    if (!status)
        status = mgl_stream_open(&b->device, b->graph, b->streamed, &b->stream, err);
    if (status)
        return status;
    describe(b);
    predict(b);
    return MGL_OK;
}

static void close_bench(struct bench *b)
{
    mgl_baseline_close(b->baseline);
    mgl_vm_close(b->vm);
    mgl_vm_close(b->also);
    if (b->device.context) {
        mgl_stream_close(&b->device, &b->stream);
        mgl_bench_release(&b->device, b->of.rope);
    }
    mgl_bench_device_close(&b->device);
    mgl_program_free(b->program);
    mgl_graph_free(b->graph);
    mgl_free(b->first);
    mgl_free(b->made);
    mgl_free(b->also_made);
    mgl_free(b->drawn);
    mgl_free(b->other);
    mgl_free(b->logits);
    mgl_free(b->wanted);
    for (int i = 0; i < TIMED; i++)
        mgl_free(b->times[i]);
}

/* ---- one machine launch --------------------------------------------------------------------- */

/* Runs one launch of a machine. Its tokens go to `tokens` (batch, of.tokens), after those of a
 * prompt. With a temperature, tokens are sampled, with a different seed per sequence. */
static mgl_status run_machine(struct bench *b, mgl_vm *vm, float temperature, int32_t *tokens,
                              double *seconds, mgl_error *err)
{
    const mgl_bench_request *r = b->request;
    mgl_vm_sequence sequences[MGL_MAX_SEQUENCES] = {0};
    mgl_vm_report report;
    for (int s = 0; s < r->batch; s++)
        sequences[s] = (mgl_vm_sequence){.prompt = &b->first[s * inputs_of(r)],
                                         .prompt_count = inputs_of(r),
                                         .start = r->context,
                                         .max_new = made_of(r),
                                         .temperature = temperature,
                                         .top_p = r->top_p,
                                         .seed = r->seed + (uint64_t)s};
    mgl_vm_request request = {.sequences = sequences, .count = r->batch};
    mgl_status status = mgl_vm_run(vm, &request, &report, err);
    if (status)
        return status;
    for (int s = 0; s < r->batch; s++) {
        if (report.produced[s] != made_of(r))
            return mgl_fail(err, MGL_GATE, "machine", "it made %d tokens in place of %d",
                            (int)report.produced[s], made_of(r));
        int32_t *to = tokens + (size_t)s * (size_t)words_of(r);
        memcpy(to, b->first + 1, (size_t)first_made(r) * sizeof *to);
        memcpy(to + first_made(r), report.output[s], (size_t)made_of(r) * sizeof *to);
    }
    *seconds = report.device_s;
    b->out->epochs = r->prompt ? report.epochs : 0;
    return MGL_OK;
}

/* ---- accuracy ------------------------------------------------------------------------------- */

static int count_equal(const int32_t *a, const int32_t *b, int count)
{
    int equal = 0;
    for (int i = 0; i < count; i++)
        equal += a[i] == b[i];
    return equal;
}

/* Runs a machine, stores its tokens in `made`, and compares with the reference fed with these
 * tokens. */
static mgl_status check_machine(struct bench *b, mgl_vm *vm, int32_t *made, double *error,
                                int *agrees, mgl_error *err)
{
    double seconds;
    mgl_status status = run_machine(b, vm, 0.0f, made, &seconds, err);
    if (!status)
        status = mgl_reference_run(&b->device, &b->of, made, b->other, b->wanted, err);
    if (!status)
        status = mgl_vm_get_logits(vm, b->logits, err);
    if (status)
        return status;
    *error =
        mgl_reference_distance(b->logits, b->wanted, (size_t)b->request->config.geometry.vocab);
    *agrees = count_equal(made + first_made(b->request), b->other + first_made(b->request),
                          b->out->accuracy.tokens);
    return MGL_OK;
}

/* Checks the machines and the baseline. The baseline is fed with the first machine's tokens, like
 * the reference. */
static mgl_status check_accuracy(struct bench *b, mgl_error *err)
{
    mgl_bench_accuracy *a = &b->out->accuracy;
    size_t vocab = (size_t)b->request->config.geometry.vocab;
    double seconds;
    a->tokens = b->request->batch * made_of(b->request);
    mgl_status status = begin(b, "comparing with the f32 reference", 0, err);
    if (!status && b->also)
        status = check_machine(b, b->also, b->also_made, &a->also_error, &a->also_agrees, err);
    if (!status)
        status = check_machine(b, b->vm, b->made, &a->machine_error, &a->machine_agrees, err);
    if (status)
        return status;
    status = mgl_baseline_run(b->baseline, b->made, b->other, &seconds, err);
    if (!status)
        status = mgl_baseline_get_logits(b->baseline, b->request->batch - 1, b->logits, err);
    if (status)
        return status;
    a->baseline_error = mgl_reference_distance(b->logits, b->wanted, vocab);
    a->baseline_agrees = count_equal(b->made + first_made(b->request), b->other, a->tokens);
    return mgl_bench_gate(a, err);
}

/* Stores the tokens that the machine samples first; every sample must repeat them. */
static mgl_status draw_first(struct bench *b, mgl_error *err)
{
    double seconds;
    mgl_status status = run_machine(b, b->vm, b->request->temperature, b->drawn, &seconds, err);
    if (!status)
        b->out->drawn_agrees = count_equal(b->made, b->drawn, b->out->accuracy.tokens);
    return status;
}

/* ---- samples -------------------------------------------------------------------------------- */

/* Runs a machine and checks that it makes the same tokens again. */
static mgl_status repeat(struct bench *b, mgl_vm *vm, float temperature, const int32_t *made,
                         double *seconds, mgl_error *err)
{
    mgl_status status = run_machine(b, vm, temperature, b->other, seconds, err);
    size_t words = (size_t)b->request->batch * (size_t)words_of(b->request);
    size_t bytes = words * sizeof *made;
    if (!status && memcmp(b->other, made, bytes) != 0)
        status = mgl_fail(err, MGL_GATE, "machine", "two launches made different tokens");
    return status;
}

/* Takes one sample of each workload; a negative `sample` is a warm-up. */
static mgl_status take_sample(struct bench *b, int sample, mgl_error *err)
{
    double seconds[TIMED] = {0};
    const float temperature = b->request->temperature;
    mgl_status status = repeat(b, b->vm, 0.0f, b->made, &seconds[MACHINE], err);
    mgl_clocks_look(&b->out->clocks);
    if (!status && b->also)
        status = repeat(b, b->also, 0.0f, b->also_made, &seconds[ALSO], err);
    if (!status && temperature > 0)
        status = repeat(b, b->vm, temperature, b->drawn, &seconds[DRAWN], err);
    if (!status)
        status = mgl_baseline_run(b->baseline, NULL, b->other, &seconds[BASELINE], err);
    if (!status)
        status = mgl_stream_run(&b->device, &b->stream, &seconds[STREAM], err);
    for (int i = 0; i < TIMED && sample >= 0; i++)
        b->times[i][sample] = seconds[i];
    return status;
}

/* Order statistics of the samples, scaled by `share`, in microseconds. */
static mgl_bench_times summarize(const double *seconds, int samples, double share)
{
    size_t count = (size_t)samples;
    double unit = 1e6 * share;
    return (mgl_bench_times){.median = mgl_median(seconds, count) * unit,
                             .p10 = mgl_quantile(seconds, count, 0.1) * unit,
                             .p90 = mgl_quantile(seconds, count, 0.9) * unit};
}

static void fill_result(struct bench *b)
{
    mgl_bench_result *out = b->out;
    int samples = b->request->samples, reads = out->prompt ? out->epochs : 1;
    double token = 1 / (double)made_of(b->request);
    out->bytes = b->streamed * reads;
    out->machine = summarize(b->times[MACHINE], samples, token);
    out->baseline = summarize(b->times[BASELINE], samples, token);
    out->stream = summarize(b->times[STREAM], samples, reads);
    out->also = summarize(b->times[ALSO], samples, token);
    out->drawn = summarize(b->times[DRAWN], samples, token);
    for (int i = 0; i < samples; i++)
        b->times[DRAWN][i] /= b->times[MACHINE][i];
    out->drawn_ratio = mgl_median(b->times[DRAWN], (size_t)samples);
    out->ratio_of_medians = out->baseline.median / out->machine.median;
    for (int i = 0; i < samples; i++)
        b->times[STREAM][i] = b->times[BASELINE][i] / b->times[MACHINE][i];
    out->ratio_median = mgl_median(b->times[STREAM], (size_t)samples);
}

static mgl_status measure(struct bench *b, mgl_error *err)
{
    double begun = mgl_clock_s();
    mgl_status status = open_bench(b, err);
    if (status || lacks_entry(b))
        return status;
    status = check_accuracy(b, err);
    if (!status && b->request->temperature > 0)
        status = draw_first(b, err);
    int warm_ups = b->request->prompt ? MGL_BENCH_PROMPT_WARM_UPS : MGL_BENCH_WARM_UPS;
    for (int i = 0; i < warm_ups && !status; i++)
        status = take_sample(b, -1, err);
    b->out->setup_s = mgl_clock_s() - begun;
    for (int i = 0; i < b->request->samples && !status; i++) {
        status = begin(b, "timing", i, err);
        if (!status)
            status = take_sample(b, i, err);
    }
    if (!status)
        fill_result(b);
    return status;
}

mgl_status mgl_bench_run(const mgl_bench_request *request, mgl_bench_progress_fn *progress,
                         void *user, mgl_bench_result *out, mgl_error *err)
{
    struct bench b = {.request = request, .progress = progress, .user = user, .out = out};
    *out = (mgl_bench_result){.batch = request->batch,
                              .context = request->context,
                              .prompt = request->prompt,
                              .geometry = request->config.geometry};
    mgl_status status = mgl_bench_check(request, err);
    if (status)
        return status;
    status = measure(&b, err);
    close_bench(&b);
    if (status)
        *out = (mgl_bench_result){0};
    return status;
}
