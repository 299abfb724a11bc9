/* Detects placeholders: files that stand in for the wanted file. A git clone without Git LFS
 * leaves a pointer. A download from the address of a web page saves the page. */
#ifndef MGL_BASE_PLACEHOLDER_H
#define MGL_BASE_PLACEHOLDER_H

#include "base/error.h"
#include "base/file.h"

/* Returns MGL_BAD_INPUT if the first `length` bytes of the file are a Git LFS pointer or a web
 * page. The message explains how to get the file. */
mgl_status mgl_placeholder_check(const char *path, const char *bytes, size_t length,
                                 mgl_error *err);
/* Same for a mapped file. */
mgl_status mgl_placeholder_check_map(const mgl_map *map, mgl_error *err);

#endif
