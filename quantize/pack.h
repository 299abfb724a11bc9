/*
 * Packs codes and zero points as compressed-tensors does (pack_to_int32 of its pack-quantized
 * compressor): fields of `bits` bits in words of 32 bits, the first field in the lowest bits.
 * Words are little-endian. Called by write.c.
 */
#ifndef MGL_QUANTIZE_PACK_H
#define MGL_QUANTIZE_PACK_H

#include <stdint.h>

/* Packs codes of one or more rows along the columns. `count` times bits is a multiple of 32.
 * Writes count * bits / 8 bytes. */
void mgl_pack_codes(const uint8_t *codes, int64_t count, int bits, uint8_t *to);

/* Packs zero points (rows, groups) along the rows: word (row * bits / 32, group). The last words
 * are filled with zeros. Writes mgl_packed_zero_bytes bytes. */
void mgl_pack_zeros(const uint8_t *zeros, int64_t rows, int64_t groups, int bits, uint8_t *to);
int64_t mgl_packed_zero_bytes(int64_t rows, int64_t groups, int bits);

#endif
