/*
 * Draws random moves, the proposals of a search. Most draws are small changes of the program
 * (adjacent queues, few row groups, one or two places), because the validator accepts small changes
 * more often, and they are better more often. A draw inspects the program, so that the move names
 * existing tasks.
 */
#include "schedule/moves/edit.h"

#include "base/draw.h"
#include "base/memory.h"

enum {
    TRIES = 64,
    LOADS = 8 /* candidates among which the load decides */
};

/* The program for which a move is drawn. */
struct drawing {
    const mgl_program *p;
    mgl_role *roles; /* (tasks) */
    int *queue_of;   /* (tasks) */
    uint64_t *state;
};

static int below(struct drawing *d, int count)
{
    return count > 1 ? (int)mgl_draw_below(d->state, (uint64_t)count) : 0;
}

/* A number from 1 to `most`; small numbers are more likely. */
static int few(struct drawing *d, int most)
{
    int n = 1;
    while (n < most && below(d, 2))
        n++;
    return n;
}

static int clamp(int value, int lowest, int highest)
{
    return value < lowest ? lowest : value > highest ? highest : value;
}

/* A uniformly drawn task of the step. -1: there is none. */
static int draw_task(struct drawing *d, int step)
{
    int count = 0;
    for (int t = 0; t < d->p->task_count; t++)
        count += d->roles[t].step == step;
    int nth = below(d, count);
    for (int t = 0; t < d->p->task_count && count; t++)
        if (d->roles[t].step == step && nth-- == 0)
            return t;
    return -1;
}

/* The task's layer, or sometimes all layers. */
static int draw_layer(struct drawing *d, int task)
{
    return d->roles[task].step == MGL_STEP_HEAD || below(d, 3) == 0 ? MGL_MOVE_ALL
                                                                    : d->roles[task].layer;
}

/* The same, but always all layers if the residual belongs to its queues. */
static int draw_layer_of_rows(struct drawing *d, int task)
{
    const mgl_task *t = &d->p->tasks[task];
    const bool owned = mgl_op_adds(t->op) && t->out.count == 2;
    return owned ? MGL_MOVE_ALL : draw_layer(d, task);
}

static bool is_alike(const struct drawing *d, int a, int b)
{
    return d->roles[a].step == d->roles[b].step && d->roles[a].layer == d->roles[b].layer;
}

/* ---- work on other queues -------------------------------------------------------------------- */

/* The queue with the columns before or after the task's. -1: none. */
static int find_neighbour(const struct drawing *d, int task, bool behind)
{
    const mgl_range own = mgl_task_columns(d->p, &d->p->tasks[task]);
    for (int t = 0; t < d->p->task_count; t++) {
        if (t == task || !is_alike(d, t, task))
            continue;
        const mgl_range other = mgl_task_columns(d->p, &d->p->tasks[t]);
        if (behind ? other.lo == own.hi : other.hi == own.lo)
            return d->queue_of[t];
    }
    return -1;
}

/* The task on the longest or shortest tape, of several draws. */
static int draw_by_load(struct drawing *d, int step, bool most)
{
    int best = draw_task(d, step);
    for (int i = 1; i < LOADS && best >= 0; i++) {
        const int task = draw_task(d, step);
        const int64_t a = d->p->queues[d->queue_of[task]].tape_bytes;
        const int64_t b = d->p->queues[d->queue_of[best]].tape_bytes;
        if (most ? a > b : a < b)
            best = task;
    }
    return best;
}

/* From a queue with a long tape to a queue with a short one; otherwise mostly to a neighbor. */
static bool draw_rows(struct drawing *d, mgl_move *out)
{
    static const int steps[] = {MGL_STEP_QKV, MGL_STEP_O, MGL_STEP_GATE_UP, MGL_STEP_DOWN,
                                MGL_STEP_HEAD};
    const int step = steps[below(d, 5)];
    const bool balance = below(d, 3) == 0;
    const int task = balance ? draw_by_load(d, step, true) : draw_task(d, step);
    if (task < 0)
        return false;
    const int groups = (int)mgl_task_groups(d->p, &d->p->tasks[task]);
    const int near =
        balance ? d->queue_of[draw_by_load(d, step, false)] : find_neighbour(d, task, below(d, 2));
    out->layer = draw_layer_of_rows(d, task);
    out->step = d->roles[task].step;
    out->from = d->queue_of[task];
    out->to = near >= 0 && below(d, 8) ? near : below(d, d->p->queue_count);
    out->count = few(d, groups < 8 ? groups : 8);
    return out->to != out->from;
}

