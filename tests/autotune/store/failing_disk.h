/*
 * Fault injection beneath SQLite: a VFS in front of the real one that counts writes, flushes,
 * truncations, removals and opens, and fails the n-th of them. It does not flush to the real disk,
 * because no test cuts power. Tests that create many stores are therefore fast.
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

/* Makes this VFS the default for new stores. Call once per process. */
void disk_install(void);
/* The n-th operation from now fails; 0: none. */
void disk_fail_at(uint64_t n, disk_failure how);
uint64_t disk_count(void); /* operations since then */

/* While on, each flush copies the file to PATH.flushed, the contents that survive a power loss. */
void disk_keep_flushed(bool on);

#endif
