/* Product set for NEON, which every aarch64 CPU has. Four vectors hold the 16 partial sums. The
 * algorithm is in products_vector.h. */
#include <arm_neon.h>

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
    return mgl_weight_code_get(code)->scaled ? 0 : 2;
}

/* For one row, two passes follow each other closely and read memory almost in order. */
static inline int tape_run(mgl_weight_code code, int rows)
{
    int least = code == MGL_CODE_F32 ? 1 : 2;
    return rows == 1 ? least : 8;
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
