/*
 * Checks program-wide limits of the CUDA machine (encode.h): sizes that the kernel supports, and
 * the segment order of two lists. The loader streams a queue's tape repeatedly, regardless of the
 * list of an epoch, so both lists must use the same segments in the same order.
 */
#include <stdio.h>

#include "schedule/formats.h"
#include "vm/cuda/encode.h"

enum { MOST_ATTENDED = 1 << 30 }; /* columns of the attention output */

/* ---- one list ------------------------------------------------------------------------------- */

/* Checks the model's dimensions that become constants of the kernel. */
static mgl_status check_geometry(const mgl_program *program, mgl_error *err)
{
    const mgl_geometry *m = &program->geometry;
    if (m->kv_heads < 1 || m->heads < m->kv_heads || m->head_dim < 1 ||
        m->head_dim > MOST_ATTENDED / m->heads)
        return mgl_fail(err, MGL_BAD_INPUT, "model",
                        "the CUDA machine takes 1 kv head or more, no fewer query heads, and 1 to "
                        "%d dimensions of all query heads",
                        MOST_ATTENDED);
    return MGL_OK;
}

/* Whether all products of a list are panels. */
static bool has_panels(const mgl_program *list)
{
    for (int i = 0; i < list->task_count; i++)
        if (mgl_op_get(list->tasks[i].op)->family == MGL_FAMILY_PRODUCT)
            return false;
    return true;
}

/* Whether a task of the list has an op of the family. */
static bool has_family(const mgl_program *list, mgl_family family)
{
    bool has = false;
    for (int i = 0; i < list->task_count; i++)
        has |= mgl_op_get(list->tasks[i].op)->family == family;
    return has;
}

static mgl_status check_exec(const mgl_program *program, mgl_error *err)
{
    const mgl_exec *exec = &program->exec;
    if (exec->warps < 1 || exec->warps > MGL_MAX_WARPS || exec->ring_pages < MGL_MIN_PAGES ||
        exec->ring_pages > MGL_MAX_PAGES || exec->page_bytes < MGL_BLOCK_BYTES ||
        exec->page_bytes % MGL_BLOCK_BYTES || exec->stage_bytes < 0 || exec->stage_bytes % 128 ||
        exec->flight_bytes < 1 || exec->pending_bytes < 1)
        return mgl_fail(err, MGL_BAD_INPUT, "exec",
                        "the CUDA machine takes 1 to %d warps, %d to %d pages of a multiple of %d "
                        "bytes, a stage of a multiple of 128 bytes, and bytes in flight",
                        MGL_MAX_WARPS, MGL_MIN_PAGES, MGL_MAX_PAGES, MGL_BLOCK_BYTES);
    const mgl_limits *limits = &program->limits;
    if (program->is_second && !has_panels(program) && has_family(program, MGL_FAMILY_PANEL))
        return mgl_fail(err, MGL_BAD_INPUT, "second list",
                        "some of its products are panels, and others are not: the kernel streams "
                        "the tape for one of the two; use panels for all products, or for none");
    if (program->is_second && limits->rows > MGL_CUDA_MOST_SECOND && !has_panels(program))
        return mgl_fail(err, MGL_BAD_INPUT, "second_rows",
                        "the second list has %d rows; without panels as its products the CUDA "
                        "machine takes up to %d",
                        limits->rows, MGL_CUDA_MOST_SECOND);
    const int most = program->is_second ? MGL_MAX_SECOND_ROWS : MGL_MAX_ROWS;
    if (limits->rows < 1 || limits->rows > most || limits->second_rows > MGL_MAX_SECOND_ROWS ||
        limits->sequences < 1 || limits->sequences > mgl_limits_most(limits) ||
        limits->sequences > MGL_MAX_SEQUENCES || limits->capacity < 1 ||
        limits->capacity > MGL_MAX_CAPACITY || program->queue_count > MGL_MAX_QUEUES)
        return mgl_fail(err, MGL_BAD_INPUT, "limits",
                        "the CUDA machine takes 1 to %d rows, no more sequences than rows and at "
                        "most %d, 1 to %d positions, and at most %d queues",
                        most, MGL_MAX_SEQUENCES, MGL_MAX_CAPACITY, MGL_MAX_QUEUES);
    for (int q = 0; q < program->queue_count; q++) {
        const mgl_queue *queue = &program->queues[q];
        if (queue->tasks.count < 1 || program->tasks[queue->tasks.first].op != MGL_OP_ENTER)
            return mgl_fail(err, MGL_BAD_INPUT, "queue", "queue %d does not open with enter", q);
        uint64_t pages = (uint64_t)queue->tape_bytes / (uint64_t)exec->page_bytes;
        if (queue->tape_bytes % exec->page_bytes ||
            pages * ((uint64_t)program->limits.capacity + 2) >= UINT32_MAX)
            return mgl_fail(err, MGL_BAD_INPUT, "queue",
                            "the tape of queue %d has %lld bytes: it must be whole pages, and less "
                            "than 2^32 pages in all epochs",
                            q, (long long)queue->tape_bytes);
    }
    return MGL_OK;
}

