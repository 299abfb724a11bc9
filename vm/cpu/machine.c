/*
 * Loads a program into host memory and executes single tasks (machine.h).
 *
 * A part of the weights (a tape or a table) is either copied once into memory, or used in place
 * from the map of a compiled file. Small const buffers are always copied, because the reference
 * reads them without a map guard.
 */
#include "vm/cpu/machine.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/assert.h"
#include "base/memory.h"
#include "schedule/schedule.h"
#include "schedule/unpack.h"

enum {
    ALIGNMENT = 64,        /* cache line, and the widest vector load */
    LARGE_PAGE = 2 << 20,  /* large page size of x86-64 and arm64 */
    MAPPED_BYTES = 1 << 20 /* minimum size of a const buffer that stays mapped */
};

/* ---- loading -------------------------------------------------------------------------------- */

/* Rejects ops that the machine does not implement, also in programs that skipped the validator. */
static mgl_status refuse_op(const mgl_program *program, int task, mgl_error *err)
{
    char where[64];
    const int line = program->tasks[task].line;
    snprintf(where, sizeof where, line ? "line %d" : "task %d", line ? line : task);
    return mgl_fail(err, MGL_BAD_INPUT, where, "the CPU machine has no op %d",
                    (int)program->tasks[task].op);
}

/* Whether a tensor of a segment has no column map, or a map that fits the segment. */
static bool fits_order(const mgl_program *program, const mgl_segment *segment, int tensor)
{
    const mgl_program_tensor *t = tensor < 0 ? NULL : &program->tensors[tensor];
    if (!t || t->order < 0)
        return true;
    const mgl_buffer *order = &program->buffers[t->order];
    return segment->col_lo == 0 && segment->col_hi == t->cols && order->dtype == MGL_I32 &&
           mgl_buffer_elements(order) == t->cols;
}

static mgl_status check_supported(const mgl_program *program, mgl_error *err)
{
    for (int i = 0; i < program->task_count; i++) {
        const mgl_task *task = &program->tasks[i];
        const mgl_segment *s = &program->segments[task->segments.first];
        if (!mgl_op_is_known(task->op))
            return refuse_op(program, i, err);
        if (task->segments.count > MGL_CPU_SEGMENTS)
            return mgl_fail(err, MGL_REJECTED, mgl_op_get(task->op)->name,
                            "a task has at most %d segments", MGL_CPU_SEGMENTS);
        for (int j = 1; j < task->segments.count; j++)
            if (s[j].col_lo != s->col_lo || s[j].col_hi != s->col_hi)
                return mgl_fail(err, MGL_REJECTED, mgl_op_get(task->op)->name,
                                "the segments of a task must have the same columns");
        for (int j = 0; j < task->segments.count; j++)
            if (!fits_order(program, s + j, s[j].tensor) ||
                !fits_order(program, s + j, s[j].tensor2))
                return mgl_fail(err, MGL_REJECTED, mgl_op_get(task->op)->name,
                                "a segment of a tensor with reordered columns must have all "
                                "columns, and its column map one i32 for each column");
    }
    return MGL_OK;
}

/* Allocates memory for weights, with large pages if available. */
static void *alloc_weights(size_t bytes)
{
    bool large = bytes >= 2 * (size_t)LARGE_PAGE;
    void *memory = mgl_alloc_aligned(large ? LARGE_PAGE : ALIGNMENT, bytes);
    if (memory && large)
        madvise(memory, bytes, MADV_HUGEPAGE);
    return memory;
}

/* Whether a const buffer is a table. Tables are gathered under the pool's map guard; the reference
 * reads other const buffers without a guard. */
static bool is_table(const mgl_program *p, int buffer)
{
    const mgl_buffer *b = &p->buffers[buffer];
    return b->source == MGL_SOURCE_TENSOR && p->tensors[b->tensor].rank == 2;
}

/* Whether a part is used in place from the map. */
static bool stays_mapped(const mgl_machine *m, const mgl_weights *weights, int part)
{
    int queues = m->program->queue_count;
    if (m->plain || !weights->find)
        return false;
    return part < queues ||
           (is_table(m->program, part - queues) && weights->sizes[part] >= MAPPED_BYTES);
}

