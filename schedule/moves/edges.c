/*
 * Moves that change synchronization: the sets of a flagged buffer, merging and splitting counters,
 * and replacing flags by counters or counters by flags. apply.c calls the moves (edit.h). The
 * validator decides whether the remaining edges order all accesses.
 */
#include "schedule/moves/edit.h"

#include "base/memory.h"

/* ---- edges of a step ------------------------------------------------------------------------- */

/* The output of a task that others read: for o and down the copy, if there is one. */
static int output_of(const mgl_edit *e, int task)
{
    const mgl_task *t = &e->p->tasks[task];
    return mgl_op_adds(t->op) && t->out.count == 2 ? 1 : 0;
}

/* The flagged buffer that a step writes for other tasks. -1: there is none. */
static int find_flagged(const mgl_edit *e, int layer, int step)
{
    for (int q = 0; q < e->p->queue_count; q++) {
        size_t place;
        if (!mgl_edit_find(e, q, layer, step, &place, 1))
            continue;
        const int task = mgl_edit_at(e, q, place);
        const mgl_region *out = mgl_edit_out(e, task, output_of(e, task));
        return out->flag ? out->buffer : -1;
    }
    return -1;
}

static bool waits_for(const mgl_edit *e, int task, int counter)
{
    const mgl_run *run = &e->p->tasks[task].waits;
    for (int i = run->first; i < run->first + run->count; i++)
        if (e->p->waits[i].counter == counter)
            return true;
    return false;
}

/* Whether only sample waits for the counter: it marks the end of queues. */
static bool is_end(const mgl_edit *e, int step, int counter)
{
    int queue;
    const size_t place = mgl_edit_find_sample(e, &queue);
    return step != MGL_STEP_HEAD && queue >= 0 &&
           waits_for(e, mgl_edit_at(e, queue, place), counter);
}

/* Inserts the counter into the list, in the order of declarations. */
static bool note_counter(const mgl_edit *e, int counter, mgl_edit_list *list)
{
    const size_t place = mgl_edit_index(&e->counters, counter);
    if (mgl_edit_index(list, counter) < list->count)
        return true;
    if (!mgl_grow((void **)&list->items, &list->capacity, list->count, sizeof *list->items))
        return false;
    size_t at = list->count++;
    for (; at > 0 && mgl_edit_index(&e->counters, list->items[at - 1]) > place; at--)
        list->items[at] = list->items[at - 1];
    list->items[at] = counter;
    return true;
}

/* The counters that a step's tasks signal, in order of declaration. Counters that only sample
 * waits for are included only for the head. */
static mgl_status find_counters(mgl_edit *e, int layer, int step, mgl_edit_list *out)
{
    for (int q = 0; q < e->p->queue_count; q++)
        for (size_t i = 0; i < e->queues[q].count; i++) {
            const int task = mgl_edit_at(e, q, i);
            const mgl_run run = e->p->tasks[task].signals;
            if (e->roles[task].layer != layer || e->roles[task].step != step)
                continue;
            for (int j = run.first; j < run.first + run.count; j++)
                if (!is_end(e, step, e->p->signals[j]) && !note_counter(e, e->p->signals[j], out))
                    return mgl_edit_no_memory(e);
        }
    return MGL_OK;
}

static bool has(const mgl_edit_list *list, int item)
{
    return mgl_edit_index(list, item) < list->count;
}

/* Calls `each` with the edges of every task, which `each` may change. */
typedef mgl_status each_fn(mgl_edit *e, int task, mgl_edges *edges, bool *changed, void *user);

static mgl_status each_task(mgl_edit *e, each_fn *each, void *user)
{
    mgl_edges *edges = mgl_alloc_zero(1, sizeof *edges);
    mgl_status status = edges ? MGL_OK : mgl_edit_no_memory(e);
    for (int q = 0; q < e->p->queue_count; q++)
        for (size_t i = 0; i < e->queues[q].count && !status; i++) {
            bool changed = false;
            const int task = mgl_edit_at(e, q, i);
            if (!mgl_edit_get_edges(e, task, edges))
                status = mgl_edit_refuse(e, "a task of queue %d has too many edges", q);
            if (!status)
                status = each(e, task, edges, &changed, user);
            if (!status && changed)
                status = mgl_edit_set_edges(e, q, i, edges);
        }
    mgl_free(edges);
    return status;
}

