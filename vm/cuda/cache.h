/*
 * The cache of compiled kernels: one file a kernel, named by the SHA-256 of everything that made it.
 * A file says how long it is and what its bytes hash to, is written under another name and renamed,
 * so any number of processes may share the folder, and what is damaged counts as missing.
 */
#ifndef MGL_VM_CUDA_CACHE_H
#define MGL_VM_CUDA_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MGL_SHA256_BYTES = 32, MGL_CACHE_KEY = 2 * MGL_SHA256_BYTES + 1 };

/* FIPS 180-4. */
typedef struct mgl_sha256 {
    uint32_t state[8];
    uint64_t length; /* bytes so far */
    unsigned char block[64];
} mgl_sha256;
void mgl_sha256_start(mgl_sha256 *hash);
void mgl_sha256_add(mgl_sha256 *hash, const void *bytes, size_t length);
void mgl_sha256_end(mgl_sha256 *hash, unsigned char out[MGL_SHA256_BYTES]);
void mgl_sha256_hex(const unsigned char hash[MGL_SHA256_BYTES], char out[MGL_CACHE_KEY]);

/* The bytes kept under a key, with a 0 behind them; NULL: none, or damaged. Release with mgl_free. */
void *mgl_cuda_cache_get(const char *folder, const char *key, size_t *length);

/* Keeps bytes under a key. False, with the reason, when that is not possible. */
bool mgl_cuda_cache_put(const char *folder, const char *key, const void *bytes, size_t length,
                        char *reason, size_t reason_length);

/* Whether files can be made in the folder, which is made if need be. */
bool mgl_cuda_cache_usable(const char *folder, char *reason, size_t reason_length);

#endif
