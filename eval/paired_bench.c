/*
 * Implements the paired benchmark (paired_bench.h). Each side has a program and a machine that stay
 * on the device. Weights and cache are made lazily: a launch whose seed or context differs from the
 * side's last launch makes them anew. A machine whose side was emptied by a promotion or a rejected
 * program is kept. The next program can often be exchanged into it, which needs no compilation and
 * no second allocation.
 */
#include "eval/paired_bench_state.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "schedule/step.h"
#include "vm/pipeline/device.h"

/* A signaling NaN in f32 and in bf16, a NaN in f16, and an invalid index. */
static const uint32_t poison_words[] = {0x7FA17FA1u, 0xA5A5A5A5u};

/* ---- opening -------------------------------------------------------------------------------- */

static mgl_status find_device(mgl_paired_bench *d, const char *name, mgl_error *err)
{
    mgl_device machine = {0};
    mgl_status status = mgl_device_find(name, &machine, err);
    d->kind = machine.kind;
    d->ordinal = machine.device;
    d->target = machine.target;
    return status;
}

mgl_status mgl_paired_bench_open(const mgl_paired_bench_options *options, mgl_paired_bench **out,
                                 mgl_error *err)
{
    *out = NULL;
    mgl_paired_bench *d = mgl_alloc_zero(1, sizeof *d);
    if (!d)
        return mgl_fail_memory(err, sizeof *d);
    d->config = options->config;
    d->plain = options->plain;
    d->abort = options->abort;
    mgl_status status = find_device(d, options->device, err);
    if (!status)
        status = mgl_synthetic_open(&d->config, 0, &d->graph, err);
    if (!status && d->kind == MGL_VM_CUDA)
        status = mgl_paired_bench_cuda_open(d, err);
    if (status)
        mgl_paired_bench_close(d);
    else
        *out = d;
    return status;
}

static void close_side(mgl_paired_bench_side *s)
{
    mgl_vm_close(s->vm);
    mgl_program_free(s->program);
    *s = (mgl_paired_bench_side){0};
}

void mgl_paired_bench_close(mgl_paired_bench *d)
{
    if (!d)
        return;
    for (int i = 0; i < MGL_SIDES; i++)
        close_side(&d->sides[i]);
    mgl_paired_bench_cuda_close(d);
    mgl_graph_free(d->graph);
    mgl_free(d);
}

/* ---- sides ---------------------------------------------------------------------------------- */

/* Sets what the graph and the filler provide from now on. */
static void choose_weights(mgl_paired_bench *d, const mgl_paired_bench_side *s)
{
    mgl_synthetic_set_seed(d->graph, s->seed);
    mgl_synthetic_set_kind(d->graph, s->values);
    d->filler = (mgl_filler){&d->device, d->graph, s->context, &d->device_s};
}

/* Sets the side's weights and cache to those of the last or announced load. */
static void take_load(mgl_paired_bench *d, mgl_paired_bench_side *s, const mgl_program *program)
{
    s->seed = d->seed;
    s->values = d->values;
    s->context = d->context <= program->limits.capacity ? d->context : 0;
    choose_weights(d, s);
}

/* Opens a machine for the side's program. */
static mgl_status open_machine(mgl_paired_bench *d, mgl_paired_bench_side *s, mgl_error *err)
{
    bool gpu = d->kind == MGL_VM_CUDA;
    mgl_vm_options options = {.kind = d->kind,
                              .device = d->ordinal,
                              .plain = d->plain,
                              .fill = gpu ? mgl_filler_run : NULL,
                              .fill_user = &d->filler,
                              .abort = d->abort};
    take_load(d, s, s->program);
    if (gpu)
        mgl_paired_bench_cuda_key(d, s->program, s->kernel);
    mgl_status status = mgl_vm_open(s->program, d->graph, &options, &s->vm, err);
    return status || gpu ? status : mgl_paired_bench_cpu_fill(d, s->vm, s->context, err);
}

