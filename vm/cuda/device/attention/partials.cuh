/*
 * Partials of attention's splits, as who merges them adds them up: `merge`, and products that merge
 * their input (linear/merged.cuh).
 */
#ifndef MGL_DEVICE_ATTENTION_PARTIALS_CUH
#define MGL_DEVICE_ATTENTION_PARTIALS_CUH

#include "vm/cuda/device/attention/operands.cuh"

enum {
    MERGES = MGL_MERGE_ADD, /* o merges: then some splits may be empty often */
    MERGE_AHEAD = 4         /* partials that a lane of merge asks for at once */
};

/* What is merged so far: four dimensions of the weighted sum and the sum, of this lane's splits,
 * and the maximum of all. */
struct merged {
    float max, sum, value[4];
};

/* Partials as they are in memory: four dimensions, and max and sum. */
template <int COUNT> struct part_words {
    uint4 value[COUNT], weight[COUNT];
};

/* What a partial relative to maximum `max` weighs, `top` being the largest: an empty one nothing.
 */
static __device__ __forceinline__ float part_weight(float max, float top)
{
    return max == -INFINITY ? 0.0f : power_of_2((max - top) * 1.4426950408889634f);
}

/* Adds partials, of which, and of what there is, `top` is the largest maximum. */
template <int COUNT>
static __device__ __forceinline__ void add_parts(merged &all, const part_words<COUNT> &parts,
                                                 float top)
{
    const float keep = part_weight(all.max, top);
    all.max = top;
    all.sum *= keep;
#pragma unroll
    for (int j = 0; j < 4; j++)
        all.value[j] *= keep;
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        const float weight = part_weight(__uint_as_float(parts.weight[i].x), top);
        float value[4];
        format<DTYPE_F32>::unpack(parts.value[i], value);
        all.sum = fmaf(__uint_as_float(parts.weight[i].y), weight, all.sum);
#pragma unroll
        for (int j = 0; j < 4; j++)
            all.value[j] = fmaf(value[j], weight, all.value[j]);
    }
}

#endif
