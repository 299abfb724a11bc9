/*
 * Implements the shadow memory (shadow.h): a happens-before race detector with vector clocks
 * (Flanagan and Freund, "FastTrack", PLDI 2009, without its compressed read clocks). An access must
 * be ordered after the last write of its cell. A write must also be ordered after all reads since
 * that write. A write then discards the reads, because later ordered accesses come after them too.
 */
#include "tests/vm/explore/shadow.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum {
    NEVER = -1, /* epoch of a cell that was never written */
    HOST = -2   /* written by the host before the launch */
};

/* A write or a clear; queue -1: no order required. */
struct stamp {
    int queue, task;
    uint32_t clock;
};

/* Last write and clear of a cell; its last reads are in `reads`. */
struct cell {
    struct stamp write;
    struct stamp clear; /* last clear; in a plain buffer, also the last write */
    int epoch;          /* epoch of the write */
};

/* Kind of access to a region. */
enum access { READ, WRITE, FLAG_READ, FLAG_WRITE, CLEAR };

struct read {
    uint32_t clock; /* 0: none since the last write */
    int task;
};

struct plane {
    int64_t *cuts[MGL_MAX_RANK]; /* (cells[i] + 1) first index of each cell in dimension i */
    int64_t cells[MGL_MAX_RANK]; /* 1 beyond the rank */
    int64_t first;               /* first cell of the buffer */
    int64_t size;                /* cells per set */
    int origin;                  /* NEVER or HOST */
    bool persists;               /* values of earlier epochs are valid */
    int rows;                    /* the dimension of the rows if a task accesses only some of them:
                                    each row is then a cell; -1: all tasks access all rows */
};

/* Cells of a region in each dimension. Positions come from the row table instead. */
struct span {
    int64_t lo[MGL_MAX_RANK], hi[MGL_MAX_RANK];
};

/* History of a counter: clock and signaling queue at each value. */
struct history {
    uint32_t *clocks; /* (count, queues) */
    int *queues;      /* (count) queue whose signal produced the value */
    size_t clock_capacity, queue_capacity, count;
};

struct mgl_shadow {
    const mgl_machine *machine;
    struct plane *planes; /* (buffers) */
    struct span *spans;   /* (regions) */
    struct cell *cells;
    struct read *reads; /* (cells, queues) */
    int64_t cell_count;
    uint32_t *clocks;          /* (queues, queues) */
    struct history *histories; /* (counters) */
    int queues;
};

/* ---- cells ---------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Whether dimension `dim` is that of the rows, and a task accesses only some rows: a share, or the
 * unsplit or the split rows. */
static bool has_some_rows(const mgl_program *p, int buffer, int dim)
{
    for (int i = 0; i < p->region_count; i++) {
        const mgl_range_kind kind = p->regions[i].ranges[dim].kind;
        if (p->regions[i].buffer == buffer &&
            (kind == MGL_RANGE_SHARE || kind == MGL_RANGE_ROW_KIND))
            return true;
    }
    return false;
}

/* Whether a dimension is cut at every index: sequences and positions of a cache, and rows that
 * tasks divide. */
static bool is_fine(const mgl_program *p, int buffer, int dim)
{
    if (p->buffers[buffer].space == MGL_SPACE_KV)
        return dim == 0 || dim == 2;
    return has_some_rows(p, buffer, dim);
}

/* Cuts dimension `dim` of a buffer at the bounds of all regions. */
static bool cut(const mgl_program *p, int buffer, int dim, struct plane *plane)
{
    const mgl_buffer *b = &p->buffers[buffer];
    int64_t extent = b->extents[dim].count, n = 0;
    const bool fine = is_fine(p, buffer, dim);
    size_t room = fine ? (size_t)extent + 1 : 2 * (size_t)p->region_count + 2;
    int64_t *cuts = plane->cuts[dim] = mgl_alloc(room * sizeof *cuts);
    if (!cuts)
        return false;
    if (fine) {
        for (; n <= extent; n++)
            cuts[n] = n;
        plane->cells[dim] = extent;
        return true;
    }
    cuts[n++] = 0;
    cuts[n++] = extent;
    for (int i = 0; i < p->region_count; i++) {
        const mgl_range *range = &p->regions[i].ranges[dim];
        if (p->regions[i].buffer == buffer && range->kind == MGL_RANGE_FIXED &&
            b->extents[dim].symbol != MGL_ROWS) {
            cuts[n++] = range->lo;
            cuts[n++] = range->hi;
        }
    }
    qsort(cuts, (size_t)n, sizeof *cuts, by_value);
    int64_t kept = 1;
    for (int64_t i = 1; i < n; i++)
        if (cuts[i] != cuts[kept - 1])
            cuts[kept++] = cuts[i];
    plane->cells[dim] = kept - 1;
    return true;
}

