/* Translates a program into the tables that the kernel reads (device/record.h), checks that the
 * CUDA machine can run it, and derives the kernel's compile-time facts. Implemented in encode.c
 * (records), runnable.c and limits.c (checks), and kernel_facts.c. machine.c, exchange.c and
 * compile.c call it; api/ calls the checks. */
#ifndef MGL_VM_CUDA_ENCODE_H
#define MGL_VM_CUDA_ENCODE_H

#include "schedule/program.h"
#include "vm/cuda/device/record.h"

/* Maximum rows of a second list with products other than panels. The requirements of panels
 * (schedule/variants.def) determine their maximum. */
enum { MGL_CUDA_MOST_SECOND = MGL_MAX_ROWS };

/* Number of task lists of a program. */
static inline int mgl_cuda_lists(const mgl_program *program)
{
    return program->second ? 2 : 1;
}

/* Device addresses of the program's memory. */
typedef struct mgl_cuda_addresses {
    const uint64_t *buffers; /* (buffer_count) buffers of both lists */
    const uint64_t *tapes;   /* (queue_count) */
    bool kv_ring;            /* mgl_cuda_streams_kv */
} mgl_cuda_addresses;

/* Encoded program. Release with mgl_cuda_tables_clear. */
typedef struct mgl_cuda_tables {
    unsigned char *records;
    size_t record_bytes;
    mgl_device_queue *queues; /* (queue_entries) for each queue, one entry per list */
    int queue_entries;
} mgl_cuda_tables;

/* Checks that this machine can run the program: the kernel's limits and the shapes that it assumes.
 * An unvalidated program thus cannot access memory out of bounds in an op either. MGL_BAD_INPUT
 * names the task. */
mgl_status mgl_cuda_check_program(const mgl_program *program, mgl_error *err);

/* The checks of mgl_cuda_check_program that do not concern single tasks, for one list. */
mgl_status mgl_cuda_check_limits(const mgl_program *program, mgl_error *err);

/* Checks that the second list's products use the segments of each tape in the order of the first
 * list. The loader copies the tape in the same order for both. MGL_BAD_INPUT names the queue. */
mgl_status mgl_cuda_check_order(const mgl_program *program, mgl_error *err);

/* Whole pages in `bytes` bytes, at least 1 if bytes > 0. The result of mgl_cuda_ring_pages is at
 * most the pages of the ring less one. */
uint32_t mgl_cuda_pages(const mgl_program *program, int bytes);
uint32_t mgl_cuda_ring_pages(const mgl_program *program, int bytes);

/* The variants that tasks of a family use, as bits 1 << mgl_variant; the kernel is compiled with
 * them. Variants that the architecture ("sm_90a", "compute_80") lacks are excluded. */
uint32_t mgl_cuda_variants(const mgl_program *program, mgl_family family, const char *arch);

/* MGL_BAD_INPUT: the program was made for a newer architecture and uses a variant that this one
 * lacks. */
mgl_status mgl_cuda_check_arch(const mgl_program *program, const char *arch, mgl_error *err);

/* Whether products merge attention splits when they read them (MGL_MERGE_ADD). */
bool mgl_cuda_has_merges(const mgl_program *program);
/* Whether tasks draw tokens (MGL_DRAWS). */
bool mgl_cuda_has_draws(const mgl_program *program);
/* Whether products add biases (MGL_BIAS), and whether attention normalizes q and k
 * (MGL_QK_NORM). */
bool mgl_cuda_has_biases(const mgl_program *program);
bool mgl_cuda_has_norms(const mgl_program *program);

/* The different scaled weight formats of a program's matrices, in the order of its tensors. Writes
 * the first MGL_CUDA_FORMATS. Returns their number, or MGL_CUDA_FORMATS + 1 if there are more. */
enum { MGL_CUDA_FORMATS = 4 };
int mgl_cuda_formats(const mgl_program *program, mgl_weight_format out[MGL_CUDA_FORMATS]);
/* The number of a task's weight format in the kernel (device/linear/formats.cuh). Scaled formats:
 * 1 + the index in mgl_cuda_formats. The program's dtype, and tasks without weights: 0. */
int mgl_cuda_format_of(const mgl_program *program, const mgl_task *task);
/* The inputs of products whose weights have format `number` (0: the program's dtype), in both
 * lists: a bit set of MGL_CUDA_INPUT. */
uint32_t mgl_cuda_inputs(const mgl_program *program, int number);

/* Whether attention reads keys and values from the ring (MGL_KV_RING): its variant is `ring`, and
 * the architecture ("sm_90a", "compute_80") has bulk copies. */
bool mgl_cuda_streams_kv(const mgl_program *program, const char *arch);

/* Whether the cache stores the chunks of a position in the order of mgl_kv_chunk
 * (schedule/variant_shapes.h). */
bool mgl_cuda_swizzles_kv(const mgl_program *program, const char *arch);

/* Upper bound of the bytes of a task's record, without a following `clear`. */
size_t mgl_cuda_record_bytes(const mgl_program *program, const mgl_task *task);

/* Describes the bytes that a `clear` resets, without the address; *first is the first byte in the
 * buffer. The region may have at most one dimension before the rows, and one run of bytes per row.
 * Returns false if the region has another shape or is too large. */
bool mgl_cuda_find_clear(const mgl_program *program, const mgl_region *region,
                         mgl_device_clear *out, int64_t *first);

/* Encodes a program that mgl_cuda_check_program accepts. */
mgl_status mgl_cuda_encode(const mgl_program *program, const mgl_cuda_addresses *addresses,
                           mgl_cuda_tables *out, mgl_error *err);
void mgl_cuda_tables_clear(mgl_cuda_tables *tables);

#endif
