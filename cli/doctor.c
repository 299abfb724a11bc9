/*
 * megalith doctor: prints the hardware, the libraries and the limits of this machine, and what to
 * do about what is missing.
 */
#include "cli/cli.h"

#include "autotune/runner/sandbox.h"
#include "autotune/store/frozen.h"
#include "base/json_out.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "base/system/cgroup.h"
#include "cli/libedit.h"
#include "quantize/quantize.h"
#include "vm/cpu/products.h"
#include "vm/cuda/cuda.h"

#include <cjson/cJSON.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <utf8proc.h>

#define DOCTOR_OPTIONS(X) MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(DOCTOR_OPTIONS)

/* The libraries that the program opens or links. */
typedef struct libraries {
    char pcre2[64];
    const char *cjson, *utf8proc;
    char openblas[64];     /* version; "": OpenBLAS or LAPACKE is missing */
    mgl_error no_openblas; /* the reason, if `openblas` is empty */
} libraries;

static libraries find_libraries(void)
{
    libraries found = {.cjson = cJSON_Version(), .utf8proc = utf8proc_version()};
    int length = pcre2_config(PCRE2_CONFIG_VERSION, NULL);
    if (length > 0 && (size_t)length < sizeof found.pcre2)
        pcre2_config(PCRE2_CONFIG_VERSION, found.pcre2);
    mgl_quantize_blas_version(found.openblas, sizeof found.openblas, &found.no_openblas);
    return found;
}

static void print_line(const char *name, bool good, const char *what)
{
    mgl_cli_printf("%-10s%-9s%s\n", name, good ? "ok" : "missing", what);
}

static void print_gpu(const mgl_cuda_probe *probe)
{
    if (probe->driver)
        mgl_cli_printf("%-10s%-9s%s, CUDA %d.%d\n", "driver", "ok", probe->driver_path,
                       probe->driver_version / 1000, probe->driver_version % 1000 / 10);
    else
        print_line("driver", false, probe->driver_reason);
    if (probe->nvrtc)
        mgl_cli_printf("%-10s%-9s%s, version %d.%d\n", "NVRTC", "ok", probe->nvrtc_path,
                       probe->nvrtc_major, probe->nvrtc_minor);
    else
        print_line("NVRTC", false, probe->nvrtc_reason);
    print_line("nvJitLink", probe->linker,
               probe->linker ? probe->linker_path : probe->linker_reason);
    print_line("cache", probe->cache, probe->cache ? probe->cache_path : probe->cache_reason);
    for (int i = 0; i < probe->device_count; i++) {
        const mgl_cuda_device *device = &probe->devices[i];
        mgl_cli_printf("cuda:%-5d%-9s%s, %s, %d SMs, %.1f GiB\n", i, "ok", device->name,
                       device->arch, device->sms, (double)device->memory_bytes / (double)(1 << 30));
    }
    if (!probe->device_count)
        print_line("device", false, "no GPU: models run on the CPU");
}

/* Prints the limits of the control groups, for example of a container. */
static void print_limits(void)
{
    mgl_cgroup_limits limits;
    mgl_cgroup_read("", &limits);
    if (!limits.processors && limits.memory == SIZE_MAX)
        return;
    mgl_cli_printf("%-10s%-9scontrol groups allow ", "limits", "ok");
    if (limits.processors)
        mgl_cli_printf("%.2f processors%s", limits.processors,
                       limits.memory == SIZE_MAX ? "" : " and ");
    if (limits.memory != SIZE_MAX)
        mgl_cli_printf("%.1f GB of memory, %.1f GB of it left", (double)limits.memory * 1e-9,
                       (double)limits.memory_left * 1e-9);
    mgl_cli_put("\n");
}

static void put_limits(mgl_json_out *out)
{
    mgl_cgroup_limits limits;
    mgl_cgroup_read("", &limits);
    mgl_json_out_object(out, "limits");
    if (limits.processors)
        mgl_json_out_real(out, "processors", limits.processors);
    else
        mgl_json_out_null(out, "processors");
    if (limits.memory == SIZE_MAX)
        mgl_json_out_null(out, "memory_bytes");
    else
        mgl_json_out_int(out, "memory_bytes", (int64_t)limits.memory);
    mgl_json_out_close_object(out);
}

