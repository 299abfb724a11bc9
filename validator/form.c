/*
 * MG1xx, first half: the structure of the program (every index and every run is inside its array)
 * and its declarations (geometry, tensors, buffers). After this pass the other passes follow
 * indices and read extents without further checks.
 *
 * Runs must tile their arrays in order, as the builder makes them. So no two tasks share a region,
 * a segment or an edge.
 */
#include "validator/check.h"

#include "schedule/pages.h"

#include "base/memory.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static bool within(int value, int lo, int hi)
{
    return value >= lo && value <= hi;
}

/* Checks a condition of the structure: if it is false, reports MG101. Returns the condition. */
static bool intact(mgl_check *check, bool condition, const char *what, int index)
{
    if (!condition)
        mgl_check_report(check, 101, -1, 0, "%s %d points outside the program or out of order",
                         what, index);
    return condition;
}

/* ---- sizes and runs ---- */

static bool check_counts(mgl_check *check)
{
    const mgl_program *p = check->program;
    const int whole[] = {p->counter_count, p->task_count};
    const int declared[] = {p->tensor_count, p->buffer_count, p->queue_count};
    const int pieces[] = {p->region_count, p->segment_count, p->wait_count, p->signal_count};
    bool large = false, negative = false;
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        large |= whole[i] > MGL_MAX_TASKS;
        negative |= whole[i] < 0;
    }
    for (size_t i = 0; i < sizeof declared / sizeof *declared; i++) {
        large |= declared[i] > MGL_MAX_DECLARED;
        negative |= declared[i] < 0;
    }
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        large |= pieces[i] > MGL_MAX_PIECES;
        negative |= pieces[i] < 0;
    }
    if (large)
        mgl_check_report(
            check, 121, -1, 0,
            "the program has %d tasks, %d counters, %d buffers, %d tensors, %d regions and "
            "%d waits: more than any machine takes; use coarser tasks",
            p->task_count, p->counter_count, p->buffer_count, p->tensor_count, p->region_count,
            p->wait_count);
    intact(check, !negative, "count", 0);
    return !large && !negative;
}

/* Whether the run starts at *next and ends inside `total`; moves *next to its end. */
static bool tile(const mgl_run *run, int *next, int total)
{
    if (run->first != *next || run->count < 0 || run->count > total - *next)
        return false;
    *next += run->count;
    return true;
}

static bool check_runs(mgl_check *check)
{
    const mgl_program *p = check->program;
    int tasks = 0, regions = 0, segments = 0, waits = 0, signals = 0;
    for (int q = 0; q < p->queue_count; q++)
        if (!intact(check, tile(&p->queues[q].tasks, &tasks, p->task_count), "queue", q))
            return false;
    for (int t = 0; t < p->task_count; t++) {
        const mgl_task *task = &p->tasks[t];
        bool ok = (unsigned)task->op < MGL_OP_COUNT &&
                  (unsigned)task->variant < MGL_VARIANT_COUNT &&
                  tile(&task->in, &regions, p->region_count) &&
                  tile(&task->out, &regions, p->region_count) &&
                  tile(&task->segments, &segments, p->segment_count) &&
                  tile(&task->waits, &waits, p->wait_count) &&
                  tile(&task->signals, &signals, p->signal_count);
        if (!intact(check, ok, "task", t))
            return false;
    }
    return intact(check, tasks == p->task_count, "queue", p->queue_count) &&
           intact(check,
                  regions == p->region_count && segments == p->segment_count &&
                      waits == p->wait_count && signals == p->signal_count,
                  "task", p->task_count);
}

