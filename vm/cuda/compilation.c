/*
 * A compilation in progress: a thread that makes a kernel, and the caller that waits for it
 * (mgl_cuda_recipe_start, mgl_cuda_compile_finish). Both share one reference-counted object. The
 * thread owns everything it needs, so the caller may abandon the compilation. The thread then kills
 * a child. NVRTC in this process runs to its end, and its result is cached or dropped.
 *
 * At process exit NVRTC's static data is destroyed, and NVRTC would crash or hang if it still ran.
 * An exiting process therefore waits for abandoned threads.
 */
#include "vm/cuda/compile.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"

/* STACK: as large as the stack of a typical main thread, because a compiler runs on it. */
enum { STACK = 8 << 20, TICK_MS = 20, TICKS_OF_A_REPORT = 8, PATIENCE_MS = 140 };

struct mgl_cuda_compilation {
    mgl_cuda_recipe recipe;
    atomic_int abort; /* the caller has abandoned the compilation */
    bool started;     /* the thread was started; else the work is done in the waiting call */
    double begun;     /* clock at the start, in s */

    pthread_mutex_t lock; /* protects the members below */
    pthread_cond_t ended;
    int holders; /* references: the thread and the caller */
    bool done;
    mgl_status status; /* this and the next two are valid when done */
    mgl_error error;
    mgl_cuda_image image;
};

/* ---- threads that process exit waits for ---------------------------------------------------- */

static pthread_mutex_t crowd_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t crowd_changed = PTHREAD_COND_INITIALIZER;
static int crowd;                       /* number of compiling threads */
static _Atomic pid_t home;              /* process that owns these threads. A forked child has
                                           none of them. It reads this without the lock, which a
                                           thread of the parent may hold */
static _Thread_local bool of_the_crowd; /* this thread compiles, so that an exit called by NVRTC
                                           does not wait for itself */

void mgl_cuda_await_compilations(void)
{
    if (getpid() != atomic_load(&home))
        return;
    pthread_mutex_lock(&crowd_lock);
    while (crowd > 0 && !of_the_crowd)
        pthread_cond_wait(&crowd_changed, &crowd_lock);
    pthread_mutex_unlock(&crowd_lock);
}

bool mgl_cuda_is_compiling(void)
{
    if (getpid() != atomic_load(&home))
        return false;
    pthread_mutex_lock(&crowd_lock);
    const bool is = crowd > 0;
    pthread_mutex_unlock(&crowd_lock);
    return is;
}

bool mgl_cuda_be_of_the_crowd(bool is)
{
    const bool was = of_the_crowd;
    of_the_crowd = is;
    return was;
}

static void change_crowd(int by)
{
    pthread_mutex_lock(&crowd_lock);
    crowd += by;
    atomic_store(&home, getpid());
    pthread_cond_broadcast(&crowd_changed);
    pthread_mutex_unlock(&crowd_lock);
}

/* ---- thread --------------------------------------------------------------------------------- */

static void release(mgl_cuda_compilation *c)
{
    pthread_mutex_lock(&c->lock);
    bool last = --c->holders == 0;
    pthread_mutex_unlock(&c->lock);
    if (!last)
        return;
    mgl_cuda_image_clear(&c->image);
    pthread_cond_destroy(&c->ended);
    pthread_mutex_destroy(&c->lock);
    mgl_free(c);
}

static void make(mgl_cuda_compilation *c, const atomic_int *abort)
{
    mgl_cuda_image image;
    mgl_error error = {0};
    mgl_status status = mgl_cuda_recipe_make(&c->recipe, abort, &image, &error);
    image.total_s = mgl_clock_s() - c->begun;
    pthread_mutex_lock(&c->lock);
    c->image = image;
    c->error = error;
    c->status = status;
    c->done = true;
    pthread_cond_broadcast(&c->ended);
    pthread_mutex_unlock(&c->lock);
}

static void *run(void *argument)
{
    mgl_cuda_compilation *c = argument;
    of_the_crowd = true;
    make(c, &c->abort);
    release(c);
    change_crowd(-1);
    return NULL;
}

