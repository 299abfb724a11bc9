/*
 * CPU machine state shared by the CPU VM (cpu.c) and the explore tests (tests/vm/explore): buffers,
 * tapes, counters, and the execution of one task. The caller chooses the order of tasks.
 *
 * Tapes are used in their packed layout, from memory or from the map of a compiled model. A table
 * whose rows are all on the tapes, such as a tied embedding, is gathered from there.
 *
 * A program with two lists runs as one program that joins both lists (schedule/lists.h).
 */
#ifndef MGL_VM_CPU_MACHINE_H
#define MGL_VM_CPU_MACHINE_H

#include "instructions/reference/reference.h"
#include "schedule/lists.h"
#include "vm/cpu/pool.h"
#include "vm/cpu/products.h"
#include "vm/vm.h"
#include "vm/weights.h"

enum { MGL_CPU_SEGMENTS = 3 }; /* maximum of a task */

enum { MGL_CPU_LISTS = 2 };

/* Execution state of a queue. */
typedef struct mgl_cpu_queue {
    int list;                 /* current list */
    int next;                 /* next task, counted from the list's first */
    int epoch;                /* passes over the queue begun so far, from 0 */
    int ended[MGL_CPU_LISTS]; /* completed epochs of each list */
    bool left;                /* `enter` read the stop */
    mgl_epoch_rows rows;
} mgl_cpu_queue;

/* Matrices of a tape segment, as input of the products. */
typedef struct mgl_cpu_segment {
    mgl_matrix matrix[2]; /* [1]: the second tensor of g8x2 */
} mgl_cpu_segment;

typedef struct mgl_machine {
    const mgl_program *first;    /* the program given at opening */
    int32_t *likely;             /* what sample reports about the tokens of the current launch; or
                                    NULL */
    mgl_joined joined;           /* both lists joined, for a program with two lists; else empty */
    const mgl_program *program;  /* the program that runs: `first` or the joined program */
    mgl_vm_io io[MGL_CPU_LISTS]; /* of each list; they differ only in logits and best */
    bool plain;                  /* use reference ops on the packed bytes, on one thread */
    mgl_pool *pool;
    mgl_products products;
    mgl_arithmetic arithmetic;  /* of the selected product set */
    const mgl_weights *mapped;  /* weights used in place from a map; NULL: all are in `memory` */
    void **memory;              /* (parts of the weights) owned; NULL for mapped parts */
    void **buffers;             /* (buffer_count); NULL: a table gathered from the tapes */
    const void **tapes;         /* (queue_count) packed */
    const void **segment_tapes; /* (segment_count) tape of each segment */
    mgl_cpu_segment *segments;  /* (segment_count); NULL when plain */
    int32_t **places;           /* (segment_count) owned; NULL if blocks are in order */
    int *queue_of;              /* (task_count) queue of each task */
    uint32_t *counters;         /* (counter_count) */
    uint32_t *producers;        /* (lists, counter_count) signals per epoch: P */
    mgl_cpu_queue *queues;      /* (queue_count) */
    float *scratch;             /* scratch memory of a task */
    float *lanes;               /* (threads, lane) scratch memory of each thread */
    size_t lane;                /* floats of `lanes` per thread */
    const atomic_int *abort;    /* of the current run; may be NULL */
    mgl_pool_end end; /* state of the current run; its results are valid only while it is DONE */
    size_t tape_bytes, const_bytes, kv_bytes;
    size_t memory_bytes; /* of weights that are not mapped */
    size_t scratch_bytes;
} mgl_machine;

typedef struct mgl_machine_options {
    const mgl_weights *weights; /* already packed weights; NULL: pack the graph's. Mapped weights
                                   are used in place and must outlive the machine */
    bool plain;
    bool verify; /* verify the checksums of mapped weights first */
    int threads; /* 0: one per processor */
    const atomic_int *abort;
    mgl_stage_fn *on_stage;
    void *stage_user;
} mgl_machine_options;

/* Loads the program. *machine is zero-initialized by the caller. Release with mgl_machine_close,
 * also after an error. */
mgl_status mgl_machine_open(mgl_machine *machine, const mgl_program *program,
                            const mgl_graph *graph, const mgl_machine_options *options,
                            mgl_error *err);
void mgl_machine_close(mgl_machine *machine);

/* Replaces the program by another of the same model (see mgl_vm_exchange). On failure the machine
 * is unchanged. */
mgl_status mgl_machine_exchange(mgl_machine *machine, const mgl_program *program,
                                const mgl_graph *graph, mgl_error *err);

/* Starts a launch: resets counters, queues and the io buffers of the request. *most_epochs receives
 * the maximum number of epochs that a correct program runs. */
mgl_status mgl_machine_start(mgl_machine *machine, const mgl_vm_request *request, int *most_epochs,
                             mgl_error *err);

/* Tasks of the current list of queue q. */
static inline mgl_run mgl_machine_tasks(const mgl_machine *machine, int q)
{
    return machine->queues[q].list ? machine->joined.second[q] : machine->program->queues[q].tasks;
}

/* Next task of queue q. */
static inline int mgl_machine_task(const mgl_machine *machine, int q)
{
    return mgl_machine_tasks(machine, q).first + machine->queues[q].next;
}

/* io buffers of the current list of queue q. */
static inline const mgl_vm_io *mgl_machine_io(const mgl_machine *machine, int q)
{
    return &machine->io[machine->queues[q].list];
}

/* The first unmet wait of a queue's next task, or NULL. */
const mgl_wait *mgl_machine_blocked(const mgl_machine *machine, int q);

/* The first flag region with unwritten words that a queue's next task reads, or NULL. */
const mgl_region *mgl_machine_unwritten(const mgl_machine *machine, int q);

/* Counter value that satisfies a wait in the current epoch of queue q. */
uint32_t mgl_machine_wanted(const mgl_machine *machine, int q, const mgl_wait *wait);

/* Executes the next task of a queue, signals its counters, and advances the queue. */
void mgl_machine_execute(mgl_machine *machine, int q, const int32_t *asked);

/* Fails with MGL_BAD_INPUT if the file of mapped weights was truncated. Call it before results that
 * were computed from the weights are delivered. */
mgl_status mgl_machine_check(const mgl_machine *machine, mgl_error *err);

/* Fails with MGL_WATCHDOG: names queue, task, counter, wanted and seen value of the first queue
 * that waits. */
mgl_status mgl_machine_stuck(const mgl_machine *machine, mgl_error *err);

/* Runs an op on all threads with vector kernels (fast.c). Returns false for ops that only the
 * reference implements. */
bool mgl_fast_execute(mgl_machine *machine, const mgl_call *call);
/* Scratch floats that a task needs, and that each thread needs. */
size_t mgl_fast_scratch(const mgl_program *program);
size_t mgl_fast_lane(const mgl_program *program);

static inline int32_t *mgl_machine_words(const mgl_machine *machine, int buffer)
{
    return machine->buffers[buffer];
}

#endif
