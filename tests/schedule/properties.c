/*
 * Checks properties of lowered programs. Each check reads the program independently of how lowering
 * works. See properties.h.
 */
#include "properties.h"

#include <stdio.h>

/* ---- weights, columns and edges -------------------------------------------------------------- */

/* Counts the rows of a segment in `seen`, which has an entry per row of the tensor. */
static void see(const mgl_program_tensor *tensor, const mgl_segment *s, unsigned char *seen)
{
    NEED(s->col_lo == 0);
    NEED(s->col_hi == tensor->cols);
    NEED(s->row_lo % MGL_ROW_GROUP == 0);
    NEED(s->row_hi == tensor->rows || s->row_hi % MGL_ROW_GROUP == 0);
    NEED(s->row_lo < s->row_hi && s->row_hi <= tensor->rows);
    for (int64_t r = s->row_lo; r < s->row_hi; r++)
        seen[r]++;
}

/* Every row of every streamed weight is on exactly one tape, once. The embedding of an untied model
 * and the norms are on none. */
static void check_weights(const mgl_program *p, bool tied)
{
    unsigned char **seen = calloc((size_t)p->tensor_count, sizeof *seen);
    for (int t = 0; t < p->tensor_count; t++)
        seen[t] = calloc((size_t)p->tensors[t].rows, 1);
    for (int i = 0; i < p->segment_count; i++) {
        const mgl_segment *s = &p->segments[i];
        see(&p->tensors[s->tensor], s, seen[s->tensor]);
        if (s->tensor2 >= 0)
            see(&p->tensors[s->tensor2], s, seen[s->tensor2]);
    }
    for (int t = 0; t < p->tensor_count; t++) {
        const mgl_program_tensor *tensor = &p->tensors[t];
        bool streamed = tensor->rank == 2 && (tied || strcmp(tensor->name, "embed") != 0);
        for (int64_t r = 0; r < tensor->rows; r++)
            if (seen[t][r] != streamed)
                ck_abort_msg("row %lld of %s is streamed %d times", (long long)r, tensor->name,
                             seen[t][r]);
        free(seen[t]);
    }
    free(seen);
}

/* Segments are contiguous in the order of the tasks; less than a page of padding follows. */
static void check_tapes(const mgl_program *p)
{
    for (int q = 0; q < p->queue_count; q++) {
        const mgl_queue *queue = &p->queues[q];
        int64_t offset = 0;
        for (int i = 0; i < queue->tasks.count; i++) {
            const mgl_task *task = &p->tasks[queue->tasks.first + i];
            for (int k = 0; k < task->segments.count; k++) {
                const mgl_segment *s = &p->segments[task->segments.first + k];
                NEED(s->offset == offset);
                offset += mgl_segment_bytes(p, s);
            }
        }
        NEED(queue->tape_bytes == offset + queue->tape_pad);
        NEED(queue->tape_bytes % p->exec.page_bytes == 0);
        NEED(queue->tape_pad >= 0 && queue->tape_pad < p->exec.page_bytes);
    }
}

/* The step and the layer (0 for the head) of a task with segments. */
static mgl_step step_of(const mgl_program *p, const mgl_task *task, int *layer)
{
    const char *name = p->tensors[p->segments[task->segments.first].tensor].name;
    *layer = 0;
    if (task->op == MGL_OP_HEAD)
        return MGL_STEP_HEAD;
    NEED(sscanf(name, "l%d.", layer) == 1);
    name = strchr(name, '.') + 1;
    if (task->op == MGL_OP_NORM_LINEAR)
        return MGL_STEP_QKV;
    if (task->op == MGL_OP_NORM_SWIGLU)
        return MGL_STEP_GATE_UP;
    return !strcmp(name, "o") ? MGL_STEP_O : MGL_STEP_DOWN;
}

/* The row groups of each (layer, step) differ by at most one among the queues that the config
 * names; other queues have none. */
