/*
 * Implements program.h: storage of a program in growing arrays, its builders, comparison of
 * programs, and the sizes of tape segments.
 */
#include "schedule/program.h"

#include "base/assert.h"
#include "base/memory.h"

#include <string.h>

struct mgl_program_store {
    size_t tensors, buffers, counters, queues, tasks, regions, segments, waits,
        signals; /* capacity */
    char **names;
    size_t name_count, name_capacity;
    bool failed; /* memory ran out while building */
};

mgl_status mgl_program_new(mgl_program **out, mgl_error *err)
{
    *out = NULL;
    mgl_program *program = mgl_alloc_zero(1, sizeof *program);
    struct mgl_program_store *store = mgl_alloc_zero(1, sizeof *store);
    if (!program || !store) {
        mgl_free(program);
        mgl_free(store);
        return mgl_fail_memory(err, sizeof *program);
    }
    program->store = store;
    *out = program;
    return MGL_OK;
}

void mgl_program_free(mgl_program *program)
{
    if (!program)
        return;
    mgl_program_free(program->second);
    struct mgl_program_store *store = program->store;
    for (size_t i = 0; i < store->name_count; i++)
        mgl_free(store->names[i]);
    mgl_free(store->names);
    mgl_free(store);
    mgl_free(program->tensors);
    mgl_free(program->buffers);
    mgl_free(program->counters);
    mgl_free(program->queues);
    mgl_free(program->tasks);
    mgl_free(program->regions);
    mgl_free(program->segments);
    mgl_free(program->waits);
    mgl_free(program->signals);
    mgl_free(program);
}

bool mgl_program_failed(const mgl_program *program)
{
    return program->store->failed;
}

/* Copies a name into the program's store. NULL if memory ran out. */
static const char *keep(mgl_program *program, const char *name)
{
    struct mgl_program_store *store = program->store;
    char *copy = mgl_strdup(name);
    if (!copy || !mgl_grow((void **)&store->names, &store->name_capacity, store->name_count,
                           sizeof *store->names)) {
        mgl_free(copy);
        store->failed = true;
        return NULL;
    }
    return store->names[store->name_count++] = copy;
}

/* Appends `item` of `size` bytes to an array. Returns its index, or -1. */
static int append(mgl_program *program, void *array, size_t *capacity, int *count, const void *item,
                  size_t size)
{
    void **items = array;
    if (program->store->failed || *count == INT32_MAX ||
        !mgl_grow(items, capacity, (size_t)*count, size)) {
        program->store->failed = true;
        return -1;
    }
    memcpy((char *)*items + (size_t)*count * size, item, size);
    return (*count)++;
}

#define APPEND(program, field, count, item)                                                        \
    append(program, &(program)->field, &(program)->store->field, &(program)->count, item,          \
           sizeof *(program)->field)

int mgl_program_add_tensor(mgl_program *program, const char *name, const char *checkpoint,
                           mgl_weight_format format, int rank, int64_t rows, int64_t cols)
{
    mgl_program_tensor tensor = {.name = keep(program, name),
                                 .checkpoint = keep(program, checkpoint),
                                 .format = format,
                                 .rank = rank,
                                 .rows = rows,
                                 .cols = cols,
                                 .factors = -1,
                                 .order = -1};
    return APPEND(program, tensors, tensor_count, &tensor);
}

int mgl_program_add_buffer(mgl_program *program, const mgl_buffer *buffer)
{
    mgl_buffer copy = *buffer;
    copy.name = keep(program, buffer->name);
    const int index = APPEND(program, buffers, buffer_count, &copy);
    if (index < 0 || copy.tensor < 0 || copy.tensor >= program->tensor_count)
        return index;
    mgl_program_tensor *tensor = &program->tensors[copy.tensor];
    if (copy.source == MGL_SOURCE_SCALES)
        tensor->factors = index;
    else if (copy.source == MGL_SOURCE_ORDER)
        tensor->order = index;
    return index;
}

int mgl_program_add_counter(mgl_program *program, const char *name)
{
    mgl_counter counter = {.name = keep(program, name)};
    return APPEND(program, counters, counter_count, &counter);
}

void mgl_program_declare_all(mgl_program *program, const mgl_program *from)
{
    for (int i = 0; i < from->tensor_count && !mgl_program_failed(program); i++) {
        const mgl_program_tensor *t = &from->tensors[i];
        int index = mgl_program_add_tensor(program, t->name, t->checkpoint, t->format, t->rank,
                                           t->rows, t->cols);
        if (index >= 0)
            program->tensors[index].line = t->line;
    }
    for (int i = 0; i < from->buffer_count && !mgl_program_failed(program); i++)
        mgl_program_add_buffer(program, &from->buffers[i]);
    for (int i = 0; i < from->counter_count && !mgl_program_failed(program); i++) {
        int index = mgl_program_add_counter(program, from->counters[i].name);
        if (index >= 0)
            program->counters[index].line = from->counters[i].line;
    }
}

