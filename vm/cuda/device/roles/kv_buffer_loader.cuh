/*
 * The epilogue warp in a task of attention of rows (attention/flash.cuh), where it has no partial
 * sums to add up: it is the producer of the KV buffers (attention/kv_buffers.cuh). It copies the
 * cached keys and values of the task's sequences into the buffers, unit after unit, as far ahead as
 * there are buffers. So the next unit's positions arrive while the warps finish the current unit.
 * If all rows are decode rows (attention/decode_row.cuh), KV buffers are not used.
 *
 * The copied positions were written in earlier epochs, by the queues that append. The controller
 * has acquired the task's counters, which follow all of those epochs, when it announces the task.
 * The epilogue acquires the announcement, and a fence.proxy.async in every copying lane makes the
 * stores visible to bulk copies, which use another proxy. Positions of this epoch's rows are not
 * copied. kv_buffer_full and kv_buffer_empty order the copies.
 */
#ifndef MGL_DEVICE_ROLES_KV_BUFFER_LOADER_CUH
#define MGL_DEVICE_ROLES_KV_BUFFER_LOADER_CUH

#include "vm/cuda/device/attention/decode_row.cuh"

#if MGL_PANELS

#if MGL_ATTEND_ROWS

/* Waits until a KV buffer is empty. Returns false if the loader, which keeps the deadline, has
 * given up. */
static __device__ __forceinline__ bool wait_kv_empty(u32 kv_index)
{
    u64 *empty = &own().kv_buffer_empty[kv_index % KV_BUFFER_SLOTS];
    while (!__all_sync(0xFFFFFFFFu, barrier_tested(empty, (kv_index / KV_BUFFER_SLOTS & 1) ^ 1)))
        if (__any_sync(0xFFFFFFFFu, own().lost))
            return false;
    return true;
}

/* Fills a KV buffer with `count` positions of a sequence from `from` on: one lane copies the keys,
 * another the values. */
static __device__ __forceinline__ void fill_kv_buffer(const machine &m, u32 kv_index, int sequence,
                                                      int from, int count, u64 policy)
{
    u64 *full = &own().kv_buffer_full[kv_index % KV_BUFFER_SLOTS];
    const u32 bytes = (u32)count * POSITION_BYTES;
    if (m.lane == 0)
        expect_bytes(full, 2 * bytes);
    __syncwarp();
    if (m.lane < 2)
        copy_piece(kv_buffer(kv_index, m.lane), cache_row(m.lane, sequence, from), bytes, full,
                   policy);
}

/* Fills the KV buffers of one unit. Returns false if the loader has given up. */
static __device__ __forceinline__ bool fill_unit(const machine &m, const flash_unit &u,
                                                 u32 &kv_index, u64 policy)
{
    const flash_reach reach = reach_of(u);
    const int past = reach.rows.past;
    for (int from = 0; from < past; from += KV_BUFFER_POSITIONS, kv_index++) {
        if (!wait_kv_empty(kv_index))
            return false;
        fill_kv_buffer(m, kv_index, reach.sequence, from,
                       min(past - from, (int)KV_BUFFER_POSITIONS), policy);
    }
    return true;
}

/* Fills all KV buffers of a task. Out of line, because it needs more registers than the epilogue.
 */
NEAR_OR_INLINE void load_kv_buffers(const machine m)
{
    const u64 policy = copy_policy();
    u32 kv_index = own().kv_buffer_next;
    int row, end;
    find_share(m, row, end);
    if (are_decode_rows(m, row, end) || !wait_switched())
        return;
    if (m.lane < 2) {
        fence_bulk_reads();
        fence_bulk_writes();
    }
    for (flash_unit u = unit_at_row(row, end); u.row < end; u = unit_behind(u, end))
        if (!fill_unit(m, u, kv_index, policy))
            break;
    __syncwarp();
    own().kv_buffer_next = kv_index; /* every lane stores, so each lane reads its own store later */
}

/* Waits until the copies in flight have landed, before the block leaves. */
static __device__ __forceinline__ void await_kv_buffers()
{
    const u32 end = own().kv_buffer_next;
    for (u32 i = end > KV_BUFFER_SLOTS ? end - KV_BUFFER_SLOTS : 0; i < end; i++)
        while (!barrier_passed(&own().kv_buffer_full[i % KV_BUFFER_SLOTS], i / KV_BUFFER_SLOTS & 1))
            ;
}

#else

/* For a kernel without that attention. */
static __device__ __forceinline__ void load_kv_buffers(const machine &) {}
static __device__ __forceinline__ void await_kv_buffers() {}

#endif

#endif

#endif
