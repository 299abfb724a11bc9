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

static inline bool is_scaled_code(mgl_weight_code code)
{
    return mgl_weight_code_get(code)->scaled;
}

/* For one row, both vectors of a weight row: tape data may leave the L1 cache before a second
 * pass. Scales and constants of scaled codes need registers, too. */
static inline struct tile tape_tile(mgl_weight_code code, int rows)
{
    return (struct tile){.weights = is_scaled_code(code) && rows == 1 ? 2 : 4,
                         .parts = rows == 1 ? 2 : 1,
                         .rows = rows};
}

/* Up to this many rows, a panel does not pay off. */
static inline int tape_rows(mgl_weight_code code)
{
    return is_scaled_code(code) ? 2 : code == MGL_CODE_F32 ? 1 : 3;
}

/* For one row, two passes follow each other closely and read memory almost in order. Passes over
 * scaled codes are slower than memory, and prepare scales. */
static inline int tape_run(mgl_weight_code code, int rows)
{
    int least = code == MGL_CODE_F32 ? 1 : 2;
    return rows == 1 && !is_scaled_code(code) ? least : MGL_TAPE_RUN;
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

/* Scales and zero points suffice. */
struct table {
    char none;
};

static inline struct table table_of(mgl_weight_code code, const struct scale_group *group, int i)
{
    (void)code, (void)group, (void)i;
    return (struct table){0};
}

/* Integers below 2^23 as floats, plus 2^23: they are the lower bits of its mantissa. */
static inline vector plus_base(__m256i integers)
{
    return _mm256_castsi256_ps(_mm256_or_si256(integers, _mm256_set1_epi32(0x4B000000)));
}

static inline vector load_bytes(const char *from)
{
    return plus_base(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)from)));
}

/* As the upper bits of an f16, sign, exponent and mantissa are the number times 2^-8. Both parts of
 * a step share the conversion to f16. */
static inline vector load_e4m3(const char *row, int step, int part)
{
    const __m256i codes = _mm256_loadu_si256((const void *)(row + step % 2 * 32));
    const __m256i none = _mm256_setzero_si256();
    const __m256i upper =
        step / 2 ? _mm256_unpackhi_epi8(none, codes) : _mm256_unpacklo_epi8(none, codes);
    const __m256i halves =
        _mm256_and_si256(_mm256_srai_epi16(upper, 1), _mm256_set1_epi16((short)0xBFFF));
    return _mm256_cvtph_ps(part ? _mm256_extracti128_si256(halves, 1)
                                : _mm256_castsi256_si128(halves));
}

/* 8 codes, plus 2^23: each lane shifts their word. */
static inline vector load_int4(const char *from)
{
    const __m256i shifts = _mm256_setr_epi32(0, 16, 4, 20, 8, 24, 12, 28); /* formats.h */
    const __m256i word = _mm256_broadcastd_epi32(_mm_loadu_si32(from));
    return plus_base(_mm256_and_si256(_mm256_srlv_epi32(word, shifts), _mm256_set1_epi32(15)));
}

static inline vector load_scaled(mgl_weight_code code, const char *row, int step, int part,
                                 struct table table, const struct scale_group *group, int i,
                                 bool ones)
{
    const char *quarter = row + step % 2 * 32 + part * 16;
    (void)table;
    const vector number = code == MGL_CODE_E4M3
                              ? load_e4m3(row, step, part)
                              : _mm256_sub_ps(is_nibble(code) ? load_int4(quarter + step / 2 * 4)
                                                              : load_bytes(quarter + step / 2 * 8),
                                              code == MGL_CODE_UINT4 ? spread(MGL_BYTE_BASE)
                                                                     : spread(group->zero[i]));
    const vector product = ones ? number : _mm256_mul_ps(number, spread(group->scale[i]));
    return code == MGL_CODE_UINT4 ? _mm256_add_ps(product, spread(group->zero[i])) : product;
}

static inline float add_one(const vector *sums)
{
    return add_8(_mm256_add_ps(sums[0], sums[1]));
}

#include "vm/cpu/products_vector.h"

const mgl_products mgl_products_avx2 = {"avx2", multiply, dot, add_scaled};
