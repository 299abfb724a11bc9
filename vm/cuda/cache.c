/* The cache of compiled kernels: see cache.h. A file: magic (8 bytes), length of the payload (8, little
 * endian), its SHA-256 (32), payload. */
#include "vm/cuda/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"

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

/* Makes a folder and those above it. */
static bool make_folder(const char *folder)
{
    char path[PATH];
    int n = snprintf(path, sizeof path, "%s", folder);
    if (n <= 0 || n >= (int)sizeof path)
        return errno = ENAMETOOLONG, false;
    for (char *p = path + 1; *p; p++)
        if (*p == '/') {
            *p = 0;
            if (mkdir(path, 0777) && errno != EEXIST)
                return false;
            *p = '/';
        }
    return !mkdir(path, 0777) || errno == EEXIST;
}

static bool write_all(int file, const void *bytes, size_t length)
{
    const char *from = bytes;
    while (length > 0) {
        ssize_t n = write(file, from, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        from += n;
        length -= (size_t)n;
    }
    return true;
}

/* Opens a file that nobody else has, and hands out its path. -1 when that is not possible. */
static int open_new(const char *folder, const char *key, char path[PATH])
{
    static atomic_uint number;
    char suffix[64];
    int file = -1;
    for (int tries = 0; file < 0 && tries < 100; tries++) { /* a killed process may have left one */
        unsigned mine = atomic_fetch_add(&number, 1);
        snprintf(suffix, sizeof suffix, ".%ld.%u.tmp", (long)getpid(), mine);
        if (!path_of(path, folder, key, suffix))
            return errno = ENAMETOOLONG, -1;
        file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file < 0 && errno != EEXIST)
            break;
    }
    return file;
}

static bool refuse(const char *folder, char *reason, size_t reason_length)
{
    snprintf(reason, reason_length, "compiled kernels can not be kept in %s: %s", folder,
             strerror(errno));
    return false;
}

bool mgl_cuda_cache_put(const char *folder, const char *key, const void *bytes, size_t length,
                        char *reason, size_t reason_length)
{
    char path[PATH], final[PATH];
    unsigned char header[HEADER_BYTES];
    if (!make_folder(folder) || !path_of(final, folder, key, ".kernel"))
        return refuse(folder, reason, reason_length);
    int file = open_new(folder, key, path);
    if (file < 0)
        return refuse(folder, reason, reason_length);
    memcpy(header, magic, MAGIC_BYTES);
    for (int i = 0; i < 8; i++)
        header[MAGIC_BYTES + i] = (unsigned char)((uint64_t)length >> (8 * i));
    mgl_sha256_of(bytes, length, header + MAGIC_BYTES + 8);
    bool good = write_all(file, header, sizeof header) && write_all(file, bytes, length);
    int error = errno;
    if (close(file) && good) {
        good = false;
        error = errno;
    }
    if (good && !rename(path, final))
        return true;
    errno = good ? errno : error;
    refuse(folder, reason, reason_length);
    unlink(path);
    return false;
}

bool mgl_cuda_cache_usable(const char *folder, char *reason, size_t reason_length)
{
    char path[PATH];
    int file = make_folder(folder) ? open_new(folder, "probe", path) : -1;
    if (file < 0)
        return refuse(folder, reason, reason_length);
    close(file);
    unlink(path);
    return true;
}
