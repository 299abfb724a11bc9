/* merge: the weighted mean of all splits' partials, split 0 first. Operands part; y. */
#include "vm/cuda/device/attention.cuh"

/* Waits until all words of the region are written. */
static __device__ void await_part(const machine &m, const mgl_device_operand &part, u64 policy)
{
    int words = part.count[2] * (HEAD_DIM + 4) / 4; /* of 16 bytes, of a split and row */
    int rows = rows_of(m);
    for (int e = m.tid; e < part.count[0] * rows * words; e += THREADS) {
        const float *from = (const float *)address_of(m, part) + e / words / rows * part.stride0 +
                            (long long)(e / words % rows) * part.stride1;
        poll_words(m, (const uint4 *)from + e % words, 0, policy);
    }
    consumer_barrier();
}

static __device__ __forceinline__ void consume_merge(machine &m)
{
    const mgl_device_operand &part = operand(m, 0);
    const view y = view_of(m, operand(m, 1));
    int half = operand(m, 1).count[1] / 2;
    u64 policy = keep_policy();
    if (part.flag)
        await_part(m, part, policy);
    for (int e = m.tid; e < rows_of(m) * half; e += THREADS) {
        int r = e / half, column = e % half * 2, head = column / HEAD_DIM, d = column % HEAD_DIM;
        const float *from = (const float *)address_of(m, part) + (long long)r * part.stride1 +
                            (long long)head * part.stride2;
        float max, sum;
        float2 value = merge_results(from, part.stride0, part.count[0], d, part.flag, &max, &sum);
        store_pair(y, r, column, value.x / sum, value.y / sum, true, policy);
    }
}
