/* Implements the kernel cache (cache.h). File layout: magic (8 bytes), payload length (8 bytes,
 * little-endian), SHA-256 of the payload (32 bytes), payload. */
#include "vm/cuda/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/output.h"

enum { MAGIC_BYTES = 8, HEADER_BYTES = MAGIC_BYTES + 8 + MGL_SHA256_BYTES, PATH = 1400 };
static const char magic[MAGIC_BYTES + 1] = "mglcubn1";
static const char ending[] = ".kernel";
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
    if (!path_of(path, folder, key, ending) || mgl_file_read(path, largest, &bytes, &n, NULL))
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
    utimensat(AT_FDCWD, path, NULL, 0); /* record the last use in the file time; may fail */
    *length = n - HEADER_BYTES;
    memmove(bytes, bytes + HEADER_BYTES, *length + 1); /* includes the final 0 */
    return bytes;
}

static bool refuse(const char *folder, const char *why, char *reason, size_t reason_length)
{
    snprintf(reason, reason_length, "cannot store compiled kernels in %s: %s", folder, why);
    return false;
}

/* Opens an output file of that name in the folder, which is created if necessary. */
static mgl_status open_file(const char *folder, const char *name, mgl_output **out, mgl_error *err)
{
    char path[PATH];
    mgl_status status = mgl_folder_make(folder, 0777, err);
    if (status)
        return status;
    if (!path_of(path, folder, name, ending))
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

/* ---- trimming ------------------------------------------------------------------------------- */

typedef struct kept {
    char name[NAME_MAX + 1];
    uint64_t bytes;
    struct timespec used;
} kept;

typedef struct kept_list {
    kept *items; /* (count) */
    size_t count, capacity;
    uint64_t bytes; /* total */
} kept_list;

static int compare_used(const void *a, const void *b)
{
    const struct timespec *x = &((const kept *)a)->used, *y = &((const kept *)b)->used;
    if (x->tv_sec != y->tv_sec)
        return x->tv_sec < y->tv_sec ? -1 : 1;
    return (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

/* Adds the file to the list if it is a kernel. False when memory ran out. */
static bool look_at(int folder, const char *name, kept_list *out)
{
    struct stat facts;
    size_t length = strlen(name), end = sizeof ending - 1;
    if (length <= end || length > NAME_MAX || strcmp(name + length - end, ending) != 0 ||
        fstatat(folder, name, &facts, AT_SYMLINK_NOFOLLOW) || !S_ISREG(facts.st_mode))
        return true;
    void *items = out->items;
    bool grown = mgl_grow(&items, &out->capacity, out->count, sizeof *out->items);
    out->items = items;
    if (!grown)
        return false;
    kept *item = &out->items[out->count++];
    memcpy(item->name, name, length + 1);
    item->bytes = (uint64_t)facts.st_size;
    item->used = facts.st_mtim;
    out->bytes += item->bytes;
    return true;
}

/* Removes a file unless it is locked. */
static bool remove_kept(int folder, const char *name)
{
    int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool removed = file >= 0 && !mgl_file_denied() && !flock(file, LOCK_EX | LOCK_NB) &&
                   !unlinkat(folder, name, 0);
    if (file >= 0)
        close(file);
    return removed;
}

static mgl_status trim(DIR *entries, uint64_t most, uint64_t *left, mgl_error *err)
{
    kept_list list = {0};
    bool whole = true;
    for (struct dirent *e = readdir(entries); e && whole; e = readdir(entries))
        whole = look_at(dirfd(entries), e->d_name, &list);
    if (list.count)
        qsort(list.items, list.count, sizeof *list.items, compare_used);
    for (size_t i = 0; i < list.count && whole && list.bytes > most; i++)
        if (remove_kept(dirfd(entries), list.items[i].name))
            list.bytes -= list.items[i].bytes;
    mgl_free(list.items);
    *left = list.bytes;
    return whole ? MGL_OK : mgl_fail_memory(err, 0);
}

mgl_status mgl_cuda_cache_trim(const char *folder, uint64_t most, uint64_t *left, mgl_error *err)
{
    *left = 0;
    DIR *entries = mgl_file_denied() ? NULL : opendir(folder);
    if (!entries)
        return errno == ENOENT ? MGL_OK : mgl_fail_path(err, folder, "cannot be listed");
    mgl_status status = trim(entries, most, left, err);
    closedir(entries);
    return status;
}