/* The range of queues that have tasks of this step and layer. */
static void find_run(const struct drawing *d, int task, int *first, int *end)
{
    *first = *end = d->queue_of[task];
    for (int t = 0; t < d->p->task_count; t++)
        if (is_alike(d, t, task)) {
            *first = d->queue_of[t] < *first ? d->queue_of[t] : *first;
            *end = d->queue_of[t] > *end ? d->queue_of[t] : *end;
        }
    ++*end;
}

static bool draw_queues(struct drawing *d, mgl_move *out)
{
    static const int steps[] = {MGL_STEP_QKV,     MGL_STEP_ATTEND, MGL_EDIT_MERGE, MGL_STEP_O,
                                MGL_STEP_GATE_UP, MGL_STEP_DOWN,   MGL_STEP_HEAD};
    const int task = draw_task(d, steps[below(d, 7)]), count = d->p->queue_count;
    int first, end;
    if (task < 0)
        return false;
    find_run(d, task, &first, &end);
    const int by = few(d, 16);
    switch (below(d, 4)) {
    case 0:
        end += below(d, 2) ? by : -by;
        break;
    case 1:
        first += below(d, 2) ? by : -by;
        break;
    case 2:
        first += by;
        end += by;
        break;
    default:
        first -= by;
        end -= by;
        break;
    }
    out->layer = draw_layer_of_rows(d, task);
    out->step = d->roles[task].step;
    out->from = clamp(first, 0, count - 1);
    out->to = clamp(end, out->from + 1, count);
    return true;
}

static bool draw_place(struct drawing *d, mgl_move *out)
{
    const int task = draw_task(d, below(d, 2) ? MGL_STEP_ATTEND : MGL_EDIT_MERGE);
    const int count = d->p->queue_count;
    if (task < 0)
        return false;
    const int by = few(d, 8), from = d->queue_of[task];
    out->layer = draw_layer(d, task);
    out->step = d->roles[task].step;
    out->from = from;
    out->to = below(d, 2) ? clamp(from + (below(d, 2) ? by : -by), 0, count - 1) : below(d, count);
    return out->to != from;
}

static bool draw_sample(struct drawing *d, mgl_move *out)
{
    const int task = draw_task(d, MGL_EDIT_SAMPLE);
    out->to = below(d, d->p->queue_count);
    return task >= 0 && out->to != d->queue_of[task];
}

/* ---- places on a queue ----------------------------------------------------------------------- */

/* Whether one of two tasks writes a region that the other accesses. */
static bool depends(const struct drawing *d, int a, int b)
{
    const mgl_program *p = d->p;
    const mgl_task *x = &p->tasks[a], *y = &p->tasks[b];
    for (int i = 0; i < x->in.count + x->out.count; i++)
        for (int j = 0; j < y->in.count + y->out.count; j++) {
            const mgl_region *r = &p->regions[x->in.first + i], *s = &p->regions[y->in.first + j];
            if ((i >= x->in.count || j >= y->in.count) && r->buffer == s->buffer &&
                mgl_regions_meet(r, s, p->buffers[r->buffer].rank))
                return true;
        }
    return false;
}

/* The number of places that a task can move on its queue before it meets a task that it depends
 * on, or a task of its own step. A clear depends on nothing. Other tasks are ordered by their
 * steps, so a task other than a clear is passed only if `bold`. */
