/* Implements blas.h: opens libopenblas.so.0 and liblapacke.so.3 and fills the table. */
#include "quantize/calibrate/blas.h"

#include "base/system/symbols.h"
#include "quantize/quantize.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static mgl_blas table;
static bool ready;

#define MGL_X(member, result, symbol, arguments) {symbol, offsetof(mgl_blas, member)},
static const mgl_symbol blas_symbols[] = {MGL_BLAS_FUNCTIONS(MGL_X)};
static const mgl_symbol lapack_symbols[] = {MGL_LAPACK_FUNCTIONS(MGL_X)};
#undef MGL_X

static mgl_status open_library(const char *name, const char *package, const mgl_symbol *symbols,
                               size_t count, mgl_error *err)
{
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return mgl_fail(err, MGL_BAD_INPUT, name,
                        "the library is not installed; install the package %s, or use --method "
                        "rtn, or clip without --texts",
                        package);
    const char *missing = mgl_symbols_fill(library, symbols, count, &table);
    if (missing) {
        dlclose(library);
        return mgl_fail(err, MGL_BAD_INPUT, name,
                        "the library has no function %s; install the package %s of Debian 12 or "
                        "later",
                        missing, package);
    }
    return MGL_OK;
}

#define CORE_TYPE "OPENBLAS_CORETYPE"

/* Returns the kernels of OpenBLAS for this processor, or NULL: OpenBLAS chooses. OpenBLAS knows
 * processors by their model number, and has only SSE kernels for those that are newer than it. */
static const char *find_kernels(void)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return "SkylakeX";
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return "Haswell";
#endif
    return NULL;
}

/* Opens OpenBLAS with the kernels for this processor, unless the environment names others. */
static mgl_status open_blas(mgl_error *err)
{
    const char *kernels = getenv(CORE_TYPE) ? NULL : find_kernels();
    if (kernels)
        setenv(CORE_TYPE, kernels, 1);
    mgl_status status = open_library("libopenblas.so.0", "libopenblas0", blas_symbols,
                                     sizeof blas_symbols / sizeof *blas_symbols, err);
    if (kernels)
        unsetenv(CORE_TYPE);
    return status;
}

mgl_status mgl_blas_open(const mgl_blas **out, mgl_error *err)
{
    *out = &table;
    if (ready)
        return MGL_OK;
    mgl_status status = open_blas(err);
    if (!status)
        status = open_library("liblapacke.so.3", "liblapacke", lapack_symbols,
                              sizeof lapack_symbols / sizeof *lapack_symbols, err);
    if (status)
        return status;
    table.set_threads(1);
    ready = true;
    return MGL_OK;
}

/* The configuration of OpenBLAS begins with its name and version, such as "OpenBLAS 0.3.21 ". */
mgl_status mgl_quantize_blas_version(char *to, size_t size, mgl_error *err)
{
    const mgl_blas *blas;
    mgl_status status = mgl_blas_open(&blas, err);
    to[0] = 0;
    if (status)
        return status;
    const char *config = blas->config(), *space = strchr(config, ' ');
    const char *version = space ? space + 1 : config;
    snprintf(to, size, "%.*s", (int)strcspn(version, " "), version);
    return MGL_OK;
}
