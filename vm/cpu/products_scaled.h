/*
 * Conversion of scaled weights to an f32 panel (products_vector.h), which is multiplied like any
 * other. Each vector set includes this file, so that the compiler vectorizes the loops for it. The
 * result does not depend on the instruction set: a weight is (code - zero) * scale, rounded once.
 */
#ifndef MGL_VM_CPU_PRODUCTS_SCALED_H
#define MGL_VM_CPU_PRODUCTS_SCALED_H

#include "vm/cpu/products.h"

/* Spreads eight nibbles of a word to bytes, in the order of their columns. */
static inline uint64_t spread_nibbles(uint32_t word)
{
    uint64_t even = word & 0xFFFF, odd = word >> 16;
    even = (even | even << 24) & 0x000000FF000000FF;
    even = (even | even << 12) & 0x000F000F000F000F;
    odd = (odd | odd << 24) & 0x000000FF000000FF;
    odd = (odd | odd << 12) & 0x000F000F000F000F;
    return even | odd << 8;
}

/* Copies the codes of a block's row to bytes, in the order of their columns (schedule/formats.h).
 */
static inline void order_codes(int bits, uint8_t *codes, const char *row)
{
    for (int q = 0; q < 4; q++)
        for (int j = 0; j < 16 / bits; j++) {
            uint8_t *to = codes + 32 * j + 8 * q;
            if (bits == 8) {
                memcpy(to, row + 16 * q + 8 * j, 8);
            } else {
                uint32_t word;
                memcpy(&word, row + 16 * q + 4 * j, sizeof word);
                const uint64_t spread = spread_nibbles(word);
                memcpy(to, &spread, sizeof spread);
            }
        }
}

/* The e4m3 number of the bits, which are no NaN. As the upper bits of an f32, exponent and mantissa
 * are the number times 2^-120. */
static inline float number_e4m3(uint8_t bits)
{
    const uint32_t magnitude = (uint32_t)(bits & 127) << 20, sign = (uint32_t)(bits & 128) << 24;
    float number;
    memcpy(&number, &magnitude, sizeof number);
    number *= 0x1p120f;
    uint32_t all;
    memcpy(&all, &number, sizeof all);
    all |= sign;
    memcpy(&number, &all, sizeof number);
    return number;
}

/* Scales and zero points of one group of a row group. */
struct group_scales {
    float scale[MGL_ROW_GROUP], zero[MGL_ROW_GROUP];
};

static inline void load_scales(const mgl_matrix *w, const char *scales, int64_t group,
                               struct group_scales *out)
{
    const int rows = mgl_tape_scale_rows(w->format);
    const size_t size = mgl_dtype_size(w->format.scales);
    const float usual = (float)mgl_weight_code_zero(w->format.code);
    const uint8_t *zeros =
        (const uint8_t *)scales + (size_t)(w->groups * rows) * size + (size_t)(group * rows);
    mgl_convert(out->scale, MGL_F32, scales + (size_t)(group * rows) * size, w->format.scales,
                (size_t)rows);
    for (int i = 0; i < MGL_ROW_GROUP; i++) {
        out->zero[i] = w->format.zeros ? (float)zeros[rows > 1 ? i : 0] : usual;
        out->scale[i] = out->scale[rows > 1 ? i : 0];
    }
}

/* Converts 16 codes to weights. */
static inline void convert_step(bool integer, float *to, const uint8_t *codes, float zero,
                                float scale)
{
    for (int k = 0; k < MGL_PRODUCTS_SUMS; k++)
        to[k] = (integer ? (float)codes[k] - zero : number_e4m3(codes[k])) * scale;
}

/* Converts block b, at `block`, to `panel` (steps of 16 columns, rows, columns of a step).
 * `scales`: of the row group. */
static inline void convert_scaled_block(const mgl_matrix *w, int bits, bool integer,
                                        const char *scales, const char *block, int b, float *panel)
{
    const int columns = MGL_BLOCK_ROW_BYTES * 8 / bits;
    const int64_t group = w->format.group;
    uint8_t codes[MGL_ROW_GROUP][MGL_FORMAT_COLUMNS];
    struct group_scales of = {.scale = {1, 1, 1, 1, 1, 1, 1, 1}};
    for (int i = 0; i < MGL_ROW_GROUP; i++) {
        order_codes(bits, codes[i], block + (ptrdiff_t)i * MGL_BLOCK_ROW_BYTES);
        of.zero[i] = (float)mgl_weight_code_zero(w->format.code);
    }
    for (int step = 0, loaded = -1; step < columns; step += MGL_PRODUCTS_SUMS) {
        int64_t g = group == MGL_GROUP_ALL ? 0 : ((int64_t)b * columns + step) / group;
        g = g < w->groups ? g : w->groups - 1; /* past the last column, where x is zero */
        if (w->groups > 0 && g != loaded)
            load_scales(w, scales, g, &of);
        loaded = (int)g;
        for (int i = 0; i < MGL_ROW_GROUP; i++, panel += MGL_PRODUCTS_SUMS)
            convert_step(integer, panel, codes[i] + step, of.zero[i], of.scale[i]);
    }
}

/* The same for the code of the matrix. */
static void convert_scaled(const mgl_matrix *w, const char *scales, const char *block, int b,
                           float *panel)
{
    if (w->format.code == MGL_CODE_INT4)
        convert_scaled_block(w, 4, true, scales, block, b, panel);
    else
        convert_scaled_block(w, 8, w->format.code == MGL_CODE_INT8, scales, block, b, panel);
}

#endif
