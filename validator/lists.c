/*
 * The second list of a program fits the first. The other passes prove each list alone: any sequence
 * of its epochs ends, is free of races, reads what was written and computes the graph. This file
 * proves that epochs of the other list in between change nothing:
 *
 *     MG130  both lists see the same declarations by the same indices; only one list uses a buffer
 *            with rows, and the data that an epoch passes to the next is in the same buffers
 *     MG208  every enter, of either list, waits for the sample of the previous epoch, of either
 *            list: so all epochs are totally ordered (deadlock.c)
 *     MG504  a head of a cache that one list reads is appended to in epochs of both
 *     MG605  the second list's weights lie on the first list's tapes
 *     MG709  both lists keep the same values in a head of a cache
 *
 * So between two epochs of a list no task writes data that only that list uses. The cache and io
 * buffers hold what an epoch of the list itself would have left there.
 */
#include "validator/check.h"

#include "base/memory.h"
#include "schedule/lists.h"

#include <inttypes.h>
#include <string.h>

/* ---- declarations --------------------------------------------------------------------------- */

static bool same_settings(const mgl_program *a, const mgl_program *b)
{
    return !strcmp(a->target.arch, b->target.arch) && a->target.queues == b->target.queues &&
           a->target.shared_bytes == b->target.shared_bytes &&
           mgl_geometry_equal(&a->geometry, &b->geometry) &&
           a->limits.sequences == b->limits.sequences && a->limits.capacity == b->limits.capacity &&
           a->limits.unsplit == b->limits.unsplit && b->limits.rows == a->limits.second_rows &&
           b->limits.second_rows == a->limits.second_rows &&
           b->limits.first_rows == a->limits.rows && a->exec.page_bytes == b->exec.page_bytes &&
           a->exec.warps == b->exec.warps && a->weight_dtype == b->weight_dtype &&
           a->embedding_dtype == b->embedding_dtype && a->exchange_dtype == b->exchange_dtype &&
           a->kv_dtype == b->kv_dtype && a->queue_count == b->queue_count;
}

/* Whether the list's declarations begin with those of the first list. */
static bool inherits(const mgl_program *first, const mgl_program *p)
{
    bool same = first->tensor_count == p->tensor_count && first->buffer_count <= p->buffer_count &&
                first->counter_count <= p->counter_count;
    for (int i = 0; same && i < first->tensor_count; i++)
        same = mgl_program_same_tensor(&first->tensors[i], &p->tensors[i]);
    for (int i = 0; same && i < first->buffer_count; i++)
        same = mgl_program_same_buffer(&first->buffers[i], &p->buffers[i]);
    for (int i = 0; same && i < first->counter_count; i++)
        same = !strcmp(first->counters[i].name, p->counters[i].name);
    return same;
}

static void check_own(mgl_check *check)
{
    const mgl_program *p = check->program;
    for (int i = check->first->program->buffer_count; i < p->buffer_count; i++) {
        const mgl_buffer *b = &p->buffers[i];
        if (b->space != MGL_SPACE_ACT && b->space != MGL_SPACE_IO)
            mgl_check_report(check, 130, -1, b->line,
                             "buffer %.64s is %s: constants and caches are declared by the first "
                             "list, for both",
                             b->name, mgl_space_name(b->space));
    }
    for (int q = 0; q < p->queue_count; q++)
        if (p->queues[q].tape_bytes != 0 || p->queues[q].tape_pad != 0)
            mgl_check_report(check, 130, -1, p->queues[q].line,
                             "queue %d of the second list has a tape; tapes are the first list's",
                             q);
}

void mgl_check_shared(mgl_check *check)
{
    if (!check->first)
        return;
    if (!same_settings(check->first->program, check->program) ||
        !inherits(check->first->program, check->program))
        mgl_check_report(check, 130, -1, 0,
                         "the second list does not begin with the first one's settings and "
                         "declarations");
    else
        check_own(check);
}

/* ---- what the lists use --------------------------------------------------------------------- */

static bool has_rows(const mgl_buffer *b)
{
    bool rows = false;
    for (int d = 0; d < b->rank; d++)
        rows |= b->extents[d].symbol == MGL_ROWS;
    return rows;
}

void mgl_check_rows(mgl_check *check)
{
    const mgl_program *p = check->program;
    for (int t = 0; t < p->task_count && check->first; t++)
        for (int i = 0; i < p->tasks[t].in.count + p->tasks[t].out.count; i++) {
            int region = mgl_task_region(&p->tasks[t], i), buffer = p->regions[region].buffer;
            char name[MGL_NAME_TEXT];
            if (buffer < check->first->program->buffer_count && has_rows(&p->buffers[buffer]) &&
                mgl_check_goes_on(check))
                mgl_check_report(check, 130, t, 0,
                                 "%s uses %.64s, a buffer with rows of the first list",
                                 mgl_check_task(check, t, name), p->buffers[buffer].name);
        }
}

/* The name of a region's buffer; the region may be missing. */
static const char *name_of(const mgl_program *program, const mgl_region *region)
{
    return region ? program->buffers[region->buffer].name : "none";
}