/* Exchanges the program of the side's machine. MGL_BAD_INPUT: the program needs a new machine. */
static mgl_status exchange(mgl_paired_bench *d, mgl_paired_bench_side *s, mgl_program *program,
                           mgl_error *err)
{
    bool gpu = d->kind == MGL_VM_CUDA;
    char key[MGL_SHA256_HEX] = "";
    if (gpu)
        mgl_paired_bench_cuda_key(d, program, key);
    if (!s->vm || (gpu && strcmp(key, s->kernel) != 0))
        return mgl_fail(err, MGL_BAD_INPUT, NULL, "the program needs a separate machine");
    if (gpu)
        take_load(d, s, program);
    else /* most of its weights are carried over from the side's seed */
        choose_weights(d, s);
    mgl_status status = mgl_vm_exchange(s->vm, program, d->graph, err);
    return status || gpu ? status : mgl_paired_bench_cpu_fill(d, s->vm, s->context, err);
}

/* Sets the side's program, or releases it on failure. */
static mgl_status put(mgl_paired_bench *d, mgl_paired_bench_side *s, mgl_program *program,
                      bool *exchanged, mgl_error *err)
{
    mgl_status status = exchange(d, s, program, err);
    *exchanged = !status;
    if (!status) {
        mgl_program_free(s->program);
        s->program = program;
        return MGL_OK;
    }
    if (status != MGL_REJECTED) /* after MGL_REJECTED the machine keeps its old program for the
                                   next exchange */
        close_side(s);
    if (status != MGL_BAD_INPUT) {
        mgl_program_free(program);
        return status;
    }
    s->program = program;
    status = open_machine(d, s, err);
    if (status)
        close_side(s);
    return status;
}

void mgl_paired_bench_expect(mgl_paired_bench *d, uint64_t seed, int context)
{
    d->seed = seed;
    d->values = MGL_SYNTHETIC_DENSE;
    d->context = context;
}

mgl_status mgl_paired_bench_set(mgl_paired_bench *d, mgl_side side, mgl_program *program,
                                mgl_paired_bench_facts *out, mgl_error *err)
{
    mgl_paired_bench_side *s = &d->sides[side];
    double start = mgl_clock_s();
    *out = (mgl_paired_bench_facts){0};
    s->ready = false;
    mgl_status status = put(d, s, program, &out->exchanged, err);
    if (status)
        return status;
    s->ready = true;
    s->poisoned = 0;
    s->batch = 0;
    mgl_vm_get_facts(s->vm, &out->vm);
    out->check_s = out->vm.check_s;
    out->kernel_s = out->exchanged ? 0 : out->vm.nvrtc_s;
    out->total_s = mgl_clock_s() - start;
    return MGL_OK;
}

void mgl_paired_bench_promote(mgl_paired_bench *d)
{
    mgl_paired_bench_side spare = d->sides[MGL_INCUMBENT];
    d->sides[MGL_INCUMBENT] = d->sides[MGL_CANDIDATE];
    d->sides[MGL_CANDIDATE] = spare;
    d->sides[MGL_CANDIDATE].ready = false;
}

void mgl_paired_bench_drop(mgl_paired_bench *d, mgl_side side)
{
    close_side(&d->sides[side]);
}

/* ---- launches ------------------------------------------------------------------------------- */

void mgl_paired_bench_make_first(const mgl_paired_bench *d, const mgl_paired_bench_load *load,
                                 int32_t *first)
{
    unsigned long long key = mgl_synthetic_mix(load->seed ^ 0x6669727374ull); /* "first" */
    unsigned long long vocab = (unsigned)d->config.geometry.vocab;
    for (int s = 0; s < load->batch; s++)
        first[s] = (int32_t)(mgl_synthetic_mix(key + (unsigned)s) % vocab);
}

