/*
 * The move `splits`: changes the number of splits of a layer's attention. apply.c calls
 * mgl_move_splits. The move replaces the attention and merge tasks of the layer. The new
 * tasks of a kv head take their operands from the old task that appends to its cache (the last
 * split). They are distributed over queues as in lowering. With two or more splits, merges run
 * between attention and o, and signal the counters that o waits for. New merges go to the queues of
 * the old merges if these queues have no split attention, or else to the queues of attention. With
 * two or more splits, the attention of unsplit rows is unchanged; with one split it is removed, and
 * the new tasks have all rows.
 */
#include "schedule/moves/edit.h"

#include "base/memory.h"
#include "schedule/lower/choose.h"

enum { MOST_HEADS = 512 };

/* A layer's attention before and after the move. */
struct attention {
    int layer, splits, from, to;
    int merge_from, merge_to; /* queues of merges */
    int heads[MOST_HEADS];    /* (kv_heads) the task that appends to the cache */
    int head_count;
    int was;                 /* splits before the move */
    bool unsplit;            /* the layer has tasks of attend for the unsplit rows */
    mgl_region y;            /* a region of the result, of all rows; the regions of heads differ in
                                their columns */
    int part;                /* buffer of partial results; -1: none */
    int merged;              /* heads of a merge task; 0: there was none */
    mgl_edges attend, merge; /* edges of the new tasks */
};

static bool is_tail(const mgl_edit *e, int task)
{
    return mgl_op_attention(e->p->tasks[task].op)->k_now != MGL_NO_OPERAND;
}

/* Whether the task attends with the unsplit rows only. */
static bool is_unsplit(const mgl_edit *e, int task)
{
    return e->p->tasks[task].op == MGL_OP_ATTEND &&
           mgl_range_has_row_kind(&mgl_edit_out(e, task, 0)->ranges[0]);
}

/* Removes the attention of unsplit rows from the collected tasks, and sets a->unsplit. */
static void find_unsplit(mgl_edit *e, mgl_edit_tasks *attends, struct attention *a)
{
    size_t count = 0;
    for (size_t i = 0; i < attends->count; i++) {
        if (is_unsplit(e, attends->items[i].task))
            a->unsplit = true;
        else
            attends->items[count++] = attends->items[i];
    }
    attends->count = count;
}

/* Finds the last splits of all heads, in order, and the number of splits before. */
static mgl_status find_heads(mgl_edit *e, const mgl_edit_tasks *attends, struct attention *a)
{
    const int heads = e->p->geometry.kv_heads;
    for (size_t i = 0; i < attends->count && a->head_count < MOST_HEADS; i++)
        if (is_tail(e, attends->items[i].task))
            a->heads[a->head_count++] = attends->items[i].task;
    if (a->head_count != heads || heads < 1 || e->p->geometry.head_dim < 1)
        return mgl_edit_refuse(e, "layer %d has %d tasks that append to its cache, for %d kv heads",
                               a->layer, a->head_count, heads);
    const mgl_region *out = mgl_edit_out(e, a->heads[0], 0);
    const bool whole = e->p->tasks[a->heads[0]].op == MGL_OP_ATTEND;
    a->was = whole ? 1 : (int)e->p->buffers[out->buffer].extents[0].count;
    a->part = whole ? -1 : out->buffer;
    for (int i = 0; i < heads; i++)
        if (e->p->tasks[a->heads[i]].op != e->p->tasks[a->heads[0]].op ||
            mgl_edit_out(e, a->heads[i], 0)->buffer != out->buffer)
            return mgl_edit_refuse(e, "the heads of layer %d are not split alike", a->layer);
    return MGL_OK;
}

static bool has_queue(const mgl_edit_tasks *tasks, int queue)
{
    for (size_t i = 0; i < tasks->count; i++)
        if (tasks->items[i].queue == queue)
            return true;
    return false;
}

/* The queues of the new merges: the old queues if none of them has attention. */
static void find_queues(const mgl_edit_tasks *attends, const mgl_edit_tasks *merges,
                        struct attention *a)
{
    int from = 0, to = 0;
    bool apart = merges->count > 0;
    for (size_t i = 0; i < merges->count; i++) {
        const int queue = merges->items[i].queue;
        apart = apart && !has_queue(attends, queue);
        from = i == 0 || queue < from ? queue : from;
        to = i == 0 || queue >= to ? queue + 1 : to;
    }
    a->merge_from = apart ? from : a->from;
    a->merge_to = apart ? to : a->to;
}

