/*
 * Choice of a device and of the target that lowering needs, for mgl_model_open, mgl_model_compile,
 * the planners, the benchmarks and the verbs of the command line.
 */
#ifndef MGL_VM_PIPELINE_DEVICE_H
#define MGL_VM_PIPELINE_DEVICE_H

#include "vm/image.h"

/* The meaning of `--device`: the kind of machine, and the target that lowering needs. */
typedef struct mgl_device {
    mgl_vm_kind kind;
    int device; /* ordinal of the GPU */
    mgl_target target;
    double driver_s; /* time to start the GPU driver and query it */
    char name[128];  /* "NVIDIA H200" or "cpu"; "" if it is unknown or not on this host */
} mgl_device;

/* `device` is "auto" or NULL (the first usable GPU, or else the CPU), "cpu", "cuda" or "cuda:N".
 * MGL_USAGE for any other text. */
mgl_status mgl_device_find(const char *device, mgl_device *out, mgl_error *err);

/* The target to lower for: "sm_90a:132" or "cpu:1"; NULL or "live" is the machine that "auto"
 * finds. MGL_USAGE for any other text. */
mgl_status mgl_target_find(const char *target, mgl_target *out, mgl_error *err);
/* Like mgl_target_find, but also sets the kind of machine, and its name if the name is known. */
mgl_status mgl_target_find_device(const char *target, mgl_device *out, mgl_error *err);

/* Finds the machine for a compiled model (NULL: for a folder). "auto" (or NULL) is the CPU if the
 * model was compiled for a CPU. A GPU needs no compiler if the file contains its kernel. */
mgl_status mgl_device_find_for(const mgl_image *image, const char *device, mgl_device *out,
                               mgl_error *err);

/* ---- kernels of a compiled model ------------------------------------------------------------- */

/* Whether the image has a kernel that runs the program on a device of this architecture. */
bool mgl_image_has_kernel(const mgl_image *image, const char *arch);

/* MGL_DEVICE, with remedies: the image has a kernel for this architecture, but other sources
 * produced it, and NVRTC is not available to compile a new one. With NVRTC, the machine compiles
 * the kernel when it opens. */
mgl_status mgl_image_check_kernel(const mgl_image *image, const char *arch, mgl_error *err);

#endif
