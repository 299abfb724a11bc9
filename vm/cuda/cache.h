/*
 * The cache of compiled kernels: one file a kernel, named by the SHA-256 of everything that made it.
 * A file says how long it is and what its bytes hash to, and is an output (base/output.h), so any
 * number of processes may share the folder, and what is damaged counts as missing.
 */
#ifndef MGL_VM_CUDA_CACHE_H
#define MGL_VM_CUDA_CACHE_H

#include "base/sha256.h"

#include <stdbool.h>

enum { MGL_CACHE_KEY = MGL_SHA256_HEX };

/* The bytes kept under a key, with a 0 behind them; NULL: none, or damaged. Release with mgl_free. */
void *mgl_cuda_cache_get(const char *folder, const char *key, size_t *length);

/* Keeps bytes under a key. False, with the reason, when that is not possible. */
bool mgl_cuda_cache_put(const char *folder, const char *key, const void *bytes, size_t length,
                        char *reason, size_t reason_length);

/* Whether files can be made in the folder, which is made if need be. */
bool mgl_cuda_cache_usable(const char *folder, char *reason, size_t reason_length);

#endif
