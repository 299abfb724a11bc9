/*
 * Lists the subcommands of `kernel` and `kernel guard`, and declares their verbs. Each verb is in
 * a file of its name in cli/kernel/.
 */
#ifndef MGL_CLI_KERNEL_KERNEL_H
#define MGL_CLI_KERNEL_KERNEL_H

#include "autotune/kernels/gates/kernel_show.h"
#include "cli/cli.h"

/* The subcommands of the proposal loop: they work on a kernel session (kernel/loop.h). */
#define MGL_CLI_KERNEL_LOOP_WORDS(X)                                                               \
    X(transform)                                                                                   \
    X(prompt)                                                                                      \
    X(next)                                                                                        \
    X(submit)                                                                                      \
    X(log)                                                                                         \
    X(diff)                                                                                        \
    X(checkout)                                                                                    \
    X(branch)                                                                                      \
    X(export)                                                                                      \
    X(rounds)                                                                                      \
    X(choose)                                                                                      \
    X(record)                                                                                      \
    X(report)
#define MGL_CLI_KERNEL_WORDS(X)                                                                    \
    X(list)                                                                                        \
    X(show)                                                                                        \
    X(verify)                                                                                      \
    X(bench)                                                                                       \
    X(promote)                                                                                     \
    X(rollback)                                                                                    \
    X(ptx)                                                                                         \
    X(guard)                                                                                       \
    MGL_CLI_KERNEL_LOOP_WORDS(X)
#define MGL_CLI_DECLARE(name) extern const mgl_cli_verb mgl_cli_kernel_##name##_verb;
MGL_CLI_KERNEL_WORDS(MGL_CLI_DECLARE)
#undef MGL_CLI_DECLARE

/* The subcommands of `kernel guard`. */
#define MGL_CLI_KERNEL_GUARD_WORDS(X)                                                              \
    X(scan)                                                                                        \
    X(selftest)
#define MGL_CLI_DECLARE(name) extern const mgl_cli_verb mgl_cli_kernel_guard_##name##_verb;
MGL_CLI_KERNEL_GUARD_WORDS(MGL_CLI_DECLARE)
#undef MGL_CLI_DECLARE

#endif