static void check_shares(const mgl_program *p, const mgl_schedule_config *config)
{
    int layers = p->geometry.layers;
    size_t cells = (size_t)layers * MGL_STEP_COUNT * (size_t)p->queue_count;
    int64_t *groups = calloc(cells, sizeof *groups);
    for (int q = 0; q < p->queue_count; q++)
        for (int i = 0; i < p->queues[q].tasks.count; i++) {
            const mgl_task *task = &p->tasks[p->queues[q].tasks.first + i];
            int layer;
            if (!task->segments.count)
                continue;
            mgl_step step = step_of(p, task, &layer);
            int64_t *cell = &groups[(layer * MGL_STEP_COUNT + (int)step) * p->queue_count + q];
            NEED(*cell == 0); /* one task per (queue, step) */
            for (int k = 0; k < task->segments.count; k++) {
                int64_t rows = mgl_segment_rows(&p->segments[task->segments.first + k]);
                *cell += (rows + MGL_ROW_GROUP - 1) / MGL_ROW_GROUP;
            }
        }
    for (int cell = 0; cell < layers * MGL_STEP_COUNT; cell++) {
        int step = cell % MGL_STEP_COUNT;
        int first = config->queues[step].first, count = config->queues[step].count;
        int64_t least = INT64_MAX, most = 0;
        count = count ? count : p->queue_count - first;
        for (int q = 0; q < p->queue_count; q++) {
            int64_t n = groups[cell * p->queue_count + q];
            bool named = q >= first && q < first + count;
            NEED(named || n == 0);
            least = named && n < least ? n : least;
            most = n > most ? n : most;
        }
        NEED(most - least <= 1);
    }
    free(groups);
}

/* The output's columns are the rows of the segments. */
static void check_columns(const mgl_program *p)
{
    for (int i = 0; i < p->task_count; i++) {
        const mgl_task *task = &p->tasks[i];
        int64_t rows = 0;
        for (int k = 0; k < task->segments.count; k++)
            rows += mgl_segment_rows(&p->segments[task->segments.first + k]);
        const mgl_range *columns = &p->regions[task->out.first].ranges[1];
        if (task->segments.count)
            NEED(columns->hi - columns->lo == rows);
    }
}

/* Regions lie within their buffers. */
static void check_regions(const mgl_program *p)
{
    for (int i = 0; i < p->region_count; i++) {
        const mgl_region *region = &p->regions[i];
        const mgl_buffer *buffer = &p->buffers[region->buffer];
        for (int d = 0; d < buffer->rank; d++) {
            const mgl_range *range = &region->ranges[d];
            const bool rows = range->kind == MGL_RANGE_ROWS || range->kind == MGL_RANGE_SHARE ||
                              range->kind == MGL_RANGE_ROW_KIND;
            mgl_symbol symbol = rows ? MGL_ROWS : MGL_CAPACITY;
            bool inside = range->kind != MGL_RANGE_FIXED
                              ? buffer->extents[d].symbol == symbol
                              : range->lo >= 0 && range->lo < range->hi &&
                                    range->hi <= buffer->extents[d].count;
            if (!inside)
                ck_abort_msg("region %d leaves %s", i, buffer->name);
        }
    }
}

/* Every wait waits for all signals of its counter (a join), except at the epoch edge. Every counter
 * has signals. */
static void check_edges(const mgl_program *p)
{
    int *signals = calloc((size_t)p->counter_count, sizeof *signals);
    for (int i = 0; i < p->signal_count; i++)
        signals[p->signals[i]]++;
    for (int i = 0; i < p->counter_count; i++)
        NEED(signals[i] > 0);
    for (int i = 0; i < p->wait_count; i++) {
        const mgl_wait *wait = &p->waits[i];
        bool edge = !strcmp(p->counters[wait->counter].name, "sampled");
        NEED(wait->threshold == (edge ? 0 : signals[wait->counter]));
    }
    free(signals);
}

int count_of(const mgl_program *p, mgl_op op)
{
    int n = 0;
    for (int i = 0; i < p->task_count; i++)
        n += p->tasks[i].op == op;
    return n;
}

/* The number of merges of a layer without separate queues. Each merge has as many heads as the
 * warps merge at once (32 dimensions each), and at most those of a kv head. */
