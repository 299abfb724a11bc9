/*
 * Loading a program into host memory, and executing one task of it.
 *
 * Buffers are one allocation each. A queue's tape is packed as the program says; the reference
 * reads it task by task, while the fast path unpacks each task's segments to f32 at once and lets
 * the tape go, so that at most one queue's tape is in memory with it.
 */
#include "vm/cpu/machine.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "schedule/schedule.h"

enum { ALIGNMENT = 64 };

/* ---- loading -------------------------------------------------------------------------------- */

/* What the machine can not do, whoever let the program through. */
static mgl_status check_supported(const mgl_program *program, mgl_error *err)
{
    for (int i = 0; i < program->task_count; i++) {
        const mgl_task *task = &program->tasks[i];
        const mgl_segment *s = &program->segments[task->segments.first];
        for (int j = 1; j < task->segments.count; j++)
            if (s[j].col_lo != s->col_lo || s[j].col_hi != s->col_hi)
                return mgl_fail(err, MGL_REJECTED, mgl_op_get(task->op)->name,
                                "the segments of a task must have the same columns");
    }
    return MGL_OK;
}

static mgl_status open_buffers(mgl_machine *m, const mgl_weights *weights, mgl_error *err)
{
    for (int i = 0; i < m->program->buffer_count; i++) {
        const mgl_buffer *b = &m->program->buffers[i];
        size_t bytes = mgl_buffer_bytes(b) * (size_t)b->sets;
        /* the cache is large and touched as it fills; the rest is aligned for BLAS */
        if (b->space == MGL_SPACE_KV)
            m->buffers[i] = mgl_alloc_zero(bytes, 1);
        else
            m->buffers[i] = mgl_alloc_aligned(ALIGNMENT, bytes);
        if (!m->buffers[i])
            return mgl_fail_memory(err, bytes);
        if (b->space == MGL_SPACE_KV)
            m->kv_bytes += bytes;
        if (b->space == MGL_SPACE_CONST) {
            m->const_bytes += bytes;
            mgl_status status =
                mgl_weights_write(weights, m->program->queue_count + i, m->buffers[i], err);
            if (status)
                return status;
        } else if (b->space != MGL_SPACE_KV) {
            memset(m->buffers[i], 0, bytes);
        }
    }
    return MGL_OK;
}

/* Unpacks the segments of a task, one after the other, to f32. */
static mgl_status unpack_task(mgl_machine *m, int task, const void *tape, mgl_error *err)
{
    const mgl_program *p = m->program;
    const mgl_run *run = &p->tasks[task].segments;
    size_t elements = 0;
    for (int s = run->first; s < run->first + run->count; s++) {
        const mgl_segment *segment = &p->segments[s];
        elements += (size_t)(mgl_segment_rows(segment) * (segment->col_hi - segment->col_lo)) *
                    (segment->layout == MGL_LAYOUT_G8X2 ? 2 : 1);
    }
    if (elements == 0)
        return MGL_OK;
    float *to = m->weights[task] = mgl_alloc_aligned(ALIGNMENT, elements * sizeof *to);
    if (!to)
        return mgl_fail_memory(err, elements * sizeof *to);
    for (int s = run->first; s < run->first + run->count; s++) {
        const mgl_segment *segment = &p->segments[s];
        for (int which = 0; which < (segment->layout == MGL_LAYOUT_G8X2 ? 2 : 1); which++) {
            mgl_unpack_segment(p, segment, tape, which, to);
            to += mgl_segment_rows(segment) * (segment->col_hi - segment->col_lo);
        }
    }
    return MGL_OK;
}

/* Writes a queue's tape; unless plain, unpacks it at once and lets it go. */
static mgl_status open_queue(mgl_machine *m, const mgl_weights *weights, int q, mgl_error *err)
{
    const mgl_queue *queue = &m->program->queues[q];
    size_t bytes = (size_t)queue->tape_bytes;
    void *tape = mgl_alloc_aligned(ALIGNMENT, bytes);
    if (!tape)
        return mgl_fail_memory(err, bytes);
    m->tapes[q] = tape;
    m->tape_bytes += bytes;
    mgl_status status = mgl_weights_write(weights, q, tape, err);
    for (int i = 0; i < queue->tasks.count; i++) {
        m->queue_of[queue->tasks.first + i] = q;
        if (!status && !m->plain)
            status = unpack_task(m, queue->tasks.first + i, tape, err);
    }
    if (!m->plain) {
        mgl_free(tape);
        m->tapes[q] = NULL;
    }
    return status;
}

static mgl_status load(mgl_machine *m, const mgl_weights *weights, mgl_error *err)
{
    mgl_status status = open_buffers(m, weights, err);
    for (int q = 0; !status && q < m->program->queue_count; q++)
        status = open_queue(m, weights, q, err);
    return status;
}