/* Finds the edges of the new tasks. */
static mgl_status find_edges(mgl_edit *e, const mgl_edit_tasks *merges, struct attention *a)
{
    const int merge = a->was > 1 && merges->count ? merges->items[0].task : -1;
    mgl_edges attend = {0}, old = {0};
    if (a->was > 1 && merge < 0)
        return mgl_edit_refuse(e,
                               "layer %d has no merge: its o merges the splits, of which there are "
                               "as many as lowering made",
                               a->layer);
    if (!mgl_edit_get_edges(e, a->heads[0], &attend) ||
        (merge >= 0 && !mgl_edit_get_edges(e, merge, &old)))
        return mgl_edit_refuse(e, "attention of layer %d has too many edges", a->layer);
    a->y = *mgl_edit_out(e, merge >= 0 ? merge : a->heads[0], 0);
    a->y.ranges[0] = (mgl_range){MGL_RANGE_ROWS, 0, 0};
    if (merge >= 0) {
        const mgl_range *heads = &mgl_edit_in(e, merge, 0)->ranges[2];
        const bool fits = heads->hi > heads->lo && heads->hi - heads->lo < MOST_HEADS;
        a->merged = fits ? (int)(heads->hi - heads->lo) : 0;
    }
    a->attend = attend;
    a->merge = old;
    if (a->was > 1 && a->splits == 1) { /* o waits for the merges' signals */
        a->attend.signal_count = old.signal_count;
        for (int i = 0; i < old.signal_count; i++)
            a->attend.signals[i] = old.signals[i];
    } else if (a->was == 1 && a->splits > 1 && !a->y.flag && attend.signal_count > 0) {
        const int signal = attend.signals[0];
        int counter =
            mgl_edit_add_counter(e, mgl_edit_index(&e->counters, signal), "l%d.splits", a->layer);
        if (counter < 0)
            return mgl_edit_no_memory(e);
        a->attend.signals[0] = counter;
        a->attend.signal_count = 1;
        a->merge = (mgl_edges){.waits = {{counter, MGL_EDIT_ALL}},
                               .signals = {signal},
                               .wait_count = 1,
                               .signal_count = 1};
    }
    return MGL_OK;
}

/* ---- partial results ------------------------------------------------------------------------- */

/* A plain buffer of partial results with this many splits in another layer. -1: none. */
static int find_part(const mgl_edit *e, const struct attention *a)
{
    for (int q = 0; q < e->p->queue_count; q++)
        for (size_t i = 0; i < e->queues[q].count; i++) {
            const int task = mgl_edit_at(e, q, i);
            if (e->p->tasks[task].op != MGL_OP_MERGE || e->roles[task].layer == a->layer)
                continue;
            const mgl_region *part = mgl_edit_in(e, task, 0);
            if (!part->flag && e->p->buffers[part->buffer].extents[0].count == a->splits)
                return part->buffer;
        }
    return -1;
}

/* The place where lowering declares partial results: after the output of gate/up. */
static size_t place_of_part(const mgl_edit *e, const struct attention *a)
{
    for (int q = 0; q < e->p->queue_count; q++) {
        size_t place;
        if (mgl_edit_find(e, q, a->layer, MGL_STEP_GATE_UP, &place, 1))
            return mgl_edit_index(&e->buffers,
                                  mgl_edit_out(e, mgl_edit_at(e, q, place), 0)->buffer) +
                   1;
    }
    return e->buffers.count;
}

/* Chooses the buffer of partial results: the old one, another layer's, or a new one. */
static mgl_status find_buffer(mgl_edit *e, struct attention *a)
{
    const mgl_geometry *m = &e->p->geometry;
    const mgl_buffer *y = &e->p->buffers[a->y.buffer];
    const int old = a->part, shared = a->y.flag ? -1 : find_part(e, a);
    mgl_buffer part = {.space = MGL_SPACE_ACT, .dtype = MGL_F32, .rank = 4, .tensor = -1};
    if (a->splits == a->was || a->splits == 1)
        return MGL_OK;
    part.sets = y->sets;
    part.extents[0] = (mgl_extent){MGL_FIXED, a->splits};
    part.extents[1] = y->extents[0];
    part.extents[2] = (mgl_extent){MGL_FIXED, m->heads};
    part.extents[3] = (mgl_extent){MGL_FIXED, m->head_dim + (a->y.flag ? 4 : 2)};
    if (old >= 0)
        part = e->p->buffers[old];
    part.extents[0].count = a->splits;
    a->part = shared >= 0
                  ? shared
                  : mgl_edit_add_buffer(
                        e, old >= 0 ? mgl_edit_index(&e->buffers, old) + 1 : place_of_part(e, a),
                        &part, "l%d.part", a->layer);
    return a->part < 0 ? mgl_edit_no_memory(e) : MGL_OK;
}