/* The cell that begins at `at`, which must be a cut. */
static int64_t cell_of(const struct plane *plane, int dim, int64_t at)
{
    int64_t i = 0;
    while (plane->cuts[dim][i] < at)
        i++;
    return i;
}

static void find_span(const mgl_program *p, const struct plane *plane, const mgl_region *region,
                      struct span *span)
{
    const mgl_buffer *b = &p->buffers[region->buffer];
    for (int i = 0; i < MGL_MAX_RANK; i++) {
        const mgl_range *range = &region->ranges[i];
        bool part =
            i < b->rank && range->kind == MGL_RANGE_FIXED && b->extents[i].symbol != MGL_ROWS;
        span->lo[i] = part ? cell_of(plane, i, range->lo) : 0;
        span->hi[i] = part ? cell_of(plane, i, range->hi) : plane->cells[i];
    }
}

static bool make_planes(mgl_shadow *shadow)
{
    const mgl_machine *m = shadow->machine;
    const mgl_program *p = m->program;
    const int host[] = {m->io->control, m->io->table, m->io->sequence, m->io->prompt,
                        m->io->output,  m->io->score, m->io->counts};
    for (int i = 0; i < p->buffer_count; i++) {
        struct plane *plane = &shadow->planes[i];
        const mgl_buffer *b = &p->buffers[i];
        int64_t count = 1;
        for (int dim = 0; dim < MGL_MAX_RANK; dim++) {
            plane->cells[dim] = 1;
            if (dim < b->rank && !cut(p, i, dim, plane))
                return false;
            count *= plane->cells[dim];
        }
        plane->first = shadow->cell_count;
        plane->size = count;
        plane->rows = -1;
        for (int dim = 0; dim < b->rank; dim++)
            if (b->space != MGL_SPACE_KV && has_some_rows(p, i, dim))
                plane->rows = dim;
        plane->origin = b->space == MGL_SPACE_CONST ? HOST : NEVER;
        plane->persists = b->space == MGL_SPACE_KV || b->space == MGL_SPACE_CONST;
        for (size_t j = 0; j < sizeof host / sizeof *host; j++) {
            if (host[j] == i) {
                plane->origin = HOST;
                plane->persists = true;
            }
        }
        shadow->cell_count += count * b->sets;
    }
    for (int i = 0; i < p->region_count; i++)
        find_span(p, &shadow->planes[p->regions[i].buffer], &p->regions[i], &shadow->spans[i]);
    return true;
}

mgl_status mgl_shadow_open(const mgl_machine *machine, mgl_shadow **out, mgl_error *err)
{
    *out = NULL;
    const mgl_program *p = machine->program;
    size_t queues = (size_t)p->queue_count;
    mgl_shadow *shadow = mgl_alloc_zero(1, sizeof *shadow);
    if (!shadow)
        return mgl_fail_memory(err, sizeof *shadow);
    shadow->machine = machine;
    shadow->queues = p->queue_count;
    shadow->planes = mgl_alloc_zero((size_t)p->buffer_count, sizeof *shadow->planes);
    shadow->spans = mgl_alloc_zero((size_t)p->region_count, sizeof *shadow->spans);
    shadow->clocks = mgl_alloc_zero(queues * queues, sizeof *shadow->clocks);
    shadow->histories = mgl_alloc_zero((size_t)p->counter_count, sizeof *shadow->histories);
    if (shadow->planes && shadow->spans && shadow->clocks && shadow->histories &&
        make_planes(shadow)) {
        size_t cells = (size_t)shadow->cell_count;
        shadow->cells = mgl_alloc_zero(cells, sizeof *shadow->cells);
        shadow->reads = mgl_alloc_zero(cells, queues * sizeof *shadow->reads);
    }
    if (!shadow->cells || !shadow->reads) {
        mgl_shadow_close(shadow);
        return mgl_fail_memory(err, 0);
    }
    *out = shadow;
    return MGL_OK;
}

