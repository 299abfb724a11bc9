/* Pseudorandom numbers. The same state gives the same numbers on every machine. Not for
 * cryptography. */
#ifndef MGL_BASE_DRAW_H
#define MGL_BASE_DRAW_H

#include <stdint.h>

/* SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014):
 * returns the next 64 bits and advances *state. */
static inline uint64_t mgl_draw(uint64_t *state)
{
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}
/* Returns a number in [0, count); count is at least 1. */
static inline uint64_t mgl_draw_below(uint64_t *state, uint64_t count)
{
    return mgl_draw(state) % count; /* modulo bias: below 2^-50 for the counts used here */
}

#endif