/* ---- tasks ---------------------------------------------------------------------------------- */

/* The rows of the layer's splits and merges: the split rows if other tasks have the unsplit rows,
 * else all rows. */
static mgl_range split_rows(const struct attention *a)
{
    return a->unsplit ? (mgl_range){MGL_RANGE_ROW_KIND, MGL_ROWS_SPLIT, MGL_ROWS_KINDS}
                      : (mgl_range){MGL_RANGE_ROWS, 0, 0};
}

static mgl_region part_of(const mgl_edit *e, const struct attention *a, int64_t lo, int64_t hi)
{
    const mgl_buffer *part = &e->p->buffers[a->part];
    mgl_region region = {.buffer = a->part, .flag = part->sets > 1};
    region.ranges[0] = (mgl_range){MGL_RANGE_FIXED, 0, part->extents[0].count};
    region.ranges[1] = split_rows(a);
    region.ranges[2] = (mgl_range){MGL_RANGE_FIXED, lo, hi};
    region.ranges[3] = (mgl_range){MGL_RANGE_FIXED, 0, part->extents[3].count};
    return region;
}

static void add_edges(mgl_program *p, const mgl_edges *edges)
{
    for (int i = 0; i < edges->wait_count; i++)
        mgl_program_add_wait(p, edges->waits[i].counter, edges->waits[i].threshold);
    for (int i = 0; i < edges->signal_count; i++)
        mgl_program_add_signal(p, edges->signals[i]);
}

/* Makes split `split` of a kv head. */
static int make_attend(mgl_edit *e, const struct attention *a, int head, int split)
{
    const bool whole = a->splits == 1, tail = split == a->splits - 1;
    const mgl_op op = whole ? MGL_OP_ATTEND : tail ? MGL_OP_ATTEND_TAIL : MGL_OP_ATTEND_PAST;
    const mgl_task like = e->p->tasks[a->heads[head]];
    const int group = e->p->geometry.heads / e->p->geometry.kv_heads;
    int task = mgl_edit_new(e, op, (mgl_role){a->layer, MGL_STEP_ATTEND});
    if (task < 0)
        return -1;
    mgl_program_set_variant(e->p, like.variant);
    const mgl_attention_operands *o = mgl_op_attention(like.op);
    for (int i = 0; i < like.in.count; i++) {
        const mgl_region region = e->p->regions[like.in.first + i];
        const int operand = mgl_task_operand_at(&like, i);
        if (tail || (operand != o->k && operand != o->v && operand != o->k_g))
            mgl_program_add_in(e->p, &region);
    }
    const mgl_region q = *mgl_task_operand(e->p, &like, o->q);
    mgl_region y = a->y, part;
    y.ranges[1] = q.ranges[1];
    if (!whole) {
        part = part_of(e, a, (int64_t)head * group, (int64_t)(head + 1) * group);
        part.ranges[0] = (mgl_range){MGL_RANGE_FIXED, split, split + 1};
    }
    mgl_program_add_out(e->p, whole ? &y : &part);
    for (int i = o->k_now; tail && i <= o->v_now; i++) {
        mgl_region region = *mgl_task_operand(e->p, &like, i);
        if (whole)
            region.ranges[2] = (mgl_range){MGL_RANGE_NOW, 0, 0};
        mgl_program_add_out(e->p, &region);
    }
    add_edges(e->p, &a->attend);
    return mgl_program_failed(e->p) ? -1 : task;
}

static int make_merge(mgl_edit *e, const struct attention *a, int64_t first, int64_t end)
{
    const int d = e->p->geometry.head_dim;
    const mgl_region part = part_of(e, a, first, end);
    mgl_region y = a->y;
    y.ranges[0] = split_rows(a);
    y.ranges[1] = (mgl_range){MGL_RANGE_FIXED, first * d, end * d};
    int task = mgl_edit_new(e, MGL_OP_MERGE, (mgl_role){a->layer, MGL_EDIT_MERGE});
    if (task < 0)
        return -1;
    mgl_program_add_in(e->p, &part);
    mgl_program_add_out(e->p, &y);
    add_edges(e->p, &a->merge);
    return mgl_program_failed(e->p) ? -1 : task;
}

