/*
 * Layout of keys and values in the ring (KV_RING): the positions on a page, and the pages of an
 * attention task. Used by the loader, the controller and the ring variant.
 */
#ifndef MGL_DEVICE_ATTENTION_KV_PAGES_CUH
#define MGL_DEVICE_ATTENTION_KV_PAGES_CUH

#include "vm/cuda/device/shared.cuh"

enum {
    KV_RING = MGL_KV_RING,               /* only with bulk copies */
    KV_SPAN = MGL_KV_SPAN(MGL_HEAD_DIM), /* positions that a warp attends to at once */
    /* positions whose keys, or whose values, fit on a page */
    PAGE_POSITIONS = MGL_KV_PAGE_POSITIONS(MGL_HEAD_DIM, MGL_PAGE),
    /* earlier positions that fit in registers; up to this number, no pages are used */
    KV_REGISTERS = MGL_KV_REGISTERS(MGL_HEAD_DIM, MGL_WARPS),
    POSITION_BYTES = MGL_HEAD_DIM * 2 /* bytes of a position's key, or of its value, in 16 bits */
};
static_assert(!KV_RING || PAGE_POSITIONS > 0,
              "a page has no room for what a warp attends to at once");

/* Pages of the ring for an attention to `stored` earlier positions. Pages of keys and pages of
 * values alternate. */
static __device__ __forceinline__ u32 kv_pages(u32 stored)
{
    return stored <= KV_REGISTERS
               ? 0
               : 2 * ((stored + PAGE_POSITIONS - 1) / max((int)PAGE_POSITIONS, 1));
}

#endif
