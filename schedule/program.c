/*
 * The program's storage: arrays that grow while it is built, and the geometry of the tape.
 */
#include "schedule/program.h"

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

/* A copy of the name that the program owns; NULL when memory ran out. */
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

/* Appends `item` of `size` bytes to an array; its index, or -1. */
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
                           mgl_dtype dtype, int rank, int64_t rows, int64_t cols)
{
    mgl_program_tensor tensor = {.name = keep(program, name),
                                 .checkpoint = keep(program, checkpoint),
                                 .dtype = dtype,
                                 .rank = rank,
                                 .rows = rows,
                                 .cols = cols};
    return APPEND(program, tensors, tensor_count, &tensor);
}

int mgl_program_add_buffer(mgl_program *program, const mgl_buffer *buffer)
{
    mgl_buffer copy = *buffer;
    copy.name = keep(program, buffer->name);
    return APPEND(program, buffers, buffer_count, &copy);
}

int mgl_program_add_counter(mgl_program *program, const char *name)
{
    mgl_counter counter = {.name = keep(program, name)};
    return APPEND(program, counters, counter_count, &counter);
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
    int index = APPEND(program, tasks, task_count, &task);
    if (index >= 0)
        program->queues[program->queue_count - 1].tasks.count++;
    return index;
}

/* The newest task; NULL after a failure. */
static mgl_task *newest(mgl_program *program)
{
    return program->store->failed ? NULL : &program->tasks[program->task_count - 1];
}

int mgl_program_add_in(mgl_program *program, const mgl_region *region)
{
    mgl_task *task = newest(program);
    int index = APPEND(program, regions, region_count, region);
    if (task && index >= 0) {
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

const char *mgl_space_name(mgl_space space)
{
    static const char *const names[] = {
#define MGL_X(id, name, what) name,
        MGL_SPACES(MGL_X)
#undef MGL_X
    };
    return names[space];
}

const char *mgl_layout_name(mgl_layout layout)
{
    static const char *const names[] = {"none", "g8", "g8x2"};
    return names[layout];
}

int mgl_block_columns(mgl_dtype dtype)
{
    return 64 / (int)mgl_dtype_size(dtype);
}

int64_t mgl_segment_bytes(const mgl_program *program, const mgl_segment *segment)
{
    int64_t columns = mgl_block_columns(program->tensors[segment->tensor].dtype);
    int64_t groups = (segment->row_hi - segment->row_lo + MGL_ROW_GROUP - 1) / MGL_ROW_GROUP;
    int64_t blocks = (segment->col_hi - segment->col_lo + columns - 1) / columns;
    return groups * blocks * MGL_BLOCK_BYTES * (segment->layout == MGL_LAYOUT_G8X2 ? 2 : 1);
}

int64_t mgl_segment_rows(const mgl_segment *segment)
{
    return segment->row_hi - segment->row_lo;
}
