/*
 * Accessors of the current task's record in shared memory: operands, segments, biases and rows. All
 * roles and ops use them.
 */
#ifndef MGL_DEVICE_TASK_CUH
#define MGL_DEVICE_TASK_CUH

#include "vm/cuda/device/shared.cuh"

static __device__ __forceinline__ const mgl_record *task_of(const machine &m)
{
    return (const mgl_record *)own().record[m.record];
}

/* The weight format of the task, a product: 0, or the number of a scaled format. */
static __device__ __forceinline__ int format_of(const machine &m)
{
    return MGL_SCALED ? (int)task_of(m)->format : 0;
}

/* Operand MGL_OPERAND(op, name) of the task. */
static __device__ __forceinline__ const mgl_device_operand &operand(const machine &m, int i)
{
    return ((const mgl_device_operand *)(task_of(m) + 1))[i];
}

static __device__ __forceinline__ const mgl_device_segment &segment(const machine &m, int i)
{
    return ((const mgl_device_segment *)((const u8 *)task_of(m) + task_of(m)->segment_at))[i];
}

/* Bias i of the task, a product with biases. */
static __device__ __forceinline__ const mgl_device_vector &bias(const machine &m, int i)
{
    const mgl_record *r = task_of(m);
    const u32 at = r->segment_at + r->segments * (u32)sizeof(mgl_device_segment);
    return ((const mgl_device_vector *)((const u8 *)r + (at + 15) / 16 * 16))[i];
}

/* The row factors of tensor i of the task, a product of weights with row factors. */
static __device__ __forceinline__ const mgl_device_vector &row_factors(const machine &m, int i)
{
    return bias(m, task_of(m)->biases + i);
}

/* The column map of the task, a product of scaled weights without row factors; NULL: none. */
static __device__ __forceinline__ const int *map_of_columns(const machine &m)
{
    return (const int *)bias(m, task_of(m)->biases).at;
}

/* The number of the set that an epoch uses, of `sets`. */
static __device__ __forceinline__ u32 set_of(u32 epoch, u32 sets)
{
    return sets == 2 ? epoch & 1 : sets == 1 ? 0 : epoch % sets;
}

/* The address of a region's first element, in the set of this epoch. */
static __device__ __forceinline__ u8 *address_of(const machine &m, const mgl_device_operand &o)
{
    return (u8 *)o.at + set_of(m.epoch, o.sets) * o.set_bytes;
}

static __device__ __forceinline__ int rows_of(const machine &m)
{
    return own().control[MGL_CONTROL_ROWS];
}

#if MGL_PANELS
/* Row capacity of a k block of paged activations in this epoch. */
static __device__ __forceinline__ int page_rows(const machine &m)
{
    return mgl_page_rows(MGL_ROWS, rows_of(m));
}
#endif

static __device__ __forceinline__ view view_of(const machine &m, const mgl_device_operand &o)
{
    view v = {address_of(m, o), o.stride0 * (o.dtype == 0 ? 4 : 2), o.dtype, o.flag != 0};
#if VIEWS_PAGED
    v.paged = o.paged != 0;
    v.first = o.first1;
    v.columns = (int)o.stride0;
    v.rows = page_rows(m);
#endif
    return v;
}

/* A view of a buffer with COLUMNS columns, if the buffer is paged (mgl_cuda_check_program). The
 * compiler then knows the column count. */
template <int COLUMNS>
static __device__ __forceinline__ paged_view paged_view_of(const machine &m,
                                                           const mgl_device_operand &o)
{
#if VIEWS_PAGED
    paged_view v = view_of(m, o);
    v.columns = COLUMNS;
    return v;
#else
    return {view_of(m, o), o.paged != 0, o.first1, COLUMNS, page_rows(m)};
#endif
}

/* Row r of a (rows, columns) region of 32-bit elements, from the first column of the region. */
static __device__ __forceinline__ float *row_of(const mgl_device_operand &o, int r)
{
    return (float *)o.at + r * o.stride0;
}

/* Whether a row of the epoch wants logits. */
static __device__ __forceinline__ bool wants_logits(int row)
{
    return own().table[row * MGL_TABLE_WORDS + MGL_TABLE_WANT] != MGL_WANT_NOTHING;
}

#endif
