/*
 * The cost model (cost.h): discrete-event simulation of one epoch.
 *
 * Memory is one server (FIFO queue): it serves requests in order at the target's bandwidth, and
 * data arrives `latency` later. So queues that request less leave more bandwidth to others.
 *
 * A queue requests the next page of its tape if two conditions hold: the ring has a free slot, and
 * all earlier pages except the last `flight_bytes` have arrived (`pending_bytes` while the queue
 * waits for an edge). The loader needs a minimum time between requests, which is the cost of small
 * pages. At the start of the epoch the ring is full, because the loader ran ahead during sampling.
 * For the same reason the loader continues into the next epoch's tape, and the epoch ends only when
 * the ring is full again.
 *
 * A task starts when the previous task of its queue has ended, the queue has switched to it, and
 * its constraints (constraints.h) are met: one edge latency after the end of the last task that it
 * waits for. The task consumes its pages as they arrive. Attention reads its share of the cache at
 * the queue's own rate, from the same memory. When decoding one row, splits of more keys than
 * registers hold are pages of the tape, as on the machine.
 *
 * An edge is delayed by a share of the maximum bytes in flight, not of the actual bytes. Otherwise
 * a slower task could leave the memory idle at its end and shorten the predicted token. Bytes that
 * other queues may have in flight beyond what keeps the memory busy count too.
 *
 * The model omits L2 prefetch, clears, and warps that start before their whole input has arrived.
 */
#include "schedule/cost/cost.h"

#include <math.h>
#include <string.h>

#include "base/format.h"
#include "base/memory.h"
#include "schedule/cost/constraints.h"
#include "schedule/cost/cost_jobs.h"
#include "schedule/formats.h"
#include "schedule/step.h"
#include "schedule/variant_shapes.h"

enum {
    LEAST_CHUNK = 16384,
    MOST_CHUNKS = 64, /* requests for the cache in a task */
    ROOM = 4,         /* for events: this times the maximum of pending events */
    ENOUGH = 65536    /* bytes in flight of each queue that keep the memory busy */
};

/* The kinds of requests of a queue. */
enum { TAPE, CACHE, KINDS };

struct event {
    double at; /* us */
    int id;    /* queue * KINDS + kind */
};

struct line {            /* state of a queue */
    int task, end;       /* the current task; the end of the queue's tasks */
    bool started;        /* its constraints are met */
    bool listed;         /* is in `open` of the simulation */
    bool asking;         /* an event for the next page is pending */
    double clock;        /* us; time of the queue */
    double idle, woken;  /* start and end of the last wait for an edge */
    double free_at;      /* earliest time of the loader's next request */
    int64_t page;        /* first page still in use */
    int64_t asked;       /* first page not requested */
    int64_t last;        /* end of this epoch's pages and the refill of the ring */
    int page_slot;       /* page % ring */
    int asked_slot;      /* asked % ring */
    double *landed;      /* (ring) arrival time of page p, at p % ring */
    double *freed;       /* (ring) release time of page p, at p % ring */
    double cache_left;   /* bytes of the cache not yet requested */
    double cache_chunk;  /* bytes of a request */
    double cache_landed; /* arrival time of the last request */
};

struct play {
    const mgl_program *program;
    const mgl_costs *costs;
    const mgl_cost_epoch *epoch;
    mgl_constraints constraints;
    mgl_cost_job *jobs;        /* (tasks) */
    struct line *lines;        /* (queues) */
    double *slots;             /* (queues, 2, ring): landed, freed */
    int64_t *constraint_left;  /* (constraints) missing ends */
    double *constraint_at;     /* (constraints) time of the last end so far */
    int *constraint_last;      /* (constraints) task of that end */
    mgl_cost_tape *tapes;      /* (queues) */
    int *open;                 /* (queues) queues that may continue */
    int open_count;            /* number of these */
    struct event *events;      /* (most_events) pending events in order */
    int event, event_end;      /* first and end of the pending events */
    int most_events;           /* ROOM times the maximum of pending events */
    double now;                /* us */
    double served;             /* time when memory has served all requests */
    double byte_us;            /* of memory, for a byte */
    double busy_us;            /* memory time of the bytes in flight while all queues wait */
    double carried_us;         /* memory time of further bytes in flight beyond ENOUGH */
    int64_t page_bytes;        /* of the ring */
    int ring, flight, pending; /* pages */
};

