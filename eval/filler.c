/* Implements filler.h: launches fill kernels for tapes, const tensors and KV buffers, and copies
 * const buffers that are not tensors. */
#include "eval/filler.h"

#include <stdlib.h>

#include "base/memory.h"
#include "schedule/formats.h"

/* Finds the synthetic rule of a program's tensor. */
static mgl_status find_rule(const mgl_program *program, const mgl_graph *graph, int tensor,
                            mgl_synthetic_rule *out, mgl_error *err)
{
    const mgl_program_tensor *t = &program->tensors[tensor];
    int source = mgl_graph_find_tensor(graph, t->checkpoint);
    if (source < 0)
        return mgl_fail(err, MGL_BAD_INPUT, t->checkpoint, "the graph has no such tensor");
    *out = mgl_synthetic_tensor_rule(graph, source);
    return MGL_OK;
}

/* Describes the scales on the tape of a row group of a segment. */
static mgl_synthetic_scales scales_of(const mgl_segment *segment, mgl_weight_format format)
{
    const int64_t columns = segment->col_hi - segment->col_lo;
    return (mgl_synthetic_scales){
        .blocks = (int)(mgl_tape_scale_bytes(format, columns) / MGL_BLOCK_BYTES),
        .groups = (int)mgl_tape_scale_groups(format, columns),
        .rows = mgl_tape_scale_rows(format),
        .size = (int)mgl_dtype_size(format.scales),
        .half = format.scales == MGL_F16};
}

/* Describes a segment of bf16, f16 or scaled weights. */
static mgl_status describe(const mgl_program *program, const mgl_graph *graph,
                           const mgl_segment *segment, mgl_synthetic_segment *out, mgl_error *err)
{
    const mgl_program_tensor *tensor = &program->tensors[segment->tensor];
    const bool pair = segment->layout == MGL_LAYOUT_G8X2,
               half = mgl_weight_format_is(tensor->format, MGL_F16),
               scaled = mgl_weight_format_is_scaled(tensor->format) && segment->col_lo == 0;
    if ((!mgl_weight_format_is(tensor->format, MGL_BF16) && !half && !scaled) ||
        (!pair && segment->layout != MGL_LAYOUT_G8))
        return mgl_fail(err, MGL_BAD_INPUT, tensor->name,
                        "unsupported tape; the device makes tapes of bf16, f16 and scaled formats "
                        "in the layouts g8 and g8x2");
    *out = (mgl_synthetic_segment){.elements = mgl_segment_bytes(program, segment) /
                                               (int64_t)sizeof(uint16_t),
                                   .tensors = pair ? 2 : 1,
                                   .row_lo = (int)segment->row_lo,
                                   .row_hi = (int)segment->row_hi,
                                   .col_lo = (int)segment->col_lo,
                                   .col_hi = (int)segment->col_hi,
                                   .cols = (int)tensor->cols,
                                   .warps = program->exec.warps};
    mgl_status status = find_rule(program, graph, segment->tensor, &out->rule[0], err);
    if (!status && pair)
        status = find_rule(program, graph, segment->tensor2, &out->rule[1], err);
    if (!status && (out->rule[0].bits > 0) != scaled)
        status = mgl_fail(err, MGL_BAD_INPUT, tensor->name,
                          "the program and the synthetic model have different weight formats");
    if (scaled)
        out->scales = scales_of(segment, tensor->format);
    else
        out->rule[0].half = out->rule[1].half = half;
    return status;
}

mgl_status mgl_filler_describe(const mgl_program *program, const mgl_graph *graph,
                               const mgl_segment *segment, mgl_synthetic_segment *out,
                               mgl_error *err)
{
    const mgl_program_tensor *tensor = &program->tensors[segment->tensor];
    if (!mgl_weight_format_is(tensor->format, MGL_BF16) &&
        !mgl_weight_format_is_scaled(tensor->format))
        return mgl_fail(err, MGL_BAD_INPUT, tensor->name,
                        "unsupported format of a tape; supported: bf16 and scaled formats");
    return describe(program, graph, segment, out, err);
}

static mgl_status fill_tape(const mgl_filler *f, const mgl_program *program, int queue,
                            mgl_address tape, mgl_error *err)
{
    const mgl_run *tasks = &program->queues[queue].tasks;
    for (int t = tasks->first; t < tasks->first + tasks->count; t++) {
        const mgl_run *run = &program->tasks[t].segments;
        for (int s = run->first; s < run->first + run->count; s++) {
            mgl_synthetic_segment block;
            mgl_status status = describe(program, f->graph, &program->segments[s], &block, err);
            if (status)
                return status;
            block.to = tape + (mgl_address)program->segments[s].offset;
            status = mgl_bench_launch(f->device, MGL_KERNEL_FILL_TAPE,
                                      mgl_bench_spread(f->device, block.elements / 2), &block, err);
            if (status)
                return status;
        }
    }
    return MGL_OK;
}

