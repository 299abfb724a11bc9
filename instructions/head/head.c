/* Reference of head: the logits of a slice of the vocabulary for the rows that want them, and the
 * best logit of each row. If the task has penalized logits, the best of them is taken. Values are
 * compared by their keys (instructions/sample/sampler.h), so that a NaN always wins. */
#include "instructions/head/head.h"

#include "instructions/reference/linear.h"
#include "instructions/sample/penalties.h"
#include "instructions/sample/sampler.h"

/* Row r of the logits after the penalties of its sequence. */
static const float *penalize(const mgl_call *call, int r, const float *logits, int64_t count)
{
    const int s = mgl_call_table(call, r)[MGL_TABLE_SEQUENCE];
    const int32_t *q =
        (int32_t *)mgl_call_at(call, MGL_CALL(call, head, sequence)) + s * MGL_SEQUENCE_WORDS;
    const int32_t *counts = (int32_t *)mgl_call_row(call, MGL_CALL(call, head, counts), s);
    float *penalized = mgl_call_row(call, MGL_CALL(call, head, penalized), r);
    const mgl_penalties p = {mgl_bits_float((unsigned)q[MGL_SEQUENCE_REPEAT]),
                             mgl_bits_float((unsigned)q[MGL_SEQUENCE_PRESENCE]),
                             mgl_bits_float((unsigned)q[MGL_SEQUENCE_FREQUENCY])};
    for (int64_t i = 0; i < count; i++)
        penalized[i] = mgl_penalize(&p, logits[i], counts[i]);
    return penalized;
}

void mgl_head_best(const mgl_call *call, int r)
{
    const mgl_region *out = MGL_CALL(call, head, logits);
    const float *logits = mgl_call_row(call, out, r);
    int64_t best = 0, count = mgl_region_width(out, 1);
    if (MGL_CALL(call, head, penalized))
        logits = penalize(call, r, logits, count);
    for (int64_t i = 1; i < count; i++)
        if (mgl_sampler_key(logits[i]) > mgl_sampler_key(logits[best]))
            best = i;
    *mgl_call_row(call, MGL_CALL(call, head, best_value), r) = logits[best];
    ((int32_t *)mgl_call_row(call, MGL_CALL(call, head, best_id), r))[0] =
        (int32_t)(out->ranges[1].lo + best);
}

void mgl_reference_head(const mgl_call *call)
{
    const mgl_region *x = MGL_CALL(call, head, x), *y = MGL_CALL(call, head, logits);
    int64_t width = mgl_region_width(x, 1);
    float *normed = call->scratch; /* (rows, width) */
    bool skip[MGL_MAX_SECOND_ROWS];
    for (int r = 0; r < call->epoch->rows; r++)
        skip[r] = !mgl_head_wants(call, r);
    mgl_reference_norm(call, normed);
    mgl_reference_linear(call, normed, width, y, skip, normed + call->epoch->rows * width);
    for (int r = 0; r < call->epoch->rows; r++)
        if (!skip[r])
            mgl_head_best(call, r);
}