static int merges_of(const mgl_program *p)
{
    const mgl_geometry *m = &p->geometry;
    int warps = strcmp(p->target.arch, "cpu") ? p->exec.warps : 8; /* the config's number */
    int heads = warps / ((m->head_dim + 31) / 32), group = m->heads / m->kv_heads;
    heads = heads < 1 ? 1 : heads < group ? heads : group;
    return (m->heads + heads - 1) / heads;
}

/* Each queue begins with enter. sample occurs once, as the last task of queue 0. Attention has one
 * task per (layer, kv head, split). */
static void check_tasks(const mgl_program *p, int splits)
{
    int heads = p->geometry.layers * p->geometry.kv_heads;
    ck_assert_int_eq(p->queue_count, p->target.queues);
    for (int q = 0; q < p->queue_count; q++)
        NEED(p->tasks[p->queues[q].tasks.first].op == MGL_OP_ENTER);
    ck_assert_int_eq(p->tasks[p->queues[0].tasks.count - 1].op, MGL_OP_SAMPLE);
    ck_assert_int_eq(count_of(p, MGL_OP_ENTER), p->queue_count);
    ck_assert_int_eq(count_of(p, MGL_OP_SAMPLE), 1);
    ck_assert_int_eq(count_of(p, MGL_OP_ATTEND), splits == 1 || p->limits.unsplit > 0 ? heads : 0);
    ck_assert_int_eq(count_of(p, MGL_OP_ATTEND_TAIL), splits > 1 ? heads : 0);
    ck_assert_int_eq(count_of(p, MGL_OP_ATTEND_PAST), heads * (splits - 1));
    ck_assert_int_eq(count_of(p, MGL_OP_MERGE), splits > 1 ? p->geometry.layers * merges_of(p) : 0);
}

/* ---- flags ----------------------------------------------------------------------------------- */

/* The columns of a range, resolved within its dimension. */
static void bounds_of(const mgl_program *p, const mgl_region *region, int dim, int64_t *lo,
                      int64_t *hi)
{
    const mgl_range *range = &region->ranges[dim];
    bool rows = range->kind == MGL_RANGE_ROWS || range->kind == MGL_RANGE_ROW_KIND;
    *lo = rows ? 0 : range->lo;
    *hi = rows ? p->buffers[region->buffer].extents[dim].count : range->hi;
}

/* Counts every element of a region in `seen`; the buffer has rank 2 or 4. */
static void count_elements(const mgl_program *p, const mgl_region *region, unsigned char *seen)
{
    const mgl_buffer *b = &p->buffers[region->buffer];
    int64_t lo[4] = {0}, hi[4] = {1, 1, 1, 1}, n[4] = {1, 1, 1, 1};
    for (int i = 0; i < b->rank; i++) {
        bounds_of(p, region, i, &lo[4 - b->rank + i], &hi[4 - b->rank + i]);
        n[4 - b->rank + i] = b->extents[i].count;
    }
    for (int64_t i = lo[0]; i < hi[0]; i++)
        for (int64_t j = lo[1]; j < hi[1]; j++)
            for (int64_t k = lo[2]; k < hi[2]; k++)
                for (int64_t l = lo[3]; l < hi[3]; l++)
                    seen[((i * n[1] + j) * n[2] + k) * n[3] + l]++;
}

static int64_t elements_of(const mgl_buffer *b)
{
    int64_t n = 1;
    for (int i = 0; i < b->rank; i++)
        n *= b->extents[i].count;
    return n;
}

/* Whether the region has only the unsplit rows. check_words does not count such regions, because
 * the regions of the split rows have the same words. The validator proves that the words of both
 * are written and cleared. */
static bool is_unsplit(const mgl_region *region)
{
    return region->ranges[0].kind == MGL_RANGE_ROW_KIND && region->ranges[0].lo == MGL_ROWS_UNSPLIT;
}

