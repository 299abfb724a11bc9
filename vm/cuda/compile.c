/*
 * Compiles kernels with NVRTC (cuda.h, compile.h). A program's kernel is specialized by
 * preprocessor constants: the shapes that inner loops depend on. The sources are embedded in the
 * library (sources.h), so no file is needed at run time. Compiled kernels are cached by a SHA-256
 * of all inputs.
 */
#include "vm/cuda/compile.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/memory.h"
#include "schedule/formats.h"
#include "schedule/variant_shapes.h"
#include "schedule/variants.h"
#include "vm/cuda/cache.h"
#include "vm/cuda/canonical.h"
#include "vm/cuda/cuda.h"
#include "vm/cuda/driver.h"
#include "vm/cuda/encode.h"
#include "vm/cuda/sources.h"

enum { SHARED_AT = 1024 }; /* bytes of a block's shared memory that the system reserves */

static void add(mgl_cuda_recipe *o, const char *format, const char *name, const char *value)
{
    MGL_ASSERT(o->option_count < MGL_RECIPE_OPTIONS);
    snprintf(o->options[o->option_count++], MGL_RECIPE_OPTION, format, name, value);
}

static void define(mgl_cuda_recipe *o, const char *name, uint32_t value)
{
    char number[16];
    snprintf(number, sizeof number, "%u", (unsigned)value);
    add(o, "-DMGL_%s=%s", name, number);
}

void mgl_cuda_recipe_define(mgl_cuda_recipe *recipe, const char *name, int64_t value)
{
    char number[24];
    snprintf(number, sizeof number, "%lld", (long long)value);
    add(recipe, "-D%s=%s", name, number);
}

void mgl_cuda_recipe_add(mgl_cuda_recipe *recipe, const char *option)
{
    add(recipe, "%s%s", option, "");
}

/* Virtual architectures give PTX instead of machine code. */
static bool is_virtual(const char *arch)
{
    return !strncmp(arch, "compute_", 8);
}

/* Starts a recipe with the options of every kernel. */
static void start_recipe(mgl_cuda_recipe *o, const char *arch, const mgl_cuda_source *sources,
                         int count)
{
    *o = (mgl_cuda_recipe){.sources = sources, .source_count = count};
    snprintf(o->arch, sizeof o->arch, "%s", arch);
    add(o, "-arch=%s%s", arch, "");
    add(o, "%s%s", "-std=c++17", "");
    add(o, "%s%s", "-default-device", "");
}

/* Defines the scaled weight formats, as arguments of scaled_weights in device/linear/formats.cuh.
 */
static void define_formats(mgl_cuda_recipe *o, const mgl_program *program)
{
    mgl_weight_format formats[MGL_CUDA_FORMATS];
    const int count = mgl_cuda_formats(program, formats);
    define(o, "SCALED", (uint32_t)count);
    define(o, "INPUTS", mgl_cuda_inputs(program, 0));
    for (int i = 0; i < count && i < MGL_CUDA_FORMATS; i++) {
        char name[16], value[40];
        const mgl_weight_format *f = &formats[i];
        snprintf(name, sizeof name, "MGL_FORMAT_%d", (uint8_t)(i + 1));
        snprintf(value, sizeof value, "%d,%d,%d,%d,%d,%d,%u", (uint8_t)f->code, (uint8_t)f->scales,
                 (uint16_t)f->group, f->group_rows != 1, f->zeros,
                 mgl_weight_format_has_factors(*f), mgl_cuda_inputs(program, i + 1));
        add(o, "-D%s=%s", name, value);
    }
}

