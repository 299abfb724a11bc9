/*
 * Rope's inverse frequencies, after Hugging Face's modeling_rope_utils.py. Its tensors are f32 and
 * so is every step here, in the same order; a number divided by a tensor is there the tensor's
 * reciprocal times the number. Only the power is computed in double and rounded once.
 */
#include "importer/config.h"

#include <math.h>

/* The llama3 rule for one frequency: long wavelengths are slowed by `factor`, short ones are left,
 * and those between are blended. */
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

void mgl_rope_frequencies(const mgl_rope *rope, int32_t head_dim, float *inv_freq)
{
    for (int32_t i = 0; i < head_dim / 2; i++) {
        float exponent = (float)(2 * i) / (float)head_dim;
        float power = (float)pow((double)(float)rope->theta, (double)exponent);
        float frequency = 1.0f / power;
        if (rope->type == MGL_ROPE_LINEAR)
            frequency /= (float)rope->factor;
        else if (rope->type == MGL_ROPE_LLAMA3)
            frequency = scale_llama3(rope, frequency);
        inv_freq[i] = frequency;
    }
}