static mgl_status check_load(const mgl_paired_bench *d, const mgl_paired_bench_load *load,
                             mgl_error *err)
{
    if (load->batch < 1 || load->batch > MGL_MAX_SEQUENCES)
        return mgl_fail(err, MGL_USAGE, "batch", "%d sequences; there may be 1 to %d", load->batch,
                        MGL_MAX_SEQUENCES);
    if (load->context < 0 || load->tokens < 1 ||
        (int64_t)load->context + load->tokens + 1 > d->config.max_positions)
        return mgl_fail(err, MGL_USAGE, "context",
                        "%d positions and %d tokens behind them: the model has %d positions",
                        load->context, load->tokens, (int)d->config.max_positions);
    return mgl_check_abort(d->abort, err);
}

static mgl_status check_side(const mgl_paired_bench_side *s, mgl_side side,
                             const mgl_paired_bench_load *load, mgl_error *err)
{
    if (!s->ready)
        return mgl_fail(err, MGL_USAGE, side == MGL_INCUMBENT ? "incumbent" : "candidate",
                        "this side has no program: put a program there first");
    const mgl_limits *limits = &s->program->limits;
    if (load->batch > limits->sequences || load->context + load->tokens + 1 > limits->capacity)
        return mgl_fail(
            err, MGL_BAD_INPUT, "workload",
            "the workload has %d sequences of %d positions; the program has room for %d of %d",
            load->batch, load->context + load->tokens + 1, limits->sequences, limits->capacity);
    return MGL_OK;
}

/* Makes the weights and the cache of the load. A CPU machine is reopened, because it packs when it
 * opens. */
static mgl_status make_weights(mgl_paired_bench *d, mgl_paired_bench_side *s,
                               const mgl_paired_bench_load *load, mgl_error *err)
{
    bool same_seed = s->seed == load->seed && s->values == load->kind;
    mgl_status status = MGL_OK;
    d->seed = load->seed;
    d->values = load->kind;
    d->context = load->context;
    if (same_seed && s->context == load->context)
        return MGL_OK;
    s->seed = load->seed;
    s->values = load->kind;
    s->context = load->context;
    choose_weights(d, s);
    if (d->kind == MGL_VM_CUDA) {
        status = mgl_vm_refill(s->vm, err);
    } else if (same_seed) {
        status = mgl_paired_bench_cpu_fill(d, s->vm, s->context, err);
    } else {
        mgl_vm_close(s->vm);
        s->vm = NULL;
        status = open_machine(d, s, err);
    }
    if (status)
        close_side(s); /* the contents of its memory are unknown */
    return status;
}

/* Copies the tokens of a launch to `tokens`. Synthetic weights give finite logits, so NaN or
 * infinity is an error of the program. */
static mgl_status take_tokens(const mgl_paired_bench_load *load, const mgl_vm_report *report,
                              int32_t *tokens, mgl_error *err)
{
    for (int s = 0; s < load->batch; s++) {
        char where[32];
        snprintf(where, sizeof where, "sequence %d", s);
        if (report->state[s] == MGL_STATE_NOT_A_NUMBER)
            return mgl_fail(err, MGL_GATE, where,
                            "its logits after %d tokens " MGL_PAIRED_BENCH_NONFINITE
                            ", but the model's are finite",
                            (int)report->produced[s]);
        if (report->produced[s] != load->tokens)
            return mgl_fail(err, MGL_GATE, where, "it made %d " MGL_PAIRED_BENCH_TOO_FEW " %d",
                            (int)report->produced[s], load->tokens);
        if (tokens)
            memcpy(tokens + (size_t)s * (size_t)load->tokens, report->output[s],
                   (size_t)load->tokens * sizeof *tokens);
    }
    return MGL_OK;
}

/* Values for programs with penalties. */
static const float repeat_penalty = 1.25F, presence_penalty = 0.5F, frequency_penalty = 0.25F;

/* Sets penalties of a sequence and tokens for the positions before it: half prompt, half output.
 * `before` (load->context). */