static void print_cpu(void)
{
    size_t bytes = mgl_memory_available();
    mgl_cli_printf("%-10s%-9s%d cores, %s, ", "cpu", "ok", mgl_parallel_processors(),
                   mgl_products_get().name);
    if (bytes)
        mgl_cli_printf("%.1f GB of memory available\n", (double)bytes * 1e-9);
    else
        mgl_cli_put("available memory unknown\n");
    print_limits();
}

static void print_frozen(void)
{
    size_t count;
    mgl_frozen_files(&count);
    mgl_cli_printf("%-10s%-9sversion %d, %.16s, %zu files\n", "frozen", "ok", mgl_frozen_version(),
                   mgl_frozen_digest(), count);
}

static void print_sandbox(void)
{
    mgl_sandbox has;
    mgl_sandbox_look(&has);
    mgl_cli_printf("%-10s%-9sof a campaign's workers: seccomp %s, Landlock ", "sandbox",
                   has.missing[0] ? "missing" : "ok", has.seccomp ? "yes" : "no");
    if (has.landlock)
        mgl_cli_printf("ABI %d", has.landlock);
    else
        mgl_cli_put("no");
    mgl_cli_printf("%s%s%s\n", has.missing[0] ? " (" : "", has.missing, has.missing[0] ? ")" : "");
}

static void print_text(const libraries *found, const mgl_cuda_probe *probe)
{
    bool edits = mgl_libedit_find() != NULL;
    mgl_cli_printf("%-10s%-9sMegalith %s\n", "version", "ok", mgl_version());
    print_cpu();
    mgl_cli_printf("%-10s%-9scJSON %s, PCRE2 %s, utf8proc %s\n", "libraries", "ok", found->cjson,
                   found->pcre2, found->utf8proc);
    print_line("libedit", edits,
               edits ? "chat edits lines, with a history"
                     : "chat has no line editing; install the package libedit2");
    if (found->openblas[0])
        mgl_cli_printf("%-10s%-9sversion %s with LAPACKE: quantize can calibrate with texts\n",
                       "OpenBLAS", "ok", found->openblas);
    else
        mgl_cli_printf("%-10s%-9s%s: %s\n", "OpenBLAS", "missing", found->no_openblas.where,
                       found->no_openblas.message);
    print_frozen();
    print_sandbox();
    print_gpu(probe);
}

static void put_devices(mgl_json_out *out, const mgl_cuda_probe *probe)
{
    mgl_json_out_array(out, "devices");
    for (int i = 0; i < probe->device_count; i++) {
        const mgl_cuda_device *device = &probe->devices[i];
        mgl_json_out_object(out, NULL);
        mgl_json_out_string(out, "name", device->name);
        mgl_json_out_string(out, "arch", device->arch);
        mgl_json_out_int(out, "sms", device->sms);
        mgl_json_out_int(out, "memory_bytes", (int64_t)device->memory_bytes);
        mgl_json_out_int(out, "shared_bytes", (int64_t)device->shared_bytes);
        mgl_json_out_close_object(out);
    }
    mgl_json_out_close_array(out);
}

