/*
 * A JSON array of strings, as --texts takes it. Texts may hold the character U+0000, which the
 * strict reader refuses because a C string can not carry it: it is given the file with another
 * control character in its place, and the strings, by then known to be well-formed, are unescaped
 * here.
 */
#include "cli/cli.h"

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "importer/tokenizer/utf8.h"

#include <string.h>

void mgl_cli_texts_clear(mgl_cli_texts *texts)
{
    for (size_t i = 0; i < texts->count; i++)
        mgl_free(texts->texts[i]);
    mgl_free(texts->texts);
    mgl_free(texts->lengths);
    *texts = (mgl_cli_texts){0};
}

/* Replaces each escape \u0000 by \u0001, in place. */
static void mask_zeros(char *text, size_t length)
{
    for (size_t i = 0; i + 1 < length; i++) {
        if (text[i] != '\\')
            continue;
        if (i + 5 < length && !memcmp(text + i + 1, "u0000", 5))
            text[i + 5] = '1';
        i++;
    }
}

/* Is the file a well-formed JSON array of strings, but for zeros in them? */
static mgl_status check_form(const char *path, const char *text, size_t length, size_t *count,
                             mgl_error *err)
{
    mgl_json json = {0};
    const cJSON *item;
    char *masked = mgl_strndup(text, length);
    if (!masked)
        return mgl_fail_memory(err, length);
    mask_zeros(masked, length);
    mgl_status status = mgl_json_parse(masked, length, MGL_CLI_MAX_TEXT, path, &json, err);
    mgl_free(masked);
    if (!status && !cJSON_IsArray(json.root))
        status = mgl_fail(err, MGL_BAD_INPUT, path, "is not a JSON array of strings");
    *count = 0;
    for (item = status ? NULL : json.root->child; item && !status; item = item->next, ++*count)
        if (!cJSON_IsString(item))
            status =
                mgl_fail(err, MGL_BAD_INPUT, path,
                         "element %zu is not a string: a JSON array of strings is wanted", *count);
    mgl_json_clear(&json);
    return status;
}

/* The number that four hexadecimal digits say. */
static uint32_t read_hex4(const char *digits)
{
    uint32_t value = 0;
    for (int i = 0; i < 4; i++) {
        uint32_t c = (unsigned char)digits[i];
        value = value << 4 | (c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return value;
}

/* Reads the escape behind a backslash, writes its bytes to *to; returns what follows it. */
static const char *read_escape(const char *at, char **to)
{
    static const char names[] = "bfnrt", values[] = "\b\f\n\r\t";
    const char *name = strchr(names, *at);
    if (*at != 'u') {
        *(*to)++ = name ? values[name - names] : *at;
        return at + 1;
    }
    uint32_t c = read_hex4(at + 1);
    at += 5;
    if (c >= 0xD800 && c < 0xDC00) { /* a pair: the second half follows */
        c = 0x10000 + ((c - 0xD800) << 10) + (read_hex4(at + 2) - 0xDC00);
        at += 6;
    }
    *to += mgl_utf8_put(c, *to);
    return at;
}

/* Unescapes the string behind its opening quote; returns what follows the closing one. No string
 * grows by that. */
static const char *read_string(const char *at, char *to, size_t *length)
{
    char *start = to;
    while (*at != '"') {
        if (*at == '\\')
            at = read_escape(at + 1, &to);
        else
            *to++ = *at++;
    }
    *length = (size_t)(to - start);
    *to = 0;
    return at + 1;
}

static mgl_status read_strings(const char *text, size_t count, mgl_cli_texts *out, mgl_error *err)
{
    out->texts = mgl_alloc_zero(count ? count : 1, sizeof *out->texts);
    out->lengths = mgl_alloc_zero(count ? count : 1, sizeof *out->lengths);
    if (!out->texts || !out->lengths)
        return mgl_fail_memory(err, count * sizeof *out->texts);
    const char *at = text;
    for (size_t i = 0; i < count; i++) {
        at = strchr(at, '"') + 1; /* between strings stand blanks and a comma */
        const char *end = at;
        while (*end != '"')
            end += *end == '\\' ? 2 : 1;
        out->texts[i] = mgl_alloc((size_t)(end - at) + 1);
        if (!out->texts[i])
            return mgl_fail_memory(err, (size_t)(end - at) + 1);
        out->count++;
        at = read_string(at, out->texts[i], &out->lengths[i]);
    }
    return MGL_OK;
}

mgl_status mgl_cli_texts_read(const char *path, mgl_cli_texts *out, mgl_error *err)
{
    char *text = NULL;
    size_t length = 0, count = 0;
    *out = (mgl_cli_texts){0};
    mgl_status status = mgl_file_read(path, MGL_CLI_MAX_TEXT, &text, &length, err);
    if (!status)
        status = check_form(path, text, length, &count, err);
    if (!status)
        status = read_strings(text, count, out, err);
    if (status)
        mgl_cli_texts_clear(out);
    mgl_free(text);
    return status;
}
