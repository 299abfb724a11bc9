/*
 * A disk that fails, beneath SQLite: a VFS in front of the real one that counts what is written,
 * flushed, cut, removed and opened, and fails the n-th of them. It flushes nothing to the real
 * disk, which no test takes the power of: tests that make many stores are fast on it.
 */
#ifndef MGL_TESTS_AUTOTUNE_STORE_FAILING_DISK_H
#define MGL_TESTS_AUTOTUNE_STORE_FAILING_DISK_H

#include <stdbool.h>
#include <stdint.h>

typedef enum disk_failure {
    DISK_FULL,   /* the n-th operation alone, with SQLITE_FULL */
    DISK_BROKEN, /* the n-th alone, half done, as an I/O error */
    DISK_GONE,   /* the n-th and all that follow */
    DISK_FAILURES
} disk_failure;

/* Makes it the VFS that stores are opened with from now on; once a process. */
void disk_install(void);
/* The n-th operation from now fails; 0: none. */
void disk_fail_at(uint64_t n, disk_failure how);
uint64_t disk_count(void); /* operations since then */

/* While on, each flush of a file copies it to PATH.flushed: what a loss of power leaves of it. */
void disk_keep_flushed(bool on);

#endif