const char *mgl_cost_part_name(mgl_cost_part part)
{
    static const char *const names[] = {
#define MGL_X(id, name) name,
        MGL_COST_PARTS(MGL_X)
#undef MGL_X
    };
    return names[part];
}

/* ---- events --------------------------------------------------------------------------------- */

static bool comes_before(const struct event *a, const struct event *b)
{
    return a->at < b->at || (a->at == b->at && a->id < b->id);
}

/* Inserts an event in order. The search starts at the end: most events come after all others,
 * because queues take turns. */
static void push_event(struct play *s, double at, int id)
{
    struct event event = {at > s->now ? at : s->now, id};
    if (s->event_end == s->most_events) {
        memmove(s->events, s->events + s->event,
                (size_t)(s->event_end - s->event) * sizeof *s->events);
        s->event_end -= s->event;
        s->event = 0;
    }
    int i = s->event_end++;
    for (; i > s->event && comes_before(&event, &s->events[i - 1]); i--)
        s->events[i] = s->events[i - 1];
    s->events[i] = event;
}

/* Adds a memory request. Returns its arrival time. */
static double serve(struct play *s, double bytes)
{
    s->served = (s->served > s->now ? s->served : s->now) + bytes * s->byte_us;
    return s->served + s->costs->latency;
}

/* ---- the loader ----------------------------------------------------------------------------- */

/* The next slot of the ring. Avoids a division, which would dominate the run time. */
static int slot_behind(const struct play *s, int slot)
{
    return slot + 1 == s->ring ? 0 : slot + 1;
}

/* The slot `pages` pages earlier; pages < ring. */
static int slot_before(const struct play *s, int slot, int pages)
{
    return slot >= pages ? slot - pages : slot - pages + s->ring;
}

/* Requests the next page if there is a free slot. */
static void ask(struct play *s, int queue)
{
    struct line *line = &s->lines[queue];
    int64_t page = line->asked;
    if (line->asking || page == line->last || page - s->ring >= line->page)
        return;
    const int slot = line->asked_slot;
    double at = line->freed[slot], landed = line->landed[slot_before(s, slot, s->flight)];
    at = landed > at ? landed : at;
    landed = line->landed[slot_before(s, slot, s->pending)];
    if (at >= line->idle && at < line->woken && landed > at)
        at = landed;
    at = line->free_at > at ? line->free_at : at;
    line->asking = true;
    push_event(s, at, queue * KINDS + TAPE);
}

/* ---- edges ---------------------------------------------------------------------------------- */

static void list_open(struct play *s, int queue)
{
    if (!s->lines[queue].listed)
        s->open[s->open_count++] = queue;
    s->lines[queue].listed = true;
}

static int queue_of(const struct play *s, int task)
{
    int lo = 0, hi = s->program->queue_count - 1;
    while (lo < hi) {
        int middle = (lo + hi) / 2;
        if (s->lines[middle].end > task)
            hi = middle;
        else
            lo = middle + 1;
    }
    return lo;
}

/* Meets a constraint: all tasks that it waits for have ended. */
static void open_constraint(struct play *s, int constraint)
{
    const mgl_constraint *g = &s->constraints.constraints[constraint];
    double at = s->constraint_at[constraint] + s->costs->backlog * s->busy_us +
                s->costs->carry * s->carried_us +
                (g->counter < 0 ? s->costs->flag : s->costs->counter);
    for (int l = g->readers; l >= 0; l = s->constraints.links[l].next) {
        mgl_cost_job *job = &s->jobs[s->constraints.links[l].to];
        if (at > job->ready) {
            job->ready = at;
            job->last = s->constraint_last[constraint];
        }
        if (--job->waits == 0)
            list_open(s, queue_of(s, s->constraints.links[l].to));
    }
}

