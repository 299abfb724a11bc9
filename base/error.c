/* Fills errors. See error.h. */
#include "base/error.h"

#include "base/format.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

mgl_status mgl_fail(mgl_error *err, mgl_status code, const char *where, const char *format, ...)
{
    if (!err)
        return code;
    err->code = code;
    mgl_format_into(err->where, sizeof err->where, "%s", where ? where : "");
    va_list args;
    va_start(args, format);
    mgl_format_list(err->message, sizeof err->message, format, args);
    va_end(args);
    return code;
}

mgl_status mgl_fail_memory(mgl_error *err, size_t bytes)
{
    if (bytes == 0) /* several allocations; no single size */
        return mgl_fail(err, MGL_NO_MEMORY, NULL, "out of memory");
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
    mgl_status status = errno == ENOMEM ? MGL_NO_MEMORY : MGL_SYSTEM;
    return mgl_fail(err, status, where, "%s: %s", what, strerror(errno));
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

void mgl_error_name(mgl_error *err, const char *name)
{
    if (!err)
        return;
    char where[sizeof err->where];
    memcpy(where, err->where, sizeof where);
    mgl_format_into(err->where, sizeof err->where, "%.150s%s%s", name, where[0] ? ": " : "", where);
}

void mgl_error_add_lines(mgl_error *err, const char *lines)
{
    while (err && *lines) {
        size_t used = strlen(err->message), length = strcspn(lines, "\n");
        mgl_format_into(err->message + used, sizeof err->message - used, "\n%.*s", (int)length,
                        lines);
        lines += length + (lines[length] == '\n');
    }
}
