/*
 * Unpacks words of codes. See unpack.h. A word of eight 4-bit fields is spread to eight bytes with
 * shifts and masks. Layouts that are packed across rows are transposed in tiles, so that few cache
 * lines are in use at a time.
 */
#include "importer/quantized/unpack.h"

#include <string.h>

enum { TILE_ROWS = 8, TILE_COLUMNS = 256 };

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

int mgl_awq_field(int row)
{
    static const int fields[8] = {0, 4, 1, 5, 2, 6, 3, 7};
    return fields[row];
}

/* The row of a field: the inverse of mgl_awq_field. */
static int awq_row(int field)
{
    static const int rows[8] = {0, 2, 4, 6, 1, 3, 5, 7};
    return rows[field];
}

/* Unpacks one column of words, which hold 8 rows, into rows of codes: first the bytes of the words,
 * then both fields of each byte. The loops over columns are vectorized. */
static void unpack_awq_column(const uint32_t words[TILE_COLUMNS], uint8_t codes[8][TILE_COLUMNS])
{
    uint8_t bytes[4][TILE_COLUMNS];
    const uint8_t *from = (const uint8_t *)words;
    for (int k = 0; k < TILE_COLUMNS; k++) {
        bytes[0][k] = from[4 * k];
        bytes[1][k] = from[4 * k + 1];
        bytes[2][k] = from[4 * k + 2];
        bytes[3][k] = from[4 * k + 3];
    }
    for (int b = 0; b < 4; b++) {
        uint8_t *restrict low = codes[awq_row(2 * b)], *restrict high = codes[awq_row(2 * b + 1)];
        for (int k = 0; k < TILE_COLUMNS; k++) {
            low[k] = bytes[b][k] & 15;
            high[k] = bytes[b][k] >> 4;
        }
    }
}

void mgl_unpack_awq(const uint32_t *words, int64_t width, int64_t skip, int64_t rows,
                    int64_t columns, int64_t stride, uint8_t *to)
{
    uint32_t column[TILE_COLUMNS] = {0};
    uint8_t codes[8][TILE_COLUMNS];
    for (int64_t k = 0; k < columns; k += TILE_COLUMNS) {
        const int64_t wide = columns - k < TILE_COLUMNS ? columns - k : TILE_COLUMNS;
        for (int64_t c = 0; c < width; c++) {
            for (int64_t i = 0; i < wide; i++)
                column[i] = words[(k + i) * width + c];
            unpack_awq_column(column, codes);
            for (int64_t row = 0; row < 8; row++) {
                const int64_t n = 8 * c + row - skip;
                if (n >= 0 && n < rows)
                    memcpy(to + n * stride + k, codes[row], (size_t)wide);
            }
        }
    }
}