static void check_declared(mgl_check *check)
{
    const mgl_program *p = check->program;
    for (int i = 0; i < p->counter_count; i++)
        intact(check, p->counters[i].name != NULL, "counter", i);
    for (int i = 0; i < p->tensor_count; i++) {
        const mgl_program_tensor *tensor = &p->tensors[i];
        bool named = tensor->name && tensor->checkpoint;
        intact(check, named && mgl_weight_format_valid(tensor->format), "tensor", i);
    }
    for (int i = 0; i < p->buffer_count; i++) {
        const mgl_buffer *b = &p->buffers[i];
        bool ok = b->name && (unsigned)b->space < MGL_SPACE_COUNT &&
                  (unsigned)b->dtype < MGL_DTYPE_COUNT && within(b->rank, 1, MGL_MAX_RANK) &&
                  (unsigned)b->source <= MGL_SOURCE_ORDER &&
                  (!mgl_source_has_tensor(b->source) || within(b->tensor, 0, p->tensor_count - 1));
        for (int d = 0; ok && d < b->rank; d++)
            ok = (unsigned)b->extents[d].symbol <= MGL_CAPACITY;
        intact(check, ok, "buffer", i);
    }
}

static bool check_region(const mgl_program *p, const mgl_region *region)
{
    bool ok = within(region->buffer, 0, p->buffer_count - 1);
    for (int d = 0; d < MGL_MAX_RANK; d++) {
        const mgl_range *range = &region->ranges[d];
        const bool splits = mgl_range_has_row_kind(range);
        const int64_t most = splits ? MGL_ROWS_KINDS : MGL_MAX_SECOND_ROWS;
        ok = ok && (unsigned)range->kind <= MGL_RANGE_ROW_KIND &&
             (mgl_range_has_numbers(range) || (range->lo == 0 && range->hi == 0)) &&
             (!mgl_range_is_part_of_rows(range) ||
              (range->lo >= 0 && range->lo < range->hi && range->hi <= most)) &&
             (!splits || range->hi == MGL_ROWS_KINDS);
    }
    return ok;
}

static bool check_pieces(mgl_check *check)
{
    const mgl_program *p = check->program;
    int before = check->found;
    for (int i = 0; i < p->region_count; i++)
        intact(check, check_region(p, &p->regions[i]), "region", i);
    for (int i = 0; i < p->segment_count; i++) {
        const mgl_segment *s = &p->segments[i];
        bool ok = within(s->tensor, 0, p->tensor_count - 1) &&
                  within(s->tensor2, -1, p->tensor_count - 1) &&
                  (unsigned)s->layout <= MGL_LAYOUT_G8X2;
        intact(check, ok, "segment", i);
    }
    for (int i = 0; i < p->wait_count; i++)
        intact(check, within(p->waits[i].counter, 0, p->counter_count - 1), "wait", i);
    for (int i = 0; i < p->signal_count; i++)
        intact(check, within(p->signals[i], 0, p->counter_count - 1), "signal", i);
    bool ended = memchr(p->target.arch, 0, sizeof p->target.arch) != NULL;
    intact(check,
           ended && (unsigned)p->weight_dtype < MGL_I32 &&
               (unsigned)p->embedding_dtype < MGL_DTYPE_COUNT &&
               (unsigned)p->exchange_dtype < MGL_DTYPE_COUNT &&
               (unsigned)p->kv_dtype < MGL_DTYPE_COUNT,
           "header", 0);
    check_declared(check);
    return check->found == before;
}

/* ---- declarations ---- */

static void check_geometry(mgl_check *check)
{
    const mgl_geometry *g = &check->program->geometry;
    bool ok = true;
    for (int i = 0; i < MGL_GEOMETRY_FACT_COUNT; i++)
        ok = ok && (mgl_geometry_facts[i].is_float ||
                    within(mgl_fact_bits(g, &mgl_geometry_facts[i]), 1, MGL_MAX_NUMBER));
    ok = ok && (int64_t)g->heads * g->head_dim <= MGL_MAX_NUMBER && isfinite(g->eps) && g->eps > 0;
    if (!ok)
        mgl_check_report(
            check, 102, -1, 0,
            "a number of the model line is not positive or too large (heads * head_dim "
            "is at most %d)",
            MGL_MAX_NUMBER);
    else if (g->heads % g->kv_heads || g->head_dim % 2)
        mgl_check_report(check, 102, -1, 0,
                         "heads (%d) must be a multiple of kv_heads (%d), and head_dim (%d) even",
                         g->heads, g->kv_heads, g->head_dim);
}

