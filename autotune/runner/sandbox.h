/*
 * The sandbox of a worker. A worker cannot leave it. Two Linux mechanisms enforce it: seccomp
 * rejects system calls (sockets, programs, other processes, mounts), and Landlock rejects file
 * access. A rejected operation fails with an error and does not end the process, so libraries that
 * try one continue.
 *
 * Threat model: accidents and reward hacking, not a hostile author. A measured program cannot reach
 * the network, the store, the runner's answers or the user's files. What the device driver allows
 * is not restricted.
 *
 * Open descriptors and loaded libraries stay usable. A worker opens its device before it enters,
 * because a driver may start programs and open sockets then.
 */
#ifndef MGL_AUTOTUNE_RUNNER_SANDBOX_H
#define MGL_AUTOTUNE_RUNNER_SANDBOX_H

#include <stdbool.h>

/* Allowed file access. Programs, libraries, /proc and /sys are always readable. */
typedef struct mgl_sandbox_options {
    const char *cache; /* folder whose files may be created, read and removed; NULL: none */
    /* readable model: a file, or a folder and the targets of its links; NULL: none (trials use
     * synthetic weights) */
    const char *model;
    bool gpu; /* the GPU driver's device files and its shared memory */
} mgl_sandbox_options;

/* The enforced restrictions. */
typedef struct mgl_sandbox {
    bool seccomp;
    int landlock;      /* Landlock ABI version; 0: files are not restricted */
    char missing[200]; /* missing mechanisms and the reasons; "": complete */
} mgl_sandbox;

/* Enters the sandbox: restricts this process, its threads and its children permanently. If one
 * mechanism is unavailable, the other still applies. Before ABI 8, Landlock applies only to the
 * calling thread and the threads that it starts. */
void mgl_sandbox_enter(const mgl_sandbox_options *options, mgl_sandbox *out);

/* Reports what mgl_sandbox_enter would enforce here. */
void mgl_sandbox_look(mgl_sandbox *out);

#endif
