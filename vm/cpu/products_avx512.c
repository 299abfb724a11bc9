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
    return mgl_weight_code_get(code)->scaled ? 2 : code == MGL_CODE_F32 ? 3 : 6;
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

/* The weights of the 16 codes of 4 bits, or a scale and a zero point of each lane. */
struct scaling {
    vector scale, zero;
};

static inline struct scaling scaling_of(mgl_weight_code code, float scale, float zero)
{
    const vector codes = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const vector scales = spread(scale), zeros = spread(zero);
    if (code == MGL_CODE_INT4)
        return (struct scaling){_mm512_mul_ps(_mm512_sub_ps(codes, zeros), scales), zeros};
    return (struct scaling){scales, zeros};
}

/* 16 codes of 8 bits: two chunks of 8. */
static inline __m128i load_bytes(const char *from)
{
    const __m128i low = _mm_loadl_epi64((const __m128i *)(const void *)from);
    return _mm_castps_si128(
        _mm_loadh_pi(_mm_castsi128_ps(low), (const __m64 *)(const void *)(from + 16)));
}

static inline vector load_int8(const char *from, struct scaling s)
{
    const vector codes = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(load_bytes(from)));
    return _mm512_mul_ps(_mm512_sub_ps(codes, s.zero), s.scale);
}

/* As the upper bits of an f16, sign, exponent and mantissa are the number times 2^-8. */
static inline vector load_e4m3(const char *from, struct scaling s)
{
    const __m256i wide = _mm256_slli_epi16(_mm256_cvtepi8_epi16(load_bytes(from)), 7);
    const __m256i half = _mm256_and_si256(wide, _mm256_set1_epi16((short)0xBFFF));
    return _mm512_mul_ps(_mm512_mul_ps(_mm512_cvtph_ps(half), spread(256)), s.scale);
}

/* A word of 8 codes for the low half, a word for the high half; each lane looks up its code. */
static inline vector load_int4(const char *from, struct scaling s)
{
    const __m512i shifts = _mm512_setr_epi32(0, 16, 4, 20, 8, 24, 12, 28, /* formats.h */
                                             0, 16, 4, 20, 8, 24, 12, 28);
    const __m512i low = _mm512_broadcastd_epi32(_mm_loadu_si32(from));
    const __m512i both = _mm512_mask_broadcastd_epi32(low, 0xFF00, _mm_loadu_si32(from + 16));
    return _mm512_permutexvar_ps(_mm512_srlv_epi32(both, shifts), s.scale);
}

static inline vector load_scaled(mgl_weight_code code, const char *row, int step, int part,
                                 struct scaling s)
{
    const char *half = row + step % 2 * 32;
    (void)part;
    return code == MGL_CODE_INT4   ? load_int4(half + step / 2 * 4, s)
           : code == MGL_CODE_INT8 ? load_int8(half + step / 2 * 8, s)
                                   : load_e4m3(half + step / 2 * 8, s);
}

static inline float add_one(const vector *sums)
{
    return add_8(_mm256_add_ps(_mm512_castps512_ps256(*sums), _mm512_extractf32x8_ps(*sums, 1)));
}

#include "vm/cpu/products_vector.h"

const mgl_products mgl_products_avx512 = {"avx512", multiply, dot, add_scaled};