static void check_tensor(mgl_check *check, const mgl_program_tensor *tensor)
{
    char format[MGL_WEIGHT_FORMAT_TEXT];
    bool ok = within(tensor->rank, 1, 2) && tensor->rows >= 1 && tensor->rows <= MGL_MAX_EXTENT &&
              tensor->cols >= 1 && tensor->cols <= MGL_MAX_EXTENT &&
              (tensor->rank == 2 || tensor->rows == 1);
    if (!ok)
        mgl_check_report(check, 105, -1, tensor->line,
                         "tensor %.64s: rank %d, %" PRId64 " x %" PRId64 " %s cannot be packed; "
                         "rank 1 or 2 and positive sizes are needed",
                         tensor->name, tensor->rank, tensor->rows, tensor->cols,
                         mgl_weight_format_print(tensor->format, format));
    const mgl_program *p = check->program;
    const bool factors = mgl_weight_format_has_factors(tensor->format) && tensor->rank == 2;
    const bool declared = within(tensor->factors, 0, p->buffer_count - 1) &&
                          p->buffers[tensor->factors].source == MGL_SOURCE_SCALES &&
                          p->buffers[tensor->factors].tensor == (int)(tensor - p->tensors);
    if (ok && (factors ? !declared : tensor->factors != -1))
        mgl_check_report(check, 105, -1, tensor->line,
                         factors ? "tensor %.64s is %s; its scales need a const buffer (`scales`)"
                                 : "tensor %.64s is %s, which has no buffer of scales",
                         tensor->name, mgl_weight_format_print(tensor->format, format));
    const bool ordered = within(tensor->order, 0, p->buffer_count - 1) &&
                         p->buffers[tensor->order].source == MGL_SOURCE_ORDER &&
                         p->buffers[tensor->order].tensor == (int)(tensor - p->tensors);
    if (ok && tensor->order != -1 && !ordered)
        mgl_check_report(check, 105, -1, tensor->line,
                         "tensor %.64s has a column map (`order`) that is not declared for it",
                         tensor->name);
}

/* The value of a symbol; -1 for a fixed extent. */
static int64_t symbol_value(const mgl_limits *limits, mgl_symbol symbol)
{
    switch (symbol) {
    case MGL_ROWS:
        return limits->rows;
    case MGL_SEQUENCES:
        return limits->sequences;
    case MGL_CAPACITY:
        return limits->capacity;
    case MGL_FIXED:
        break;
    }
    return -1;
}

/* Whether the shape is (sequences, kv_heads, capacity, head_dim). */
static bool is_kv_shape(const mgl_program *p, const mgl_buffer *b)
{
    return b->rank == 4 && b->extents[0].count == p->limits.sequences &&
           b->extents[1].count == p->geometry.kv_heads && b->extents[2].symbol == MGL_CAPACITY &&
           b->extents[3].count == p->geometry.head_dim;
}

/* What is wrong with a buffer for its space, or NULL. `rows`: how many of its extents are the
 * symbol rows. */
static const char *space_fault(const mgl_program *p, const mgl_buffer *b, int rows)
{
    switch (b->space) {
    case MGL_SPACE_CONST:
        return rows ? "a const buffer cannot depend on rows"
               : b->source != MGL_SOURCE_ORDER && !mgl_dtype_is_float(b->dtype)
                   ? "a const buffer is f32, bf16 or f16; a column map is i32"
                   : NULL;
    case MGL_SPACE_ACT:
        return rows != 1 ? "an act buffer has exactly one extent `rows`"
               : b->dtype != MGL_F32 && b->dtype != p->exchange_dtype
                   ? "an act buffer is f32 or of the types line's exchange dtype"
                   : NULL;
    case MGL_SPACE_KV:
        return !is_kv_shape(p, b)        ? "a kv buffer is [sequences,kv_heads,capacity,head_dim]"
               : b->dtype != p->kv_dtype ? "a kv buffer has the cache dtype of the types line"
                                         : NULL;
    case MGL_SPACE_IO:
        return rows > 1 ? "an io buffer has at most one extent `rows`"
               : b->dtype != MGL_F32 && b->dtype != MGL_I32 ? "an io buffer is f32 or i32"
                                                            : NULL;
    case MGL_SPACE_COUNT:
        break;
    }
    return "its space does not exist";
}

