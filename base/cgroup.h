/*
 * What the control groups of the process allow (cgroups(7), versions 1 and 2): processors and
 * memory. A container is such a group.
 */
#ifndef MGL_BASE_CGROUP_H
#define MGL_BASE_CGROUP_H

#include <stddef.h>

typedef struct mgl_cgroup_limits {
    double processors;  /* processor time in a second of time; 0: no limit */
    size_t memory;      /* bytes of the tightest limit; SIZE_MAX: no limit */
    size_t memory_left; /* least difference of a limit and its group's use, bytes; SIZE_MAX: no
                           limit */
} mgl_cgroup_limits;

/* The tightest limits of the process's groups and of all groups above them that can be seen. A
 * group that cannot be read has no limit. `root` is the prefix of /proc and of the mounts: "" for
 * this machine, a folder for a test. */
void mgl_cgroup_read(const char *root, mgl_cgroup_limits *out);

#endif