static int find_room(const struct drawing *d, int task, int by, int most, bool bold)
{
    const mgl_run *run = &d->p->queues[d->queue_of[task]].tasks;
    int room = 0;
    for (int t = task + by; t > run->first && t < run->first + run->count && room < most; t += by) {
        const bool clears =
            d->roles[t].step == MGL_EDIT_CLEAR || d->roles[task].step == MGL_EDIT_CLEAR;
        if (d->roles[t].step == MGL_EDIT_SAMPLE || is_alike(d, t, task) ||
            (!clears && (!bold || depends(d, t, task))))
            break;
        room++;
    }
    return room;
}

/* The minimum of that number over tasks of this step on the queue, in any layer. */
static int find_least_room(const struct drawing *d, int task, int by, int most)
{
    const mgl_run *run = &d->p->queues[d->queue_of[task]].tasks;
    for (int t = run->first; t < run->first + run->count; t++)
        if (d->roles[t].step == d->roles[task].step)
            most = find_room(d, t, by, most, false);
    return most;
}

/* Moves a task some places, in its layer or in all layers. False: there is no room. */
static bool draw_places(struct drawing *d, int task, int most, mgl_move *out)
{
    const int by = below(d, 2) ? 1 : -1;
    const bool bold = below(d, 16) == 0;
    if (task < 0)
        return false;
    const bool all = !bold && draw_layer(d, task) == MGL_MOVE_ALL;
    const int room = all ? find_least_room(d, task, by, most) : find_room(d, task, by, most, bold);
    if (room == 0 || (d->roles[task].step == MGL_STEP_HEAD && !all))
        return false;
    out->layer = all ? MGL_MOVE_ALL : d->roles[task].layer;
    out->from = d->queue_of[task];
    out->count = by * few(d, room);
    return true;
}

static bool draw_shift(struct drawing *d, mgl_move *out)
{
    const int task = draw_task(d, below(d, MGL_EDIT_MERGE + 1));
    out->step = task < 0 ? 0 : d->roles[task].step;
    return draw_places(d, task, 4, out);
}

/* A step that writes words that the clear resets. -1: embed writes them. */
static int draw_step_of_clear(struct drawing *d, int clear)
{
    const mgl_program *p = d->p;
    const mgl_run *run = &p->queues[d->queue_of[clear]].tasks, out = p->tasks[clear].out;
    const int buffer = p->regions[out.first + below(d, out.count)].buffer;
    for (int t = run->first; t < run->first + run->count; t++)
        for (int i = p->tasks[t].out.first; i < p->tasks[t].out.first + p->tasks[t].out.count; i++)
            if (p->regions[i].flag && p->regions[i].buffer == buffer)
                return d->roles[t].step <= MGL_EDIT_MERGE ? d->roles[t].step : -1;
    return -1;
}

static bool draw_clear(struct drawing *d, mgl_move *out)
{
    const int task = draw_task(d, MGL_EDIT_CLEAR);
    out->step = task < 0 ? -1 : draw_step_of_clear(d, task);
    return out->step >= 0 && draw_places(d, task, 6, out);
}

/* ---- splits and edges ------------------------------------------------------------------------ */

static bool draw_splits(struct drawing *d, mgl_move *out)
{
    const int task = draw_task(d, MGL_STEP_ATTEND), count = d->p->queue_count;
    int first, end;
    if (task < 0)
        return false;
    const mgl_region *part = &d->p->regions[d->p->tasks[task].out.first];
    const bool whole = d->p->tasks[task].op == MGL_OP_ATTEND;
    const int splits = whole ? 1 : (int)d->p->buffers[part->buffer].extents[0].count;
    const int drawn[] = {splits + 1, splits - 1, splits * 2, splits / 2, 1 + below(d, 8)};
    find_run(d, task, &first, &end);
    out->count = clamp(drawn[below(d, 5)], 1, MGL_MAX_SPLITS);
    const int64_t wanted = (int64_t)d->p->geometry.kv_heads * out->count;
    const int run = wanted < count ? (int)wanted : count;
    out->layer = draw_layer(d, task);
    out->from = end - first >= run ? first : clamp(first, 0, count - run);
    out->to = end - first >= run ? end : out->from + run;
    return out->count != splits;
}

