/*
 * The landing warp: sees what lands in the ring, page after page, and says so in one word that all
 * others read. The loader can not do that itself: it has to be faster than the stream where what
 * waited for an edge catches up. With panels roles/panel_loader.cuh has one that does more.
 */
#ifndef MGL_DEVICE_ROLES_LANDING_CUH
#define MGL_DEVICE_ROLES_LANDING_CUH

#include "vm/cuda/device/ring.cuh"

/* The landing warp: says page after page what has landed, until the block leaves. One thread. */
static __device__ void run_landing(const machine &m)
{
    ring_place t = {};
    if (m.lane != 0)
        return;
    while (!own().stop) {
        if (!barrier_passed(&own().full[t.frame], t.parity))
            continue;
        advance(t);
        store_shared_release(&own().landed, t.page);
    }
}

#endif
