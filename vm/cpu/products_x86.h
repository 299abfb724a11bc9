/* Pairwise addition of partial sums, shared by the AVX2 and AVX-512 product sets. */
#ifndef MGL_VM_CPU_PRODUCTS_X86_H
#define MGL_VM_CPU_PRODUCTS_X86_H

#include <immintrin.h>

/* Adds the partial sums of one output that are 8 apart. */
static inline __m256 add_8_apart(const float *sums)
{
    return _mm256_add_ps(_mm256_loadu_ps(sums), _mm256_loadu_ps(sums + 8));
}

/* Adds the sums of two outputs that are 4 apart: (a 0..3, b 0..3). */
static inline __m256 add_4_apart(__m256 a, __m256 b)
{
    return _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
}

/* Adds sums that are 2 apart; in each 4-float half: (a 0 1, b 0 1). */
static inline __m256 add_2_apart(__m256 a, __m256 b)
{
    return _mm256_add_ps(_mm256_shuffle_ps(a, b, 0x44), _mm256_shuffle_ps(a, b, 0xEE));
}

/* Adds sums that are 1 apart; in each 4-float half: the sums of a's pairs, then of b's. */
static inline __m256 add_1_apart(__m256 a, __m256 b)
{
    return _mm256_add_ps(_mm256_shuffle_ps(a, b, 0x88), _mm256_shuffle_ps(a, b, 0xDD));
}

/* Reduces (8, 16) partial sums to 8 outputs. */
static inline void add_group(const float *sums, float *to)
{
    __m256 s[8];
    for (int i = 0; i < 8; i++)
        s[i] = add_8_apart(sums + 16 * i);
    for (int i = 0; i < 4; i++)
        s[i] = add_4_apart(s[i], s[i + 4]);
    _mm256_storeu_ps(to, add_1_apart(add_2_apart(s[0], s[1]), add_2_apart(s[2], s[3])));
}

/* Reduces one output from the 8 sums left after adding those 8 apart. */
static inline float add_8(__m256 s)
{
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

#endif