/* Feeds the constraints of a task that has ended. */
static void feed_constraints(struct play *s, int task)
{
    for (int l = s->constraints.feeds[task]; l >= 0; l = s->constraints.links[l].next) {
        int constraint = s->constraints.links[l].to;
        if (s->constraint_last[constraint] < 0 ||
            s->jobs[task].end > s->constraint_at[constraint]) {
            s->constraint_at[constraint] = s->jobs[task].end;
            s->constraint_last[constraint] = task;
        }
        if (--s->constraint_left[constraint] == 0)
            open_constraint(s, constraint);
    }
}

/* ---- a queue's tasks ------------------------------------------------------------------------ */

/* Adds time to a part of the current task. */
static void pass(struct line *line, mgl_cost_job *job, mgl_cost_part part, double us)
{
    job->parts[part] += us;
    line->clock += us;
}

static void start_task(struct play *s, int queue)
{
    struct line *line = &s->lines[queue];
    mgl_cost_job *job = &s->jobs[line->task];
    const double switched_to = line->clock + s->costs->turn;
    line->started = true;
    line->woken = line->idle = line->clock;
    if (job->ready > line->clock)
        line->clock = line->woken = job->ready;
    job->start = line->clock;
    if (line->woken < switched_to)
        pass(line, job, MGL_COST_TASK, switched_to - line->woken);
    for (int i = 0; i < MGL_COST_PART_COUNT; i++)
        pass(line, job, (mgl_cost_part)i, job->fixed[i]);
    line->cache_left = job->on_tape ? 0 : job->cache_bytes;
    line->cache_landed = 0;
    if (line->cache_left <= 0)
        return;
    line->cache_chunk = fmax(LEAST_CHUNK, job->cache_bytes / MOST_CHUNKS);
    push_event(s, line->clock, queue * KINDS + CACHE);
}

/* Releases the first page. */
static void free_page(const struct play *s, struct line *line)
{
    line->freed[line->page_slot] = line->clock;
    line->page_slot = slot_behind(s, line->page_slot);
    line->page++;
}

/* Consumes the task's pages that were requested. Returns whether the task has all its pages. */
static bool take_pages(struct play *s, struct line *line, mgl_cost_job *job)
{
    for (int64_t at; (at = line->page * s->page_bytes) < job->to; free_page(s, line)) {
        if (line->page >= line->asked)
            return false;
        const int slot = line->page_slot;
        if (line->landed[slot] > line->clock)
            pass(line, job, MGL_COST_STREAM, line->landed[slot] - line->clock);
        int64_t from = at > job->from ? at : job->from;
        bool whole = at + s->page_bytes <= job->to;
        int64_t to = whole ? at + s->page_bytes : job->to;
        pass(line, job, job->on_tape ? MGL_COST_CACHE : MGL_COST_PRODUCTS,
             (double)(to - from) * job->byte_us);
        if (!whole)
            return true; /* the next task uses the rest of the page */
    }
    return true;
}

/* Reads the cache at the queue's own rate or as it arrives. False: not all of it was requested. */
static bool take_cache(const struct play *s, struct line *line, mgl_cost_job *job)
{
    if (job->cache_bytes <= 0 || job->on_tape)
        return true;
    if (line->cache_left > 0)
        return false;
    double alone = job->cache_bytes / s->costs->cache * 1e-3;
    double landed = line->cache_landed - line->clock;
    pass(line, job, MGL_COST_CACHE, landed > alone ? landed : alone);
    return true;
}

