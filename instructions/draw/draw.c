/*
 * Reference of draw: for each row of a share that wants a sample of a sequence with a temperature,
 * draws a token from its logits (instructions/sample/sampler.h); for other rows, no token. sample
 * checks whether the logits are finite.
 */
#include "instructions/reference/reference.h"
#include "instructions/sample/draw_row.h"
#include "schedule/variant_shapes.h"

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
