/* embed: a slice of each row's embedding, as f32. */
#include "vm/cuda/device/machine.cuh"

static __device__ void op_embed(machine &m)
{
    const mgl_device_operand &embedding = operand(m, 0), &y = operand(m, 1);
    int width = y.count[1];
    for (int e = m.tid; e < rows_of(m) * width; e += THREADS) {
        int r = e / width, i = e % width;
        long long token = m.s->table[r * MGL_TABLE_WORDS + MGL_TABLE_TOKEN];
        row_of(y, r)[i] =
            weight_format::load((const u8 *)embedding.at, token * embedding.stride0 + i);
    }
}
