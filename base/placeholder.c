/* Recognizes Git LFS pointers and web pages. See placeholder.h. */
#include "base/placeholder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MOST_POINTER = 1024 }; /* bytes; the limit in the specification of Git LFS */

/* First lines of pointers: of the current specification and of its two predecessors. */
static const char *const versions[] = {"version https://git-lfs.github.com/spec/",
                                       "version https://hawser.github.com/spec/",
                                       "version http://git-media.io/v/"};

static bool begins_with(const char *bytes, size_t length, const char *start)
{
    size_t needed = strlen(start);
    return length >= needed && !strncasecmp(bytes, start, needed);
}

static bool is_pointer(const char *text, size_t length)
{
    bool is = false;
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++)
        is |= begins_with(text, length, versions[i]);
    return is && strstr(text, "\noid ");
}

static bool is_page(const char *text, size_t length)
{
    size_t blank = strspn(text, " \t\r\n");
    return begins_with(text + blank, length - blank, "<!doctype html") ||
           begins_with(text + blank, length - blank, "<html");
}

static mgl_status fail_pointer(const char *path, const char *text, mgl_error *err)
{
    char folder[PATH_MAX] = ".", size[60] = "";
    const char *at = strstr(text, "\nsize ");
    if (strlen(path) < sizeof folder)
        mgl_file_split(path, folder);
    if (at)
        snprintf(size, sizeof size, " (%llu bytes)", strtoull(at + 6, NULL, 10));
    return mgl_fail(err, MGL_BAD_INPUT, path,
                    "is a Git LFS pointer, not the file itself%s: the repository was cloned "
                    "without Git LFS; run `git lfs install` and then `git lfs pull` in %.300s, or "
                    "download the model with `hf download`",
                    size, folder);
}

mgl_status mgl_placeholder_check(const char *path, const char *bytes, size_t length, mgl_error *err)
{
    char text[MOST_POINTER + 1];
    size_t count = length < MOST_POINTER ? length : MOST_POINTER;
    if (count)
        memcpy(text, bytes, count);
    text[count] = 0;
    if (is_pointer(text, count))
        return fail_pointer(path, text, err);
    if (is_page(text, count))
        return mgl_fail(err, MGL_BAD_INPUT, path,
                        "is a web page, not the file itself; download the model again, for "
                        "example with `hf download`");
    return MGL_OK;
}

mgl_status mgl_placeholder_check_map(const mgl_map *map, mgl_error *err)
{
    char start[MOST_POINTER];
    size_t length = mgl_map_size(map);
    length = length < sizeof start ? length : sizeof start;
    mgl_status status = mgl_map_read(map, 0, length, start, err);
    return status ? status : mgl_placeholder_check(mgl_map_path(map), start, length, err);
}
