/* embed, by the epilogue: a slice of each row's embedding. Operands embedding; y, copy. */
#include "vm/cuda/device/exchange.cuh"

static __device__ __forceinline__ void op_embed(machine &m)
{
    const mgl_device_operand &embedding = operand(m, 0);
    int width = operand(m, 1).count[1], half = (width + 1) / 2;
    u64 policy = keep_policy();
    for (int e = m.lane; e < rows_of(m) * half; e += 32) {
        int r = e / half, i = e % half * 2;
        bool both = i + 1 < width;
        long long token = own().table[r * MGL_TABLE_WORDS + MGL_TABLE_TOKEN];
        const u8 *from = (const u8 *)embedding.at;
        long long at = token * embedding.stride0 + i;
        float first = weight_format::load(from, at);
        float second = both ? weight_format::load(from, at + 1) : 0.0f;
        for (int o = 1; o <= task_of(m)->outputs; o++)
            store_pair(view_of(m, operand(m, o)), r, i, first, second, both, policy);
    }
}
