/* Copies structs that begin with their size. See sized.h. */
#include "base/sized.h"

#include <string.h>

static size_t size_of(const void *sized)
{
    size_t size;
    memcpy(&size, sized, sizeof size);
    return size;
}

mgl_status mgl_sized_check(const void *sized, size_t least, const char *name, mgl_error *err)
{
    size_t size = size_of(sized);
    if (size >= least && size >= sizeof size && size <= MGL_SIZED_MOST)
        return MGL_OK;
    return mgl_fail(err, MGL_USAGE, name, "the field size is %zu; set it to sizeof(%s)", size,
                    name);
}

static mgl_status check_beyond(const void *from, size_t known, const char *name, mgl_error *err)
{
    const unsigned char *bytes = from;
    for (size_t at = known, size = size_of(from); at < size; at++)
        if (bytes[at])
            return mgl_fail(err, MGL_USAGE, name,
                            "the program was built for a newer library than this %s and sets a "
                            "field that this one does not know; leave it zero, or install the "
                            "newer library",
                            MGL_VERSION);
    return MGL_OK;
}

mgl_status mgl_sized_read(void *to, size_t known, const void *from, const char *name,
                          mgl_error *err)
{
    mgl_status status = mgl_sized_check(from, sizeof(size_t), name, err);
    if (!status)
        status = check_beyond(from, known, name, err);
    if (status)
        return status;
    memset(to, 0, known);
    memcpy(to, from, size_of(from) < known ? size_of(from) : known);
    memcpy(to, &known, sizeof known);
    return MGL_OK;
}

void mgl_sized_write(void *to, const void *from, size_t known)
{
    size_t size = size_of(to);
    memcpy(to, from, size < known ? size : known);
    if (size > known)
        memset((char *)to + known, 0, size - known);
    memcpy(to, &size, sizeof size);
}
