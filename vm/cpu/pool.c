/*
 * Implements the thread pool (pool.h) with one atomic state word. A run is open from its
 * announcement until its items are taken. A thread that finds a run open enters it (increments the
 * thread count), takes items with an atomic counter until none is left, and leaves it. The caller
 * works too, closes the run, and waits for the threads inside. A late thread finds the run closed.
 * The caller thus never waits for a thread that the operating system has not scheduled.
 */
#include "vm/cpu/pool.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

enum {
    LOOKS = 1000,     /* polls of the state before a thread sleeps or yields: about 20 us */
    STACK = 256 << 10 /* stack bytes of a thread: scratch memory is elsewhere */
};

/* Parts of the state: bit 0, bits 1 to 31, bits 32 to 63. */
#define OPEN       1ull
#define INSIDE     2ull
#define RUN(state) ((unsigned)((state) >> 32))

struct helper {
    mgl_pool *pool;
    int number; /* worker number */
    pthread_t thread;
};

struct mgl_pool {
    struct helper *helpers; /* owned (count) */
    int count;              /* threads besides the caller */

    /* The current run, written before `announce` publishes it. */
    mgl_pool_fn *work;
    void *user;
    size_t items;
    const atomic_int *abort;

    _Alignas(64) atomic_ullong state; /* OPEN, number of threads inside (INSIDE each), run
                                         number */
    atomic_int sleepers;              /* threads that must be woken */
    atomic_bool leave;
    _Alignas(64) atomic_size_t next; /* next item to take */
    atomic_int end;                  /* mgl_pool_end */

    pthread_mutex_t lock; /* protects `awake` */
    pthread_cond_t awake; /* signaled for a new run or the end */
};

/* A thread's part of a run, executed under one map guard. */
struct share {
    mgl_pool *pool;
    int worker;
};

static void take_items(void *user)
{
    const struct share *share = user;
    mgl_pool *p = share->pool;
    for (;;) {
        size_t item = atomic_fetch_add_explicit(&p->next, 1, memory_order_relaxed);
        if (item >= p->items)
            return;
        if (p->abort && atomic_load_explicit(p->abort, memory_order_relaxed)) {
            int done = MGL_POOL_DONE; /* keeps MGL_POOL_LOST */
            atomic_compare_exchange_strong(&p->end, &done, MGL_POOL_ABORTED);
            return;
        }
        p->work(p->user, share->worker, item);
    }
}

static void do_share(mgl_pool *p, int worker)
{
    struct share share = {p, worker};
    if (mgl_map_guard(take_items, &share))
        return;
    atomic_store(&p->end, MGL_POOL_LOST);
    atomic_store(&p->next, p->items); /* the other threads stop too */
}

