/*
 * Scaled weights of panels (panels.cuh), for warp teams and warpgroups. A block of the tape has
 * several parts of 32 columns (linear/formats.cuh). One part is multiplied by one k block of
 * activations. Each part is dequantized to 16 bits in registers: (code - zero) * scale, rounded
 * once. Scales are read from the tape in global memory. Row factors multiply the sums of a panel.
 */
#ifndef MGL_DEVICE_LINEAR_PANEL_WEIGHTS_CUH
#define MGL_DEVICE_LINEAR_PANEL_WEIGHTS_CUH

#include "vm/cuda/device/linear/panels.cuh"
#include "vm/cuda/device/linear/scaled.cuh"

#if MGL_PANELS

/* The unscaled format, in place of a scaled_format. */
struct unscaled_weights {
    enum { PARTS = 1, ON_TAPE = 0, HAS_FACTORS = 0 };
};

#if MGL_SCALED

/* The scales of the current task for this lane: of its row, lane / 4, of each row group. */
struct weight_scales {
    const u8 *at; /* the scales of row group 0 of the task */
    u32 stride;   /* bytes from one row group to the next */
    int groups;   /* groups of a row */
    mgl_tape_order order;
};

template <class F>
static __device__ __forceinline__ weight_scales weight_scales_of(const machine &m)
{
    const mgl_device_queue &queue =
        ((const mgl_device_queue *)own().launch.queues)[blockIdx.x * LISTS];
    const mgl_device_segment &seg = segment(m, 0);
    return {(const u8 *)queue.tape + (size_t)seg.block * MGL_BLOCK_BYTES,
            (u32)(F::scale_blocks(seg.columns) + seg.kblocks) * MGL_BLOCK_BYTES,
            F::groups(seg.columns), mgl_tape_order_of(seg.kblocks, MGL_WARPS)};
}

/* Computes mgl_tape_block_at with fewer instructions. */
static __device__ __forceinline__ int block_at(const mgl_tape_order &p, int place)
{
    const int full = p.of_last * p.warps, behind = place - full;
    const int warps = behind < 0 ? p.warps : p.warps - 1, from = behind < 0 ? place : behind;
    const int row = small_quotient(from, warps);
    return (from - row * warps) * p.run + row + (behind < 0 ? 0 : p.of_last);
}

/* Reads the scales of the k block with number `block` in the order of the tape, for GROUPS row
 * groups from `first` on; row groups from `end` on repeat the last one. */
template <class F, int GROUPS>
static __device__ __forceinline__ void ask_scales(const weight_scales &s, int block, int first,
                                                  int end, group_scale (&to)[GROUPS])
{
    const int part = block_at(s.order, block / F::PARTS) * F::PARTS + block % F::PARTS;
    const int column = part * MGL_PART_COLUMNS + (lane_now() & 3) * 8;
    const int group = min(F::GROUP_COLUMNS ? column / max(F::GROUP_COLUMNS, 1) : 0, s.groups - 1);
#pragma unroll
    for (int g = 0; g < GROUPS; g++) {
        const u8 *scales = s.at + (size_t)(u32)min(first + g, end - 1) * s.stride;
        to[g] = read_scale_at<F>([&](int offset) { return scales + offset; }, s.groups, group,
                                 lane_now() >> 2);
    }
}

/* Dequantizes part `part` of this lane's 16 bytes `codes` of a block. The words of the result are
 * columns 0 and 1, 2 and 3, 4 and 5, 6 and 7 of the lane's quarter. */
template <class F>
static __device__ __forceinline__ uint4 dequantized(const u8 *codes, int part, group_scale of)
{
    const u32 *words = (const u32 *)codes + part * (4 / F::PARTS);
    const uint4 raw = make_uint4(words[0], F::FOUR_BITS ? 0 : words[4 / F::PARTS - 1], 0, 0);
    return F::template rounded<MGL_WEIGHT>(F::decode(raw, 0), of);
}

/* The row factors of this lane's row, lane / 4, of each row group from number `group` of the task
 * on. */
template <int GROUPS>
static __device__ __forceinline__ void ask_factors(const machine &m, int group,
                                                   float (&factor)[GROUPS])
{
#pragma unroll
    for (int g = 0; g < GROUPS; g++) {
        const int number = group + g, row = lane_now() >> 2;
        factor[g] = task_of(m)->op == OP_RMS_SWIGLU
                        ? factor_of_pair(m, number % 2, number / 2 * MGL_ROW_GROUP + row)
                        : factor_of(m, number * MGL_ROW_GROUP + row);
    }
}

#endif

#endif

#endif
