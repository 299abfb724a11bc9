/*
 * MG4xx: all accesses stay inside their objects. mgl_check_limits checks the header: limits,
 * queues, exec, shared memory. mgl_check_bounds checks regions inside their buffers, segments
 * inside their tensors and their tape, and sizes that a machine can compute.
 *
 * Two properties need no check here. Positions of the cache stay below capacity: the row table
 * gives a sequence consecutive positions below capacity (schedule/step.h), and regions name
 * positions only as [:pos] and [pos]. Constants are never written: no op has a const output
 * (MG107).
 */
#include "validator/check.h"

#include "base/memory.h"

#include <inttypes.h>
#include <string.h>

static void check_queue_count(mgl_check *check)
{
    const mgl_program *p = check->program;
    if (p->queue_count != p->target.queues || p->queue_count < 1 || p->queue_count > MGL_MAX_QUEUES)
        mgl_check_report(
            check, 405, -1, 0,
            "the target has %d queues and the program %d; both must be the same, 1 to %d",
            p->target.queues, p->queue_count, MGL_MAX_QUEUES);
}

static void check_shared(mgl_check *check)
{
    const mgl_program *p = check->program;
    const mgl_exec *exec = &p->exec;
    const int reserved = mgl_shared_reserved(mgl_limits_most(&p->limits));
    int64_t bytes = (int64_t)exec->page_bytes * exec->ring_pages + exec->stage_bytes + reserved;
    const bool cpu = !strcmp(p->target.arch, "cpu"); /* a CPU has no shared memory and needs none */
    if (p->target.shared_bytes < 0 ||
        ((p->target.shared_bytes > 0 || !cpu) && bytes > p->target.shared_bytes))
        mgl_check_report(check, 406, -1, 0,
                         "%d pages of %d bytes, a stage of %d and %d reserved are %" PRId64
                         " bytes; a block of the target has %" PRId64,
                         exec->ring_pages, exec->page_bytes, exec->stage_bytes, reserved, bytes,
                         p->target.shared_bytes);
}

/* Whether the bytes are whole blocks of the tape, at least one. */
static bool are_blocks(int bytes, int most)
{
    return bytes >= MGL_BLOCK_BYTES && bytes <= most && bytes % MGL_BLOCK_BYTES == 0;
}

/* A flight below one page is no fault: the loader then keeps one page in flight. */
static void check_exec(mgl_check *check)
{
    const mgl_program *p = check->program;
    const mgl_exec *e = &p->exec;
    bool ok = are_blocks(e->page_bytes, MGL_MAX_PAGE_BYTES) && e->ring_pages >= MGL_MIN_PAGES &&
              e->ring_pages <= MGL_MAX_PAGES && e->warps >= 1 && e->warps <= MGL_MAX_WARPS &&
              e->stage_bytes >= 0 && e->stage_bytes <= MGL_MAX_STAGE_BYTES &&
              e->stage_bytes % MGL_STAGE_UNIT == 0;
    if (!ok)
        mgl_check_report(check, 408, -1, 0,
                         "page %d, ring %d, warps %d, stage %d: page is a multiple of %d up to "
                         "%d, ring %d to %d, warps 1 to %d, stage a multiple of %d up to %d",
                         e->page_bytes, e->ring_pages, e->warps, e->stage_bytes, MGL_BLOCK_BYTES,
                         MGL_MAX_PAGE_BYTES, MGL_MIN_PAGES, MGL_MAX_PAGES, MGL_MAX_WARPS,
                         MGL_STAGE_UNIT, MGL_MAX_STAGE_BYTES);
    if (!are_blocks(e->flight_bytes, MGL_MAX_STREAM_BYTES) ||
        !are_blocks(e->pending_bytes, MGL_MAX_STREAM_BYTES) ||
        (e->prefetch_bytes != 0 && !are_blocks(e->prefetch_bytes, MGL_MAX_STREAM_BYTES)))
        mgl_check_report(check, 408, -1, 0,
                         "flight %d, pending %d, prefetch %d: each is a multiple of %d up to "
                         "%d, and prefetch may be 0",
                         e->flight_bytes, e->pending_bytes, e->prefetch_bytes, MGL_BLOCK_BYTES,
                         MGL_MAX_STREAM_BYTES);
    if (!mgl_dtype_is_float(p->embedding_dtype) || !mgl_dtype_is_float(p->exchange_dtype) ||
        !mgl_dtype_is_float(p->kv_dtype))
        mgl_check_report(check, 408, -1, 0,
                         "the embedding is %s, the exchange %s and the cache %s; each must be f32, "
                         "bf16 or f16",
                         mgl_dtype_name(p->embedding_dtype), mgl_dtype_name(p->exchange_dtype),
                         mgl_dtype_name(p->kv_dtype));
    if (ok)
        check_shared(check);
}

