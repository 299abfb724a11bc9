/* Placeholders: files that are not the wanted file. A git clone without Git LFS leaves a pointer. A
 * download from the address of a web page saves the page. */
#ifndef MGL_BASE_PLACEHOLDER_H
#define MGL_BASE_PLACEHOLDER_H

#include "base/error.h"
#include "base/file.h"

/* MGL_BAD_INPUT if the first `length` bytes of the file are those of a Git LFS pointer or of a web
 * page; the message says how to get the file itself. */
mgl_status mgl_placeholder_check(const char *path, const char *bytes, size_t length,
                                 mgl_error *err);
/* The same for a mapped file. */
mgl_status mgl_placeholder_check_map(const mgl_map *map, mgl_error *err);

#endif
