/*
 * A fake CUDA driver and compiler for tests. Device memory is host memory, and the kernel does what
 * a test sets. Every call can be made to fail, or to cancel the run at that moment.
 */
#ifndef MGL_TESTS_VM_CUDA_FAKE_DRIVER_H
#define MGL_TESTS_VM_CUDA_FAKE_DRIVER_H

#include <stdatomic.h>
#include <stdbool.h>

#include "vm/cuda/device/record.h"
#include "vm/cuda/driver.h"

struct fake_driver {
    atomic_int calls;  /* from several threads while weights are uploaded */
    int fail_at;       /* the fail_at-th call from now fails; 0: none */
    int failure;       /* result of the failing call */
    int abort_at;      /* the abort_at-th call from now sets `abort`; 0: none */
    atomic_int abort;  /* `abort` for the options of a machine */
    atomic_bool hold;  /* the compiler waits while this is true */
    size_t free_bytes; /* free memory of the device */
    int sms, blocks;   /* multiprocessors; blocks each takes */
    int queries;       /* number of polls that return "not ready" */
    bool meet;         /* the compiler and the first copy of weights wait for each other */
    const char *arch;  /* architecture passed to the compiler */
    atomic_int copies; /* number of copies of weights */
    size_t moved;      /* bytes copied on the device */
    void (*kernel)(const mgl_device_launch *launch);
    mgl_device_launch launch;
    int launches, contexts, allocations, modules, streams, events; /* number of launches, and of
                                                                      existing objects */
};

extern struct fake_driver fake;
extern atomic_int nvrtc_compiles; /* compilations, which run on their own threads */

extern const mgl_cu fake_cu;
extern const mgl_nvrtc fake_nvrtc;

/* Resets the fake: a free device on which all calls work. */
void reset_fake(void);

/* The test fails if something was not released. */
void nothing_is_left(void);

#endif
