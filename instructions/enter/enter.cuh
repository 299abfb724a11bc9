/* enter: the block's copy of control and row table. What it finds there decides, behind the barrier
 * that ends the task, whether the block goes on. */
#include "vm/cuda/device/machine.cuh"

static __device__ void op_enter(machine &m)
{
    const int *control = (const int *)operand(m, 0).at, *table = (const int *)operand(m, 1).at;
    for (int i = m.tid; i < MGL_ROWS * MGL_TABLE_WORDS; i += THREADS)
        m.s->table[i] = table[i];
    for (int i = m.tid; i < MGL_CONTROL_WORDS; i += THREADS)
        m.s->control[i] = i == MGL_CONTROL_ROWS ? max(0, min(control[i], MGL_ROWS)) : control[i];
}
