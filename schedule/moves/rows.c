/*
 * Moves that redistribute work: `rows` moves row groups from queue to queue, and `queues`
 * redistributes a whole step. Rows are the columns that a product computes. A piece is cut off one
 * task's segments and joined to another task's, together with the columns of all operands that are
 * sliced alike.
 *
 * With flags the residual stays with its queue: embed, o and down of all layers have the same
 * columns of the residual. Therefore one move changes all of them.
 */
#include "schedule/moves/edit.h"

#include "base/memory.h"

enum {
    MOST_SEGMENTS = 3, /* segments of a task: parts of q, k and v */
    MOST_TASKS = 256   /* tasks of a step on a queue */
};

/* Contiguous rows of a step: columns [lo, hi). embed has no segments. */
struct share {
    mgl_segment segments[MOST_SEGMENTS]; /* (count) */
    mgl_region biases[MOST_SEGMENTS];    /* of each segment's tensor, if has_biases */
    bool has_biases;
    int count;
    int64_t lo, hi;
};

static struct share share_of(const mgl_edit *e, int task)
{
    const mgl_task *t = &e->p->tasks[task];
    const mgl_range columns = mgl_task_columns(e->p, t);
    struct share share = {.count = t->segments.count, .lo = columns.lo, .hi = columns.hi};
    const int first = mgl_op_get(t->op)->in_count;
    share.has_biases = mgl_op_get(t->op)->layout == MGL_LAYOUT_G8 && mgl_task_biases(t) > 0;
    for (int i = 0; i < share.count; i++)
        share.segments[i] = e->p->segments[t->segments.first + i];
    for (int i = 0; share.has_biases && i < share.count && first + i < t->in.count; i++)
        share.biases[i] = e->p->regions[t->in.first + first + i];
    return share;
}

static int64_t groups_of(int64_t rows)
{
    return (rows + MGL_ROW_GROUP - 1) / MGL_ROW_GROUP;
}