/* Runs the queue's tasks as far as edges and pages allow. */
static void run_queue(struct play *s, int queue)
{
    struct line *line = &s->lines[queue];
    while (line->task < line->end) {
        mgl_cost_job *job = &s->jobs[line->task];
        if (!line->started && job->waits > 0) {
            line->idle = line->clock;
            line->woken = INFINITY;
            break;
        }
        if (!line->started)
            start_task(s, queue);
        if (!take_pages(s, line, job) || !take_cache(s, line, job))
            break;
        job->end = line->clock;
        line->started = false;
        feed_constraints(s, line->task++);
    }
    if (line->task == line->end) { /* padding needs no wait */
        int64_t pages = line->last - s->ring;
        while (line->page < pages && line->page < line->asked)
            free_page(s, line);
    }
    ask(s, queue);
}

static void run_open(struct play *s)
{
    while (s->open_count > 0) {
        int queue = s->open[--s->open_count];
        s->lines[queue].listed = false;
        run_queue(s, queue);
    }
}

/* ---- the simulation -------------------------------------------------------------------------- */

static void handle(struct play *s, const struct event *event)
{
    int queue = event->id / KINDS;
    struct line *line = &s->lines[queue];
    s->now = event->at;
    if (event->id % KINDS == TAPE) {
        line->free_at = event->at + s->costs->issue;
        line->landed[line->asked_slot] = serve(s, (double)s->page_bytes);
        line->asked_slot = slot_behind(s, line->asked_slot);
        line->asked++;
        line->asking = false;
    } else {
        double bytes = fmin(line->cache_chunk, line->cache_left);
        line->cache_left -= bytes;
        line->cache_landed = serve(s, bytes);
        if (line->cache_left > 0)
            push_event(s, s->now + bytes / s->costs->cache * 1e-3, event->id);
    }
    list_open(s, queue);
}

static void run_all(struct play *s)
{
    for (int q = 0; q < s->program->queue_count; q++)
        list_open(s, q);
    run_open(s);
    while (s->event < s->event_end) {
        const struct event event = s->events[s->event++];
        handle(s, &event);
        run_open(s);
    }
}

static void set_up_queue(struct play *s, int queue)
{
    const mgl_queue *q = &s->program->queues[queue];
    struct line *line = &s->lines[queue];
    line->task = q->tasks.first;
    line->end = q->tasks.first + q->tasks.count;
    line->asked = s->ring;
    line->landed = s->slots + (size_t)queue * 2 * (size_t)s->ring;
    line->freed = line->landed + s->ring;
    line->last = s->ring + s->tapes[queue].stream / s->page_bytes;
    s->busy_us += fmin((double)s->pending * (double)s->page_bytes, (double)s->tapes[queue].bytes) *
                  s->byte_us;
    s->carried_us += fmax((double)s->flight * (double)s->page_bytes - ENOUGH, 0) * s->byte_us;
}

static void set_up_constraints(struct play *s)
{
    for (int t = 0; t < s->program->task_count; t++)
        s->jobs[t].waits = s->constraints.waits[t];
    for (size_t g = 0; g < s->constraints.count; g++) {
        s->constraint_left[g] = s->constraints.constraints[g].needs;
        s->constraint_last[g] = -1;
    }
}

static int pages_of(const struct play *s, int bytes)
{
    int pages = (int)(bytes / s->page_bytes);
    return pages < 1 ? 1 : pages < s->ring ? pages : s->ring - 1;
}

