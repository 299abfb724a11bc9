/*
 * Threads that stand by: the machine's products, and whatever else of a task can be cut into items
 * that do not know of each other, are shared among them. An item's result must not depend on which
 * thread does it, nor on how many there are: then no bit of a reply does.
 *
 * A run costs some microseconds. Threads that have nothing to do look for work for a while, since
 * the next run is usually near, and then sleep.
 */
#ifndef MGL_VM_CPU_POOL_H
#define MGL_VM_CPU_POOL_H

#include "base/error.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum { MGL_POOL_MAX_THREADS = 256 };

typedef struct mgl_pool mgl_pool;

/* Does item `item`. `worker`, below mgl_pool_threads, is the same for all that a thread does in a
 * run; worker 0 is the thread that called mgl_pool_run. */
typedef void mgl_pool_fn(void *user, int worker, size_t item);

/* `threads` of them, the caller included; 0: one a processor that the process may use. Fewer where
 * the system gives fewer. Release with mgl_pool_close. */
mgl_status mgl_pool_open(int threads, mgl_pool **out, mgl_error *err);
void mgl_pool_close(mgl_pool *pool); /* NULL is fine */
int mgl_pool_threads(const mgl_pool *pool);

/* How a run ended. */
typedef enum mgl_pool_end {
    MGL_POOL_DONE,    /* all items are done */
    MGL_POOL_ABORTED, /* *abort was set: some are left out */
    MGL_POOL_LOST     /* an item touched pages of a map that are gone (mgl_map_guard) */
} mgl_pool_end;

/* Does items 0 to count - 1, until somebody sets *abort (may be NULL). Of one caller at a time. */
mgl_pool_end mgl_pool_run(mgl_pool *pool, size_t count, const atomic_int *abort, mgl_pool_fn *work,
                          void *user);

#endif
