/* SHA-256 (FIPS 180-4): names compiled kernels in the cache and checks the integrity of files. */
#ifndef MGL_BASE_SHA256_H
#define MGL_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { MGL_SHA256_BYTES = 32, MGL_SHA256_HEX = 2 * MGL_SHA256_BYTES + 1 };

/* An incremental hash. */
typedef struct mgl_sha256 {
    uint32_t state[8];
    uint64_t length;         /* bytes so far */
    unsigned char block[64]; /* the bytes of the incomplete block */
} mgl_sha256;
void mgl_sha256_start(mgl_sha256 *hash);
void mgl_sha256_add(mgl_sha256 *hash, const void *bytes, size_t length);
void mgl_sha256_end(mgl_sha256 *hash, unsigned char out[MGL_SHA256_BYTES]);

/* Hashes one run of bytes: start, add and end. */
void mgl_sha256_of(const void *bytes, size_t length, unsigned char out[MGL_SHA256_BYTES]);

/* Writes the hash in hexadecimal digits, 0-terminated. */
void mgl_sha256_hex(const unsigned char hash[MGL_SHA256_BYTES], char out[MGL_SHA256_HEX]);

#endif
