/*
 * Compiled model file. It holds the program, its weights in tape layout, kernels, and the model's
 * other files (tokenizer, config) in one container (importer/mega.h), which `run` maps.
 *
 *     schedule        the program's text form
 *     pieces          the layout and checksums of `weights`: MGL_TAPE_LAYOUT (8 bytes; all numbers
 *                     are little-endian), mgl_program_layout of the packed schedule (32 bytes),
 *                     then for each piece of weights.h, in order, its size in bytes (8) and its
 *                     mgl_checksum (8)
 *     kernel ARCH     mgl_cuda_kernel_key (64 digits), then the kernel
 *     weights         the parts of weights.h, each aligned to 4,096 bytes; the padding between
 *                     them is never read
 *
 * Small sections are checked when they are read. The CUDA machine checks each piece of the weights
 * during upload. The CPU machine uses the tapes in the map and checks them only on request
 * (mgl_vm_options.verify), because checking every byte costs a pass over the file. `compile` writes
 * these files; `run` and the server open them.
 */
#ifndef MGL_VM_IMAGE_H
#define MGL_VM_IMAGE_H

#include "vm/weights.h"

/* Layout version. It changes whenever the same program and checkpoint pack to different bytes, or
 * the format of `pieces` changes. Files of another layout are rejected. */
enum { MGL_TAPE_LAYOUT = 3 };

/* A file of the model that is copied unchanged. */
typedef struct mgl_image_file {
    const char *name; /* section name */
    const void *bytes;
    size_t length;
} mgl_image_file;

/* Contents of a file to write. */
typedef struct mgl_image_content {
    const mgl_program *program;
    const mgl_graph *graph;
    const mgl_image_file *files; /* (file_count) */
    int file_count;
    const mgl_vm_kernel *kernels; /* (kernel_count) */
    int kernel_count;
    const atomic_int *abort; /* set by any thread: stops writing; may be NULL */
    mgl_stage_fn *on_stage;  /* progress of MGL_STAGE_WEIGHTS; may be NULL */
    void *stage_user;
} mgl_image_content;

/* Packs the weights and writes the file. The file appears under its name only when complete. Its
 * size in bytes goes to *bytes. MGL_INTERRUPTED: `abort` was set. */
mgl_status mgl_image_write(const char *path, const mgl_image_content *content, uint64_t *bytes,
                           mgl_error *err);

typedef struct mgl_image {
    mgl_program *program;
    mgl_weights *weights; /* read from the map and checked piece by piece */
    mgl_vm_kernel *kernels;
    int kernel_count;
    struct mgl_mega *file; /* the map */
} mgl_image;

/* Opens a file and checks everything but the weights. Does not validate the program. Release with
 * mgl_image_close, after the machines that use the image. */
mgl_status mgl_image_open(const char *path, mgl_image **out, mgl_error *err);
void mgl_image_close(mgl_image *image); /* NULL is allowed */

#endif
