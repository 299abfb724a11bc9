/* State of the CUDA machine, shared by opening (machine.c), running (launch.c), exchanging the
 * program (exchange.c), weight upload (upload.c), correctness checks (poison.c) and the watchdog
 * report (watchdog.c). */
#ifndef MGL_VM_CUDA_MACHINE_H
#define MGL_VM_CUDA_MACHINE_H

#include "schedule/lists.h"
#include "vm/cuda/device/record.h"
#include "vm/cuda/driver.h"
#include "vm/vm.h"
#include "vm/weights.h"

/* Pinned memory shared by the host and the running kernel. */
typedef struct mgl_cuda_pinned {
    volatile int32_t host[MGL_HOST_WORDS];
    volatile int32_t reports[MGL_MAX_QUEUES][MGL_REPORT_WORDS];
    volatile int32_t stream[]; /* (sequences, capacity) token + 1; 0: not written yet. Followed
                                  by what sample reports about these tokens, if requested */
} mgl_cuda_pinned;

typedef struct mgl_cuda_vm {
    mgl_vm vm;                /* first member: the VM interface */
    mgl_joined joined;        /* both lists joined, if the program has two lists */
    const mgl_program *whole; /* the joined program, or else the program: all buffers, tasks and
                                 counters */
    const mgl_cu *cu;
    int device; /* CUdevice */
    char name[128];
    char arch[16]; /* architecture that the kernel is compiled for */
    int sms;
    int blocks; /* maximum co-resident blocks of the kernel: maximum queues of a program */
    void *context, *module, *function, *stream;
    void *events[2];      /* before and after the launch */
    mgl_cu_address arena; /* one device allocation for everything, except what the owner has */
    size_t arena_bytes;   /* bytes of the arena that the program uses */
    size_t arena_room;    /* allocated bytes of the arena */
    mgl_cu_address flags; /* flagged buffers, set to all ones before a launch */
    size_t flag_bytes;
    mgl_cu_address trace; /* (trace_epochs, task_count of `whole`) mgl_device_event */
    size_t trace_bytes;
    int trace_epochs;    /* number of last epochs to keep; 0: no trace */
    uint32_t delay_seed; /* seed of the next launch; 0: no delays */
    uint64_t *buffers;   /* (buffer_count of `whole`) addresses */
    uint64_t *tapes;     /* (queue_count) */
    bool kv_ring;        /* mgl_cuda_streams_kv */
    mgl_cu_address records, queues, counters;
    size_t counter_bytes; /* including the `stopped` word, which has its own cache line after the
                             counters */
    mgl_cuda_pinned *pinned;
    size_t pinned_bytes; /* bytes of it that a launch uses */
    size_t pinned_room;
    mgl_cu_address pinned_address; /* device address of the same memory */
    mgl_vm_io io;
    int logits[2];        /* (list) its logits buffer */
    mgl_vm_fill_fn *fill; /* of the options */
    void *fill_user;
    int deadline_ms;
    int32_t *control, *table, *sequences, *prompt; /* initial contents of a launch */
    int32_t *output;                               /* (sequences, capacity) */
    float *score;                                  /* (sequences, capacity) */
    int32_t *counts;  /* (vocab) one sequence at a time; NULL: the program has no penalties */
    int sampled;      /* last sampled row of logits; -1: none */
    int sampled_list; /* list of that row */
    mgl_vm_facts facts;
} mgl_cuda_vm;

mgl_status mgl_cuda_run(mgl_vm *vm, const mgl_vm_request *request, mgl_vm_report *out,
                        mgl_error *err);
mgl_status mgl_cuda_get_logits(mgl_vm *vm, float *logits, mgl_error *err);
mgl_status mgl_cuda_get_row_logits(mgl_vm *vm, int row, float *logits, mgl_error *err);

/* Implemented in poison.c; documented in vm/vm.h. */
mgl_status mgl_cuda_poison(mgl_vm *vm, uint32_t word, int context, mgl_error *err);
mgl_status mgl_cuda_check_guards(mgl_vm *vm, mgl_error *err);
mgl_status mgl_cuda_refill(mgl_vm *vm, mgl_error *err);
mgl_status mgl_cuda_get_buffer(mgl_vm *vm, int buffer, void *to, mgl_error *err);
mgl_status mgl_cuda_get_constant(mgl_vm *vm, int queue, int buffer, size_t first, size_t bytes,
                                 void *to, mgl_error *err);

mgl_status mgl_cuda_exchange(mgl_vm *vm, const mgl_program *program, const mgl_graph *graph,
                             mgl_error *err);

/* Checks that the machine can run its program, joins its lists, and finds its io buffers. */
mgl_status mgl_cuda_accept(mgl_cuda_vm *vm, mgl_error *err);

/* Sets up the arena in three steps. `lay_out` assigns an offset to everything. `allocate` allocates
 * the memory. `settle` turns offsets into addresses, clears the arena, and writes everything except
 * the weights. */
mgl_status mgl_cuda_lay_out(mgl_cuda_vm *vm, mgl_error *err);
mgl_status mgl_cuda_allocate(mgl_cuda_vm *vm, mgl_error *err);
mgl_status mgl_cuda_settle(mgl_cuda_vm *vm, mgl_error *err);

/* Calls the `fill` of the options. */
mgl_status mgl_cuda_fill(mgl_cuda_vm *vm, mgl_error *err);

/* The owner's state, or NULL: see mgl_vm_options. */
static inline const mgl_cuda_vm *mgl_cuda_owner(const mgl_cuda_vm *vm)
{
    return (const mgl_cuda_vm *)vm->vm.owner;
}

/* Device address of a part of the weights. */
static inline mgl_cu_address mgl_cuda_part_address(const mgl_cuda_vm *vm, int part)
{
    int queues = vm->vm.program->queue_count;
    return part < queues ? vm->tapes[part] : vm->buffers[part - queues];
}

/* Optional features (MGL_CUDA_... bits) of the machine's kernel. */
unsigned mgl_cuda_extras(const mgl_cuda_vm *vm);

/* Writes all weights to their parts on the cleared device, except pieces that have an origin.
 * Checks `abort` of the options and reports to on_stage. */
mgl_status mgl_cuda_upload(mgl_cuda_vm *vm, const mgl_weights *weights,
                           const mgl_vm_options *options, mgl_error *err);

/* Reads the watchdog's reports after a launch: MGL_OK, or MGL_WATCHDOG with a message. */
mgl_status mgl_cuda_read_reports(const mgl_cuda_vm *vm, mgl_error *err);

/* Makes the device's context current on the calling thread; restores the previous one. */
mgl_status mgl_cuda_enter(mgl_cuda_vm *vm, mgl_error *err);
void mgl_cuda_leave(mgl_cuda_vm *vm);

#endif
