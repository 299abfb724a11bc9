/*
 * The epilogue in a task of attention of rows (attention/flash.cuh), which leaves no sums for it:
 * it copies what the cache has of the task's sequences into trays (attention/kv_buffers.cuh), unit
 * after unit, as far ahead as there are trays. So the next unit's positions come while the warps
 * end the one before. Where all rows are lone (attention/decode_row.cuh) there are no trays.
 *
 * What is copied was written in earlier epochs, by whichever queue appends: the controller has
 * acquired the task's counters, which come behind all of those epochs, when it makes the task
 * known; the epilogue acquires its word, and a fence in every lane that copies makes the stores
 * visible to bulk copies, which are another proxy. Of this epoch's rows nothing is copied.
 */
#ifndef MGL_DEVICE_ROLES_KV_BUFFER_LOADER_CUH
#define MGL_DEVICE_ROLES_KV_BUFFER_LOADER_CUH

#include "vm/cuda/device/attention/decode_row.cuh"

#if MGL_PANELS

#if MGL_ATTEND_ROWS

/* Waits until a tray is empty; false: the loader, which has a clock in its waits, has given up. */
static __device__ __forceinline__ bool wait_kv_empty(u32 act_tile)
{
    u64 *empty = &own().kv_buffer_empty[act_tile % KV_BUFFER_SLOTS];
    while (!__all_sync(0xFFFFFFFFu, barrier_tested(empty, (act_tile / KV_BUFFER_SLOTS & 1) ^ 1)))
        if (__any_sync(0xFFFFFFFFu, own().lost))
            return false;
    return true;
}

/* Fills a tray with `count` positions of a sequence from `from` on: a lane the keys, and one the
 * values. */
static __device__ __forceinline__ void fill_kv_buffer(const machine &m, u32 act_tile, int sequence,
                                                      int from, int count, u64 policy)
{
    u64 *full = &own().kv_buffer_full[act_tile % KV_BUFFER_SLOTS];
    const u32 bytes = (u32)count * POSITION_BYTES;
    if (m.lane == 0)
        expect_bytes(full, 2 * bytes);
    __syncwarp();
    if (m.lane < 2)
        copy_piece(kv_buffer(act_tile, m.lane), cache_row(m.lane, sequence, from), bytes, full,
                   policy);
}

/* The trays of one unit; false: the loader has given up. */
static __device__ __forceinline__ bool fill_unit(const machine &m, const flash_unit &u,
                                                 u32 &act_tile, u64 policy)
{
    const flash_reach reach = reach_of(u);
    const int past = reach.rows.past;
    for (int from = 0; from < past; from += KV_BUFFER_POSITIONS, act_tile++) {
        if (!wait_kv_empty(act_tile))
            return false;
        fill_kv_buffer(m, act_tile, reach.sequence, from,
                       min(past - from, (int)KV_BUFFER_POSITIONS), policy);
    }
    return true;
}

/* All trays of a task. Out of line: its registers are not those of the epilogue. */
NEAR_OR_INLINE void load_kv_buffers(const machine m)
{
    const u64 policy = copy_policy();
    u32 act_tile = own().kv_buffer_next;
    int row, end;
    find_share(m, row, end);
    if (are_decode_rows(m, row, end) || !wait_switched())
        return;
    if (m.lane < 2) {
        fence_bulk_reads();
        fence_bulk_writes();
    }
    for (flash_unit u = unit_at_row(row, end); u.row < end; u = unit_behind(u, end))
        if (!fill_unit(m, u, act_tile, policy))
            break;
    __syncwarp();
    own().kv_buffer_next = act_tile; /* every lane: whoever reads it next has written it */
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

/* Of a kernel without that attention. */
static __device__ __forceinline__ void load_kv_buffers(const machine &) {}
static __device__ __forceinline__ void await_kv_buffers() {}

#endif

#endif

#endif