static int64_t count_groups(const struct share *share)
{
    int64_t groups = share->count ? 0 : groups_of(share->hi - share->lo);
    for (int i = 0; i < share->count; i++)
        groups += groups_of(mgl_segment_rows(&share->segments[i]));
    return groups;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Row groups [first, end) of a share. */
static struct share cut(const struct share *share, int64_t first, int64_t end)
{
    struct share piece = {.has_biases = share->has_biases, .lo = -1};
    int64_t column = share->lo, base = 0;
    if (share->count == 0)
        return (struct share){.lo = share->lo + first * MGL_ROW_GROUP,
                              .hi = least(share->lo + end * MGL_ROW_GROUP, share->hi)};
    for (int i = 0; i < share->count; i++) {
        const mgl_segment *s = &share->segments[i];
        const int64_t rows = mgl_segment_rows(s), groups = groups_of(rows);
        const int64_t a = first > base ? first - base : 0, b = least(end - base, groups);
        if (a < b) {
            piece.biases[piece.count] = share->biases[i];
            mgl_segment *to = &piece.segments[piece.count++];
            *to = *s;
            to->row_lo = s->row_lo + a * MGL_ROW_GROUP;
            to->row_hi = least(s->row_lo + b * MGL_ROW_GROUP, s->row_hi);
            piece.lo = piece.lo < 0 ? column + a * MGL_ROW_GROUP : piece.lo;
            piece.hi = column + least(b * MGL_ROW_GROUP, rows);
        }
        base += groups;
        column += rows;
    }
    return piece;
}

/* Whether segment b continues segment a at a row-group boundary. */
static bool goes_on(const mgl_segment *a, const mgl_segment *b)
{
    return a->tensor == b->tensor && a->tensor2 == b->tensor2 && a->layout == b->layout &&
           a->col_lo == b->col_lo && a->col_hi == b->col_hi && a->row_hi == b->row_lo &&
           a->row_hi % MGL_ROW_GROUP == 0;
}

/* Appends b to a. False: b does not continue a, or the task would have too many segments. */
static bool join(struct share *a, const struct share *b)
{
    if (a->hi != b->lo || (a->count > 0) != (b->count > 0) || a->has_biases != b->has_biases)
        return false;
    for (int i = 0; i < b->count; i++) {
        mgl_segment *last = &a->segments[a->count - 1];
        if (goes_on(last, &b->segments[i])) {
            last->row_hi = b->segments[i].row_hi;
            continue;
        }
        if (a->count == MOST_SEGMENTS)
            return false;
        a->biases[a->count] = b->biases[i];
        a->segments[a->count++] = b->segments[i];
    }
    a->hi = b->hi;
    return true;
}

/* A copy of a task with these rows. -1: no memory. */
static int reshape(mgl_edit *e, int like, const struct share *share)
{
    const mgl_task old = e->p->tasks[like];
    const mgl_op_info *info = mgl_op_get(old.op);
    int task = mgl_edit_new(e, old.op, e->roles[like]);
    if (task < 0)
        return -1;
    mgl_program_set_variant(e->p, old.variant);
    for (int i = 0; i < old.in.count + old.out.count; i++) {
        mgl_region region = e->p->regions[old.in.first + i];
        if (share->has_biases && i >= info->in_count && i < old.in.count)
            continue;
        if (info->operands[mgl_task_operand_at(&old, i)].ranges[1] == 'S')
            region.ranges[1] = (mgl_range){MGL_RANGE_FIXED, share->lo, share->hi};
        if (i < old.in.count)
            mgl_program_add_in(e->p, &region);
        else
            mgl_program_add_out(e->p, &region);
        for (int k = 0; share->has_biases && i + 1 == info->in_count && k < share->count; k++)
            mgl_program_add_in(e->p, &share->biases[k]);
    }
    for (int i = 0; i < share->count; i++)
        mgl_program_add_segment(e->p, &share->segments[i]);
    for (int i = old.waits.first; i < old.waits.first + old.waits.count; i++)
        mgl_program_add_wait(e->p, e->p->waits[i].counter, e->p->waits[i].threshold);
    for (int i = old.signals.first; i < old.signals.first + old.signals.count; i++)
        mgl_program_add_signal(e->p, e->p->signals[i]);
    return mgl_program_failed(e->p) ? -1 : task;
}

static mgl_status replace(mgl_edit *e, int queue, size_t place, int like, const struct share *share)
{
    int task = reshape(e, like, share);
    if (task < 0)
        return mgl_edit_no_memory(e);
    e->queues[queue].items[place] = task;
    return MGL_OK;
}

/* Whether o or down writes its columns of the residual twice: in place, and as a copy for
 * others. */
static bool owns_residual(const mgl_edit *e, int task)
{
    return mgl_op_adds(e->p->tasks[task].op) && e->p->tasks[task].out.count == 2;
}

/* A task of the step on any queue. -1: there is none. */
static int find_any(const mgl_edit *e, int layer, int step)
{
    for (int q = 0; q < e->p->queue_count; q++) {
        size_t place;
        if (mgl_edit_find(e, q, layer, step, &place, 1))
            return mgl_edit_at(e, q, place);
    }
    return -1;
}

/* ---- group by group ------------------------------------------------------------------------- */

/* Row groups in transfer: from the end or the beginning of a task, to a task that they are
 * contiguous with. */
struct passing {
    size_t giver, taker; /* places */
    bool last;           /* the last groups of the giver */
    bool joins;          /* there is a taker */
};

/* Finds giver and taker: two tasks with adjacent columns. Otherwise the giver's end on the side
 * of the target queue. False: the queue has no task of the step. */
static bool find_passing(const mgl_edit *e, int layer, int step, int from, int to,
                         struct passing *out)
{
    size_t givers[MOST_TASKS], takers[MOST_TASKS];
    const size_t m = mgl_edit_find(e, from, layer, step, givers, MOST_TASKS);
    const size_t n = mgl_edit_find(e, to, layer, step, takers, MOST_TASKS);
    for (int last = 1; last >= 0; last--)
        for (size_t i = 0; i < m; i++)
            for (size_t j = 0; j < n; j++) {
                const struct share a = share_of(e, mgl_edit_at(e, from, givers[i]));
                const struct share b = share_of(e, mgl_edit_at(e, to, takers[j]));
                if (last ? a.hi == b.lo : b.hi == a.lo) {
                    *out = (struct passing){givers[i], takers[j], last != 0, true};
                    return true;
                }
            }
    *out = (struct passing){.last = from < to};
    for (size_t i = 0; i < m; i++) {
        const int64_t lo = share_of(e, mgl_edit_at(e, from, givers[i])).lo;
        const int64_t best = share_of(e, mgl_edit_at(e, from, givers[out->giver])).lo;
        if (i == 0 || (out->last ? lo > best : lo < best))
            out->giver = i;
    }
    out->giver = m ? givers[out->giver] : 0;
    return m > 0;
}

/* Joins the groups to the taker, or makes a separate task of them. */
static mgl_status take(mgl_edit *e, const struct passing *passing, int to, int giver,
                       const struct share *moved)
{
    if (!passing->joins)
        return mgl_edit_put(e, to, reshape(e, giver, moved));
    const int taker = mgl_edit_at(e, to, passing->taker);
    struct share first = passing->last ? *moved : share_of(e, taker);
    const struct share second = passing->last ? share_of(e, taker) : *moved;
    if (!join(&first, &second))
        return mgl_edit_refuse(e, "queue %d would have rows of too many tensors in one task", to);
    return replace(e, to, passing->taker, taker, &first);
}

static mgl_status pass(mgl_edit *e, int layer, int step, const mgl_move *move)
{
    struct passing passing;
    if (!find_passing(e, layer, step, move->from, move->to, &passing))
        return mgl_edit_refuse(e, "queue %d has no task of the step in layer %d", move->from,
                               layer);
    const int giver = mgl_edit_at(e, move->from, passing.giver);
    const struct share all = share_of(e, giver);
    const int64_t groups = count_groups(&all), n = move->count;
    if (n > groups)
        return mgl_edit_refuse(e, "the task of queue %d has %lld row groups", move->from,
                               (long long)groups);
    const struct share moved = passing.last ? cut(&all, groups - n, groups) : cut(&all, 0, n);
    const struct share rest = passing.last ? cut(&all, 0, groups - n) : cut(&all, n, groups);
    mgl_status status = take(e, &passing, move->to, giver, &moved);
    if (!status && n == groups)
        mgl_edit_remove(e, move->from, passing.giver);
    else if (!status)
        status = replace(e, move->from, passing.giver, giver, &rest);
    if (!status)
        status = mgl_edit_mend_like(e, move->from, e->roles[giver].layer, giver);
    return status ? status : mgl_edit_mend_like(e, move->to, e->roles[giver].layer, giver);
}

/* Calls `each` for the move's layers and step, or for the residual steps of all layers. */
typedef mgl_status each_fn(mgl_edit *e, int layer, int step, const mgl_move *move);

static mgl_status each_of_residual(mgl_edit *e, const mgl_move *move, each_fn *each)
{
    mgl_status status = each(e, 0, MGL_EDIT_EMBED, move);
    for (int layer = 0; layer < e->p->geometry.layers && !status; layer++) {
        status = each(e, layer, MGL_STEP_O, move);
        if (!status)
            status = each(e, layer, MGL_STEP_DOWN, move);
    }
    return status;
}

static mgl_status each_layer(mgl_edit *e, const mgl_move *move, each_fn *each)
{
    int first, end;
    mgl_status status = mgl_edit_layers(e, move, &first, &end);
    if (status)
        return status;
    const int any = find_any(e, first, move->step);
    if (any < 0)
        return mgl_edit_refuse(e, "layer %d has no such task", first);
    if (owns_residual(e, any)) {
        if (move->layer != MGL_MOVE_ALL)
            return mgl_edit_refuse(e,
                                   "with flags the residual stays with its queue in every layer, "
                                   "and in o and down: write layer=all");
        return each_of_residual(e, move, each);
    }
    for (int layer = first; layer < end && !status; layer++)
        status = each(e, layer, move->step, move);
    return !status && move->step == MGL_STEP_HEAD ? mgl_edit_mend_heads(e) : status;
}

mgl_status mgl_move_rows(mgl_edit *e, const mgl_move *move)
{
    mgl_status status = mgl_edit_check_queue(e, move->from);
    if (!status)
        status = mgl_edit_check_queue(e, move->to);
    if (status)
        return status;
    if (!mgl_role_has_columns(move->step))
        return mgl_edit_refuse(e, "attend and merge have heads rather than rows: see place");
    if (move->from == move->to)
        return mgl_edit_refuse(e, "the rows are on that queue already");
    return each_layer(e, move, pass);
}

/* ---- whole steps ----------------------------------------------------------------------------- */

static mgl_status mend_all(mgl_edit *e, int like)
{
    mgl_status status = MGL_OK;
    for (int q = 0; q < e->p->queue_count && !status; q++)
        status = mgl_edit_mend_like(e, q, e->roles[like].layer, like);
    return status;
}

/* Removes the step's tasks from the queue, except the first one if `keeps`, whose place is
 * *kept. Returns whether a task was kept. */
static bool take_off(mgl_edit *e, int queue, mgl_role role, bool keeps, size_t *kept)
{
    bool found = false;
    for (size_t i = e->queues[queue].count; i > 0; i--) {
        const mgl_role *r = &e->roles[mgl_edit_at(e, queue, i - 1)];
        if (r->layer != role.layer || r->step != role.step)
            continue;
        if (found)
            mgl_edit_remove(e, queue, *kept);
        *kept = i - 1;
        found = true;
    }
    if (found && !keeps)
        mgl_edit_remove(e, queue, *kept);
    return found && keeps;
}

/* Gives the queue one task of the step with that share, reusing its first task. NULL: none. */
static mgl_status give(mgl_edit *e, int queue, int like, const struct share *share)
{
    size_t place = 0;
    const bool kept = take_off(e, queue, e->roles[like], share != NULL, &place);
    if (!share)
        return MGL_OK;
    return kept ? replace(e, queue, place, mgl_edit_at(e, queue, place), share)
                : mgl_edit_put(e, queue, reshape(e, like, share));
}

/* Distributes rows: queue i of n gets groups [G i / n, G (i + 1) / n). */
static mgl_status deal_rows(mgl_edit *e, const mgl_edit_tasks *tasks, const mgl_move *move)
{
    const int like = tasks->items[0].task, n = move->to - move->from;
    struct share all = share_of(e, like);
    mgl_status status = MGL_OK;
    for (size_t i = 1; i < tasks->count; i++) {
        const struct share next = share_of(e, tasks->items[i].task);
        if (!join(&all, &next))
            return mgl_edit_refuse(e, "the rows of the step are not the columns in order");
    }
    const int64_t groups = count_groups(&all);
    for (int q = 0; q < e->p->queue_count && !status; q++) {
        const int64_t i = q - move->from;
        const bool in = i >= 0 && i < n && groups * i / n < groups * (i + 1) / n;
        const struct share share =
            in ? cut(&all, groups * i / n, groups * (i + 1) / n) : (struct share){0};
        status = give(e, q, like, in ? &share : NULL);
    }
    return status ? status : mend_all(e, like);
}

/* Distributes heads: task i of T goes to queue i n / T of n. */
static mgl_status deal_heads(mgl_edit *e, const mgl_edit_tasks *tasks, const mgl_move *move)
{
    const int like = tasks->items[0].task, n = move->to - move->from;
    mgl_status status = MGL_OK;
    for (int q = 0; q < e->p->queue_count && !status; q++)
        status = give(e, q, like, NULL);
    for (size_t i = 0; i < tasks->count && !status; i++)
        status =
            mgl_edit_put(e, move->from + (int)(i * (size_t)n / tasks->count), tasks->items[i].task);
    return status ? status : mend_all(e, like);
}

static mgl_status deal(mgl_edit *e, int layer, int step, const mgl_move *move)
{
    mgl_edit_tasks tasks = {0};
    mgl_status status = mgl_edit_collect(e, layer, step, &tasks);
    if (!status && tasks.count == 0)
        status = mgl_edit_refuse(e, "layer %d has no such task", layer);
    if (!status && mgl_role_has_columns(step))
        status = deal_rows(e, &tasks, move);
    else if (!status)
        status = deal_heads(e, &tasks, move);
    mgl_free(tasks.items);
    return status;
}

mgl_status mgl_move_queues(mgl_edit *e, const mgl_move *move)
{
    if (move->from >= move->to || move->from < 0 || move->to > e->p->queue_count)
        return mgl_edit_refuse(e, "queues [%d, %d) are not within the program's %d", move->from,
                               move->to, e->p->queue_count);
    return each_layer(e, move, deal);
}
