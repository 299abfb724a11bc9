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

/* ---- SHA-256 -------------------------------------------------------------------------------- */

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

static void compress(uint32_t state[8], const unsigned char block[64])
{
    uint32_t w[64], s[8];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (int i = 16; i < 64; i++)
        w[i] = w[i - 16] + (turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3) + w[i - 7] +
               (turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10);
    memcpy(s, state, sizeof s);
    for (int i = 0; i < 64; i++) {
        uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
        uint32_t majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
        uint32_t a = s[7] + (turn(s[4], 6) ^ turn(s[4], 11) ^ turn(s[4], 25)) + choice +
                     round_constants[i] + w[i];
        uint32_t b = (turn(s[0], 2) ^ turn(s[0], 13) ^ turn(s[0], 22)) + majority;
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += a;
        s[0] = a + b;
    }
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

void mgl_sha256_hex(const unsigned char hash[MGL_SHA256_BYTES], char out[MGL_CACHE_KEY])
{
    for (int i = 0; i < MGL_SHA256_BYTES; i++)
        snprintf(out + 2 * i, 3, "%02x", hash[i]);
}

static void digest(const void *bytes, size_t length, unsigned char out[MGL_SHA256_BYTES])
{
    mgl_sha256 hash;
    mgl_sha256_start(&hash);
    mgl_sha256_add(&hash, bytes, length);
    mgl_sha256_end(&hash, out);
}

/* ---- files ---------------------------------------------------------------------------------- */

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
        digest(bytes + HEADER_BYTES, n - HEADER_BYTES, hash);
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
    digest(bytes, length, header + MAGIC_BYTES + 8);
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
