/*
 * Synthetic weights as a hash function of (seed, tensor, element), so that nothing is stored. They
 * are computed on the host (rows of a graph), on the device (tapes, tables, the baseline's
 * matrices), and inside the reference. The reference therefore reads no weights from memory.
 *
 *     draw  = the sum of four 7-bit fields of a hash of (key, element): 0 to 508, bell-shaped
 *     value = (offset + (draw >> shift)) * scale, where scale is a power of two
 *
 * Every step is exact. An integer of at most 8 significant bits times a power of two is exact in
 * bf16, f16 (within its exponent range) and f32. All dtypes therefore hold exactly the same
 * weights.
 *
 * A matrix with a scaled weight format (base/weight_format.h) has
 *
 *     code  = 2^(bits - 1) + (draw - 254) / 32 for int4, 2^(bits - 1) + (draw - 254) / 2 for int8,
 *             the e4m3 number (draw - 254) / 4 for fp8; rounding is symmetric about 0,
 *             and int4 is limited to -7 to 7 steps
 *     zero  = 2^(bits - 1); if zero points are stored, plus -2 to 2 by a hash of row and group
 *     scale = 128 to 255 by the same hash, times the rule's power of two
 *     value = (code - zero) * scale for integers, code * scale for fp8; exact in f32
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
    /* of a scaled format; bits = 0: the format is unscaled */
    int bits, e4m3;        /* bits of a code; 1: e4m3, 0: an integer */
    int group, group_rows; /* as in mgl_weight_format */
    int zeros;
    int cols; /* of the matrix */
    int unused;
} mgl_synthetic_rule;

/* The scales of a row group on the tape of a scaled format (schedule/formats.h). */
typedef struct mgl_synthetic_scales {
    int blocks;     /* of 512 bytes, before the k blocks */
    int groups;     /* of a row */
    int rows;       /* scales of a group: 8, or 1 for all rows */
    int size, half; /* bytes of a scale; scales of 2 bytes: half = 1: f16, 0: bf16 */
    int unused;
} mgl_synthetic_scales;