void mgl_shadow_close(mgl_shadow *shadow)
{
    if (!shadow)
        return;
    const mgl_program *p = shadow->machine->program;
    for (int i = 0; shadow->planes && i < p->buffer_count; i++)
        for (int dim = 0; dim < MGL_MAX_RANK; dim++)
            mgl_free(shadow->planes[i].cuts[dim]);
    for (int i = 0; shadow->histories && i < p->counter_count; i++) {
        mgl_free(shadow->histories[i].clocks);
        mgl_free(shadow->histories[i].queues);
    }
    mgl_free(shadow->planes);
    mgl_free(shadow->spans);
    mgl_free(shadow->cells);
    mgl_free(shadow->reads);
    mgl_free(shadow->clocks);
    mgl_free(shadow->histories);
    mgl_free(shadow);
}

void mgl_shadow_reset(mgl_shadow *shadow)
{
    const mgl_program *p = shadow->machine->program;
    size_t queues = (size_t)shadow->queues;
    memset(shadow->reads, 0, (size_t)shadow->cell_count * queues * sizeof *shadow->reads);
    memset(shadow->clocks, 0, queues * queues * sizeof *shadow->clocks);
    for (int i = 0; i < p->counter_count; i++)
        shadow->histories[i].count = 0;
    for (int i = 0; i < p->buffer_count; i++) {
        int64_t end = i + 1 < p->buffer_count ? shadow->planes[i + 1].first : shadow->cell_count;
        for (int64_t c = shadow->planes[i].first; c < end; c++)
            shadow->cells[c] = (struct cell){{-1, -1, 0}, {-1, -1, 0}, shadow->planes[i].origin};
    }
}

void mgl_shadow_assume(mgl_shadow *shadow, int sequence, int count)
{
    const mgl_program *p = shadow->machine->program;
    for (int i = 0; i < p->buffer_count; i++) {
        const struct plane *plane = &shadow->planes[i];
        const int64_t *cells = plane->cells;
        for (int64_t head = 0; p->buffers[i].space == MGL_SPACE_KV && head < cells[1]; head++) {
            int64_t first = plane->first + (sequence * cells[1] + head) * cells[2] * cells[3];
            for (int64_t c = first; c < first + count * cells[3]; c++)
                shadow->cells[c].epoch = HOST;
        }
    }
}

/* ---- clocks --------------------------------------------------------------------------------- */

static uint32_t *clock_of(const mgl_shadow *shadow, int q)
{
    return shadow->clocks + (size_t)q * (size_t)shadow->queues;
}

/* The counter's clock at a value (at least 1). */
static uint32_t *clock_at(const mgl_shadow *shadow, const struct history *history, size_t value)
{
    return history->clocks + (value - 1) * (size_t)shadow->queues;
}

static void join(uint32_t *to, const uint32_t *from, int count)
{
    for (int i = 0; i < count; i++)
        to[i] = from[i] > to[i] ? from[i] : to[i];
}

static void acquire(mgl_shadow *shadow, int q, const mgl_wait *wait)
{
    const struct history *history = &shadow->histories[wait->counter];
    uint32_t *clock = clock_of(shadow, q);
    size_t wanted = mgl_machine_wanted(shadow->machine, q, wait), value = history->count;
    /* read-read coherence: not older than a value that is already ordered before */
    for (; value > wanted; value--) {
        int signaller = history->queues[value - 1];
        if (clock_at(shadow, history, value)[signaller] <= clock[signaller])
            break;
    }
    if (value > 0)
        join(clock, clock_at(shadow, history, value), shadow->queues);
}

static bool release(mgl_shadow *shadow, int q, int counter)
{
    struct history *history = &shadow->histories[counter];
    size_t row = (size_t)shadow->queues * sizeof *history->clocks, n = history->count;
    if (!mgl_grow((void **)&history->clocks, &history->clock_capacity, n, row) ||
        !mgl_grow((void **)&history->queues, &history->queue_capacity, n, sizeof *history->queues))
        return false;
    history->queues[n] = q;
    history->count = n + 1;
    uint32_t *clock = clock_at(shadow, history, n + 1);
    memcpy(clock, clock_of(shadow, q), row);
    if (n > 0)
        join(clock, clock_at(shadow, history, n), shadow->queues);
    return true;
}

uint32_t mgl_shadow_clock(const mgl_shadow *shadow, int q)
{
    return clock_of(shadow, q)[q];
}

bool mgl_shadow_is_after(const mgl_shadow *shadow, int q, int other, uint32_t clock)
{
    return clock_of(shadow, q)[other] >= clock;
}

/* ---- accesses ------------------------------------------------------------------------------- */