/* Checks the buffers by which sample passes data to the next epoch. */
static void check_roles(mgl_check *check)
{
    static const int roles[] = {MGL_OPERAND(sample, sequence), MGL_OPERAND(sample, prompt),
                                MGL_OPERAND(sample, control),  MGL_OPERAND(sample, table),
                                MGL_OPERAND(sample, output),   MGL_OPERAND(sample, score),
                                MGL_OPERAND(sample, counts)};
    const mgl_check *first = check->first;
    const mgl_task *a = &first->program->tasks[first->sample];
    const mgl_task *b = &check->program->tasks[check->sample];
    const mgl_op_info *op = mgl_op_get(MGL_OP_SAMPLE);
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        const mgl_region *wanted = mgl_task_operand(first->program, a, roles[i]);
        const mgl_region *own = mgl_task_operand(check->program, b, roles[i]);
        char name[MGL_NAME_TEXT];
        if ((own ? own->buffer : -1) != (wanted ? wanted->buffer : -1))
            mgl_check_report(check, 130, check->sample, 0,
                             "%s: its %s is %.48s, but the first list's is %.48s; both lists "
                             "use one buffer",
                             mgl_check_task(check, check->sample, name),
                             op->operands[roles[i]].name, name_of(check->program, own),
                             name_of(check->program, wanted));
    }
}

/* ---- the epoch edge ------------------------------------------------------------------------- */

/* Whether the enter waits for a counter that is the epoch edge of both lists. */
static bool waits_for_both(const mgl_check *list, const mgl_check *other, int enter)
{
    const mgl_task *task = &list->program->tasks[enter];
    for (int i = task->waits.first; i < task->waits.first + task->waits.count; i++) {
        const mgl_wait *wait = &list->program->waits[i];
        if (wait->threshold == 0 && mgl_check_is_edge(list, wait->counter) &&
            wait->counter < other->program->counter_count &&
            mgl_check_is_edge(other, wait->counter))
            return true;
    }
    return false;
}

/* Checks every enter of `list`, which is one of the two lists. */
static void check_edges(mgl_check *check, const mgl_check *list, const mgl_check *other)
{
    for (int q = 0; q < list->program->queue_count; q++) {
        int enter = list->program->queues[q].tasks.first;
        char name[MGL_NAME_TEXT];
        if (!waits_for_both(list, other, enter) && mgl_check_goes_on(check))
            mgl_check_report(
                check, 208, -1, list->program->tasks[enter].line,
                "%s does not wait, with threshold 0, for a counter that only the samples of "
                "both lists signal",
                mgl_check_task(list, enter, name));
    }
}

/* ---- the cache ------------------------------------------------------------------------------ */

/* Whether tasks of the list append all rows to the head of a cache that a region names. */
static bool appends(mgl_check *list, const mgl_region *region)
{
    mgl_region now = *region;
    int count;
    now.ranges[2] = (mgl_range){.kind = MGL_RANGE_NOW};
    const int *boxes = mgl_boxes_overlapping(list, &now, &count);
    return mgl_check_is_appended(list, boxes, count);
}

/* `writer` must append to every cache head that `reader` reads from earlier epochs. */
static void check_appended(mgl_check *check, const mgl_check *reader, mgl_check *writer)
{
    const mgl_program *p = reader->program;
    for (int i = 0; i < p->region_count && mgl_check_goes_on(check); i++) {
        const mgl_region *region = &p->regions[i];
        char place[MGL_NAME_TEXT];
        if (p->buffers[region->buffer].space != MGL_SPACE_KV ||
            region->ranges[2].kind != MGL_RANGE_PAST || appends(writer, region))
            continue;
        mgl_check_report(check, 504, -1, 0,
                         "%s list reads %s, but no tasks of the other list append all rows to this "
                         "head",
                         reader == check ? "the second" : "the first",
                         mgl_check_region(reader, i, place));
    }
}

/* ---- the tapes ------------------------------------------------------------------------------ */

static void check_homes(mgl_check *check)
{
    const mgl_program *p = check->program;
    mgl_home *homes = mgl_check_alloc(check, (size_t)p->segment_count, sizeof *homes);
    mgl_error err;
    if (homes && mgl_program_find_homes(check->first->program, p, homes, &err))
        check->no_memory = true;
    for (int t = 0; t < p->task_count && !check->no_memory; t++)
        for (int i = 0; i < p->tasks[t].segments.count; i++) {
            int index = p->tasks[t].segments.first + i;
            const mgl_segment *s = &p->segments[index];
            char name[MGL_NAME_TEXT];
            if (homes[index].queue >= 0 || !mgl_check_goes_on(check))
                continue;
            mgl_check_report(check, 605, t, 0,
                             "%s: rows %" PRId64 ":%" PRId64
                             " of %.64s are not part of one segment of the first list",
                             mgl_check_task(check, t, name), s->row_lo, s->row_hi,
                             p->tensors[s->tensor].name);
        }
    mgl_free(homes);
}

void mgl_check_joined(mgl_check *check)
{
    mgl_check *first = check->first;
    if (!first || !mgl_check_clean(first))
        return;
    check_roles(check);
    check_edges(check, check, first);
    check_edges(check, first, check);
    check_appended(check, check, first);
    check_appended(check, first, check);
    check_homes(check);
}

/* ---- meaning -------------------------------------------------------------------------------- */

void mgl_check_cached(mgl_check *check)
{
    const mgl_program *p = check->program;
    if (!check->first || !check->cached || !check->first->cached)
        return;
    const mgl_cached *a = check->first->cached, *b = check->cached;
    for (int i = 0; i < p->buffer_count; i++)
        for (int h = 0; p->buffers[i].space == MGL_SPACE_KV && h < p->geometry.kv_heads;
             h++, a++, b++)
            if ((a->node != b->node || a->lo != b->lo) && mgl_check_goes_on(check))
                mgl_check_report(check, 709, -1, p->buffers[i].line,
                                 "the lists append different values to head %d of %.64s", h,
                                 p->buffers[i].name);
}