/* Opens a part of the weights: in place, or copied into memory. */
static mgl_status open_part(mgl_machine *m, const mgl_weights *weights, int part, bool in_place,
                            mgl_weights_watch *watch, const void **out, mgl_error *err)
{
    size_t bytes = weights->sizes[part];
    if (in_place) {
        m->mapped = weights;
        *out = weights->find(weights, part);
        return MGL_OK;
    }
    *out = m->memory[part] = alloc_weights(bytes);
    if (!*out)
        return mgl_fail_memory(err, bytes);
    m->memory_bytes += bytes;
    return mgl_weights_write(weights, part, m->memory[part], watch, err);
}

/* Unpacks a table that is only on the tapes, for the reference ops. */
static mgl_status unpack_table(mgl_machine *m, int buffer, mgl_error *err)
{
    const mgl_program *p = m->program;
    const mgl_buffer *table = &p->buffers[buffer];
    size_t width = (size_t)table->extents[1].count, size = mgl_dtype_size(table->dtype);
    float *row = mgl_alloc(width * sizeof *row);
    char *to = m->buffers[buffer] = m->memory[p->queue_count + buffer] =
        mgl_alloc_aligned(ALIGNMENT, mgl_buffer_bytes(table));
    if (!row || !to) {
        mgl_free(row);
        return mgl_fail_memory(err, mgl_buffer_bytes(table));
    }
    for (int s = 0; s < m->first->segment_count; s++) {
        const mgl_segment *segment = &p->segments[s];
        for (int64_t i = segment->row_lo;
             i < segment->row_hi && mgl_weights_has_rows(p, segment, table); i++) {
            mgl_unpack_row(p, segment, m->segment_tapes[s], 0, i - segment->row_lo, row);
            mgl_convert(to + (size_t)i * width * size, table->dtype, row, MGL_F32, width);
        }
    }
    mgl_free(row);
    return MGL_OK;
}

static mgl_status open_const(mgl_machine *m, const mgl_weights *weights, int buffer,
                             mgl_weights_watch *watch, mgl_error *err)
{
    int part = m->program->queue_count + buffer;
    size_t bytes = weights->sizes[part];
    const void *at;
    if (bytes == 0)
        return m->plain ? unpack_table(m, buffer, err) : MGL_OK;
    mgl_status status =
        open_part(m, weights, part, stays_mapped(m, weights, part), watch, &at, err);
    m->buffers[buffer] = (void *)(uintptr_t)at; /* const: no op writes it */
    m->const_bytes += bytes;
    return status;
}

/* Allocates an activation, io or KV buffer. KV pages are only touched as the cache fills. */
static mgl_status open_buffer(mgl_machine *m, int buffer, mgl_error *err)
{
    const mgl_buffer *b = &m->program->buffers[buffer];
    size_t bytes = mgl_buffer_bytes(b) * (size_t)b->sets;
    if (b->space == MGL_SPACE_KV)
        m->buffers[buffer] = mgl_alloc_zero(bytes + MGL_GUARD_BYTES, 1);
    else
        m->buffers[buffer] = mgl_alloc_aligned(ALIGNMENT, bytes + MGL_GUARD_BYTES);
    if (!m->buffers[buffer])
        return mgl_fail_memory(err, bytes);
    m->memory[m->program->queue_count + buffer] = m->buffers[buffer];
    if (b->space == MGL_SPACE_KV) {
        m->kv_bytes += bytes;
        return MGL_OK;
    }
    m->scratch_bytes += bytes;
    memset(m->buffers[buffer], 0, bytes);
    return MGL_OK;
}

/* Finds the tape of each segment. */
static void find_tapes(mgl_machine *m)
{
    const mgl_program *p = m->program;
    for (int t = 0; t < p->task_count && !m->joined.program; t++) {
        const mgl_run *run = &p->tasks[t].segments;
        for (int s = run->first; s < run->first + run->count; s++)
            m->segment_tapes[s] = m->tapes[m->queue_of[t]];
    }
    for (int s = 0; m->joined.program && s < p->segment_count; s++)
        m->segment_tapes[s] = m->tapes[m->joined.tapes[s]];
}

