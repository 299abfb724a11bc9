/* scaled_head: logits of a slice of the vocabulary for the rows that want them, each row of n
 * scaled, and the best of each row. What is multiplied are the tiles that have such rows
 * (roles/tray_loader.cuh). */
#ifndef MGL_INSTRUCTIONS_SCALED_HEAD_CUH
#define MGL_INSTRUCTIONS_SCALED_HEAD_CUH

#include "instructions/head/head.cuh"
#include "vm/cuda/device/linear/panels.cuh"

#if MGL_PANELS

/* A note that is the best so far, and back. */
static __device__ __forceinline__ best best_of_note(const panel_note &note)
{
    return {note.id == 0x7FFFFFFF ? 0 : mgl_sampler_key(note.value), note.value, note.id};
}

static __device__ __forceinline__ panel_note note_of_best(const best &b)
{
    return {b.value, b.id};
}

/* The best over the lanes that have other columns of the same row. */
static __device__ __forceinline__ best best_of_columns(best b)
{
#pragma unroll
    for (int offset = 4; offset < 32; offset *= 2) {
        const u32 key = __shfl_xor_sync(0xFFFFFFFFu, b.key, offset);
        const float value = __shfl_xor_sync(0xFFFFFFFFu, b.value, offset);
        take_better(b, key, value, __shfl_xor_sync(0xFFFFFFFFu, b.id, offset));
    }
    return b;
}

static __device__ __forceinline__ void leave_scaled_head(const machine &m, const panel_lane &p)
{
    const head_results results = results_of(m); /* the operands have the same numbers */
    const int width = segment(m, 0).rows, rows = rows_of(m);
    const int first = own().tiles[p.tile / PANEL_TILE] * PANEL_TILE + (p.row - p.tile);
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int row = min(first + r, rows - 1);
        const bool mine = first + r < rows && wants_logits(row);
        best kept = nothing_yet();
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int column = column_of(m, p, h);
            float value = p.sums[h][r] * panel_scales()[row];
            if (!mine || column >= width)
                continue;
            row_of(results.logits, row)[column] = value;
            value = penalize(results, row, column, value);
            take_better(kept, mgl_sampler_key(value), value, results.logits.first1 + column);
        }
        kept = best_of_columns(kept);
        if (m.lane < 4 && mine) {
            panel_note &note = panel_notes()[p.column * PANEL_ROWS + row];
            best b = best_of_note(note);
            take_better(b, kept.key, kept.value, kept.id);
            note = note_of_best(b);
        }
    }
    delay();
}

/* The best of all columns, of each row that wants one. */
static __device__ __forceinline__ void leave_bests(const machine &m, int rows)
{
    const mgl_device_operand &value = operand(m, MGL_OPERAND(scaled_head, best_value)),
                             &id = operand(m, MGL_OPERAND(scaled_head, best_id));
    for (int r = thread_of(m); r < rows; r += (int)THREADS) {
        best kept = nothing_yet();
        for (int i = 0; i < PANEL_PARTS; i++) {
            const best b = best_of_note(panel_notes()[i * PANEL_ROWS + r]);
            take_better(kept, b.key, b.value, b.id);
        }
        if (!wants_logits(r))
            continue;
        *row_of(value, r) = kept.value;
        *(int *)row_of(id, r) = kept.id;
        delay();
    }
}

#endif

#endif
