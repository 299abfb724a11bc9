/* Product set for AVX-512 (F, BW, DQ, VL). One vector holds all 16 partial sums. The bf16 dot
 * product of some CPUs is not used, because it would round the activations. The algorithm is in
 * products_vector.h. */
#include "vm/cpu/products_sets.h"
#include "vm/cpu/products_x86.h"

typedef __m512 vector;

/* 24 sums, 3 rows of x and a weight fit in 32 registers. */
static inline struct tile panel_tile(int rows)
{
    return (struct tile){.weights = 8, .parts = 1, .rows = rows};
}

/* One row takes two passes: see tape_run. */
static inline struct tile tape_tile(int rows)
{
    return (struct tile){.weights = rows == 1 ? 4 : 8, .parts = 1, .rows = rows};
}

/* With few rows, on-the-fly conversion of 16-bit weights costs almost nothing; a panel would cost
 * more. */
static inline int tape_rows(mgl_weight_code code)
{
    return mgl_weight_code_get(code)->scaled ? 0 : code == MGL_CODE_F32 ? 3 : 6;
}

/* For one row, a pass at full speed interferes with its own prefetches. Short passes, which store
 * and load the sums for each block, read memory 5 to 8 % faster (measured on Zen 5). */
static inline int tape_run(mgl_weight_code code, int rows)
{
    (void)code;
    return rows == 1 ? 1 : 8;
}

#define IN_REGISTER(v) __asm__("" : "+v"(v))

static inline vector zero(void)
{
    return _mm512_setzero_ps();
}

static inline vector spread(float value)
{
    return _mm512_set1_ps(value);
}

static inline vector load(const float *from)
{
    return _mm512_loadu_ps(from);
}

static inline void store(float *to, vector v)
{
    _mm512_storeu_ps(to, v);
}

static inline vector add_product(vector a, vector b, vector c)
{
    return _mm512_fmadd_ps(a, b, c);
}

static inline vector load_bf16(const void *from)
{
    __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(from));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}

static inline vector load_f16(const void *from)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256(from));
}

static inline float add_one(const vector *sums)
{
    return add_8(_mm256_add_ps(_mm512_castps512_ps256(*sums), _mm512_extractf32x8_ps(*sums, 1)));
}

#include "vm/cpu/products_vector.h"

const mgl_products mgl_products_avx512 = {"avx512", multiply, dot, add_scaled};