static mgl_status load(mgl_machine *m, const mgl_weights *weights, mgl_weights_watch *watch,
                       mgl_error *err)
{
    const mgl_program *p = m->program;
    mgl_status status = MGL_OK;
    for (int i = 0; !status && i < p->buffer_count; i++)
        if (p->buffers[i].space != MGL_SPACE_CONST)
            status = open_buffer(m, i, err);
    for (int q = 0; !status && q < p->queue_count; q++) {
        status = open_part(m, weights, q, stays_mapped(m, weights, q), watch, &m->tapes[q], err);
        m->tape_bytes += (size_t)p->queues[q].tape_bytes;
    }
    if (!status)
        find_tapes(m);
    for (int i = 0; !status && i < p->buffer_count; i++)
        if (p->buffers[i].space == MGL_SPACE_CONST)
            status = open_const(m, weights, i, watch, err);
    for (int i = 0; !status && i < p->buffer_count; i++)
        if (p->buffers[i].source == MGL_SOURCE_ORDER)
            status = mgl_order_check(p, i, m->buffers[i], err);
    return status;
}

/* ---- memory --------------------------------------------------------------------------------- */

/* Bytes that loading needs: everything not mapped, including the whole cache. */
static size_t needed_bytes(const mgl_machine *m, const mgl_weights *weights)
{
    const mgl_program *p = m->program;
    size_t bytes = 0;
    for (int i = 0; i < p->buffer_count; i++)
        if (p->buffers[i].space != MGL_SPACE_CONST)
            bytes += mgl_buffer_bytes(&p->buffers[i]) * (size_t)p->buffers[i].sets;
    for (int part = 0; part < mgl_weights_parts(m->first); part++)
        if (!stays_mapped(m, weights, part))
            bytes += weights->sizes[part];
    return bytes;
}

/* Fails early if memory is short, before the system's out-of-memory killer acts. */
static mgl_status check_memory(const mgl_machine *m, const mgl_weights *weights, mgl_error *err)
{
    size_t needed = needed_bytes(m, weights), available = mgl_memory_available();
    if (available == 0 || needed <= available)
        return MGL_OK;
    return mgl_fail(err, MGL_NO_MEMORY, NULL,
                    "%.1f GB of memory are needed, and the system has %.1f GB to give; %s",
                    (double)needed * 1e-9, (double)available * 1e-9,
                    weights->find ? "take a smaller capacity"
                                  : "compile the model (megalith compile MODEL --target cpu:1 -o "
                                    "F.mega): such a file is used where it is");
}

/* ---- segments ------------------------------------------------------------------------------- */

/* Places of the k blocks of a row group, if they are not in order. NULL when memory ran out. */
static int32_t *place_blocks(int blocks, int warps)
{
    int32_t *places = mgl_alloc((size_t)blocks * sizeof *places);
    for (int b = 0; places && b < blocks; b++)
        places[b] = mgl_tape_place_of_block(blocks, warps, b);
    return places;
}

static mgl_status open_segment(mgl_machine *m, int index, mgl_error *err)
{
    const mgl_program *p = m->program;
    const mgl_segment *s = &p->segments[index];
    const mgl_weight_format format = mgl_segment_format(p, s);
    int tensors = s->layout == MGL_LAYOUT_G8X2 ? 2 : 1;
    int blocks = (int)mgl_segment_blocks(p, s);
    const int64_t columns = s->col_hi - s->col_lo;
    const size_t group = (size_t)mgl_tape_group_bytes(format, columns);
    const size_t scales = (size_t)mgl_tape_scale_bytes(format, columns);
    if (p->exec.warps > 1 && !(m->places[index] = place_blocks(blocks, p->exec.warps)))
        return mgl_fail_memory(err, (size_t)blocks * sizeof **m->places);
    for (int which = 0; which < tensors; which++)
        m->segments[index].matrix[which] =
            (mgl_matrix){.tape = (const char *)m->segment_tapes[index] + s->offset +
                                 (size_t)which * group + scales,
                         .group_stride = group * (size_t)tensors,
                         .place = m->places[index],
                         .blocks = blocks,
                         .format = format,
                         .scales = -(ptrdiff_t)scales,
                         .groups = mgl_tape_scale_groups(format, columns)};
    return MGL_OK;
}

