/*
 * The machine state that the CPU VM and explore share: buffers, tapes or unpacked weights,
 * counters, and how one task is executed. How tasks are ordered is the business of whoever steps
 * it.
 */
#ifndef MGL_VM_CPU_MACHINE_H
#define MGL_VM_CPU_MACHINE_H

#include "instructions/reference.h"
#include "vm/cpu/blas.h"
#include "vm/vm.h"
#include "vm/weights.h"

/* Where a queue is. */
typedef struct mgl_cpu_queue {
    int next;  /* task, counted from the queue's first */
    int epoch; /* passes begun over the queue, from 0 */
    bool left; /* enter read the stop */
    mgl_epoch_rows rows;
} mgl_cpu_queue;

typedef struct mgl_machine {
    const mgl_program *program;
    mgl_vm_io io;
    mgl_blas blas;
    bool plain;            /* reference ops over the packed bytes */
    void **buffers;        /* (buffer_count) */
    void **tapes;          /* (queue_count) packed; all NULL unless plain */
    float **weights;       /* (task_count) row-major f32 of a task's segments, unless plain */
    int *queue_of;         /* (task_count) */
    uint32_t *counters;    /* (counter_count) */
    uint32_t *producers;   /* (counter_count) signals of an epoch: P */
    mgl_cpu_queue *queues; /* (queue_count) */
    float *scratch;
    size_t tape_bytes, const_bytes, kv_bytes;
} mgl_machine;

/* Loads the program with `weights`, or, where that is NULL, with those of the graph. Zero-initialise;
 * release with mgl_machine_close, after a failure too. */
mgl_status mgl_machine_open(mgl_machine *machine, const mgl_program *program,
                            const mgl_graph *graph, const mgl_weights *weights, bool plain,
                            mgl_error *err);
void mgl_machine_close(mgl_machine *machine);

/* The start of a launch: counters, queues and the io buffers of the request. The most epochs that a
 * right program can run for it go to *most_epochs. */
mgl_status mgl_machine_start(mgl_machine *machine, const mgl_vm_request *request, int *most_epochs,
                             mgl_error *err);

/* The task that queue q has before it. */
static inline int mgl_machine_task(const mgl_machine *machine, int q)
{
    return machine->program->queues[q].tasks.first + machine->queues[q].next;
}

/* The wait that keeps a queue's next task from running, or NULL. */
const mgl_wait *mgl_machine_blocked(const mgl_machine *machine, int q);

/* The flag region of which a queue's next task has to wait for words, or NULL. */
const mgl_region *mgl_machine_unwritten(const mgl_machine *machine, int q);

/* What a wait needs in the epoch of queue q. */
uint32_t mgl_machine_wanted(const mgl_machine *machine, int q, const mgl_wait *wait);

/* Executes the next task of a queue, signals, and steps the queue on. */
void mgl_machine_execute(mgl_machine *machine, int q, bool abort);

/* MGL_WATCHDOG: queue, task, counter, wanted and seen of the first queue that waits. */
mgl_status mgl_machine_stuck(const mgl_machine *machine, mgl_error *err);

/* The fast path (fast.c): the ops over unpacked weights; false for ops that it leaves to the
 * reference. */
bool mgl_fast_execute(const mgl_machine *machine, int task, const mgl_call *call);
/* Floats of scratch that it needs. */
size_t mgl_fast_scratch(const mgl_program *program);

static inline int32_t *mgl_machine_words(const mgl_machine *machine, int buffer)
{
    return machine->buffers[buffer];
}

#endif
