/* Implements constraints.h: collects counter thresholds and flagged input regions, merges equal
 * ones, and links them to the tasks that feed them and wait for them. */
#include "schedule/cost/constraints.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/memory.h"

/* State of the construction. */
struct making {
    const mgl_program *program;
    mgl_constraints *constraints;
    int *of_counter;            /* (counters) first link to a constraint of the counter */
    int *of_buffer;             /* (buffers) first link to a flagged output region */
    int *task_of;               /* (regions) */
    const mgl_region **flagged; /* (flagged_count) input regions, sorted so that equal ones are
                                   adjacent */
    int flagged_count;
    int rows;    /* the kind of the epoch's rows: MGL_ROWS_UNSPLIT or MGL_ROWS_SPLIT */
    bool failed; /* memory ran out */
};

/* ---- lists ---------------------------------------------------------------------------------- */

static void put(struct making *w, int *head, int to)
{
    mgl_constraints *g = w->constraints;
    if (!mgl_grow((void **)&g->links, &g->link_capacity, g->link_count, sizeof *g->links)) {
        w->failed = true;
        return;
    }
    g->links[g->link_count] = (mgl_constraint_link){to, *head};
    *head = (int)g->link_count++;
}

/* Returns the index of the new constraint, or -1 if memory ran out. */
static int add_constraint(struct making *w, mgl_constraint constraint)
{
    mgl_constraints *g = w->constraints;
    if (!mgl_grow((void **)&g->constraints, &g->capacity, g->count, sizeof *g->constraints)) {
        w->failed = true;
        return -1;
    }
    g->constraints[g->count] = constraint;
    return (int)g->count++;
}

static void add_reader(struct making *w, int constraint, int task)
{
    if (constraint < 0)
        return;
    put(w, &w->constraints->constraints[constraint].readers, task);
    w->constraints->waits[task]++;
}

/* ---- counters ------------------------------------------------------------------------------- */

static int find_counter_constraint(struct making *w, const mgl_wait *wait)
{
    const mgl_constraints *g = w->constraints;
    for (int i = w->of_counter[wait->counter]; i >= 0; i = g->links[i].next)
        if (g->constraints[g->links[i].to].threshold == wait->threshold)
            return g->links[i].to;
    int constraint = add_constraint(w, (mgl_constraint){.counter = wait->counter,
                                                        .threshold = wait->threshold,
                                                        .needs = wait->threshold,
                                                        .readers = -1});
    if (constraint >= 0)
        put(w, &w->of_counter[wait->counter], constraint);
    return constraint;
}

static void make_counter_constraints(struct making *w)
{
    const mgl_program *p = w->program;
    for (int t = 0; t < p->task_count && !w->failed; t++) {
        const mgl_run *waits = &p->tasks[t].waits;
        for (int i = waits->first; i < waits->first + waits->count; i++)
            if (p->waits[i].threshold > 0)
                add_reader(w, find_counter_constraint(w, &p->waits[i]), t);
    }
}

static void feed_counter_constraints(struct making *w)
{
    const mgl_program *p = w->program;
    for (int t = 0; t < p->task_count && !w->failed; t++) {
        const mgl_run *signals = &p->tasks[t].signals;
        for (int i = signals->first; i < signals->first + signals->count; i++)
            for (int l = w->of_counter[p->signals[i]]; l >= 0 && !w->failed;
                 l = w->constraints->links[l].next)
                put(w, &w->constraints->feeds[t], w->constraints->links[l].to);
    }
}

/* ---- flags ---------------------------------------------------------------------------------- */

