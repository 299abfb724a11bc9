/*
 * Reads the limits of control groups. See cgroup.h.
 *
 * /proc/self/cgroup names the group of the process in each hierarchy. /proc/self/mountinfo lists
 * where a hierarchy is mounted, and the group that the mount begins with (its root). The path of a
 * group relative to the root of the mount is its path below the mount point. Both paths are
 * relative to the cgroup namespace of the process; paths above the namespace begin with "/..".
 */
#include "base/system/cgroup.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_TEXT = 16 << 20, MOST_PATH = PATH_MAX };
/* Version 1 writes "no limit" as the largest multiple of the page size. */
#define MOST_MEMORY ((uint64_t)1 << 60)

/* Reads a whole small file; returns NULL if there is no such file. Release with mgl_free. */
static char *read_text(const char *folder, const char *name)
{
    char path[MOST_PATH + 64], *text = NULL;
    size_t length;
    int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    return n < (int)sizeof path && !mgl_file_read(path, MOST_TEXT, &text, &length, NULL) ? text
                                                                                         : NULL;
}

/* Reads the number in a file; returns false for "max", for -1 and if there is no such file. */
static bool read_number(const char *folder, const char *name, uint64_t *out)
{
    char *text = read_text(folder, name);
    bool is = text && *text >= '0' && *text <= '9';
    if (is)
        *out = strtoull(text, NULL, 10);
    mgl_free(text);
    return is;
}

/* Returns the number after a name at the beginning of a line, or 0. */
static uint64_t find_number(const char *text, const char *name)
{
    size_t length = strlen(name);
    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (!strncmp(line, name, length) && line[length] == ' ')
            return strtoull(line + length, NULL, 10);
    }
    return 0;
}

/* ---- hierarchies ----------------------------------------------------------------------------- */

/* A hierarchy: version 2 (controller NULL), or the hierarchy of a version 1 controller. */
typedef struct hierarchy {
    const char *controller;
    char group[MOST_PATH];  /* of the process */
    char mount[MOST_PATH];  /* the mount point that is used, after the `root` of
                             * mgl_cgroup_read */
    char folder[MOST_PATH]; /* of the group, or of the lowest visible group above it */
} hierarchy;

/* Returns whether the word is in a list of words separated by commas. */
static bool lists(const char *list, size_t length, const char *word)
{
    for (const char *at = list; at < list + length; at += strcspn(at, ",\n") + 1) {
        size_t part = strcspn(at, ",\n");
        if (at + part > list + length)
            part = (size_t)(list + length - at);
        if (mgl_text_is(at, part, word))
            return true;
    }
    return false;
}

/* Finds the group of the process in a hierarchy. A line is ID:CONTROLLERS:PATH; the line of
 * version 2 is 0::PATH. */
static bool find_group(const char *groups, hierarchy *h)
{
    for (const char *line = groups; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;
        if (!path || path > line + strcspn(line, "\n"))
            continue;
        size_t listed = (size_t)(path - list - 1), length = strcspn(path + 1, "\n");
        bool is = h->controller ? lists(list + 1, listed, h->controller)
                                : !listed && !strncmp(line, "0:", 2);
        if (!is || length >= sizeof h->group)
            continue;
        memcpy(h->group, path + 1, length);
        h->group[length] = 0;
        return true;
    }
    return false;
}

/* Copies a field of mountinfo, in which \040 is a space. Returns false if the field is too long. */
static bool copy_field(const char *field, char to[MOST_PATH])
{
    size_t length = 0;
    while (*field && *field != ' ' && *field != '\n' && length + 1 < MOST_PATH) {
        unsigned code;
        if (*field == '\\' && sscanf(field + 1, "%3o", &code) == 1) {
            to[length++] = (char)code;
            field += 4;
        } else {
            to[length++] = *field++;
        }
    }
    to[length] = 0;
    return !*field || *field == ' ' || *field == '\n';
}

