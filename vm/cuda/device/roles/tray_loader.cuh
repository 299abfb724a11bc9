/*
 * The epilogue in a task with panels (linear/panels.cuh), which leaves no sums for it: it copies
 * the task's activations into trays, panel after panel, in the order in which the tape has their
 * weights.
 *
 * Activations are what other queues wrote: the controller has acquired the task's counters when it
 * makes the task known, the epilogue acquires its word, and a fence in every lane that copies makes
 * what was stored visible to bulk copies, which are another proxy. Of a k block no more rows are
 * copied than the epoch has.
 *
 * The head has logits of the rows that want them. Of its activations the tiles of PANEL_TILE rows
 * are copied that have such a row, one tile behind the other; and where no row wants logits, none
 * are.
 *
 * Each lane copies every 32nd k block, so that a tray's copies begin together.
 */
#ifndef MGL_DEVICE_ROLES_TRAY_LOADER_CUH
#define MGL_DEVICE_ROLES_TRAY_LOADER_CUH

#include "vm/cuda/device/linear/panel_ops.cuh"
#include "vm/cuda/device/roles/kv_tray_loader.cuh"

#if MGL_PANELS

enum { TILE_BYTES = PANEL_TILE * MGL_PANEL_ROW_BYTES }; /* of a k block */
static_assert(MGL_PANEL_MOST_BLOCKS == 32 && 32 % TRAY_BLOCKS == 0,
              "a tray's k blocks are those of neighbouring lanes");

/* What of a k block of so many bytes is of the head's tiles. The last one may be short. */
static __device__ __forceinline__ u32 bytes_of_tiles(u32 bytes)
{
    const u32 last = (u32)own().tiles[own().tile_count - 1];
    return (u32)(own().tile_count - 1) * TILE_BYTES +
           min((u32)TILE_BYTES, bytes - last * TILE_BYTES);
}

/* The head's tiles of a k block that has so many bytes of all rows. Tiles that follow one another
 * are one copy. */
static __device__ __forceinline__ void copy_tiles(u8 *to, const u8 *from, u32 bytes, u64 *full,
                                                  u64 policy)
{
    for (int i = 0, n = 1; i < own().tile_count; i += n, n = 1) {
        const u32 tile = (u32)own().tiles[i];
        while (i + n < own().tile_count && own().tiles[i + n] == (int)tile + n)
            n++;
        copy_piece(to + i * TILE_BYTES, from + tile * TILE_BYTES,
                   min((u32)n * TILE_BYTES, bytes - tile * TILE_BYTES), full, policy);
    }
}

/* A tray, counted over all epochs: its place, and the parity of a phase that is its. */
struct tray_place {
    u32 number, at, parity;
};

/* Waits until it is empty; false: the loader, which has a clock in its waits, has given up. */
static __device__ __forceinline__ bool wait_empty(const tray_place &t)
{
    while (!__all_sync(0xFFFFFFFFu, barrier_tested(&own().tray_empty[t.at], t.parity ^ 1)))
        if (__any_sync(0xFFFFFFFFu, own().lost))
            return false;
    return true;
}

/* What a task's trays are filled with: `wanted` of the `bytes` of all rows that each k block has.
 */
struct tray_source {
    const u8 *input;
    tray_shape tray;
    int kblocks;
    bool heads;
    u32 bytes, wanted;
};

/* Fills one tray with the k blocks that `blocks` lanes from `first` on have, each its own at
 * `from`.
 */
static __device__ __forceinline__ void fill_tray(const machine &m, const tray_place &t,
                                                 const tray_source &s, const u8 *from, int first,
                                                 int blocks, u64 policy)
{
    const int mine = m.lane - first;
    u64 *full = &own().tray_full[t.at];
    u8 *to = tray_memory() + t.at * TRAY_BYTES + mine * (int)s.tray.stride;
    if (mine == 0)
        expect_bytes(full, (u32)blocks * s.wanted);
    __syncwarp();
    if (mine < 0 || mine >= blocks)
        return;
    if (s.heads)
        copy_tiles(to, from, s.bytes, full, policy);
    else
        copy_piece(to, from, s.bytes, full, policy);
}

/* The trays of one panel; false: the loader has given up. */
static __device__ __forceinline__ bool fill_trays(const machine &m, tray_place &t,
                                                  const tray_source &s, u64 policy)
{
    for (int base = 0; base < s.kblocks; base += 32) {
        const int block =
            mgl_tape_block_at(s.kblocks, MGL_WARPS, min(base + m.lane, s.kblocks - 1));
        const u8 *from = s.input + (size_t)(u32)block * (MGL_ROWS * MGL_PANEL_ROW_BYTES);
        const int count = min(s.kblocks - base, 32);
        for (int first = 0; first < count; first += s.tray.blocks) {
            if (!wait_empty(t))
                return false;
            fill_tray(m, t, s, from, first, min(count - first, s.tray.blocks), policy);
            t.number++;
            if (++t.at == TRAYS) {
                t.at = 0;
                t.parity ^= 1;
            }
        }
    }
    return true;
}

/* All trays of a task. Out of line: its registers are not those of the epilogue. */
static __device__ __noinline__ void load_trays(const machine m)
{
    const mgl_device_segment seg = segment(m, 0);
    const bool heads = task_of(m)->op == OP_SCALED_HEAD;
    if ((heads && own().tile_count == 0) || !wait_turned())
        return;
    const u32 bytes = (u32)rows_of(m) * MGL_PANEL_ROW_BYTES, number = own().tray_next;
    const tray_source s = {address_of(m, operand(m, MGL_PRODUCT_INPUT)),
                           tray_shape_of(panel_rows(m)),
                           seg.kblocks,
                           heads,
                           bytes,
                           heads ? bytes_of_tiles(bytes) : bytes};
    tray_place t = {number, number % TRAYS, number / TRAYS & 1};
    const u64 policy = keep_policy();
    fence_bulk_reads();
    fence_bulk_writes();
    for (int group = 0; group < seg.groups; group += PANEL_GROUPS)
        if (!fill_trays(m, t, s, policy))
            break;
    __syncwarp();
    own().tray_next = t.number; /* every lane: whoever reads it next has written it */
}

/* Waits until the copies in flight have landed, before the block leaves. */
static __device__ __forceinline__ void await_trays()
{
    const u32 end = own().tray_next;
    for (u32 i = end > TRAYS ? end - TRAYS : 0; i < end; i++)
        while (!barrier_passed(&own().tray_full[i % TRAYS], i / TRAYS & 1))
            ;
    await_kv_trays();
}

/* The trays of a task with panels, or of one with keys and values; none of another. */
static __device__ __forceinline__ void bring_trays(const machine &m, int op)
{
    if (is_of<FAMILY_PANEL>(op))
        load_trays(m);
    else if (KV_TRAYS > 0 && is_of<FAMILY_ATTEND_ROWS>(op))
        load_kv_trays(m);
}

/* The task's trays and pages have been let go of: the loader may turn to the other list. */
static __device__ __forceinline__ void note_trays(int op)
{
    __syncwarp();
    if ((is_of<FAMILY_PANEL>(op) || is_of<FAMILY_ATTEND_ROWS>(op)) && is_first_lane())
        store_shared_release(&own().paneled, own().paneled + 1);
}

#else

/* Of a kernel without panels: no task is of that family. */
static __device__ __forceinline__ void bring_trays(const machine &, int) {}
static __device__ __forceinline__ void await_trays() {}
static __device__ __forceinline__ void note_trays(int) {}

#endif

#endif