static mgl_status open_segments(mgl_machine *m, mgl_error *err)
{
    const mgl_program *p = m->program;
    mgl_status status = MGL_OK;
    m->segments = mgl_alloc_zero((size_t)p->segment_count + 1, sizeof *m->segments);
    m->places = mgl_alloc_zero((size_t)p->segment_count + 1, sizeof *m->places);
    if (!m->segments || !m->places)
        return mgl_fail_memory(err, (size_t)p->segment_count * sizeof *m->segments);
    for (int s = 0; s < p->segment_count && !status; s++)
        status = open_segment(m, s, err);
    return status;
}

/* ---- opening -------------------------------------------------------------------------------- */

/* Opens the thread pool and the scratch memory of each thread. */
static mgl_status open_threads(mgl_machine *m, int threads, mgl_error *err)
{
    const mgl_program *p = m->program;
    size_t reference = mgl_reference_scratch(p), fast = m->plain ? 0 : mgl_fast_scratch(p);
    size_t bytes = (reference > fast ? reference : fast) * sizeof *m->scratch;
    m->scratch = mgl_alloc_aligned(ALIGNMENT, bytes);
    if (!m->scratch)
        return mgl_fail_memory(err, bytes);
    m->scratch_bytes += bytes;
    if (m->plain)
        return MGL_OK;
    m->products = mgl_products_get();
    m->arithmetic = (mgl_arithmetic){m->products.dot, m->products.add_scaled};
    m->lane = mgl_fast_lane(p);
    mgl_status status = mgl_pool_open(threads, &m->pool, err);
    if (status)
        return status;
    size_t lanes = (size_t)mgl_pool_threads(m->pool) * m->lane * sizeof *m->lanes;
    m->lanes = mgl_alloc_aligned(ALIGNMENT, lanes);
    m->scratch_bytes += lanes;
    return m->lanes ? MGL_OK : mgl_fail_memory(err, lanes);
}

/* Indexes the tasks of queue q in a list: their queue, and the signals of each counter. */
static void index_tasks(mgl_machine *m, int q, int list, mgl_run tasks)
{
    const mgl_program *p = m->program;
    for (int t = tasks.first; t < tasks.first + tasks.count; t++) {
        const mgl_run *signals = &p->tasks[t].signals;
        m->queue_of[t] = q;
        for (int i = signals->first; i < signals->first + signals->count; i++)
            m->producers[list * p->counter_count + p->signals[i]]++;
    }
}

static mgl_status open_state(mgl_machine *m, mgl_error *err)
{
    const mgl_program *p = m->program;
    m->memory = mgl_alloc_zero((size_t)mgl_weights_parts(p), sizeof *m->memory);
    m->buffers = mgl_alloc_zero((size_t)p->buffer_count, sizeof *m->buffers);
    m->tapes = mgl_alloc_zero((size_t)p->queue_count, sizeof *m->tapes);
    m->queue_of = mgl_alloc_zero((size_t)p->task_count, sizeof *m->queue_of);
    m->counters = mgl_alloc_zero((size_t)p->counter_count, sizeof *m->counters);
    m->producers = mgl_alloc_zero(MGL_CPU_LISTS * (size_t)p->counter_count, sizeof *m->producers);
    m->segment_tapes = mgl_alloc_zero((size_t)p->segment_count + 1, sizeof *m->segment_tapes);
    m->queues = mgl_alloc_zero((size_t)p->queue_count, sizeof *m->queues);
    if (!m->memory || !m->buffers || !m->tapes || !m->queue_of || !m->counters || !m->producers ||
        !m->queues || !m->segment_tapes)
        return mgl_fail_memory(err, 0);
    for (int q = 0; q < p->queue_count; q++) {
        index_tasks(m, q, 0, p->queues[q].tasks);
        if (m->joined.program)
            index_tasks(m, q, 1, m->joined.second[q]);
    }
    return MGL_OK;
}