static void put_driver(mgl_json_out *out, const mgl_cuda_probe *probe)
{
    mgl_json_out_object(out, "driver");
    mgl_json_out_bool(out, "found", probe->driver);
    mgl_json_out_string(out, "path", probe->driver ? probe->driver_path : NULL);
    mgl_json_out_int(out, "version", probe->driver_version);
    mgl_json_out_string(out, "reason", probe->driver ? NULL : probe->driver_reason);
    mgl_json_out_close_object(out);
    mgl_json_out_object(out, "nvrtc");
    mgl_json_out_bool(out, "found", probe->nvrtc);
    mgl_json_out_string(out, "path", probe->nvrtc ? probe->nvrtc_path : NULL);
    mgl_json_out_int(out, "major", probe->nvrtc_major);
    mgl_json_out_int(out, "minor", probe->nvrtc_minor);
    mgl_json_out_string(out, "reason", probe->nvrtc ? NULL : probe->nvrtc_reason);
    mgl_json_out_close_object(out);
    mgl_json_out_object(out, "nvjitlink");
    mgl_json_out_bool(out, "found", probe->linker);
    mgl_json_out_string(out, "path", probe->linker ? probe->linker_path : NULL);
    mgl_json_out_string(out, "reason", probe->linker ? NULL : probe->linker_reason);
    mgl_json_out_close_object(out);
    mgl_json_out_object(out, "cache");
    mgl_json_out_bool(out, "usable", probe->cache);
    mgl_json_out_string(out, "path", probe->cache ? probe->cache_path : NULL);
    mgl_json_out_string(out, "reason", probe->cache ? NULL : probe->cache_reason);
    mgl_json_out_close_object(out);
}

static void put_frozen(mgl_json_out *out)
{
    size_t count;
    mgl_frozen_files(&count);
    mgl_json_out_object(out, "frozen");
    mgl_json_out_int(out, "version", mgl_frozen_version());
    mgl_json_out_string(out, "digest", mgl_frozen_digest());
    mgl_json_out_int(out, "files", (int64_t)count);
    mgl_json_out_close_object(out);
}

static void put_sandbox(mgl_json_out *out)
{
    mgl_sandbox has;
    mgl_sandbox_look(&has);
    mgl_json_out_object(out, "sandbox");
    mgl_json_out_bool(out, "seccomp", has.seccomp);
    mgl_json_out_int(out, "landlock_abi", has.landlock);
    mgl_json_out_string(out, "reason", has.missing[0] ? has.missing : NULL);
    mgl_json_out_close_object(out);
}

static void put_openblas(mgl_json_out *out, const libraries *found)
{
    const bool has = found->openblas[0] != '\0';
    mgl_json_out_object(out, "openblas");
    mgl_json_out_bool(out, "found", has);
    mgl_json_out_string(out, "version", has ? found->openblas : NULL);
    mgl_json_out_string(out, "reason", has ? NULL : found->no_openblas.message);
    mgl_json_out_close_object(out);
}

static void print_json(const libraries *found, const mgl_cuda_probe *probe)
{
    mgl_json_out out = {0};
    size_t bytes = mgl_memory_available();
    mgl_json_out_begin(&out, "megalith.doctor/1");
    mgl_json_out_string(&out, "version", mgl_version());
    mgl_json_out_int(&out, "cores", mgl_parallel_processors());
    mgl_json_out_string(&out, "instructions", mgl_products_get().name);
    if (bytes)
        mgl_json_out_int(&out, "memory_available_bytes", (int64_t)bytes);
    else
        mgl_json_out_null(&out, "memory_available_bytes");
    mgl_json_out_object(&out, "libraries");
    mgl_json_out_string(&out, "cjson", found->cjson);
    mgl_json_out_string(&out, "pcre2", found->pcre2);
    mgl_json_out_string(&out, "utf8proc", found->utf8proc);
    mgl_json_out_bool(&out, "libedit", mgl_libedit_find() != NULL);
    mgl_json_out_close_object(&out);
    put_openblas(&out, found);
    put_limits(&out);
    put_frozen(&out);
    put_sandbox(&out);
    put_driver(&out, probe);
    put_devices(&out, probe);
    mgl_cli_end_json(&out);
}

static mgl_status doctor(const char *operand, const void *options, mgl_error *err)
{
    static mgl_cuda_probe probe;
    const struct options *o = options;
    libraries found = find_libraries();
    (void)operand;
    (void)err;
    mgl_cuda_get_probe(&probe);
    if (o->json.given)
        print_json(&found, &probe);
    else
        print_text(&found, &probe);
    return MGL_OK;
}

const mgl_cli_verb mgl_cli_doctor_verb = {
    .name = "doctor",
    .summary = "checks what this machine has, and prints how to get what is missing",
    .example = "  megalith doctor",
    MGL_CLI_VERB_OPTIONS,
    .run = doctor,
};
