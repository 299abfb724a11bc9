/*
 * Operations of the product sets for AVX-512 (F, BW, DQ, VL), with VBMI or without. One vector
 * holds all 16 partial sums. The bf16 dot product of some CPUs is not used, because it would round
 * the activations. The algorithm is in products_vector.h.
 */
#ifndef MGL_VM_CPU_PRODUCTS_AVX512_H
#define MGL_VM_CPU_PRODUCTS_AVX512_H

#include "vm/cpu/products_sets.h"
#include "vm/cpu/products_x86.h"

typedef __m512 vector;

/* 24 sums, 3 rows of x and a weight fit in 32 registers. */
static inline struct tile panel_tile(int rows)
{
    return (struct tile){.weights = 8, .parts = 1, .rows = rows};
}

static inline bool is_scaled_code(mgl_weight_code code)
{
    return mgl_weight_code_get(code)->scaled;
}

/* One row of unscaled codes takes two passes: see tape_run. So do two rows of scaled codes, which
 * have more sums beside the scales or tables of the weight rows. */
static inline struct tile tape_tile(mgl_weight_code code, int rows)
{
    const bool few = (rows == 1) != is_scaled_code(code);
    return (struct tile){.weights = few ? 4 : 8, .parts = 1, .rows = rows};
}

/* With few rows, on-the-fly conversion of 16-bit weights costs almost nothing; a panel would cost
 * more. */
static inline int tape_rows(mgl_weight_code code)
{
    return is_scaled_code(code) ? 2 : code == MGL_CODE_F32 ? 3 : 6;
}

/* For one row of unscaled codes, two passes follow each other closely and read memory almost in
 * order. Other passes are over long runs: storing and loading the sums for each block would take
 * longer than the products of the block. */
static inline int tape_run(mgl_weight_code code, int rows)
{
    return rows == 1 && !is_scaled_code(code) ? 2 : MGL_TAPE_RUN;
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

/* The weights of the 16 codes of 4 bits. */
struct table {
    vector weights;
};

static inline struct table table_of(mgl_weight_code code, const struct scale_group *group, int i)
{
    if (!is_nibble(code))
        return (struct table){zero()};
    const vector codes = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    if (code == MGL_CODE_UINT4)
        return (struct table){
            _mm512_add_ps(_mm512_mul_ps(codes, spread(group->scale[i])), spread(group->zero[i]))};
    const vector numbers =
        _mm512_sub_ps(_mm512_add_ps(codes, spread(MGL_BYTE_BASE)), spread(group->zero[i]));
    return (struct table){_mm512_mul_ps(numbers, spread(group->scale[i]))};
}

/* Integers below 2^23 as floats, plus 2^23: they are the lower bits of its mantissa. */
static inline vector plus_base(__m512i integers)
{
    return _mm512_castsi512_ps(_mm512_or_si512(integers, _mm512_set1_epi32(0x4B000000)));
}

static inline vector load_bytes(const char *from)
{
    return plus_base(_mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)from)));
}

/* 16 codes, plus 2^23: moves each to the lowest byte of its lane. */
static inline vector load_int8(const char *row, int step)
{
#ifdef __AVX512VBMI__
    const __m512i base = _mm512_set1_epi32(0x4B000000);
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
    const __m512i order = _mm512_add_epi32(lanes, _mm512_set1_epi32(step % 2 * 32 + step / 2 * 8));
    return _mm512_castsi512_ps(
        _mm512_mask_permutexvar_epi8(base, 0x1111111111111111, order, _mm512_loadu_si512(row)));
#else
    const __m128i *quarter = (const __m128i *)(const void *)(row + step % 2 * 32 + step / 2 * 8);
    return plus_base(_mm512_cvtepu8_epi32(
        _mm_unpacklo_epi64(_mm_loadl_epi64(quarter), _mm_loadl_epi64(quarter + 1))));
#endif
}

/* As the upper bits of an f16, sign, exponent and mantissa are the number times 2^-8. Two steps
 * share the conversion of 32 codes to f16. */
static inline vector load_e4m3(const char *row, int step)
{
    const __m512i codes = _mm512_loadu_si512(row), none = _mm512_setzero_si512();
    const __m512i upper =
        step / 2 ? _mm512_unpackhi_epi8(none, codes) : _mm512_unpacklo_epi8(none, codes);
    const __m512i halves =
        _mm512_and_si512(_mm512_srai_epi16(upper, 1), _mm512_set1_epi16((short)0xBFFF));
    return _mm512_cvtph_ps(step % 2 ? _mm512_extracti64x4_epi64(halves, 1)
                                    : _mm512_castsi512_si256(halves));
}

/* Returns the codes of four steps, all even or all odd, as indices: one step in each byte of a
 * 32-bit lane. The bits above the codes are not zero. In each quarter, a transpose of bytes
 * collects the bytes of the four parts. Codes in upper nibbles come from a shifted copy of the
 * lanes. */
static inline __m512i load_steps(const char *row, int odd)
{
    const __m512i order =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    /* the 32-bit lane of each column of two quarters (formats.h); 16 to 31: the shifted copy */
    const __m512i quarters =
        _mm512_setr_epi32(0, 2, 16, 18, 1, 3, 17, 19, 4, 6, 20, 22, 5, 7, 21, 23);
    const __m512i lanes = _mm512_add_epi32(quarters, _mm512_set1_epi32(odd * 8));
    const __m512i lower = _mm512_shuffle_epi8(_mm512_loadu_si512(row), order);
    return _mm512_permutex2var_epi32(lower, lanes, _mm512_srli_epi32(lower, 4));
}

static inline vector load_scaled(mgl_weight_code code, const char *row, int step, int part,
                                 struct table table, const struct scale_group *group, int i,
                                 bool ones)
{
    (void)part;
    if (is_nibble(code)) {
        const __m512i indices =
            _mm512_srli_epi32(load_steps(row, step % 2), (unsigned)step / 2 * 8);
        return _mm512_permutexvar_ps(indices, table.weights);
    }
    const vector number = code == MGL_CODE_E4M3
                              ? load_e4m3(row, step)
                              : _mm512_sub_ps(load_int8(row, step), spread(group->zero[i]));
    return ones ? number : _mm512_mul_ps(number, spread(group->scale[i]));
}

static inline float add_one(const vector *sums)
{
    return add_8(_mm256_add_ps(_mm512_castps512_ps256(*sums), _mm512_extractf32x8_ps(*sums, 1)));
}

#include "vm/cpu/products_vector.h"

#endif