void mgl_check_limits(mgl_check *check)
{
    const mgl_limits *limits = &check->program->limits;
    int most = mgl_limits_most(limits), first_rows = mgl_limits_first_rows(limits);
    if (first_rows < 1 || first_rows > MGL_MAX_ROWS || limits->sequences < 1 ||
        limits->sequences > most || limits->sequences > MGL_MAX_SEQUENCES || limits->capacity < 1 ||
        limits->capacity > MGL_MAX_CAPACITY)
        mgl_check_report(
            check, 407, -1, 0,
            "rows %d, sequences %d, capacity %d: rows is 1 to %d, sequences 1 to rows (of the "
            "second list, where there is one, and %d), capacity 1 to %d",
            first_rows, limits->sequences, limits->capacity, MGL_MAX_ROWS, MGL_MAX_SEQUENCES,
            MGL_MAX_CAPACITY);
    if (limits->second_rows != 0 &&
        (limits->second_rows <= first_rows || limits->second_rows > MGL_MAX_SECOND_ROWS))
        mgl_check_report(
            check, 407, -1, 0,
            "rows %d, second_rows %d: the second list has more rows than the first, and %d "
            "at most",
            first_rows, limits->second_rows, MGL_MAX_SECOND_ROWS);
    if (limits->unsplit < 0 || limits->unsplit > MGL_MAX_CAPACITY)
        mgl_check_report(
            check, 407, -1, 0,
            "unsplit %d: the largest number of positions of a sequence whose attention "
            "is not split is 0 to %d",
            limits->unsplit, MGL_MAX_CAPACITY);
    if (limits->share < 0 || limits->share > MGL_MAX_CAPACITY)
        mgl_check_report(check, 407, -1, 0,
                         "share %d: the positions for which one more split is used are 0 to %d",
                         limits->share, MGL_MAX_CAPACITY);
    check_queue_count(check);
    check_exec(check);
}

/* ---- regions ---- */

static void check_region(mgl_check *check, int task, int index)
{
    const mgl_region *region = &check->program->regions[index];
    const mgl_buffer *buffer = &check->program->buffers[region->buffer];
    for (int d = 0; d < buffer->rank; d++) {
        const mgl_range *range = &region->ranges[d];
        if (range->kind != MGL_RANGE_FIXED ||
            (range->lo >= 0 && range->lo < range->hi && range->hi <= buffer->extents[d].count))
            continue;
        char name[MGL_NAME_TEXT], place[MGL_NAME_TEXT];
        mgl_check_report(check, 401, task, 0,
                         "%s: %s is empty or leaves its buffer, whose extent %d is %" PRId64,
                         mgl_check_task(check, task, name), mgl_check_region(check, index, place),
                         d, buffer->extents[d].count);
    }
}

/* ---- segments ---- */

/* Whether the segment is inside its tensors and aligned to row groups, so that its size can be
 * computed. */
static bool check_segment(mgl_check *check, int task, const mgl_segment *s)
{
    const mgl_program *p = check->program;
    int before = check->found;
    char name[MGL_NAME_TEXT];
    for (int i = 0; i < 2; i++) {
        int index = i ? s->tensor2 : s->tensor;
        if (index < 0)
            continue;
        const mgl_program_tensor *tensor = &p->tensors[index];
        if (s->row_lo < 0 || s->row_lo >= s->row_hi || s->row_hi > tensor->rows || s->col_lo < 0 ||
            s->col_lo >= s->col_hi || s->col_hi > tensor->cols)
            mgl_check_report(check, 402, task, 0,
                             "%s: segment [%" PRId64 ":%" PRId64 ",%" PRId64 ":%" PRId64
                             "] is empty or leaves tensor %.64s of %" PRId64 " x %" PRId64,
                             mgl_check_task(check, task, name), s->row_lo, s->row_hi, s->col_lo,
                             s->col_hi, tensor->name, tensor->rows, tensor->cols);
        else if (s->row_lo % MGL_ROW_GROUP ||
                 (s->row_hi % MGL_ROW_GROUP && s->row_hi != tensor->rows))
            mgl_check_report(check, 403, task, 0,
                             "%s: segment of %.64s has rows [%" PRId64 ":%" PRId64
                             "); cuts are at multiples of %d or the tensor's end",
                             mgl_check_task(check, task, name), tensor->name, s->row_lo, s->row_hi,
                             MGL_ROW_GROUP);
    }
    return check->found == before;
}