/* Builds the recipe of a program's kernel, with the constants of device/shared.cuh. */
void mgl_cuda_recipe_of(const mgl_program *program, const char *arch, unsigned extras,
                        mgl_cuda_recipe *o)
{
    const mgl_geometry *m = &program->geometry;
    start_recipe(o, arch, mgl_cuda_kernel_sources(program), mgl_cuda_source_count);
    o->kept = true;
    o->threads = (program->exec.warps + MGL_OTHER_WARPS) * 32;
    o->objects = is_virtual(arch) ? 0 : mgl_cuda_objects_of(program, arch);
    define(o, "ROWS", (uint32_t)mgl_limits_most(&program->limits));
    define(o, "LISTS", program->second != NULL);
    define(o, "FEW", (uint32_t)program->limits.rows);
    define(o, "MANY_SEQUENCES", program->limits.sequences > 1);
    for (int i = 0; i < MGL_GEOMETRY_FACT_COUNT; i++)
        if (mgl_geometry_facts[i].constant)
            define(o, mgl_geometry_facts[i].constant,
                   (uint32_t)mgl_fact_bits(m, &mgl_geometry_facts[i]));
    define(o, "ATTENDED", (uint32_t)(m->heads * m->head_dim));
    define(o, "HEADS", (uint32_t)(m->heads / m->kv_heads));
    define(o, "WEIGHT", (uint32_t)program->weight_dtype);
    define_formats(o, program);
    define(o, "EMBEDDING", (uint32_t)program->embedding_dtype);
    define(o, "CACHE", (uint32_t)program->kv_dtype);
    define(o, "PAGE", (uint32_t)program->exec.page_bytes);
    define(o, "RING", (uint32_t)program->exec.ring_pages);
    define(o, "FLIGHT", mgl_cuda_ring_pages(program, program->exec.flight_bytes));
    define(o, "PREFETCH", mgl_cuda_pages(program, program->exec.prefetch_bytes));
    define(o, "WARPS", (uint32_t)program->exec.warps);
    define(o, "ACTIVATION_BYTES", (uint32_t)program->exec.stage_bytes);
    define(o, "SHARED", (uint32_t)mgl_shared_reserved(mgl_limits_most(&program->limits)));
    define(o, "SHARED_AT", strcmp(arch, "sm_90a") ? 0 : SHARED_AT);
    define(o, "VARIANTS_PRODUCT", mgl_cuda_variants(program, MGL_FAMILY_PRODUCT, arch));
    define(o, "VARIANTS_ATTENTION", mgl_cuda_variants(program, MGL_FAMILY_ATTENTION, arch));
    define(o, "VARIANTS_PANEL", mgl_cuda_variants(program, MGL_FAMILY_PANEL, arch));
    define(o, "WARPGROUPS",
           mgl_cuda_variants(program, MGL_FAMILY_PANEL, arch) >> MGL_VARIANT_WARPGROUPS & 1);
    define(o, "VARIANTS_ATTEND_ROWS", mgl_cuda_variants(program, MGL_FAMILY_ATTEND_ROWS, arch));
    define(o, "KV_RING", mgl_cuda_streams_kv(program, arch));
    define(o, "BIAS", mgl_cuda_has_biases(program));
    define(o, "MERGE_ADD", mgl_cuda_has_merges(program));
    define(o, "DRAWS", mgl_cuda_has_draws(program));
    define(o, "PENALTIES", mgl_program_has_penalties(program));
    define(o, "SHARE", (uint32_t)program->limits.share);
    define(o, "UNSPLIT", (uint32_t)program->limits.unsplit);
    define(o, "QK_NORM", mgl_cuda_has_norms(program));
    define(o, "TRACE", (extras & MGL_CUDA_TRACE) != 0);
    define(o, "DELAYS", (extras & MGL_CUDA_DELAYS) != 0);
}

size_t mgl_cuda_shared_bytes(const mgl_program *program)
{
    const mgl_exec *exec = &program->exec;
    return (size_t)mgl_shared_reserved(mgl_limits_most(&program->limits)) +
           (size_t)exec->stage_bytes + (size_t)exec->ring_pages * (size_t)exec->page_bytes;
}

bool mgl_cuda_cache_path(char *path, size_t length)
{
    const char *own = getenv("MEGALITH_CACHE"), *cache = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    int n = 0;
    if (own && own[0])
        n = snprintf(path, length, "%s", own);
    else if (cache && cache[0] == '/') /* the XDG specification: ignore relative paths */
        n = snprintf(path, length, "%s/megalith", cache);
    else if (home && home[0] == '/')
        n = snprintf(path, length, "%s/.cache/megalith", home);
    return n > 0 && (size_t)n < length;
}

static void add_text(mgl_sha256 *hash, const char *text)
{
    mgl_sha256_add(hash, text, strlen(text) + 1);
}

