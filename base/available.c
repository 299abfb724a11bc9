/* How much memory the system can still give (memory.h): what Linux tells in /proc/meminfo, and the
 * limit of the process's control group. */
#include "base/file.h"
#include "base/memory.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TEXT = 64 << 10 };

/* The whole of a small file; NULL where there is none. Release with mgl_free. */
static char *read_text(const char *path)
{
    char *text = NULL;
    size_t length;
    return mgl_file_read(path, MOST_TEXT, &text, &length, NULL) == MGL_OK ? text : NULL;
}

/* The kilobytes behind a name in /proc/meminfo, as bytes. */
static size_t find_amount(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    return at ? (size_t)strtoull(at + strlen(name), NULL, 10) * 1024 : 0;
}

/* The limit in a file of the group that /proc/self/cgroup names behind `mark`; SIZE_MAX: none. */
static size_t limit_of(const char *groups, const char *mark, const char *root, const char *file)
{
    char path[512];
    const char *at = strstr(groups, mark);
    int length = at ? (int)strcspn(at += strlen(mark), "\n") : 0;
    int n = snprintf(path, sizeof path, "%s/%.*s/%s", root, length, at ? at : "", file);
    char *limit = at && n < (int)sizeof path ? read_text(path) : NULL;
    size_t bytes = limit ? (size_t)strtoull(limit, NULL, 10) : 0; /* "max" is 0 */
    mgl_free(limit);
    return bytes ? bytes : SIZE_MAX;
}

/* Bytes that the control group may have, of version 2 or 1; SIZE_MAX: no limit is known. */
static size_t group_limit(void)
{
    char *groups = read_text("/proc/self/cgroup");
    if (!groups)
        return SIZE_MAX;
    size_t new = limit_of(groups, "0::/", "/sys/fs/cgroup", "memory.max");
    size_t old = limit_of(groups, ":memory:/", "/sys/fs/cgroup/memory", "memory.limit_in_bytes");
    mgl_free(groups);
    return new < old ? new : old;
}

static _Atomic size_t pretended;

void mgl_memory_pretend(size_t bytes)
{
    atomic_store(&pretended, bytes);
}

size_t mgl_memory_available(void)
{
    if (atomic_load(&pretended))
        return atomic_load(&pretended);
    char *text = read_text("/proc/meminfo");
    size_t bytes = text ? find_amount(text, "MemAvailable:") + find_amount(text, "SwapFree:") : 0;
    size_t limit = group_limit();
    mgl_free(text);
    return bytes < limit ? bytes : limit;
}
