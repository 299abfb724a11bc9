/*
 * Where the result of a row and head goes: attention's output, or a split's partial for merge.
 */
#ifndef MGL_DEVICE_ATTENTION_OUTPUT_CUH
#define MGL_DEVICE_ATTENTION_OUTPUT_CUH

#include "vm/cuda/device/attention/operands.cuh"

/* Where the result of one row and head goes. */
struct head_output {
    view y;          /* the mean: attention's output, */
    int row, column; /* its row, and the head's first column */
    float *part;     /* or, if not NULL, the partial as it is: (head_dim + 2 or + 4) */
    bool flag;       /* of the partial */
    bool padded;     /* it is head_dim + 4 */
};

static __device__ __forceinline__ head_output output_of(const machine &m, int r, int head)
{
    const attention &a = own().att;
    head_output to = {a.y, r, head * HEAD_DIM, NULL, false, false};
    if (a.part) {
        const mgl_device_operand &part = operand(m, a.part);
        to.part = (float *)address_of(m, part) + (long long)r * part.stride1 +
                  (long long)head * part.stride2;
        to.flag = part.flag;
        to.padded = part.stride2 == HEAD_DIM + 4;
    }
    return to;
}

static __device__ __forceinline__ void store_floats(const head_output &to, int d, float first,
                                                    float second, u64 policy)
{
    if (to.flag) {
        store_two_words(to.part + d, flag_bits(first), flag_bits(second), policy);
    } else {
        to.part[d] = first;
        to.part[d + 1] = second;
    }
}

/* Elements d and d + 1 of a result; with the first two goes what stands behind the last two. */
static __device__ __forceinline__ void store_result(const head_output &to, int d, float2 value,
                                                    float max, float sum, u64 policy)
{
    if (!to.part) {
        float inverse = reciprocal(sum);
        store_pair(to.y, to.row, to.column + d, value.x * inverse, value.y * inverse, true, policy);
        return;
    }
    store_floats(to, d, value.x, value.y, policy);
    if (d == 0)
        store_floats(to, HEAD_DIM, max, sum, policy);
    if (d == 0 && to.padded)
        store_floats(to, HEAD_DIM + 2, 0.0f, 0.0f, policy);
}

#endif