/* Hashes all inputs of a kernel except the compiler. Sources are hashed in canonical form. */
static void add_inputs(mgl_sha256 *hash, const mgl_cuda_recipe *o)
{
    for (int i = 0; i < o->option_count; i++)
        add_text(hash, o->options[i]);
    for (int i = 0; i < o->source_count; i++) {
        unsigned char digest[MGL_SHA256_BYTES];
        mgl_cuda_source_digest(&o->sources[i], digest);
        add_text(hash, o->sources[i].name);
        mgl_sha256_add(hash, digest, sizeof digest);
    }
}

/* Cache key of what this compiler produces from the recipe; linker NULL: as one translation
 * unit. */
static void key_of(const mgl_nvrtc *nvrtc, const mgl_jitlink *linker, const mgl_cuda_recipe *o,
                   char key[MGL_CACHE_KEY])
{
    mgl_sha256 hash;
    unsigned char bytes[MGL_SHA256_BYTES];
    char version[96];
    int major = 0, minor = 0;
    unsigned linked_major = 0, linked_minor = 0;
    nvrtc->version(&major, &minor);
    int n = snprintf(version, sizeof version, "nvrtc %d.%d", major, minor);
    if (linker) {
        linker->version(&linked_major, &linked_minor);
        snprintf(version + n, sizeof version - (size_t)n,
                 ", objects %d %x of %d threads, nvjitlink %u.%u", MGL_OBJECTS_VERSION, o->objects,
                 o->threads, linked_major, linked_minor);
    }
    mgl_sha256_start(&hash);
    add_text(&hash, version);
    add_inputs(&hash, o);
    mgl_sha256_end(&hash, bytes);
    mgl_sha256_hex(bytes, key);
}

void mgl_cuda_kernel_key(const mgl_program *program, const char *arch, unsigned extras,
                         char key[MGL_SHA256_HEX])
{
    mgl_cuda_recipe recipe;
    mgl_sha256 hash;
    unsigned char bytes[MGL_SHA256_BYTES];
    mgl_cuda_recipe_of(program, arch, extras, &recipe);
    mgl_sha256_start(&hash);
    add_inputs(&hash, &recipe);
    mgl_sha256_end(&hash, bytes);
    mgl_sha256_hex(bytes, key);
}

/* Copies the start of the compiler's log. */
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

mgl_status mgl_cuda_recipe_create(const mgl_nvrtc *nvrtc, const mgl_cuda_recipe *o, void **program,
                                  mgl_error *err)
{
    const char *texts[MGL_RECIPE_SOURCES], *names[MGL_RECIPE_SOURCES];
    MGL_ASSERT(o->source_count <= MGL_RECIPE_SOURCES);
    for (int i = 1; i < o->source_count; i++) {
        texts[i - 1] = (const char *)o->sources[i].text;
        names[i - 1] = o->sources[i].name;
    }
    int result = nvrtc->create(program, (const char *)o->sources[0].text, o->sources[0].name,
                               o->source_count - 1, texts, names);
    return result ? mgl_fail(err, MGL_DEVICE, "nvrtc", "the compiler does not start (error %d)",
                             result)
                  : MGL_OK;
}

static mgl_status compile(const mgl_nvrtc *nvrtc, const mgl_cuda_recipe *o, mgl_cuda_image *out,
                          mgl_error *err)
{
    const char *options[MGL_RECIPE_OPTIONS];
    void *program = NULL;
    int major = 0, minor = 0;
    for (int i = 0; i < o->option_count; i++)
        options[i] = o->options[i];
    mgl_status status = mgl_cuda_recipe_create(nvrtc, o, &program, err);
    if (status)
        return status;
    int result = nvrtc->compile(program, o->option_count, options);
    read_log(nvrtc, program, out->log, sizeof out->log);
    nvrtc->version(&major, &minor);
    status = result ? mgl_fail(err, MGL_DEVICE, "nvrtc",
                               "NVRTC %d.%d cannot compile the kernel for %s (error %d); a newer "
                               "CUDA toolkit may support this architecture. Its log:",
                               major, minor, o->arch, result)
                    : take_result(nvrtc, program, out, err);
    if (result)
        mgl_error_add_lines(err, out->log);
    nvrtc->destroy(&program);
    return status;
}

