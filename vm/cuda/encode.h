/* Programs as the kernel reads them: see device/record.h. */
#ifndef MGL_VM_CUDA_ENCODE_H
#define MGL_VM_CUDA_ENCODE_H

#include "schedule/program.h"
#include "vm/cuda/device/record.h"

/* Rows of a second list whose products are no panels. Panels have as many as their needs have room
 * for (schedule/variants.def). */
enum { MGL_CUDA_MOST_SECOND = MGL_MAX_ROWS };

/* Task lists of a program. */
static inline int mgl_cuda_lists(const mgl_program *program)
{
    return program->many ? 2 : 1;
}

/* Where the program's memory is on the device. */
typedef struct mgl_cuda_addresses {
    const uint64_t *buffers; /* (buffer_count) of both lists */
    const uint64_t *tapes;   /* (queue_count) */
    bool kv_ring;            /* mgl_cuda_streams_kv */
} mgl_cuda_addresses;

/* Release with mgl_cuda_tables_clear. */
typedef struct mgl_cuda_tables {
    unsigned char *records;
    size_t record_bytes;
    mgl_device_queue *queues; /* (queue_entries): of each queue one for each list */
    int queue_entries;
} mgl_cuda_tables;

/* Whether this machine can run the program: limits of the kernel, and
 * the shapes that the kernel takes for granted, so that a program that was never validated can not
 * make it leave its memory in an op either. MGL_BAD_INPUT with the task. */
mgl_status mgl_cuda_check_program(const mgl_program *program, mgl_error *err);

/* The part of it that tasks do not matter to, of one list. */
mgl_status mgl_cuda_check_limits(const mgl_program *program, mgl_error *err);

/* Whether the second list's products take all of each tape in its order, as the loader copies it;
 * MGL_BAD_INPUT with the queue. */
mgl_status mgl_cuda_check_order(const mgl_program *program, mgl_error *err);

/* Whole pages of so many bytes, at least one of something; and of a ring, which keeps room for one
 * more. */
uint32_t mgl_cuda_pages(const mgl_program *program, int bytes);
uint32_t mgl_cuda_ring_pages(const mgl_program *program, int bytes);

/* The variants that tasks of a family name, a bit each (1 << mgl_variant), which the kernel is
 * compiled with; not those that the architecture ("sm_90a", "compute_80") does not have. */
uint32_t mgl_cuda_variants(const mgl_program *program, mgl_family family, const char *arch);

/* MGL_BAD_INPUT: the program, made for a newer one, names a variant that this architecture does not
 * have. */
mgl_status mgl_cuda_check_arch(const mgl_program *program, const char *arch, mgl_error *err);

/* Whether products merge splits as they read them (MGL_MERGE_ADD). */
bool mgl_cuda_has_merges(const mgl_program *program);
/* Whether tasks draw tokens (MGL_DRAWS). */
bool mgl_cuda_has_draws(const mgl_program *program);
/* Whether products add biases (MGL_BIAS), and attention norms q and k (MGL_QK_NORM). */
bool mgl_cuda_has_biases(const mgl_program *program);
bool mgl_cuda_has_norms(const mgl_program *program);

/* Whether attention has its keys and values from the ring (MGL_KV_RING): its variant is `ring`, and
 * the architecture ("sm_90a", "compute_80") has bulk copies. */
bool mgl_cuda_streams_kv(const mgl_program *program, const char *arch);

/* Whether the chunks of a position stand in the cache as mgl_kv_chunk (schedule/variant_shapes.h)
 * has them.
 */
bool mgl_cuda_swizzles_kv(const mgl_program *program, const char *arch);

/* Bytes of a task's record, at most, without a `clear` behind it. */
size_t mgl_cuda_record_bytes(const mgl_task *task);

/* What a `clear` has to reset, without its address, and from which byte of the buffer on: at most
 * one dimension in front of the rows, one run of bytes behind them. False: it is not of that kind,
 * or too large. */
bool mgl_cuda_find_clear(const mgl_program *program, const mgl_region *region,
                         mgl_device_clear *out, int64_t *first);

/* Encodes a program that mgl_cuda_check_program accepts. */
mgl_status mgl_cuda_encode(const mgl_program *program, const mgl_cuda_addresses *addresses,
                           mgl_cuda_tables *out, mgl_error *err);
void mgl_cuda_tables_clear(mgl_cuda_tables *tables);

#endif
