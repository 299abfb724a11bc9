/*
 * The machine state that the CPU VM and explore share: buffers, tapes, counters, and how one task
 * is executed. How tasks are ordered is the business of whoever steps it.
 *
 * A tape is used as it is packed, in memory of its own or where a compiled model is mapped. A table
 * that all stands on the tapes, as a tied embedding does, is gathered from there.
 *
 * A program with two lists runs as one in which both are joined (schedule/lists.h).
 */
#ifndef MGL_VM_CPU_MACHINE_H
#define MGL_VM_CPU_MACHINE_H

#include "instructions/reference.h"
#include "schedule/lists.h"
#include "vm/cpu/pool.h"
#include "vm/cpu/products.h"
#include "vm/vm.h"
#include "vm/weights.h"

enum { MGL_CPU_SEGMENTS = 3 }; /* of a task, at most */

enum { MGL_CPU_LISTS = 2 };

/* Where a queue is. */
typedef struct mgl_cpu_queue {
    int list;                 /* that it runs */
    int next;                 /* task, counted from the list's first */
    int epoch;                /* passes begun over the queue, from 0 */
    int ended[MGL_CPU_LISTS]; /* epochs of each list before this one */
    bool left;                /* enter read the stop */
    mgl_epoch_rows rows;
} mgl_cpu_queue;

/* A segment of a tape as the products take it. */
typedef struct mgl_cpu_segment {
    mgl_matrix matrix[2]; /* the second of g8x2 */
} mgl_cpu_segment;

typedef struct mgl_machine {
    const mgl_program *first;   /* the program that it was opened with */
    int32_t *likely;            /* what sample tells of the tokens of the launch at hand; or NULL */
    mgl_joined joined;          /* of a program with two lists; else empty */
    const mgl_program *program; /* that it runs: `first`, or both lists in one */
    mgl_vm_io io[MGL_CPU_LISTS]; /* of each list; they differ in logits and best alone */
    bool plain;                  /* reference ops over the packed bytes, on one thread */
    mgl_pool *pool;
    mgl_products products;
    mgl_arithmetic arithmetic; /* of the products' set */
    const mgl_weights *mapped; /* weights that are used where they are; NULL: all are in `memory` */
    void **memory;             /* (parts of the weights) owned; NULL for what is mapped */
    void **buffers;            /* (buffer_count); NULL: a table that is gathered from the tapes */
    const void **tapes;        /* (queue_count) packed */
    const void **segment_tapes; /* (segment_count) the tape that a segment is on */
    mgl_cpu_segment *segments;  /* (segment_count); NULL when plain */
    int32_t **places;           /* (segment_count) owned; NULL where blocks stand in order */
    int *queue_of;              /* (task_count) */
    uint32_t *counters;         /* (counter_count) */
    uint32_t *producers;        /* (lists, counter_count) signals of an epoch: P */
    mgl_cpu_queue *queues;      /* (queue_count) */
    float *scratch;             /* of a task */
    float *lanes;               /* (threads, lane) scratch of each thread */
    size_t lane;                /* floats */
    const atomic_int *abort;    /* of the run at hand; may be NULL */
    mgl_pool_end end; /* of the run at hand: what it computes counts as long as it is DONE */
    size_t tape_bytes, const_bytes, kv_bytes;
    size_t memory_bytes; /* of the weights: what is not mapped */
    size_t scratch_bytes;
} mgl_machine;

typedef struct mgl_machine_options {
    const mgl_weights *weights; /* packed before; NULL: the graph's are packed. Those that are
                                   mapped are used in place: they must outlive the machine */
    bool plain;
    bool verify; /* look at the checksums of mapped weights first */
    int threads; /* 0: one a processor */
    const atomic_int *abort;
    mgl_stage_fn *on_stage;
    void *stage_user;
} mgl_machine_options;

/* Loads the program. Zero-initialise; release with mgl_machine_close, after a failure too. */
mgl_status mgl_machine_open(mgl_machine *machine, const mgl_program *program,
                            const mgl_graph *graph, const mgl_machine_options *options,
                            mgl_error *err);
void mgl_machine_close(mgl_machine *machine);

/* Another program of the same model, see mgl_vm_exchange; on failure the machine is as it was. */
mgl_status mgl_machine_exchange(mgl_machine *machine, const mgl_program *program,
                                const mgl_graph *graph, mgl_error *err);

/* The start of a launch: counters, queues and the io buffers of the request. The most epochs that a
 * right program can run for it go to *most_epochs. */
mgl_status mgl_machine_start(mgl_machine *machine, const mgl_vm_request *request, int *most_epochs,
                             mgl_error *err);

/* The tasks of the list that queue q runs. */
static inline mgl_run mgl_machine_tasks(const mgl_machine *machine, int q)
{
    return machine->queues[q].list ? machine->joined.many[q] : machine->program->queues[q].tasks;
}

/* The task that queue q has before it. */
static inline int mgl_machine_task(const mgl_machine *machine, int q)
{
    return mgl_machine_tasks(machine, q).first + machine->queues[q].next;
}

/* The io buffers of the list that queue q runs. */
static inline const mgl_vm_io *mgl_machine_io(const mgl_machine *machine, int q)
{
    return &machine->io[machine->queues[q].list];
}

/* The wait that keeps a queue's next task from running, or NULL. */
const mgl_wait *mgl_machine_blocked(const mgl_machine *machine, int q);

/* The flag region of which a queue's next task has to wait for words, or NULL. */
const mgl_region *mgl_machine_unwritten(const mgl_machine *machine, int q);

/* What a wait needs in the epoch of queue q. */
uint32_t mgl_machine_wanted(const mgl_machine *machine, int q, const mgl_wait *wait);

/* Executes the next task of a queue, signals, and steps the queue on. */
void mgl_machine_execute(mgl_machine *machine, int q, const int32_t *asked);

/* MGL_BAD_INPUT when the file behind mapped weights has lost bytes. To be asked before anything
 * that was computed from them is handed out. */
mgl_status mgl_machine_check(const mgl_machine *machine, mgl_error *err);

/* MGL_WATCHDOG: queue, task, counter, wanted and seen of the first queue that waits. */
mgl_status mgl_machine_stuck(const mgl_machine *machine, mgl_error *err);

/* The fast path (fast.c): the ops over the tapes, by all threads; false for ops that it leaves to
 * the reference. */
bool mgl_fast_execute(mgl_machine *machine, const mgl_call *call);
/* Floats of scratch that a task needs, and each thread. */
size_t mgl_fast_scratch(const mgl_program *program);
size_t mgl_fast_lane(const mgl_program *program);

static inline int32_t *mgl_machine_words(const mgl_machine *machine, int buffer)
{
    return machine->buffers[buffer];
}

#endif
