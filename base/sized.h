/*
 * Structs of the public header that grow from version to version. The first field of each, `size`,
 * is the sizeof that the program was built with. So a library and a program of different versions
 * work together:
 *
 *     shorter than the library's   the fields past its end are zero (read) or not written (filled)
 *     longer than the library's    the bytes past it must be zero (read) or become zero (filled)
 *
 * A new field is added at the end, at or after the old sizeof, because the padding of an old
 * program is not zeroed.
 */
#ifndef MGL_BASE_SIZED_H
#define MGL_BASE_SIZED_H

#include "base/error.h"

#define MGL_SIZED_MOST ((size_t)4096) /* a larger value means an uninitialized struct */

/* Returns MGL_USAGE unless the struct `name` at `sized` has a size from `least` to
 * MGL_SIZED_MOST. */
mgl_status mgl_sized_check(const void *sized, size_t least, const char *name, mgl_error *err);

/* Copies the caller's struct at `from` into `to`, the library's struct of `known` bytes. */
mgl_status mgl_sized_read(void *to, size_t known, const void *from, const char *name,
                          mgl_error *err);

/* Fills the caller's struct at `to`, whose size was checked, from the library's struct of
 * `known` bytes. */
void mgl_sized_write(void *to, const void *from, size_t known);

#endif
