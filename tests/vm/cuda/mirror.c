/* Makes a second list that mirrors the first. See mirror.h. */
#include "tests/vm/cuda/mirror.h"

#include <stdio.h>

#include "base/memory.h"
#include "tests/vm/fixture.h"

/* Maps buffers and counters of the first list to those of the second. */
struct mirror {
    const mgl_program *first;
    mgl_program *second;
    int *buffers;  /* (buffers) */
    int *counters; /* (counters) */
};

/* A separate buffer if it has rows, else the first list's. */
static int mirror_buffer(struct mirror *m, int index, int sets)
{
    mgl_buffer buffer = m->first->buffers[index];
    char name[128];
    bool rows = false;
    snprintf(name, sizeof name, "mirror.%s", buffer.name);
    buffer.name = name;
    buffer.sets = buffer.sets > 1 ? sets : 1;
    for (int d = 0; d < buffer.rank; d++) {
        if (buffer.extents[d].symbol != MGL_ROWS)
            continue;
        buffer.extents[d].count = m->second->limits.rows;
        rows = true;
    }
    return rows ? mgl_program_add_buffer(m->second, &buffer) : index;
}

/* Both lists share the counter of the epoch edge: the first enter waits for it. */
static int mirror_counter(struct mirror *m, int index)
{
    char name[128];
    const mgl_task *enter = &m->first->tasks[m->first->queues[0].tasks.first];
    snprintf(name, sizeof name, "mirror.%s", m->first->counters[index].name);
    return m->first->waits[enter->waits.first].counter == index
               ? index
               : mgl_program_add_counter(m->second, name);
}

static mgl_region mirror_region(const struct mirror *m, int index)
{
    mgl_region region = m->first->regions[index];
    region.buffer = m->buffers[region.buffer];
    return region;
}

static void mirror_task(const struct mirror *m, const mgl_task *task)
{
    const mgl_program *p = m->first;
    mgl_program_add_task(m->second, task->op);
    for (int i = task->in.first; i < task->in.first + task->in.count; i++) {
        const mgl_region region = mirror_region(m, i);
        mgl_program_add_in(m->second, &region);
    }
    for (int i = task->segments.first; i < task->segments.first + task->segments.count; i++) {
        mgl_segment segment = p->segments[i];
        segment.offset = 0;
        mgl_program_add_segment(m->second, &segment);
    }
    for (int i = task->out.first; i < task->out.first + task->out.count; i++) {
        const mgl_region region = mirror_region(m, i);
        mgl_program_add_out(m->second, &region);
    }
    for (int i = task->waits.first; i < task->waits.first + task->waits.count; i++)
        mgl_program_add_wait(m->second, m->counters[p->waits[i].counter], p->waits[i].threshold);
    for (int i = task->signals.first; i < task->signals.first + task->signals.count; i++)
        mgl_program_add_signal(m->second, m->counters[p->signals[i]]);
}

void mirror_list(mgl_program *program, int sets)
{
    mgl_error err;
    mgl_program_free(program->second);
    program->second = NULL;
    ok(mgl_program_add_second(program, &err), err);
    struct mirror m = {program, program->second,
                       mgl_alloc_zero((size_t)program->buffer_count + 1, sizeof *m.buffers),
                       mgl_alloc_zero((size_t)program->counter_count + 1, sizeof *m.counters)};
    for (int i = 0; i < program->buffer_count; i++)
        m.buffers[i] = mirror_buffer(&m, i, sets);
    for (int i = 0; i < program->counter_count; i++)
        m.counters[i] = mirror_counter(&m, i);
    for (int q = 0; q < program->queue_count; q++) {
        const mgl_run *tasks = &program->queues[q].tasks;
        mgl_program_add_queue(m.second);
        for (int t = tasks->first; t < tasks->first + tasks->count; t++)
            mirror_task(&m, &program->tasks[t]);
    }
    ck_assert(!mgl_program_failed(m.second));
    mgl_free(m.buffers);
    mgl_free(m.counters);
}
