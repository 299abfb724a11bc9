/*
 * The consumers' side of the ring. Every warp goes through the pages of the tape in order: it waits
 * until they have landed, and says of each when it needs it no more. A page that a warp does not
 * need it lets go by the same way (roles/loader.cuh says why).
 */
#ifndef MGL_DEVICE_RING_CUH
#define MGL_DEVICE_RING_CUH

#include "vm/cuda/device/preissued.cuh"
#include "vm/cuda/device/trace.cuh"

static __device__ __forceinline__ u32 parity_of(u32 page)
{
    return page / MGL_RING & 1;
}

/* A page (counted over all epochs), its frame, and the parity of a barrier's phase that is its. */
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

/* Where a consumer warp stands in ring and slots, from task to task: beside a second list it is in
 * shared memory meanwhile, or the compiler would keep it in local memory at all times. */
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
    const u32 warp = thread_index() / 32; /* every lane: whoever reads it next has written it */
    own().psums_at[warp] = m.psums;
    own().landed_at[warp] = m.known;
    own().freed_at[warp] = m.freed;
#endif
}

/* Waits until all pages below `end` have landed; the whole warp. The landing warp's word tells of
 * all pages at once: the lanes may see different words, and what all have seen counts. Where that
 * is late, the pages' own barriers tell. The clock of this wait is the loader's (is_lost). */
static __device__ __forceinline__ void ring_wait(machine &m, u32 end)
{
    if ((int)(end - m.known) > 0)
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

/* This warp needs no page below `page` any more; they have landed. */
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

/* The same, waiting for those that have not. */
static __device__ __forceinline__ void ring_done(machine &m, u32 page)
{
    while ((int)(page - m.freed) > 0) {
        ring_wait(m, m.freed + 1);
        ring_free(m, min(page, m.known));
    }
}

/* The task at hand has its input: its pages, those below `end`, are urgent from now on, and no edge
 * is waited for. */
static __device__ __forceinline__ void input_is_there(const machine &m, u32 end)
{
    if (thread_of(m) == 0) {
        own().demanded = end;
        own().pending = 0;
        trace_input_ahead(m);
    }
}

/* Where a block of this epoch's tape is in the ring, in blocks. */
static __device__ __forceinline__ u32 ring_spot(const machine &m, u32 block)
{
    return (m.base % MGL_RING * PAGE_BLOCKS + block) % RING_BLOCKS;
}

/* Bytes from the ring's start, at most one ring too many. */
static __device__ __forceinline__ u32 within_ring(u32 at)
{
    const u32 bytes = MGL_RING * MGL_PAGE;
    return min(at, at - bytes); /* unsigned: the difference is huge where there is none */
}

static __device__ __forceinline__ uint4 load_block(u32 spot, int lane)
{
    return ((const uint4 *)(ring_memory() + spot * MGL_BLOCK_BYTES))[lane];
}

#endif
