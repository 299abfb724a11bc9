/*
 * Unpacks words of codes. See unpack.h. A word of eight 4-bit fields is spread to eight bytes with
 * shifts and masks. Layouts that are packed across rows are transposed in tiles, so that few cache
 * lines are in use at a time. If the columns of GPTQ are sorted, a tile is transposed twice, by
 * interleaving bytes: into columns, which are sorted, and back into rows.
 */
#include "importer/quantized/unpack.h"

#include <string.h>

enum { TILE_ROWS = 8, TILE_COLUMNS = 256 };

void mgl_unpack_nibbles(const uint8_t *from, int64_t count, uint8_t *to)
{
    for (int64_t i = 0; i < count / 2; i++) {
        to[2 * i] = from[i] & 15;
        to[2 * i + 1] = from[i] >> 4;
    }
}

/* ---- GPTQ ------------------------------------------------------------------------------------ */

/* Spreads the 4-bit fields of a word: field i becomes byte i. */
static uint64_t spread(uint32_t word)
{
    uint64_t x = word;
    x = (x | x << 16) & 0x0000FFFF0000FFFFu;
    x = (x | x << 8) & 0x00FF00FF00FF00FFu;
    return (x | x << 4) & 0x0F0F0F0F0F0F0F0Fu;
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

/* ---- GPTQ with sorted columns ---------------------------------------------------------------- */

typedef uint8_t bytes16 __attribute__((vector_size(16)));
typedef uint64_t halves __attribute__((vector_size(16)));

static inline bytes16 load_half(const uint8_t *from)
{
    uint64_t half;
    memcpy(&half, from, sizeof half);
    return (bytes16)(halves){half, 0};
}

static inline void store_half(uint8_t *to, bytes16 v, int half)
{
    const uint64_t bytes = ((halves)v)[half];
    memcpy(to, &bytes, sizeof bytes);
}

/* Interleaves the bytes of the lower halves, or of the upper halves. */
static inline bytes16 zip_low(bytes16 a, bytes16 b)
{
    return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}

static inline bytes16 zip_high(bytes16 a, bytes16 b)
{
    return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15,
                                   31);
}

/* Transposes 8 rows of 4 bytes: low[0] has the rows of bytes 0 and 1, low[1] those of 2 and 3. */
static inline void transpose_words(bytes16 first, bytes16 last, bytes16 to[2])
{
    const bytes16 a = zip_low(first, last), b = zip_high(first, last);
    const bytes16 even = zip_low(a, b), odd = zip_high(a, b);
    to[0] = zip_low(even, odd);
    to[1] = zip_high(even, odd);
}

/* Transposes 8 rows of words into 8 codes of each column. */
static void unpack_gptq_words(const uint32_t *words, int bits, uint8_t (*to)[TILE_ROWS])
{
    bytes16 in[2], even[2], odd[2];
    memcpy(in, words, sizeof in);
    if (bits == 8) {
        transpose_words(in[0], in[1], even);
        memcpy(to, even, sizeof even);
        return;
    }
    transpose_words(in[0] & 15, in[1] & 15, even);
    transpose_words(in[0] >> 4, in[1] >> 4, odd);
    for (int i = 0; i < 4; i++) {
        store_half(to[2 * i], even[i / 2], i % 2);
        store_half(to[2 * i + 1], odd[i / 2], i % 2);
    }
}

/* Transposes 8 columns of 8 codes. */
static inline void transpose_columns(const uint8_t (*from)[TILE_ROWS], const int32_t *order,
                                     int64_t stride, uint8_t *to)
{
    bytes16 in[8], pair[4];
    for (int i = 0; i < 8; i++)
        in[i] = load_half(from[order[i]]);
    for (int i = 0; i < 4; i++)
        pair[i] = zip_low(in[i], in[i + 4]);
    const bytes16 a = zip_low(pair[0], pair[2]), b = zip_low(pair[1], pair[3]);
    const bytes16 c = zip_high(pair[0], pair[2]), d = zip_high(pair[1], pair[3]);
    const bytes16 rows[4] = {zip_low(a, b), zip_high(a, b), zip_low(c, d), zip_high(c, d)};
    for (int i = 0; i < 8; i++)
        store_half(to + i * stride, rows[i / 2], i % 2);
}

static void transpose_tile(const uint8_t (*from)[TILE_ROWS], const int32_t *order, int64_t rows,
                           int64_t columns, uint8_t *to)
{
    int64_t i = 0;
    for (; rows == TILE_ROWS && i + 8 <= columns; i += 8)
        transpose_columns(from, order + i, columns, to + i);
    for (; i < columns; i++)
        for (int64_t n = 0; n < rows; n++)
            to[n * columns + i] = from[order[i]][n];
}

void mgl_unpack_gptq_sorted(const uint32_t *words, int bits, int64_t rows, int64_t columns,
                            const int32_t *order, void *room, uint8_t *to)
{
    const int64_t height = columns * bits / 32, fields = 32 / bits;
    uint8_t(*const tile)[TILE_ROWS] = room;
    for (int64_t n = 0, some; n < rows; n += some, to += some * columns) {
        uint32_t last[TILE_ROWS] = {0};
        some = rows - n < TILE_ROWS ? rows - n : TILE_ROWS;
        for (int64_t r = 0; r < height; r++) {
            const uint32_t *from = words + r * rows + n;
            if (some < TILE_ROWS)
                from = memcpy(last, from, (size_t)some * sizeof *from);
            unpack_gptq_words(from, bits, tile + r * fields);
        }
        transpose_tile((const uint8_t(*)[TILE_ROWS])tile, order, some, columns, to);
    }
}

/* ---- AWQ ------------------------------------------------------------------------------------- */

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

void mgl_sort_codes(const uint8_t *from, const int32_t *order, int64_t count, uint8_t *to)
{
    int64_t i = 0;
    for (; i + 8 <= count; i += 8, order += 8) {
        const uint64_t low = from[order[0]] | (uint64_t)from[order[1]] << 8 |
                             (uint64_t)from[order[2]] << 16 | (uint64_t)from[order[3]] << 24;
        const uint64_t high = from[order[4]] | (uint64_t)from[order[5]] << 8 |
                              (uint64_t)from[order[6]] << 16 | (uint64_t)from[order[7]] << 24;
        const uint64_t all = low | high << 32;
        memcpy(to + i, &all, 8);
    }
    for (; i < count; i++)
        to[i] = from[*order++];
}