static mgl_status too_many(mgl_edit *e)
{
    return mgl_edit_refuse(e, "a task would have more than %d edges", MGL_EDIT_EDGES - 1);
}

static bool add_wait(mgl_edges *edges, int counter, int64_t threshold)
{
    if (edges->wait_count == MGL_EDIT_EDGES - 1)
        return false;
    edges->waits[edges->wait_count++] = (mgl_wait){counter, threshold};
    return true;
}

/* ---- sets ----------------------------------------------------------------------------------- */

mgl_status mgl_move_sets(mgl_edit *e, const mgl_move *move)
{
    int first, end;
    mgl_status status = mgl_edit_layers(e, move, &first, &end);
    if (status)
        return status;
    if (move->count < 2)
        return mgl_edit_refuse(e, "a flagged buffer has at least 2 sets: see counted");
    for (int layer = first; layer < end; layer++) {
        const int buffer = find_flagged(e, layer, move->step);
        if (buffer < 0)
            return mgl_edit_refuse(e, "the step writes no flagged buffer in layer %d", layer);
        e->p->buffers[buffer].sets = move->count;
    }
    return MGL_OK;
}

/* ---- one counter for several ---------------------------------------------------------------- */

/* Whether a task waits for one of the counters, or signals one. */
static bool names_any(const mgl_edit *e, int task, const mgl_edit_list *counters)
{
    const mgl_task *t = &e->p->tasks[task];
    bool found = false;
    for (int i = t->waits.first; i < t->waits.first + t->waits.count && !found; i++)
        found = has(counters, e->p->waits[i].counter);
    for (int i = t->signals.first; i < t->signals.first + t->signals.count && !found; i++)
        found = has(counters, e->p->signals[i]);
    return found;
}

/* Replaces signals and waits of any of the counters by one of the first counter. */
static mgl_status coarsen(mgl_edit *e, int task, mgl_edges *edges, bool *changed, void *user)
{
    const mgl_edit_list *counters = user;
    bool waits = false, signals = false;
    if (!names_any(e, task, counters))
        return MGL_OK;
    const mgl_edges old = *edges;
    edges->wait_count = edges->signal_count = 0;
    for (int i = 0; i < old.wait_count; i++)
        if (!has(counters, old.waits[i].counter))
            edges->waits[edges->wait_count++] = old.waits[i];
        else if (!waits) {
            waits = true;
            edges->waits[edges->wait_count++] = (mgl_wait){counters->items[0], MGL_EDIT_ALL};
        }
    for (int i = 0; i < old.signal_count; i++)
        if (!has(counters, old.signals[i]))
            edges->signals[edges->signal_count++] = old.signals[i];
        else if (!signals) {
            signals = true;
            edges->signals[edges->signal_count++] = counters->items[0];
        }
    *changed = waits || signals;
    return MGL_OK;
}

/* Calls `each` for each layer of a move on a step's counters. */
typedef mgl_status layer_fn(mgl_edit *e, int layer, const mgl_move *move, mgl_edit_list *counters);

static mgl_status each_layer(mgl_edit *e, const mgl_move *move, layer_fn *each)
{
    int first, end;
    mgl_status status = mgl_edit_layers(e, move, &first, &end);
    for (int layer = status ? 0 : first; !status && layer < end; layer++) {
        mgl_edit_list counters = {0};
        status = find_counters(e, layer, move->step, &counters);
        if (!status)
            status = each(e, layer, move, &counters);
        mgl_free(counters.items);
    }
    return status;
}

static mgl_status coarsen_layer(mgl_edit *e, int layer, const mgl_move *move,
                                mgl_edit_list *counters)
{
    (void)move;
    if (counters->count < 2)
        return mgl_edit_refuse(e, "the step has %s in layer %d",
                               counters->count ? "one counter" : "no counter", layer);
    return each_task(e, coarsen, counters);
}

mgl_status mgl_move_coarser(mgl_edit *e, const mgl_move *move)
{
    return each_layer(e, move, coarsen_layer);
}

/* ---- several counters for one --------------------------------------------------------------- */

struct cutting {
    int counter;          /* the counter that is split */
    int pieces;           /* number of pieces */
    const int *parts;     /* (pieces) counters */
    mgl_edit_tasks tasks; /* tasks that signaled it */
};

/* The piece that task i of the step signals. */
static int piece_of(const struct cutting *c, size_t i)
{
    return (int)(i * (size_t)c->pieces / c->tasks.count);
}

