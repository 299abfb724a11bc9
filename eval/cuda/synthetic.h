/*
 * Synthetic weights as a hash function of (seed, tensor, element), so that nothing is stored. They
 * are computed on the host (rows of a graph), on the device (tapes, tables, the baseline's
 * matrices), and inside the reference. The reference therefore reads no weights from memory.
 *
 *     draw(key, element) = the sum of four 7-bit fields of a mixed 64-bit word: 0 to 508,
 * bell-shaped value              = (offset + (draw >> shift)) * scale, scale a power of two
 *
 * Every step is exact. An integer of at most 8 significant bits times a power of two is exact in
 * bf16, f16 (within its exponent range) and f32. All dtypes therefore hold the same weights
 * bitwise.
 *
 * Plain C that NVRTC compiles too. MGL_SYNTHETIC_FN is `static inline` on the host and `static
 * __device__` on the device. MGL_SYNTHETIC_BITS returns the bits of an f32.
 */
#ifndef MGL_EVAL_CUDA_SYNTHETIC_H
#define MGL_EVAL_CUDA_SYNTHETIC_H

#include "schedule/tape.h"

/* Parameters of a tensor's values. */
typedef struct mgl_synthetic_rule {
    unsigned long long key; /* derived from seed and tensor */
    int offset, shift;
    float scale;
    int half; /* 1: 16-bit values are f16; 0: bf16 */
} mgl_synthetic_rule;

/* A tape segment of 16-bit weights (layouts in vm/pack.c). */
typedef struct mgl_synthetic_segment {
    unsigned long long to; /* address */
    long long elements;    /* all elements, including zeros at the edges */
    mgl_synthetic_rule rule[2];
    int tensors; /* 1, or 2 with alternating row groups */
    int row_lo, row_hi, col_lo, col_hi;
    int cols;  /* of the whole tensor */
    int warps; /* warps that the tape is laid out for (schedule/tape.h) */
    int unused;
} mgl_synthetic_segment;

enum {
    MGL_SYNTHETIC_MEAN = 254, /* mean of draw */
    MGL_SYNTHETIC_POSITIONS =
        20, /* log2 of the positions per row in the element numbers of a cache */
};

/* Finalizer of splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
 * 2014). */
MGL_SYNTHETIC_FN unsigned long long mgl_synthetic_mix(unsigned long long z)
{
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ z >> 27) * 0x94D049BB133111EBull;
    return z ^ z >> 31;
}

MGL_SYNTHETIC_FN int mgl_synthetic_draw(unsigned long long key, unsigned long long element)
{
    unsigned word = (unsigned)(mgl_synthetic_mix(key + element * 0x9E3779B97F4A7C15ull) >> 32);
    return (int)((word & 127) + (word >> 7 & 127) + (word >> 14 & 127) + (word >> 21 & 127));
}

MGL_SYNTHETIC_FN float mgl_synthetic_value(const mgl_synthetic_rule *rule,
                                           unsigned long long element)
{
    int draw = mgl_synthetic_draw(rule->key, element);
    return (float)(rule->offset + (draw >> rule->shift)) * rule->scale;
}

/* The f16 of a value that is exact in f16: at most 8 significant bits. */
MGL_SYNTHETIC_FN unsigned short mgl_synthetic_f16(unsigned bits)
{
    const unsigned sign = bits >> 16 & 0x8000u, digits = (bits & 0x7FFFFFu) | 0x800000u;
    const int exponent = (int)(bits >> 23 & 255u) - 127 + 15;
    if ((bits & 0x7FFFFFFFu) == 0)
        return (unsigned short)sign;
    if (exponent < 1) /* subnormal */
        return (unsigned short)(exponent < -10 ? sign : sign | digits >> (14 - exponent));
    return (unsigned short)(sign | (unsigned)exponent << 10 | (digits >> 13 & 0x3FFu));
}

/* An element as 16 bits. */
MGL_SYNTHETIC_FN unsigned short mgl_synthetic_16(const mgl_synthetic_rule *rule,
                                                 unsigned long long element)
{
    const unsigned bits = MGL_SYNTHETIC_BITS(mgl_synthetic_value(rule, element));
    return rule->half ? mgl_synthetic_f16(bits) : (unsigned short)(bits >> 16);
}

/* Element `index` of a segment as 16 bits. */
MGL_SYNTHETIC_FN unsigned short mgl_synthetic_tape(const mgl_synthetic_segment *segment,
                                                   long long index)
{
    const int columns = mgl_tape_columns(16);
    const int blocks = mgl_tape_blocks(segment->col_hi - segment->col_lo, 16);
    const mgl_tape_weight at =
        mgl_tape_weight_at(index, blocks, columns, segment->tensors, segment->warps);
    const int row = segment->row_lo + at.row, column = segment->col_lo + at.column;
    if (row >= segment->row_hi || column >= segment->col_hi)
        return 0;
    return mgl_synthetic_16(&segment->rule[at.which],
                            (unsigned long long)row * (unsigned long long)segment->cols +
                                (unsigned long long)column);
}

/* Number of an element in a KV cache; independent of the capacity. */
MGL_SYNTHETIC_FN unsigned long long mgl_synthetic_cached(int sequence, int head, int kv_heads,
                                                         int position, int head_dim, int dim)
{
    unsigned long long row = (unsigned long long)(sequence * kv_heads + head)
                                 << MGL_SYNTHETIC_POSITIONS |
                             (unsigned long long)position;
    return row * (unsigned long long)head_dim + (unsigned long long)dim;
}

#endif
