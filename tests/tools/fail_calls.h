/*
 * Declares what fail_calls, which starts a program, and fail_shim, which is preloaded into it,
 * share: the kinds of calls that can fail, and the page with the counts of calls.
 *
 * Environment variables of the program select the failure. FAIL_COUNT is the file of the page;
 * without it nothing is counted and nothing fails. FAIL_KIND is a kind. FAIL_AT is the number of
 * the failing call of this kind, from 1. FAIL_FOREVER=1 makes all later calls fail too.
 * FAIL_TRACE=1 prints the call stack of the first failing call on standard error.
 */
#ifndef MGL_TESTS_TOOLS_FAIL_CALLS_H
#define MGL_TESTS_TOOLS_FAIL_CALLS_H

#include <stdatomic.h>
#include <stdint.h>

/*  kind, errno, the calls of that kind */
#define MGL_FAIL_KINDS(X)                                                                          \
    X(malloc, ENOMEM, "malloc")                                                                    \
    X(calloc, ENOMEM, "calloc")                                                                    \
    X(realloc, ENOMEM, "realloc")                                                                  \
    X(memalign, ENOMEM, "posix_memalign, aligned_alloc")                                           \
    X(mmap, ENOMEM, "mmap")                                                                        \
    X(open, EMFILE, "open, openat, fopen, fdopendir")                                              \
    X(read, EIO, "read, pread, readdir")                                                           \
    X(write, ENOSPC, "write, pwrite, and what stdio writes to the standard streams")               \
    X(fsync, EIO, "fsync, fdatasync, sync_file_range")                                             \
    X(rename, EIO, "rename, renameat, link, linkat, fchmod")                                       \
    X(close, EIO, "close")                                                                         \
    X(pthread_create, EAGAIN, "pthread_create")                                                    \
    X(stat, EIO, "stat, lstat, fstat, fstatat, access, faccessat, realpath")                       \
    X(flock, ENOLCK, "flock")                                                                      \
    X(unlink, EIO, "unlink, unlinkat")                                                             \
    X(dup, EMFILE, "dup2, fcntl that duplicates, pipe2, memfd_create")                             \
    X(spawn, EAGAIN, "posix_spawn")                                                                \
    X(dlopen, ENOENT, "dlopen")                                                                    \
    X(random, ENOSYS, "getrandom")

enum {
#define MGL_X(kind, number, calls) MGL_FAIL_##kind,
    MGL_FAIL_KINDS(MGL_X)
#undef MGL_X
        MGL_FAIL_KIND_COUNT
};

typedef struct mgl_fail_page {
    _Atomic uint64_t calls[MGL_FAIL_KIND_COUNT];
    _Atomic uint64_t failed;    /* calls that were made to fail */
    _Atomic uint64_t failed_on; /* bit 1: a write to standard output; bit 2: to standard error */
} mgl_fail_page;

#endif
