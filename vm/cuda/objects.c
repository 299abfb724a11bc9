/*
 * Parallel compilation of a kernel as separate objects (device/objects.h): NVRTC compiles each
 * object on its own thread, up to the number of processors at once, and nvJitLink links them.
 * compile.c calls mgl_cuda_objects_compile.
 */
#include "vm/cuda/compile.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "vm/cuda/device/objects.h"
#include "vm/cuda/driver.h"
#include "vm/cuda/encode.h"

enum {
    TICK_MS = 20,
    REGISTERS = 65536, /* registers of a multiprocessor, and the maximum of a block, from compute
                          capability 8.0 on */
    OF_A_THREAD = 255,
    GRANULE = 8,  /* allocation unit of registers per thread */
    AT_ONCE = 128 /* threads per register allocation: four warps */
};

/* ---- limit of parallel compilations --------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed; /* uses the monotonic clock */
static pthread_once_t changed_once = PTHREAD_ONCE_INIT;
static int at_work;
static atomic_int allowed; /* 0: the number of processors */

void mgl_cuda_compile_use_processors(int count)
{
    atomic_store(&allowed, count);
}

static int most_at_work(void)
{
    const int count = atomic_load(&allowed);
    return count > 0 ? count : mgl_parallel_processors();
}

static void make_changed(void)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

/* Waits for a free processor. False if `abort` was set first. */
static bool take_processor(const atomic_int *abort)
{
    bool good = true;
    pthread_once(&changed_once, make_changed);
    pthread_mutex_lock(&lock);
    while (at_work >= most_at_work() && good) {
        const struct timespec until = mgl_clock_after(TICK_MS);
        pthread_cond_timedwait(&changed, &lock, &until);
        good = !(abort && atomic_load(abort));
    }
    at_work += good;
    pthread_mutex_unlock(&lock);
    return good;
}

