/*
 * What the control groups of the process allow (cgroups(7), versions 1 and 2): processors and
 * memory. A container is such a group.
 */
#ifndef MGL_BASE_CGROUP_H
#define MGL_BASE_CGROUP_H

#include <stddef.h>

typedef struct mgl_cgroup_limits {
    double processors; /* processor time in a second of time; 0: no limit */
    size_t memory;     /* bytes of the tightest limit; SIZE_MAX: no limit */
    size_t
        memory_left; /* least bytes between a limit and what its group uses; SIZE_MAX: as above */
} mgl_cgroup_limits;

/* The tightest limits of the process's groups and of all groups above them that can be seen. A
 * group that can not be read has no limit. `root` stands in front of /proc and of the mounts: "" is
 * this machine, a folder is one of a test. */
void mgl_cgroup_read(const char *root, mgl_cgroup_limits *out);

#endif