/* Whether every row of the buffer consists of whole granules. */
static bool has_whole_granules(const mgl_buffer *b)
{
    const mgl_extent *last = &b->extents[b->rank - 1];
    return last->symbol != MGL_ROWS && last->count % mgl_granule_elements(b->dtype) == 0;
}

static void check_sets(mgl_check *check, const mgl_buffer *b)
{
    if (b->sets < 1 || b->sets > MGL_MAX_SETS || (b->sets > 1 && b->space != MGL_SPACE_ACT))
        mgl_check_report(check, 123, -1, b->line,
                         "%s buffer %.64s has %d sets; act buffers have 1, or with flags 2 to %d, "
                         "all others 1",
                         mgl_space_name(b->space), b->name, b->sets, MGL_MAX_SETS);
    else if (b->sets > 1 && !has_whole_granules(b))
        mgl_check_report(check, 122, -1, b->line,
                         "buffer %.64s: the last extent of a flagged buffer must be a multiple of "
                         "%d bytes, and not rows",
                         b->name, MGL_GRANULE_BYTES);
}

/* MG132: paged buffers. */
static void check_pages(mgl_check *check, const mgl_buffer *b)
{
    const mgl_program *p = check->program;
    const bool fits = b->space == MGL_SPACE_ACT && b->rank == 2 && b->sets == 1 &&
                      mgl_dtype_size(b->dtype) == MGL_PAGE_VALUE_BYTES &&
                      b->extents[0].symbol == MGL_ROWS &&
                      b->extents[1].count % MGL_PAGE_COLUMNS == 0;
    if (b->paged && (!fits || !p->is_second))
        mgl_check_report(check, 132, -1, b->line,
                         "buffer %.64s cannot be paged: a paged buffer is an act buffer of the "
                         "second list, [rows,N] of 16 bits without sets, N a multiple of %d",
                         b->name, MGL_PAGE_COLUMNS);
}

static void check_buffer(mgl_check *check, const mgl_buffer *b)
{
    const mgl_program *p = check->program;
    int rows = 0;
    for (int d = 0; d < b->rank; d++) {
        const mgl_extent *extent = &b->extents[d];
        rows += extent->symbol == MGL_ROWS;
        if (extent->count < 1 || (extent->symbol != MGL_FIXED &&
                                  extent->count != symbol_value(&p->limits, extent->symbol)))
            mgl_check_report(check, 103, -1, b->line,
                             "buffer %.64s: extent %d is %" PRId64
                             ", which is not positive or differs from its symbol's value",
                             b->name, d, extent->count);
    }
    const char *fault = space_fault(p, b, rows);
    if (fault)
        mgl_check_report(check, 103, -1, b->line, "buffer %.64s: %s", b->name, fault);
    check_sets(check, b);
    check_pages(check, b);
}

