/*
 * A kernel in units (device/units.h): each is compiled by itself, as many at once as there are
 * processors, and nvJitLink makes one kernel of them.
 */
#include "vm/cuda/compile.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/format.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "vm/cuda/device/units.h"
#include "vm/cuda/driver.h"
#include "vm/cuda/encode.h"

enum {
    REGISTERS = 65536, /* of a multiprocessor, and so of a block, from compute capability 8.0 on */
    OF_A_THREAD = 255,
    GRANULE = 8 /* registers of a thread come in so many */
};

/* ---- how many at once ------------------------------------------------------------------------ */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int allowed, at_work; /* allowed 0: as many as processors */

void mgl_cuda_compile_use_processors(int count)
{
    pthread_mutex_lock(&lock);
    allowed = count;
    pthread_mutex_unlock(&lock);
}

static int most_at_work(void)
{
    return allowed > 0 ? allowed : mgl_parallel_processors();
}

static void take_processor(void)
{
    pthread_mutex_lock(&lock);
    while (at_work >= most_at_work())
        pthread_cond_wait(&changed, &lock);
    at_work++;
    pthread_mutex_unlock(&lock);
}

static void give_processor(void)
{
    pthread_mutex_lock(&lock);
    at_work--;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

/* ---- units ----------------------------------------------------------------------------------- */

uint32_t mgl_cuda_units_of(const mgl_program *program, const char *arch)
{
    const uint32_t panels = 1U << MGL_UNIT_PANELS | 1U << MGL_UNIT_SLIM | 1U << MGL_UNIT_TURNED |
                            1U << MGL_UNIT_NARROW | 1U << MGL_UNIT_LOADER | 1U << MGL_UNIT_LONE;
    uint32_t units = (1U << MGL_UNITS) - 1;
    if (mgl_limits_most(&program->limits) == 1)
        return 0; /* few functions: 10 s as one text, and up to 2 % faster */
    if (!mgl_cuda_variants(program, MGL_FAMILY_PANEL, arch))
        units &= ~panels;
    if (!mgl_cuda_variants(program, MGL_FAMILY_ATTEND_ROWS, arch))
        units &= ~(1U << MGL_UNIT_FLASH | 1U << MGL_UNIT_LONE);
    return units;
}

/* What a thread may have of a block's registers: the entry's own limit, which its launch bounds say
 * to the compiler, is not known where another unit is compiled. */
static int registers_of(int threads)
{
    int most = REGISTERS / threads / GRANULE * GRANULE;
    return most > OF_A_THREAD ? OF_A_THREAD : most;
}

/* The units of a kernel in the making. */
typedef struct parts {
    const mgl_cuda_recipe *recipe;
    mgl_cuda_compile_fn *compile;
    const atomic_int *abort;
    int count;
    int numbers[MGL_UNITS];
    mgl_cuda_image images[MGL_UNITS];
} parts;

static mgl_status compile_unit(void *user, int worker, size_t item, mgl_error *err)
{
    parts *p = user;
    char registers[32];
    mgl_cuda_recipe *unit = mgl_alloc(sizeof *unit);
    (void)worker;
    if (!unit)
        return mgl_fail_memory(err, sizeof *unit);
    *unit = *p->recipe;
    unit->units = 0;
    mgl_cuda_recipe_define(unit, "MGL_UNIT", p->numbers[item]);
    mgl_cuda_recipe_add(unit, "-rdc=true");
    snprintf(registers, sizeof registers, "-maxrregcount=%d", registers_of(unit->threads));
    mgl_cuda_recipe_add(unit, registers);
    take_processor();
    mgl_status status = p->compile(unit, p->abort, &p->images[item], err);
    give_processor();
    mgl_free(unit);
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

static mgl_status add_units(const mgl_jitlink *api, void *link, const parts *p, mgl_error *err)
{
    int result = 0;
    for (int i = 0; i < p->count && !result; i++) {
        char name[16];
        snprintf(name, sizeof name, "unit %d", p->numbers[i]);
        result = api->add(link, MGL_JITLINK_CUBIN, p->images[i].bytes, p->images[i].length, name);
    }
    if (!result)
        result = api->complete(link);
    return result ? mgl_fail(err, MGL_DEVICE, "nvJitLink",
                             "the linker does not take the kernel's units (error %d)", result)
                  : MGL_OK;
}

static mgl_status link_units(const mgl_jitlink *api, const parts *p, mgl_cuda_image *out,
                             mgl_error *err)
{
    char arch[32];
    const char *options[] = {arch};
    void *link = NULL;
    snprintf(arch, sizeof arch, "-arch=%s", p->recipe->arch);
    if (api->create(&link, 1, options))
        return mgl_fail(err, MGL_DEVICE, "nvJitLink", "the linker does not start for %s",
                        p->recipe->arch);
    atexit(mgl_cuda_await_compilations); /* behind what the linker may have registered */
    mgl_status status = add_units(api, link, p, err);
    if (!status)
        status = take_kernel(api, link, out, err);
    api->destroy(&link);
    return status;
}

/* ---- a kernel -------------------------------------------------------------------------------- */

/* Of all units: the first that is said of one. */
static void take_notes(const parts *p, mgl_cuda_image *out)
{
    for (int i = 0; i < p->count; i++) {
        out->died |= p->images[i].died;
        if (!out->log[0])
            memcpy(out->log, p->images[i].log, sizeof out->log);
    }
}

mgl_status mgl_cuda_units_compile(const mgl_jitlink *linker, const mgl_cuda_recipe *recipe,
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
    for (int i = 0; i < MGL_UNITS; i++)
        if (recipe->units >> i & 1)
            p->numbers[p->count++] = i;
    mgl_status status = mgl_parallel(most_at_work(), (size_t)p->count, compile_unit, p, err);
    *compiled = !status;
    if (!status)
        status = link_units(linker, p, out, err);
    take_notes(p, out);
    out->compile_s = mgl_clock_s() - start;
    for (int i = 0; i < p->count; i++)
        mgl_cuda_image_clear(&p->images[i]);
    mgl_free(p);
    if (status)
        mgl_cuda_image_clear(out);
    return status;
}