static void check_tape(mgl_check *check, int q)
{
    const mgl_program *p = check->program;
    const mgl_queue *queue = &p->queues[q];
    int64_t tape = queue->tape_bytes;
    if (tape < 0 || tape > MGL_MAX_BYTES || tape % p->exec.page_bytes || queue->tape_pad < 0 ||
        queue->tape_pad > tape || queue->tape_pad >= p->exec.page_bytes)
        mgl_check_report(
            check, 404, -1, queue->line,
            "queue %d: a tape of %" PRId64 " bytes with padding %" PRId64
            " must be a multiple of the page (%d) and have less than a page of padding",
            q, tape, queue->tape_pad, p->exec.page_bytes);
    for (int t = queue->tasks.first; t < queue->tasks.first + queue->tasks.count; t++)
        for (int i = 0; i < p->tasks[t].segments.count; i++) {
            const mgl_segment *s = &p->segments[p->tasks[t].segments.first + i];
            char name[MGL_NAME_TEXT];
            if (check_segment(check, t, s) && !check->first &&
                (s->offset < 0 || s->offset > tape || mgl_segment_bytes(p, s) > tape - s->offset))
                mgl_check_report(check, 404, t, 0,
                                 "%s: segment at +%" PRId64 " with %" PRId64
                                 " bytes leaves the queue's tape of %" PRId64 " bytes",
                                 mgl_check_task(check, t, name), s->offset, mgl_segment_bytes(p, s),
                                 tape);
        }
}

/* ---- sizes ---- */

/* a * b, or MGL_MAX_BYTES + 1 if the product is larger. */
static int64_t times(int64_t a, int64_t b)
{
    int64_t product;
    if (__builtin_mul_overflow(a, b, &product) || product > MGL_MAX_BYTES)
        return MGL_MAX_BYTES + 1;
    return product;
}

static void check_sizes(mgl_check *check)
{
    const mgl_program *p = check->program;
    int64_t total = 0;
    for (int i = 0; i < p->buffer_count; i++) {
        const mgl_buffer *b = &p->buffers[i];
        int64_t bytes = (int64_t)mgl_dtype_size(b->dtype) * b->sets;
        for (int d = 0; d < b->rank; d++)
            bytes = b->extents[d].count > MGL_MAX_EXTENT ? MGL_MAX_BYTES + 1
                                                         : times(bytes, b->extents[d].count);
        total += bytes;
        if (bytes > MGL_MAX_BYTES || total > MGL_MAX_BYTES) {
            mgl_check_report(
                check, 409, -1, b->line,
                "buffer %.64s: an extent exceeds 2^30, or the buffers so far exceed 2^44 bytes",
                b->name);
            return;
        }
    }
    for (int i = 0; i < p->tensor_count; i++) {
        const mgl_program_tensor *tensor = &p->tensors[i];
        if (times(times(tensor->rows, tensor->cols), 4) > MGL_MAX_BYTES)
            mgl_check_report(check, 409, -1, tensor->line, "tensor %.64s exceeds 2^44 bytes",
                             tensor->name);
    }
    for (int q = 0; q < p->queue_count; q++)
        if (p->queues[q].tape_bytes >= 0 && p->queues[q].tape_bytes <= MGL_MAX_BYTES)
            total += p->queues[q].tape_bytes;
    if (total > MGL_MAX_BYTES)
        mgl_check_report(check, 409, -1, 0, "buffers and tapes together exceed 2^44 bytes");
}

void mgl_check_bounds(mgl_check *check)
{
    const mgl_program *p = check->program;
    check_sizes(check);
    if (!mgl_check_clean(check))
        return;
    for (int t = 0; t < p->task_count; t++) {
        const mgl_task *task = &p->tasks[t];
        for (int i = 0; i < task->in.count + task->out.count; i++)
            check_region(check, t, task->in.first + i);
    }
    for (int q = 0; q < p->queue_count; q++)
        check_tape(check, q);
}
