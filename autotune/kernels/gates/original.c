/* Implements original.h. A cache entry is the resources, followed by the PTX. */
#include "autotune/kernels/gates/original.h"

#include <string.h>

#include "autotune/kernels/ptx/ptx.h"
#include "base/memory.h"
#include "base/text.h"
#include "vm/cuda/cache.h"
#include "vm/cuda/canonical.h"
#include "vm/cuda/cuda.h"
#include "vm/cuda/driver.h"

/* The cache key: compiler version, architecture, kernel, original text and schedule. */
static mgl_status name_it(const mgl_kernel_unit *unit, const mgl_program *program,
                          const mgl_kernel_job *job, char key[MGL_CACHE_KEY], mgl_error *err)
{
    const mgl_nvrtc *nvrtc;
    mgl_text text = {0};
    size_t length;
    unsigned char hash[MGL_SHA256_BYTES];
    char kernel[MGL_SHA256_HEX], own[MGL_SHA256_HEX];
    int major = 0, minor = 0;
    mgl_status status = mgl_nvrtc_open(&nvrtc, err);
    if (status)
        return status;
    nvrtc->version(&major, &minor);
    mgl_cuda_kernel_key(program, job->arch, 0, kernel);
    const char *own_text = mgl_kernel_unit_text(unit, &length);
    mgl_cuda_source_digest(&(mgl_cuda_source){unit->file, (const unsigned char *)own_text}, hash);
    mgl_sha256_hex(hash, own);
    mgl_text_format(&text, "own 2, nvrtc %d.%d, %s, %s, %s, %s\n", major, minor, job->arch,
                    unit->file, kernel, own);
    mgl_text_append(&text, job->schedule, job->schedule_length);
    if (text.failed)
        status = mgl_fail_memory(err, job->schedule_length);
    else
        mgl_sha256_of(text.bytes, text.length, hash);
    if (!status)
        mgl_sha256_hex(hash, key);
    mgl_text_clear(&text);
    return status;
}

static bool is_ptx(const char *text, size_t length)
{
    mgl_ptx ptx;
    const bool is = !mgl_ptx_parse(text, length, "own.ptx", &ptx, NULL);
    mgl_ptx_clear(&ptx);
    return is;
}

/* False: not in the cache, damaged, or out of memory. */
static bool find_kept(const char *folder, const char *key, mgl_kernel_compiled *out)
{
    size_t length;
    char *bytes = mgl_cuda_cache_get(folder, key, &length);
    if (bytes && length > sizeof out->resources &&
        is_ptx(bytes + sizeof out->resources, length - sizeof out->resources)) {
        memcpy(&out->resources, bytes, sizeof out->resources);
        out->ptx_length = length - sizeof out->resources;
        out->ptx = mgl_strndup(bytes + sizeof out->resources, out->ptx_length);
        out->done = out->ptx != NULL;
    }
    mgl_free(bytes);
    return out->done;
}

/* A failed write is ignored: the next call compiles again. */
static void keep(const char *folder, const char *key, const mgl_kernel_compiled *own)
{
    mgl_text text = {0};
    char reason[MGL_CUDA_REASON];
    mgl_text_append(&text, (const char *)&own->resources, sizeof own->resources);
    mgl_text_append(&text, own->ptx, own->ptx_length);
    if (!text.failed)
        mgl_cuda_cache_put(folder, key, text.bytes, text.length, reason, sizeof reason);
    mgl_text_clear(&text);
}

static mgl_status compile(const mgl_kernel_unit *unit, const mgl_kernel_job *job,
                          const mgl_kernel_options *options, mgl_kernel_compiled *out,
                          mgl_error *err)
{
    mgl_kernel_job own = *job;
    own.text = mgl_kernel_unit_text(unit, &own.text_length);
    own.value_count = 0;
    mgl_status status = mgl_kernel_compile(&own, options, out, err);
    if (status || out->done)
        return status;
    return mgl_fail(
        err, MGL_SYSTEM, unit->file,
        "the unit's original text does not compile, so there is nothing to compare with: %s",
        out->verdict.diagnostic);
}

mgl_status mgl_kernel_compile_original(const mgl_kernel_unit *unit, const mgl_program *program,
                                       const mgl_kernel_job *job, const mgl_kernel_options *options,
                                       mgl_kernel_compiled *out, mgl_error *err)
{
    char folder[1024], key[MGL_CACHE_KEY];
    const bool keeps = mgl_cuda_cache_path(folder, sizeof folder);
    *out = (mgl_kernel_compiled){0};
    mgl_status status = name_it(unit, program, job, key, err);
    if (status || (keeps && find_kept(folder, key, out)))
        return status;
    status = compile(unit, job, options, out, err);
    if (!status && keeps)
        keep(folder, key, out);
    return status;
}
