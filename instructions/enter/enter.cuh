/* enter, run by the controller: copies control and the row table for the block. Control decides
 * whether the block continues. */
#include "vm/cuda/device/flags.cuh"
#include "vm/cuda/device/ops.cuh"

/* Whether the epoch runs the second list. */
static __device__ __forceinline__ bool is_of_second(const machine &m)
{
#if MGL_LISTS
    return m.list != 0;
#else
    return false;
#endif
}

#if MGL_LISTS

/* Copies the row table of up to ROWS rows; all loads are issued at once. */
template <int ROWS>
static __device__ __forceinline__ void take_table(const machine &m, const int *table)
{
    enum { WORDS = ROWS * MGL_TABLE_WORDS, LOADS = (WORDS + 31) / 32 };
    int words[LOADS];
#pragma unroll
    for (int i = 0; i < LOADS; i++)
        words[i] = m.lane + 32 * i < WORDS ? table[m.lane + 32 * i] : 0;
#pragma unroll
    for (int i = 0; i < LOADS; i++)
        if (m.lane + 32 * i < WORDS)
            own().table[m.lane + 32 * i] = words[i];
}

/* Number of mask bits below this lane's bit. */
static __device__ __forceinline__ int count_below(const machine &m, u32 mask)
{
    return __popc(mask & ((1u << m.lane) - 1));
}

/* Lists the rows that want logits, one row a lane, and the tiles that contain such rows. */
static __device__ __forceinline__ void list_wanted(const machine &m)
{
    int rows = 0, tiles = 0;
    for (int first = 0; first < rows_of(m); first += 32) {
        const int row = first + m.lane;
        const bool wants = row < rows_of(m) && wants_logits(row);
        const u32 mask = __ballot_sync(0xFFFFFFFFu, wants);
        if (wants)
            own().wanted[rows + count_below(m, mask)] = row;
        rows += __popc(mask);
#if MGL_PANELS
        const bool has = m.lane < 32 / PANEL_TILE && (mask >> m.lane * PANEL_TILE & 0xFF) != 0;
        const u32 with = __ballot_sync(0xFFFFFFFFu, has);
        if (has)
            own().tiles[tiles + count_below(m, with)] = first / PANEL_TILE + m.lane;
        tiles += __popc(with);
#endif
    }
    __syncwarp();
    if (is_first_lane()) {
        own().wanted_count = rows;
#if MGL_PANELS
        own().tile_count = tiles;
#endif
    }
}

#endif

/* Copies control and the row table, and lists the rows that want logits. */
static __device__ __forceinline__ void take_rows(const machine &m)
{
    const int *control = (const int *)operand(m, MGL_OPERAND(enter, control)).at,
              *table = (const int *)operand(m, MGL_OPERAND(enter, table)).at;
#if MGL_LISTS
    if (is_of_second(m))
        take_table<MGL_ROWS>(m, table);
    else
        take_table<MGL_FEW>(m, table);
    const int most = control[MGL_CONTROL_LIST] ? MGL_ROWS : MGL_FEW;
#else
    for (int i = m.lane; i < MGL_ROWS * MGL_TABLE_WORDS; i += 32)
        own().table[i] = table[i];
    const int most = MGL_ROWS;
#endif
    for (int i = m.lane; i < MGL_CONTROL_WORDS; i += 32)
        own().control[i] = i == MGL_CONTROL_ROWS ? max(0, min(control[i], most)) : control[i];
    __syncwarp();
#if MGL_LISTS
    list_wanted(m);
#else
    if (is_first_lane()) {
        int count = 0;
        for (int r = 0; r < rows_of(m); r++)
            if (wants_logits(r))
                own().wanted[count++] = r;
        own().wanted_count = count;
    }
#endif
    __syncwarp();
}

/* Announces to the loader that an epoch of the first list has begun: it may read cached
 * positions before the epoch's row. kv_first holds the position minus the epoch number, which is
 * the same for consecutive epochs, because the loader may read it after the next epoch has
 * begun. */
static __device__ __forceinline__ void announce_epoch(const machine &m)
{
    __syncwarp();
    if (!KV_RING || !is_first_lane() || !own().control[MGL_CONTROL_GO] || is_of_second(m))
        return;
    own().kv_first = (u32)own().table[MGL_TABLE_POSITION] - m.epoch;
    store_shared_release(&own().entered, m.epoch + 1);
}

static __device__ __forceinline__ void do_enter(machine &m)
{
    take_rows(m);
    if (MGL_UNSPLIT > 0)
        own().rows_kinds = kinds_of_rows(m); /* every lane stores the same value */
    announce_epoch(m);
}
