/*
 * The consumers' side of the ring. A warp says from which page on it needs the ring (`done`), waits for
 * pages one after the other, and may leave some out, but never more than RING_STEP in a row without
 * having seen one of them land (device/copy.cuh says why).
 */
#ifndef MGL_DEVICE_RING_CUH
#define MGL_DEVICE_RING_CUH

#include "vm/cuda/device/copy.cuh"

enum { RING_STEP = MGL_RING - MGL_FLIGHT };
static_assert(RING_STEP >= 1, "fewer pages may be in flight than the ring has");

/* Waits until page `page` (counted over all epochs) has landed; the whole warp. */
static __device__ __forceinline__ void ring_wait(machine &m, u32 page)
{
    if (page < m.known)
        return;
    u64 *full = &own().full[page % MGL_RING];
    u32 parity = parity_of(page);
    if (!barrier_tested(full, parity)) {
        u64 since = 0;
#if MGL_TRACE
        u32 start = time_ns();
#endif
        for (u32 n = 1; !barrier_passed(full, parity); n++)
            if (n % RING_POLLS == 0 &&
                !(since = look_at_clock(m.launch, since, MGL_REPORT_RING, task_of(m)->task, m.epoch,
                                        page, page + 1, m.known)))
                break;
#if MGL_TRACE
        m.starved += time_ns() - start;
#endif
    }
    m.known = page + 1;
    __syncwarp();
}

static __device__ __forceinline__ void ring_say(const machine &m, u32 page)
{
    __syncwarp();
    if (m.lane == 0)
        store_shared_release(&own().done[m.warp], page);
}

/* This warp needs no page below `page` any more (counted over all epochs), and `page` next. */
static __device__ __forceinline__ void ring_done(machine &m, u32 page)
{
    while ((int)(page - m.known) >= RING_STEP) {
        ring_wait(m, m.known + RING_STEP - 1);
        ring_say(m, m.known);
    }
    ring_say(m, page);
}

/* Where block `block` of a page is in the ring. */
static __device__ __forceinline__ const u8 *ring_at(const machine &m, u32 page, u32 block)
{
    return ring_memory() + page % MGL_RING * MGL_PAGE + block * BLOCK_BYTES;
}

#endif
