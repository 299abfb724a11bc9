/*
 * Computes rope's inverse frequencies as Hugging Face's modeling_rope_utils.py does. Every step
 * is in f32 and in the same order, as in its tensors. A number divided by a tensor is computed
 * as the tensor's reciprocal times the number. Only the power is computed in double and rounded
 * once.
 */
#include "importer/config.h"

#include <math.h>
#include <string.h>

bool mgl_rope_equal(const mgl_rope *a, const mgl_rope *b)
{
    const double of_a[] = {a->theta,
                           a->factor,
                           a->low_freq_factor,
                           a->high_freq_factor,
                           a->original_max_positions,
                           a->attention_factor,
                           a->beta_fast,
                           a->beta_slow};
    const double of_b[] = {b->theta,
                           b->factor,
                           b->low_freq_factor,
                           b->high_freq_factor,
                           b->original_max_positions,
                           b->attention_factor,
                           b->beta_fast,
                           b->beta_slow};
    return a->type == b->type && a->truncate == b->truncate && !memcmp(of_a, of_b, sizeof of_a) &&
           !memcmp(a->short_factor, b->short_factor, sizeof a->short_factor) &&
           !memcmp(a->long_factor, b->long_factor, sizeof a->long_factor);
}

/* The llama3 scaling of one frequency: long wavelengths are divided by `factor`, short ones are
 * kept, and those between are blended. */
static float scale_llama3(const mgl_rope *rope, float frequency)
{
    float factor = (float)rope->factor, context = (float)rope->original_max_positions;
    float low = (float)rope->low_freq_factor;
    float span = (float)(rope->high_freq_factor - rope->low_freq_factor);
    float longest = (float)(rope->original_max_positions / rope->low_freq_factor);
    float shortest = (float)(rope->original_max_positions / rope->high_freq_factor);
    float wavelength = (1.0f / frequency) * (float)(2.0 * M_PI);
    if (wavelength > longest)
        return frequency / factor;
    if (wavelength < shortest)
        return frequency;
    float smooth = ((1.0f / wavelength) * context - low) / span;
    return (1.0f - smooth) * frequency / factor + smooth * frequency;
}

/* Returns the index of the dimension that makes `rotations` full rotations within the original
 * length. */
static double yarn_dimension(const mgl_rope *rope, int32_t head_dim, double rotations)
{
    return head_dim * log(rope->original_max_positions / (rotations * 2 * M_PI)) /
           (2 * log(rope->theta));
}

/* YaRN (https://arxiv.org/abs/2309.00071, section 3.2): dimensions below `low` keep their
 * frequency, dimensions above `high` are divided by the factor, and a linear ramp blends those
 * between. */
static float scale_yarn(const mgl_rope *rope, int32_t head_dim, int32_t i, float power)
{
    double low = yarn_dimension(rope, head_dim, rope->beta_fast);
    double high = yarn_dimension(rope, head_dim, rope->beta_slow);
    if (rope->truncate) {
        low = floor(low);
        high = ceil(high);
    }
    low = low > 0 ? low : 0;
    high = high < head_dim - 1 ? high : head_dim - 1;
    if (!(low < high) && !(low > high))
        high += 0.001;
    float ramp = ((float)i - (float)low) / (float)(high - low);
    float kept = 1.0f - (ramp < 0 ? 0 : ramp > 1 ? 1 : ramp);
    float interpolated = 1.0f / ((float)rope->factor * power);
    return interpolated * (1.0f - kept) + 1.0f / power * kept;
}

void mgl_rope_frequencies(const mgl_rope *rope, int32_t head_dim, bool is_long, float *inv_freq)
{
    const float *factors = is_long ? rope->long_factor : rope->short_factor;
    for (int32_t i = 0; i < head_dim / 2; i++) {
        float exponent = (float)(2 * i) / (float)head_dim;
        float power = (float)pow((double)(float)rope->theta, (double)exponent);
        float frequency = 1.0f / power;
        if (rope->type == MGL_ROPE_LINEAR)
            frequency /= (float)rope->factor;
        else if (rope->type == MGL_ROPE_LLAMA3)
            frequency = scale_llama3(rope, frequency);
        else if (rope->type == MGL_ROPE_YARN)
            frequency = scale_yarn(rope, head_dim, i, power);
        else if (rope->type == MGL_ROPE_LONGROPE)
            frequency = 1.0f / (factors[i] * power);
        inv_freq[i] = frequency;
    }
}
