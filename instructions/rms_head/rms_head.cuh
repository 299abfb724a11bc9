/* rms_head: logits of a slice of the vocabulary for the rows that want them, with each row of
 * n multiplied by its RMS scale, and the best of each row. Only tiles with such rows are
 * multiplied (roles/act_tile_loader.cuh). */
#ifndef MGL_INSTRUCTIONS_RMS_HEAD_CUH
#define MGL_INSTRUCTIONS_RMS_HEAD_CUH

#include "instructions/head/head.cuh"
#include "vm/cuda/device/linear/panels.cuh"

#if MGL_PANELS

/* A logit and its token as one number, so that the maximum is a row's best: the key, then the
 * lowest token. 0: none. */
static __device__ __forceinline__ u64 ranked(float value, int id)
{
    return (u64)mgl_sampler_key(value) << 32 | (u32)~id;
}

static __device__ __forceinline__ u64 better_of(u64 a, u64 b)
{
    return a > b ? a : b;
}

/* The best over the lanes with other columns of the same row. */
static __device__ __forceinline__ u64 best_of_columns(u64 b)
{
#pragma unroll
    for (int offset = 4; offset < 32; offset *= 2)
        b = better_of(b, __shfl_xor_sync(0xFFFFFFFFu, b, offset));
    return b;
}

/* The best of each column and row is stored in the row statistics. */
static __device__ __forceinline__ u64 *panel_bests() /* (PANEL_PARTS, PANEL_ROWS) */
{
    return (u64 *)panel_row_stats();
}
static_assert(sizeof(panel_row_stat) == sizeof(u64), "a note has room for a best");

/* Writes logits. After the last pair of row groups, writes the best of a column. */
static __device__ __forceinline__ void write_rms_head(const machine &m, panel_lane &p)
{
    const head_results results = results_of(m); /* the operands have the same numbers */
    const int width = segment(m, 0).rows, rows = rows_of(m);
    const int first = own().tiles[p.tile / PANEL_TILE] * PANEL_TILE + (p.row - p.tile);
    bool mine[2];
    int row[2];
    float scale[2];
#pragma unroll
    for (int r = 0; r < 2; r++) {
        row[r] = min(first + r, rows - 1);
        mine[r] = first + r < rows && wants_logits(row[r]);
        scale[r] = panel_scales()[row[r]];
    }
#pragma unroll
    for (int r = 0; r < 2; r++) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int column = column_of(m, p, h);
            float value = p.sums[h][r] * scale[r];
            if (!mine[r] || column >= width)
                continue;
            row_of(results.logits, row[r])[column] = value;
            value = penalize(results, row[r], column, value);
            p.best[r] = better_of(p.best[r], ranked(value, results.logits.first1 + column));
        }
    }
    delay();
    if (!p.last)
        return;
    const u64 best[2] = {best_of_columns(p.best[0]), best_of_columns(p.best[1])};
#pragma unroll
    for (int r = 0; r < 2; r++) {
        u64 &note = panel_bests()[p.column * PANEL_ROWS + row[r]];
        if (m.lane < 4 && mine[r])
            note = better_of(note, best[r]);
        p.best[r] = 0;
    }
}

/* Writes the best of all columns, for each row that wants logits. */
static __device__ __forceinline__ void write_bests(const machine &m, int rows)
{
    const mgl_device_operand &value = operand(m, MGL_OPERAND(rms_head, best_value)),
                             &id = operand(m, MGL_OPERAND(rms_head, best_id));
#pragma unroll 1
    for (int r = thread_of(m); r < rows; r += (int)THREADS) {
        u64 best = 0;
        for (int i = 0; i < PANEL_PARTS; i++)
            best = better_of(best, panel_bests()[i * PANEL_ROWS + r]);
        if (!wants_logits(r))
            continue;
        *row_of(value, r) = mgl_sampler_value((u32)(best >> 32));
        *(int *)row_of(id, r) = best ? (int)~(u32)best : 0x7FFFFFFF;
        delay();
    }
}

#endif

#endif