static void add_penalties(const mgl_paired_bench *d, const mgl_paired_bench_load *load, int number,
                          int32_t *before, mgl_vm_sequence *sequence)
{
    const unsigned long long key = mgl_synthetic_mix(load->seed ^ 0x6265666F7265ull); /* "before" */
    const unsigned long long vocab = (unsigned)d->config.geometry.vocab;
    for (int i = 0; i < load->context; i++)
        before[i] =
            (int32_t)(mgl_synthetic_mix(key + (unsigned)(number * load->context + i)) % vocab);
    sequence->repeat_penalty = repeat_penalty;
    sequence->presence_penalty = presence_penalty;
    sequence->frequency_penalty = frequency_penalty;
    sequence->before = before;
    sequence->before_count = load->context;
    sequence->before_output = load->context / 2;
}

/* Builds the sequences of a load. `before` (batch, context): buffer for tokens; NULL: no
 * penalties. */
static void make_sequences(const mgl_paired_bench *d, const mgl_paired_bench_load *load,
                           const int32_t *first, int32_t *before, mgl_vm_sequence *sequences)
{
    for (int i = 0; i < load->batch; i++) {
        sequences[i] = (mgl_vm_sequence){.prompt = &first[i],
                                         .prompt_count = 1,
                                         .start = load->context,
                                         .max_new = load->tokens};
        if (before)
            add_penalties(d, load, i, before + (size_t)i * (size_t)load->context, &sequences[i]);
    }
}

/* Runs one launch, the same workload as `bench`. */
static mgl_status launch(const mgl_paired_bench *d, mgl_paired_bench_side *s,
                         const mgl_paired_bench_load *load, int32_t *tokens, double *seconds,
                         mgl_error *err)
{
    int32_t first[MGL_MAX_SEQUENCES];
    mgl_vm_sequence sequences[MGL_MAX_SEQUENCES] = {0};
    mgl_vm_report report = {0};
    const bool penalties = mgl_program_has_penalties(s->program);
    const size_t positions = (size_t)load->batch * (size_t)load->context;
    int32_t *before = penalties ? mgl_alloc_zero(positions + 1, sizeof *before) : NULL;
    if (penalties && !before)
        return mgl_fail_memory(err, positions * sizeof *before);
    mgl_paired_bench_make_first(d, load, first);
    make_sequences(d, load, first, before, sequences);
    mgl_vm_request request = {.sequences = sequences, .count = load->batch, .abort = d->abort};
    mgl_status status = mgl_vm_run(s->vm, &request, &report, err);
    mgl_free(before);
    if (status == MGL_BAD_INPUT && report.launches > 0)
        return take_tokens(load, &report, NULL, err);
    if (!status)
        status = mgl_check_abort(d->abort, err);
    if (status)
        return status;
    *seconds = d->kind == MGL_VM_CUDA ? report.device_s : report.prefill_s + report.decode_s;
    return take_tokens(load, &report, tokens, err);
}

mgl_status mgl_paired_bench_run(mgl_paired_bench *d, mgl_side side,
                                const mgl_paired_bench_load *load, int32_t *tokens, double *seconds,
                                mgl_error *err)
{
    mgl_paired_bench_side *s = &d->sides[side];
    *seconds = 0;
    mgl_status status = check_load(d, load, err);
    if (!status)
        status = check_side(s, side, load, err);
    if (!status)
        status = make_weights(d, s, load, err);
    if (status)
        return status;
    s->batch = 0;
    if (load->poison)
        status = mgl_vm_poison(s->vm, poison_words[s->poisoned++ % 2], load->context, err);
    if (!status)
        status = launch(d, s, load, tokens, seconds, err);
    if (!status && load->poison)
        status = mgl_vm_check_guards(s->vm, err);
    if (!status)
        s->batch = load->batch;
    return status;
}

mgl_status mgl_paired_bench_get_logits(mgl_paired_bench *d, mgl_side side, float *logits,
                                       mgl_error *err)
{
    const mgl_paired_bench_side *s = &d->sides[side];
    size_t vocab = (size_t)d->config.geometry.vocab;
    mgl_status status = MGL_OK;
    if (!s->ready || s->batch == 0)
        return mgl_fail(err, MGL_USAGE, NULL,
                        "this side has not run since a program was put there");
    for (int row = 0; row < s->batch && !status; row++)
        status = mgl_vm_get_row_logits(s->vm, row, logits + (size_t)row * vocab, err);
    return status;
}

