/* Implements the parallel for of parallel.h. Each thread takes the next item from a shared
 * atomic counter until none is left. */
#include "base/parallel.h"

#include "base/system/cgroup.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

/* State shared by the threads. */
typedef struct job {
    mgl_parallel_fn *work;
    void *user;
    size_t count;
    atomic_size_t next; /* the next item to take */
    atomic_bool failed;
    pthread_mutex_t lock; /* of the next three */
    size_t item;          /* the lowest failed item */
    mgl_status status;    /* its status */
    mgl_error error;
} job;

/* One of the threads. */
typedef struct worker {
    job *job;
    int number;
    pthread_t thread;
} worker;

/* Returns the number of processors in the affinity mask. */
static int count_affine(void)
{
    cpu_set_t set;
    if (!sched_getaffinity(0, sizeof set, &set))
        return CPU_COUNT(&set);
    return (int)sysconf(_SC_NPROCESSORS_ONLN); /* the machine has more processors than a
                                                * cpu_set_t holds */
}

int mgl_parallel_processors_below(const char *root)
{
    mgl_cgroup_limits limits;
    int count = count_affine();
    mgl_cgroup_read(root, &limits);
    if (limits.processors > 0 && limits.processors < count)
        count = (int)ceil(limits.processors);
    return count < 1 ? 1 : count;
}

static int processors; /* of this machine, once they were counted */

static void count_processors(void)
{
    processors = mgl_parallel_processors_below("");
}

int mgl_parallel_processors(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, count_processors);
    return processors;
}

int mgl_parallel_threads(void)
{
    int count = mgl_parallel_processors();
    return count < MGL_MAX_THREADS ? count : MGL_MAX_THREADS;
}

/* Keeps the error of the lowest failed item. Items are taken in order and every taken item is
 * completed, so the lowest failing item always gets here, whichever thread is faster. */
static void keep_failure(job *j, size_t item, mgl_status status, const mgl_error *error)
{
    pthread_mutex_lock(&j->lock);
    if (!j->status || item < j->item) {
        j->item = item;
        j->status = status;
        j->error = *error;
    }
    pthread_mutex_unlock(&j->lock);
    atomic_store(&j->failed, true);
}

static void *run_worker(void *argument)
{
    worker *w = argument;
    job *j = w->job;
    mgl_error error = {0};
    while (!atomic_load(&j->failed)) {
        size_t item = atomic_fetch_add(&j->next, 1);
        if (item >= j->count)
            break;
        mgl_status status = j->work(j->user, w->number, item, &error);
        if (status)
            keep_failure(j, item, status, &error);
    }
    return NULL;
}

mgl_status mgl_parallel(int threads, size_t count, mgl_parallel_fn *work, void *user,
                        mgl_error *err)
{
    job j = {.work = work, .user = user, .count = count, .lock = PTHREAD_MUTEX_INITIALIZER};
    worker workers[MGL_MAX_THREADS];
    int running = 1;
    if (threads > MGL_MAX_THREADS)
        threads = MGL_MAX_THREADS;
    workers[0] = (worker){.job = &j};
    for (; running < threads && (size_t)running < count; running++) {
        workers[running] = (worker){.job = &j, .number = running};
        if (pthread_create(&workers[running].thread, NULL, run_worker, &workers[running]))
            break;
    }
    run_worker(&workers[0]);
    for (int i = 1; i < running; i++)
        pthread_join(workers[i].thread, NULL);
    pthread_mutex_destroy(&j.lock);
    if (j.status && err)
        *err = j.error;
    return j.status;
}
