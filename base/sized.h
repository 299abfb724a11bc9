/*
 * Structs of the public header that grow from version to version. The first field of each, `size`,
 * is the sizeof that the program was built with, so that a library and a program of different
 * versions understand each other:
 *
 *     shorter than the library's   the fields beyond are zero (read) or stay unwritten (filled)
 *     longer than the library's    the bytes beyond must be zero (read) or become zero (filled)
 *
 * A new field goes to the end and begins at or behind the old sizeof: nobody zeroes the padding
 * that an old program has there.
 */
#ifndef MGL_BASE_SIZED_H
#define MGL_BASE_SIZED_H

#include "base/error.h"

#define MGL_SIZED_MOST ((size_t)4096) /* a larger size is no size but a struct left as it was */

/* MGL_USAGE unless the struct `name` at `sized` states a size from `least` to MGL_SIZED_MOST. */
mgl_status mgl_sized_check(const void *sized, size_t least, const char *name, mgl_error *err);

/* Copies what the caller filled at `from` into `to`, the library's struct of `known` bytes. */
mgl_status mgl_sized_read(void *to, size_t known, const void *from, const char *name,
                          mgl_error *err);

/* Fills the caller's struct at `to`, whose size was checked, from the library's of `known` bytes.
 */
void mgl_sized_write(void *to, const void *from, size_t known);

#endif
