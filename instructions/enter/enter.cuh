/* enter, by the director: the block's copy of control and row table. What it finds there decides
 * whether the block goes on. */
#include "vm/cuda/device/machine.cuh"

static __device__ __forceinline__ void op_enter(machine &m)
{
    const int *control = (const int *)operand(m, 0).at, *table = (const int *)operand(m, 1).at;
    for (int i = m.lane; i < MGL_ROWS * MGL_TABLE_WORDS; i += 32)
        own().table[i] = table[i];
    for (int i = m.lane; i < MGL_CONTROL_WORDS; i += 32)
        own().control[i] = i == MGL_CONTROL_ROWS ? max(0, min(control[i], MGL_ROWS)) : control[i];
    __syncwarp();
    if (is_first_lane()) {
        int count = 0;
        for (int r = 0; r < rows_of(m); r++)
            if (own().table[r * MGL_TABLE_WORDS + MGL_TABLE_WANT] != MGL_WANT_NOTHING)
                own().wanted[count++] = r;
        own().wanted_count = count;
    }
    __syncwarp();
}
