/*
 * Moves that place unchanged tasks elsewhere: earlier or later on their queue (shift, clear), or on
 * another queue (place, sample). Each function applies one mgl_move to an mgl_edit (edit.h);
 * apply.c calls it. A queue clears the flagged words that its tasks write. If a task moves to
 * another queue, the clearing of its words moves too.
 */
#include "schedule/moves/edit.h"

enum { MOST_TASKS = 256 /* tasks of a step on a queue */ };

/* Moves `count` tasks from place `first` by `places`. Enter stays the first task of a queue, and
 * sample the last. */
static mgl_status shift(mgl_edit *e, int queue, size_t first, size_t count, int places)
{
    mgl_edit_list *list = &e->queues[queue];
    const size_t before = first > 0 ? first - 1 : 0, behind = list->count - first - count;
    const bool has_sample = e->roles[list->items[list->count - 1]].step == MGL_EDIT_SAMPLE;
    const size_t room = places < 0 ? before : behind - (behind > 0 && has_sample);
    const size_t by = (size_t)(places < 0 ? -(int64_t)places : places);
    if (by > room)
        return mgl_edit_refuse(e, "only %zu tasks of queue %d are %s", room, queue,
                               places < 0 ? "before it" : "after it");
    for (size_t step = 0; step < by; step++)
        for (size_t i = 0; i < count; i++) {
            size_t at = places < 0 ? first - step + i - 1 : first + step + count - 1 - i;
            int kept = list->items[at];
            list->items[at] = list->items[at + 1];
            list->items[at + 1] = kept;
        }
    return MGL_OK;
}

static mgl_status shift_step(mgl_edit *e, int layer, const mgl_move *move)
{
    size_t places[MOST_TASKS];
    const size_t count = mgl_edit_find(e, move->from, layer, move->step, places, MOST_TASKS);
    if (count == 0)
        return mgl_edit_refuse(e, "queue %d has no task of the step in layer %d", move->from,
                               layer);
    if (places[count - 1] - places[0] + 1 != count)
        return mgl_edit_refuse(e, "the step's tasks are not adjacent on queue %d", move->from);
    return shift(e, move->from, places[0], count, move->count);
}

mgl_status mgl_move_shift(mgl_edit *e, const mgl_move *move)
{
    int first, end;
    mgl_status status = mgl_edit_check_queue(e, move->from);
    if (!status)
        status = mgl_edit_layers(e, move, &first, &end);
    for (int layer = status ? 0 : first; !status && layer < end; layer++)
        status = shift_step(e, layer, move);
    return status;
}

/* ---- attention and merges on another queue --------------------------------------------------- */

static mgl_status place_step(mgl_edit *e, int layer, const mgl_move *move)
{
    size_t places[MOST_TASKS];
    const size_t count = mgl_edit_find(e, move->from, layer, move->step, places, MOST_TASKS);
    if (count == 0)
        return mgl_edit_refuse(e, "queue %d has no task of the step in layer %d", move->from,
                               layer);
    const size_t place = move->from < move->to ? places[count - 1] : places[0];
    const int task = mgl_edit_at(e, move->from, place);
    mgl_edit_remove(e, move->from, place);
    mgl_status status = mgl_edit_put(e, move->to, task);
    if (!status)
        status = mgl_edit_mend_like(e, move->from, layer, task);
    return status ? status : mgl_edit_mend_like(e, move->to, layer, task);
}

mgl_status mgl_move_place(mgl_edit *e, const mgl_move *move)
{
    int first, end;
    mgl_status status = mgl_edit_check_queue(e, move->from);
    if (!status)
        status = mgl_edit_check_queue(e, move->to);
    if (!status)
        status = mgl_edit_layers(e, move, &first, &end);
    if (status)
        return status;
    if (move->step != MGL_STEP_ATTEND && move->step != MGL_EDIT_MERGE)
        return mgl_edit_refuse(e, "only attend and merge are placed as tasks: see rows and queues");
    if (move->from == move->to)
        return mgl_edit_refuse(e, "the task is on that queue already");
    for (int layer = first; layer < end && !status; layer++)
        status = place_step(e, layer, move);
    return status;
}

/* ---- clears ---------------------------------------------------------------------------------- */

