/* enter, by the controller: the block's copy of control and row table. What it finds there decides
 * whether the block goes on. */
#include "vm/cuda/device/flags.cuh"
#include "vm/cuda/device/ops.cuh"

/* Copies control and row table, and lists the rows that want logits. */
static __device__ __forceinline__ void take_rows(const machine &m)
{
    const int *control = (const int *)operand(m, MGL_OPERAND(enter, control)).at,
              *table = (const int *)operand(m, MGL_OPERAND(enter, table)).at;
    for (int i = m.lane; i < MGL_ROWS * MGL_TABLE_WORDS; i += 32)
        own().table[i] = table[i];
#if MGL_LISTS
    const int most = control[MGL_CONTROL_LIST] ? MGL_ROWS : MGL_FEW;
#else
    const int most = MGL_ROWS;
#endif
    for (int i = m.lane; i < MGL_CONTROL_WORDS; i += 32)
        own().control[i] = i == MGL_CONTROL_ROWS ? max(0, min(control[i], most)) : control[i];
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

/* Tells the loader that an epoch has begun: what is in the cache before its row may be read. Where
 * that stands is the same word in each epoch, since the loader may look at it when another one has
 * begun. */
static __device__ __forceinline__ void announce_epoch(const machine &m)
{
    __syncwarp();
    if (!KV_RING || !is_first_lane() || !own().control[MGL_CONTROL_GO])
        return;
    own().kv_first = (u32)own().table[MGL_TABLE_POSITION] - m.epoch;
    store_shared_release(&own().entered, m.epoch + 1);
}

static __device__ __forceinline__ void do_enter(machine &m)
{
    take_rows(m);
    announce_epoch(m);
}
