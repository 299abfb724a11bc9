/* Reads PTX fixtures and edits them. See ptx_support.h. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "tests/autotune/kernels/ptx_support.h"

char *read_ptx(const char *name)
{
    char path[512], *text = NULL;
    size_t length;
    mgl_error err = {0};
    snprintf(path, sizeof path, "%s/tests/autotune/kernels/ptx/%s", MGL_SOURCE_DIR, name);
    ck_assert_msg(!mgl_file_read(path, 1 << 20, &text, &length, &err), "%s", err.message);
    return text;
}

char *replace(char *text, const char *from, const char *to)
{
    mgl_text out = {0};
    const char *at = text, *found;
    ck_assert_ptr_nonnull(strstr(text, from));
    for (; (found = strstr(at, from)); at = found + strlen(from)) {
        mgl_text_append(&out, at, (size_t)(found - at));
        mgl_text_put(&out, to);
    }
    mgl_text_put(&out, at);
    mgl_free(text);
    return out.bytes;
}

mgl_ptx_condensed condense(const char *text)
{
    mgl_ptx_condensed out;
    mgl_error err = {0};
    ck_assert_msg(!mgl_ptx_condense_text(text, strlen(text), "test.ptx", &out, &err), "%s: %s",
                  err.where, err.message);
    return out;
}