/* Whether a write or clear is ordered before the access of queue q; sets *conflict if not. */
static bool is_after(const mgl_shadow *shadow, int q, const struct stamp *stamp,
                     mgl_conflict *conflict)
{
    if (stamp->queue < 0 || mgl_shadow_is_after(shadow, q, stamp->queue, stamp->clock))
        return true;
    conflict->kind = MGL_UNORDERED;
    conflict->other = stamp->task;
    conflict->other_write = true;
    return false;
}

/* Whether all reads of a cell are ordered before a write. The reads are then discarded: they are
 * ordered before this write, and so before everything after it. */
static bool is_after_reads(const mgl_shadow *shadow, const uint32_t *clock, struct read *reads,
                           mgl_conflict *conflict)
{
    for (int i = 0; i < shadow->queues; i++) {
        if (reads[i].clock > clock[i]) {
            conflict->kind = MGL_UNORDERED;
            conflict->other = reads[i].task;
            conflict->other_write = false;
            return false;
        }
        reads[i].clock = 0;
    }
    return true;
}

/* Records a write or clear in the cell. */
static void stamp_cell(struct cell *cell, enum access access, struct stamp now, int epoch)
{
    if (access != CLEAR)
        cell->write = now;
    if (access != FLAG_WRITE)
        cell->clear = now;
    cell->epoch = access == CLEAR ? NEVER : epoch;
}

/* Checks and records one access of queue q to one cell. */
static bool touch(mgl_shadow *shadow, int q, int64_t index, bool persists, enum access access,
                  mgl_conflict *conflict)
{
    struct cell *cell = &shadow->cells[index];
    struct read *reads = shadow->reads + index * shadow->queues;
    const uint32_t *clock = clock_of(shadow, q);
    int epoch = shadow->machine->queues[q].epoch, task = mgl_machine_task(shadow->machine, q);
    if (!is_after(shadow, q, &cell->clear, conflict))
        return false;
    if (access != FLAG_READ && access != FLAG_WRITE && !is_after(shadow, q, &cell->write, conflict))
        return false;
    if (access == READ && (persists ? cell->epoch == NEVER : cell->epoch != epoch)) {
        conflict->kind = MGL_UNWRITTEN;
        conflict->other = cell->write.task;
        return false;
    }
    if (access == READ || access == FLAG_READ) {
        reads[q] = (struct read){clock[q], task};
        return true;
    }
    if (access != FLAG_WRITE && !is_after_reads(shadow, clock, reads, conflict))
        return false;
    stamp_cell(cell, access, (struct stamp){q, task, clock[q]}, epoch);
    return true;
}

/* Accesses all cells of a span. */
static bool touch_span(mgl_shadow *shadow, int q, const struct plane *plane, int64_t first,
                       const struct span *s, enum access access, mgl_conflict *conflict)
{
    for (int64_t a = s->lo[0]; a < s->hi[0]; a++)
        for (int64_t b = s->lo[1]; b < s->hi[1]; b++)
            for (int64_t c = s->lo[2]; c < s->hi[2]; c++)
                for (int64_t d = s->lo[3]; d < s->hi[3]; d++) {
                    int64_t index =
                        ((a * plane->cells[1] + b) * plane->cells[2] + c) * plane->cells[3] + d;
                    if (!touch(shadow, q, first + index, plane->persists, access, conflict))
                        return false;
                }
    return true;
}

/* Whether a range has rows of the kind of row r. Row r is a split row if its sequence has more than
 * limits.unsplit positions from earlier epochs, else an unsplit row. A range of all rows has both
 * kinds. */
static bool has_kind(const mgl_shadow *shadow, int q, const mgl_range *range, int r)
{
    const int32_t *table = shadow->machine->queues[q].rows.table;
    const int first = mgl_step_first_row(table, r);
    const int earlier = table[first * MGL_TABLE_WORDS + MGL_TABLE_POSITION];
    const bool splits = earlier > shadow->machine->program->limits.unsplit;
    return range->hi != MGL_ROWS_KINDS || splits == (range->lo == MGL_ROWS_SPLIT);
}

