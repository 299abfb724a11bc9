/* SHA-256 (FIPS 180-4): what names compiled kernels and tells whether a file is whole. */
#ifndef MGL_BASE_SHA256_H
#define MGL_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { MGL_SHA256_BYTES = 32, MGL_SHA256_HEX = 2 * MGL_SHA256_BYTES + 1 };

/* A hash in the making. */
typedef struct mgl_sha256 {
    uint32_t state[8];
    uint64_t length;         /* bytes so far */
    unsigned char block[64]; /* the bytes of the block that is not full */
} mgl_sha256;
void mgl_sha256_start(mgl_sha256 *hash);
void mgl_sha256_add(mgl_sha256 *hash, const void *bytes, size_t length);
void mgl_sha256_end(mgl_sha256 *hash, unsigned char out[MGL_SHA256_BYTES]);

/* All three of them. */
void mgl_sha256_of(const void *bytes, size_t length, unsigned char out[MGL_SHA256_BYTES]);

/* In hexadecimal digits, with a 0 behind them. */
void mgl_sha256_hex(const unsigned char hash[MGL_SHA256_BYTES], char out[MGL_SHA256_HEX]);

#endif