mgl_status mgl_machine_open(mgl_machine *m, const mgl_program *program, const mgl_graph *graph,
                            const mgl_weights *weights, bool plain, mgl_error *err)
{
    mgl_weights *packed = NULL;
    m->program = program;
    m->plain = plain;
    m->blas = plain ? mgl_blas_plain() : mgl_blas_get();
    mgl_status status = check_supported(program, err);
    if (!status)
        status = mgl_vm_find_io(program, &m->io, err);
    if (status)
        return status;
    size_t reference = mgl_reference_scratch(program), fast = mgl_fast_scratch(program);
    m->buffers = mgl_alloc_zero((size_t)program->buffer_count, sizeof *m->buffers);
    m->tapes = mgl_alloc_zero((size_t)program->queue_count, sizeof *m->tapes);
    m->weights = mgl_alloc_zero((size_t)program->task_count, sizeof *m->weights);
    m->queue_of = mgl_alloc_zero((size_t)program->task_count, sizeof *m->queue_of);
    m->counters = mgl_alloc_zero((size_t)program->counter_count, sizeof *m->counters);
    m->producers = mgl_alloc_zero((size_t)program->counter_count, sizeof *m->producers);
    m->queues = mgl_alloc_zero((size_t)program->queue_count, sizeof *m->queues);
    m->scratch =
        mgl_alloc_aligned(ALIGNMENT, (reference > fast ? reference : fast) * sizeof *m->scratch);
    if (!m->buffers || !m->tapes || !m->weights || !m->queue_of || !m->counters || !m->producers ||
        !m->queues || !m->scratch)
        return mgl_fail_memory(err, 0);
    for (int i = 0; i < program->signal_count; i++)
        m->producers[program->signals[i]]++;
    if (!weights)
        status = mgl_weights_pack(program, graph, &packed, err);
    if (!status)
        status = load(m, weights ? weights : packed, err);
    mgl_weights_close(packed);
    return status;
}

void mgl_machine_close(mgl_machine *m)
{
    for (int i = 0; m->buffers && i < m->program->buffer_count; i++)
        mgl_free(m->buffers[i]);
    for (int i = 0; m->tapes && i < m->program->queue_count; i++)
        mgl_free(m->tapes[i]);
    for (int i = 0; m->weights && i < m->program->task_count; i++)
        mgl_free(m->weights[i]);
    mgl_free(m->buffers);
    mgl_free(m->tapes);
    mgl_free(m->weights);
    mgl_free(m->queue_of);
    mgl_free(m->counters);
    mgl_free(m->producers);
    mgl_free(m->queues);
    mgl_free(m->scratch);
    memset(m, 0, sizeof *m);
}

/* ---- running -------------------------------------------------------------------------------- */

mgl_status mgl_machine_start(mgl_machine *m, const mgl_vm_request *request, int *most_epochs,
                             mgl_error *err)
{
    const mgl_program *p = m->program;
    mgl_status status = mgl_vm_prepare(
        p, request, mgl_machine_words(m, m->io.control), mgl_machine_words(m, m->io.table),
        mgl_machine_words(m, m->io.sequence), mgl_machine_words(m, m->io.prompt), err);
    if (status)
        return status;
    memset(m->buffers[m->io.output], 0, mgl_buffer_bytes(&p->buffers[m->io.output]));
    memset(m->buffers[m->io.score], 0, mgl_buffer_bytes(&p->buffers[m->io.score]));
    for (int i = 0; i < p->buffer_count; i++)
        if (p->buffers[i].sets > 1) /* no word is written */
            memset(m->buffers[i], 0xFF,
                   mgl_buffer_bytes(&p->buffers[i]) * (size_t)p->buffers[i].sets);
    memset(m->counters, 0, (size_t)p->counter_count * sizeof *m->counters);
    memset(m->queues, 0, (size_t)p->queue_count * sizeof *m->queues);
    /* an epoch moves every running sequence on by a position at least */
    *most_epochs = 0;
    for (int s = 0; s < request->count; s++) {
        int positions = request->sequences[s].prompt_count + request->sequences[s].max_new;
        *most_epochs = positions > *most_epochs ? positions : *most_epochs;
    }
    return MGL_OK;
}

uint32_t mgl_machine_wanted(const mgl_machine *m, int q, const mgl_wait *wait)
{
    return (uint32_t)m->queues[q].epoch * m->producers[wait->counter] + (uint32_t)wait->threshold;
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

/* The next task of queue q. */
static mgl_call call_of(const mgl_machine *m, int q)
{
    return (mgl_call){.program = m->program,
                      .task = &m->program->tasks[mgl_machine_task(m, q)],
                      .buffers = m->buffers,
                      .tape = m->tapes[q],
                      .epoch = &m->queues[q].rows,
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

void mgl_machine_execute(mgl_machine *m, int q, bool abort)
{
    const mgl_program *p = m->program;
    mgl_cpu_queue *queue = &m->queues[q];
    int index = mgl_machine_task(m, q);
    const mgl_task *task = &p->tasks[index];
    mgl_call call = call_of(m, q);
    call.abort = abort;
    if (m->plain || !mgl_fast_execute(m, index, &call))
        mgl_reference_op(task->op)(&call);
    if (task->op == MGL_OP_ENTER && !queue->rows.go) {
        queue->left = true;
        return;
    }
    for (int i = task->signals.first; i < task->signals.first + task->signals.count; i++)
        m->counters[p->signals[i]]++;
    if (++queue->next == p->queues[q].tasks.count) {
        queue->next = 0;
        queue->epoch++;
    }
}

/* What queue q waits for: a counter, or the words of a flag region. False when it does not. */
static bool describe_wait(const mgl_machine *m, int q, char *to, size_t size)
{
    const mgl_wait *wait = mgl_machine_blocked(m, q);
    const mgl_region *region = wait ? NULL : mgl_machine_unwritten(m, q);
    if (wait)
        snprintf(to, size, "counter %s: wanted %u, seen %u",
                 m->program->counters[wait->counter].name, mgl_machine_wanted(m, q, wait),
                 m->counters[wait->counter]);
    else if (region)
        snprintf(to, size, "words of %s that nobody has written",
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