static mgl_status allocate(struct play *s, mgl_error *err)
{
    const mgl_program *p = s->program;
    size_t tasks = (size_t)p->task_count, queues = (size_t)p->queue_count;
    size_t constraints = s->constraints.count + 1;
    s->jobs = mgl_alloc_zero(tasks, sizeof *s->jobs);
    s->lines = mgl_alloc_zero(queues, sizeof *s->lines);
    s->slots = mgl_alloc_zero(queues * 2, (size_t)s->ring * sizeof *s->slots);
    s->constraint_left = mgl_alloc_zero(constraints, sizeof *s->constraint_left);
    s->constraint_at = mgl_alloc_zero(constraints, sizeof *s->constraint_at);
    s->constraint_last = mgl_alloc_zero(constraints, sizeof *s->constraint_last);
    s->tapes = mgl_alloc_zero(queues, sizeof *s->tapes);
    s->open = mgl_alloc_zero(queues, sizeof *s->open);
    s->most_events = (int)queues * KINDS * ROOM;
    s->events = mgl_alloc_zero((size_t)s->most_events, sizeof *s->events);
    if (!s->jobs || !s->lines || !s->slots || !s->constraint_left || !s->constraint_at ||
        !s->constraint_last || !s->tapes || !s->open || !s->events)
        return mgl_fail_memory(err, tasks * sizeof *s->jobs);
    return MGL_OK;
}

static mgl_status set_up(struct play *s, mgl_error *err)
{
    const mgl_exec *exec = &s->program->exec;
    s->page_bytes = exec->page_bytes;
    s->ring = mgl_cost_has_panels(s->program)
                  ? MGL_PANEL_PAGES(exec->ring_pages, s->program->limits.rows)
                  : exec->ring_pages;
    s->flight = pages_of(s, exec->flight_bytes);
    s->pending = pages_of(s, exec->pending_bytes);
    s->byte_us = 1e-3 / s->costs->bandwidth;
    mgl_status status =
        mgl_constraints_make(s->program, mgl_cost_rows(s->program, s->epoch), &s->constraints, err);
    if (!status)
        status = allocate(s, err);
    if (!status)
        status = mgl_cost_make_jobs(s->program, s->costs, s->epoch, s->jobs, s->tapes, err);
    if (status)
        return status;
    for (int q = 0; q < s->program->queue_count; q++)
        set_up_queue(s, q);
    set_up_constraints(s);
    return MGL_OK;
}

