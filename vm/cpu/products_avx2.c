/* Product set for AVX2 with FMA and F16C. Two vectors hold the 16 partial sums. The algorithm is in
 * products_vector.h. */
#include "vm/cpu/products_sets.h"
#include "vm/cpu/products_x86.h"

typedef __m256 vector;

/* 12 sums, 3 rows of x and a weight fit in 16 registers. One row uses 8 sums to hide the FMA
 * latency. */
static inline struct tile panel_tile(int rows)
{
    return (struct tile){.weights = rows == 1 ? 8 : 4, .parts = 1, .rows = rows};
}

/* For one row, both vectors of a weight row: tape data may leave the L1 cache before a second
 * pass. */
static inline struct tile tape_tile(int rows)
{
    return (struct tile){.weights = 4, .parts = rows == 1 ? 2 : 1, .rows = rows};
}

/* Up to this many rows, a panel does not pay off. */
static inline int tape_rows(mgl_weight_code code)
{
    return mgl_weight_code_get(code)->scaled ? 0 : code == MGL_CODE_F32 ? 1 : 3;
}

/* For one row, two passes follow each other closely and read memory almost in order. */
static inline int tape_run(mgl_weight_code code, int rows)
{
    int least = code == MGL_CODE_F32 ? 1 : 2;
    return rows == 1 ? least : 8;
}

#define IN_REGISTER(v) __asm__("" : "+x"(v))

static inline vector zero(void)
{
    return _mm256_setzero_ps();
}

static inline vector spread(float value)
{
    return _mm256_set1_ps(value);
}

static inline vector load(const float *from)
{
    return _mm256_loadu_ps(from);
}

static inline void store(float *to, vector v)
{
    _mm256_storeu_ps(to, v);
}

static inline vector add_product(vector a, vector b, vector c)
{
    return _mm256_fmadd_ps(a, b, c);
}

static inline vector load_bf16(const void *from)
{
    __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(from));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}

static inline vector load_f16(const void *from)
{
    return _mm256_cvtph_ps(_mm_loadu_si128(from));
}

static inline float add_one(const vector *sums)
{
    return add_8(_mm256_add_ps(sums[0], sums[1]));
}

#include "vm/cpu/products_vector.h"

const mgl_products mgl_products_avx2 = {"avx2", multiply, dot, add_scaled};
