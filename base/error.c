#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Cuts a text that filled its buffer back to the last whole UTF-8 character. */
static void cut_utf8(char *text, size_t size)
{
    size_t n = strlen(text);
    if (n + 1 < size)
        return;
    while (n > 0 && ((unsigned char)text[n - 1] & 0xC0) == 0x80)
        n--;
    if (n > 0 && ((unsigned char)text[n - 1] & 0x80))
        n--;
    text[n] = 0;
}

mgl_status mgl_fail(mgl_error *err, mgl_status code, const char *where, const char *format, ...)
{
    if (!err)
        return code;
    err->code = code;
    snprintf(err->where, sizeof err->where, "%s", where ? where : "");
    cut_utf8(err->where, sizeof err->where);
    va_list args;
    va_start(args, format);
    vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    cut_utf8(err->message, sizeof err->message);
    return code;
}

mgl_status mgl_fail_memory(mgl_error *err, size_t bytes)
{
    return mgl_fail(err, MGL_NO_MEMORY, NULL, "out of memory: %zu bytes could not be allocated",
                    bytes);
}

mgl_status mgl_fail_null(mgl_error *err, const char *function, const char *argument)
{
    return mgl_fail(err, MGL_USAGE, function, "the argument \"%s\" is NULL and must not be",
                    argument);
}

mgl_status mgl_fail_errno(mgl_error *err, const char *where, const char *what)
{
    return mgl_fail(err, MGL_SYSTEM, where, "%s: %s", what, strerror(errno));
}

mgl_status mgl_fail_path(mgl_error *err, const char *path, const char *what)
{
    switch (errno) {
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
    case EACCES:
    case ELOOP:
    case ENAMETOOLONG:
    case EINVAL:
    case ENXIO:
        return mgl_fail(err, MGL_BAD_INPUT, path, "%s: %s", what, strerror(errno));
    default:
        return mgl_fail_errno(err, path, what);
    }
}

mgl_status mgl_fail_interrupted(mgl_error *err)
{
    return mgl_fail(err, MGL_INTERRUPTED, NULL, "interrupted");
}

mgl_status mgl_check_abort(const atomic_int *abort, mgl_error *err)
{
    return abort && atomic_load(abort) ? mgl_fail_interrupted(err) : MGL_OK;
}
