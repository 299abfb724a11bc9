/* Detects driver, toolkit, devices and kernel cache (mgl_cuda_get_probe, for `doctor`), and returns
 * the target of a live device. */
#include <stdio.h>
#include <string.h>

#include "vm/cuda/cache.h"
#include "vm/cuda/cuda.h"
#include "vm/cuda/driver.h"

/* Name of the architecture for NVRTC: with architecture-specific features ("a") from compute
 * capability 9.0 on. */
static void name_arch(int major, int minor, char arch[16])
{
    snprintf(arch, 16, "sm_%d%d%s", major, minor, major >= 9 ? "a" : "");
}

static mgl_status probe_device(const mgl_cu *cu, int ordinal, mgl_cuda_device *out, mgl_error *err)
{
    int device = 0, shared = 0;
    mgl_status status =
        mgl_cu_check(cu, cu->device_get(&device, ordinal), "finding the device", err);
    if (status)
        return status;
    struct {
        int *to, attribute;
    } attributes[] = {{&out->major, MGL_CU_DEVICE_MAJOR},
                      {&out->minor, MGL_CU_DEVICE_MINOR},
                      {&out->sms, MGL_CU_DEVICE_SM_COUNT},
                      {&shared, MGL_CU_DEVICE_SHARED_OPTIN}};
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes && !status; i++)
        status = mgl_cu_check(
            cu, cu->device_attribute(attributes[i].to, attributes[i].attribute, device),
            "asking for the device's attributes", err);
    if (!status)
        status = mgl_cu_check(cu, cu->device_name(out->name, (int)sizeof out->name, device),
                              "asking for the device's name", err);
    if (!status)
        status = mgl_cu_check(cu, cu->device_memory(&out->memory_bytes, device),
                              "asking for the device's memory", err);
    out->name[sizeof out->name - 1] = 0;
    out->shared_bytes = (size_t)shared;
    name_arch(out->major, out->minor, out->arch);
    return status;
}

static void probe_driver(mgl_cuda_probe *out)
{
    const mgl_cu *cu;
    mgl_error err = {0};
    int count = 0;
    mgl_status status = mgl_cu_open(&cu, &err);
    out->driver = !status;
    if (!status) {
        snprintf(out->driver_path, sizeof out->driver_path, "%s", cu->path);
        cu->driver_version(&out->driver_version);
        status = mgl_cu_check(cu, cu->device_count(&count), "counting the devices", &err);
    }
    for (int i = 0; i < count && i < MGL_CUDA_MAX_DEVICES && !status; i++) {
        status = probe_device(cu, i, &out->devices[i], &err);
        out->device_count += !status;
    }
    if (status)
        snprintf(out->driver_reason, sizeof out->driver_reason, "%.*s", MGL_CUDA_REASON - 1,
                 err.message);
    else if (count == 0)
        snprintf(out->driver_reason, sizeof out->driver_reason,
                 "the driver sees no device: check nvidia-smi and CUDA_VISIBLE_DEVICES");
}

static void probe_linker(const mgl_nvrtc *nvrtc, mgl_cuda_probe *out)
{
    mgl_error err = {0};
    const mgl_jitlink *linker = nvrtc ? mgl_jitlink_for(nvrtc, &err) : NULL;
    out->linker = linker != NULL;
    if (linker)
        snprintf(out->linker_path, sizeof out->linker_path, "%s", linker->path);
    else
        snprintf(out->linker_reason, sizeof out->linker_reason, "%.*s", MGL_CUDA_REASON - 1,
                 nvrtc ? err.message : "NVRTC comes first: see above");
}

void mgl_cuda_get_probe(mgl_cuda_probe *out)
{
    const mgl_nvrtc *nvrtc;
    mgl_error err = {0};
    *out = (mgl_cuda_probe){0};
    probe_driver(out);
    out->nvrtc = !mgl_nvrtc_open(&nvrtc, &err);
    if (out->nvrtc) {
        snprintf(out->nvrtc_path, sizeof out->nvrtc_path, "%s", nvrtc->path);
        nvrtc->version(&out->nvrtc_major, &out->nvrtc_minor);
    } else {
        snprintf(out->nvrtc_reason, sizeof out->nvrtc_reason, "%.*s", MGL_CUDA_REASON - 1,
                 err.message);
    }
    probe_linker(out->nvrtc ? nvrtc : NULL, out);
    if (!mgl_cuda_cache_path(out->cache_path, sizeof out->cache_path))
        snprintf(out->cache_reason, sizeof out->cache_reason,
                 "compiled kernels are not kept: set MEGALITH_CACHE or HOME");
    else
        out->cache =
            mgl_cuda_cache_usable(out->cache_path, out->cache_reason, sizeof out->cache_reason);
}

mgl_status mgl_cuda_live_target(int ordinal, mgl_target *out, mgl_error *err)
{
    const mgl_cu *cu;
    mgl_cuda_device device = {0};
    int count = 0;
    mgl_status status = mgl_cu_open(&cu, err);
    if (!status)
        status = mgl_cu_check(cu, cu->device_count(&count), "counting the devices", err);
    if (status)
        return status;
    if (ordinal < 0 || ordinal >= count)
        return mgl_fail(err, MGL_DEVICE, "cuda",
                        "there is no CUDA device %d: the driver sees %d; check nvidia-smi and "
                        "CUDA_VISIBLE_DEVICES",
                        ordinal, count);
    status = probe_device(cu, ordinal, &device, err);
    if (status)
        return status;
    if (device.major < 8)
        return mgl_fail(
            err, MGL_DEVICE, device.name,
            "compute capability %d.%d is too old: the kernel needs 8.0 or later" MGL_HINT_CPU,
            device.major, device.minor);
    *out = (mgl_target){.shared_bytes = (int64_t)device.shared_bytes};
    out->queues = device.sms < MGL_MAX_QUEUES ? device.sms : MGL_MAX_QUEUES;
    memcpy(out->arch, device.arch, sizeof out->arch);
    return MGL_OK;
}
