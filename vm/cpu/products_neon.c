/* Product set for NEON, which every aarch64 CPU has. Four vectors hold the 16 partial sums. The
 * algorithm is in products_vector.h. */
#include <arm_neon.h>
#include <string.h>

#include "vm/cpu/products_sets.h"

typedef float32x4_t vector;

/* 24 sums, 3 rows of x and a weight fit in 32 registers. */
static inline struct tile panel_tile(int rows)
{
    return (struct tile){.weights = 8, .parts = 1, .rows = rows};
}

/* All vectors of a weight row, because tape data does not stay in the L1 cache. */
static inline struct tile tape_tile(mgl_weight_code code, int rows)
{
    (void)code;
    return (struct tile){.weights = rows == 1 ? 4 : 2, .parts = 4, .rows = rows};
}

static inline int tape_rows(mgl_weight_code code)
{
    (void)code;
    return 2;
}

/* For one row, two passes follow each other closely and read memory almost in order. Passes over
 * scaled codes are slower than memory, and prepare scales. */
static inline int tape_run(mgl_weight_code code, int rows)
{
    int least = code == MGL_CODE_F32 ? 1 : 2;
    return rows == 1 && !mgl_weight_code_get(code)->scaled ? least : MGL_TAPE_RUN;
}

#define IN_REGISTER(v) __asm__("" : "+w"(v))

static inline vector zero(void)
{
    return vdupq_n_f32(0);
}

static inline vector spread(float value)
{
    return vdupq_n_f32(value);
}

static inline vector load(const float *from)
{
    return vld1q_f32(from);
}

static inline void store(float *to, vector v)
{
    vst1q_f32(to, v);
}

static inline vector add_product(vector a, vector b, vector c)
{
    return vfmaq_f32(c, a, b);
}

static inline vector load_bf16(const void *from)
{
    return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(from), 16));
}

static inline vector load_f16(const void *from)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(from)));
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
static inline vector plus_base(uint32x4_t integers)
{
    return vreinterpretq_f32_u32(vorrq_u32(integers, vdupq_n_u32(0x4B000000)));
}

/* Vector `half` of 8 bytes. */
static inline vector load_half(const char *from, int half)
{
    const uint16x8_t wide = vmovl_u8(vld1_u8((const void *)from));
    return plus_base(vmovl_u16(half ? vget_high_u16(wide) : vget_low_u16(wide)));
}

static inline vector load_bytes(const char *from)
{
    uint32_t bytes;
    memcpy(&bytes, from, sizeof bytes);
    return plus_base(vmovl_u16(vget_low_u16(vmovl_u8(vcreate_u8(bytes)))));
}

/* As the upper bits of an f16, sign, exponent and mantissa are the number times 2^-8. */
static inline vector load_e4m3(const char *from, int half)
{
    const int16x8_t wide = vshlq_n_s16(vmovl_s8(vld1_s8((const void *)from)), 7);
    const float16x8_t halves =
        vreinterpretq_f16_u16(vandq_u16(vreinterpretq_u16_s16(wide), vdupq_n_u16(0xBFFF)));
    return vcvt_f32_f16(half ? vget_high_f16(halves) : vget_low_f16(halves));
}

/* 4 of 8 codes, plus 2^23: each lane shifts their word. */
static inline vector load_int4(const char *from, int half)
{
    static const int32_t shifts[8] = {0, -16, -4, -20, -8, -24, -12, -28}; /* formats.h */
    uint32_t word;
    memcpy(&word, from, sizeof word);
    const uint32x4_t shifted = vshlq_u32(vdupq_n_u32(word), vld1q_s32(shifts + 4 * half));
    return plus_base(vandq_u32(shifted, vdupq_n_u32(15)));
}

static inline vector load_scaled(mgl_weight_code code, const char *row, int step, int part,
                                 struct table table, const struct scale_group *group, int i,
                                 bool ones)
{
    const char *quarter = row + step % 2 * 32 + part / 2 * 16;
    (void)table;
    const vector number =
        code == MGL_CODE_E4M3
            ? load_e4m3(quarter + step / 2 * 8, part % 2)
            : vsubq_f32(is_nibble(code) ? load_int4(quarter + step / 2 * 4, part % 2)
                                        : load_half(quarter + step / 2 * 8, part % 2),
                        vdupq_n_f32(code == MGL_CODE_UINT4 ? MGL_BYTE_BASE : group->zero[i]));
    const vector product = ones ? number : vmulq_f32(number, vdupq_n_f32(group->scale[i]));
    return code == MGL_CODE_UINT4 ? vaddq_f32(product, vdupq_n_f32(group->zero[i])) : product;
}

/* Adds the partial sums of an output that are 8 apart, then 4 apart. */
static inline vector add_4_apart(const vector *s)
{
    return vaddq_f32(vaddq_f32(s[0], s[2]), vaddq_f32(s[1], s[3]));
}

static inline vector add_output(const float *sums)
{
    vector s[4];
    for (int part = 0; part < 4; part++)
        s[part] = vld1q_f32(sums + 4 * part);
    return add_4_apart(s);
}

/* Adds the sums of two outputs that are 2 apart: (a 0 1, b 0 1). */
static inline vector add_2_apart(vector a, vector b)
{
    return vcombine_f32(vadd_f32(vget_low_f32(a), vget_high_f32(a)),
                        vadd_f32(vget_low_f32(b), vget_high_f32(b)));
}

/* Reduces (8, 16) partial sums to 8 outputs. */
static inline void add_group(const float *sums, float *to)
{
    for (int i = 0; i < 8; i += 4, sums += 64)
        vst1q_f32(to + i, vpaddq_f32(add_2_apart(add_output(sums), add_output(sums + 16)),
                                     add_2_apart(add_output(sums + 32), add_output(sums + 48))));
}

static inline float add_one(const vector *sums)
{
    vector four = add_4_apart(sums);
    return vpadds_f32(vadd_f32(vget_low_f32(four), vget_high_f32(four)));
}

#include "vm/cpu/products_vector.h"

const mgl_products mgl_products_neon = {"neon", multiply, dot, add_scaled};
