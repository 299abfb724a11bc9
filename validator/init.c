/*
 * MG5xx: every region read was written before, and MG601: so were the outputs that sample reads.
 *
 * Behind race.c any write that overlaps a read is ordered with it, so "happens before" is "stands
 * earlier in the order of the simulation". Tasks are taken in that order; a read must be covered
 * by the union of the boxes written so far in this epoch. Written stays written within an epoch,
 * so each box is examined until it is covered once. Values of earlier epochs do not count: an
 * epoch may have more rows than the one before.
 *
 * Not asked for: const buffers (the host), control, table, sequence and prompt (the host, then
 * sample of the epoch before). The cache: [:pos] of a head is initialised when some task appends to
 * this head in every epoch.
 */
#include "validator/check.h"

#include "base/memory.h"
#include "base/text.h"

#include <inttypes.h>

struct coverage {
    mgl_check *check;
    bool *written;     /* (boxes) */
    bool *covered;     /* (boxes) found to be covered */
    mgl_region *parts; /* what is left of the box under examination */
    size_t part_count, part_capacity;
};

static void add_part(struct coverage *c, const mgl_region *part)
{
    if (mgl_grow((void **)&c->parts, &c->part_capacity, c->part_count, sizeof *part))
        c->parts[c->part_count++] = *part;
    else
        c->check->no_memory = true;
}

/* Adds what of `part` lies outside `box`: the slabs on either side, dimension by dimension. */
static void add_outside(struct coverage *c, mgl_region part, const mgl_region *box, int rank)
{
    for (int d = 0; d < rank; d++) {
        const mgl_range *cut = &box->ranges[d];
        if (part.ranges[d].kind != MGL_RANGE_FIXED || cut->kind != MGL_RANGE_FIXED)
            continue;
        mgl_region slab = part;
        if (part.ranges[d].lo < cut->lo) {
            slab.ranges[d].hi = cut->lo;
            add_part(c, &slab);
            part.ranges[d].lo = cut->lo;
        }
        slab = part;
        if (part.ranges[d].hi > cut->hi) {
            slab.ranges[d].lo = cut->hi;
            add_part(c, &slab);
            part.ranges[d].hi = cut->hi;
        }
    }
}

/* Takes the box away from all parts. */
static void subtract(struct coverage *c, const mgl_region *box, int rank)
{
    size_t count = c->part_count, kept = 0;
    if (!mgl_check_spend(c->check, count))
        return;
    for (size_t i = 0; i < count; i++) {
        mgl_region part = c->parts[i];
        if (mgl_region_overlaps(&part, box, rank))
            add_outside(c, part, box, rank);
        else
            c->parts[kept++] = part;
        if (c->check->no_memory)
            return;
    }
    /* What was added behind the old parts moves up to those that were kept. */
    for (size_t i = count; i < c->part_count; i++)
        c->parts[kept++] = c->parts[i];
    c->part_count = kept;
}

/* Whether the written boxes cover the region; if not, c->parts holds what they leave. */
static bool covers(struct coverage *c, const mgl_region *region)
{
    const mgl_program *p = c->check->program;
    int rank = p->buffers[region->buffer].rank, count;
    const int *boxes = mgl_boxes_overlapping(c->check, region, &count);
    c->part_count = 0;
    add_part(c, region);
    for (int i = 0; i < count && c->part_count > 0 && mgl_check_goes_on(c->check); i++)
        if (c->written[boxes[i]])
            subtract(c, &p->regions[c->check->boxes.boxes[boxes[i]].region], rank);
    return c->part_count == 0;
}

