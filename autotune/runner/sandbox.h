/*
 * What a worker of a campaign may not do from now on. Two parts of the kernel hold it: seccomp
 * refuses system calls (sockets, programs, other processes, mounts), and Landlock refuses files.
 * What is refused fails with an error and ends nothing, so that a library that tries goes on.
 *
 * The threat that this stands against is accident and reward hacking, not a hostile author. A
 * program that is measured has no way to the network, to the store, to the answers of the lab or to
 * the files of whoever tunes; what a device's driver lets through is not looked at.
 *
 * What is open stays open, and libraries that are loaded stay so. Whoever enters has opened its
 * device, since a driver may start programs and open sockets while it does that.
 */
#ifndef MGL_AUTOTUNE_RUNNER_SANDBOX_H
#define MGL_AUTOTUNE_RUNNER_SANDBOX_H

#include <stdbool.h>

/* What is left. Programs, libraries and what the kernel tells in /proc and /sys can be read always.
 */
typedef struct mgl_sandbox_options {
    const char *cache; /* folder whose files may be made, read and removed; NULL: none */
    const char *model; /* to read: a file, or a folder and what its links lead to; NULL: none, since
                          the weights of trials are synthetic */
    bool gpu;          /* device files of a GPU's driver, and its shared memory */
} mgl_sandbox_options;

/* What holds. */
typedef struct mgl_sandbox {
    bool seccomp;
    int landlock;      /* its ABI; 0: no file is refused */
    char missing[200]; /* which of the two, and why; "": both are there */
} mgl_sandbox;

/* For good: of this process, its threads and whatever it would start. Where one of the two is not
 * to be had, the other one holds. Landlock before ABI 8 holds for the calling thread and those that
 * it starts. */
void mgl_sandbox_enter(const mgl_sandbox_options *options, mgl_sandbox *out);

/* What mgl_sandbox_enter would do here. */
void mgl_sandbox_look(mgl_sandbox *out);

#endif