/* Returns the field after `count` spaces of a line, or NULL if the line ends before. */
static const char *skip_fields(const char *line, int count)
{
    for (; count; count--) {
        line += strcspn(line, " \n");
        if (*line++ != ' ')
            return NULL;
    }
    return line;
}

/* Returns whether this line is a mount of the hierarchy: ID PARENT DEVICE ROOT POINT OPTIONS
 * [...] - TYPE SOURCE SUPER_OPTIONS. */
static bool is_mount(const char *line, const hierarchy *h)
{
    size_t length = strcspn(line, "\n");
    const char *mark = strstr(line, " - ");
    if (!mark || mark > line + length)
        return false;
    const char *type = mark + 3, *options = skip_fields(type, 2);
    if (!h->controller)
        return !strncmp(type, "cgroup2 ", 8);
    return !strncmp(type, "cgroup ", 7) && options &&
           lists(options, strcspn(options, " \n"), h->controller);
}

static bool is_folder(const char *path)
{
    struct stat facts;
    return !stat(path, &facts) && S_ISDIR(facts.st_mode);
}

/* Returns the group's path relative to the root of a mount, or NULL if the group is outside the
 * mount. */
static const char *find_below(const char *group, const char *top)
{
    size_t length = strcmp(top, "/") ? strlen(top) : 0;
    if (strncmp(group, top, length) != 0 || (group[length] && group[length] != '/'))
        return NULL;
    return strstr(group + length, "..") ? NULL : group + length;
}

/* Returns whether a mount that does not show the process's own group can show a group above it.
 * Then the mount's root is above the namespace, or the mount was made in another namespace. */
static bool may_be_above(const char *group, const char *top)
{
    return strstr(top, "..") || strstr(group, "..") || find_below(top, group);
}

/* Removes the last part of a path, down to `least` bytes; returns false if nothing is left to
 * remove. */
static bool cut_part(char *path, size_t least)
{
    size_t length = strlen(path);
    if (length <= least)
        return false;
    while (length > least && path[length - 1] != '/')
        length--;
    while (length > least && path[length - 1] == '/')
        length--;
    path[length] = 0;
    return true;
}

/* Looks up the group's folder in a mount. *whole: the folder is the group's own. */
static bool resolve(hierarchy *h, const char *root, const char *line, bool *whole)
{
    char top[MOST_PATH], point[MOST_PATH];
    const char *top_field = skip_fields(line, 3), *point_field = skip_fields(line, 4);
    if (!point_field || !copy_field(top_field, top) || !copy_field(point_field, point))
        return false;
    const char *below = find_below(h->group, top);
    if (!below && !may_be_above(h->group, top))
        return false;
    int length = snprintf(h->mount, sizeof h->mount, "%s%s", root, point);
    int n = snprintf(h->folder, sizeof h->folder, "%s%s", h->mount, below ? below : "");
    if (length >= (int)sizeof h->mount || n >= (int)sizeof h->folder)
        return false;
    if (n > length && h->folder[n - 1] == '/')
        h->folder[n - 1] = 0;
    *whole = below != NULL;
    while (!is_folder(h->folder)) {
        *whole = false;
        if (!cut_part(h->folder, (size_t)length))
            return false;
    }
    return true;
}

/* Fills the folders of a hierarchy from the first mount that shows the group itself. If there is
 * none, the first mount that shows a group above it is used. */
static bool find_folder(const char *mounts, const char *root, hierarchy *h)
{
    hierarchy other = *h;
    bool found = false, whole = false;
    for (const char *line = mounts; *line && !whole;
         line += strcspn(line, "\n"), line += *line == '\n') {
        if (!is_mount(line, h) || !resolve(&other, root, line, &whole) || (found && !whole))
            continue;
        *h = other;
        found = true;
    }
    return found;
}

/* ---- limits ---------------------------------------------------------------------------------- */

static void limit_processors(mgl_cgroup_limits *out, double quota, double period)
{
    if (quota > 0 && period > 0 && (out->processors <= 0 || quota / period < out->processors))
        out->processors = quota / period;
}

