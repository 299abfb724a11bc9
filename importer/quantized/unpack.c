/*
 * Unpacks words of codes. See unpack.h. A word of eight 4-bit fields is spread to eight bytes with
 * shifts and masks. Layouts that are packed across rows are transposed in tiles of a few rows, so
 * that each tile writes few cache lines at a time.
 */
#include "importer/quantized/unpack.h"

#include <string.h>

enum { TILE_ROWS = 8 };

/* Spreads the 4-bit fields of a word: field i becomes byte i. */
static uint64_t spread(uint32_t word)
{
    uint64_t x = word;
    x = (x | x << 16) & 0x0000FFFF0000FFFFu;
    x = (x | x << 8) & 0x00FF00FF00FF00FFu;
    return (x | x << 4) & 0x0F0F0F0F0F0F0F0Fu;
}

void mgl_unpack_nibbles(const uint8_t *from, int64_t count, uint8_t *to)
{
    for (int64_t i = 0; i < count / 2; i++) {
        to[2 * i] = from[i] & 15;
        to[2 * i + 1] = from[i] >> 4;
    }
}

/* One tile: `rows` <= TILE_ROWS rows from `first`. */
static void unpack_gptq_tile(const uint32_t *words, int bits, int64_t rows, int64_t stride,
                             int64_t columns, uint8_t *to)
{
    const int64_t height = columns * bits / 32;
    for (int64_t r = 0; r < height; r++, words += stride)
        for (int64_t n = 0; n < rows; n++) {
            if (bits == 4) {
                const uint64_t codes = spread(words[n]);
                memcpy(to + n * columns + 8 * r, &codes, 8);
            } else {
                memcpy(to + n * columns + 4 * r, &words[n], 4);
            }
        }
}

void mgl_unpack_gptq(const uint32_t *words, int bits, int64_t rows, int64_t columns, uint8_t *to)
{
    int64_t first = 0;
    /* The numbers of rows and bits are constants in the usual case, so that the compiler unrolls
     * the loop. */
    for (; first + TILE_ROWS <= rows; first += TILE_ROWS)
        if (bits == 4)
            unpack_gptq_tile(words + first, 4, TILE_ROWS, rows, columns, to + first * columns);
        else
            unpack_gptq_tile(words + first, 8, TILE_ROWS, rows, columns, to + first * columns);
    if (first < rows)
        unpack_gptq_tile(words + first, bits, rows - first, rows, columns, to + first * columns);
}

/* Exchanges the blocks of `shift` / 8 bytes off the diagonal of an 8 x 8 matrix of bytes. */
static void exchange(uint64_t *a, uint64_t *b, int shift, uint64_t mask)
{
    const uint64_t t = (*a >> shift ^ *b) & mask;
    *b ^= t;
    *a ^= t << shift;
}

/* Transposes an 8 x 8 matrix of bytes; byte i of x[j] becomes byte j of x[i]. */
static void transpose(uint64_t x[8])
{
    for (int i = 0; i < 4; i++)
        exchange(&x[i], &x[i + 4], 32, 0x00000000FFFFFFFFu);
    for (int i = 0; i < 8; i += i % 4 == 1 ? 3 : 1)
        exchange(&x[i], &x[i + 2], 16, 0x0000FFFF0000FFFFu);
    for (int i = 0; i < 8; i += 2)
        exchange(&x[i], &x[i + 1], 8, 0x00FF00FF00FF00FFu);
}

int mgl_awq_field(int row)
{
    static const int fields[8] = {0, 4, 1, 5, 2, 6, 3, 7};
    return fields[row];
}

void mgl_unpack_awq(const uint32_t *words, int64_t width, int64_t skip, int64_t rows,
                    int64_t columns, uint8_t *to)
{
    for (int64_t c = 0; c < width; c++)
        for (int64_t k = 0; k < columns; k += 8) {
            uint64_t x[8];
            for (int64_t j = 0; j < 8; j++)
                x[j] = spread(words[(k + j) * width + c]);
            transpose(x);
            for (int row = 0; row < 8; row++) {
                const int64_t n = 8 * c + row - skip;
                if (n >= 0 && n < rows)
                    memcpy(to + n * columns + k, &x[mgl_awq_field(row)], 8);
            }
        }
}
