/* Implements cublas.h: finds cuBLAS with dlopen and fills its function table. */
#include "eval/cublas.h"

#include "base/system/symbols.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

static mgl_cublas table;
static bool ready;
static const mgl_cublas *table_override;

/* Opens cuBLAS in a folder. libcublasLt is opened first, so that libcublas finds it outside the
 * loader's path. */
static void *open_in(const char *folder, const char *version)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/lib64/libcublasLt.so.%s", folder, version);
    if (!dlopen(path, RTLD_NOW | RTLD_GLOBAL))
        return NULL;
    snprintf(path, sizeof path, "%s/lib64/libcublas.so.%s", folder, version);
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static void *open_library(void)
{
    static const char *const versions[] = {"13", "12"};
    const char *file = getenv("MEGALITH_CUBLAS"), *home = getenv("CUDA_HOME");
    char name[32];
    void *library = NULL;
    if (file && file[0])
        return dlopen(file, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; i < 2 && !library && home && home[0]; i++)
        library = open_in(home, versions[i]);
    for (size_t i = 0; i < 2 && !library; i++) {
        snprintf(name, sizeof name, "libcublas.so.%s", versions[i]);
        library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    for (size_t i = 0; i < 2 && !library; i++)
        library = open_in("/usr/local/cuda", versions[i]);
    return library;
}

static const char *fill(void *library)
{
    static const mgl_symbol symbols[] = {
#define MGL_X(member, symbol, arguments) {symbol, offsetof(mgl_cublas, member)},
        MGL_CUBLAS_FUNCTIONS(MGL_X)
#undef MGL_X
    };
    return mgl_symbols_fill(library, symbols, sizeof symbols / sizeof *symbols, &table);
}

mgl_status mgl_cublas_open(const mgl_cublas **out, mgl_error *err)
{
    *out = table_override ? table_override : &table;
    if (ready || table_override)
        return MGL_OK;
    void *library = open_library();
    if (!library)
        return mgl_fail(err, MGL_DEVICE, "libcublas.so",
                        "cuBLAS, which the baseline is made of, was not found: install it (package "
                        "libcublas of CUDA 12 or 13), set CUDA_HOME to the toolkit, or set "
                        "MEGALITH_CUBLAS to the library");
    const char *missing = fill(library);
    if (missing) {
        dlclose(library);
        return mgl_fail(err, MGL_DEVICE, "libcublas.so",
                        "cuBLAS has no %s; install the cuBLAS of CUDA 12 or 13", missing);
    }
    ready = true;
    return MGL_OK;
}

void mgl_cublas_override(const mgl_cublas *other)
{
    table_override = other;
}

mgl_status mgl_cublas_check(int result, const char *what, mgl_error *err)
{
    return result == 0 ? MGL_OK
                       : mgl_fail(err, MGL_DEVICE, "cuBLAS", "%s failed (status %d)", what, result);
}
