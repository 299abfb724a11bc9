/*
 * Compiles the kernels of some programs without a device and writes the compiler's output.
 *
 *     dump_kernels FOLDER [NAME]...
 *
 *     FOLDER/NAME.ptx, FOLDER/NAME.cubin (none for a virtual architecture) and FOLDER/NAME.log with
 *     registers, spills and bytes of shared memory. A kernel in objects (vm/cuda/device/objects.h)
 *     has NAME.N.ptx and NAME.N.log for each object.
 *
 * Compiles the rows of `kernels` below, all or those named. compare_kernels.sh compares two folders
 * of two states of the sources. A kernel takes a minute of processor time. The exit code is 6 if
 * the assembler serializes warpgroup products (wgmma).
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/synthetic.h"
#include "schedule/schedule.h"
#include "tests/vm/frames.h"
#include "vm/cuda/cuda.h"
#include "vm/cuda/driver.h"

enum { BY_WARPGROUPS = 1 + MGL_GAMMA_YES }; /* gamma-scaled values, computed by warpgroups */

static const struct kernel {
    const char *name, *shape;
    int rows, capacity; /* rows: sequences, and the options they need */
    mgl_dtype dtype;
    const char *arch;
    unsigned extras; /* MGL_CUDA_... */
    unsigned family; /* bits of mgl_extras */
    int merge;       /* value of the knob */
    bool penalties;
    int second_rows;  /* rows of the second list; 0: none. With a second list, the first has one
                         row */
    int gamma_scaled; /* exchange of the second list: MGL_GAMMA_..., or BY_WARPGROUPS */
} kernels[] = {
    {"llama-1b-1024", "llama-1b", 1, 1024, MGL_BF16, "sm_90a", 0, 0, 0, false, 0, 0},
    {"llama-1b-1024-penalties", "llama-1b", 1, 1024, MGL_BF16, "sm_90a", 0, 0, 0, true, 0, 0},
    {"llama-1b-8192", "llama-1b", 1, 8192, MGL_BF16, "sm_90a", 0, 0, 0, false, 0, 0},
    {"smollm2-1024", "smollm2-135m", 1, 1024, MGL_BF16, "sm_90a", 0, 0, 0, false, 0, 0},
    {"llama-1b-batch-4", "llama-1b", 4, 1024, MGL_BF16, "sm_90a", 0, 0, 0, false, 0, 0},
    {"smollm2-batch-8", "smollm2-135m", 8, 1024, MGL_BF16, "sm_90a", 0, 0, 0, false, 0, 0},
    {"smollm2-batch-16", "smollm2-135m", 16, 1024, MGL_BF16, "sm_90a", 0, 0, 0, false, 0, 0},
    {"smollm2-f32-delays", "smollm2-135m", 2, 512, MGL_F32, "sm_90a", MGL_CUDA_DELAYS, 0, 0, false,
     0, 0},
    {"smollm2-80-trace", "smollm2-135m", 1, 1024, MGL_BF16, "compute_80", MGL_CUDA_TRACE, 0, 0,
     false, 0, 0},
    {"llama-3b-normed", "llama-3b", 1, 8192, MGL_BF16, "sm_90a", 0, MGL_EXTRA_QK_NORM, 0, false, 0,
     0},
    {"llama-3b-normed-batch-8", "llama-3b", 8, 1024, MGL_BF16, "sm_90a", 0, MGL_EXTRA_QK_NORM, 0,
     false, 0, 0},
    {"llama-1b-biased", "llama-1b", 1, 1024, MGL_BF16, "sm_90a", 0, MGL_EXTRA_QKV_BIAS, 0, false, 0,
     0},
    {"llama-1b-4096-merging", "llama-1b", 1, 4096, MGL_BF16, "sm_90a", 0, 0, MGL_MERGE_IN_O, false,
     0, 0},
    {"llama-1b-16384-merging", "llama-1b", 1, 16384, MGL_BF16, "sm_90a", 0, 0, MGL_MERGE_IN_O,
     false, 0, 0},
    {"llama-3b-8192-merging", "llama-3b", 1, 8192, MGL_BF16, "sm_90a", 0, 0, MGL_MERGE_IN_O, false,
     0, 0},
    {"llama-8b-8192", "llama-8b", 1, 8192, MGL_BF16, "sm_90a", 0, 0, 0, false, 0, 0},
    {"llama-8b-8192-merging", "llama-8b", 1, 8192, MGL_BF16, "sm_90a", 0, 0, MGL_MERGE_IN_O, false,
     0, 0},
    {"smollm2-lists", "smollm2-135m", 1, 1024, MGL_BF16, "sm_90a", 0, 0, 0, false, 16,
     MGL_GAMMA_NO},
    {"llama-1b-panels-16", "llama-1b", 1, 1024, MGL_BF16, "sm_90a", 0, 0, 0, false, 16,
     MGL_GAMMA_YES},
    {"llama-1b-panels-16-trace", "llama-1b", 1, 1024, MGL_BF16, "sm_90a", MGL_CUDA_TRACE, 0, 0,
     false, 16, MGL_GAMMA_YES},
    {"llama-1b-panels-64", "llama-1b", 64, 1024, MGL_BF16, "sm_90a", 0, 0, 0, false, 64, 0},
    {"llama-1b-panels-128", "llama-1b", 64, 1024, MGL_BF16, "sm_90a", 0, 0, 0, false, 128, 0},
    {"llama-1b-warpgroups-64", "llama-1b", 64, 1024, MGL_BF16, "sm_90a", 0, 0, 0, false, 64,
     BY_WARPGROUPS},
    {"llama-1b-warpgroups-128", "llama-1b", 64, 1024, MGL_BF16, "sm_90a", 0, 0, 0, false, 128,
     BY_WARPGROUPS},
    {"llama-1b-warpgroups-128-trace", "llama-1b", 64, 1024, MGL_BF16, "sm_90a", MGL_CUDA_TRACE, 0,
     0, false, 128, BY_WARPGROUPS},
    {"llama-8b-warpgroups-64", "llama-8b", 64, 1024, MGL_BF16, "sm_90a", 0, 0, 0, false, 64,
     BY_WARPGROUPS},
    {"llama-1b-int8", "llama-1b", 1, 4096, MGL_BF16, "sm_90a", 0, 0, 0, false, 0, 0},
    {"llama-1b-int4", "llama-1b", 1, 4096, MGL_BF16, "sm_90a", 0, 0, 0, false, 0, 0},
    {"llama-8b-int8", "llama-8b", 1, 4096, MGL_BF16, "sm_90a", 0, 0, 0, false, 0, 0},
    {"llama-8b-int4", "llama-8b", 1, 4096, MGL_BF16, "sm_90a", 0, 0, 0, false, 0, 0},
    {"llama-1b-int4-batch-4", "llama-1b", 4, 4096, MGL_BF16, "sm_90a", 0, 0, 0, false, 0, 0},
    {"llama-8b-int8-batch-8", "llama-8b", 8, 4096, MGL_BF16, "sm_90a", 0, 0, 0, false, 0, 0},
    {"llama-1b-int4-panels-128", "llama-1b", 1, 4096, MGL_BF16, "sm_90a", 0, 0, 0, false, 128,
     MGL_GAMMA_YES},
    {"llama-1b-int8-warpgroups-64", "llama-1b", 1, 4096, MGL_BF16, "sm_90a", 0, 0, 0, false, 64,
     BY_WARPGROUPS},
    {"llama-1b-int4-warpgroups-128", "llama-1b", 1, 4096, MGL_BF16, "sm_90a", 0, 0, 0, false, 128,
     BY_WARPGROUPS},
};
enum { KERNELS = sizeof kernels / sizeof *kernels, OPTIONS = 128 };