static bool reads(const mgl_edit *e, int reader, int writer)
{
    const mgl_run in = e->p->tasks[reader].in, out = e->p->tasks[writer].out;
    for (int i = in.first; i < in.first + in.count; i++)
        for (int j = out.first; j < out.first + out.count; j++) {
            const mgl_region *a = &e->p->regions[i], *b = &e->p->regions[j];
            if (a->buffer == b->buffer && mgl_regions_meet(a, b, e->p->buffers[a->buffer].rank))
                return true;
        }
    return false;
}

/* Waits for the pieces whose tasks write what this task reads; for all pieces if it reads
 * nothing of them. */
static bool wait_for_pieces(const mgl_edit *e, const struct cutting *c, int task, mgl_edges *edges)
{
    bool any = false, added = true;
    for (int all = 0; all < 2 && !any; all++)
        for (int piece = 0; piece < c->pieces; piece++) {
            bool wanted = all;
            for (size_t i = 0; i < c->tasks.count && !wanted; i++)
                wanted = piece_of(c, i) == piece && reads(e, task, c->tasks.items[i].task);
            any |= wanted;
            added = added && (!wanted || add_wait(edges, c->parts[piece], MGL_EDIT_ALL));
        }
    return added;
}

static mgl_status refine(mgl_edit *e, int task, mgl_edges *edges, bool *changed, void *user)
{
    const struct cutting *c = user;
    int counter = c->counter;
    if (!names_any(e, task, &(mgl_edit_list){&counter, 1, 1}))
        return MGL_OK;
    const mgl_edges old = *edges;
    edges->wait_count = 0;
    for (int i = 0; i < old.wait_count; i++) {
        const mgl_wait *wait = &old.waits[i];
        const bool cut = wait->counter == c->counter;
        if (cut && wait->threshold != MGL_EDIT_ALL)
            return mgl_edit_refuse(e, "a task waits for a part of the counter already");
        if (cut ? !wait_for_pieces(e, c, task, edges)
                : !add_wait(edges, wait->counter, wait->threshold))
            return too_many(e);
        *changed |= cut;
    }
    for (int i = 0; i < edges->signal_count; i++)
        for (size_t j = 0; j < c->tasks.count; j++)
            if (c->tasks.items[j].task == task && edges->signals[i] == c->counter) {
                edges->signals[i] = c->parts[piece_of(c, j)];
                *changed = true;
                break;
            }
    return MGL_OK;
}

static mgl_status refine_layer(mgl_edit *e, int layer, const mgl_move *move,
                               mgl_edit_list *counters)
{
    int parts[MGL_EDIT_EDGES];
    struct cutting c = {.pieces = move->count, .parts = parts};
    if (counters->count != 1)
        return mgl_edit_refuse(e, "the step has %s in layer %d",
                               counters->count ? "several counters" : "no counter", layer);
    c.counter = parts[0] = counters->items[0];
    mgl_status status = mgl_edit_collect(e, layer, move->step, &c.tasks);
    if (!status && (c.pieces < 2 || (size_t)c.pieces > c.tasks.count || c.pieces >= MGL_EDIT_EDGES))
        status = mgl_edit_refuse(e, "a counter of %zu tasks is cut into 2 to %zu", c.tasks.count,
                                 c.tasks.count);
    const size_t place = mgl_edit_index(&e->counters, c.counter);
    for (int i = 1; i < c.pieces && !status; i++) {
        parts[i] = mgl_edit_add_counter(e, place + (size_t)i, "%.60s.%d",
                                        e->p->counters[c.counter].name, i);
        status = parts[i] < 0 ? mgl_edit_no_memory(e) : MGL_OK;
    }
    if (!status)
        status = each_task(e, refine, &c);
    mgl_free(c.tasks.items);
    return status;
}

mgl_status mgl_move_finer(mgl_edit *e, const mgl_move *move)
{
    return each_layer(e, move, refine_layer);
}

/* ---- counters instead of flags --------------------------------------------------------------- */

struct counting {
    int buffer, counter;
};