static void pause_thread(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Waits for a run other than number `seen`; returns the new state. */
static unsigned long long await_run(mgl_pool *p, unsigned seen)
{
    unsigned long long state = atomic_load_explicit(&p->state, memory_order_acquire);
    for (int i = 0; i < LOOKS && RUN(state) == seen; i++) {
        pause_thread();
        state = atomic_load_explicit(&p->state, memory_order_acquire);
    }
    if (RUN(state) != seen)
        return state;
    pthread_mutex_lock(&p->lock);
    atomic_fetch_add(&p->sleepers, 1);
    while (RUN(state = atomic_load(&p->state)) == seen)
        pthread_cond_wait(&p->awake, &p->lock);
    atomic_fetch_sub(&p->sleepers, 1);
    pthread_mutex_unlock(&p->lock);
    return state;
}

/* Enters the run if it is open. */
static bool enter_run(mgl_pool *p, unsigned long long state)
{
    while (state & OPEN)
        if (atomic_compare_exchange_weak(&p->state, &state, state + INSIDE))
            return true;
    return false;
}

static void *help(void *argument)
{
    const struct helper *helper = argument;
    mgl_pool *p = helper->pool;
    for (unsigned seen = 0;;) {
        unsigned long long state = await_run(p, seen);
        seen = RUN(state);
        if (atomic_load(&p->leave))
            return NULL;
        if (!enter_run(p, state))
            continue;
        do_share(p, helper->number);
        atomic_fetch_sub_explicit(&p->state, INSIDE, memory_order_release);
    }
}

/* Publishes the next run: OPEN with the pool's current work, or 0 for a run that no thread
 * enters. */
static void announce(mgl_pool *p, unsigned long long open)
{
    unsigned run = RUN(atomic_load(&p->state)) + 1;
    atomic_store(&p->state, (unsigned long long)run << 32 | open);
    if (atomic_load(&p->sleepers) == 0)
        return;
    pthread_mutex_lock(&p->lock);
    pthread_cond_broadcast(&p->awake);
    pthread_mutex_unlock(&p->lock);
}

/* Closes the run and waits for the threads inside. */
static void await_end(mgl_pool *p)
{
    unsigned long long state = atomic_fetch_and(&p->state, ~OPEN) & ~OPEN;
    for (int i = 0; (unsigned)state != 0; i++) {
        if (i < LOOKS)
            pause_thread();
        else
            sched_yield();
        state = atomic_load_explicit(&p->state, memory_order_acquire);
    }
}

mgl_pool_end mgl_pool_run(mgl_pool *p, size_t count, const atomic_int *abort, mgl_pool_fn *work,
                          void *user)
{
    bool shared = count > 1 && p->count > 0;
    p->work = work;
    p->user = user;
    p->items = count;
    p->abort = abort;
    atomic_store_explicit(&p->next, 0, memory_order_relaxed);
    atomic_store_explicit(&p->end, MGL_POOL_DONE, memory_order_relaxed);
    if (shared)
        announce(p, OPEN);
    do_share(p, 0);
    if (shared)
        await_end(p);
    return (mgl_pool_end)atomic_load(&p->end);
}

int mgl_pool_threads(const mgl_pool *p)
{
    return p->count + 1;
}

/* Starts the threads with signals blocked: signals are for the application's threads. */
static void start_helpers(mgl_pool *p, int wanted)
{
    sigset_t all, before;
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes))
        return;
    pthread_attr_setstacksize(&attributes, STACK);
    sigfillset(&all);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGSEGV);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (; p->count < wanted; p->count++) {
        struct helper *helper = &p->helpers[p->count];
        *helper = (struct helper){.pool = p, .number = p->count + 1};
        if (pthread_create(&helper->thread, &attributes, help, helper))
            break;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
}

mgl_status mgl_pool_open(int threads, mgl_pool **out, mgl_error *err)
{
    int wanted = threads > 0 ? threads : mgl_parallel_processors();
    *out = NULL;
    if (wanted > MGL_POOL_MAX_THREADS)
        wanted = MGL_POOL_MAX_THREADS;
    mgl_pool *p = mgl_alloc_aligned(64, sizeof *p);
    if (!p)
        return mgl_fail_memory(err, sizeof *p);
    *p = (mgl_pool){.lock = PTHREAD_MUTEX_INITIALIZER, .awake = PTHREAD_COND_INITIALIZER};
    p->helpers = mgl_alloc_zero((size_t)wanted, sizeof *p->helpers);
    if (!p->helpers) {
        mgl_free(p);
        return mgl_fail_memory(err, (size_t)wanted * sizeof(struct helper));
    }
    start_helpers(p, wanted - 1);
    *out = p;
    return MGL_OK;
}

void mgl_pool_close(mgl_pool *p)
{
    if (!p)
        return;
    atomic_store(&p->leave, true);
    announce(p, 0);
    for (int i = 0; i < p->count; i++)
        pthread_join(p->helpers[i].thread, NULL);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->awake);
    mgl_free(p->helpers);
    mgl_free(p);
}