static void clear(struct play *s)
{
    mgl_constraints_clear(&s->constraints);
    mgl_free(s->jobs);
    mgl_free(s->lines);
    mgl_free(s->slots);
    mgl_free(s->constraint_left);
    mgl_free(s->constraint_at);
    mgl_free(s->constraint_last);
    mgl_free(s->tapes);
    mgl_free(s->open);
    mgl_free(s->events);
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* The first of the tasks that end last. */
static int find_last(const struct play *s)
{
    int last = 0;
    for (int t = 1; t < s->program->task_count; t++)
        if (s->jobs[t].end > s->jobs[last].end)
            last = t;
    return last;
}

static mgl_cost_variant *variant_of(mgl_cost *out, const mgl_task *task)
{
    return &out->variants[task->op][task->variant];
}

/* Walks the critical path backward from a task to the start of the epoch. */
static void sum_chain(const struct play *s, int task, mgl_cost *out)
{
    while (task >= 0) {
        const mgl_cost_job *job = &s->jobs[task];
        mgl_cost_step *step = &out->steps[job->step];
        bool first = task == s->program->queues[queue_of(s, task)].tasks.first;
        double before = first ? 0 : s->jobs[task - 1].end, edge = 0;
        int next = first ? -1 : task - 1;
        for (int i = 0; i < MGL_COST_PART_COUNT; i++)
            out->parts[i] += job->parts[i];
        if (job->last >= 0 && job->ready > before) {
            next = job->last;
            edge = job->start - s->jobs[next].end;
        }
        out->parts[MGL_COST_EDGE] += edge;
        step->us += job->end - job->start + edge;
        variant_of(out, &s->program->tasks[task])->us += job->end - job->start + edge;
        task = next;
    }
}

static void sum_bytes(const struct play *s, mgl_cost *out)
{
    const mgl_program *p = s->program;
    for (int q = 0; q < p->queue_count; q++) {
        double bytes[MGL_STEP_COUNT + 1] = {0};
        for (int i = 0; i < p->queues[q].tasks.count; i++) {
            const mgl_cost_job *job = &s->jobs[p->queues[q].tasks.first + i];
            const double read =
                job->on_tape ? job->cache_bytes : (double)(job->to - job->from) + job->cache_bytes;
            mgl_cost_variant *variant = variant_of(out, &p->tasks[p->queues[q].tasks.first + i]);
            bytes[job->step] += read;
            variant->bytes += read;
            variant->tasks++;
            out->cache_bytes += job->cache_bytes;
        }
        for (int i = 0; i <= MGL_STEP_COUNT; i++) {
            out->steps[i].bytes += bytes[i];
            out->steps[i].most = fmax(out->steps[i].most, bytes[i]);
        }
        out->tape_bytes += (double)s->tapes[q].bytes;
    }
    out->floor_us = (out->tape_bytes + out->cache_bytes) * s->byte_us;
}

static void sum_up(const struct play *s, mgl_cost *out)
{
    mgl_cost_step *rest = &out->steps[MGL_STEP_COUNT];
    int last = find_last(s);
    double refill = s->served - s->jobs[last].end;
    double launch = s->costs->launch / s->epoch->epochs;
    *out = (mgl_cost){0};
    sum_chain(s, last, out);
    sum_bytes(s, out);
    if (refill > 0)
        out->parts[MGL_COST_STREAM] += refill;
    out->parts[MGL_COST_LAUNCH] += launch;
    rest->us += launch + (refill > 0 ? refill : 0);
    for (int i = 0; i < MGL_COST_PART_COUNT; i++)
        out->us += out->parts[i];
}

static mgl_status check_ended(const struct play *s, mgl_error *err)
{
    for (int q = 0; q < s->program->queue_count; q++)
        if (s->lines[q].task < s->lines[q].end)
            return mgl_fail(err, MGL_BAD_INPUT, NULL,
                            "queue %d never reaches its task %d; `check` explains the reason", q,
                            s->lines[q].task - s->program->queues[q].tasks.first);
    return MGL_OK;
}

/* Fails for more rows than the lists have, and names the knob that allows more. */
static mgl_status fail_rows(const mgl_program *p, int rows, const char *where, mgl_error *err)
{
    const int most = mgl_limits_most(&p->limits);
    return mgl_fail(err, MGL_USAGE, where,
                    "is %d; the lists of the program have room for %s%d: more take %sknob `%s` of "
                    "its config",
                    rows, mgl_up_to((size_t)most), most, p->second ? "a higher " : "the ",
                    p->second || rows > MGL_MAX_ROWS ? "second_rows" : "rows");
}

static mgl_status check_batch(const mgl_program *p, int batch, mgl_error *err)
{
    const int most = p->limits.sequences;
    if (batch > mgl_limits_most(&p->limits))
        return fail_rows(p, batch, "batch", err);
    if (batch < 1 || batch > most)
        return mgl_fail(err, MGL_USAGE, "batch", "is %d; the program has room for %s%d", batch,
                        mgl_up_to((size_t)most), most);
    return MGL_OK;
}

static mgl_status check_context(const mgl_program *p, double context, int rows, mgl_error *err)
{
    if (!(context >= 0 && context < p->limits.capacity - rows + 1))
        return mgl_fail(err, MGL_USAGE, "context",
                        "%g positions before; the program has room for 0 to %d", context,
                        p->limits.capacity - rows);
    return MGL_OK;
}

static mgl_status check_epochs(int epochs, const char *what, mgl_error *err)
{
    if (epochs < 1)
        return mgl_fail(err, MGL_USAGE, what, "%d %s a launch; there is one at least", epochs,
                        what);
    return MGL_OK;
}

static void list_spans(const struct play *s, mgl_cost_span *spans)
{
    for (int q = 0; q < s->program->queue_count; q++) {
        const mgl_run *tasks = &s->program->queues[q].tasks;
        for (int t = tasks->first; t < tasks->first + tasks->count; t++)
            spans[t] = (mgl_cost_span){q, s->jobs[t].step, s->jobs[t].start, s->jobs[t].end};
    }
}

const mgl_program *mgl_cost_list(const mgl_program *program, int rows)
{
    const bool second = mgl_step_list(rows, program->limits.rows, program->limits.second_rows);
    return second && program->second ? program->second : program;
}

/* Simulates an epoch of the list for its rows. */
static mgl_status play_epoch(const mgl_program *program, const mgl_costs *costs,
                             const mgl_cost_epoch *epoch, mgl_cost *out, mgl_cost_span *spans,
                             mgl_error *err)
{
    const mgl_program *list = mgl_cost_list(program, epoch->rows);
    struct play play = {.program = list, .costs = costs, .epoch = epoch};
    mgl_status status = set_up(&play, err);
    if (!status) {
        run_all(&play);
        status = check_ended(&play, err);
    }
    if (!status)
        sum_up(&play, out);
    if (!status && spans)
        list_spans(&play, spans);
    clear(&play);
    return status;
}

mgl_status mgl_schedule_cost_timeline(const mgl_program *program, const mgl_costs *costs,
                                      const mgl_cost_load *load, mgl_cost *out,
                                      mgl_cost_span *spans, mgl_error *err)
{
    const mgl_cost_epoch epoch = {.rows = load->batch,
                                  .wanted = load->batch,
                                  .context = load->context,
                                  .epochs = load->tokens};
    mgl_status status = check_batch(program, load->batch, err);
    if (!status)
        status = check_context(program, load->context, 1, err);
    if (!status)
        status = check_epochs(load->tokens, "tokens", err);
    return status ? status : play_epoch(program, costs, &epoch, out, spans, err);
}

mgl_status mgl_schedule_cost(const mgl_program *program, const mgl_costs *costs,
                             const mgl_cost_load *load, mgl_cost *out, mgl_error *err)
{
    return mgl_schedule_cost_timeline(program, costs, load, out, NULL, err);
}

mgl_status mgl_schedule_cost_prompt(const mgl_program *program, const mgl_costs *costs,
                                    const mgl_cost_prompt *prompt, mgl_cost *out, mgl_error *err)
{
    const mgl_cost_epoch epoch = {.rows = prompt->rows,
                                  .prompt = true,
                                  .wanted = prompt->ends ? 1 : 0,
                                  .context = prompt->context,
                                  .epochs = prompt->epochs};
    mgl_status status = MGL_OK;
    if (prompt->rows < 1 || prompt->rows > mgl_limits_most(&program->limits))
        status = fail_rows(program, prompt->rows, "prompt", err);
    if (!status)
        status = check_context(program, prompt->context, prompt->rows, err);
    if (!status)
        status = check_epochs(prompt->epochs, "epochs", err);
    return status ? status : play_epoch(program, costs, &epoch, out, NULL, err);
}

double mgl_cost_weight_bytes(const mgl_program *program, double *padding)
{
    double weights = 0, stored = 0;
    for (int i = 0; i < program->segment_count; i++) {
        const mgl_segment *s = &program->segments[i];
        const mgl_program_tensor *tensor = &program->tensors[s->tensor];
        const double rows = (double)mgl_segment_rows(s) * (s->layout == MGL_LAYOUT_G8X2 ? 2 : 1);
        weights += rows * (double)(s->col_hi - s->col_lo) / 8 *
                   mgl_weight_format_bits(tensor->format, tensor->rows, tensor->cols);
        stored += (double)mgl_segment_bytes(program, s);
        if (mgl_weight_format_has_factors(tensor->format))
            stored += rows * sizeof(float);
    }
    *padding = stored - weights;
    return weights;
}