/* Output folder of the current kernel; the real compiler's table. */
static struct {
    const char *folder, *name;
    const mgl_nvrtc *nvrtc;
    atomic_int complaints; /* objects whose warpgroup products are serialized */
} at;

/* ---- compiler output ------------------------------------------------------------------------- */

/* object: "", or "N." */
static void write_file(const char *object, const char *ending, const char *bytes, size_t length)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s.%s%s", at.folder, at.name, object, ending);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, length, file) != length || fclose(file)) {
        fprintf(stderr, "dump_kernels: %s cannot be written\n", path);
        exit(2);
    }
}

typedef int size_fn(void *program, size_t *bytes);
typedef int text_fn(void *program, char *text);

/* Writes one of the program's results, if there is one. */
static void write_text(void *program, const char *object, const char *ending, size_fn *size,
                       text_fn *text)
{
    size_t bytes = 0;
    if (size(program, &bytes) || bytes <= 1)
        return;
    char *result = mgl_alloc_zero(bytes + 1, 1);
    if (result && !text(program, result))
        write_file(object, ending, result, strlen(result));
    mgl_free(result);
}

/* The assembler reports serialized warpgroup products, or products that wait for registers, by
 * messages C7510 to C7520. */
static void look_for_complaints(void *program)
{
    size_t bytes = 0;
    if (at.nvrtc->log_size(program, &bytes) || bytes <= 1)
        return;
    char *log = mgl_alloc_zero(bytes + 1, 1);
    if (log && !at.nvrtc->log(program, log) && strstr(log, "(C75"))
        at.complaints++;
    mgl_free(log);
}

/* The object that the options select: "N.", "" for one text. False: not a kernel of a program. */
static bool name_object(int count, const char *const *options, char object[16])
{
    static const char says[] = "-DMGL_OBJECT=", any[] = "-DMGL_";
    bool kernel = false;
    object[0] = 0;
    for (int i = 0; i < count; i++) {
        kernel |= !strncmp(options[i], any, sizeof any - 1);
        if (!strncmp(options[i], says, sizeof says - 1))
            snprintf(object, 16, "%s.", options[i] + sizeof says - 1);
    }
    return kernel;
}