/* A tape segment (layouts in schedule/tape.h). */
typedef struct mgl_synthetic_segment {
    unsigned long long to; /* address */
    long long elements;    /* units of 16 bits: all elements, including zeros at the edges */
    mgl_synthetic_rule rule[2];
    mgl_synthetic_scales scales; /* of a scaled format */
    int tensors;                 /* 1, or 2 with alternating row groups */
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

/* The code of an element of a matrix with a scaled format. */
MGL_SYNTHETIC_FN unsigned mgl_synthetic_code(const mgl_synthetic_rule *rule,
                                             unsigned long long element)
{
    const int draw = mgl_synthetic_draw(rule->key, element) - MGL_SYNTHETIC_MEAN;
    const int size = draw < 0 ? -draw : draw, nearest = (size + 16) >> 5;
    const int steps = rule->e4m3        ? size >> 2
                      : rule->bits == 8 ? size >> 1
                      : nearest < 7     ? nearest
                                        : 7;
    int exponent = 0;
    if (!rule->e4m3)
        return (unsigned)((1 << (rule->bits - 1)) + (draw < 0 ? -steps : steps));
    while (steps >> (exponent + 1))
        exponent++;
    return (unsigned)((draw < 0 ? 128 : 0) |
                      (steps ? (exponent + 7) << 3 | ((steps << 3 >> exponent) & 7) : 0));
}

/* A hash of a row's group, for its scale and its zero point. */
MGL_SYNTHETIC_FN unsigned mgl_synthetic_group(const mgl_synthetic_rule *rule, int row, int group)
{
    const unsigned of = rule->group_rows ? (unsigned)(row / rule->group_rows) : 0;
    return (unsigned)(mgl_synthetic_mix((rule->key ^ 0xD1B54A32D192ED03ull) +
                                        ((unsigned long long)of << 32 | (unsigned)group)) >>
                      32);
}

MGL_SYNTHETIC_FN int mgl_synthetic_zero(const mgl_synthetic_rule *rule, int row, int group)
{
    const int usual = 1 << (rule->bits - 1);
    return rule->zeros ? usual + (int)(mgl_synthetic_group(rule, row, group) >> 8) % 5 - 2 : usual;
}

MGL_SYNTHETIC_FN float mgl_synthetic_scale(const mgl_synthetic_rule *rule, int row, int group)
{
    return (float)(128 + (mgl_synthetic_group(rule, row, group) & 127)) * rule->scale;
}

/* The number of a code. The e4m3 codes of mgl_synthetic_code are integers of at most 63. */
MGL_SYNTHETIC_FN int mgl_synthetic_number(const mgl_synthetic_rule *rule, unsigned code, int zero)
{
    if (!rule->e4m3)
        return (int)code - zero;
    const int exponent = (int)(code >> 3 & 15) - 7;
    const int size = code & 127 ? (int)(8 + (code & 7)) << exponent >> 3 : 0;
    return code & 128 ? -size : size;
}

/* An element of a matrix with a scaled format. */
MGL_SYNTHETIC_FN float mgl_synthetic_scaled(const mgl_synthetic_rule *rule,
                                            unsigned long long element)
{
    const int row = (int)(element / (unsigned)rule->cols);
    const int group = rule->group ? (int)(element % (unsigned)rule->cols) / rule->group : 0;
    return (float)mgl_synthetic_number(rule, mgl_synthetic_code(rule, element),
                                       mgl_synthetic_zero(rule, row, group)) *
           mgl_synthetic_scale(rule, row, group);
}

MGL_SYNTHETIC_FN float mgl_synthetic_value(const mgl_synthetic_rule *rule,
                                           unsigned long long element)
{
    if (rule->bits)
        return mgl_synthetic_scaled(rule, element);
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

/* An element as 16 bits. An element of a scaled format is rounded to bf16 (to nearest, ties away
 * from zero). */
MGL_SYNTHETIC_FN unsigned short mgl_synthetic_16(const mgl_synthetic_rule *rule,
                                                 unsigned long long element)
{
    const unsigned bits = MGL_SYNTHETIC_BITS(mgl_synthetic_value(rule, element));
    if (rule->bits)
        return (unsigned short)((bits + 0x8000u) >> 16);
    return rule->half ? mgl_synthetic_f16(bits) : (unsigned short)(bits >> 16);
}

/* Element `index` of a segment of 16-bit weights. */
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

/* Byte `at` of the scales of a row group whose first row is `row`. */
MGL_SYNTHETIC_FN unsigned mgl_synthetic_scale_byte(const mgl_synthetic_segment *segment,
                                                   const mgl_synthetic_rule *rule, int row, int at)
{
    const mgl_synthetic_scales *s = &segment->scales;
    const int count = s->groups * s->rows, zeros = count * s->size;
    const int index = at < zeros ? at / s->size : at - zeros;
    const int own = row + index % s->rows, group = index / s->rows;
    if (index >= count || own >= segment->row_hi || (at >= zeros && !rule->zeros))
        return 0;
    if (at >= zeros)
        return (unsigned)mgl_synthetic_zero(rule, own, group);
    const unsigned bits = MGL_SYNTHETIC_BITS(mgl_synthetic_scale(rule, own, group));
    const unsigned word = s->size == 4 ? bits : s->half ? mgl_synthetic_f16(bits) : bits >> 16;
    return word >> 8 * (at % s->size) & 255;
}

/* Byte `at` of a segment of a scaled format. */
MGL_SYNTHETIC_FN unsigned mgl_synthetic_byte(const mgl_synthetic_segment *segment, long long at)
{
    const mgl_synthetic_rule *rule = segment->rule;
    const int bits = rule->bits, columns = segment->col_hi - segment->col_lo;
    const int kblocks = mgl_tape_blocks(columns, bits), blocks = segment->scales.blocks + kblocks;
    const long long block = at / MGL_BLOCK_BYTES;
    const int group = (int)(block / blocks),
              number = (int)(block % blocks) - segment->scales.blocks;
    const int first = segment->row_lo + group / segment->tensors * MGL_ROW_GROUP;
    const int within = (int)(at % MGL_BLOCK_BYTES), byte = within % MGL_BLOCK_ROW_BYTES;
    unsigned result = 0;
    rule += group % segment->tensors;
    if (number < 0)
        return mgl_synthetic_scale_byte(
            segment, rule, first, (number + segment->scales.blocks) * MGL_BLOCK_BYTES + within);
    for (int i = 0; i < 8 / bits; i++) {
        const int place =
            bits == 8 ? byte % 8 : byte % 4 * 2 + i; /* of the code, in 8 columns of a part */
        const int part = bits == 8 ? byte % 16 / 8 : byte % 16 / 4;
        const int own = bits == 8 ? place : place < 4 ? 2 * place : 2 * place - 7;
        const int row = first + within / MGL_BLOCK_ROW_BYTES;
        const int column =
            segment->col_lo +
            mgl_tape_block_at(kblocks, segment->warps, number) * mgl_tape_columns(bits) +
            part * MGL_PART_COLUMNS + byte / 16 * 8 + own;
        if (row < segment->row_hi && column < segment->col_hi)
            result |= mgl_synthetic_code(rule, (unsigned long long)row *
                                                       (unsigned long long)segment->cols +
                                                   (unsigned long long)column)
                      << i * bits;
    }
    return result;
}

/* Bytes 4 i to 4 i + 3 of a segment. */
MGL_SYNTHETIC_FN unsigned mgl_synthetic_word(const mgl_synthetic_segment *segment, long long i)
{
    unsigned word = 0;
    if (segment->rule[0].bits == 0)
        return (unsigned)mgl_synthetic_tape(segment, 2 * i) |
               (unsigned)mgl_synthetic_tape(segment, 2 * i + 1) << 16;
    for (int k = 0; k < 4; k++)
        word |= mgl_synthetic_byte(segment, 4 * i + k) << 8 * k;
    return word;
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