/* Loads everything that needs the weights. */
static mgl_status open_weights(mgl_machine *m, const mgl_weights *weights,
                               const mgl_machine_options *options, mgl_error *err)
{
    mgl_weights_watch watch = {
        .abort = options->abort, .on_stage = options->on_stage, .user = options->stage_user};
    bool verify = options->verify && weights->find && !m->plain;
    for (int part = 0; part < mgl_weights_parts(m->first); part++)
        if (verify || !stays_mapped(m, weights, part))
            watch.total += weights->sizes[part];
    mgl_status status = check_memory(m, weights, err);
    if (!status && verify)
        status = mgl_weights_verify(weights, &watch, err);
    if (!status)
        status = load(m, weights, &watch, err);
    if (!status && watch.on_stage)
        watch.on_stage(watch.user, MGL_STAGE_WEIGHTS, watch.total, watch.total);
    return status;
}

/* Selects the program to run: the given one, or its two lists joined. */
static mgl_status open_lists(mgl_machine *m, const mgl_program *program, mgl_error *err)
{
    m->first = m->program = program;
    mgl_status status = check_supported(program, err);
    if (!status)
        status = mgl_vm_find_io(program, &m->io[0], err);
    if (status || !program->second)
        return status;
    status = check_supported(program->second, err);
    if (!status)
        status = mgl_vm_find_io(program->second, &m->io[1], err);
    if (!status)
        status = mgl_program_join(program, &m->joined, err);
    if (!status)
        m->program = m->joined.program;
    return status;
}

mgl_status mgl_machine_open(mgl_machine *m, const mgl_program *program, const mgl_graph *graph,
                            const mgl_machine_options *options, mgl_error *err)
{
    mgl_weights *packed = NULL;
    m->plain = options->plain;
    mgl_status status = open_lists(m, program, err);
    if (!status)
        status = open_state(m, err);
    if (!status && !options->weights)
        status = mgl_weights_pack(program, graph, &packed, err);
    if (!status)
        status = open_weights(m, options->weights ? options->weights : packed, options, err);
    mgl_weights_close(packed);
    if (!status && !m->plain)
        status = open_segments(m, err);
    return status ? status : open_threads(m, options->threads, err);
}

void mgl_machine_close(mgl_machine *m)
{
    mgl_pool_close(m->pool);
    for (int i = 0; m->memory && i < mgl_weights_parts(m->program); i++)
        mgl_free(m->memory[i]);
    mgl_free(m->segment_tapes);
    mgl_free(m->likely);
    for (int i = 0; m->places && i < m->program->segment_count; i++)
        mgl_free(m->places[i]);
    mgl_free(m->memory);
    mgl_free(m->buffers);
    mgl_free(m->tapes);
    mgl_free(m->segments);
    mgl_free(m->places);
    mgl_free(m->queue_of);
    mgl_free(m->counters);
    mgl_free(m->producers);
    mgl_free(m->queues);
    mgl_free(m->scratch);
    mgl_free(m->lanes);
    mgl_joined_clear(&m->joined);
    memset(m, 0, sizeof *m);
}

/* Addresses of the weights: (parts), released by mgl_free; NULL when memory ran out. */
static const void **list_parts(const mgl_machine *m)
{
    const mgl_program *p = m->first;
    const void **parts = mgl_alloc_zero((size_t)mgl_weights_parts(p) + 1, sizeof *parts);
    for (int q = 0; parts && q < p->queue_count; q++)
        parts[q] = m->tapes[q];
    for (int i = 0; parts && i < p->buffer_count; i++)
        parts[p->queue_count + i] = m->buffers[i];
    return parts;
}

mgl_status mgl_machine_exchange(mgl_machine *m, const mgl_program *program, const mgl_graph *graph,
                                mgl_error *err)
{
    mgl_machine next = {0};
    mgl_weights *carried = NULL;
    const void **parts = list_parts(m);
    const mgl_resident resident = {m->first, parts, m->mapped};
    if (!parts)
        return mgl_fail_memory(err, (size_t)mgl_weights_parts(m->first) * sizeof *parts);
    mgl_status status = mgl_weights_carry(program, graph, &resident, &carried, err);
    if (!status) {
        const mgl_machine_options how = {.weights = carried,
                                         .plain = m->plain,
                                         .threads = m->plain ? 1 : mgl_pool_threads(m->pool)};
        status = mgl_machine_open(&next, program, graph, &how, err);
    }
    mgl_weights_close(carried);
    mgl_free(parts);
    mgl_machine_close(status ? &next : m);
    if (!status)
        *m = next;
    return status;
}