static void give_processor(void)
{
    pthread_mutex_lock(&lock);
    at_work--;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

/* ---- objects -------------------------------------------------------------------------------- */

uint32_t mgl_cuda_objects_of(const mgl_program *program, const char *arch)
{
    const uint32_t panels = 1U << MGL_OBJECT_PANELS | 1U << MGL_OBJECT_SMALL_M |
                            1U << MGL_OBJECT_SWAP_AB | 1U << MGL_OBJECT_SMALL_N |
                            1U << MGL_OBJECT_LOADER | 1U << MGL_OBJECT_DECODE_ROW;
    uint32_t objects = (1U << MGL_OBJECTS) - 1;
    if (!program->second)
        return 0; /* one list has half as many functions: one translation unit takes 11 to 22 s,
                     and the kernel is up to 3.5 % faster */
    const uint32_t ways = mgl_cuda_variants(program, MGL_FAMILY_PANEL, arch);
    if (!ways)
        objects &= ~panels;
    if (!(ways >> MGL_VARIANT_WARPGROUPS & 1))
        objects &= ~(1U << MGL_OBJECT_SMALL_N);
    if (!mgl_cuda_variants(program, MGL_FAMILY_ATTEND_ROWS, arch))
        objects &= ~(1U << MGL_OBJECT_FLASH | 1U << MGL_OBJECT_DECODE_ROW);
    return objects;
}

/* Maximum registers of a thread in a block. The launch bounds of the entry tell the compiler this
 * limit, but other objects do not contain the entry. */
static int registers_of(int threads)
{
    const int given = (threads + AT_ONCE - 1) / AT_ONCE * AT_ONCE;
    const int most = REGISTERS / given / GRANULE * GRANULE;
    return most > OF_A_THREAD ? OF_A_THREAD : most;
}

/* The objects of a kernel being compiled. */
typedef struct parts {
    const mgl_cuda_recipe *recipe;
    mgl_cuda_compile_fn *compile;
    const atomic_int *abort;
    int count;
    int numbers[MGL_OBJECTS];
    mgl_cuda_image images[MGL_OBJECTS];
} parts;

static mgl_status compile_object(void *user, int worker, size_t item, mgl_error *err)
{
    parts *p = user;
    char registers[32];
    mgl_cuda_recipe *object = mgl_alloc(sizeof *object);
    (void)worker;
    if (!object)
        return mgl_fail_memory(err, sizeof *object);
    *object = *p->recipe;
    object->objects = 0;
    mgl_cuda_recipe_define(object, "MGL_OBJECT", p->numbers[item]);
    mgl_cuda_recipe_add(object, "-rdc=true");
    snprintf(registers, sizeof registers, "-maxrregcount=%d", registers_of(object->threads));
    mgl_cuda_recipe_add(object, registers);
    const bool was = mgl_cuda_be_of_the_crowd(true);
    mgl_status status = MGL_INTERRUPTED;
    if (take_processor(p->abort)) {
        status = p->compile(object, p->abort, &p->images[item], err);
        give_processor();
    } else {
        mgl_fail_interrupted(err);
    }
    mgl_cuda_be_of_the_crowd(was);
    mgl_free(object);
    return status;
}

/* ---- linking --------------------------------------------------------------------------------- */

static mgl_status take_kernel(const mgl_jitlink *api, void *link, mgl_cuda_image *out,
                              mgl_error *err)
{
    size_t bytes = 0;
    if (api->cubin_size(link, &bytes) || bytes == 0)
        return mgl_fail(err, MGL_DEVICE, "nvJitLink", "the linker has no result");
    out->bytes = mgl_alloc_zero(bytes + 1, 1);
    if (!out->bytes)
        return mgl_fail_memory(err, bytes + 1);
    out->length = bytes;
    return api->cubin(link, out->bytes)
               ? mgl_fail(err, MGL_DEVICE, "nvJitLink", "the linker has no result")
               : MGL_OK;
}

/* Adds the linker's error log to the error. */
static void add_log(const mgl_jitlink *api, void *link, mgl_error *err)
{
    size_t bytes = 0;
    if (api->error_size(link, &bytes) || bytes == 0)
        return;
    char *log = mgl_alloc_zero(bytes + 1, 1);
    if (log && !api->error_log(link, log))
        mgl_error_add_lines(err, log);
    mgl_free(log);
}

static mgl_status add_objects(const mgl_jitlink *api, void *link, const parts *p, mgl_error *err)
{
    int result = 0;
    for (int i = 0; i < p->count && !result; i++) {
        char name[16];
        snprintf(name, sizeof name, "object %d", p->numbers[i]);
        result = api->add(link, MGL_JITLINK_CUBIN, p->images[i].bytes, p->images[i].length, name);
    }
    if (!result)
        result = api->complete(link);
    if (!result)
        return MGL_OK;
    mgl_fail(err, MGL_DEVICE, "nvJitLink",
             "the linker rejected the kernel's objects (error %d). Its log:", result);
    add_log(api, link, err);
    return MGL_DEVICE;
}

static mgl_status link_objects(const mgl_jitlink *api, const parts *p, mgl_cuda_image *out,
                               mgl_error *err)
{
    char arch[32];
    const char *options[] = {arch};
    void *link = NULL;
    snprintf(arch, sizeof arch, "-arch=%s", p->recipe->arch);
    if (api->create(&link, 1, options))
        return mgl_fail(err, MGL_DEVICE, "nvJitLink", "the linker does not start for %s",
                        p->recipe->arch);
    atexit(mgl_cuda_await_compilations); /* registered after anything that the linker
                                            registered */
    mgl_status status = add_objects(api, link, p, err);
    if (!status)
        status = take_kernel(api, link, out, err);
    api->destroy(&link);
    return status;
}

/* ---- kernel --------------------------------------------------------------------------------- */

/* Combines the notes of all objects: the first log that is not empty. */
static void take_notes(const parts *p, mgl_cuda_image *out)
{
    for (int i = 0; i < p->count; i++) {
        out->died |= p->images[i].died;
        if (!out->log[0])
            memcpy(out->log, p->images[i].log, sizeof out->log);
    }
}

mgl_status mgl_cuda_objects_compile(const mgl_jitlink *linker, const mgl_cuda_recipe *recipe,
                                    mgl_cuda_compile_fn *compile, const atomic_int *abort,
                                    mgl_cuda_image *out, bool *compiled, mgl_error *err)
{
    const double start = mgl_clock_s();
    *out = (mgl_cuda_image){0};
    *compiled = false;
    parts *p = mgl_alloc_zero(1, sizeof *p);
    if (!p)
        return mgl_fail_memory(err, sizeof *p);
    p->recipe = recipe;
    p->compile = compile;
    p->abort = abort;
    for (int i = 0; i < MGL_OBJECTS; i++)
        if (recipe->objects >> i & 1)
            p->numbers[p->count++] = i;
    mgl_status status = mgl_parallel(most_at_work(), (size_t)p->count, compile_object, p, err);
    *compiled = !status;
    if (!status)
        status = link_objects(linker, p, out, err);
    take_notes(p, out);
    out->compile_s = mgl_clock_s() - start;
    for (int i = 0; i < p->count; i++)
        mgl_cuda_image_clear(&p->images[i]);
    mgl_free(p);
    if (status)
        mgl_cuda_image_clear(out);
    return status;
}
