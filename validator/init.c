/*
 * MG5xx: every region is written before it is read; MG601 for the outputs that sample reads.
 *
 * After race.c, any write that overlaps a read is ordered with it, so "happens before" equals
 * "earlier in the order of the simulation". The pass visits tasks in that order. A read must be
 * covered by the union of the boxes written so far in this epoch. Written data stays written within
 * an epoch, so each box is examined until it is covered once. Values of earlier epochs do not
 * count: an epoch may have more rows than the previous one.
 *
 * Not checked here: flag words (their readers wait for them: flags.c), const buffers (the host
 * fills them), control, table, sequence, prompt and counts (the host fills them, then sample of the
 * previous epoch). The cache: [:pos] of a head is initialized if some task appends to this head in
 * every epoch.
 */
#include "validator/check.h"

#include "base/memory.h"

struct coverage {
    mgl_check *check;
    mgl_cover cover;
    bool *written; /* (boxes) */
    bool *covered; /* (boxes) known to be covered */
};

static void report_uncovered(struct coverage *c, int task, int region)
{
    mgl_check *check = c->check;
    const mgl_program *p = check->program;
    const mgl_buffer *buffer = &p->buffers[p->regions[region].buffer];
    char name[MGL_NAME_TEXT], place[MGL_NAME_TEXT];
    mgl_check_report(check, buffer->space == MGL_SPACE_IO ? 601 : 501, task, 0,
                     "%s reads %s, which no task before it writes completely in this epoch",
                     mgl_check_task(check, task, name), mgl_check_region(check, region, place));
    mgl_cover_witness(&c->cover, "not written");
}

/* Whether the operand of sample holds results of this epoch's heads. */
static bool is_of_heads(int operand)
{
    return operand <= MGL_OPERAND(sample, best_id) || operand == MGL_OPERAND(sample, penalized);
}

/* Whether the input at a place must be written in the same epoch. */
static bool needs_write(const mgl_check *check, int task, int place)
{
    const mgl_program *p = check->program;
    const mgl_region *region = &p->regions[mgl_task_region(&p->tasks[task], place)];
    mgl_space space = p->buffers[region->buffer].space;
    return (space == MGL_SPACE_ACT && !region->flag) ||
           (space == MGL_SPACE_IO && task == check->sample &&
            is_of_heads(mgl_task_operand_at(&p->tasks[task], place))) ||
           (p->tasks[task].op == MGL_OP_DRAW && place != MGL_OPERAND(draw, sequence));
}

static void check_task(struct coverage *c, int t)
{
    mgl_check *check = c->check;
    const mgl_task *task = &check->program->tasks[t];
    for (int i = 0; i < task->in.count && !check->no_memory; i++) {
        int region = mgl_task_region(task, i), box = check->boxes.of_region[region];
        if (box < 0 || c->covered[box] || !needs_write(check, t, i))
            continue;
        if (mgl_cover_all(&c->cover, c->written, &check->program->regions[region]))
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

bool mgl_check_is_appended(const mgl_check *check, const int *boxes, int count)
{
    bool rows[MGL_ROWS_KINDS] = {false};
    for (int i = 0; i < count; i++) {
        const mgl_range *now =
            &check->program->regions[check->boxes.boxes[boxes[i]].region].ranges[2];
        for (int kind = 0; now->kind == MGL_RANGE_NOW && kind < MGL_ROWS_KINDS; kind++)
            rows[kind] |= !mgl_range_has_row_kind(now) || now->lo == kind;
    }
    return rows[MGL_ROWS_UNSPLIT] && rows[MGL_ROWS_SPLIT];
}

/* Reports [:pos] of a kv head if no task appends to that head, or if the tasks that append omit the
 * unsplit or the split rows. Both regions name one head and all of the other dimensions. */
static void check_cache(mgl_check *check, int t, int operand)
{
    const mgl_program *p = check->program;
    int index = mgl_task_region(&p->tasks[t], operand), count;
    mgl_region now = p->regions[index];
    now.ranges[2] = (mgl_range){.kind = MGL_RANGE_NOW};
    const int *boxes = mgl_boxes_overlapping(check, &now, &count);
    if (mgl_check_is_appended(check, boxes, count))
        return;
    char name[MGL_NAME_TEXT], place[MGL_NAME_TEXT];
    mgl_check_report(check, 502, t, 0,
                     "%s reads %s, but this head of %.48s has no tasks that append all rows",
                     mgl_check_task(check, t, name), mgl_check_region(check, index, place),
                     p->buffers[now.buffer].name);
}

void mgl_check_init(mgl_check *check)
{
    const mgl_program *p = check->program;
    size_t count = (size_t)check->boxes.count;
    struct coverage c = {.check = check,
                         .cover = {.check = check},
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
    mgl_free(c.cover.parts);
}
