/*
 * Thread pool with parallel for. The CPU machine splits the independent items of a task, such as
 * products and attention, over its threads (fast.c). The result of an item must not depend on its
 * thread or on the number of threads, so that replies are bit-identical.
 *
 * Starting a run costs a few microseconds. Idle threads spin for a while, because the next run
 * usually follows soon, and then sleep.
 */
#ifndef MGL_VM_CPU_POOL_H
#define MGL_VM_CPU_POOL_H

#include "base/error.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum { MGL_POOL_MAX_THREADS = 256 };

typedef struct mgl_pool mgl_pool;

/* Executes item `item`. `worker`, below mgl_pool_threads, is constant for a thread within a run.
 * Worker 0 is the thread that called mgl_pool_run. */
typedef void mgl_pool_fn(void *user, int worker, size_t item);

/* Opens a pool of `threads` threads, including the caller; 0: one per processor that the process
 * may use. The pool has fewer if the system grants fewer. Release with mgl_pool_close. */
mgl_status mgl_pool_open(int threads, mgl_pool **out, mgl_error *err);
void mgl_pool_close(mgl_pool *pool); /* NULL is allowed */
int mgl_pool_threads(const mgl_pool *pool);

/* Result of a run. */
typedef enum mgl_pool_end {
    MGL_POOL_DONE,    /* all items are done */
    MGL_POOL_ABORTED, /* *abort was set: some items were skipped */
    MGL_POOL_LOST     /* an item accessed mapped pages that no longer exist (mgl_map_guard) */
} mgl_pool_end;

/* Executes items 0 to count - 1, until *abort is set (may be NULL). Only one caller at a time. */
mgl_pool_end mgl_pool_run(mgl_pool *pool, size_t count, const atomic_int *abort, mgl_pool_fn *work,
                          void *user);

#endif
