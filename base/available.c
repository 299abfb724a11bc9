/* How much memory the system can still give (memory.h): what Linux tells in /proc/meminfo, and the
 * limit of the process's control group, version 2. */
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

/* Bytes that the control group may have; SIZE_MAX: no limit is known. */
static size_t group_limit(void)
{
    char path[512], *group = read_text("/proc/self/cgroup");
    const char *at = group ? strstr(group, "0::/") : NULL;
    int length = at ? (int)strcspn(at + 4, "\n") : 0;
    int n = snprintf(path, sizeof path, "/sys/fs/cgroup/%.*s/memory.max", length, at ? at + 4 : "");
    char *limit = at && n < (int)sizeof path ? read_text(path) : NULL;
    size_t bytes = limit ? (size_t)strtoull(limit, NULL, 10) : 0; /* "max" is 0 */
    mgl_free(group);
    mgl_free(limit);
    return bytes ? bytes : SIZE_MAX;
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