bool mgl_paired_bench_keeps(const mgl_buffer *buffer)
{
    return buffer->space != MGL_SPACE_CONST;
}

size_t mgl_paired_bench_memory_bytes(const mgl_program *program)
{
    const mgl_program *whole = mgl_program_whole(program);
    size_t bytes = 0;
    for (int i = 0; i < whole->buffer_count; i++)
        if (mgl_paired_bench_keeps(&whole->buffers[i]))
            bytes += mgl_vm_buffer_bytes(&whole->buffers[i]);
    return bytes;
}

size_t mgl_paired_bench_side_bytes(const mgl_paired_bench *d, mgl_side side)
{
    return d->sides[side].ready ? mgl_paired_bench_memory_bytes(d->sides[side].program) : 0;
}

mgl_status mgl_paired_bench_get_memory(mgl_paired_bench *d, mgl_side side, void *memory,
                                       unsigned char constants[MGL_SHA256_BYTES], mgl_error *err)
{
    const mgl_paired_bench_side *s = &d->sides[side];
    mgl_status status = MGL_OK;
    char *to = memory;
    memset(constants, 0, MGL_SHA256_BYTES);
    if (!s->ready || s->batch == 0)
        return mgl_fail(err, MGL_USAGE, NULL,
                        "this side has not run since a program was put there");
    const mgl_program *whole = mgl_program_whole(s->program);
    for (int i = 0; i < whole->buffer_count && !status; i++)
        if (mgl_paired_bench_keeps(&whole->buffers[i])) {
            status = mgl_vm_get_buffer(s->vm, i, to, err);
            to += mgl_vm_buffer_bytes(&whole->buffers[i]);
        }
    return status || d->kind != MGL_VM_CUDA ? status : mgl_vm_hash_constants(s->vm, constants, err);
}

mgl_status mgl_paired_bench_refer(mgl_paired_bench *d, const mgl_paired_bench_load *load,
                                  const int32_t *made, const mgl_paired_bench_reference *out,
                                  mgl_error *err)
{
    mgl_status status = check_load(d, load, err);
    for (int i = 0; i < out->step_count && !status; i++)
        if (out->steps[i] < 0 || out->steps[i] >= load->tokens)
            status = mgl_fail(err, MGL_USAGE, "steps", "step %d; there are 0 to %d", out->steps[i],
                              load->tokens - 1);
    for (int i = 0; i < load->batch * load->tokens && !status; i++)
        if (made[i] < 0 || made[i] >= d->config.geometry.vocab)
            status = mgl_fail(err, MGL_USAGE, "made", "token %d is %d; ids are 0 to %d", i,
                              (int)made[i], (int)d->config.geometry.vocab - 1);
    if (status)
        return status;
    mgl_synthetic_set_seed(d->graph, load->seed);
    mgl_synthetic_set_kind(d->graph, load->kind);
    return d->kind == MGL_VM_CUDA ? mgl_paired_bench_cuda_refer(d, load, made, out, err)
                                  : mgl_paired_bench_cpu_refer(d, load, made, out, err);
}

/* ---- device --------------------------------------------------------------------------------- */

double mgl_paired_bench_device_s(const mgl_paired_bench *d)
{
    return d->device_s;
}

static void describe_cpu(const mgl_paired_bench *d, mgl_paired_bench_device *out)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    snprintf(out->name, sizeof out->name, "cpu");
    out->target = d->target;
    out->memory_total = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
    out->memory_free = mgl_memory_available();
}

mgl_status mgl_paired_bench_get_device(mgl_paired_bench *d, mgl_paired_bench_device *out,
                                       mgl_error *err)
{
    *out = (mgl_paired_bench_device){0};
    if (d->kind == MGL_VM_CUDA)
        return mgl_paired_bench_cuda_describe(d, out, err);
    describe_cpu(d, out);
    return MGL_OK;
}