static void check_source(mgl_check *check, const mgl_buffer *b)
{
    const mgl_program *p = check->program;
    const char *fault = NULL;
    if (b->space != MGL_SPACE_CONST) {
        fault = b->source != MGL_SOURCE_NONE ? "only const buffers have a source" : NULL;
    } else if (b->source == MGL_SOURCE_NONE) {
        fault = "a const buffer needs a source: a tensor, scales, order, or rope";
    } else if (b->source == MGL_SOURCE_ROPE) {
        if (b->rank != 2 || b->dtype != MGL_F32 || b->extents[0].count != p->limits.capacity ||
            b->extents[1].count != p->geometry.head_dim)
            fault = "the rope table is f32 [capacity,head_dim]";
    } else if (b->source == MGL_SOURCE_SCALES) {
        const mgl_program_tensor *tensor = &p->tensors[b->tensor];
        if (b->rank != 1 || b->dtype != MGL_F32 || b->extents[0].count != tensor->rows)
            fault = "scales are f32, one for each row of their tensor";
        else if (tensor->factors != (int)(b - p->buffers))
            fault = "a tensor has one buffer of scales, declared once";
        else if (!mgl_weight_format_has_factors(tensor->format))
            fault = "its tensor's scales are not by row or tensor, or it has zero points";
    } else if (b->source == MGL_SOURCE_ORDER) {
        const mgl_program_tensor *tensor = &p->tensors[b->tensor];
        if (b->rank != 1 || b->dtype != MGL_I32 || b->extents[0].count != tensor->cols)
            fault = "a column map has rank 1 and one i32 for each column of its tensor";
        else if (tensor->order != (int)(b - p->buffers))
            fault = "a tensor has one column map, declared once";
        else if (!mgl_weight_format_is_scaled(tensor->format) ||
                 tensor->format.group == MGL_GROUP_ALL)
            fault = "its tensor has no groups of columns, so its columns are not reordered";
    } else {
        const mgl_program_tensor *tensor = &p->tensors[b->tensor];
        bool same = tensor->rank == b->rank && (b->rank == 1 || b->rank == 2) &&
                    b->extents[b->rank - 1].count == tensor->cols &&
                    (b->rank == 1 || b->extents[0].count == tensor->rows);
        fault = !same ? "its shape differs from its tensor's"
                : !mgl_weight_format_is(tensor->format, b->dtype)
                    ? "its dtype differs from its tensor's: a weight would be rounded"
                    : NULL;
    }
    if (fault)
        mgl_check_report(check, 104, -1, b->line, "buffer %.64s: %s", b->name, fault);
}

/* ---- what the other passes look up ---- */

static void index_tasks(mgl_check *check)
{
    const mgl_program *p = check->program;
    check->queue_of = mgl_check_alloc(check, (size_t)p->task_count, sizeof *check->queue_of);
    check->position = mgl_check_alloc(check, (size_t)p->task_count, sizeof *check->position);
    size_t counters = (size_t)p->counter_count + 1;
    check->producer_first = mgl_check_alloc(check, counters + 1, sizeof *check->producer_first);
    check->producers = mgl_check_alloc(check, (size_t)p->signal_count, sizeof *check->producers);
    if (check->no_memory)
        return;
    for (int q = 0; q < p->queue_count; q++)
        for (int i = 0; i < p->queues[q].tasks.count; i++) {
            check->queue_of[p->queues[q].tasks.first + i] = q;
            check->position[p->queues[q].tasks.first + i] = i;
        }
    /* A counting sort: first[c + 2] counts, then first[c + 1] is the place of the next producer. */
    int *first = check->producer_first;
    for (int i = 0; i < p->signal_count; i++)
        first[p->signals[i] + 2]++;
    for (size_t c = 1; c <= counters; c++)
        first[c] += first[c - 1];
    for (int t = 0; t < p->task_count; t++)
        for (int i = 0; i < p->tasks[t].signals.count; i++)
            check->producers[first[p->signals[p->tasks[t].signals.first + i] + 1]++] = t;
}

/* If a task signals a counter twice, it is listed twice in a row among the counter's producers. */
static void check_signals(mgl_check *check)
{
    const mgl_program *p = check->program;
    for (int c = 0; c < p->counter_count; c++)
        for (int i = check->producer_first[c] + 1; i < check->producer_first[c + 1]; i++)
            if (check->producers[i] == check->producers[i - 1]) {
                char name[MGL_NAME_TEXT];
                mgl_check_report(check, 113, check->producers[i], 0, "%s signals %.64s twice",
                                 mgl_check_task(check, check->producers[i], name),
                                 p->counters[c].name);
            }
}

void mgl_check_form(mgl_check *check)
{
    const mgl_program *p = check->program;
    if (!check_counts(check) || !check_runs(check) || !check_pieces(check))
        return;
    check_geometry(check);
    for (int i = 0; i < p->tensor_count; i++)
        check_tensor(check, &p->tensors[i]);
    for (int i = check->first ? check->first->program->buffer_count : 0; i < p->buffer_count; i++) {
        check_buffer(check, &p->buffers[i]);
        check_source(check, &p->buffers[i]);
    }
    index_tasks(check);
    if (!check->no_memory)
        check_signals(check);
}