/* Whether the queue writes flagged words of the buffer in that step of the layer. */
static bool writes(const mgl_edit *e, int queue, int layer, int step, int buffer)
{
    for (size_t i = 0; i < e->queues[queue].count; i++) {
        const int task = mgl_edit_at(e, queue, i);
        const mgl_run out = e->p->tasks[task].out;
        if (e->roles[task].layer != layer || e->roles[task].step != step)
            continue;
        for (int j = out.first; j < out.first + out.count; j++)
            if (e->p->regions[j].flag && e->p->regions[j].buffer == buffer)
                return true;
    }
    return false;
}

/* Makes a new clear with a part of the regions of `task`, which is a clear. If `written`, the part
 * is the regions that the step writes, else the others. *some: whether the part has a region.
 * Returns the new task; -1: no memory. */
static int split_clear(mgl_edit *e, int queue, int task, int step, bool written, bool *some)
{
    const mgl_run out = e->p->tasks[task].out;
    const mgl_role role = e->roles[task];
    int copy = mgl_edit_new(e, MGL_OP_CLEAR, role);
    *some = false;
    for (int i = out.first; i < out.first + out.count && copy >= 0; i++) {
        const mgl_region region = e->p->regions[i];
        if (writes(e, queue, role.layer, step, region.buffer) != written)
            continue;
        mgl_program_add_out(e->p, &region);
        *some = true;
    }
    return mgl_program_failed(e->p) ? -1 : copy;
}

/* Finds the place of a clear that clears words of the step. False: there is none. */
static bool find_clear(const mgl_edit *e, int queue, int layer, int step, size_t *place)
{
    size_t places[MOST_TASKS];
    const size_t count = mgl_edit_find(e, queue, layer, MGL_EDIT_CLEAR, places, MOST_TASKS);
    for (size_t i = 0; i < count; i++) {
        const mgl_run out = e->p->tasks[mgl_edit_at(e, queue, places[i])].out;
        for (int j = out.first; j < out.first + out.count; j++)
            if (writes(e, queue, layer, step, e->p->regions[j].buffer)) {
                *place = places[i];
                return true;
            }
    }
    return false;
}

static mgl_status clear_step(mgl_edit *e, int layer, const mgl_move *move)
{
    const int queue = move->from;
    size_t place;
    bool others, some;
    if (!find_clear(e, queue, layer, move->step, &place))
        return mgl_edit_refuse(e, "queue %d clears nothing that it writes in the step in layer %d",
                               queue, layer);
    const int task = mgl_edit_at(e, queue, place);
    const int rest = split_clear(e, queue, task, move->step, false, &others);
    const int moved = split_clear(e, queue, task, move->step, true, &some);
    mgl_edit_list *list = &e->queues[queue];
    if (rest < 0 || moved < 0)
        return mgl_edit_no_memory(e);
    list->items[place] = moved;
    mgl_status status = MGL_OK;
    if (others) { /* they keep their place */
        status = mgl_edit_insert(e, queue, move->count > 0 ? place : place + 1, rest);
        place += move->count > 0;
    }
    if (!status)
        status = shift(e, queue, place, 1, move->count);
    return status ? status : mgl_edit_join_clears(e, queue, mgl_edit_index(list, moved));
}

mgl_status mgl_move_clear(mgl_edit *e, const mgl_move *move)
{
    int first, end;
    mgl_status status = mgl_edit_check_queue(e, move->from);
    if (!status)
        status = mgl_edit_layers(e, move, &first, &end);
    for (int layer = status ? 0 : first; !status && layer < end; layer++)
        status = clear_step(e, layer, move);
    return status;
}

/* ---- sample ---------------------------------------------------------------------------------- */

mgl_status mgl_move_sample(mgl_edit *e, const mgl_move *move)
{
    mgl_status status = mgl_edit_check_queue(e, move->to);
    if (status)
        return status;
    int queue;
    const size_t place = mgl_edit_find_sample(e, &queue);
    if (queue < 0 || queue == move->to)
        return mgl_edit_refuse(e, queue < 0 ? "no queue ends with sample"
                                            : "sample is on that queue already");
    const int task = mgl_edit_at(e, queue, place);
    mgl_edit_remove(e, queue, place);
    return mgl_edit_insert(e, move->to, e->queues[move->to].count, task);
}
