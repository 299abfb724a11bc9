/*
 * Paired benchmark on a GPU: reference, stream, baseline and clocks. Each call enters the device's
 * context and leaves it. Different threads may therefore call in turn, and an idle process can be
 * killed.
 */
#include "eval/paired_bench_state.h"

#include <stdio.h>

#include "base/memory.h"
#include "eval/baseline.h"
#include "eval/reference.h"
#include "eval/statistics.h"

/* Limits of a timed stream, in bytes: large enough to time; the maximum fits the kernel's chunk
 * index. */
static const double least_stream = 1 << 20, most_stream = 0x1p35;

mgl_status mgl_paired_bench_cuda_open(mgl_paired_bench *d, mgl_error *err)
{
    char bus_id[32] = "";
    mgl_status status = mgl_baseline_check(&d->config.geometry, err);
    if (status)
        return status;
    status = mgl_bench_device_open(d->ordinal, &d->config.geometry, d->abort, &d->device, err);
    if (!status && !d->device.cu->device_bus_id(bus_id, (int)sizeof bus_id, d->device.device))
        mgl_clocks_open(bus_id, &d->clocks);
    if (d->device.context)
        mgl_bench_device_leave(&d->device);
    return status;
}

void mgl_paired_bench_cuda_close(mgl_paired_bench *d)
{
    if (!d->device.context || mgl_bench_device_enter(&d->device, NULL))
        return;
    mgl_stream_close(&d->device, &d->stream);
    mgl_bench_device_close(&d->device);
}

/* The workload as a benchmark case, without the rope table. */
static mgl_bench_case case_of(const mgl_paired_bench *d, const mgl_paired_bench_load *load,
                              const int32_t *first)
{
    return (mgl_bench_case){.graph = d->graph,
                            .sequences = load->batch,
                            .context = load->context,
                            .tokens = load->tokens,
                            .capacity = load->context + load->tokens + 1,
                            .first = first};
}

/* ---- reference ------------------------------------------------------------------------------ */

static mgl_status refer(mgl_paired_bench *d, const mgl_paired_bench_load *load, const int32_t *made,
                        const mgl_paired_bench_reference *out, mgl_error *err)
{
    int32_t first[MGL_MAX_SEQUENCES];
    mgl_paired_bench_reference timed = *out;
    mgl_bench_case of = case_of(d, load, first);
    timed.device_s = &d->device_s;
    mgl_paired_bench_make_first(d, load, first);
    mgl_status status = mgl_bench_make_rope(&d->device, d->graph, of.capacity, &of.rope, err);
    if (!status)
        status = mgl_reference_look(&d->device, &of, made, &timed, err);
    mgl_bench_release(&d->device, of.rope);
    return status;
}

mgl_status mgl_paired_bench_cuda_refer(mgl_paired_bench *d, const mgl_paired_bench_load *load,
                                       const int32_t *made, const mgl_paired_bench_reference *out,
                                       mgl_error *err)
{
    mgl_status status = mgl_bench_device_enter(&d->device, err);
    if (status)
        return status;
    status = refer(d, load, made, out, err);
    mgl_bench_device_leave(&d->device);
    return status;
}

void mgl_paired_bench_cuda_key(const mgl_paired_bench *d, const mgl_program *program,
                               char key[MGL_SHA256_HEX])
{
    mgl_cuda_kernel_key(program, d->device.target.arch, 0, key);
}

/* ---- stream --------------------------------------------------------------------------------- */

/* Opens the stream's buffer. It is kept for the next call, which usually needs the same size. */
static mgl_status make_stream(mgl_paired_bench *d, double bytes, mgl_error *err)
{
    if (d->stream_bytes == bytes)
        return MGL_OK;
    d->stream_bytes = 0;
    mgl_stream_close(&d->device, &d->stream);
    mgl_status status = mgl_stream_open(&d->device, d->graph, bytes, &d->stream, err);
    d->stream_bytes = status ? 0 : bytes;
    return status;
}

static mgl_status time_stream(mgl_paired_bench *d, double bytes, int count, double *fastest,
                              mgl_error *err)
{
    mgl_status status = make_stream(d, bytes, err);
    for (int i = 0; i < count && !status; i++) {
        double seconds;
        status = mgl_check_abort(d->abort, err);
        if (!status)
            status = mgl_stream_run(&d->device, &d->stream, &seconds, err);
        if (!status)
            d->device_s += seconds;
        if (!status && (i == 0 || seconds < *fastest))
            *fastest = seconds;
    }
    return status;
}

mgl_status mgl_paired_bench_stream(mgl_paired_bench *d, double bytes, int count, double *seconds,
                                   mgl_error *err)
{
    *seconds = 0;
    if (d->kind != MGL_VM_CUDA)
        return mgl_fail(err, MGL_DEVICE, "cpu", "only the memory of a GPU is timed");
    if (!(bytes >= least_stream && bytes <= most_stream) || count < 1)
        return mgl_fail(err, MGL_USAGE, "stream",
                        "%d reads of %.0f bytes; there are 1 and more of "
                        "%.0f to %.0f bytes",
                        count, bytes, least_stream, most_stream);
    mgl_status status = mgl_bench_device_enter(&d->device, err);
    if (status)
        return status;
    status = time_stream(d, bytes, count, seconds, err);
    mgl_bench_device_leave(&d->device);
    return status;
}