/* One task writes each element of a flagged buffer, and one task clears it. */
static void check_words(const mgl_program *p)
{
    for (int buffer = 0; buffer < p->buffer_count; buffer++) {
        int64_t n = elements_of(&p->buffers[buffer]);
        if (p->buffers[buffer].sets == 1)
            continue;
        unsigned char *written = calloc((size_t)n, 1), *cleared = calloc((size_t)n, 1);
        for (int t = 0; t < p->task_count; t++) {
            const mgl_task *task = &p->tasks[t];
            for (int i = 0; i < task->out.count; i++)
                if (p->regions[task->out.first + i].buffer == buffer &&
                    !is_unsplit(&p->regions[task->out.first + i]))
                    count_elements(p, &p->regions[task->out.first + i],
                                   task->op == MGL_OP_CLEAR ? cleared : written);
        }
        for (int64_t i = 0; i < n; i++)
            if (written[i] != 1 || cleared[i] != 1)
                ck_abort_msg("%s: element %lld is written %d times and cleared %d times",
                             p->buffers[buffer].name, (long long)i, written[i], cleared[i]);
        free(written);
        free(cleared);
    }
}

/* Regions of a flagged buffer are whole granules of 16 bytes, and have the flag mark except those
 * of clear. */
static void check_flagged(const mgl_program *p)
{
    for (int t = 0; t < p->task_count; t++) {
        const mgl_task *task = &p->tasks[t];
        for (int i = task->in.first; i < task->out.first + task->out.count; i++) {
            const mgl_region *region = &p->regions[i];
            const mgl_buffer *b = &p->buffers[region->buffer];
            int64_t lo, hi, size = (int64_t)mgl_dtype_size(b->dtype);
            NEED(region->flag == (b->sets > 1 && task->op != MGL_OP_CLEAR));
            NEED(task->op != MGL_OP_CLEAR || b->sets > 1);
            if (b->sets == 1)
                continue;
            bounds_of(p, region, b->rank - 1, &lo, &hi);
            NEED(b->sets == 2 && lo * size % 16 == 0 && hi * size % 16 == 0);
        }
    }
}

static bool waits_for(const mgl_program *p, const mgl_task *task, int counter)
{
    for (int i = 0; i < task->waits.count; i++)
        if (p->waits[task->waits.first + i].counter == counter)
            return true;
    return false;
}

/* Whether sample waits for all signals of the counter, directly or through a draw. */
static bool is_joined(const mgl_program *p, const mgl_task *sample, int counter)
{
    bool joined = waits_for(p, sample, counter);
    for (int t = 0; t < p->task_count && !joined; t++)
        joined = p->tasks[t].op == MGL_OP_DRAW && waits_for(p, &p->tasks[t], counter) &&
                 waits_for(p, sample, p->signals[p->tasks[t].signals.first]);
    return joined;
}

/* Only enter, draw and sample wait; sample waits for the last task of every other queue. */
static void check_epoch_edge(const mgl_program *p)
{
    const mgl_task *sample = &p->tasks[p->queues[0].tasks.count - 1];
    for (int t = 0; t < p->task_count; t++)
        NEED(p->tasks[t].waits.count == 0 || p->tasks[t].op == MGL_OP_ENTER ||
             p->tasks[t].op == MGL_OP_DRAW || p->tasks[t].op == MGL_OP_SAMPLE);
    for (int q = 1; q < p->queue_count; q++) {
        const mgl_run *run = &p->queues[q].tasks;
        const mgl_task *last = &p->tasks[run->first + run->count - 1];
        NEED(last->signals.count == 1);
        NEED(is_joined(p, sample, p->signals[last->signals.first]));
    }
}

void check_flags(const mgl_program *p)
{
    ck_assert(has_flags(p));
    check_flagged(p);
    check_words(p);
    check_epoch_edge(p);
}

void check_text(const mgl_program *p)
{
    mgl_text text = printed(p);
    mgl_program *again = parsed(text.bytes, text.length);
    ck_assert(mgl_program_equal(p, again));
    mgl_text second = printed(again);
    ck_assert(!strcmp(second.bytes, text.bytes));
    mgl_program_free(again);
    mgl_text_clear(&text);
    mgl_text_clear(&second);
}

void check_all(const mgl_program *p, const shape *s, const mgl_schedule_config *config, int splits)
{
    check_weights(p, s->tied);
    check_tapes(p);
    check_shares(p, config);
    check_columns(p);
    check_regions(p);
    check_edges(p);
    check_tasks(p, splits);
}
