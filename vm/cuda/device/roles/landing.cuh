/*
 * The landing warp: it waits for the pages of the ring in order and publishes in one word,
 * `landed`, how many have landed. All other warps read that word. The loader cannot do that itself,
 * because it must be faster than the stream when it catches up after a wait for an edge. Kernels
 * with panels use run_panel_landing instead (roles/panel_loader.cuh).
 */
#ifndef MGL_DEVICE_ROLES_LANDING_CUH
#define MGL_DEVICE_ROLES_LANDING_CUH

#include "vm/cuda/device/ring.cuh"

/* The landing warp's main function: publishes which pages have landed, until the block leaves. One
 * thread. */
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