/* Whether a task comes before the step's tasks in lowering's order. */
static bool is_earlier(const mgl_edit *e, int task, int layer, int step)
{
    const mgl_role *r = &e->roles[task];
    static const int ranks[] = {
        [MGL_STEP_QKV] = 1,     [MGL_STEP_ATTEND] = 2, [MGL_EDIT_MERGE] = 3, [MGL_STEP_O] = 4,
        [MGL_STEP_GATE_UP] = 5, [MGL_STEP_DOWN] = 6,   [MGL_STEP_HEAD] = 7,  [MGL_EDIT_EMBED] = 0};
    return r->step <= MGL_EDIT_EMBED &&
           (r->layer != layer ? r->layer < layer : ranks[r->step] < ranks[step]);
}

/* The place where lowering would declare a counter of the step: after those of earlier steps. */
static size_t place_of_counter(const mgl_edit *e, int layer, int step)
{
    size_t place = 0;
    for (int q = 0; q < e->p->queue_count; q++)
        for (size_t i = 0; i < e->queues[q].count; i++) {
            const int task = mgl_edit_at(e, q, i);
            const mgl_run run = e->p->tasks[task].signals;
            if (!is_earlier(e, task, layer, step))
                continue;
            for (int j = run.first; j < run.first + run.count; j++) {
                const size_t at = mgl_edit_index(&e->counters, e->p->signals[j]);
                if (!is_end(e, step, e->p->signals[j]) && at >= place)
                    place = at + 1;
            }
        }
    return place;
}

static bool touches(const mgl_edit *e, mgl_run run, int buffer)
{
    for (int i = run.first; i < run.first + run.count; i++)
        if (e->p->regions[i].buffer == buffer)
            return true;
    return false;
}

static mgl_status count_edges(mgl_edit *e, int task, mgl_edges *edges, bool *changed, void *user)
{
    const struct counting *c = user;
    const bool writer =
        e->p->tasks[task].op != MGL_OP_CLEAR && touches(e, e->p->tasks[task].out, c->buffer);
    const bool reader = touches(e, e->p->tasks[task].in, c->buffer);
    if (writer) {
        if (edges->signal_count == MGL_EDIT_EDGES - 1)
            return too_many(e);
        for (int i = edges->signal_count++; i > 0; i--)
            edges->signals[i] = edges->signals[i - 1];
        edges->signals[0] = c->counter;
    }
    if (reader && !add_wait(edges, c->counter, MGL_EDIT_ALL))
        return too_many(e);
    *changed = writer || reader;
    return MGL_OK;
}

/* Sets or clears the flag of all regions of the buffer except those of clears. */
static void set_flags(mgl_edit *e, int buffer, bool flag)
{
    for (int q = 0; q < e->p->queue_count; q++)
        for (size_t i = 0; i < e->queues[q].count; i++) {
            const mgl_task *t = &e->p->tasks[mgl_edit_at(e, q, i)];
            for (int j = 0; j < t->in.count + t->out.count && t->op != MGL_OP_CLEAR; j++)
                if (e->p->regions[t->in.first + j].buffer == buffer)
                    e->p->regions[t->in.first + j].flag = flag;
        }
}

static mgl_status count_layer(mgl_edit *e, int layer, const mgl_move *move, mgl_edit_list *counters)
{
    (void)counters;
    struct counting c = {find_flagged(e, layer, move->step), -1};
    if (c.buffer < 0)
        return mgl_edit_refuse(e, "the step writes no flagged buffer in layer %d", layer);
    c.counter = mgl_edit_add_counter(
        e, place_of_counter(e, layer, move->step), "l%d.%s", layer,
        move->step == MGL_EDIT_MERGE ? "merge" : mgl_step_name((mgl_step)move->step));
    if (c.counter < 0)
        return mgl_edit_no_memory(e);
    set_flags(e, c.buffer, false);
    mgl_status status = mgl_edit_mend_buffer(e, layer, c.buffer);
    e->p->buffers[c.buffer].sets = 1;
    return status ? status : each_task(e, count_edges, &c);
}

mgl_status mgl_move_counted(mgl_edit *e, const mgl_move *move)
{
    return each_layer(e, move, count_layer);
}

/* ---- flags instead of counters --------------------------------------------------------------- */

/* Whether tasks of other layers, or of other steps, write the buffer. */
static bool is_shared(const mgl_edit *e, int layer, int step, int buffer)
{
    for (int q = 0; q < e->p->queue_count; q++)
        for (size_t i = 0; i < e->queues[q].count; i++) {
            const int task = mgl_edit_at(e, q, i);
            const mgl_role *role = &e->roles[task];
            if ((role->layer != layer || role->step != step) &&
                touches(e, e->p->tasks[task].out, buffer))
                return true;
        }
    return false;
}

