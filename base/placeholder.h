/* Files that stand in the place of the file that was meant: the pointer that a git clone without
 * Git LFS leaves, and the web page that a download by its address saves. */
#ifndef MGL_BASE_PLACEHOLDER_H
#define MGL_BASE_PLACEHOLDER_H

#include "base/error.h"
#include "base/file.h"

/* MGL_BAD_INPUT if the first `length` bytes of the file are those of a Git LFS pointer or of a web
 * page; the message says how to get the file itself. */
mgl_status mgl_placeholder_check(const char *path, const char *bytes, size_t length,
                                 mgl_error *err);
/* The same of a mapped file. */
mgl_status mgl_placeholder_check_map(const mgl_map *map, mgl_error *err);

#endif