mgl_status mgl_cuda_recipe_compile(const mgl_cuda_recipe *recipe, mgl_cuda_image *out,
                                   mgl_error *err)
{
    const mgl_nvrtc *nvrtc;
    *out = (mgl_cuda_image){.ptx = is_virtual(recipe->arch)};
    double start = mgl_clock_s();
    mgl_status status = mgl_nvrtc_open(&nvrtc, err);
    if (!status)
        status = compile(nvrtc, recipe, out, err);
    out->compile_s = mgl_clock_s() - start;
    if (status)
        mgl_cuda_image_clear(out);
    return status;
}

static pthread_mutex_t settling = PTHREAD_MUTEX_INITIALIZER;

/* Makes process exit wait for NVRTC. Exit handlers run in reverse order of registration, and NVRTC
 * registers destructors of an architecture at its first compilation for that architecture. So a
 * minimal kernel is compiled first, once per architecture, and our handler is registered after
 * that. */
static void settle(const char *arch)
{
    enum { ARCHS = 16 };
    static char settled[ARCHS][16];
    static int count;
    static const mgl_cuda_source smallest = {
        "settle.cu", (const unsigned char *)"__global__ void settle(float *x) { *x += 1.0f; }\n"};
    mgl_cuda_recipe recipe;
    mgl_cuda_image image;
    bool is = false;
    pthread_mutex_lock(&settling);
    for (int i = 0; i < count; i++)
        is |= !strcmp(settled[i], arch);
    if (!is) {
        start_recipe(&recipe, arch, &smallest, 1);
        mgl_cuda_recipe_compile(&recipe, &image, NULL);
        mgl_cuda_image_clear(&image);
        atexit(mgl_cuda_await_compilations);
    }
    if (!is && count < ARCHS)
        snprintf(settled[count++], sizeof settled[0], "%s", arch);
    pthread_mutex_unlock(&settling);
}

void mgl_cuda_await_settling(double seconds)
{
    double end = mgl_clock_s() + seconds;
    const struct timespec pause = {0, 2000000};
    bool idle;
    while (!(idle = !pthread_mutex_trylock(&settling)) && mgl_clock_s() < end)
        nanosleep(&pause, NULL);
    if (idle)
        pthread_mutex_unlock(&settling);
}

static mgl_status compile_here(const mgl_cuda_recipe *recipe, const atomic_int *abort,
                               mgl_cuda_image *out, mgl_error *err)
{
    mgl_status status = mgl_check_abort(abort, err);
    if (!status)
        settle(recipe->arch);
    return status ? status : mgl_cuda_recipe_compile(recipe, out, err);
}

/* Compiles as one translation unit: in a child if one is configured and starts, else in this
 * process. */
static mgl_status compile_text(const mgl_cuda_recipe *recipe, const atomic_int *abort,
                               mgl_cuda_image *out, mgl_error *err)
{
    const char *program = mgl_cuda_child_program();
    mgl_status status =
        program ? mgl_cuda_child_compile(program, recipe, abort, out, err) : MGL_SYSTEM;
    return status == MGL_SYSTEM ? compile_here(recipe, abort, out, err) : status;
}

/* Compiles as linked objects if the recipe has objects and a linker is available. If linking fails,
 * *linker becomes NULL and the kernel is compiled as one translation unit; out->log gives the
 * reason. */
static mgl_status compile_somewhere(const mgl_jitlink **linker, const mgl_cuda_recipe *recipe,
                                    const atomic_int *abort, mgl_cuda_image *out, mgl_error *err)
{
    const double start = mgl_clock_s();
    bool compiled = false;
    mgl_error refused = {0};
    if (!*linker)
        return compile_text(recipe, abort, out, err);
    mgl_status status =
        mgl_cuda_objects_compile(*linker, recipe, compile_text, abort, out, &compiled, &refused);
    if (!compiled || status != MGL_DEVICE) {
        if (status && err)
            *err = refused;
        return status;
    }
    *linker = NULL;
    status = compile_text(recipe, abort, out, err);
    out->compile_s = mgl_clock_s() - start; /* includes the time of the objects */
    if (!status && !out->log[0])
        snprintf(out->log, sizeof out->log, "%s", refused.message);
    return status;
}

/* Reads the kernel from the cache; false if it is missing. A kernel whose link failed once is
 * cached as one translation unit, and is used too. */
