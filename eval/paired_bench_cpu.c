/*
 * Paired benchmark on the CPU, for correctness only. The reference is the CPU machine in f32 and
 * plain C. It is fed with one token per launch, so that the logits of every step are available. It
 * suits only small shapes: plain C runs on one thread, and each call packs the weights again.
 */
#include "eval/paired_bench_state.h"

#include <math.h>

#include "base/memory.h"
#include "schedule/schedule.h"

/* ---- cache ---------------------------------------------------------------------------------- */

/* Fills one position of one head. `row` is a buffer for its values. */
static void fill_position(const mgl_buffer *b, const mgl_synthetic_rule *rule, int sequence,
                          int head, int position, float *row, char *buffer)
{
    int dim = (int)b->extents[3].count, kv_heads = (int)b->extents[1].count;
    for (int i = 0; i < dim; i++)
        row[i] = mgl_synthetic_value(
            rule, mgl_synthetic_cached(sequence, head, kv_heads, position, dim, i));
    int64_t at = ((int64_t)sequence * kv_heads + head) * b->extents[2].count + position;
    mgl_convert(buffer + (size_t)(at * dim) * mgl_dtype_size(b->dtype), b->dtype, row, MGL_F32,
                (size_t)dim);
}

static void fill_buffer(const mgl_buffer *b, const mgl_synthetic_rule *rule, int context,
                        float *row, char *buffer)
{
    for (int s = 0; s < b->extents[0].count; s++)
        for (int h = 0; h < b->extents[1].count; h++)
            for (int p = 0; p < context; p++)
                fill_position(b, rule, s, h, p, row, buffer);
}

mgl_status mgl_paired_bench_cpu_fill(const mgl_paired_bench *d, mgl_vm *vm, int context,
                                     mgl_error *err)
{
    const mgl_program *program = vm->program;
    size_t dim = (size_t)program->geometry.head_dim;
    float *row = mgl_alloc(dim * sizeof *row);
    mgl_status status = row ? MGL_OK : mgl_fail_memory(err, dim * sizeof *row);
    for (int i = 0; i < program->buffer_count && !status; i++) {
        int layer;
        bool value;
        if (program->buffers[i].space != MGL_SPACE_KV)
            continue;
        status = mgl_filler_find_layer(program, i, &layer, &value, err);
        if (status)
            break;
        mgl_synthetic_rule rule = mgl_synthetic_cache_rule(d->graph, layer, value, context);
        fill_buffer(&program->buffers[i], &rule, context, row, mgl_vm_cpu_buffer(vm, i));
    }
    mgl_free(row);
    return status;
}

/* ---- reference ------------------------------------------------------------------------------ */

struct reference {
    const mgl_paired_bench_load *load;
    const int32_t *made; /* (batch, tokens) */
    const mgl_paired_bench_reference *out;
    mgl_program *program;
    mgl_vm *vm;
    float *logits; /* (vocab) */
    size_t vocab;
};

static mgl_status open_reference(const mgl_paired_bench *d, struct reference *r, mgl_error *err)
{
    mgl_schedule_config config;
    mgl_target target = {.arch = "cpu", .queues = 1};
    mgl_lower_options options = {.dtype = MGL_F32,
                                 .capacity = r->load->context + r->load->tokens + 1,
                                 .sequences = r->load->batch};
    mgl_vm_options how = {.kind = MGL_VM_CPU, .plain = true, .abort = d->abort};
    mgl_schedule_config_default(&config);
    if (r->load->batch > MGL_MAX_ROWS) /* more rows need a second list */
        config.second_rows = r->load->batch;
    r->logits = mgl_alloc(r->vocab * sizeof *r->logits);
    mgl_status status = r->logits ? MGL_OK : mgl_fail_memory(err, r->vocab * sizeof *r->logits);
    if (!status)
        status = mgl_schedule_lower(d->graph, &target, &options, &config, &r->program, err);
    if (!status)
        status = mgl_vm_open(r->program, d->graph, &how, &r->vm, err);
    return status ? status : mgl_paired_bench_cpu_fill(d, r->vm, r->load->context, err);
}

static void close_reference(struct reference *r)
{
    mgl_vm_close(r->vm);
    mgl_program_free(r->program);
    mgl_free(r->logits);
}

/* Records the requested facts about the logits of one step of one sequence. */
static void look(const struct reference *r, int sequence, int step)
{
    size_t at = (size_t)sequence * (size_t)r->load->tokens + (size_t)step;
    const mgl_paired_bench_reference *out = r->out;
    float largest = r->logits[0];
    double squares = 0;
    for (size_t i = 0; i < r->vocab; i++) {
        largest = r->logits[i] > largest ? r->logits[i] : largest;
        squares += (double)r->logits[i] * (double)r->logits[i];
    }
    out->largest[at] = largest;
    out->chosen[at] = r->logits[r->made[at]];
    out->norms[at] = (float)sqrt(squares);
    for (int i = 0; i < out->step_count; i++)
        if (out->steps[i] == step)
            memcpy(out->logits + ((size_t)i * (size_t)r->load->batch + (size_t)sequence) * r->vocab,
                   r->logits, r->vocab * sizeof *r->logits);
}

/* Runs one step of all sequences: a launch with one token each. */
static mgl_status take_step(const mgl_paired_bench *d, struct reference *r, const int32_t *first,
                            int step, mgl_error *err)
{
    const mgl_paired_bench_load *load = r->load;
    mgl_vm_sequence sequences[MGL_MAX_SEQUENCES] = {0};
    mgl_vm_report report;
    for (int s = 0; s < load->batch; s++)
        sequences[s] =
            (mgl_vm_sequence){.prompt = step ? &r->made[s * load->tokens + step - 1] : &first[s],
                              .prompt_count = 1,
                              .start = load->context + step,
                              .max_new = 1};
    mgl_vm_request request = {.sequences = sequences, .count = load->batch, .abort = d->abort};
    mgl_status status = mgl_vm_run(r->vm, &request, &report, err);
    if (!status)
        status = mgl_check_abort(d->abort, err);
    for (int s = 0; s < load->batch && !status; s++) {
        status = mgl_vm_get_row_logits(r->vm, s, r->logits, err);
        if (!status)
            look(r, s, step);
    }
    return status;
}

mgl_status mgl_paired_bench_cpu_refer(mgl_paired_bench *d, const mgl_paired_bench_load *load,
                                      const int32_t *made, const mgl_paired_bench_reference *out,
                                      mgl_error *err)
{
    struct reference r = {
        .load = load, .made = made, .out = out, .vocab = (size_t)d->config.geometry.vocab};
    int32_t first[MGL_MAX_SEQUENCES];
    mgl_paired_bench_make_first(d, load, first);
    mgl_status status = open_reference(d, &r, err);
    for (int step = 0; step < load->tokens && !status; step++)
        status = take_step(d, &r, first, step, err);
    close_reference(&r);
    return status;
}
