/*
 * Kernel sources with overridden texts, and compilation for analysis: the compiler's log and PTX of
 * a kernel (cuda.h). autotune/kernels uses both to compile and test micro-kernel candidates.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "vm/cuda/compile.h"
#include "vm/cuda/driver.h"
#include "vm/cuda/encode.h"

/* ---- source overrides ----------------------------------------------------------------------- */

/* A set of sources with some texts replaced. A set is never modified, because an abandoned
 * compilation may still read it and derive a cache key from it. */
typedef struct source_set {
    struct source_set *older;
    int count;
    char **texts; /* (count) owned */
    mgl_cuda_source sources[MGL_RECIPE_SOURCES];
} source_set;

static source_set *sets;         /* newest first */
static const source_set *in_use; /* NULL: built-in sources */
static bool everywhere;          /* override the sources of all programs */

static void free_set(source_set *set)
{
    for (int i = 0; i < set->count; i++)
        mgl_free(set->texts[i]);
    mgl_free(set->texts);
    mgl_free(set);
}

static void free_sets(void)
{
    for (source_set *set = sets, *older; set; set = older) {
        older = set->older;
        free_set(set);
    }
    sets = NULL;
}

const mgl_cuda_source *mgl_cuda_kernel_sources(const mgl_program *program)
{
    const bool takes = everywhere || mgl_cuda_takes_sources(program);
    return in_use && takes ? in_use->sources : mgl_cuda_sources;
}

bool mgl_cuda_takes_sources(const mgl_program *program)
{
    return !program->second && !mgl_cuda_has_biases(program) && !mgl_cuda_has_norms(program) &&
           !mgl_cuda_has_merges(program) && !mgl_program_has_penalties(program);
}

static mgl_cuda_source *find(source_set *set, const char *name)
{
    for (int i = 0; i < mgl_cuda_source_count; i++)
        if (!strcmp(set->sources[i].name, name))
            return &set->sources[i];
    return NULL;
}

static mgl_status fill_set(source_set *set, const mgl_cuda_source *sources, int count,
                           mgl_error *err)
{
    memcpy(set->sources, mgl_cuda_sources,
           (size_t)mgl_cuda_source_count * sizeof *mgl_cuda_sources);
    set->texts = mgl_alloc_zero((size_t)count, sizeof *set->texts);
    if (!set->texts)
        return mgl_fail_memory(err, (size_t)count * sizeof *set->texts);
    for (int i = 0; i < count; i++) {
        mgl_cuda_source *at = find(set, sources[i].name);
        if (!at)
            return mgl_fail(err, MGL_USAGE, sources[i].name, "the kernel has no such source");
        set->texts[set->count] = mgl_strdup((const char *)sources[i].text);
        if (!set->texts[set->count])
            return mgl_fail_memory(err, strlen((const char *)sources[i].text) + 1);
        at->text = (const unsigned char *)set->texts[set->count++];
    }
    return MGL_OK;
}

mgl_status mgl_cuda_override_sources(const mgl_cuda_source *sources, int count, mgl_error *err)
{
    in_use = NULL;
    everywhere = false;
    if (!mgl_cuda_is_compiling())
        free_sets();
    if (count == 0)
        return MGL_OK;
    if (mgl_cuda_source_count > MGL_RECIPE_SOURCES)
        return mgl_fail(err, MGL_USAGE, NULL, "the kernel has more than %d sources",
                        MGL_RECIPE_SOURCES);
    source_set *set = mgl_alloc_zero(1, sizeof *set);
    if (!set)
        return mgl_fail_memory(err, sizeof *set);
    mgl_status status = fill_set(set, sources, count, err);
    if (status) {
        free_set(set);
        return status;
    }
    set->older = sets;
    in_use = sets = set;
    return MGL_OK;
}

mgl_status mgl_cuda_override_all_sources(const mgl_cuda_source *sources, int count, mgl_error *err)
{
    mgl_status status = mgl_cuda_override_sources(sources, count, err);
    everywhere = !status && count > 0;
    return status;
}

/* ---- compiler report ------------------------------------------------------------------------ */

void mgl_cuda_report_clear(mgl_cuda_report *report)
{
    mgl_free(report->log);
    mgl_free(report->ptx);
    *report = (mgl_cuda_report){0};
}

typedef int size_fn(void *program, size_t *bytes);
typedef int text_fn(void *program, char *text);

/* Reads an output of the compiler and appends a 0 byte; *out is NULL if there is none. */
static mgl_status take(void *program, size_fn *size, text_fn *text, char **out, mgl_error *err)
{
    size_t bytes = 0;
    *out = NULL;
    if (size(program, &bytes) || bytes == 0)
        return MGL_OK;
    char *result = mgl_alloc_zero(bytes + 1, 1);
    if (!result)
        return mgl_fail_memory(err, bytes + 1);
    if (text(program, result)) {
        mgl_free(result);
        return MGL_OK;
    }
    *out = result;
    return MGL_OK;
}

static mgl_status take_results(const mgl_nvrtc *nvrtc, void *program, mgl_cuda_report *out,
                               mgl_error *err)
{
    mgl_status status = take(program, nvrtc->log_size, nvrtc->log, &out->log, err);
    if (!status && out->compiled)
        status = take(program, nvrtc->ptx_size, nvrtc->ptx, &out->ptx, err);
    if (!status && out->ptx)
        out->ptx_length = strlen(out->ptx);
    return status;
}

static mgl_status compile(const mgl_nvrtc *nvrtc, const mgl_cuda_recipe *o, mgl_cuda_report *out,
                          mgl_error *err)
{
    const char *options[MGL_RECIPE_OPTIONS + 1];
    void *program = NULL;
    mgl_status status = mgl_cuda_recipe_create(nvrtc, o, &program, err);
    if (status)
        return status;
    for (int i = 0; i < o->option_count; i++)
        options[i] = o->options[i];
    options[o->option_count] = "--ptxas-options=-v";
    out->compiled = !nvrtc->compile(program, o->option_count + 1, options);
    status = take_results(nvrtc, program, out, err);
    nvrtc->destroy(&program);
    return status;
}

mgl_status mgl_cuda_compile_report(const mgl_program *program, const char *arch,
                                   const mgl_cuda_value *values, int value_count,
                                   mgl_cuda_report *out, mgl_error *err)
{
    const mgl_nvrtc *nvrtc;
    mgl_cuda_recipe recipe;
    const double start = mgl_clock_s();
    *out = (mgl_cuda_report){0};
    mgl_status status = mgl_nvrtc_open(&nvrtc, err);
    if (status)
        return status;
    mgl_cuda_recipe_of(program, arch, 0, &recipe);
    if (value_count > MGL_RECIPE_OPTIONS - recipe.option_count)
        return mgl_fail(err, MGL_USAGE, NULL, "a kernel takes at most %d constants",
                        MGL_RECIPE_OPTIONS - recipe.option_count);
    for (int i = 0; i < value_count; i++)
        mgl_cuda_recipe_define(&recipe, values[i].name, values[i].value);
    status = compile(nvrtc, &recipe, out, err);
    out->compile_s = mgl_clock_s() - start;
    if (status)
        mgl_cuda_report_clear(out);
    return status;
}
