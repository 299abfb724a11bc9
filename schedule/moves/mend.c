/*
 * Repairs after moves, so that each move handles one concern: a queue clears the flagged words that
 * it writes, the parts of the argmax follow the head tasks in vocabulary order, and sample waits
 * for the end of every queue. Declared in edit.h.
 */
#include "schedule/moves/edit.h"

#include "base/memory.h"

/* ---- clears --------------------------------------------------------------------------------- */

/* A list of regions. */
struct regions {
    mgl_region *items; /* (count) */
    size_t count, capacity;
};

static bool add_region(struct regions *list, size_t place, const mgl_region *region)
{
    if (!mgl_grow((void **)&list->items, &list->capacity, list->count, sizeof *list->items))
        return false;
    for (size_t i = list->count++; i > place; i--)
        list->items[i] = list->items[i - 1];
    list->items[place] = *region;
    return true;
}

/* The flagged regions of the buffer that the queue's tasks write, joined if contiguous. */
static bool find_written(const mgl_edit *e, int queue, int buffer, struct regions *out)
{
    const mgl_edit_list *list = &e->queues[queue];
    for (size_t i = 0; i < list->count; i++) {
        const mgl_task *t = &e->p->tasks[list->items[i]];
        for (int j = t->out.first; j < t->out.first + t->out.count; j++) {
            mgl_region region = e->p->regions[j];
            if (region.buffer != buffer || !mgl_region_to_clear(&region))
                continue;
            if ((out->count == 0 || !mgl_region_join(&out->items[out->count - 1], &region)) &&
                !add_region(out, out->count, &region))
                return false;
        }
    }
    return true;
}

/* The place of the queue's first task that writes the buffer with flags; the queue's length if
 * there is none. */
static size_t find_writer(const mgl_edit *e, int queue, int buffer)
{
    const mgl_edit_list *list = &e->queues[queue];
    for (size_t i = 0; i < list->count; i++) {
        const mgl_task *t = &e->p->tasks[list->items[i]];
        for (int j = t->out.first; j < t->out.first + t->out.count; j++)
            if (e->p->regions[j].flag && e->p->regions[j].buffer == buffer)
                return i;
    }
    return list->count;
}

static bool clears_in(const mgl_edit *e, int task, int layer)
{
    return e->roles[task].step == MGL_EDIT_CLEAR && e->roles[task].layer == layer;
}

static bool clears_buffer(const mgl_edit *e, int task, int buffer)
{
    const mgl_task *t = &e->p->tasks[task];
    for (int i = t->out.first; i < t->out.first + t->out.count; i++)
        if (t->op == MGL_OP_CLEAR && e->p->regions[i].buffer == buffer)
            return true;
    return false;
}

/* Adjacent clears of a layer on a queue: places [first, end). */
struct clears {
    size_t first, end;
};

/* The clears with a region of the buffer; else the last clears of the layer; else an empty range
 * at the place where clears belong. */
static struct clears find_clears(const mgl_edit *e, int queue, int layer, int buffer)
{
    const mgl_edit_list *list = &e->queues[queue];
    const mgl_role role = {layer, MGL_EDIT_CLEAR};
    size_t at = list->count;
    for (size_t i = list->count; i > 0; i--)
        if (clears_in(e, list->items[i - 1], layer) &&
            (at == list->count || clears_buffer(e, list->items[i - 1], buffer)))
            at = i - 1;
    if (at == list->count) {
        at = mgl_edit_place(e, queue, role, 0);
        return (struct clears){at, at};
    }
    struct clears found = {at, at + 1};
    while (found.first > 0 && clears_in(e, list->items[found.first - 1], layer))
        found.first--;
    while (found.end < list->count && clears_in(e, list->items[found.end], layer))
        found.end++;
    return found;
}

/* Collects the regions of the clears except those of the buffer. The buffer's regions belong at
 * *place: before the regions that the queue writes later. */
static bool collect(const mgl_edit *e, int queue, struct clears clears, int buffer,
                    struct regions *out, size_t *place)
{
    const size_t writer = find_writer(e, queue, buffer), none = SIZE_MAX;
    size_t before = none;
    for (size_t i = clears.first; i < clears.end; i++) {
        const mgl_task *t = &e->p->tasks[e->queues[queue].items[i]];
        for (int j = t->out.first; j < t->out.first + t->out.count; j++) {
            const mgl_region *region = &e->p->regions[j];
            if (region->buffer == buffer)
                continue;
            if (before == none && find_writer(e, queue, region->buffer) > writer)
                before = out->count;
            if (!add_region(out, out->count, region))
                return false;
        }
    }
    *place = before != none ? before : out->count;
    return true;
}