mgl_status mgl_program_add_second(mgl_program *program, mgl_error *err)
{
    MGL_ASSERT(!program->second && program->limits.second_rows > 0);
    mgl_status status = mgl_program_new(&program->second, err);
    if (status)
        return status;
    mgl_program *second = program->second;
    second->is_second = true;
    second->target = program->target;
    second->geometry = program->geometry;
    second->exec = program->exec;
    second->weight_dtype = program->weight_dtype;
    second->embedding_dtype = program->embedding_dtype;
    second->exchange_dtype = program->exchange_dtype;
    second->kv_dtype = program->kv_dtype;
    second->limits = program->limits;
    second->limits.rows = program->limits.second_rows;
    second->limits.first_rows = program->limits.rows;
    mgl_program_declare_all(second, program);
    return mgl_program_failed(second) ? mgl_fail_memory(err, 0) : MGL_OK;
}

int mgl_program_add_queue(mgl_program *program)
{
    mgl_queue queue = {.tasks = {.first = program->task_count}};
    return APPEND(program, queues, queue_count, &queue);
}

int mgl_program_add_task(mgl_program *program, mgl_op op)
{
    mgl_task task = {.op = op,
                     .in = {program->region_count, 0},
                     .out = {program->region_count, 0},
                     .segments = {program->segment_count, 0},
                     .waits = {program->wait_count, 0},
                     .signals = {program->signal_count, 0}};
    MGL_ASSERT(program->store->failed || program->queue_count > 0);
    int index = APPEND(program, tasks, task_count, &task);
    if (index >= 0)
        program->queues[program->queue_count - 1].tasks.count++;
    return index;
}

/* The newest task; NULL after a failure. */
static mgl_task *newest(mgl_program *program)
{
    MGL_ASSERT(program->store->failed || program->task_count > 0);
    return program->store->failed ? NULL : &program->tasks[program->task_count - 1];
}

void mgl_program_set_variant(mgl_program *program, mgl_variant variant)
{
    mgl_task *task = newest(program);
    if (task)
        task->variant = variant;
}

int mgl_program_add_in(mgl_program *program, const mgl_region *region)
{
    mgl_task *task = newest(program);
    int index = APPEND(program, regions, region_count, region);
    if (task && index >= 0) {
        MGL_ASSERT(task->out.count == 0); /* all inputs come before the outputs */
        task->in.count++;
        task->out.first = index + 1;
    }
    return index;
}

int mgl_program_add_out(mgl_program *program, const mgl_region *region)
{
    mgl_task *task = newest(program);
    int index = APPEND(program, regions, region_count, region);
    if (task && index >= 0)
        task->out.count++;
    return index;
}

int mgl_program_add_segment(mgl_program *program, const mgl_segment *segment)
{
    mgl_task *task = newest(program);
    int index = APPEND(program, segments, segment_count, segment);
    if (task && index >= 0)
        task->segments.count++;
    return index;
}

int mgl_program_add_wait(mgl_program *program, int counter, int64_t threshold)
{
    mgl_task *task = newest(program);
    mgl_wait wait = {counter, threshold};
    int index = APPEND(program, waits, wait_count, &wait);
    if (task && index >= 0)
        task->waits.count++;
    return index;
}

int mgl_program_add_signal(mgl_program *program, int counter)
{
    mgl_task *task = newest(program);
    int index = APPEND(program, signals, signal_count, &counter);
    if (task && index >= 0)
        task->signals.count++;
    return index;
}

bool mgl_program_has_penalties(const mgl_program *program)
{
    const mgl_op_info *sample = mgl_op_get(MGL_OP_SAMPLE);
    bool has = program->second && mgl_program_has_penalties(program->second);
    for (int i = 0; i < program->task_count && !has; i++)
        has = program->tasks[i].op == MGL_OP_SAMPLE &&
              program->tasks[i].out.count > sample->out_least;
    return has;
}

bool mgl_program_takes_format(const mgl_program *program, mgl_weight_format format)
{
    const bool cpu = !strcmp(program->target.arch, "cpu");
    const bool widens = program->weight_dtype == MGL_F32 || mgl_weight_format_is(format, MGL_F32);
    return mgl_weight_format_is(format, program->weight_dtype) ||
           mgl_weight_format_is_scaled(format) || (cpu && widens);
}

bool mgl_program_takes_table(const mgl_program *program, mgl_dtype dtype)
{
    const bool cpu = !strcmp(program->target.arch, "cpu");
    const bool widens = program->embedding_dtype == MGL_F32 && dtype != MGL_I32;
    return dtype == program->embedding_dtype || (cpu && (widens || dtype == MGL_F32));
}

