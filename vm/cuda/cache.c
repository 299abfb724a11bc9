/* The cache of compiled kernels: see cache.h. A file: magic (8 bytes), length of the payload (8, little
 * endian), its SHA-256 (32), payload. */
#include "vm/cuda/cache.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/output.h"

enum { MAGIC_BYTES = 8, HEADER_BYTES = MAGIC_BYTES + 8 + MGL_SHA256_BYTES, PATH = 1400 };
static const char magic[MAGIC_BYTES + 1] = "mglcubn1";
static const size_t largest = (size_t)64 << 20;

static bool path_of(char path[PATH], const char *folder, const char *key, const char *suffix)
{
    int n = snprintf(path, PATH, "%s/%s%s", folder, key, suffix);
    return n > 0 && n < PATH;
}

void *mgl_cuda_cache_get(const char *folder, const char *key, size_t *length)
{
    char path[PATH], *bytes;
    unsigned char hash[MGL_SHA256_BYTES];
    size_t n;
    if (!path_of(path, folder, key, ".kernel") || mgl_file_read(path, largest, &bytes, &n, NULL))
        return NULL;
    uint64_t said = 0;
    for (int i = 0; n >= HEADER_BYTES && i < 8; i++)
        said |= (uint64_t)(unsigned char)bytes[MAGIC_BYTES + i] << (8 * i);
    bool good = n > HEADER_BYTES && !memcmp(bytes, magic, MAGIC_BYTES) && said == n - HEADER_BYTES;
    if (good) {
        mgl_sha256_of(bytes + HEADER_BYTES, n - HEADER_BYTES, hash);
        good = !memcmp(hash, bytes + MAGIC_BYTES + 8, sizeof hash);
    }
    if (!good) {
        mgl_free(bytes);
        return NULL;
    }
    *length = n - HEADER_BYTES;
    memmove(bytes, bytes + HEADER_BYTES, *length + 1); /* the 0 behind it too */
    return bytes;
}

static bool refuse(const char *folder, const char *why, char *reason, size_t reason_length)
{
    snprintf(reason, reason_length, "compiled kernels can not be kept in %s: %s", folder, why);
    return false;
}

/* Opens what is to become the file of that name in the folder, which is made if need be. */
static mgl_status open_file(const char *folder, const char *name, mgl_output **out, mgl_error *err)
{
    char path[PATH];
    mgl_status status = mgl_folder_make(folder, 0777, err);
    if (status)
        return status;
    if (!path_of(path, folder, name, ".kernel"))
        return mgl_fail(err, MGL_SYSTEM, folder, "the path is too long");
    return mgl_output_open(path, out, err);
}

static mgl_status write_file(mgl_output *output, const void *bytes, size_t length, mgl_error *err)
{
    unsigned char header[HEADER_BYTES];
    memcpy(header, magic, MAGIC_BYTES);
    for (int i = 0; i < 8; i++)
        header[MAGIC_BYTES + i] = (unsigned char)((uint64_t)length >> (8 * i));
    mgl_sha256_of(bytes, length, header + MAGIC_BYTES + 8);
    mgl_status status = mgl_output_write(output, 0, header, sizeof header, err);
    return status ? status : mgl_output_write(output, sizeof header, bytes, length, err);
}

bool mgl_cuda_cache_put(const char *folder, const char *key, const void *bytes, size_t length,
                        char *reason, size_t reason_length)
{
    mgl_error err;
    mgl_output *output = NULL;
    mgl_status status = open_file(folder, key, &output, &err);
    if (!status)
        status = write_file(output, bytes, length, &err);
    if (!status)
        status = mgl_output_finish(output, &err);
    else
        mgl_output_abandon(output);
    return status ? refuse(folder, err.message, reason, reason_length) : true;
}

bool mgl_cuda_cache_usable(const char *folder, char *reason, size_t reason_length)
{
    mgl_error err;
    mgl_output *output;
    if (open_file(folder, "probe", &output, &err))
        return refuse(folder, err.message, reason, reason_length);
    mgl_output_abandon(output);
    return true;
}
