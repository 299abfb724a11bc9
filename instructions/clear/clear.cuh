/* clear: resets words to "not written" in the set of the next epoch. The controller runs it when a
 * task ends. A clear with a record of its own runs before the signals of that record. Clears that
 * the record of another task contains (vm/cuda/device/record.h) run after the signals of that task.
 * A clear has no work at its start. */
#include "vm/cuda/device/flags.cuh"
#include "vm/cuda/device/ops.cuh"

/* This epoch and earlier ones, a byte each, the newest in the lowest byte. */
struct epoch_history {
    u64 rows;  /* their numbers of rows, */
    u64 kinds; /* and own().rows_kinds, if MGL_UNSPLIT > 0 */
};

static __device__ __forceinline__ void add_epoch(epoch_history &h, int rows)
{
    h.rows = h.rows << 8 | (u64)rows;
    if (MGL_UNSPLIT > 0)
        h.kinds = h.kinds << 8 | own().rows_kinds;
}

/* Rows of a region that were written by the last epoch that used the next epoch's set. If that
 * epoch had no rows of the kinds with which tasks write the buffer: 0. */
static __device__ __forceinline__ int rows_to_clear(const mgl_device_clear &c,
                                                    const epoch_history &h)
{
    const int shift = 8 * (c.sets - 1);
    return MGL_UNSPLIT == 0 || (h.kinds >> shift & c.kinds) ? (int)(h.rows >> shift & 255) : 0;
}

/* The start of a clear's region in the set of the next epoch. */
static __device__ __forceinline__ u8 *place_to_clear(const machine &m, const mgl_device_clear &c)
{
    return (u8 *)c.at + set_of(m.epoch + 1, c.sets) * c.set_bytes;
}

/* Runs one clear with all lanes. */
static __device__ __forceinline__ void clear_rows(const machine &m, const mgl_device_clear &c,
                                                  int rows, u64 policy)
{
    const int words = (int)c.bytes / 16;
    u8 *to = place_to_clear(m, c);
    for (int e = m.lane; e < (int)c.outer * rows * words; e += 32)
        store_four_words(to + e / words / rows * c.outer_bytes +
                             (size_t)(e / words % rows) * c.row_bytes + e % words * 16,
                         0xFFFFFFFFu, policy);
}

/* Resets all rows that the last epoch with the next epoch's set wrote. Fast path, as in
 * decoding: clears of one contiguous run of bytes, four at a time. */
static __device__ __forceinline__ void clear(const machine &m, const epoch_history &history)
{
    enum { LANES = 8 };
    const mgl_device_clear *clears =
        (const mgl_device_clear *)((const u8 *)task_of(m) + task_of(m)->clear_at);
    const int count = task_of(m)->clears;
    const u64 policy = keep_policy();
    bool runs = true;
    for (int i = m.lane / LANES; i < count; i += 32 / LANES) {
        const mgl_device_clear &c = clears[i];
        const int rows = rows_to_clear(c, history);
        const bool run = c.outer == 1 && rows == 1;
        u8 *to = place_to_clear(m, c);
        for (int e = m.lane % LANES * 16; run && e < (int)c.bytes; e += LANES * 16)
            store_four_words(to + e, 0xFFFFFFFFu, policy);
        runs = runs && (run || rows == 0);
    }
    if (__all_sync(0xFFFFFFFFu, runs))
        return;
    for (int i = 0; i < count; i++) {
        const int rows = rows_to_clear(clears[i], history);
        if (clears[i].outer != 1 || rows != 1)
            clear_rows(m, clears[i], rows, policy);
    }
}
