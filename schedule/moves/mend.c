/*
 * What a move leaves behind it is mended here, so that each move is about one thing: whoever
 * writes flagged words clears them, the parts of the running argmax are the head's tasks in the
 * order of the vocabulary, and sample hears of the end of every queue.
 */
#include "schedule/moves/edit.h"

#include "base/memory.h"

/* ---- clears --------------------------------------------------------------------------------- */

/* Regions in a list of their own. */
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

/* What the queue's tasks write of the buffer with flags, joined where it goes on. */
static bool find_written(const mgl_edit *e, int queue, int buffer, struct regions *out)
{
    const mgl_edit_list *list = &e->queues[queue];
    for (size_t i = 0; i < list->count; i++) {
        const mgl_task *t = &e->p->tasks[list->items[i]];
        for (int j = t->out.first; j < t->out.first + t->out.count; j++) {
            mgl_region region = e->p->regions[j];
            if (!region.flag || region.buffer != buffer)
                continue;
            region.flag = false;
            if ((out->count == 0 || !mgl_region_join(&out->items[out->count - 1], &region)) &&
                !add_region(out, out->count, &region))
                return false;
        }
    }
    return true;
}

/* The place on the queue of the first task that writes the buffer with flags; the queue's end for
 * none. */
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

/* The clears of a layer that stand side by side on a queue: places [first, end). */
struct clears {
    size_t first, end;
};

/* Those with a region of the buffer; else the last ones of the layer; else none, where they would
 * be. */
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

/* Collects the clears' regions but those of the buffer; these belong to `*place`: before what the
 * queue writes later. */
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

/* Puts clears of the regions in place of those, as many a task as it takes. */
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

/* Whether the queue clears these regions of the buffer already, and no others. */
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

mgl_status mgl_edit_mend_clears(mgl_edit *e, int queue, int layer, int buffer)
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
            status = mgl_edit_mend_clears(e, queue, layer, e->p->regions[i].buffer);
    return status;
}

mgl_status mgl_edit_mend_buffer(mgl_edit *e, int layer, int buffer)
{
    mgl_status status = MGL_OK;
    for (int q = 0; q < e->p->queue_count && !status; q++)
        status = mgl_edit_mend_clears(e, q, layer, buffer);
    return status;
}

/* ---- the head ------------------------------------------------------------------------------- */

/* Puts the head's tasks into `out`, in the order of the vocabulary. */
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

/* The buffer has one part a task of the head, and perhaps one of draws, all of which sample reads.
 */
static void resize_parts(mgl_edit *e, int sample, int buffer, int64_t parts)
{
    e->p->buffers[buffer].extents[1] = (mgl_extent){MGL_FIXED, parts};
    for (int i = 0; i < e->p->tasks[sample].in.count; i++)
        if (mgl_edit_in(e, sample, i)->buffer == buffer)
            mgl_edit_in(e, sample, i)->ranges[1] = (mgl_range){MGL_RANGE_FIXED, 0, parts};
}

/* A draw reads all parts, and its tokens stand behind them in a buffer of sample's. */
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

/* Counters by which sample hears of queues whose last task tells nobody else: of those that have
 * enter alone, and of the others. -1: there is none. */
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

/* Sorts a counter that sample waits for into idle or done, by who signals it: that of a head or a
 * draw is neither. */
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

/* Whether a task tells others than sample of its end. */
static bool is_heard(const mgl_edit *e, int task, const struct ends *ends)
{
    const mgl_run *run = &e->p->tasks[task].signals;
    for (int i = run->first; i < run->first + run->count; i++)
        if (e->p->signals[i] != ends->idle && e->p->signals[i] != ends->done)
            return true;
    return false;
}

/* Which of the two a task has to signal; -1: neither. */
static int wanted_end(const mgl_edit *e, int queue, size_t place, int sample_queue,
                      const struct ends *ends)
{
    const int task = mgl_edit_at(e, queue, place);
    if (queue == sample_queue || place + 1 < e->queues[queue].count || is_heard(e, task, ends))
        return -1;
    return e->roles[task].step == MGL_EDIT_ENTER ? ends->idle : ends->done;
}

/* The task signals `wanted` of the two, and what else it signals. */
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

/* Sample waits for both, behind what else it waits for. */
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

/* Counters for both: those that nobody comes to signal are left out again by mgl_edit_build. */
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
