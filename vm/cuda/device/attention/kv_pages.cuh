/*
 * Pages of keys and values in the ring (KV_RING): how many positions a page has, and how many pages
 * an attention takes.
 */
#ifndef MGL_DEVICE_ATTENTION_KV_PAGES_CUH
#define MGL_DEVICE_ATTENTION_KV_PAGES_CUH

#include "vm/cuda/device/shared.cuh"

/* Keys and values in the ring. */
enum {
    KV_RING = MGL_KV_RING,               /* only where there are bulk copies */
    KV_SPAN = MGL_KV_SPAN(MGL_HEAD_DIM), /* positions that a warp attends to at once, */
    KV_PAGE =
        MGL_KV_PAGE(MGL_HEAD_DIM, MGL_PAGE), /* that a page has the keys, or the values, of, */
    KV_REGISTERS = MGL_KV_REGISTERS(MGL_HEAD_DIM,
                                    MGL_WARPS), /* and up to which registers have room for them */
    KV_ROW = MGL_HEAD_DIM * 2                   /* bytes of a position */
};
static_assert(!KV_RING || KV_PAGE > 0, "a page has no room for what a warp attends to at once");

/* Pages of the ring for an attention to so many earlier positions: of keys and of values in turn.
 */
static __device__ __forceinline__ u32 kv_pages(u32 stored)
{
    return stored <= KV_REGISTERS ? 0 : 2 * ((stored + KV_PAGE - 1) / max((int)KV_PAGE, 1));
}

#endif
