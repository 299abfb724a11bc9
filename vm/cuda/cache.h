/*
 * Cache of compiled kernels on disk. Each kernel is one file, named by the SHA-256 of all its
 * inputs. A file contains its length and the hash of its bytes, and is written atomically
 * (base/output.h). Any number of processes may share the folder, and damaged files count as
 * missing. compile.c reads and writes it; autotune/ trims it.
 */
#ifndef MGL_VM_CUDA_CACHE_H
#define MGL_VM_CUDA_CACHE_H

#include "base/error.h"
#include "base/sha256.h"

enum { MGL_CACHE_KEY = MGL_SHA256_HEX };

/* The bytes stored under a key, followed by a 0 byte; NULL: missing or damaged. Release with
 * mgl_free. */
void *mgl_cuda_cache_get(const char *folder, const char *key, size_t *length);

/* Removes the least recently used kernels until the folder has at most `most` bytes of kernels;
 * *left: the bytes that remain. Locked files and all other files stay. A missing folder counts as
 * empty. */
mgl_status mgl_cuda_cache_trim(const char *folder, uint64_t most, uint64_t *left, mgl_error *err);

/* Stores bytes under a key. Returns false, with a reason, if that fails. */
bool mgl_cuda_cache_put(const char *folder, const char *key, const void *bytes, size_t length,
                        char *reason, size_t reason_length);

/* Whether files can be created in the folder, which is created if necessary. */
bool mgl_cuda_cache_usable(const char *folder, char *reason, size_t reason_length);

#endif
