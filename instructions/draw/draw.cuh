/*
 * draw: draws tokens for the rows of a share that are sampled with a temperature, row by row
 * (instructions/sample/draw_row.cuh). The consumers run consume_sample.
 */
#ifndef MGL_INSTRUCTIONS_DRAW_CUH
#define MGL_INSTRUCTIONS_DRAW_CUH

#include "instructions/sample/draw_row.cuh"

#if MGL_DRAWS

static __device__ __forceinline__ void draw_share(const machine &m)
{
    const mgl_device_operand &logits = operand(m, MGL_OPERAND(draw, logits)),
                             &values = operand(m, MGL_OPERAND(draw, best_value)),
                             &sequences = operand(m, MGL_OPERAND(draw, sequence)),
                             &tokens = operand(m, MGL_OPERAND(draw, token));
    int row, end;
    mgl_row_share(rows_of(m), tokens.first0, tokens.extent0, &row, &end);
#pragma unroll 1
    for (; row < end; row++) {
        const int *of_row = own().table + row * MGL_TABLE_WORDS;
        const int *sequence = (const int *)row_of(sequences, of_row[MGL_TABLE_SEQUENCE]);
        int token = MGL_NO_TOKEN;
        if (of_row[MGL_TABLE_WANT] == MGL_WANT_SAMPLE && is_drawn(sequence)) {
            const best_parts best = find_best(values, nullptr, row);
            token = draw_row(row_of(logits, row), row_of(values, row), values.count[1], sequence,
                             best.best, best.lowest, random_of(sequence));
        }
        if (thread_of(m) == 0)
            *(int *)row_of(tokens, row) = token;
    }
}

#endif

#endif