/* ---- weight formats ------------------------------------------------------------------------- */

enum { MOST_COLUMNS = 1 << 16 };

/* Checks the scaled format of a segment. A group must have 16 columns or a multiple of 32, because
 * an MMA adds half a part or a whole part of 32 columns. A row group with scales on the tape must
 * fit in the ring, because the pages of the scales are freed only after the row group. A sum of
 * 8-bit products of a row, with its zero points, must fit in 32 bits: each column adds at most
 * 2^15 (scaled_weights::add_integers). */
static mgl_status check_scaled(const mgl_program *program, const mgl_segment *segment,
                               mgl_error *err)
{
    const mgl_weight_format format = mgl_segment_format(program, segment);
    const char *name = program->tensors[segment->tensor].name;
    const int64_t columns = segment->col_hi - segment->col_lo;
    const int64_t ring = (int64_t)(program->exec.ring_pages - 1) * program->exec.page_bytes;
    char text[MGL_WEIGHT_FORMAT_TEXT];
    if (format.group % MGL_PART_COLUMNS && format.group != MGL_PART_COLUMNS / 2)
        return mgl_fail(err, MGL_BAD_INPUT, name,
                        "the CUDA machine supports groups of %d columns, or of a multiple of %d, "
                        "not %s; use --device cpu, or the target cpu",
                        MGL_PART_COLUMNS / 2, MGL_PART_COLUMNS,
                        mgl_weight_format_print(format, text));
    if (columns >= MOST_COLUMNS && format.group == MGL_GROUP_ALL && format.code != MGL_CODE_E4M3)
        return mgl_fail(err, MGL_BAD_INPUT, name,
                        "the CUDA machine supports fewer than %d columns that share an integer "
                        "scale, not %lld; use --device cpu, or the target cpu",
                        MOST_COLUMNS, (long long)columns);
    if (mgl_tape_scale_bytes(format, columns) > 0 && mgl_tape_group_bytes(format, columns) > ring)
        return mgl_fail(err, MGL_BAD_INPUT, name,
                        "eight rows of weights with their scales have %lld bytes; the ring, less "
                        "one page, has %lld bytes; increase ring_pages",
                        (long long)mgl_tape_group_bytes(format, columns), (long long)ring);
    return MGL_OK;
}