static void report_uncovered(struct coverage *c, int task, int region)
{
    mgl_check *check = c->check;
    const mgl_program *p = check->program;
    const mgl_buffer *buffer = &p->buffers[p->regions[region].buffer];
    char name[MGL_NAME_TEXT], place[MGL_NAME_TEXT];
    mgl_check_report(check, buffer->space == MGL_SPACE_IO ? 601 : 501, task, 0,
                     "%s reads %s, which no task before it writes completely in this epoch",
                     mgl_check_task(check, task, name), mgl_check_region(check, region, place));
    for (size_t i = 0; i < c->part_count && i < 8; i++) {
        mgl_text text = {0};
        for (int d = 0; d < buffer->rank; d++) {
            const mgl_range *range = &c->parts[i].ranges[d];
            if (range->kind == MGL_RANGE_FIXED)
                mgl_text_format(&text, "%s%" PRId64 ":%" PRId64, d ? "," : "", range->lo,
                                range->hi);
            else
                mgl_text_format(&text, "%s:rows", d ? "," : "");
        }
        if (text.failed)
            check->no_memory = true;
        else
            mgl_check_witness(check, "not written: %.48s[%s]", buffer->name, text.bytes);
        mgl_text_clear(&text);
    }
}

/* Whether an operand must be written in the same epoch. */
static bool needs_write(const mgl_check *check, int task, int operand)
{
    const mgl_program *p = check->program;
    const mgl_region *region = &p->regions[mgl_task_region(&p->tasks[task], operand)];
    mgl_space space = p->buffers[region->buffer].space;
    return space == MGL_SPACE_ACT ||
           (space == MGL_SPACE_IO && task == check->sample && operand <= MGL_SAMPLE_BEST_ID);
}

static void check_task(struct coverage *c, int t)
{
    mgl_check *check = c->check;
    const mgl_task *task = &check->program->tasks[t];
    for (int i = 0; i < task->in.count && !check->no_memory; i++) {
        int region = mgl_task_region(task, i), box = check->boxes.of_region[region];
        if (box < 0 || c->covered[box] || !needs_write(check, t, i))
            continue;
        if (covers(c, &check->program->regions[region]))
            c->covered[box] = true;
        else if (mgl_check_goes_on(check))
            report_uncovered(c, t, region);
    }
    for (int i = 0; i < task->out.count; i++) {
        int box = check->boxes.of_region[task->out.first + i];
        if (box >= 0)
            c->written[box] = true;
    }
}

/* ---- the cache ---- */

/* [:pos] of a kv head that nobody appends to. Both regions name one head and all of the rest. */
static void check_cache(mgl_check *check, int t, int operand)
{
    const mgl_program *p = check->program;
    int index = mgl_task_region(&p->tasks[t], operand), count;
    mgl_region now = p->regions[index];
    now.ranges[2].kind = MGL_RANGE_NOW;
    const int *boxes = mgl_boxes_overlapping(check, &now, &count);
    for (int i = 0; i < count; i++)
        if (p->regions[check->boxes.boxes[boxes[i]].region].ranges[2].kind == MGL_RANGE_NOW)
            return;
    char name[MGL_NAME_TEXT], place[MGL_NAME_TEXT];
    mgl_check_report(check, 502, t, 0, "%s reads %s, but no task appends to this head of %.48s",
                     mgl_check_task(check, t, name), mgl_check_region(check, index, place),
                     p->buffers[now.buffer].name);
}

void mgl_check_init(mgl_check *check)
{
    const mgl_program *p = check->program;
    size_t count = (size_t)check->boxes.count;
    struct coverage c = {.check = check,
                         .written = mgl_check_alloc(check, count, sizeof *c.written),
                         .covered = mgl_check_alloc(check, count, sizeof *c.covered)};
    for (int i = 0; i < p->task_count && mgl_check_goes_on(check); i++) {
        int t = check->order[i];
        check_task(&c, t);
        for (int operand = 0; operand < p->tasks[t].in.count; operand++) {
            int buffer = p->regions[mgl_task_region(&p->tasks[t], operand)].buffer;
            if (p->buffers[buffer].space == MGL_SPACE_KV)
                check_cache(check, t, operand);
        }
    }
    mgl_free(c.written);
    mgl_free(c.covered);
    mgl_free(c.parts);
}