/* Wraps the compiler: requests register statistics, and writes the results to files. Called by
 * several threads at once. */
static int compile(void *program, int count, const char *const *options)
{
    const char *more[OPTIONS];
    char object[16];
    memcpy(more, options, (size_t)count * sizeof *more);
    more[count] = "--ptxas-options=-v";
    if (!name_object(count, options, object))
        return at.nvrtc->compile(program, count, options);
    const int result = at.nvrtc->compile(program, count + 1, more);
    write_text(program, object, "log", at.nvrtc->log_size, at.nvrtc->log);
    look_for_complaints(program);
    write_text(program, object, "ptx", at.nvrtc->ptx_size, at.nvrtc->ptx);
    return result;
}

/* ---- the kernels ----------------------------------------------------------------------------- */

/* Quantizes the matrices of the layers, if the name of the kernel ends with a weight format. */
static mgl_status quantize(const struct kernel *k, mgl_graph *graph, mgl_error *err)
{
    const mgl_weight_format int8 = {MGL_CODE_INT8, MGL_BF16, MGL_GROUP_ALL, 1, false};
    const mgl_weight_format int4 = {MGL_CODE_INT4, MGL_BF16, 128, 1, false};
    const bool four = strstr(k->name, "-int4") != NULL;
    if (!four && !strstr(k->name, "-int8"))
        return MGL_OK;
    return mgl_synthetic_set_formats(graph, four ? int4 : int8, mgl_weight_format_of(k->dtype),
                                     err);
}

static mgl_status lower(const struct kernel *k, mgl_program **out, mgl_error *err)
{
    mgl_config config;
    mgl_graph *graph = NULL;
    mgl_target target;
    mgl_schedule_config knobs;
    const mgl_lower_options options = {.dtype = k->dtype,
                                       .capacity = k->capacity,
                                       .sequences = k->rows,
                                       .penalties = k->penalties};
    mgl_schedule_config_default(&knobs);
    knobs.merge = k->merge;
    knobs.second_rows = k->second_rows;
    knobs.gamma_scaled = k->gamma_scaled == BY_WARPGROUPS ? MGL_GAMMA_YES : k->gamma_scaled;
    knobs.warpgroups = k->gamma_scaled == BY_WARPGROUPS ? MGL_WARPGROUPS_YES : MGL_WARPGROUPS_NO;
    knobs.rows = k->second_rows > 0 ? 1 : 0;
    mgl_status status = mgl_synthetic_find_shape(k->shape, &config, err);
    if (!status)
        status = mgl_target_parse("sm_90a:132", &target, err);
    config.extras = k->family;
    if (!status)
        status = mgl_synthetic_open(&config, 1, &graph, err);
    if (!status)
        status = quantize(k, graph, err);
    if (!status)
        status = mgl_schedule_lower(graph, &target, &options, &knobs, out, err);
    mgl_graph_free(graph);
    return status;
}

static mgl_status dump(const struct kernel *k, mgl_error *err)
{
    mgl_program *program = NULL;
    mgl_cuda_image image = {0};
    at.name = k->name;
    mgl_status status = lower(k, &program, err);
    if (!status)
        status = mgl_cuda_compile(program, k->arch, k->extras, NULL, &image, err);
    if (!status && !image.ptx)
        write_file("", "cubin", image.bytes, image.length);
    if (!status)
        fprintf(stderr, "dump_kernels: %s: %.1f s, %d registers\n", k->name, image.compile_s,
                image.ptx ? 0 : registers_of(image.bytes, image.length, "megalith"));
    mgl_cuda_image_clear(&image);
    mgl_program_free(program);
    return status;
}

static bool is_wanted(const struct kernel *k, int count, char **names)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(names[i], k->name))
            return true;
    return count == 0;
}

int main(int argc, char **argv)
{
    mgl_error err = {0};
    if (argc < 2) {
        fprintf(stderr, "usage: dump_kernels FOLDER [NAME]...\n");
        return 1;
    }
    /* The kernel cache is off, because cached kernels would not be compiled. */
    unsetenv("MEGALITH_CACHE");
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    at.folder = argv[1];
    mgl_status status = mgl_nvrtc_open(&at.nvrtc, &err);
    mgl_nvrtc watched = {0};
    const mgl_jitlink *linker;
    if (!status) {
        watched = *at.nvrtc;
        watched.compile = compile;
        mgl_nvrtc_override(&watched);
        if (!mgl_jitlink_open(&linker, NULL))
            mgl_jitlink_override(linker);
    }
    for (int i = 0; i < KERNELS && !status; i++)
        if (is_wanted(&kernels[i], argc - 2, argv + 2))
            status = dump(&kernels[i], &err);
    if (status)
        fprintf(stderr, "dump_kernels: %s: %s\n", err.where, err.message);
    if (!status && at.complaints > 0) {
        fprintf(stderr,
                "dump_kernels: products of warpgroups wait for one another: C75 in the log\n");
        return 6;
    }
    return (int)status;
}
