/*
 * A compiled model: the program, its weights as the tapes have them, and kernels, with the files of
 * the model that are no weights, in one container (importer/mega.h), which `run` maps.
 *
 *     schedule        the program's text form
 *     pieces          how `weights` lies and is checked: MGL_TAPE_LAYOUT (8 bytes, little-endian,
 *                     as all here), mgl_program_layout of the schedule that it was packed for (32),
 *                     then of each piece of weights.h, in their order, its bytes (8) and their
 *                     mgl_checksum (8)
 *     kernel ARCH     mgl_cuda_kernel_key (64 digits), then the kernel
 *     weights         the parts of weights.h, each from the next multiple of 4,096 on; what is
 *                     between them is never read
 *
 * Whatever is small is checked when it is read. A GPU's machine checks each piece of the weights on
 * its way to the device. A CPU's uses the tapes where they are mapped, and checks them when it is
 * asked to (mgl_vm_options.verify): looking at every byte first would cost a pass over the file.
 */
#ifndef MGL_VM_IMAGE_H
#define MGL_VM_IMAGE_H

#include "vm/weights.h"

/* Changes whenever the same program and checkpoint would be packed to other bytes, or `pieces` to
 * others: files of another layout are refused. */
enum { MGL_TAPE_LAYOUT = 3 };

/* A file of the model that is taken over as it is. */
typedef struct mgl_image_file {
    const char *name; /* of the section */
    const void *bytes;
    size_t length;
} mgl_image_file;

/* What goes into a file. */
typedef struct mgl_image_content {
    const mgl_program *program;
    const mgl_graph *graph;
    const mgl_image_file *files; /* (file_count) */
    int file_count;
    const mgl_vm_kernel *kernels; /* (kernel_count) */
    int kernel_count;
    const atomic_int *abort; /* set by anybody: ends the writing; may be NULL */
    mgl_stage_fn *on_stage;  /* of MGL_STAGE_WEIGHTS; may be NULL */
    void *stage_user;
} mgl_image_content;

/* Packs the weights and writes the file, which stands under its name when all of it is written, and
 * not before. Its size goes to *bytes. MGL_INTERRUPTED: `abort` was set. */
mgl_status mgl_image_write(const char *path, const mgl_image_content *content, uint64_t *bytes,
                           mgl_error *err);

typedef struct mgl_image {
    mgl_program *program;
    mgl_weights *weights; /* read from the map and checked, piece by piece */
    mgl_vm_kernel *kernels;
    int kernel_count;
    struct mgl_mega *file; /* the map */
} mgl_image;

/* Opens and checks all but the weights. The program was not validated. Release with
 * mgl_image_close, after the machines that use it. */
mgl_status mgl_image_open(const char *path, mgl_image **out, mgl_error *err);
void mgl_image_close(mgl_image *image); /* NULL is fine */

/* Whether there is a kernel that runs the program on a device of this architecture. */
bool mgl_image_has_kernel(const mgl_image *image, const char *arch);

/* MGL_DEVICE, with the remedies: the image has a kernel for this architecture that was compiled
 * from other sources than this program's, and there is no NVRTC to compile a new one. With NVRTC
 * the machine compiles the kernel when it is opened. */
mgl_status mgl_image_check_kernel(const mgl_image *image, const char *arch, mgl_error *err);

#endif
