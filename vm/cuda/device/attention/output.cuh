/*
 * The destination of the result of a row and head: attention's output, or a split's partial
 * (weighted sum, maximum, sum) for merge. The variants call output_of and store_result.
 */
#ifndef MGL_DEVICE_ATTENTION_OUTPUT_CUH
#define MGL_DEVICE_ATTENTION_OUTPUT_CUH

#include "vm/cuda/device/attention/operands.cuh"

/* The destination of the result of one row and head. */
struct head_output {
    view y;          /* attention's output, which gets the mean: the view, */
    int row, column; /* the row, and the head's first column */
    float *part;     /* if not NULL, the partial, which gets the result unscaled: (head_dim + 2
                        or + 4) */
    bool flag;       /* the partial is flagged */
    bool padded;     /* the partial has head_dim + 4 words */
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

/* Stores elements d and d + 1 of a result. Of a partial, the call with d = 0 also stores the words
 * after the last dimension: maximum, sum and padding. */
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