/* Checks that all tensors of a task have one weight format, and that the kernel supports it. */
static mgl_status check_task_formats(const mgl_program *program, const mgl_task *task,
                                     mgl_error *err)
{
    mgl_status status = MGL_OK;
    for (int i = 0; i < task->segments.count && !status; i++) {
        const mgl_segment *s = &program->segments[task->segments.first + i];
        const mgl_weight_format format = mgl_segment_format(program, s);
        const char *name = program->tensors[s->tensor].name;
        if (!mgl_weight_format_equal(format, mgl_segment_format(program, s - i)))
            status = mgl_fail(err, MGL_BAD_INPUT, name,
                              "the matrix and another matrix of its task have different weight "
                              "formats; the CUDA machine supports one format in a task; use "
                              "--device cpu, or the target cpu");
        else if (mgl_weight_format_is_scaled(format))
            status = check_scaled(program, s, err);
        else if (!mgl_weight_format_is(format, program->weight_dtype))
            status = mgl_fail(err, MGL_BAD_INPUT, name,
                              "the format of the unscaled matrix is not the format of the types "
                              "line, which the CUDA machine requires; lower the model for the GPU");
    }
    return status;
}

static mgl_status check_formats(const mgl_program *program, mgl_error *err)
{
    mgl_weight_format formats[MGL_CUDA_FORMATS];
    const int count = mgl_cuda_formats(program, formats);
    const int ranges = MGL_CUDA_RANGE_BYTES(mgl_limits_most(&program->limits), program->exec.warps);
    mgl_status status = MGL_OK;
    if (count > MGL_CUDA_FORMATS)
        return mgl_fail(err, MGL_BAD_INPUT, "formats",
                        "the matrices have %d or more scaled weight formats; the CUDA machine "
                        "supports up to %d; use --device cpu, or the target cpu",
                        count, MGL_CUDA_FORMATS);
    if (count > 0 && program->exec.stage_bytes < ranges)
        return mgl_fail(err, MGL_BAD_INPUT, "stage_bytes",
                        "scaled weights need at least %d bytes for %d rows on the CUDA machine; "
                        "increase stage_bytes",
                        ranges, mgl_limits_most(&program->limits));
    for (int i = 0; i < program->task_count && !status; i++)
        status = check_task_formats(program, &program->tasks[i], err);
    return status;
}

mgl_status mgl_cuda_check_limits(const mgl_program *program, mgl_error *err)
{
    mgl_status status = check_exec(program, err);
    if (!status)
        status = check_geometry(program, err);
    return status ? status : check_formats(program, err);
}

/* ---- two lists ------------------------------------------------------------------------------ */

/* A position among the segments of a queue's tasks. */
typedef struct place {
    int task, segment; /* indices within the queue and within the task */
} place;

/* The next segment of the queue; NULL at the end. */
static const mgl_segment *next_segment(const mgl_program *list, const mgl_run *tasks, place *at)
{
    for (; at->task < tasks->count; at->task++, at->segment = 0) {
        const mgl_run *run = &list->tasks[tasks->first + at->task].segments;
        if (at->segment < run->count)
            return &list->segments[run->first + at->segment++];
    }
    return NULL;
}

static bool is_same(const mgl_segment *a, const mgl_segment *b)
{
    return a->tensor == b->tensor && a->tensor2 == b->tensor2 && a->layout == b->layout &&
           a->row_lo == b->row_lo && a->row_hi == b->row_hi && a->col_lo == b->col_lo &&
           a->col_hi == b->col_hi;
}

mgl_status mgl_cuda_check_order(const mgl_program *program, mgl_error *err)
{
    const mgl_program *second_list = program->second;
    for (int q = 0; q < program->queue_count; q++) {
        place first = {0}, second = {0};
        for (;;) {
            const mgl_segment *a = next_segment(program, &program->queues[q].tasks, &first);
            const mgl_segment *b =
                next_segment(second_list, &second_list->queues[q].tasks, &second);
            if (!a && !b)
                break;
            if (a && b && is_same(a, b))
                continue;
            char where[32];
            snprintf(where, sizeof where, "queue %d", q);
            return mgl_fail(err, MGL_BAD_INPUT, where,
                            "the CUDA machine streams a tape alike for both lists: the second "
                            "list must take the segments of the first in the same order, and "
                            "here it %s one of %s",
                            b ? "takes" : "leaves out", program->tensors[(b ? b : a)->tensor].name);
        }
    }
    return MGL_OK;
}
