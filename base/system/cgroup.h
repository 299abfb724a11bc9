/*
 * Limits of the process's control groups (cgroups(7), versions 1 and 2) on processors and
 * memory. A container is such a group. Used by base/parallel.h and base/memory.h.
 */
#ifndef MGL_BASE_SYSTEM_CGROUP_H
#define MGL_BASE_SYSTEM_CGROUP_H

#include <stddef.h>

typedef struct mgl_cgroup_limits {
    double processors;  /* CPU time per second of wall time; 0: no limit */
    size_t memory;      /* bytes of the tightest limit; SIZE_MAX: no limit */
    size_t memory_left; /* smallest difference between a limit and its group's usage, bytes;
                         * SIZE_MAX: no limit */
} mgl_cgroup_limits;

/* Reads the tightest limits of the process's groups and of all visible groups above them. A
 * group that cannot be read counts as unlimited. `root` is the prefix of /proc and of the
 * mounts: "" for this machine, a folder for a test. */
void mgl_cgroup_read(const char *root, mgl_cgroup_limits *out);

#endif