/* Replaces the clears by clears of the given regions, in as many tasks as needed. */
static mgl_status replace(mgl_edit *e, int queue, int layer, struct clears clears,
                          const struct regions *regions)
{
    const size_t most = (size_t)mgl_op_get(MGL_OP_CLEAR)->out_count;
    mgl_status status = MGL_OK;
    for (size_t i = clears.first; i < clears.end; i++)
        mgl_edit_remove(e, queue, clears.first);
    for (size_t i = 0; i < regions->count && !status; i += most) {
        int task = mgl_edit_new(e, MGL_OP_CLEAR, (mgl_role){layer, MGL_EDIT_CLEAR});
        for (size_t j = i; j < regions->count && j < i + most; j++)
            mgl_program_add_out(e->p, &regions->items[j]);
        status = mgl_edit_insert(e, queue, clears.first + i / most,
                                 mgl_program_failed(e->p) ? -1 : task);
    }
    return status;
}

static bool is_same_region(const mgl_region *a, const mgl_region *b)
{
    bool same = a->buffer == b->buffer && a->flag == b->flag;
    for (int d = 0; d < MGL_MAX_RANK && same; d++)
        same = a->ranges[d].kind == b->ranges[d].kind && a->ranges[d].lo == b->ranges[d].lo &&
               a->ranges[d].hi == b->ranges[d].hi;
    return same;
}

/* Whether the queue already clears exactly these regions of the buffer. */
static bool is_mended(const mgl_edit *e, int queue, int buffer, const struct regions *written)
{
    const mgl_edit_list *list = &e->queues[queue];
    size_t at = 0;
    for (size_t i = 0; i < list->count; i++) {
        const mgl_task *t = &e->p->tasks[list->items[i]];
        for (int j = t->out.first; j < t->out.first + t->out.count && t->op == MGL_OP_CLEAR; j++) {
            const mgl_region *region = &e->p->regions[j];
            if (region->buffer != buffer)
                continue;
            if (at == written->count || !is_same_region(region, &written->items[at++]))
                return false;
        }
    }
    return at == written->count;
}

static mgl_status mend(mgl_edit *e, int queue, int layer, int buffer, const struct regions *written)
{
    struct regions all = {0};
    size_t place = 0;
    const struct clears clears = find_clears(e, queue, layer, buffer);
    bool done = collect(e, queue, clears, buffer, &all, &place);
    for (size_t i = 0; i < written->count && done; i++)
        done = add_region(&all, place + i, &written->items[i]);
    mgl_status status = done ? replace(e, queue, layer, clears, &all) : mgl_edit_no_memory(e);
    mgl_free(all.items);
    return status;
}

/* Makes the queue's clears of a buffer match the words that its tasks write. */
static mgl_status mend_clears(mgl_edit *e, int queue, int layer, int buffer)
{
    struct regions written = {0};
    mgl_status status = MGL_OK;
    if (!find_written(e, queue, buffer, &written))
        status = mgl_edit_no_memory(e);
    else if (!is_mended(e, queue, buffer, &written))
        status = mend(e, queue, layer, buffer, &written);
    mgl_free(written.items);
    return status;
}

mgl_status mgl_edit_join_clears(mgl_edit *e, int queue, size_t place)
{
    const int task = mgl_edit_at(e, queue, place), layer = e->roles[task].layer;
    const mgl_run out = e->p->tasks[task].out;
    mgl_status status = MGL_OK;
    for (int i = 0; i < out.count && !status; i++) {
        struct regions written = {0};
        const int buffer = e->p->regions[out.first + i].buffer;
        status = find_written(e, queue, buffer, &written) ? mend(e, queue, layer, buffer, &written)
                                                          : mgl_edit_no_memory(e);
        mgl_free(written.items);
    }
    return status;
}

mgl_status mgl_edit_mend_like(mgl_edit *e, int queue, int layer, int task)
{
    mgl_status status = MGL_OK;
    const mgl_run out = e->p->tasks[task].out;
    for (int i = out.first; i < out.first + out.count && !status; i++)
        if (e->p->regions[i].flag)
            status = mend_clears(e, queue, layer, e->p->regions[i].buffer);
    return status;
}

mgl_status mgl_edit_mend_buffer(mgl_edit *e, int layer, int buffer)
{
    mgl_status status = MGL_OK;
    for (int q = 0; q < e->p->queue_count && !status; q++)
        status = mend_clears(e, q, layer, buffer);
    return status;
}

/* ---- the head ------------------------------------------------------------------------------- */

