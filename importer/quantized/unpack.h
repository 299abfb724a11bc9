/* Unpacks words of codes into one code a byte. `to` has one row of `columns` codes for each row of
 * the matrix. Words are in the byte order of the machine. Used by read.c. */
#ifndef MGL_IMPORTER_QUANTIZED_UNPACK_H
#define MGL_IMPORTER_QUANTIZED_UNPACK_H

#include <stdint.h>

/* Bytes with two codes each, the first code in the low bits: `count` codes, an even number. */
void mgl_unpack_nibbles(const uint8_t *from, int64_t count, uint8_t *to);

/* GPTQ: words [columns * bits / 32, rows], along the columns. */
void mgl_unpack_gptq(const uint32_t *words, int bits, int64_t rows, int64_t columns, uint8_t *to);

/* Same, with sorted columns: column i of `to` is column order[i] of the words. `room`: memory of
 * 8 * columns bytes. */
void mgl_unpack_gptq_sorted(const uint32_t *words, int bits, int64_t rows, int64_t columns,
                            const int32_t *order, void *room, uint8_t *to);

/* AWQ, 4 bits: words [columns, width]. Row 0 of `to` is row `skip` of the words' rows, `skip` < 8;
 * skip + rows <= 8 * width. Rows of `to` are `stride` codes apart. */
void mgl_unpack_awq(const uint32_t *words, int64_t width, int64_t skip, int64_t rows,
                    int64_t columns, int64_t stride, uint8_t *to);

/* to[i] = from[order[i]] */
void mgl_sort_codes(const uint8_t *from, const int32_t *order, int64_t count, uint8_t *to);

/* The field of AWQ's word that holds row `row` of its 8 rows. */
int mgl_awq_field(int row);

#endif