/* ---- running -------------------------------------------------------------------------------- */

/* Allocates space for what sample reports about the launch's tokens. */
static mgl_status make_likely(mgl_machine *m, const mgl_vm_request *request, mgl_error *err)
{
    const mgl_limits *limits = &m->program->limits;
    size_t words = mgl_vm_likely_words(request) * (size_t)limits->capacity;
    mgl_free(m->likely);
    m->likely = words ? mgl_alloc_zero((size_t)limits->sequences, words * sizeof *m->likely) : NULL;
    return words && !m->likely ? mgl_fail_memory(err, words * sizeof *m->likely) : MGL_OK;
}

static void count_prompts(mgl_machine *m, const mgl_vm_request *request)
{
    int32_t *counts = mgl_machine_words(m, m->io->counts);
    memset(counts, 0, mgl_buffer_bytes(&m->program->buffers[m->io->counts]));
    for (int s = 0; s < request->count; s++)
        mgl_vm_count_prompt(&request->sequences[s],
                            counts + (size_t)s * (size_t)m->program->geometry.vocab);
}

mgl_status mgl_machine_start(mgl_machine *m, const mgl_vm_request *request, int *most_epochs,
                             mgl_error *err)
{
    const mgl_program *p = m->program;
    mgl_status status = mgl_vm_prepare(
        m->first, request, mgl_machine_words(m, m->io->control), mgl_machine_words(m, m->io->table),
        mgl_machine_words(m, m->io->sequence), mgl_machine_words(m, m->io->prompt), err);
    if (!status)
        status = make_likely(m, request, err);
    if (status)
        return status;
    memset(m->buffers[m->io->output], 0, mgl_buffer_bytes(&p->buffers[m->io->output]));
    memset(m->buffers[m->io->score], 0, mgl_buffer_bytes(&p->buffers[m->io->score]));
    if (m->io->counts >= 0)
        count_prompts(m, request);
    for (int i = 0; i < p->buffer_count; i++)
        if (p->buffers[i].sets > 1) /* all ones: no flag word is written */
            memset(m->buffers[i], 0xFF,
                   mgl_buffer_bytes(&p->buffers[i]) * (size_t)p->buffers[i].sets);
    m->abort = request->abort;
    m->end = MGL_POOL_DONE;
    memset(m->counters, 0, (size_t)p->counter_count * sizeof *m->counters);
    memset(m->queues, 0, (size_t)p->queue_count * sizeof *m->queues);
    for (int q = 0; q < p->queue_count; q++)
        m->queues[q].list = mgl_machine_words(m, m->io->control)[MGL_CONTROL_LIST];
    /* each epoch advances every running sequence by at least one position */
    *most_epochs = 0;
    for (int s = 0; s < request->count; s++) {
        int positions = request->sequences[s].prompt_count + request->sequences[s].max_new;
        *most_epochs = positions > *most_epochs ? positions : *most_epochs;
    }
    return MGL_OK;
}

uint32_t mgl_machine_wanted(const mgl_machine *m, int q, const mgl_wait *wait)
{
    const uint32_t *producers = &m->producers[wait->counter];
    uint32_t wanted = (uint32_t)wait->threshold;
    for (int list = 0; list < MGL_CPU_LISTS; list++)
        wanted += (uint32_t)m->queues[q].ended[list] * producers[list * m->program->counter_count];
    return wanted;
}

const mgl_wait *mgl_machine_blocked(const mgl_machine *m, int q)
{
    const mgl_run *run = &m->program->tasks[mgl_machine_task(m, q)].waits;
    for (int i = run->first; i < run->first + run->count; i++) {
        const mgl_wait *wait = &m->program->waits[i];
        if (m->counters[wait->counter] < mgl_machine_wanted(m, q, wait))
            return wait;
    }
    return NULL;
}

/* Builds the call of the next task of queue q. */
static mgl_call call_of(const mgl_machine *m, int q)
{
    return (mgl_call){
        .program = m->program,
        .task = &m->program->tasks[mgl_machine_task(m, q)],
        .buffers = m->buffers,
        .tapes = &m->segment_tapes[m->program->tasks[mgl_machine_task(m, q)].segments.first],
        .epoch = &m->queues[q].rows,
        .likely = m->likely,
        .scratch = m->scratch};
}

