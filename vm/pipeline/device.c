/*
 * Implements device.h: the meaning of `--device` and `--target`, and whether the kernel of a
 * compiled model runs on a device.
 */
#include "vm/pipeline/device.h"

#include "base/clock.h"
#include "base/memory.h"
#include "importer/mega.h"
#include "schedule/schedule.h"
#include "vm/cuda/cuda.h"
#include "vm/cuda/driver.h"
#include "vm/cuda/encode.h"

#include <string.h>

bool mgl_image_has_kernel(const mgl_image *image, const char *arch)
{
    char key[MGL_SHA256_HEX];
    if (mgl_cuda_check_program(image->program, NULL)) /* the program is not validated yet */
        return false;
    mgl_cuda_kernel_key(image->program, arch, 0, key);
    for (int i = 0; i < image->kernel_count; i++)
        if (!strcmp(image->kernels[i].arch, arch) && !strcmp(image->kernels[i].key, key))
            return true;
    return false;
}

mgl_status mgl_image_check_kernel(const mgl_image *image, const char *arch, mgl_error *err)
{
    const mgl_nvrtc *nvrtc;
    mgl_error why = {0};
    bool is_there = false;
    for (int i = 0; i < image->kernel_count; i++)
        is_there |= !strcmp(image->kernels[i].arch, arch);
    if (!is_there || mgl_cuda_check_program(image->program, NULL) ||
        mgl_image_has_kernel(image, arch) || !mgl_nvrtc_open(&nvrtc, &why))
        return MGL_OK;
    return mgl_fail(err, MGL_DEVICE, mgl_mega_path(image->file),
                    "the kernel for %s in the file was compiled from other sources than those of "
                    "this version; make the file again with 'megalith compile', or let this "
                    "version compile the kernel: %s" MGL_HINT_CPU,
                    arch, why.message);
}

/* ---- devices and targets --------------------------------------------------------------------- */

static mgl_status use_cpu(mgl_device *out, mgl_error *err)
{
    *out = (mgl_device){.kind = MGL_VM_CPU, .name = "cpu"};
    return mgl_target_parse("cpu:1", &out->target, err);
}

/* The name stays empty if the driver does not return it. */
static void name_device(mgl_device *machine)
{
    const mgl_cu *cu;
    int device;
    if (mgl_cu_open(&cu, NULL) || cu->device_get(&device, machine->device) ||
        cu->device_name(machine->name, (int)sizeof machine->name - 1, device))
        machine->name[0] = 0;
}

static mgl_status use_cuda(int device, mgl_device *out, mgl_error *err)
{
    double start = mgl_clock_s();
    *out = (mgl_device){.kind = MGL_VM_CUDA, .device = device};
    mgl_status status = mgl_cuda_live_target(device, &out->target, err);
    if (!status)
        name_device(out);
    out->driver_s = mgl_clock_s() - start;
    return status;
}

/* The requested GPU. NVRTC is required if the kernel in a compiled model is out of date. */
static mgl_status use_cuda_for(const mgl_image *image, int device, mgl_device *out, mgl_error *err)
{
    mgl_status status = use_cuda(device, out, err);
    return status || !image ? status : mgl_image_check_kernel(image, out->target.arch, err);
}

/* Whether the file contains the device's kernel, or NVRTC can compile it. */
static bool has_kernel(const mgl_image *image, const mgl_device *device)
{
    if (image && mgl_image_has_kernel(image, device->target.arch))
        return true;
    mgl_cuda_probe *probe = mgl_alloc(sizeof *probe);
    if (!probe)
        return false;
    mgl_cuda_get_probe(probe);
    bool usable = probe->nvrtc;
    mgl_free(probe);
    return usable;
}

/* The first usable GPU, or else the CPU. The driver is checked first, because the check is fast:
 * without a driver, NVRTC is not searched for. A compiled model with an outdated kernel is an
 * error, not a silent run on the CPU. */
static mgl_status use_best(const mgl_image *image, mgl_device *out, mgl_error *err)
{
    mgl_error ignored;
    const bool for_cpu = image && !strcmp(image->program->target.arch, "cpu");
    if (for_cpu || use_cuda(0, out, &ignored))
        return use_cpu(out, err);
    mgl_status status = image ? mgl_image_check_kernel(image, out->target.arch, err) : MGL_OK;
    return status || has_kernel(image, out) ? status : use_cpu(out, err);
}

mgl_status mgl_device_find(const char *device, mgl_device *out, mgl_error *err)
{
    return mgl_device_find_for(NULL, device, out, err);
}

mgl_status mgl_device_find_for(const mgl_image *image, const char *device, mgl_device *out,
                               mgl_error *err)
{
    if (!device || !strcmp(device, "auto"))
        return use_best(image, out, err);
    if (!strcmp(device, "cpu"))
        return use_cpu(out, err);
    if (!strcmp(device, "cuda"))
        return use_cuda_for(image, 0, out, err);
    const char *digits = strncmp(device, "cuda:", 5) ? "" : device + 5;
    size_t length = strlen(digits);
    if (length < 1 || length > 3 || strspn(digits, "0123456789") != length)
        return mgl_fail(err, MGL_USAGE, device,
                        "unknown device; supported: auto, cpu, cuda and cuda:N");
    int number = 0;
    for (; *digits; digits++)
        number = number * 10 + (*digits - '0');
    return use_cuda_for(image, number, out, err);
}

mgl_status mgl_target_find_device(const char *target, mgl_device *out, mgl_error *err)
{
    if (!target || !strcmp(target, "live"))
        return mgl_device_find("auto", out, err);
    *out = (mgl_device){.kind = MGL_VM_CUDA};
    mgl_status status = mgl_target_parse(target, &out->target, err);
    if (!status && !strcmp(out->target.arch, "cpu")) {
        out->kind = MGL_VM_CPU;
        strcpy(out->name, "cpu");
    }
    return status == MGL_BAD_INPUT ? MGL_USAGE : status; /* the text is an option, not a file */
}

mgl_status mgl_target_find(const char *target, mgl_target *out, mgl_error *err)
{
    mgl_device machine;
    mgl_status status = mgl_target_find_device(target, &machine, err);
    if (!status)
        *out = machine.target;
    return status;
}