/* A task of a step that others read, and whether its result is flagged. */
static int draw_writer(struct drawing *d, bool *flagged)
{
    const int task = draw_task(d, below(d, MGL_EDIT_MERGE + 1));
    const mgl_task *t = task < 0 ? NULL : &d->p->tasks[task];
    *flagged = t && d->p->regions[t->out.first + (mgl_op_adds(t->op) && t->out.count == 2)].flag;
    return task;
}

/* Number of tasks of this step and layer. *several: they signal several counters. */
static int count_alike(const struct drawing *d, int task, bool *several)
{
    const mgl_program *p = d->p;
    const mgl_run own = p->tasks[task].signals;
    int count = 0;
    *several = false;
    for (int t = 0; t < p->task_count; t++) {
        const mgl_run run = p->tasks[t].signals;
        if (!is_alike(d, t, task))
            continue;
        count++;
        *several |= own.count && run.count && p->signals[run.first] != p->signals[own.first];
    }
    return count;
}

static bool draw_edges(struct drawing *d, mgl_move *out)
{
    bool flagged;
    const int task = draw_writer(d, &flagged);
    if (task < 0)
        return false;
    bool several;
    const int alike = count_alike(d, task, &several);
    const bool signals = d->p->tasks[task].signals.count > 0;
    out->layer = draw_layer(d, task);
    out->step = d->roles[task].step;
    switch (out->kind) {
    case MGL_MOVE_SETS:
        out->count = 2 + below(d, 3);
        return flagged;
    case MGL_MOVE_COUNTED:
        return flagged;
    case MGL_MOVE_FINER:
        out->count = 1 + few(d, alike < 8 ? alike - 1 : 7);
        return signals && !flagged && !several && alike > 1;
    case MGL_MOVE_COARSER:
        return several;
    default: /* flagged */
        return signals && !flagged && out->step != MGL_STEP_HEAD;
    }
}

/* ---- all kinds ------------------------------------------------------------------------------- */

static bool draw(struct drawing *d, mgl_move *out)
{
    switch (out->kind) {
    case MGL_MOVE_QUEUES:
        return draw_queues(d, out);
    case MGL_MOVE_ROWS:
        return draw_rows(d, out);
    case MGL_MOVE_SHIFT:
        return draw_shift(d, out);
    case MGL_MOVE_PLACE:
        return draw_place(d, out);
    case MGL_MOVE_SPLITS:
        return draw_splits(d, out);
    case MGL_MOVE_CLEAR:
        return draw_clear(d, out);
    case MGL_MOVE_SAMPLE:
        return draw_sample(d, out);
    default:
        return draw_edges(d, out);
    }
}

/* One of the kinds whose bits are set. */
static mgl_move_kind draw_kind(struct drawing *d, unsigned kinds)
{
    int nth = below(d, __builtin_popcount(kinds)), kind = 0;
    while (!(kinds >> kind & 1) || nth-- > 0)
        kind++;
    return (mgl_move_kind)kind;
}

bool mgl_move_draw(const mgl_program *program, unsigned kinds, uint64_t *state, mgl_move *out)
{
    struct drawing d = {.p = program, .state = state};
    bool drawn = false;
    kinds &= (1U << MGL_MOVE_COUNT) - 1;
    d.roles = mgl_alloc_zero((size_t)program->task_count + 1, sizeof *d.roles);
    d.queue_of = mgl_alloc_zero((size_t)program->task_count + 1, sizeof *d.queue_of);
    bool ready = kinds && d.roles && d.queue_of && !mgl_roles_find(program, d.roles, NULL);
    for (int q = 0; q < program->queue_count && ready; q++)
        for (int i = 0; i < program->queues[q].tasks.count; i++)
            d.queue_of[program->queues[q].tasks.first + i] = q;
    for (int i = 0; i < TRIES && ready && !drawn; i++) {
        mgl_move move = {.kind = draw_kind(&d, kinds)};
        drawn = draw(&d, &move);
        *out = drawn ? move : (mgl_move){0};
    }
    mgl_free(d.roles);
    mgl_free(d.queue_of);
    return drawn;
}
