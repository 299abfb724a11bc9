/*
 * Replaces the comments of the kernel's sources. See reworded.h. The sources contain no raw strings
 * and no comments with line continuations.
 */
#include "tests/vm/cuda/reworded.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "vm/cuda/compile.h"

static size_t literal_length(const char *at)
{
    size_t n = 1;
    while (at[n] && at[n] != *at && at[n] != '\n')
        n += at[n] == '\\' ? 2 : 1;
    return at[n] == *at ? n + 1 : n;
}

static size_t comment_length(const char *at)
{
    if (at[1] == '/')
        return strcspn(at, "\n");
    const char *end = strstr(at + 2, "*/");
    ck_assert_ptr_nonnull(end);
    return (size_t)(end + 2 - at);
}

static void put_comment(mgl_text *out, const char *at, size_t length, int how)
{
    if (how == COMMENTS_LEFT_OUT)
        mgl_text_put(out, " ");
    else if (how == COMMENTS_REWORDED)
        mgl_text_put(out, at[1] == '/' ? "// it isn't \"that" : "/* it's // \"this */");
    else if (how == COMMENTS_LENGTHENED)
        mgl_text_put(out, "/* a comment\n\n * of 'several \"lines\n#define MGL_LINES\n ***/");
    else
        mgl_text_append(out, at, length);
}

char *reword(const char *text, int how)
{
    mgl_text out = {0};
    for (const char *at = text; *at;) {
        const bool comment = *at == '/' && (at[1] == '/' || at[1] == '*');
        const bool literal = *at == '"' || *at == '\'';
        const size_t length = comment ? comment_length(at) : literal ? literal_length(at) : 1;
        if (comment)
            put_comment(&out, at, length, how);
        else
            mgl_text_append(&out, at, *at == '\n' && how == COMMENTS_ADDED ? 0 : length);
        if (how == COMMENTS_ADDED && *at == ' ')
            mgl_text_put(&out, "/* more\n\n#if 0 */");
        if (how == COMMENTS_ADDED && *at == '\n')
            mgl_text_put(&out, at > text && at[-1] == '\\' ? "\n" : " // \"the end\n\n// more\n");
        at += length;
    }
    ck_assert(!out.failed);
    return out.bytes;
}

const mgl_cuda_source *reword_sources(int how)
{
    static mgl_cuda_source sources[MGL_RECIPE_SOURCES];
    static char *texts[MGL_RECIPE_SOURCES];
    ck_assert_int_le(mgl_cuda_source_count, MGL_RECIPE_SOURCES);
    for (int i = 0; i < mgl_cuda_source_count; i++) {
        mgl_free(texts[i]);
        texts[i] = reword((const char *)mgl_cuda_sources[i].text, how);
        sources[i] = (mgl_cuda_source){mgl_cuda_sources[i].name, (unsigned char *)texts[i]};
    }
    return sources;
}