/* Puts task i of T on queue i n / T of the n queues [from, to). */
static mgl_status deal(mgl_edit *e, int from, int to, int task, int64_t i, int64_t count)
{
    return mgl_edit_put(e, from + (int)(i * (to - from) / count), task);
}

static mgl_status make_tasks(mgl_edit *e, const struct attention *a)
{
    const mgl_geometry *m = &e->p->geometry;
    const int attends = a->head_count * a->splits;
    mgl_status status = MGL_OK;
    for (int i = 0; i < attends && !status; i++)
        status =
            deal(e, a->from, a->to, make_attend(e, a, i / a->splits, i % a->splits), i, attends);
    const int heads =
        a->merged ? a->merged
                  : mgl_merged_heads(m, &e->p->exec, a->y.flag, e->p->buffers[a->y.buffer].dtype);
    const int merges = a->splits > 1 ? (m->heads + heads - 1) / heads : 0;
    for (int i = 0; i < merges && !status; i++) {
        const int64_t first = (int64_t)i * heads, end = first + heads;
        status = deal(e, a->merge_from, a->merge_to,
                      make_merge(e, a, first, end < m->heads ? end : m->heads), i, merges);
    }
    return status;
}

/* Removes the layer's tasks of the step from their queues. If the new attention has splits, the
 * attention of unsplit rows stays. */
static void take_off(mgl_edit *e, const struct attention *a, int step)
{
    for (int q = 0; q < e->p->queue_count; q++)
        for (size_t i = e->queues[q].count; i > 0; i--) {
            const int task = mgl_edit_at(e, q, i - 1);
            const mgl_role *role = &e->roles[task];
            if (role->layer == a->layer && role->step == step &&
                !(a->splits > 1 && is_unsplit(e, task)))
                mgl_edit_remove(e, q, i - 1);
        }
}

static mgl_status split(mgl_edit *e, struct attention *a)
{
    mgl_edit_tasks attends = {0}, merges = {0};
    mgl_status status = mgl_edit_collect(e, a->layer, MGL_STEP_ATTEND, &attends);
    if (!status)
        status = mgl_edit_collect(e, a->layer, MGL_EDIT_MERGE, &merges);
    find_unsplit(e, &attends, a);
    if (!status)
        status = find_heads(e, &attends, a);
    find_queues(&attends, &merges, a);
    const int old = a->part;
    if (!status)
        status = find_edges(e, &merges, a);
    if (!status)
        status = find_buffer(e, a);
    mgl_free(attends.items);
    mgl_free(merges.items);
    if (status)
        return status;
    take_off(e, a, MGL_STEP_ATTEND);
    take_off(e, a, MGL_EDIT_MERGE);
    status = make_tasks(e, a);
    const int written[3] = {old, a->part, a->y.buffer};
    for (int i = 0; i < 3 && !status; i++)
        if (written[i] >= 0 && e->p->buffers[written[i]].sets > 1 &&
            (i == 0 || written[i] != written[0]))
            status = mgl_edit_mend_buffer(e, a->layer, written[i]);
    return status;
}

mgl_status mgl_move_splits(mgl_edit *e, const mgl_move *move)
{
    int first, end;
    mgl_status status = mgl_edit_layers(e, move, &first, &end);
    if (status)
        return status;
    if (move->count > MGL_MAX_SPLITS)
        return mgl_edit_refuse(e, "attention has 1 to %d splits", MGL_MAX_SPLITS);
    if (move->from >= move->to || move->from < 0 || move->to > e->p->queue_count)
        return mgl_edit_refuse(e, "queues [%d, %d) are not within the program's %d", move->from,
                               move->to, e->p->queue_count);
    struct attention *a = mgl_alloc_zero(1, sizeof *a);
    if (!a)
        return mgl_edit_no_memory(e);
    for (int layer = first; layer < end && !status; layer++) {
        *a = (struct attention){
            .layer = layer, .splits = move->count, .from = move->from, .to = move->to, .part = -1};
        status = split(e, a);
    }
    mgl_free(a);
    return status;
}