static bool start_thread(mgl_cuda_compilation *c)
{
    pthread_attr_t attributes;
    pthread_t thread;
    if (pthread_attr_init(&attributes))
        return false;
    c->holders = 2;
    change_crowd(1);
    bool started = !pthread_attr_setstacksize(&attributes, STACK) &&
                   !pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) &&
                   !pthread_create(&thread, &attributes, run, c);
    pthread_attr_destroy(&attributes);
    if (!started) {
        c->holders = 1;
        change_crowd(-1);
    }
    return started;
}

mgl_status mgl_cuda_recipe_start(const mgl_cuda_recipe *recipe, mgl_cuda_compilation **out,
                                 mgl_error *err)
{
    mgl_cuda_compilation *c = mgl_alloc_zero(1, sizeof *c);
    pthread_condattr_t attributes;
    if (!c)
        return mgl_fail_memory(err, sizeof *c);
    c->recipe = *recipe;
    c->begun = mgl_clock_s();
    c->holders = 1;
    pthread_mutex_init(&c->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&c->ended, &attributes);
    pthread_condattr_destroy(&attributes);
    c->started = start_thread(c);
    *out = c;
    return MGL_OK;
}

/* ---- caller --------------------------------------------------------------------------------- */

/* Waits for at most one tick. Returns whether the compilation is done. */
static bool await_tick(mgl_cuda_compilation *c)
{
    const struct timespec until = mgl_clock_after(TICK_MS);
    pthread_mutex_lock(&c->lock);
    while (!c->done && !pthread_cond_timedwait(&c->ended, &c->lock, &until))
        continue;
    bool done = c->done;
    pthread_mutex_unlock(&c->lock);
    return done;
}

/* Milliseconds since the start, at least 1. */
static uint64_t elapsed_ms(const mgl_cuda_compilation *c)
{
    return 1 + (uint64_t)((mgl_clock_s() - c->begun) * 1e3);
}

/* Waits until the compilation is done or the watch aborts. Returns whether it is done. */
static bool await(mgl_cuda_compilation *c, const mgl_cuda_watch *watch)
{
    bool done = false;
    int ticks = 0;
    while (!done && !(watch->abort && atomic_load(watch->abort))) {
        done = await_tick(c);
        if (!done && watch->on_stage && ++ticks % TICKS_OF_A_REPORT == 0)
            watch->on_stage(watch->stage_user, MGL_STAGE_KERNEL, elapsed_ms(c), 0);
    }
    if (done && ticks >= TICKS_OF_A_REPORT) {
        uint64_t ms = elapsed_ms(c);
        watch->on_stage(watch->stage_user, MGL_STAGE_KERNEL, ms, ms);
    }
    return done;
}

/* Abandons the compilation. Waits for a child to end, which takes a few milliseconds, so that no
 * child process remains. */
static mgl_status leave(mgl_cuda_compilation *c, mgl_error *err)
{
    atomic_store(&c->abort, 1);
    if (!mgl_cuda_child_program())
        mgl_cuda_await_settling(PATIENCE_MS * 1e-3);
    for (int ms = 0; ms < PATIENCE_MS && mgl_cuda_child_program() && !await_tick(c); ms += TICK_MS)
        continue;
    release(c);
    return mgl_fail_interrupted(err);
}

mgl_status mgl_cuda_compile_finish(mgl_cuda_compilation *c, const mgl_cuda_watch *watch,
                                   mgl_cuda_image *out, mgl_error *err)
{
    static const mgl_cuda_watch nobody;
    *out = (mgl_cuda_image){0};
    if (!watch)
        watch = &nobody;
    if (!c->started)
        make(c, watch->abort);
    if (!await(c, watch))
        return leave(c, err);
    mgl_status status = c->status;
    if (status && err)
        *err = c->error;
    *out = c->image;
    c->image.bytes = NULL;
    release(c);
    return status;
}