void mgl_program_set_dtype(mgl_program *program, mgl_dtype dtype)
{
    MGL_ASSERT(dtype != MGL_I32);
    program->weight_dtype = program->embedding_dtype = program->exchange_dtype = program->kv_dtype =
        dtype;
}

bool mgl_program_is_all(const mgl_program *program, mgl_dtype dtype)
{
    return program->weight_dtype == dtype && program->embedding_dtype == dtype &&
           program->exchange_dtype == dtype && program->kv_dtype == dtype;
}

bool mgl_program_same_tensor(const mgl_program_tensor *a, const mgl_program_tensor *b)
{
    return !strcmp(a->name, b->name) && !strcmp(a->checkpoint, b->checkpoint) &&
           mgl_weight_format_equal(a->format, b->format) && a->rows == b->rows &&
           a->cols == b->cols && a->rank == b->rank;
}

bool mgl_program_same_buffer(const mgl_buffer *a, const mgl_buffer *b)
{
    bool equal = !strcmp(a->name, b->name) && a->space == b->space && a->dtype == b->dtype &&
                 a->rank == b->rank && a->source == b->source && a->tensor == b->tensor &&
                 a->sets == b->sets && a->paged == b->paged;
    for (int i = 0; equal && i < a->rank; i++)
        equal = a->extents[i].symbol == b->extents[i].symbol &&
                a->extents[i].count == b->extents[i].count;
    return equal;
}

static bool equal_regions(const mgl_region *a, const mgl_region *b)
{
    bool equal = a->buffer == b->buffer && a->flag == b->flag;
    for (int i = 0; equal && i < MGL_MAX_RANK; i++)
        equal = a->ranges[i].kind == b->ranges[i].kind && a->ranges[i].lo == b->ranges[i].lo &&
                a->ranges[i].hi == b->ranges[i].hi;
    return equal;
}

static bool equal_segments(const mgl_segment *a, const mgl_segment *b)
{
    return a->tensor == b->tensor && a->tensor2 == b->tensor2 && a->layout == b->layout &&
           a->row_lo == b->row_lo && a->row_hi == b->row_hi && a->col_lo == b->col_lo &&
           a->col_hi == b->col_hi && a->offset == b->offset;
}

static bool equal_runs(mgl_run a, mgl_run b)
{
    return a.first == b.first && a.count == b.count;
}

static bool equal_tasks(const mgl_task *a, const mgl_task *b)
{
    return a->op == b->op && a->variant == b->variant && equal_runs(a->in, b->in) &&
           equal_runs(a->out, b->out) && equal_runs(a->segments, b->segments) &&
           equal_runs(a->waits, b->waits) && equal_runs(a->signals, b->signals);
}

static bool equal_dtypes(const mgl_program *a, const mgl_program *b)
{
    return a->weight_dtype == b->weight_dtype && a->embedding_dtype == b->embedding_dtype &&
           a->exchange_dtype == b->exchange_dtype && a->kv_dtype == b->kv_dtype;
}

static bool equal_settings(const mgl_program *a, const mgl_program *b)
{
    return !strcmp(a->target.arch, b->target.arch) && a->target.queues == b->target.queues &&
           a->target.shared_bytes == b->target.shared_bytes &&
           mgl_geometry_equal(&a->geometry, &b->geometry) && a->limits.rows == b->limits.rows &&
           a->limits.sequences == b->limits.sequences && a->limits.capacity == b->limits.capacity &&
           a->limits.second_rows == b->limits.second_rows &&
           a->limits.first_rows == b->limits.first_rows && a->limits.share == b->limits.share &&
           a->limits.unsplit == b->limits.unsplit && a->exec.page_bytes == b->exec.page_bytes &&
           a->exec.ring_pages == b->exec.ring_pages && a->exec.warps == b->exec.warps &&
           a->exec.stage_bytes == b->exec.stage_bytes &&
           a->exec.flight_bytes == b->exec.flight_bytes &&
           a->exec.pending_bytes == b->exec.pending_bytes &&
           a->exec.prefetch_bytes == b->exec.prefetch_bytes && equal_dtypes(a, b) &&
           !strcmp(a->tuned, b->tuned) && !strcmp(a->tuned_digest, b->tuned_digest);
}

static bool equal_counts(const mgl_program *a, const mgl_program *b)
{
    return a->tensor_count == b->tensor_count && a->buffer_count == b->buffer_count &&
           a->counter_count == b->counter_count && a->queue_count == b->queue_count &&
           a->task_count == b->task_count && a->region_count == b->region_count &&
           a->segment_count == b->segment_count && a->wait_count == b->wait_count &&
           a->signal_count == b->signal_count;
}

