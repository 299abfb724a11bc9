/*
 * Compiling the kernel with NVRTC, specialised to a program by constants: the shapes that the inner
 * loops depend on. The sources are part of the library (sources.c, made from vm/cuda/device and the
 * ops when it is built), so no file is needed at run time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "vm/cuda/cache.h"
#include "vm/cuda/cuda.h"
#include "vm/cuda/driver.h"
#include "vm/cuda/encode.h"
#include "vm/cuda/sources.h"

enum { MOST_OPTIONS = 32, OPTION_BYTES = 64, MOST_SOURCES = 64 };

struct options {
    char text[MOST_OPTIONS][OPTION_BYTES];
    const char *at[MOST_OPTIONS];
    int count;
};

static void add(struct options *o, const char *format, const char *name, const char *value)
{
    if (o->count == MOST_OPTIONS)
        return;
    snprintf(o->text[o->count], OPTION_BYTES, format, name, value);
    o->at[o->count] = o->text[o->count];
    o->count++;
}

static void define(struct options *o, const char *name, uint32_t value)
{
    char number[16];
    snprintf(number, sizeof number, "%u", (unsigned)value);
    add(o, "-DMGL_%s=%s", name, number);
}

static void add_common(struct options *o, const char *arch)
{
    add(o, "-arch=%s%s", arch, "");
    add(o, "%s%s", "-std=c++17", "");
    add(o, "%s%s", "-default-device", "");
}

/* The constants of device/machine.cuh. */
static void options_of(const mgl_program *program, const char *arch, unsigned extras,
                       struct options *o)
{
    const mgl_geometry *m = &program->geometry;
    uint32_t eps;
    memcpy(&eps, &m->eps, sizeof eps);
    *o = (struct options){0};
    add_common(o, arch);
    define(o, "ROWS", (uint32_t)program->limits.rows);
    define(o, "BATCH", program->limits.sequences > 1);
    define(o, "HIDDEN", (uint32_t)m->hidden);
    define(o, "WIDE", (uint32_t)(m->heads * m->head_dim));
    define(o, "FFN", (uint32_t)m->ffn);
    define(o, "HEADS", (uint32_t)(m->heads / m->kv_heads));
    define(o, "HEAD_DIM", (uint32_t)m->head_dim);
    define(o, "VOCAB", (uint32_t)m->vocab);
    define(o, "EPS_BITS", eps);
    define(o, "WEIGHT", (uint32_t)program->dtype);
    define(o, "CACHE", (uint32_t)program->kv_dtype);
    define(o, "PAGE", (uint32_t)program->exec.page_bytes);
    define(o, "RING", (uint32_t)program->exec.ring_pages);
    define(o, "FLIGHT", mgl_cuda_ring_pages(program, program->exec.flight_bytes));
    define(o, "PREFETCH", mgl_cuda_pages(program, program->exec.prefetch_bytes));
    define(o, "WARPS", (uint32_t)program->exec.warps);
    define(o, "STAGE", (uint32_t)program->exec.stage_bytes);
    define(o, "SHARED", MGL_SHARED_RESERVED);
    define(o, "PLAIN", mgl_cuda_is_plain(program));
    define(o, "PAST", mgl_cuda_streams_past(program, arch));
    define(o, "TRACE", (extras & MGL_CUDA_TRACE) != 0);
    define(o, "DELAYS", (extras & MGL_CUDA_DELAYS) != 0);
}

size_t mgl_cuda_shared_bytes(const mgl_program *program)
{
    const mgl_exec *exec = &program->exec;
    return (size_t)MGL_SHARED_RESERVED + (size_t)exec->stage_bytes +
           (size_t)exec->ring_pages * (size_t)exec->page_bytes;
}

bool mgl_cuda_cache_path(char *path, size_t length)
{
    const char *own = getenv("MEGALITH_CACHE"), *cache = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    int n = 0;
    if (own && own[0])
        n = snprintf(path, length, "%s", own);
    else if (cache && cache[0])
        n = snprintf(path, length, "%s/megalith", cache);
    else if (home && home[0])
        n = snprintf(path, length, "%s/.cache/megalith", home);
    return n > 0 && (size_t)n < length;
}

static void add_text(mgl_sha256 *hash, const char *text)
{
    mgl_sha256_add(hash, text, strlen(text) + 1);
}

/* What a kernel is made of, but for the compiler. */
static void add_inputs(mgl_sha256 *hash, const struct options *o)
{
    for (int i = 0; i < o->count; i++)
        add_text(hash, o->at[i]);
    for (int i = 0; i < mgl_cuda_source_count; i++) {
        add_text(hash, mgl_cuda_sources[i].name);
        add_text(hash, (const char *)mgl_cuda_sources[i].text);
    }
}

/* The name of what these options make of these sources with this compiler. */
static void key_of(const mgl_nvrtc *nvrtc, const struct options *o, char key[MGL_CACHE_KEY])
{
    mgl_sha256 hash;
    unsigned char bytes[MGL_SHA256_BYTES];
    char version[32];
    int major = 0, minor = 0;
    nvrtc->version(&major, &minor);
    snprintf(version, sizeof version, "nvrtc %d.%d", major, minor);
    mgl_sha256_start(&hash);
    add_text(&hash, version);
    add_inputs(&hash, o);
    mgl_sha256_end(&hash, bytes);
    mgl_sha256_hex(bytes, key);
}

