/* Unpacks blocks of quantized weights. See blocks.h. Each function states what a weight is. */
#include "importer/gguf/blocks.h"

#include <string.h>

static float half_at(const uint8_t *at)
{
    float value;
    mgl_convert(&value, MGL_F32, at, MGL_F16, 1);
    return value;
}

/* The low nibbles are the first half of the codes. */
static void unpack_nibbles(const uint8_t *from, int bytes, uint8_t *codes)
{
    for (int i = 0; i < bytes; i++) {
        codes[i] = from[i] & 15;
        codes[bytes + i] = from[i] >> 4;
    }
}

/* f16 d, 32 signed bytes q: q d. */
static void unpack_q8_0(const uint8_t *block, uint8_t *codes, float *scales, float *minimums)
{
    (void)minimums;
    scales[0] = half_at(block);
    for (int i = 0; i < 32; i++)
        codes[i] = block[2 + i] ^ 0x80;
}

/* f16 d, 32 nibbles q: (q - 8) d. */
static void unpack_q4_0(const uint8_t *block, uint8_t *codes, float *scales, float *minimums)
{
    (void)minimums;
    scales[0] = half_at(block);
    unpack_nibbles(block + 2, 16, codes);
}

/* f16 d, f16 m, 32 nibbles q: q d + m. q d is exact in f32, so a weight is rounded once. */
static void unpack_q4_1(const uint8_t *block, uint8_t *codes, float *scales, float *minimums)
{
    scales[0] = half_at(block);
    minimums[0] = half_at(block + 2);
    unpack_nibbles(block + 4, 16, codes);
}

/*
 * f16 d, f16 m, 12 bytes of 6-bit numbers s and t for 8 groups of 32 weights, 128 bytes of nibbles
 * q, where two groups share 32 bytes: q (d s) - m t. d s and m t, of 11 + 6 bits, and q d s, of 4
 * more bits, are exact in f32, so a weight is rounded once. The first four groups have their
 * numbers in bits 0 to 5 of bytes 0 to 3 (s) and 4 to 7 (t); the last four have the low bits of
 * both in bytes 8 to 11, and the high bits in bits 6 and 7 of bytes 0 to 3 (s) and 4 to 7 (t).
 */
static void unpack_q4_k(const uint8_t *block, uint8_t *codes, float *scales, float *minimums)
{
    const float d = half_at(block), m = half_at(block + 2);
    const uint8_t *six = block + 4;
    for (int g = 0; g < 4; g++) {
        scales[g] = d * (float)(six[g] & 63);
        minimums[g] = -(m * (float)(six[4 + g] & 63));
        scales[4 + g] = d * (float)((six[8 + g] & 15) | six[g] >> 6 << 4);
        minimums[4 + g] = -(m * (float)(six[8 + g] >> 4 | six[4 + g] >> 6 << 4));
    }
    for (int pair = 0; pair < 4; pair++)
        unpack_nibbles(block + 16 + 32 * pair, 32, codes + 64 * pair);
}

/*
 * 128 bytes of low nibbles, 64 bytes of high pairs of bits, 16 signed bytes s, f16 d. A weight is
 * (q - 32) d s: q has 6 bits, and 16 weights share s. d s and the weight are exact in f32: 11 + 7 +
 * 5 bits. Each half of the block has 128 weights in 4 runs of 32, which share bytes.
 */
static void unpack_q6_k(const uint8_t *block, uint8_t *codes, float *scales, float *minimums)
{
    (void)minimums;
    const float d = half_at(block + 208);
    for (int g = 0; g < 16; g++)
        scales[g] = d * (float)(int8_t)block[192 + g];
    for (int half = 0; half < 2; half++) {
        const uint8_t *low = block + 64 * half, *high = block + 128 + 32 * half;
        for (int i = 0; i < 128; i++) {
            const int run = i / 32, at = i % 32;
            const int nibble = low[32 * (run % 2) + at] >> 4 * (run / 2) & 15;
            const int pair = high[at] >> 2 * run & 3;
            codes[128 * half + i] = (uint8_t)(128 + (nibble | pair << 4) - 32);
        }
    }
}

#define FORMAT(code_, scales_, group_)                                                             \
    {                                                                                              \
        .code = MGL_CODE_##code_, .scales = MGL_##scales_, .group = (group_), .group_rows = 1      \
    }

static const mgl_gguf_blocks blocks[] = {
    {"Q8_0", FORMAT(INT8, F16, 32), 32, 34, unpack_q8_0},
    {"Q4_0", FORMAT(INT4, F16, 32), 32, 18, unpack_q4_0},
    {"Q4_1", FORMAT(UINT4, F16, 32), 32, 20, unpack_q4_1},
    {"Q4_K", FORMAT(UINT4, F32, 32), 256, 144, unpack_q4_k},
    {"Q6_K", FORMAT(INT8, F32, 16), 256, 210, unpack_q6_k},
};

const mgl_gguf_blocks *mgl_gguf_find_blocks(const char *type)
{
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        if (!strcmp(blocks[i].type, type))
            return &blocks[i];
    return NULL;
}

bool mgl_gguf_is_quantized(const char *type)
{
    static const struct {
        const char *name;
        int weights;
    } types[] = {
#define MGL_GGUF_TYPE(number, name, weights, bytes) {name, weights},
#include "importer/gguf/types.def"
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(types[i].name, type))
            return types[i].weights > 1;
    return false;
}
