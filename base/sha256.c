/* SHA-256 (FIPS 180-4), in portable C. */
#include "base/sha256.h"

#include <stdio.h>
#include <string.h>

static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t turn(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

static uint32_t get_word(const unsigned char *from)
{
    return (uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 | from[3];
}

/* Computes the message schedule of a block. */
static void expand(uint32_t w[64], const unsigned char block[64])
{
    for (int i = 0; i < 16; i++)
        w[i] = get_word(block + 4 * i);
    for (int i = 16; i < 64; i++)
        w[i] = w[i - 16] + (turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3) + w[i - 7] +
               (turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10);
}

/* One round on the standard's variables a to h. A round changes two of them: `d` (the next e)
 * and `h` (the next a). The standard then renames all eight. Here the variables keep their
 * places, and the caller rotates the arguments. */
static inline void turn_round(uint32_t a, uint32_t b, uint32_t c, uint32_t *d, uint32_t e,
                              uint32_t f, uint32_t g, uint32_t *h, uint32_t word)
{
    uint32_t choice = g ^ (e & (f ^ g)), majority = (a & b) | (c & (a | b));
    uint32_t sum = *h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + choice + word;
    *d += sum;
    *h = sum + (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + majority;
}

static void compress(uint32_t state[8], const unsigned char block[64])
{
    uint32_t w[64], s[8];
    expand(w, block);
    memcpy(s, state, sizeof s);
    for (int i = 0; i < 64; i += 8) /* after eight rounds each variable is back in its place */
        for (int j = 0; j < 8; j++)
            turn_round(s[(8 - j) % 8], s[(9 - j) % 8], s[(10 - j) % 8], &s[(11 - j) % 8],
                       s[(12 - j) % 8], s[(13 - j) % 8], s[(14 - j) % 8], &s[(15 - j) % 8],
                       w[i + j] + round_constants[i + j]);
    for (int i = 0; i < 8; i++)
        state[i] += s[i];
}

void mgl_sha256_start(mgl_sha256 *hash)
{
    static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(hash->state, start, sizeof start);
    hash->length = 0;
}

void mgl_sha256_add(mgl_sha256 *hash, const void *bytes, size_t length)
{
    const unsigned char *from = bytes;
    while (length > 0) {
        size_t at = hash->length % 64, n = 64 - at < length ? 64 - at : length;
        memcpy(hash->block + at, from, n);
        hash->length += n;
        from += n;
        length -= n;
        if (hash->length % 64 == 0)
            compress(hash->state, hash->block);
    }
}

void mgl_sha256_end(mgl_sha256 *hash, unsigned char out[MGL_SHA256_BYTES])
{
    uint64_t bits = hash->length * 8;
    unsigned char tail[8];
    for (int i = 0; i < 8; i++)
        tail[i] = (unsigned char)(bits >> (56 - 8 * i));
    mgl_sha256_add(hash, "\x80", 1);
    while (hash->length % 64 != 56)
        mgl_sha256_add(hash, "", 1);
    mgl_sha256_add(hash, tail, 8);
    for (int i = 0; i < MGL_SHA256_BYTES; i++)
        out[i] = (unsigned char)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
}

void mgl_sha256_hex(const unsigned char hash[MGL_SHA256_BYTES], char out[MGL_SHA256_HEX])
{
    for (int i = 0; i < MGL_SHA256_BYTES; i++)
        snprintf(out + 2 * i, 3, "%02x", hash[i]);
}

void mgl_sha256_of(const void *bytes, size_t length, unsigned char out[MGL_SHA256_BYTES])
{
    mgl_sha256 hash;
    mgl_sha256_start(&hash);
    mgl_sha256_add(&hash, bytes, length);
    mgl_sha256_end(&hash, out);
}
