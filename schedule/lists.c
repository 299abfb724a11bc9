/*
 * Implements lists.h: finds the segments of the second list on the tapes of the first by binary
 * search, and joins both lists into one program.
 */
#include "schedule/lists.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"

/* ---- locations of segments ------------------------------------------------------------------- */

/* A segment of the first list. */
struct place {
    const mgl_segment *segment;
    int queue;
};

/* Orders by tensor, then by first row. */
static int compare_places(const void *a, const void *b)
{
    const mgl_segment *x = ((const struct place *)a)->segment;
    const mgl_segment *y = ((const struct place *)b)->segment;
    if (x->tensor != y->tensor)
        return x->tensor < y->tensor ? -1 : 1;
    return (x->row_lo > y->row_lo) - (x->row_lo < y->row_lo);
}

/* All segments of a list in that order. NULL if memory ran out. */
static struct place *sort_segments(const mgl_program *p)
{
    struct place *places = mgl_alloc_zero((size_t)p->segment_count + 1, sizeof *places);
    int count = 0;
    for (int q = 0; places && q < p->queue_count; q++)
        for (int t = 0; t < p->queues[q].tasks.count; t++) {
            const mgl_run *run = &p->tasks[p->queues[q].tasks.first + t].segments;
            for (int s = run->first; s < run->first + run->count; s++)
                places[count++] = (struct place){&p->segments[s], q};
        }
    if (places)
        qsort(places, (size_t)count, sizeof *places, compare_places);
    return places;
}

/* The last place with the same tensor that begins at or before the segment's first row. NULL:
 * none. */
