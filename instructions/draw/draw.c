/*
 * Reference of draw: for each row of a share that wants a sample of a sequence with a temperature,
 * draws a token from its logits (instructions/sample/sampler.h); for other rows, no token. sample
 * checks whether the logits are finite.
 */
#include "instructions/draw/draw.h"

#include "instructions/reference.h"
#include "instructions/sample/philox.h"
#include "instructions/sample/sampler.h"
#include "schedule/variant_shapes.h"

static float float_of(int32_t word)
{
    return mgl_bits_float((unsigned)word);
}

bool mgl_is_drawn(const int32_t *sequence)
{
    return float_of(sequence[MGL_SEQUENCE_TEMPERATURE]) > 0.0f;
}

int mgl_draw_row(const float *logits, int vocab, const int32_t *sequence)
{
    unsigned long long random = mgl_philox_token((unsigned)sequence[MGL_SEQUENCE_SEED_LO],
                                                 (unsigned)sequence[MGL_SEQUENCE_SEED_HI],
                                                 (unsigned)sequence[MGL_SEQUENCE_PRODUCED]);
    return mgl_sampler_draw(logits, vocab, float_of(sequence[MGL_SEQUENCE_TEMPERATURE]),
                            sequence[MGL_SEQUENCE_TOP_K], float_of(sequence[MGL_SEQUENCE_TOP_P]),
                            float_of(sequence[MGL_SEQUENCE_MIN_P]), random);
}

void mgl_reference_draw(const mgl_call *call)
{
    const mgl_region *logits = MGL_CALL(call, draw, logits), *token = MGL_CALL(call, draw, token);
    const int vocab = (int)mgl_call_buffer(call, logits)->extents[1].count;
    const int32_t *sequences = mgl_call_at(call, MGL_CALL(call, draw, sequence));
    const mgl_range *share = &token->ranges[0];
    int r, end;
    mgl_row_share(call->epoch->rows, (int)share->lo, (int)share->hi, &r, &end);
    for (; r < end; r++) {
        const int32_t *row = mgl_call_table(call, r);
        const int32_t *sequence = sequences + row[MGL_TABLE_SEQUENCE] * MGL_SEQUENCE_WORDS;
        const bool drawn = row[MGL_TABLE_WANT] == MGL_WANT_SAMPLE && mgl_is_drawn(sequence);
        *(int32_t *)mgl_call_row(call, token, r) =
            drawn ? mgl_draw_row(mgl_call_row(call, logits, r), vocab, sequence) : MGL_NO_TOKEN;
    }
}
