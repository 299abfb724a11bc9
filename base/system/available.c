/* Available memory (mgl_memory_available, memory.h): MemAvailable and SwapFree of Linux's
 * /proc/meminfo, limited by the process's control groups. */
#include "base/file.h"
#include "base/memory.h"
#include "base/system/cgroup.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TEXT = 64 << 10 };

/* Reads a whole small file; returns NULL if there is no such file. Release with mgl_free. */
static char *read_text(const char *path)
{
    char *text = NULL;
    size_t length;
    return mgl_file_read(path, MOST_TEXT, &text, &length, NULL) == MGL_OK ? text : NULL;
}

/* Returns the number of kilobytes after a name in /proc/meminfo, as bytes. */
static size_t find_amount(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    return at ? (size_t)strtoull(at + strlen(name), NULL, 10) * 1024 : 0;
}

static _Atomic size_t pretended;

void mgl_memory_pretend(size_t bytes)
{
    atomic_store(&pretended, bytes);
}

size_t mgl_memory_available_below(const char *root)
{
    char path[PATH_MAX];
    mgl_cgroup_limits limits;
    int n = snprintf(path, sizeof path, "%s/proc/meminfo", root);
    char *text = n < (int)sizeof path ? read_text(path) : NULL;
    size_t bytes = text ? find_amount(text, "MemAvailable:") + find_amount(text, "SwapFree:") : 0;
    mgl_free(text);
    mgl_cgroup_read(root, &limits);
    if (limits.memory_left == SIZE_MAX || (bytes && bytes < limits.memory_left))
        return bytes;
    return limits.memory_left ? limits.memory_left : 1; /* 0 would mean "not known" */
}

size_t mgl_memory_available(void)
{
    size_t bytes = atomic_load(&pretended);
    return bytes ? bytes : mgl_memory_available_below("");
}