/* Accesses the positions of a cache region, row by row of the row table. */
static bool touch_cache(mgl_shadow *shadow, int q, const struct plane *plane,
                        const mgl_region *region, struct span span, enum access access,
                        mgl_conflict *conflict)
{
    const mgl_epoch_rows *rows = &shadow->machine->queues[q].rows;
    for (int r = 0; r < rows->rows; r++) {
        const int32_t *row = rows->table + r * MGL_TABLE_WORDS;
        int s = row[MGL_TABLE_SEQUENCE], p = row[MGL_TABLE_POSITION];
        bool past = region->ranges[2].kind == MGL_RANGE_PAST;
        if (past && mgl_step_first_row(rows->table, r) != r)
            continue;
        if (!past && !has_kind(shadow, q, &region->ranges[2], r))
            continue;
        if (s < region->ranges[0].lo || s >= region->ranges[0].hi)
            continue;
        span.lo[0] = s;
        span.hi[0] = s + 1;
        conflict->sequence = s;
        for (int at = past ? 0 : p; at < (past ? p : p + 1); at++) {
            span.lo[2] = at;
            span.hi[2] = at + 1;
            conflict->position = at;
            if (!touch_span(shadow, q, plane, plane->first, &span, access, conflict))
                return false;
        }
    }
    return true;
}

/* Whether a range of rows covers row r of the epoch. */
static bool covers(const mgl_shadow *shadow, int q, const mgl_range *range, int r)
{
    const int rows = shadow->machine->queues[q].rows.rows;
    if (range->kind == MGL_RANGE_SHARE)
        return r >= rows * range->lo / range->hi && r < rows * (range->lo + 1) / range->hi;
    return range->kind != MGL_RANGE_ROW_KIND || has_kind(shadow, q, range, r);
}

static bool touch_region(mgl_shadow *shadow, int q, int index, enum access access,
                         mgl_conflict *conflict)
{
    const mgl_machine *m = shadow->machine;
    const mgl_region *region = &m->program->regions[index];
    const mgl_buffer *buffer = &m->program->buffers[region->buffer];
    const struct plane *plane = &shadow->planes[region->buffer];
    const struct span *span = &shadow->spans[index];
    *conflict = (mgl_conflict){.buffer = region->buffer,
                               .write = access != READ && access != FLAG_READ,
                               .other = -1,
                               .sequence = -1,
                               .position = -1};
    mgl_range_kind kind = region->ranges[2].kind;
    if (buffer->space == MGL_SPACE_KV && (kind == MGL_RANGE_PAST || kind == MGL_RANGE_NOW))
        return touch_cache(shadow, q, plane, region, *span, access, conflict);
    int set = (m->queues[q].rows.turn + (access == CLEAR)) % buffer->sets;
    const int64_t first = plane->first + set * plane->size;
    struct span cells = *span;
    if (plane->rows < 0 || buffer->extents[plane->rows].symbol != MGL_ROWS)
        return touch_span(shadow, q, plane, first, &cells, access, conflict);
    for (int r = 0; r < m->queues[q].rows.rows; r++) {
        cells.lo[plane->rows] = r;
        cells.hi[plane->rows] = r + 1;
        if (covers(shadow, q, &region->ranges[plane->rows], r) &&
            !touch_span(shadow, q, plane, first, &cells, access, conflict))
            return false;
    }
    return true;
}

/* Kind of access when a task writes a region. */
static enum access write_of(const mgl_task *task, const mgl_region *region)
{
    return task->op == MGL_OP_CLEAR ? CLEAR : region->flag ? FLAG_WRITE : WRITE;
}

mgl_conflict mgl_shadow_begin(mgl_shadow *shadow, int q)
{
    const mgl_program *p = shadow->machine->program;
    const mgl_task *task = &p->tasks[mgl_machine_task(shadow->machine, q)];
    mgl_conflict conflict;
    for (int i = task->waits.first; i < task->waits.first + task->waits.count; i++)
        acquire(shadow, q, &p->waits[i]);
    clock_of(shadow, q)[q]++;
    for (int i = task->in.first; i < task->in.first + task->in.count; i++)
        if (!touch_region(shadow, q, i, p->regions[i].flag ? FLAG_READ : READ, &conflict))
            return conflict;
    for (int i = task->out.first; i < task->out.first + task->out.count; i++)
        if (!touch_region(shadow, q, i, write_of(task, &p->regions[i]), &conflict))
            return conflict;
    return (mgl_conflict){.kind = MGL_NO_CONFLICT};
}

bool mgl_shadow_end(mgl_shadow *shadow, int q, int task)
{
    const mgl_program *p = shadow->machine->program;
    const mgl_run *run = &p->tasks[task].signals;
    for (int i = run->first; i < run->first + run->count; i++)
        if (!release(shadow, q, p->signals[i]))
            return false;
    return true;
}
