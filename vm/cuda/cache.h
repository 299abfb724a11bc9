/*
 * The cache of compiled kernels: one file a kernel, named by the SHA-256 of everything that made
 * it. A file says how long it is and what its bytes hash to, and is an output (base/output.h), so
 * any number of processes may share the folder, and what is damaged counts as missing.
 */
#ifndef MGL_VM_CUDA_CACHE_H
#define MGL_VM_CUDA_CACHE_H

#include "base/error.h"
#include "base/sha256.h"

enum { MGL_CACHE_KEY = MGL_SHA256_HEX };

/* The bytes kept under a key, with a 0 behind them; NULL: none, or damaged. Release with mgl_free.
 */
void *mgl_cuda_cache_get(const char *folder, const char *key, size_t *length);

/* Removes the kernels that were kept or got the longest ago until the folder has at most `most`
 * bytes of them; *left: how many it has then. One that somebody has locked stays, and so does every
 * other file. A folder that does not stand has none. */
mgl_status mgl_cuda_cache_trim(const char *folder, uint64_t most, uint64_t *left, mgl_error *err);

/* Keeps bytes under a key. False, with the reason, when that is not possible. */
bool mgl_cuda_cache_put(const char *folder, const char *key, const void *bytes, size_t length,
                        char *reason, size_t reason_length);

/* Whether files can be made in the folder, which is made if need be. */
bool mgl_cuda_cache_usable(const char *folder, char *reason, size_t reason_length);

#endif
