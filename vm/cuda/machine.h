/* The CUDA machine's state, shared by opening (machine.c), running (launch.c) and putting another
 * program on it (exchange.c). */
#ifndef MGL_VM_CUDA_MACHINE_H
#define MGL_VM_CUDA_MACHINE_H

#include "schedule/lists.h"
#include "vm/cuda/device/record.h"
#include "vm/cuda/driver.h"
#include "vm/vm.h"
#include "vm/weights.h"

/* Memory that host and kernel both see while the kernel runs. */
typedef struct mgl_cuda_pinned {
    volatile int32_t host[MGL_HOST_WORDS];
    volatile int32_t reports[MGL_MAX_QUEUES][MGL_REPORT_WORDS];
    volatile int32_t stream[]; /* (sequences, capacity) token + 1; 0: not yet. Behind it what sample
                                  tells of these tokens, where it is asked */
} mgl_cuda_pinned;

typedef struct mgl_cuda_vm {
    mgl_vm vm;                /* first: this is one */
    mgl_joined joined;        /* both lists of its program, where it has two */
    const mgl_program *whole; /* those, or else its program: all buffers, tasks and counters */
    const mgl_cu *cu;
    int device; /* CUdevice */
    char name[128];
    char arch[16]; /* that the kernel is compiled for */
    int sms;
    int blocks; /* of the kernel, that fit the device at once: queues that a program may have */
    void *context, *module, *function, *stream;
    void *events[2];      /* before and behind the launch */
    mgl_cu_address arena; /* everything on the device */
    size_t arena_bytes;   /* of it, that the program needs */
    size_t arena_room;    /* of it */
    mgl_cu_address flags; /* the flagged buffers, all ones at the start of a launch */
    size_t flag_bytes;
    mgl_cu_address trace; /* mgl_device_event (trace_epochs, task_count of the whole) */
    size_t trace_bytes;
    int trace_epochs;    /* that are kept, the last ones; 0: no trace */
    uint32_t delay_seed; /* of the next launch; 0: no delays */
    uint64_t *buffers;   /* (buffer_count of the whole) addresses */
    uint64_t *tapes;     /* (queue_count) */
    bool kv_ring;        /* mgl_cuda_streams_kv */
    mgl_cu_address records, queues, counters;
    size_t counter_bytes; /* the `stopped` word, on a line of its own behind them, included */
    mgl_cuda_pinned *pinned;
    size_t pinned_bytes; /* of it, that a launch uses */
    size_t pinned_room;
    mgl_cu_address pinned_address; /* the same memory, as the device sees it */
    mgl_vm_io io;
    int logits[2];        /* (list) its buffer of logits */
    mgl_vm_fill_fn *fill; /* of the options */
    void *fill_user;
    int deadline_ms;
    int32_t *control, *table, *sequences, *prompt; /* what a launch starts from */
    int32_t *output;                               /* (sequences, capacity) */
    float *score;                                  /* (sequences, capacity) */
    int32_t *counts;  /* (vocab) of a sequence at a time; NULL: the program has no penalties */
    int sampled;      /* row of logits, -1: none */
    int sampled_list; /* in which list */
    mgl_vm_facts facts;
} mgl_cuda_vm;

mgl_status mgl_cuda_run(mgl_vm *vm, const mgl_vm_request *request, mgl_vm_report *out,
                        mgl_error *err);
mgl_status mgl_cuda_get_logits(mgl_vm *vm, float *logits, mgl_error *err);
mgl_status mgl_cuda_get_row_logits(mgl_vm *vm, int row, float *logits, mgl_error *err);

/* poison.c: see vm/vm.h. */
mgl_status mgl_cuda_poison(mgl_vm *vm, uint32_t word, int context, mgl_error *err);
mgl_status mgl_cuda_check_guards(mgl_vm *vm, mgl_error *err);
mgl_status mgl_cuda_refill(mgl_vm *vm, mgl_error *err);
mgl_status mgl_cuda_get_buffer(mgl_vm *vm, int buffer, void *to, mgl_error *err);
mgl_status mgl_cuda_get_constant(mgl_vm *vm, int queue, int buffer, size_t first, size_t bytes,
                                 void *to, mgl_error *err);

mgl_status mgl_cuda_exchange(mgl_vm *vm, const mgl_program *program, const mgl_graph *graph,
                             mgl_error *err);

/* Whether the machine can have its program at all; joins its lists, and finds its io. */
mgl_status mgl_cuda_accept(mgl_cuda_vm *vm, mgl_error *err);

/* The arena in three steps: everything that the program needs gets its offset in it; its memory is
 * taken; offsets become addresses, and all of it is cleared and filled but for the weights. */
mgl_status mgl_cuda_plan(mgl_cuda_vm *vm, mgl_error *err);
mgl_status mgl_cuda_allocate(mgl_cuda_vm *vm, mgl_error *err);
mgl_status mgl_cuda_settle(mgl_cuda_vm *vm, mgl_error *err);

/* Calls `fill`. */
mgl_status mgl_cuda_fill(mgl_cuda_vm *vm, mgl_error *err);

/* Where a part of the weights lies on the device. */
static inline mgl_cu_address mgl_cuda_part_address(const mgl_cuda_vm *vm, int part)
{
    int queues = vm->vm.program->queue_count;
    return part < queues ? vm->tapes[part] : vm->buffers[part - queues];
}

/* Extras of the machine's kernel: MGL_CUDA_... bits. */
unsigned mgl_cuda_extras(const mgl_cuda_vm *vm);

/* Writes all weights to where their parts lie on the device, which is cleared, but for those pieces
 * that have an origin; obeys `abort` of the options, and tells on_stage. */
mgl_status mgl_cuda_upload(mgl_cuda_vm *vm, const mgl_weights *weights,
                           const mgl_vm_options *options, mgl_error *err);

/* What the watchdog has to say after a launch: MGL_OK, or MGL_WATCHDOG in words. */
mgl_status mgl_cuda_read_reports(const mgl_cuda_vm *vm, mgl_error *err);

/* The device's context on the calling thread, and back. */
mgl_status mgl_cuda_enter(mgl_cuda_vm *vm, mgl_error *err);
void mgl_cuda_leave(mgl_cuda_vm *vm);

#endif