const mgl_region *mgl_machine_unwritten(const mgl_machine *m, int q)
{
    mgl_call call = call_of(m, q);
    for (int i = 0; i < call.task->in.count; i++)
        if (mgl_call_in(&call, i)->flag && !mgl_call_written(&call, mgl_call_in(&call, i)))
            return mgl_call_in(&call, i);
    return NULL;
}

/* Called after `enter`: whether there is another epoch. In an unvalidated program, the row table
 * may belong to the other list and exceed this list's buffers, so rows are clamped. */
static bool begin_epoch(const mgl_machine *m, mgl_cpu_queue *queue)
{
    const mgl_limits *limits = &m->program->limits;
    int most = queue->list ? limits->second_rows : limits->rows;
    queue->rows.rows = queue->rows.rows < most ? queue->rows.rows : most;
    queue->left = !queue->rows.go;
    return !queue->left;
}

/* Ends the queue's epoch and switches to the list that `enter` read. */
static void end_epoch(mgl_cpu_queue *queue)
{
    queue->epoch++;
    queue->ended[queue->list]++;
    queue->next = 0;
    queue->list = queue->rows.next_list;
    queue->rows.turn = queue->ended[queue->list];
}

void mgl_machine_execute(mgl_machine *m, int q, const int32_t *asked)
{
    const mgl_program *p = m->program;
    mgl_cpu_queue *queue = &m->queues[q];
    MGL_ASSERT(queue->next < mgl_machine_tasks(m, q).count && !queue->left);
    int index = mgl_machine_task(m, q);
    const mgl_task *task = &p->tasks[index];
    mgl_call call = call_of(m, q);
    call.asked = asked;
    if (m->plain || !mgl_fast_execute(m, &call))
        mgl_reference_op(task->op)(&call);
    if (task->op == MGL_OP_ENTER && !begin_epoch(m, queue))
        return;
    for (int i = task->signals.first; i < task->signals.first + task->signals.count; i++)
        m->counters[p->signals[i]]++;
    if (++queue->next == mgl_machine_tasks(m, q).count)
        end_epoch(queue);
}

mgl_status mgl_machine_check(const mgl_machine *m, mgl_error *err)
{
    mgl_status status = m->mapped ? m->mapped->check(m->mapped, err) : MGL_OK;
    if (!status && m->end == MGL_POOL_LOST)
        status = mgl_fail(err, MGL_SYSTEM, NULL,
                          "the disk could not deliver the weights; look at the system's log");
    return status;
}

/* Describes what queue q waits for: a counter, or the words of a flag region. False if it does not
 * wait. */
static bool describe_wait(const mgl_machine *m, int q, char *to, size_t size)
{
    const mgl_wait *wait = mgl_machine_blocked(m, q);
    const mgl_region *region = wait ? NULL : mgl_machine_unwritten(m, q);
    if (wait)
        snprintf(to, size, "counter %s: expected %u, found %u",
                 m->program->counters[wait->counter].name, mgl_machine_wanted(m, q, wait),
                 m->counters[wait->counter]);
    else if (region)
        snprintf(to, size, "words of %s that no task has written",
                 m->program->buffers[region->buffer].name);
    return wait || region;
}

mgl_status mgl_machine_stuck(const mgl_machine *m, mgl_error *err)
{
    for (int q = 0; q < m->program->queue_count; q++) {
        char where[64], what[200];
        if (m->queues[q].left || !describe_wait(m, q, what, sizeof what))
            continue;
        mgl_text line = {0};
        int task = mgl_machine_task(m, q);
        snprintf(where, sizeof where, "queue %d", q);
        mgl_schedule_print_task(m->program, task, &line);
        mgl_status status =
            mgl_fail(err, MGL_WATCHDOG, where,
                     "nothing can run: queue %d, task %d (%s), epoch %d waits for %s\n%s", q,
                     m->queues[q].next, mgl_op_get(m->program->tasks[task].op)->name,
                     m->queues[q].epoch, what, line.bytes ? line.bytes : "");
        mgl_text_clear(&line);
        return status;
    }
    return mgl_fail(err, MGL_WATCHDOG, NULL, "nothing can run");
}
