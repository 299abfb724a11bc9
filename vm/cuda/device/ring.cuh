/*
 * The consumer side of the ring buffer in shared memory. Every warp visits the pages of the tape in
 * order: it waits until a page has landed (`full`), and frees the page when it needs it no more
 * (`empty`). A warp also frees pages that it does not read (roles/loader.cuh gives the reason).
 * Products and attention through the ring call these functions.
 */
#ifndef MGL_DEVICE_RING_CUH
#define MGL_DEVICE_RING_CUH

#include "vm/cuda/device/preissued.cuh"
#include "vm/cuda/device/trace.cuh"

static __device__ __forceinline__ u32 parity_of(u32 page)
{
    return page / MGL_RING & 1;
}

/* A page (counted over all epochs), its frame, and the parity of its phase of the frame's barriers.
 */
struct ring_place {
    u32 page, frame, parity;
};

static __device__ __forceinline__ void advance(ring_place &t)
{
    t.page++;
    if (++t.frame == MGL_RING) {
        t.frame = 0;
        t.parity ^= 1;
    }
}

enum { RING_BLOCKS = MGL_RING * PAGE_BLOCKS };

/* Saves and restores a consumer warp's position in the ring and in the partial-sum buffers between
 * tasks. In a program with two lists the position is in shared memory between tasks; otherwise the
 * compiler would keep it in local memory all the time. */
static __device__ __forceinline__ void load_ring_place(machine &m)
{
#if MGL_LISTS
    const u32 warp = thread_index() / 32;
    m.psums = own().psums_at[warp];
    m.known = own().landed_at[warp];
    m.freed = own().freed_at[warp];
#endif
}

static __device__ __forceinline__ void save_ring_place(const machine &m)
{
#if MGL_LISTS
    const u32 warp = thread_index() / 32; /* every lane stores, so each lane reads its own store
                                             later */
    own().psums_at[warp] = m.psums;
    own().landed_at[warp] = m.known;
    own().freed_at[warp] = m.freed;
#endif
}

/* Waits until all pages below `end` have landed. Called by the whole warp. The word of the landing
 * warp covers all pages at once. The lanes may read different values, so the minimum counts. If
 * that word is late, the warp tests the barriers of the pages. The loader keeps the deadline of
 * this wait (is_lost). */
static __device__ __forceinline__ void ring_wait(machine &m, u32 end)
{
    if ((int)(end - m.known) <= 0)
        return;
    m.known = max(m.known, __reduce_min_sync(0xFFFFFFFFu, load_shared_acquire(&own().landed)));
    for (; (int)(end - m.known) > 0; m.known++) {
        u64 *full = &own().full[m.known % MGL_RING];
        const u32 parity = parity_of(m.known), since = trace_clock();
        while (!barrier_passed(full, parity) && !own().lost)
            ;
        trace_starved(m, since);
        __syncwarp();
    }
}

/* Frees the pages below `page` for this warp. They have landed. */
static __device__ __forceinline__ void ring_free(machine &m, u32 page)
{
    if (page == m.freed)
        return;
    __syncwarp();
    for (u32 p = m.freed + m.lane; p < page; p += 32) {
        barrier_arrive(&own().empty[p % MGL_RING]);
        if (MGL_RING <= 32)
            break;
    }
    m.freed = page;
}

/* The same, after waiting for the pages that have not landed. */
static __device__ __forceinline__ void ring_done(machine &m, u32 page)
{
    while ((int)(page - m.freed) > 0) {
        ring_wait(m, m.freed + 1);
        ring_free(m, min(page, m.known));
    }
}

/* Called when the current task has its input. Its pages, those below `end`, are urgent from now on,
 * and no edge is waited for. */
static __device__ __forceinline__ void input_is_there(const machine &m, u32 end)
{
    if (thread_of(m) == 0) {
        own().demanded = end;
        own().pending = 0;
        trace_input_ahead(m);
    }
}

/* The place of a block of this epoch's tape in the ring, in blocks. */
static __device__ __forceinline__ u32 ring_spot(const machine &m, u32 block)
{
    return (m.base % MGL_RING * PAGE_BLOCKS + block) % RING_BLOCKS;
}

/* Wraps an offset in bytes, which is below twice the ring's size, into the ring. */
static __device__ __forceinline__ u32 within_ring(u32 at)
{
    const u32 bytes = MGL_RING * MGL_PAGE;
    return min(at, at - bytes); /* unsigned: the difference is huge if `at` is below `bytes` */
}

static __device__ __forceinline__ uint4 load_block(u32 spot, int lane)
{
    return ((const uint4 *)(ring_memory() + spot * MGL_BLOCK_BYTES))[lane];
}

#endif