/* Collects the head tasks in vocabulary order. */
static bool find_heads(const mgl_edit *e, mgl_edit_list *out)
{
    for (int q = 0; q < e->p->queue_count; q++)
        for (size_t i = 0; i < e->queues[q].count; i++) {
            const int task = e->queues[q].items[i];
            if (e->roles[task].step != MGL_STEP_HEAD)
                continue;
            if (!mgl_grow((void **)&out->items, &out->capacity, out->count, sizeof *out->items))
                return false;
            size_t at = out->count++;
            for (; at > 0 && mgl_task_columns(e->p, &e->p->tasks[out->items[at - 1]]).lo >
                                 mgl_task_columns(e->p, &e->p->tasks[task]).lo;
                 at--)
                out->items[at] = out->items[at - 1];
            out->items[at] = task;
        }
    return true;
}

size_t mgl_edit_find_sample(const mgl_edit *e, int *queue)
{
    for (*queue = 0; *queue < e->p->queue_count; ++*queue) {
        const size_t count = e->queues[*queue].count;
        if (count > 0 && e->roles[mgl_edit_at(e, *queue, count - 1)].step == MGL_EDIT_SAMPLE)
            return count - 1;
    }
    *queue = -1;
    return 0;
}

/* Gives the buffer one part for each head task (and one for draws, if `parts` includes it).
 * Sample reads all parts. */
static void resize_parts(mgl_edit *e, int sample, int buffer, int64_t parts)
{
    e->p->buffers[buffer].extents[1] = (mgl_extent){MGL_FIXED, parts};
    for (int i = 0; i < e->p->tasks[sample].in.count; i++)
        if (mgl_edit_in(e, sample, i)->buffer == buffer)
            mgl_edit_in(e, sample, i)->ranges[1] = (mgl_range){MGL_RANGE_FIXED, 0, parts};
}

/* A draw reads all parts. Its tokens follow the parts in best_id. */
static void resize_draw(mgl_edit *e, int sample, int draw, int64_t parts)
{
    mgl_region *token = mgl_edit_out(e, draw, 0);
    resize_parts(e, sample, token->buffer, parts + 1);
    token->ranges[1] = (mgl_range){MGL_RANGE_FIXED, parts, parts + 1};
    mgl_edit_in(e, draw, MGL_OPERAND(draw, best_value))->ranges[1] =
        (mgl_range){MGL_RANGE_FIXED, 0, parts};
}

mgl_status mgl_edit_mend_heads(mgl_edit *e)
{
    mgl_edit_list heads = {0};
    int queue;
    const size_t place = mgl_edit_find_sample(e, &queue);
    if (queue < 0)
        return mgl_edit_refuse(e, "no queue of the program ends with sample");
    if (!find_heads(e, &heads)) {
        mgl_free(heads.items);
        return mgl_edit_no_memory(e);
    }
    for (size_t i = 0; i < heads.count; i++)
        for (int part = 1; part <= 2; part++) {
            mgl_region *region = mgl_edit_out(e, heads.items[i], part);
            region->ranges[1] = (mgl_range){MGL_RANGE_FIXED, (int64_t)i, (int64_t)i + 1};
            resize_parts(e, mgl_edit_at(e, queue, place), region->buffer, (int64_t)heads.count);
        }
    for (int q = 0; q < e->p->queue_count; q++)
        for (size_t i = 0; i < e->queues[q].count; i++)
            if (e->roles[mgl_edit_at(e, q, i)].step == MGL_EDIT_DRAW)
                resize_draw(e, mgl_edit_at(e, queue, place), mgl_edit_at(e, q, i),
                            (int64_t)heads.count);
    mgl_free(heads.items);
    return MGL_OK;
}

/* ---- the ends of queues ---------------------------------------------------------------------- */

/* Counters by which sample waits for queues whose last task signals no other task: queues that
 * have only enter (idle), and the others (done). -1: there is none. */
struct ends {
    int idle, done;
};

static bool signals_to(const mgl_edit *e, int task, int counter)
{
    const mgl_run *run = &e->p->tasks[task].signals;
    for (int i = run->first; i < run->first + run->count; i++)
        if (e->p->signals[i] == counter)
            return true;
    return false;
}

/* Classifies a counter that sample waits for as idle or done by the tasks that signal it.
 * Counters of heads and draws are neither. */
static void note_end(const mgl_edit *e, int counter, struct ends *ends)
{
    int enters = 0, heads = 0, all = 0;
    for (int q = 0; q < e->p->queue_count; q++)
        for (size_t i = 0; i < e->queues[q].count; i++) {
            const int task = mgl_edit_at(e, q, i);
            if (!signals_to(e, task, counter))
                continue;
            all++;
            enters += e->roles[task].step == MGL_EDIT_ENTER;
            heads += e->roles[task].step == MGL_STEP_HEAD || e->roles[task].step == MGL_EDIT_DRAW;
        }
    if (all > 0 && enters == all)
        ends->idle = counter;
    else if (all > 0 && heads == 0)
        ends->done = counter;
}