static void limit_memory(mgl_cgroup_limits *out, uint64_t limit, uint64_t used)
{
    if (limit >= MOST_MEMORY)
        return;
    uint64_t left = limit > used ? limit - used : 0;
    out->memory = limit < out->memory ? (size_t)limit : out->memory;
    out->memory_left = left < out->memory_left ? (size_t)left : out->memory_left;
}

/* Returns the bytes that the group uses, without cached parts of files, which the kernel can
 * reclaim. */
static uint64_t count_used(const char *folder, const char *usage, const char *inactive,
                           const char *active)
{
    uint64_t used = 0, cached = 0;
    char *text = read_text(folder, "memory.stat");
    if (text)
        cached = find_number(text, inactive) + find_number(text, active);
    mgl_free(text);
    if (!read_number(folder, usage, &used) || cached > used)
        return 0;
    return used - cached;
}

/* Reads the limits of one group of version 2. */
static void read_unified(const char *folder, mgl_cgroup_limits *out)
{
    char *cpu = read_text(folder, "cpu.max"); /* "QUOTA PERIOD" or "max PERIOD" */
    uint64_t limit = 0, used = count_used(folder, "memory.current", "inactive_file", "active_file");
    char *end = NULL;
    double quota = cpu ? strtod(cpu, &end) : 0;
    if (cpu && end > cpu)
        limit_processors(out, quota, *end == ' ' ? strtod(end, NULL) : 100000);
    mgl_free(cpu);
    if (read_number(folder, "memory.max", &limit))
        limit_memory(out, limit, used);
    if (read_number(folder, "memory.high", &limit))
        limit_memory(out, limit, used);
}

/* Reads the limits of one group of the version 1 controller cpu. */
static void read_cpu(const char *folder, mgl_cgroup_limits *out)
{
    uint64_t quota = 0, period = 0;
    if (read_number(folder, "cpu.cfs_quota_us", &quota) &&
        read_number(folder, "cpu.cfs_period_us", &period))
        limit_processors(out, (double)quota, (double)period);
}

/* Reads the limits of one group of the version 1 controller memory. */
static void read_memory(const char *folder, mgl_cgroup_limits *out)
{
    uint64_t limit = 0, used = count_used(folder, "memory.usage_in_bytes", "total_inactive_file",
                                          "total_active_file");
    if (read_number(folder, "memory.limit_in_bytes", &limit))
        limit_memory(out, limit, used);
    char *text = read_text(folder, "memory.stat");
    limit = text ? find_number(text, "hierarchical_memory_limit") : 0; /* includes hidden groups */
    mgl_free(text);
    if (limit)
        limit_memory(out, limit, used);
}

/* Reads the group of the process in a hierarchy and all groups above it. */
static void read_hierarchy(const char *root, const char *groups, const char *mounts,
                           const char *controller,
                           void (*read)(const char *folder, mgl_cgroup_limits *out),
                           mgl_cgroup_limits *out)
{
    hierarchy *h = mgl_alloc_zero(1, sizeof *h);
    if (h)
        h->controller = controller;
    if (h && find_group(groups, h) && find_folder(mounts, root, h)) {
        do
            read(h->folder, out);
        while (cut_part(h->folder, strlen(h->mount)));
    }
    mgl_free(h);
}

void mgl_cgroup_read(const char *root, mgl_cgroup_limits *out)
{
    *out = (mgl_cgroup_limits){.memory = SIZE_MAX, .memory_left = SIZE_MAX};
    char *groups = read_text(root, "proc/self/cgroup");
    char *mounts = groups ? read_text(root, "proc/self/mountinfo") : NULL;
    if (mounts) {
        read_hierarchy(root, groups, mounts, NULL, read_unified, out);
        read_hierarchy(root, groups, mounts, "cpu", read_cpu, out);
        read_hierarchy(root, groups, mounts, "memory", read_memory, out);
    }
    mgl_free(groups);
    mgl_free(mounts);
}