/* ---- baseline ------------------------------------------------------------------------------- */

enum { BASELINE_WARM_UPS = 3 };

/* `times` (count). */
static mgl_status time_launches(const mgl_paired_bench *d, mgl_baseline *baseline, int32_t *made,
                                int count, double *times, mgl_error *err)
{
    mgl_status status = MGL_OK;
    double seconds;
    for (int i = -BASELINE_WARM_UPS; i < count && !status; i++) {
        status = mgl_check_abort(d->abort, err);
        if (!status)
            status = mgl_baseline_run(baseline, NULL, made, &seconds, err);
        if (!status && i >= 0)
            times[i] = seconds;
    }
    return status;
}

static mgl_status time_baseline(mgl_paired_bench *d, const mgl_paired_bench_load *load, int count,
                                double *seconds, mgl_error *err)
{
    int32_t first[MGL_MAX_SEQUENCES];
    mgl_baseline *baseline = NULL;
    mgl_bench_case of = case_of(d, load, first);
    size_t words = (size_t)load->batch * (size_t)load->tokens;
    int32_t *made = mgl_alloc(words * sizeof *made);
    double *times = mgl_alloc((size_t)count * sizeof *times);
    mgl_status status = made && times ? MGL_OK : mgl_fail_memory(err, words * sizeof *made);
    mgl_paired_bench_make_first(d, load, first);
    mgl_synthetic_set_seed(d->graph, load->seed);
    mgl_synthetic_set_kind(d->graph, load->kind);
    if (!status)
        status = mgl_bench_make_rope(&d->device, d->graph, of.capacity, &of.rope, err);
    if (!status)
        status = mgl_baseline_open(&d->device, &of, &baseline, err);
    if (!status)
        status = time_launches(d, baseline, made, count, times, err);
    if (!status)
        *seconds = mgl_median(times, (size_t)count);
    mgl_baseline_close(baseline);
    mgl_bench_release(&d->device, of.rope);
    mgl_free(made);
    mgl_free(times);
    return status;
}

mgl_status mgl_paired_bench_baseline(mgl_paired_bench *d, const mgl_paired_bench_load *load,
                                     int count, double *seconds, mgl_error *err)
{
    *seconds = 0;
    if (d->kind != MGL_VM_CUDA)
        return mgl_fail(err, MGL_DEVICE, "cpu", "cuBLAS runs on a GPU alone");
    if (count < 1 || count > MGL_MAX_SAMPLES)
        return mgl_fail(err, MGL_USAGE, "baseline", "%d launches; there are 1 to %d", count,
                        (int)MGL_MAX_SAMPLES);
    mgl_status status = mgl_bench_device_enter(&d->device, err);
    if (status)
        return status;
    status = time_baseline(d, load, count, seconds, err);
    mgl_bench_device_leave(&d->device);
    return status;
}

/* ---- device --------------------------------------------------------------------------------- */

void mgl_paired_bench_look(mgl_paired_bench *d, mgl_paired_bench_clocks *out)
{
    mgl_clocks_now now;
    mgl_clocks_read(&d->clocks, &now); /* zeros if the device is unknown */
    *out = (mgl_paired_bench_clocks){.sm_mhz = now.sm_mhz,
                                     .memory_mhz = now.memory_mhz,
                                     .temperature = now.temperature,
                                     .reasons = now.reasons,
                                     .processes = mgl_clocks_count_others(&d->clocks)};
}

/* Prints a UUID like nvidia-smi: 16 bytes in groups of 4, 2, 2, 2 and 6. */
static void print_uuid(const unsigned char bytes[16], char *to, size_t size)
{
    size_t length = (size_t)snprintf(to, size, "GPU-");
    for (int i = 0; i < 16; i++)
        length +=
            (size_t)snprintf(to + length, size - length,
                             i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", bytes[i]);
}

static mgl_status describe(const mgl_paired_bench *d, mgl_paired_bench_device *out, mgl_error *err)
{
    const mgl_cu *cu = d->device.cu;
    unsigned char uuid[16] = {0};
    size_t free_bytes = 0, total = 0;
    int l2 = 0;
    mgl_status status =
        mgl_cu_check(cu, cu->device_uuid(uuid, d->device.device), "asking for the UUID", err);
    if (!status)
        status =
            mgl_cu_check(cu, cu->memory_info(&free_bytes, &total), "asking for free memory", err);
    if (!status)
        status =
            mgl_cu_check(cu, cu->device_attribute(&l2, MGL_CU_DEVICE_L2_BYTES, d->device.device),
                         "asking for the L2 cache", err);
    if (status)
        return status;
    snprintf(out->name, sizeof out->name, "%s", d->device.name);
    print_uuid(uuid, out->uuid, sizeof out->uuid);
    out->target = d->device.target;
    cu->driver_version(&out->driver_version);
    out->memory_total = total;
    out->memory_free = free_bytes;
    out->l2_bytes = (uint64_t)l2;
    return MGL_OK;
}

mgl_status mgl_paired_bench_cuda_describe(mgl_paired_bench *d, mgl_paired_bench_device *out,
                                          mgl_error *err)
{
    mgl_status status = mgl_bench_device_enter(&d->device, err);
    if (status)
        return status;
    status = describe(d, out, err);
    mgl_bench_device_leave(&d->device);
    return status;
}
