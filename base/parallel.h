/* Work that several threads share: items that do not know of each other, taken in order. */
#ifndef MGL_BASE_PARALLEL_H
#define MGL_BASE_PARALLEL_H

#include "base/error.h"

#include <stddef.h>

enum { MGL_MAX_THREADS = 16 };

/* Does item `item`. `worker`, below the number of threads, is the same for all that a thread does;
 * worker 0 is the thread that called mgl_parallel. */
typedef mgl_status mgl_parallel_fn(void *user, int worker, size_t item, mgl_error *err);

/* Processors that this process may use: those that it may run on, and no more than the processor
 * time that its control groups allow (cgroup.h), rounded up. */
int mgl_parallel_processors(void);
/* The same with the control groups below `root`, for tests. */
int mgl_parallel_processors_below(const char *root);
/* As many threads for mgl_parallel: at most MGL_MAX_THREADS. */
int mgl_parallel_threads(void);

/* Does items 0 to count - 1 on at most `threads` threads (fewer where the system gives none), and
 * returns when all are done, or, after one failed, when those begun have ended: the status and
 * error of the lowest item that fails, however many threads there are. */
mgl_status mgl_parallel(int threads, size_t count, mgl_parallel_fn *work, void *user,
                        mgl_error *err);

#endif