static bool find_kept(const char *folder, const mgl_nvrtc *nvrtc, const mgl_jitlink *linker,
                      const mgl_cuda_recipe *recipe, mgl_cuda_image *out)
{
    char key[MGL_CACHE_KEY];
    *out = (mgl_cuda_image){.ptx = is_virtual(recipe->arch), .cached = true};
    key_of(nvrtc, linker, recipe, key);
    out->bytes = mgl_cuda_cache_get(folder, key, &out->length);
    if (out->bytes || !linker)
        return out->bytes != NULL;
    return find_kept(folder, nvrtc, NULL, recipe, out);
}

/* Makes a kernel through the cache. */
static mgl_status make_kept(const mgl_nvrtc *nvrtc, const mgl_jitlink *linker,
                            const mgl_cuda_recipe *recipe, const atomic_int *abort,
                            mgl_cuda_image *out, mgl_error *err)
{
    char folder[1024], key[MGL_CACHE_KEY];
    if (!mgl_cuda_cache_path(folder, sizeof folder)) {
        mgl_status status = compile_somewhere(&linker, recipe, abort, out, err);
        snprintf(out->cache_note, sizeof out->cache_note,
                 "compiled kernels are not kept: set MEGALITH_CACHE or HOME");
        return status;
    }
    if (find_kept(folder, nvrtc, linker, recipe, out))
        return MGL_OK;
    mgl_status status = compile_somewhere(&linker, recipe, abort, out, err);
    key_of(nvrtc, linker, recipe, key); /* the key of the actual result: linked or not */
    if (!status)
        mgl_cuda_cache_put(folder, key, out->bytes, out->length, out->cache_note,
                           sizeof out->cache_note);
    return status;
}

mgl_status mgl_cuda_recipe_make(const mgl_cuda_recipe *recipe, const atomic_int *abort,
                                mgl_cuda_image *out, mgl_error *err)
{
    const mgl_nvrtc *nvrtc;
    *out = (mgl_cuda_image){0};
    mgl_status status = mgl_nvrtc_open(&nvrtc, err);
    if (status)
        return status;
    const mgl_jitlink *linker = recipe->objects ? mgl_jitlink_for(nvrtc, NULL) : NULL;
    return recipe->kept ? make_kept(nvrtc, linker, recipe, abort, out, err)
                        : compile_somewhere(&linker, recipe, abort, out, err);
}

mgl_status mgl_cuda_compile_start(const mgl_program *program, const char *arch, unsigned extras,
                                  mgl_cuda_compilation **out, mgl_error *err)
{
    mgl_cuda_recipe recipe;
    mgl_cuda_recipe_of(program, arch, extras, &recipe);
    return mgl_cuda_recipe_start(&recipe, out, err);
}

/* Starts a compilation and waits for it. */
static mgl_status make(const mgl_cuda_recipe *recipe, const mgl_cuda_watch *watch,
                       mgl_cuda_image *out, mgl_error *err)
{
    mgl_cuda_compilation *compilation;
    *out = (mgl_cuda_image){0};
    mgl_status status = mgl_cuda_recipe_start(recipe, &compilation, err);
    return status ? status : mgl_cuda_compile_finish(compilation, watch, out, err);
}

mgl_status mgl_cuda_compile(const mgl_program *program, const char *arch, unsigned extras,
                            const mgl_cuda_watch *watch, mgl_cuda_image *out, mgl_error *err)
{
    mgl_cuda_recipe recipe;
    mgl_cuda_recipe_of(program, arch, extras, &recipe);
    return make(&recipe, watch, out, err);
}

mgl_status mgl_cuda_compile_sources(const mgl_cuda_source *sources, int count, const char *arch,
                                    const mgl_cuda_constant *constants, int constant_count,
                                    const mgl_cuda_watch *watch, mgl_cuda_image *out,
                                    mgl_error *err)
{
    mgl_cuda_recipe recipe;
    start_recipe(&recipe, arch, sources, count);
    for (int i = 0; i < constant_count; i++)
        define(&recipe, constants[i].name, constants[i].value);
    return make(&recipe, watch, out, err);
}

void mgl_cuda_image_clear(mgl_cuda_image *image)
{
    mgl_free(image->bytes);
    image->bytes = NULL;
    image->length = 0;
}
