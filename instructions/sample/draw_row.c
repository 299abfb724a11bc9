/* Implements draw_row.h with the sampler (sampler.h) and its random numbers (philox.h). */
#include "instructions/sample/draw_row.h"

#include "instructions/sample/philox.h"
#include "instructions/sample/sampler.h"
#include "schedule/step.h"

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