static int compare(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* 0 if the regions are equal. */
static int compare_regions(const mgl_region *x, const mgl_region *y)
{
    int order = compare(x->buffer, y->buffer);
    for (int d = 0; d < MGL_MAX_RANK && order == 0; d++) {
        const mgl_range *r = &x->ranges[d], *s = &y->ranges[d];
        order = compare(r->kind, s->kind);
        order = order ? order : compare(r->lo, s->lo);
        order = order ? order : compare(r->hi, s->hi);
    }
    return order;
}

static int by_region(const void *a, const void *b)
{
    const mgl_region *x = *(const mgl_region *const *)a, *y = *(const mgl_region *const *)b;
    int order = compare_regions(x, y);
    return order ? order : compare(x - y, 0);
}

/* Whether the region has rows in this epoch. */
static bool has_rows(const struct making *w, const mgl_region *region)
{
    for (int d = 0; d < MGL_MAX_RANK; d++)
        if (mgl_range_has_row_kind(&region->ranges[d]) && region->ranges[d].lo != w->rows)
            return false;
    return true;
}

/* Collects the flagged inputs, and the flagged outputs by their buffer. */
static void find_flags(struct making *w)
{
    const mgl_program *p = w->program;
    for (int t = 0; t < p->task_count && !w->failed; t++) {
        const mgl_task *task = &p->tasks[t];
        for (int i = 0; i < task->in.count + task->out.count; i++) {
            int region = task->in.first + i;
            w->task_of[region] = t;
            if (!p->regions[region].flag || !has_rows(w, &p->regions[region]))
                continue;
            if (i < task->in.count)
                w->flagged[w->flagged_count++] = &p->regions[region];
            else
                put(w, &w->of_buffer[p->regions[region].buffer], region);
        }
    }
    MGL_ASSERT(w->flagged_count <= p->region_count);
    qsort(w->flagged, (size_t)w->flagged_count, sizeof *w->flagged, by_region);
}

/* Links all writers of words of the region to the constraint. */
static void feed_flag_constraint(struct making *w, int constraint, const mgl_region *region)
{
    const mgl_program *p = w->program;
    int rank = p->buffers[region->buffer].rank;
    for (int l = w->of_buffer[region->buffer]; l >= 0 && !w->failed;
         l = w->constraints->links[l].next) {
        int out = w->constraints->links[l].to;
        if (!mgl_regions_meet(region, &p->regions[out], rank))
            continue;
        put(w, &w->constraints->feeds[w->task_of[out]], constraint);
        w->constraints->constraints[constraint].needs++;
    }
}

static void make_flag_constraints(struct making *w)
{
    int constraint = -1;
    for (int i = 0; i < w->flagged_count && !w->failed; i++) {
        const mgl_region *region = w->flagged[i];
        if (i == 0 || compare_regions(w->flagged[i - 1], region) != 0) {
            constraint = add_constraint(w, (mgl_constraint){.counter = -1, .readers = -1});
            if (constraint >= 0)
                feed_flag_constraint(w, constraint, region);
        }
        if (!w->failed && w->constraints->constraints[constraint].needs > 0)
            add_reader(w, constraint, w->task_of[region - w->program->regions]);
    }
}

/* ---- all constraints ------------------------------------------------------------------------- */

static int *make_heads(struct making *w, int count)
{
    int *heads = mgl_alloc_zero((size_t)count + 1, sizeof *heads);
    for (int i = 0; i < count && heads; i++)
        heads[i] = -1;
    w->failed = w->failed || !heads;
    return heads;
}

static void make_all(struct making *w)
{
    find_flags(w);
    make_counter_constraints(w);
    feed_counter_constraints(w);
    make_flag_constraints(w);
}

mgl_status mgl_constraints_make(const mgl_program *p, int rows, mgl_constraints *out,
                                mgl_error *err)
{
    struct making w = {.program = p, .constraints = out, .rows = rows};
    *out = (mgl_constraints){0};
    out->feeds = make_heads(&w, p->task_count);
    out->waits = mgl_alloc_zero((size_t)p->task_count + 1, sizeof *out->waits);
    w.of_counter = make_heads(&w, p->counter_count);
    w.of_buffer = make_heads(&w, p->buffer_count);
    w.task_of = make_heads(&w, p->region_count);
    w.flagged = mgl_alloc_zero((size_t)p->region_count + 1, sizeof *w.flagged);
    if (!w.failed && out->waits && w.flagged)
        make_all(&w);
    else
        w.failed = true;
    mgl_free(w.of_counter);
    mgl_free(w.of_buffer);
    mgl_free(w.task_of);
    mgl_free(w.flagged);
    return w.failed ? mgl_fail_memory(err, (size_t)p->region_count * sizeof *w.flagged) : MGL_OK;
}

void mgl_constraints_clear(mgl_constraints *constraints)
{
    mgl_free(constraints->constraints);
    mgl_free(constraints->links);
    mgl_free(constraints->feeds);
    mgl_free(constraints->waits);
    *constraints = (mgl_constraints){0};
}
