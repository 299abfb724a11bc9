/*
 * Merge of the partial softmaxes of attention's splits (split-KV attention, "flash decoding"): the
 * arithmetic that `merge` and products that merge their input (linear/merged.cuh) share.
 */
#ifndef MGL_DEVICE_ATTENTION_PARTIALS_CUH
#define MGL_DEVICE_ATTENTION_PARTIALS_CUH

#include "vm/cuda/device/attention/operands.cuh"

enum {
    MERGES = MGL_MERGE_ADD, /* o merges: then splits are often empty */
    MERGE_AHEAD = 4         /* partials that a lane of merge loads at once */
};

/* The merged result so far: four dimensions of each block of the weighted sum, and the sum, of this
 * lane's splits; and the maximum of all. */
template <int BLOCKS> struct merged_blocks {
    float max, sum, value[BLOCKS][4];
};
typedef merged_blocks<1> merged;

/* Partials as they are in memory: four dimensions of each block; maximum and sum in `weight`. */
template <int COUNT, int BLOCKS = 1> struct part_words {
    uint4 value[COUNT][BLOCKS], weight[COUNT];
};

/* The factor of a partial relative to maximum `max`, `top` being the largest maximum. An empty
 * partial has factor 0. */
static __device__ __forceinline__ float part_weight(float max, float top)
{
    return max == -INFINITY ? 0.0f : power_of_2((max - top) * 1.4426950408889634f);
}

/* Adds partials. `top` is the largest maximum of these partials and of the result so far. */
template <int COUNT, int BLOCKS>
static __device__ __forceinline__ void add_parts(merged_blocks<BLOCKS> &all,
                                                 const part_words<COUNT, BLOCKS> &parts, float top)
{
    const float keep = part_weight(all.max, top);
    all.max = top;
    all.sum *= keep;
#pragma unroll
    for (int j = 0; j < 4 * BLOCKS; j++)
        all.value[j / 4][j % 4] *= keep;
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        const float weight = part_weight(__uint_as_float(parts.weight[i].x), top);
        all.sum = fmaf(__uint_as_float(parts.weight[i].y), weight, all.sum);
#pragma unroll
        for (int b = 0; b < BLOCKS; b++) {
            float value[4];
            format<DTYPE_F32>::unpack(parts.value[i][b], value);
#pragma unroll
            for (int j = 0; j < 4; j++)
                all.value[b][j] = fmaf(value[j], weight, all.value[b][j]);
        }
    }
}

#endif