/* Whether a const buffer is made on the device: a tensor, or the row factors of a tensor. */
static bool is_made(const mgl_buffer *b)
{
    return b->source == MGL_SOURCE_SCALES ||
           (b->source == MGL_SOURCE_TENSOR &&
            (b->dtype == MGL_BF16 || b->dtype == MGL_F16 || b->dtype == MGL_F32));
}

static mgl_status fill_const(const mgl_filler *f, const mgl_program *program, int buffer,
                             mgl_address to, mgl_error *err)
{
    const mgl_buffer *b = &program->buffers[buffer];
    mgl_synthetic_rule rule;
    mgl_status status = find_rule(program, f->graph, b->tensor, &rule, err);
    rule.half = b->dtype == MGL_F16;
    if (!status && b->source == MGL_SOURCE_SCALES)
        return mgl_bench_fill_factors(f->device, to, &rule, mgl_buffer_elements(b), err);
    return status ? status
                  : mgl_bench_fill_rows(f->device, to, &rule, mgl_buffer_elements(b),
                                        b->dtype == MGL_F32, err);
}

/* Packs another const buffer (the rope table) on the host and copies it. */
static mgl_status copy_const(const mgl_filler *f, const mgl_program *program, int buffer,
                             mgl_address to, mgl_error *err)
{
    size_t bytes = mgl_buffer_bytes(&program->buffers[buffer]);
    void *packed = mgl_alloc(bytes);
    mgl_status status = packed ? MGL_OK : mgl_fail_memory(err, bytes);
    if (!status)
        status = mgl_pack_const(program, f->graph, buffer, packed, err);
    if (!status)
        status = mgl_bench_copy_in(f->device, to, packed, bytes, err);
    mgl_free(packed);
    return status;
}

mgl_status mgl_filler_find_layer(const mgl_program *program, int buffer, int *layer, bool *value,
                                 mgl_error *err)
{
    const mgl_buffer *b = &program->buffers[buffer];
    const mgl_geometry *m = &program->geometry;
    char *end = NULL;
    long number = strtol(b->name + 1, &end, 10);
    bool named = (b->name[0] == 'k' || b->name[0] == 'v') && b->name[1] && !*end;
    if (!named || number < 0 || number >= m->layers || b->rank != 4 ||
        b->extents[1].count != m->kv_heads || b->extents[3].count != m->head_dim)
        return mgl_fail(err, MGL_BAD_INPUT, b->name,
                        "only a cache (sequences, kv_heads, capacity, head_dim) of a layer, named "
                        "k<layer> or v<layer>, can be filled");
    *layer = (int)number;
    *value = b->name[0] == 'v';
    return MGL_OK;
}

/* Fills the keys or values of a layer. */
static mgl_status fill_cache(const mgl_filler *f, const mgl_program *program, int buffer,
                             const mgl_vm_places *places, mgl_error *err)
{
    const mgl_buffer *b = &program->buffers[buffer];
    int layer;
    bool value;
    mgl_status status = mgl_filler_find_layer(program, buffer, &layer, &value, err);
    if (!status && b->dtype != MGL_BF16 && b->dtype != MGL_F16)
        status =
            mgl_fail(err, MGL_BAD_INPUT, b->name, "only a bf16 or f16 cache is made on the device");
    if (status)
        return status;
    return mgl_bench_fill_cache(f->device, places->buffers[buffer], f->graph, layer, value,
                                b->dtype, places->swizzled, program->limits.sequences,
                                program->limits.capacity, f->positions, err);
}

/* Launches all fill kernels. */
static mgl_status launch_all(const mgl_filler *f, const mgl_program *program,
                             const mgl_vm_places *places, mgl_error *err)
{
    mgl_status status = MGL_OK;
    for (int q = 0; q < program->queue_count && !status; q++)
        status = fill_tape(f, program, q, places->tapes[q], err);
    for (int i = 0; i < program->buffer_count && !status; i++) {
        const mgl_buffer *b = &program->buffers[i];
        if (b->space == MGL_SPACE_CONST && is_made(b))
            status = fill_const(f, program, i, places->buffers[i], err);
        else if (b->space == MGL_SPACE_KV)
            status = fill_cache(f, program, i, places, err);
    }
    return status;
}

mgl_status mgl_filler_run(void *user, const mgl_program *program, const mgl_vm_places *places,
                          mgl_error *err)
{
    const mgl_filler *f = user;
    const mgl_cu *cu = f->device->cu;
    double seconds = 0;
    /* the machine clears its memory on another stream before this */
    mgl_status status =
        mgl_cu_check(cu, cu->stream_synchronize(NULL), "clearing device memory", err);
    for (int i = 0; i < program->buffer_count && !status; i++)
        if (program->buffers[i].space == MGL_SPACE_CONST && !is_made(&program->buffers[i]))
            status = copy_const(f, program, i, places->buffers[i], err);
    if (!status)
        status = mgl_bench_start_clock(f->device, err);
    if (!status)
        status = launch_all(f, program, places, err);
    if (!status)
        status = mgl_bench_stop_clock(f->device, &seconds, err);
    if (f->device_s)
        *f->device_s += seconds;
    return status;
}
