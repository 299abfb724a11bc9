/*
 * Reads the JSON dialect of Python's json module, which writes non-finite numbers as NaN,
 * Infinity or -Infinity. Before the text is parsed, such a word is put in quotes. A getter of
 * numbers then reports the key. See json.h.
 */
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"

#include <string.h>

/* Returns the length of the constant at `at`, or 0. */
static size_t constant_at(const char *at, size_t length)
{
    static const char *const constants[] = {"NaN", "Infinity", "-Infinity"};
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++) {
        const size_t size = strlen(constants[i]);
        if (length >= size && !memcmp(at, constants[i], size))
            return size;
    }
    return 0;
}

/* Appends the text with its constants in quotes. */
static void quote_constants(const char *text, size_t length, mgl_text *out)
{
    bool in_string = false;
    size_t start = 0;
    for (size_t i = 0; i < length; i++) {
        const size_t size = in_string ? 0 : constant_at(text + i, length - i);
        if (text[i] == '"')
            in_string = !in_string;
        else if (text[i] == '\\' && in_string)
            i++;
        if (!size)
            continue;
        mgl_text_append(out, text + start, i - start);
        mgl_text_format(out, "\"%.*s\"", (int)size, text + i);
        start = i + size;
        i = start - 1;
    }
    mgl_text_append(out, text + start, length - start);
}

mgl_status mgl_json_parse_python(const char *text, size_t length, size_t cap, const char *file,
                                 mgl_json *out, mgl_error *err)
{
    mgl_text quoted = {0};
    if (length <= cap)
        quote_constants(text, length, &quoted);
    mgl_status status = quoted.failed ? mgl_fail_memory(err, length) : MGL_OK;
    if (!status)
        status = quoted.bytes && quoted.length <= cap
                     ? mgl_json_parse(quoted.bytes, quoted.length, cap, file, out, err)
                     : mgl_json_parse(text, length, cap, file, out, err);
    mgl_text_clear(&quoted);
    return status;
}

mgl_status mgl_json_read_python(const char *path, size_t cap, mgl_json *out, mgl_error *err)
{
    char *text;
    size_t length;
    mgl_status status = mgl_file_read_regular(path, cap, &text, &length, err);
    if (status)
        return status;
    status = mgl_json_parse_python(text, length, cap, path, out, err);
    mgl_free(text);
    return status;
}
