/*
 * The consumers' side of the ring. Every warp goes through all pages of the tape in order: it waits
 * for each to land, reads what it needs, and releases it, pages without a byte for it included. A
 * warp that skipped a page's `full` could arrive twice in one phase of `empty`.
 */
#ifndef MGL_DEVICE_RING_CUH
#define MGL_DEVICE_RING_CUH

#include "vm/cuda/device/copy.cuh"

/* Waits until m.page has landed; the whole warp. */
static __device__ __forceinline__ void ring_wait(machine &m)
{
    u64 *full = &m.s->full[m.page % MGL_RING];
    u32 parity = parity_of(m.page);
    u64 since = 0;
    bool ok = true;
    for (u32 n = 1; ok && !barrier_passed(full, parity); n++)
        if (n % RING_POLLS == 0)
            ok = !must_give_up(m.launch, &since, MGL_REPORT_RING, m.task->task, m.epoch, m.page,
                               parity, !parity);
    if (!__all_sync(0xFFFFFFFFu, ok))
        m.s->dead = m.dead = 1;
    m.landed = 1;
}

/* Makes `page` (of this epoch) the one at hand: releases all before it. */
static __device__ __forceinline__ void ring_seek(machine &m, u32 page)
{
    u32 target = m.base + page;
    while (m.page != target && !m.dead) {
        if (!m.landed)
            ring_wait(m);
        __syncwarp();
        if (m.lane == 0 && !m.dead)
            barrier_arrive(&m.s->empty[m.page % MGL_RING]);
        m.page++;
        m.landed = 0;
    }
}

/* Where this lane's 16 bytes of block `block` of this epoch's tape are, once they have landed. */
static __device__ __forceinline__ const uint4 *ring_at(machine &m, u32 block)
{
    u32 page = block / PAGE_BLOCKS;
    ring_seek(m, page);
    if (!m.landed && !m.dead)
        ring_wait(m);
    const u8 *slot = m.ring + (size_t)((m.base + page) % MGL_RING) * MGL_PAGE;
    return (const uint4 *)(slot + (block % PAGE_BLOCKS) * BLOCK_BYTES) + m.lane;
}

#endif