void mgl_cuda_kernel_key(const mgl_program *program, const char *arch, unsigned extras,
                         char key[MGL_SHA256_HEX])
{
    struct options options;
    mgl_sha256 hash;
    unsigned char bytes[MGL_SHA256_BYTES];
    options_of(program, arch, extras, &options);
    mgl_sha256_start(&hash);
    add_inputs(&hash, &options);
    mgl_sha256_end(&hash, bytes);
    mgl_sha256_hex(bytes, key);
}

/* The first errors of the compiler's log. */
static void read_log(const mgl_nvrtc *nvrtc, void *program, char *to, size_t length)
{
    size_t bytes = 0;
    to[0] = 0;
    if (nvrtc->log_size(program, &bytes) || bytes == 0)
        return;
    char *log = mgl_alloc_zero(bytes + 1, 1);
    if (log && !nvrtc->log(program, log))
        snprintf(to, length, "%s", log);
    mgl_free(log);
}

static mgl_status take_result(const mgl_nvrtc *nvrtc, void *program, mgl_cuda_image *out,
                              mgl_error *err)
{
    size_t bytes = 0;
    int result = out->ptx ? nvrtc->ptx_size(program, &bytes) : nvrtc->cubin_size(program, &bytes);
    if (result || bytes == 0)
        return mgl_fail(err, MGL_DEVICE, "nvrtc", "the compiler has no result (error %d)", result);
    out->bytes = mgl_alloc_zero(bytes + 1, 1);
    if (!out->bytes)
        return mgl_fail_memory(err, bytes + 1);
    out->length = bytes;
    result = out->ptx ? nvrtc->ptx(program, out->bytes) : nvrtc->cubin(program, out->bytes);
    if (result)
        return mgl_fail(err, MGL_DEVICE, "nvrtc", "the compiler has no result (error %d)", result);
    return MGL_OK;
}

/* Compiles the first source, which includes the others. */
static mgl_status compile(const mgl_nvrtc *nvrtc, const mgl_cuda_source *sources, int source_count,
                          const struct options *o, const char *arch, mgl_cuda_image *out,
                          mgl_error *err)
{
    const char *texts[MOST_SOURCES], *names[MOST_SOURCES];
    void *program = NULL;
    int count = 0, major = 0, minor = 0;
    for (int i = 1; i < source_count && count < MOST_SOURCES; i++, count++) {
        texts[count] = (const char *)sources[i].text;
        names[count] = sources[i].name;
    }
    int result = nvrtc->create(&program, (const char *)sources[0].text, sources[0].name, count,
                               texts, names);
    if (result)
        return mgl_fail(err, MGL_DEVICE, "nvrtc", "the compiler does not start (error %d)", result);
    result = nvrtc->compile(program, o->count, o->at);
    read_log(nvrtc, program, out->log, sizeof out->log);
    nvrtc->version(&major, &minor);
    mgl_status status =
        result ? mgl_fail(err, MGL_DEVICE, "nvrtc",
                          "NVRTC %d.%d can not compile the kernel for %s (error %d); a newer CUDA "
                          "toolkit may know this architecture. It says:\n%.1000s",
                          major, minor, arch, result, out->log)
               : take_result(nvrtc, program, out, err);
    nvrtc->destroy(&program);
    return status;
}

mgl_status mgl_cuda_compile(const mgl_program *program, const char *arch, unsigned extras,
                            mgl_cuda_image *out, mgl_error *err)
{
    struct options options;
    const mgl_nvrtc *nvrtc;
    char folder[1024], key[MGL_CACHE_KEY];
    *out = (mgl_cuda_image){.ptx = !strncmp(arch, "compute_", 8)};
    mgl_status status = mgl_nvrtc_open(&nvrtc, err);
    if (status)
        return status;
    options_of(program, arch, extras, &options);
    key_of(nvrtc, &options, key);
    bool has_folder = mgl_cuda_cache_path(folder, sizeof folder);
    if (!has_folder)
        snprintf(out->cache_note, sizeof out->cache_note,
                 "compiled kernels are not kept: set MEGALITH_CACHE or HOME");
    out->bytes = has_folder ? mgl_cuda_cache_get(folder, key, &out->length) : NULL;
    if (out->bytes) {
        out->cached = true;
        return MGL_OK;
    }
    double start = mgl_clock_s();
    status = compile(nvrtc, mgl_cuda_sources, mgl_cuda_source_count, &options, arch, out, err);
    out->compile_s = mgl_clock_s() - start;
    if (status)
        mgl_cuda_image_clear(out);
    else if (has_folder)
        mgl_cuda_cache_put(folder, key, out->bytes, out->length, out->cache_note,
                           sizeof out->cache_note);
    return status;
}

mgl_status mgl_cuda_compile_sources(const mgl_cuda_source *sources, int count, const char *arch,
                                    const mgl_cuda_constant *constants, int constant_count,
                                    mgl_cuda_image *out, mgl_error *err)
{
    struct options options = {0};
    const mgl_nvrtc *nvrtc;
    *out = (mgl_cuda_image){.ptx = !strncmp(arch, "compute_", 8)};
    mgl_status status = mgl_nvrtc_open(&nvrtc, err);
    if (status)
        return status;
    add_common(&options, arch);
    for (int i = 0; i < constant_count; i++)
        define(&options, constants[i].name, constants[i].value);
    double start = mgl_clock_s();
    status = compile(nvrtc, sources, count, &options, arch, out, err);
    out->compile_s = mgl_clock_s() - start;
    if (status)
        mgl_cuda_image_clear(out);
    return status;
}

void mgl_cuda_image_clear(mgl_cuda_image *image)
{
    mgl_free(image->bytes);
    image->bytes = NULL;
    image->length = 0;
}