/* Copies the task with another buffer. o and down keep their residual and get a second output
 * for the copy. */
static mgl_status retarget(mgl_edit *e, int queue, size_t place, bool writer, int from, int to)
{
    const int task = mgl_edit_copy(e, mgl_edit_at(e, queue, place));
    if (task < 0)
        return mgl_edit_no_memory(e);
    mgl_task *t = &e->p->tasks[task];
    e->queues[queue].items[place] = task;
    if (writer && mgl_op_adds(t->op) && t->out.count == 1) {
        mgl_region copy = *mgl_edit_out(e, task, 0);
        copy.buffer = to;
        mgl_program_add_out(e->p, &copy); /* the newest task is the copy */
        return mgl_program_failed(e->p) ? mgl_edit_no_memory(e) : MGL_OK;
    }
    const mgl_run run = writer ? t->out : t->in;
    for (int i = run.first; i < run.first + run.count; i++)
        if (e->p->regions[i].buffer == from &&
            !(!writer && mgl_op_adds(t->op) && i == run.first + 1))
            e->p->regions[i].buffer = to;
    return MGL_OK;
}

/* Gives the step's output, and the tasks that wait for its counters, a separate buffer. */
static mgl_status part_buffer(mgl_edit *e, int layer, int step, const mgl_edit_list *counters,
                              int *buffer)
{
    const int shared = *buffer;
    const mgl_buffer like = e->p->buffers[shared];
    mgl_status status = MGL_OK;
    *buffer = mgl_edit_add_buffer(e, mgl_edit_index(&e->buffers, shared) + 1, &like, "l%d.%.60s",
                                  layer, like.name);
    if (*buffer < 0)
        return mgl_edit_no_memory(e);
    for (int q = 0; q < e->p->queue_count; q++)
        for (size_t i = 0; i < e->queues[q].count && !status; i++) {
            const int task = mgl_edit_at(e, q, i);
            const bool writer = e->roles[task].layer == layer && e->roles[task].step == step;
            bool reader = false;
            for (size_t j = 0; j < counters->count && !writer; j++)
                reader |= waits_for(e, task, counters->items[j]);
            if (writer || reader)
                status = retarget(e, q, i, writer, shared, *buffer);
        }
    return status;
}

/* Removes the task's waits for the counters and its signals to them. */
static mgl_status forget(mgl_edit *e, int task, mgl_edges *edges, bool *changed, void *user)
{
    const mgl_edit_list *counters = user;
    if (!names_any(e, task, counters))
        return MGL_OK;
    const int waits = edges->wait_count, signals = edges->signal_count;
    edges->wait_count = edges->signal_count = 0;
    for (int i = 0; i < waits; i++)
        if (!has(counters, edges->waits[i].counter))
            edges->waits[edges->wait_count++] = edges->waits[i];
    for (int i = 0; i < signals; i++)
        if (!has(counters, edges->signals[i]))
            edges->signals[edges->signal_count++] = edges->signals[i];
    *changed = edges->wait_count < waits || edges->signal_count < signals;
    return MGL_OK;
}

static mgl_status flag_layer(mgl_edit *e, int layer, const mgl_move *move, mgl_edit_list *counters)
{
    mgl_edit_tasks tasks = {0};
    if (move->step == MGL_STEP_HEAD || counters->count == 0)
        return mgl_edit_refuse(e, "the step has no counter in layer %d that flags could replace",
                               layer);
    mgl_status status = mgl_edit_collect(e, layer, move->step, &tasks);
    const int any = status ? -1 : tasks.items[0].task;
    int buffer = status ? -1 : mgl_edit_out(e, any, output_of(e, any))->buffer;
    mgl_free(tasks.items);
    const bool residual =
        !status && mgl_op_adds(e->p->tasks[any].op) && e->p->tasks[any].out.count == 1;
    if (!status && (residual || is_shared(e, layer, move->step, buffer)))
        status = part_buffer(e, layer, move->step, counters, &buffer);
    if (!status)
        status = each_task(e, forget, counters);
    if (status)
        return status;
    e->p->buffers[buffer].sets = 2;
    set_flags(e, buffer, true);
    return mgl_edit_mend_buffer(e, layer, buffer);
}

mgl_status mgl_move_flagged(mgl_edit *e, const mgl_move *move)
{
    return each_layer(e, move, flag_layer);
}
