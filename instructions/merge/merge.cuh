/* merge: the weighted mean of all splits' partials, split 0 first. Operands part; y. */
#include "vm/cuda/device/attention.cuh"

static __device__ void op_merge(machine &m)
{
    const mgl_device_operand &part = operand(m, 0), &y = operand(m, 1);
    int width = y.count[1];
    for (int e = m.tid; e < rows_of(m) * width; e += THREADS) {
        int r = e / width, head = e % width / HEAD_DIM, d = e % HEAD_DIM;
        const float *from =
            (const float *)part.at + (long long)r * part.stride1 + (long long)head * part.stride2;
        float max, sum, value = merge_results(from, part.stride0, part.count[0], d, &max, &sum);
        row_of(y, r)[head * HEAD_DIM + d] = value / sum;
    }
}
