/* Splits a JSON array, or JSON Lines, into the texts of its entries. */
#include "cli/generate/entries.h"

#include "base/json.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "cli/cli.h"

#include <string.h>

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && is_blank(*at))
        at++;
    return at;
}

static mgl_status add_entry(mgl_cli_entries *entries, const char *from, const char *to,
                            size_t number, mgl_error *err)
{
    from = skip_blanks(from, to);
    while (to > from && is_blank(to[-1]))
        to--;
    if (entries->count == entries->capacity) {
        size_t capacity = entries->capacity ? 2 * entries->capacity : 64;
        mgl_cli_entry *items = mgl_realloc(entries->items, capacity * sizeof *items);
        if (!items)
            return mgl_fail_memory(err, capacity * sizeof *items);
        entries->items = items;
        entries->capacity = capacity;
    }
    entries->items[entries->count++] = (mgl_cli_entry){from, (size_t)(to - from), number};
    return MGL_OK;
}

/* ---- arrays ---------------------------------------------------------------------------------- */

/* Skips a string: `at` is the character after the quote. Returns the character after the closing
 * quote, or the end. */
static const char *skip_string(const char *at, const char *end)
{
    while (at < end && *at != '"')
        at += *at == '\\' && at + 1 < end ? 2 : 1;
    return at < end ? at + 1 : end;
}

/* Skips an element. Returns the comma or bracket after it; `end` if there is none. */
static const char *find_element_end(const char *at, const char *end)
{
    int depth = 0;
    while (at < end && (depth || (*at != ',' && *at != ']'))) {
        const char c = *at++;
        if (c == '"')
            at = skip_string(at, end);
        else
            depth += (c == '[' || c == '{') - (c == ']' || c == '}');
    }
    return at;
}

/* Splits the array that starts at the bracket `at`. *split stays false if brackets do not match, an
 * element is empty, or text follows the array. */
static mgl_status split_array(const char *at, const char *end, mgl_cli_entries *out, bool *split,
                              mgl_error *err)
{
    mgl_status status = MGL_OK;
    at = skip_blanks(at + 1, end);
    bool closed = at < end && *at == ']';
    while (at < end && !closed && !status) {
        const char *stop = find_element_end(at, end);
        if (stop == end || skip_blanks(at, stop) == stop)
            return MGL_OK;
        status = add_entry(out, at, stop, out->count, err);
        closed = *stop == ']';
        at = closed ? stop : stop + 1;
    }
    *split = !status && closed && skip_blanks(at + 1, end) == end;
    return status;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static const char *find_line_end(const char *at, const char *end)
{
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    return stop ? stop : end;
}

static mgl_status split_lines(const char *at, const char *end, mgl_cli_entries *out, mgl_error *err)
{
    mgl_status status = MGL_OK;
    out->lines = true;
    for (size_t line = 1; at < end && !status; line++) {
        const char *stop = find_line_end(at, end);
        if (skip_blanks(at, stop) < stop)
            status = add_entry(out, at, stop, line, err);
        at = stop < end ? stop + 1 : end;
    }
    return status;
}

static size_t line_of(const char *text, const char *at)
{
    size_t line = 1;
    for (; text < at; text++)
        line += *text == '\n';
    return line;
}

/* ---- arrays or lines ------------------------------------------------------------------------- */

/* The result of one parse. */
static mgl_status parse(const char *from, const char *to, const char *file, bool *is_entry,
                        mgl_error *err)
{
    mgl_json json = {0};
    mgl_status status =
        mgl_json_parse_values(from, (size_t)(to - from), MGL_CLI_MAX_TEXT, file, &json, err);
    *is_entry = !status && (cJSON_IsString(json.root) || cJSON_IsObject(json.root));
    mgl_json_clear(&json);
    return status;
}

/* Whether an entry is JSON. If no entry is JSON, the text is not a list of prompts. */
static bool has_json(const mgl_cli_entries *entries, const char *file)
{
    bool is_entry;
    for (size_t i = 0; i < entries->count; i++) {
        const mgl_cli_entry *entry = &entries->items[i];
        if (!parse(entry->text, entry->text + entry->length, file, &is_entry, NULL))
            return true;
    }
    return false;
}

/* Splits a text that is not an array: one value is one entry; otherwise each line is an entry. */
static mgl_status split_values(const char *text, const char *at, const char *end, const char *file,
                               const char *noun, mgl_cli_entries *out, mgl_error *err)
{
    bool is_entry;
    mgl_error ignored;
    mgl_status status = parse(at, end, file, &is_entry, &ignored);
    if (status == MGL_NO_MEMORY)
        return mgl_fail_memory(err, (size_t)(end - at));
    if (is_entry) {
        out->lines = true;
        return add_entry(out, at, end, line_of(text, at), err);
    }
    if (!status)
        return mgl_fail(err, MGL_BAD_INPUT, file,
                        "is not a list of %ss; write a JSON array of texts and objects, or one "
                        "text or object a line",
                        noun);
    if (*at == '[' && parse(at, find_line_end(at, end), file, &is_entry, NULL))
        return MGL_OK; /* the array is not closed */
    return split_lines(text, end, out, err);
}

mgl_status mgl_cli_entries_split(const char *text, size_t length, const char *file,
                                 const char *noun, mgl_cli_entries *out, mgl_error *err)
{
    const char *end = text + length, *at = skip_blanks(text, end);
    bool split = false, is_entry;
    mgl_status status = mgl_utf8_check_mark(text, length, file, err);
    if (!status && at == end)
        status = mgl_fail(err, MGL_BAD_INPUT, file, "holds 0 %ss; at least one is needed", noun);
    if (!status && *at == '[')
        status = split_array(at, end, out, &split, err);
    if (!status && !split) {
        out->count = 0;
        status = split_values(text, at, end, file, noun, out, err);
    }
    if (status || (split && !out->count) || has_json(out, file))
        return status;
    status = parse(text, end, file, &is_entry, err); /* its error has the place in the file */
    return status ? status
                  : mgl_fail(err, MGL_BAD_INPUT, file, "holds no %s that is valid JSON", noun);
}

void mgl_cli_entries_clear(mgl_cli_entries *entries)
{
    mgl_free(entries->items);
    *entries = (mgl_cli_entries){0};
}
