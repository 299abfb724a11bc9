/* Drawing numbers that only have to look random: the same state gives the same numbers everywhere.
 */
#ifndef MGL_BASE_DRAW_H
#define MGL_BASE_DRAW_H

#include <stdint.h>

/* SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014): the
 * next 64 bits of *state. */
static inline uint64_t mgl_draw(uint64_t *state)
{
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}
/* A number in [0, count), count at least 1. */
static inline uint64_t mgl_draw_below(uint64_t *state, uint64_t count)
{
    return mgl_draw(state) % count; /* the bias is below 2^-50 for what is drawn here */
}

#endif
