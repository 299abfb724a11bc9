/*
 * Runs the row sampling of instructions/sample/draw_row.cuh alone, for test_draw.c: one block
 * processes rows one after another. The emulator treats it like the benchmark's kernels, which have
 * no warp roles.
 */
#include "vm/cuda/device/delay.cuh"

#include "instructions/sample/draw_row.cuh"

struct draw_block {
    const float *logits; /* (rows, MGL_VOCAB) */
    const int *sequence; /* (rows, MGL_SEQUENCE_WORDS) */
    const u32 *keys;     /* (rows, 2): keys of the best logit, and of the smallest of the parts'
                            best logits */
    const u64 *random;   /* (rows) */
    const float *parts;  /* (rows, part_count): the best logit of each part */
    int part_count;
    u32 *drawn; /* (rows, 4): the token; the cut of the sequence's top k of the logits */
    int rows;
};

#define MGL_BENCH_KERNELS(X) X(DRAW_ROWS, draw_rows, draw_block)

extern "C" __global__ void draw_rows(const draw_block b)
{
    for (int r = 0; r < b.rows; r++) {
        const float *logits = b.logits + r * MGL_VOCAB;
        const int *sequence = b.sequence + r * MGL_SEQUENCE_WORDS;
        const int token = draw_row(logits, b.parts + r * b.part_count, b.part_count, sequence,
                                   b.keys[2 * r], b.keys[2 * r + 1], b.random[r]);
        mgl_sampler_cut cut = {0, 0};
        const int guessed = own_drawing().guessed;
        if (sequence[MGL_SEQUENCE_TOP_K] > 0 && mgl_sampler_is_finite(b.keys[2 * r])) {
            drawing &d = own_drawing();
            consumer_barrier();
            if (thread_index() == 0) {
                d.row = values_of(logits, MGL_VOCAB, 1.0f, mgl_sampler_value(b.keys[2 * r]));
                d.width = WIDEST_BIN;
                d.cut = cut;
            }
            select_cut((u64)sequence[MGL_SEQUENCE_TOP_K], 0.0f, false);
            cut = d.cut;
        }
        if (thread_index() == 0) {
            b.drawn[4 * r] = (u32)token;
            b.drawn[4 * r + 1] = cut.key;
            b.drawn[4 * r + 2] = cut.ties;
            b.drawn[4 * r + 3] = (u32)guessed;
        }
        consumer_barrier();
    }
}