static struct ends find_ends(const mgl_edit *e, int sample)
{
    struct ends ends = {-1, -1};
    const mgl_run *waits = &e->p->tasks[sample].waits;
    for (int i = waits->first; i < waits->first + waits->count; i++)
        if (e->p->waits[i].threshold == MGL_EDIT_ALL)
            note_end(e, e->p->waits[i].counter, &ends);
    return ends;
}

/* Whether a task signals any other counter. */
static bool is_heard(const mgl_edit *e, int task, const struct ends *ends)
{
    const mgl_run *run = &e->p->tasks[task].signals;
    for (int i = run->first; i < run->first + run->count; i++)
        if (e->p->signals[i] != ends->idle && e->p->signals[i] != ends->done)
            return true;
    return false;
}

/* The counter that the task must signal; -1: neither. */
static int wanted_end(const mgl_edit *e, int queue, size_t place, int sample_queue,
                      const struct ends *ends)
{
    const int task = mgl_edit_at(e, queue, place);
    if (queue == sample_queue || place + 1 < e->queues[queue].count || is_heard(e, task, ends))
        return -1;
    return e->roles[task].step == MGL_EDIT_ENTER ? ends->idle : ends->done;
}

/* Makes the task signal `wanted` of the two, besides its other signals. */
static mgl_status set_end(mgl_edit *e, int queue, size_t place, int wanted, const struct ends *ends)
{
    const int task = mgl_edit_at(e, queue, place);
    const bool idle = ends->idle >= 0 && signals_to(e, task, ends->idle);
    const bool done = ends->done >= 0 && signals_to(e, task, ends->done);
    if (idle == (wanted >= 0 && wanted == ends->idle) &&
        done == (wanted >= 0 && wanted == ends->done))
        return MGL_OK;
    mgl_edges edges, old;
    if (!mgl_edit_get_edges(e, task, &old))
        return mgl_edit_refuse(e, "a task has too many edges");
    edges = old;
    edges.signal_count = 0;
    for (int i = 0; i < old.signal_count; i++)
        if (old.signals[i] != ends->idle && old.signals[i] != ends->done)
            edges.signals[edges.signal_count++] = old.signals[i];
    if (wanted >= 0)
        edges.signals[edges.signal_count++] = wanted;
    return mgl_edit_set_edges(e, queue, place, &edges);
}

/* Makes sample wait for both counters, after its other waits. */
static mgl_status wait_for_ends(mgl_edit *e, int queue, size_t place, const struct ends *ends)
{
    const int both[2] = {ends->idle, ends->done};
    mgl_edges edges, old;
    if (!mgl_edit_get_edges(e, mgl_edit_at(e, queue, place), &old) ||
        old.wait_count + 2 >= MGL_EDIT_EDGES)
        return mgl_edit_refuse(e, "sample has too many edges");
    edges = old;
    edges.wait_count = 0;
    for (int i = 0; i < old.wait_count; i++)
        if (old.waits[i].counter != ends->idle && old.waits[i].counter != ends->done)
            edges.waits[edges.wait_count++] = old.waits[i];
    for (int i = 0; i < 2; i++)
        edges.waits[edges.wait_count++] = (mgl_wait){both[i], MGL_EDIT_ALL};
    return mgl_edit_set_edges(e, queue, place, &edges);
}

/* Declares missing counters. mgl_edit_build drops counters without signals. */
static bool complete_ends(mgl_edit *e, struct ends *ends)
{
    if (ends->idle < 0)
        ends->idle = mgl_edit_add_counter(
            e, ends->done < 0 ? e->counters.count : mgl_edit_index(&e->counters, ends->done),
            "idle");
    if (ends->done < 0)
        ends->done = mgl_edit_add_counter(e, e->counters.count, "done");
    return ends->idle >= 0 && ends->done >= 0;
}

mgl_status mgl_edit_mend_ends(mgl_edit *e)
{
    int queue;
    const size_t place = mgl_edit_find_sample(e, &queue);
    if (queue < 0)
        return mgl_edit_refuse(e, "no queue of the program ends with sample");
    struct ends ends = find_ends(e, mgl_edit_at(e, queue, place));
    if (!complete_ends(e, &ends))
        return mgl_edit_no_memory(e);
    mgl_status status = MGL_OK;
    for (int q = 0; q < e->p->queue_count && !status; q++)
        for (size_t i = 0; i < e->queues[q].count && !status; i++)
            status = set_end(e, q, i, wanted_end(e, q, i, queue, &ends), &ends);
    return status ? status : wait_for_ends(e, queue, place, &ends);
}