static bool equal_declarations(const mgl_program *a, const mgl_program *b)
{
    bool equal = true;
    for (int i = 0; equal && i < a->tensor_count; i++)
        equal = mgl_program_same_tensor(&a->tensors[i], &b->tensors[i]);
    for (int i = 0; equal && i < a->buffer_count; i++)
        equal = mgl_program_same_buffer(&a->buffers[i], &b->buffers[i]);
    for (int i = 0; equal && i < a->counter_count; i++)
        equal = !strcmp(a->counters[i].name, b->counters[i].name);
    return equal;
}

static bool equal_queues(const mgl_program *a, const mgl_program *b)
{
    bool equal = true;
    for (int i = 0; equal && i < a->queue_count; i++)
        equal = equal_runs(a->queues[i].tasks, b->queues[i].tasks) &&
                a->queues[i].tape_bytes == b->queues[i].tape_bytes &&
                a->queues[i].tape_pad == b->queues[i].tape_pad;
    for (int i = 0; equal && i < a->task_count; i++)
        equal = equal_tasks(&a->tasks[i], &b->tasks[i]);
    for (int i = 0; equal && i < a->region_count; i++)
        equal = equal_regions(&a->regions[i], &b->regions[i]);
    for (int i = 0; equal && i < a->segment_count; i++)
        equal = equal_segments(&a->segments[i], &b->segments[i]);
    for (int i = 0; equal && i < a->wait_count; i++)
        equal = a->waits[i].counter == b->waits[i].counter &&
                a->waits[i].threshold == b->waits[i].threshold;
    for (int i = 0; equal && i < a->signal_count; i++)
        equal = a->signals[i] == b->signals[i];
    return equal;
}

bool mgl_program_equal(const mgl_program *a, const mgl_program *b)
{
    return equal_settings(a, b) && equal_counts(a, b) && equal_declarations(a, b) &&
           equal_queues(a, b) && !a->second == !b->second &&
           (!a->second || mgl_program_equal(a->second, b->second));
}

bool mgl_region_to_clear(mgl_region *region)
{
    bool clears = region->flag;
    for (int i = 0; i < MGL_MAX_RANK; i++) {
        mgl_range *range = &region->ranges[i];
        if (range->kind != MGL_RANGE_ROW_KIND)
            continue;
        clears = clears && range->lo == MGL_ROWS_SPLIT;
        *range = (mgl_range){MGL_RANGE_ROWS, 0, 0};
    }
    region->flag = false;
    return clears;
}

bool mgl_region_join(mgl_region *a, const mgl_region *b)
{
    mgl_range *along = NULL;
    if (a->buffer != b->buffer)
        return false;
    for (int i = 0; i < MGL_MAX_RANK; i++) {
        mgl_range *x = &a->ranges[i];
        const mgl_range *y = &b->ranges[i];
        if (x->kind == y->kind && x->lo == y->lo && x->hi == y->hi)
            continue;
        if (along || x->kind != MGL_RANGE_FIXED || y->kind != MGL_RANGE_FIXED || x->hi != y->lo)
            return false;
        along = x;
    }
    if (along)
        along->hi = b->ranges[along - a->ranges].hi;
    return true;
}

bool mgl_regions_meet(const mgl_region *a, const mgl_region *b, int rank)
{
    for (int d = 0; d < rank; d++) {
        const mgl_range *r = &a->ranges[d], *s = &b->ranges[d];
        bool fixed = r->kind == MGL_RANGE_FIXED && s->kind == MGL_RANGE_FIXED;
        if ((fixed && (r->lo >= s->hi || s->lo >= r->hi)) || mgl_ranges_are_disjoint_parts(r, s))
            return false;
    }
    return true;
}

int64_t mgl_segment_blocks(const mgl_program *program, const mgl_segment *segment)
{
    MGL_ASSERT(segment->tensor >= 0 && segment->tensor < program->tensor_count);
    const int64_t columns = mgl_weight_code_columns(mgl_segment_format(program, segment).code);
    return (segment->col_hi - segment->col_lo + columns - 1) / columns;
}

int64_t mgl_segment_group_bytes(const mgl_program *program, const mgl_segment *segment)
{
    return mgl_tape_group_bytes(mgl_segment_format(program, segment),
                                segment->col_hi - segment->col_lo);
}

int64_t mgl_segment_bytes(const mgl_program *program, const mgl_segment *segment)
{
    int64_t groups = (segment->row_hi - segment->row_lo + MGL_ROW_GROUP - 1) / MGL_ROW_GROUP;
    return groups * mgl_segment_group_bytes(program, segment) *
           (segment->layout == MGL_LAYOUT_G8X2 ? 2 : 1);
}

int64_t mgl_segment_rows(const mgl_segment *segment)
{
    return segment->row_hi - segment->row_lo;
}