static const struct place *find_place(const struct place *places, int count,
                                      const mgl_segment *segment)
{
    const struct place wanted = {segment, 0};
    int lo = 0, hi = count;
    while (lo < hi) {
        int middle = lo + (hi - lo) / 2;
        if (compare_places(&places[middle], &wanted) <= 0)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo > 0 ? &places[lo - 1] : NULL;
}

static bool is_part(const mgl_segment *part, const mgl_segment *of)
{
    return part->tensor == of->tensor && part->tensor2 == of->tensor2 &&
           part->layout == of->layout && part->col_lo == of->col_lo && part->col_hi == of->col_hi &&
           part->row_lo >= of->row_lo && part->row_hi <= of->row_hi &&
           (part->row_lo - of->row_lo) % MGL_ROW_GROUP == 0;
}

static mgl_home home_of(const mgl_program *p, const struct place *place, const mgl_segment *part)
{
    if (!place || !is_part(part, place->segment))
        return (mgl_home){.queue = -1};
    mgl_segment before = *place->segment;
    before.row_hi = part->row_lo;
    return (mgl_home){place->queue, place->segment->offset + mgl_segment_bytes(p, &before)};
}

mgl_status mgl_program_find_homes(const mgl_program *program, const mgl_program *second,
                                  mgl_home *homes, mgl_error *err)
{
    struct place *places = sort_segments(program);
    if (!places)
        return mgl_fail_memory(err, (size_t)program->segment_count * sizeof *places);
    for (int i = 0; i < second->segment_count; i++)
        homes[i] =
            home_of(program, find_place(places, program->segment_count, &second->segments[i]),
                    &second->segments[i]);
    mgl_free(places);
    return MGL_OK;
}

/* ---- both lists in one ---------------------------------------------------------------------- */

static void copy_task(mgl_program *to, const mgl_program *from, const mgl_task *task)
{
    mgl_program_add_task(to, task->op);
    mgl_program_set_variant(to, task->variant);
    if (!mgl_program_failed(to))
        to->tasks[to->task_count - 1].line = task->line;
    for (int i = 0; i < task->in.count; i++)
        mgl_program_add_in(to, &from->regions[task->in.first + i]);
    for (int i = 0; i < task->segments.count; i++)
        mgl_program_add_segment(to, &from->segments[task->segments.first + i]);
    for (int i = 0; i < task->out.count; i++)
        mgl_program_add_out(to, &from->regions[task->out.first + i]);
    for (int i = 0; i < task->waits.count; i++) {
        const mgl_wait *wait = &from->waits[task->waits.first + i];
        mgl_program_add_wait(to, wait->counter, wait->threshold);
    }
    for (int i = 0; i < task->signals.count; i++)
        mgl_program_add_signal(to, from->signals[task->signals.first + i]);
}

/* Copies the declarations of the complete list, and the queues of the first list. */
static void copy_first(mgl_program *to, const mgl_program *program)
{
    const mgl_program *whole = mgl_program_whole(program);
    to->target = program->target;
    to->geometry = program->geometry;
    to->limits = program->limits;
    to->exec = program->exec;
    to->weight_dtype = program->weight_dtype;
    to->embedding_dtype = program->embedding_dtype;
    to->exchange_dtype = program->exchange_dtype;
    to->kv_dtype = program->kv_dtype;
    mgl_program_declare_all(to, whole);
    for (int q = 0; q < program->queue_count && !mgl_program_failed(to); q++) {
        const mgl_queue *queue = &program->queues[q];
        if (mgl_program_add_queue(to) < 0)
            return;
        to->queues[q].tape_bytes = queue->tape_bytes;
        to->queues[q].tape_pad = queue->tape_pad;
        to->queues[q].line = queue->line;
        for (int t = 0; t < queue->tasks.count && !mgl_program_failed(to); t++)
            copy_task(to, program, &program->tasks[queue->tasks.first + t]);
    }
}

/* Appends the tasks of the second list, outside of all queues. */
static void copy_second(mgl_program *to, const mgl_program *second, mgl_run *runs)
{
    for (int q = 0; q < second->queue_count && !mgl_program_failed(to); q++) {
        const mgl_run *tasks = &second->queues[q].tasks;
        runs[q] = (mgl_run){to->task_count, tasks->count};
        for (int t = 0; t < tasks->count && !mgl_program_failed(to); t++)
            copy_task(to, second, &second->tasks[tasks->first + t]);
    }
    if (!mgl_program_failed(to)) /* removes them from the newest queue, which received all of
                                    them */
        to->queues[to->queue_count - 1].tasks.count -= second->task_count;
}

/* Sets the offsets of second-list segments, and the tapes of all segments. */
static mgl_status place_segments(const mgl_program *program, mgl_joined *out, mgl_error *err)
{
    const mgl_program *second = program->second;
    mgl_home *homes = mgl_alloc_zero((size_t)second->segment_count + 1, sizeof *homes);
    mgl_status status =
        homes ? mgl_program_find_homes(program, second, homes, err) : mgl_fail_memory(err, 0);
    for (int q = 0; !status && q < program->queue_count; q++)
        for (int t = 0; t < program->queues[q].tasks.count; t++) {
            const mgl_run *run = &program->tasks[program->queues[q].tasks.first + t].segments;
            for (int s = run->first; s < run->first + run->count; s++)
                out->tapes[s] = q;
        }
    for (int i = 0; !status && i < second->segment_count; i++) {
        if (homes[i].queue < 0)
            status =
                mgl_fail(err, MGL_BAD_INPUT, program->tensors[second->segments[i].tensor].name,
                         "a segment of the second list is not part of a segment of the first list");
        out->tapes[program->segment_count + i] = homes[i].queue;
        out->program->segments[program->segment_count + i].offset = homes[i].offset;
    }
    mgl_free(homes);
    return status;
}

mgl_status mgl_program_join(const mgl_program *program, mgl_joined *out, mgl_error *err)
{
    const mgl_program *second = program->second;
    *out = (mgl_joined){0};
    MGL_ASSERT(second && second->queue_count == program->queue_count);
    mgl_status status = mgl_program_new(&out->program, err);
    if (status)
        return status;
    size_t segments = (size_t)program->segment_count + (size_t)second->segment_count;
    out->second = mgl_alloc_zero((size_t)program->queue_count, sizeof *out->second);
    out->tapes = mgl_alloc_zero(segments + 1, sizeof *out->tapes);
    if (out->second && out->tapes) {
        copy_first(out->program, program);
        copy_second(out->program, second, out->second);
    }
    if (!out->second || !out->tapes || mgl_program_failed(out->program))
        status = mgl_fail_memory(err, 0);
    if (!status)
        status = place_segments(program, out, err);
    if (status)
        mgl_joined_clear(out);
    return status;
}

void mgl_joined_clear(mgl_joined *joined)
{
    mgl_program_free(joined->program);
    mgl_free(joined->second);
    mgl_free(joined->tapes);
    *joined = (mgl_joined){0};
}
