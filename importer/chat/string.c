/*
 * Implements strings: joining, splitting and searching. See string.h. A join extends the buffer
 * of its left operand in place if it was not extended before. So a text that grows in a loop
 * uses at most twice its bytes.
 */
#include "importer/chat/string.h"

#include "base/text.h"
#include "base/utf8.h"
#include "importer/chat/render.h"

#include <string.h>

/* ---- sinks ----------------------------------------------------------------------------------- */

/* Makes room for `more` bytes, which cost steps. */
static bool reserve(mgl_render *r, mgl_sink *sink, size_t more)
{
    if (more > MGL_JINJA_OUTPUT - sink->length)
        return mgl_render_fail(r, "the text grows beyond %d bytes", (int)MGL_JINJA_OUTPUT);
    if (!mgl_render_spend(r, more))
        return false;
    size_t need = sink->length + more, wanted = sink->capacity ? sink->capacity : 32;
    while (wanted < need)
        wanted *= 2;
    if (wanted <= sink->capacity)
        return true;
    if (sink->bytes && mgl_arena_extend(&r->memory, sink->bytes, sink->capacity, wanted)) {
        sink->capacity = wanted;
        return true;
    }
    char *grown = mgl_render_take(r, wanted);
    if (!grown)
        return false;
    if (sink->length)
        memcpy(grown, sink->bytes, sink->length);
    sink->bytes = grown;
    sink->capacity = wanted;
    return true;
}

bool mgl_sink_put(mgl_render *r, mgl_sink *sink, const char *bytes, size_t length)
{
    if (!length)
        return true;
    if (!reserve(r, sink, length))
        return false;
    memcpy(sink->bytes + sink->length, bytes, length);
    sink->length += length;
    return true;
}

bool mgl_sink_puts(mgl_render *r, mgl_sink *sink, const char *text)
{
    return mgl_sink_put(r, sink, text, strlen(text));
}

bool mgl_sink_fill(mgl_render *r, mgl_sink *sink, char byte, size_t count)
{
    if (!count)
        return true;
    if (!reserve(r, sink, count))
        return false;
    memset(sink->bytes + sink->length, byte, count);
    sink->length += count;
    return true;
}

mgl_string *mgl_sink_string(mgl_render *r, const mgl_sink *sink)
{
    return mgl_string_share(r, sink->length ? sink->bytes : "", sink->length);
}

/* ---- construction ---------------------------------------------------------------------------- */

mgl_string *mgl_string_share(mgl_render *r, const char *bytes, size_t length)
{
    mgl_string *string = mgl_render_take(r, sizeof *string);
    if (string)
        *string = (mgl_string){bytes, length, SIZE_MAX, NULL};
    return string;
}

bool mgl_string_value(mgl_render *r, const char *bytes, size_t length, mgl_value *out)
{
    mgl_string *string = mgl_string_share(r, bytes, length);
    *out = mgl_of_string(string);
    return string != NULL;
}

mgl_string *mgl_string_new(mgl_render *r, const char *bytes, size_t length)
{
    char *copy = mgl_render_spend(r, length) ? mgl_render_take(r, length) : NULL;
    if (!copy)
        return NULL;
    if (length)
        memcpy(copy, bytes, length);
    return mgl_string_share(r, copy, length);
}

/* ---- characters ------------------------------------------------------------------------------ */

static size_t count_characters(const char *bytes, size_t length)
{
    size_t n = 0;
    for (size_t i = 0; i < length; i++)
        n += ((unsigned char)bytes[i] & 0xC0) != 0x80;
    return n;
}

size_t mgl_string_characters(mgl_string *string)
{
    if (string->characters == SIZE_MAX)
        string->characters = count_characters(string->bytes, string->length);
    return string->characters;
}

size_t mgl_string_byte(mgl_string *string, size_t index)
{
    size_t characters = mgl_string_characters(string), at = 0;
    if (index >= characters)
        return string->length;
    if (characters == string->length)
        return index;
    while (index--)
        at += mgl_utf8_size(string->bytes[at]);
    return at;
}

bool mgl_string_same(const mgl_string *a, const mgl_string *b)
{
    return a->length == b->length && (!a->length || !memcmp(a->bytes, b->bytes, a->length));
}

bool mgl_string_is(const mgl_string *string, const char *text)
{
    return mgl_text_is(string->bytes, string->length, text);
}

int mgl_string_order(const mgl_string *a, const mgl_string *b)
{
    size_t both = a->length < b->length ? a->length : b->length;
    int order = both ? memcmp(a->bytes, b->bytes, both) : 0;
    return order ? order : (a->length > b->length) - (a->length < b->length);
}

/* Searches window by window, so that an early match is cheap however long the text is. */
static const char *find(const char *bytes, size_t length, const mgl_string *part)
{
    enum { LEAST = 1024 };
    size_t window = part->length * 2 + LEAST, at = 0;
    while (length - at > window) {
        const char *found = memmem(bytes + at, window, part->bytes, part->length);
        if (found)
            return found;
        at += window - (part->length - 1);
    }
    return memmem(bytes + at, length - at, part->bytes, part->length);
}

const char *mgl_string_find(mgl_render *r, const char *bytes, size_t length, const mgl_string *part)
{
    const char *found = part->length ? find(bytes, length, part) : bytes;
    size_t looked = found ? (size_t)(found - bytes) + part->length : length;
    return mgl_render_spend(r, looked * 4) ? found : NULL;
}

/* ---- joining and replacing ------------------------------------------------------------------- */

/* Makes a new buffer for both operands. If the left one is already in a buffer, the new buffer
 * has spare room. */
static mgl_buffer *make_buffer(mgl_render *r, const mgl_string *a, size_t length)
{
    mgl_buffer *buffer = mgl_render_take(r, sizeof *buffer);
    if (!buffer)
        return NULL;
    *buffer = (mgl_buffer){.used = a->length, .capacity = a->buffer ? length * 2 : length};
    buffer->bytes = mgl_render_take(r, buffer->capacity);
    if (!buffer->bytes || !mgl_render_spend(r, a->length))
        return NULL;
    memcpy(buffer->bytes, a->bytes, a->length);
    return buffer;
}

mgl_string *mgl_string_join(mgl_render *r, mgl_string *a, mgl_string *b)
{
    size_t length = a->length + b->length;
    if (!a->length || !b->length)
        return a->length ? a : b;
    if (length > MGL_JINJA_OUTPUT) {
        mgl_render_fail(r, "the text grows beyond %d bytes", (int)MGL_JINJA_OUTPUT);
        return NULL;
    }
    mgl_buffer *buffer = a->buffer;
    bool fits = buffer && buffer->bytes == a->bytes && buffer->used == a->length &&
                buffer->capacity >= length;
    if (!fits)
        buffer = make_buffer(r, a, length);
    mgl_string *joined = buffer ? mgl_string_share(r, buffer->bytes, length) : NULL;
    if (!joined || !mgl_render_spend(r, b->length))
        return NULL;
    memcpy(buffer->bytes + a->length, b->bytes, b->length);
    buffer->used = length;
    joined->buffer = buffer;
    return joined;
}

mgl_string *mgl_string_repeat(mgl_render *r, const mgl_string *string, int64_t times)
{
    mgl_sink sink = {0};
    size_t count = times > 0 ? (size_t)times : 0;
    if (string->length == 1) {
        if (!mgl_sink_fill(r, &sink, string->bytes[0], count))
            return NULL;
        count = 0;
    }
    for (size_t i = 0; i < count && string->length; i++)
        if (!mgl_sink_put(r, &sink, string->bytes, string->length))
            return NULL;
    return mgl_sink_string(r, &sink);
}

/* Replaces an empty part, which occurs before each character and at the end. */
static mgl_string *interleave(mgl_render *r, const mgl_string *string, const mgl_string *by,
                              uint64_t most)
{
    mgl_sink sink = {0};
    size_t at = 0;
    while (at <= string->length) {
        size_t size = at < string->length ? mgl_utf8_size(string->bytes[at]) : 1;
        if (most && !mgl_sink_put(r, &sink, by->bytes, by->length))
            return NULL;
        most -= most > 0;
        if (at < string->length && !mgl_sink_put(r, &sink, string->bytes + at, size))
            return NULL;
        at += size;
    }
    return mgl_sink_string(r, &sink);
}

mgl_string *mgl_string_replace(mgl_render *r, mgl_string *string, const mgl_string *part,
                               const mgl_string *by, int64_t count)
{
    mgl_sink sink = {0};
    const char *at = string->bytes, *end = at + string->length, *found;
    uint64_t most = count < 0 ? UINT64_MAX : (uint64_t)count;
    if (!part->length)
        return interleave(r, string, by, most);
    while (most-- && (found = mgl_string_find(r, at, (size_t)(end - at), part)) != NULL) {
        if (!mgl_sink_put(r, &sink, at, (size_t)(found - at)) ||
            !mgl_sink_put(r, &sink, by->bytes, by->length) || !mgl_render_spend(r, 24))
            return NULL;
        at = found + part->length;
    }
    if (r->status)
        return NULL;
    if (at == string->bytes)
        return string;
    return mgl_sink_put(r, &sink, at, (size_t)(end - at)) ? mgl_sink_string(r, &sink) : NULL;
}

/* ---- stripping and splitting ----------------------------------------------------------------- */

/* Returns whether the character at `at` is in the set to strip. */
static bool is_in(const char *at, size_t size, const mgl_string *set)
{
    uint32_t character;
    if (!set) {
        mgl_utf8_next(at, &character);
        return mgl_character_is_space(character);
    }
    for (size_t i = 0; i < set->length; i += mgl_utf8_size(set->bytes[i]))
        if (mgl_utf8_size(set->bytes[i]) == size && !memcmp(set->bytes + i, at, size))
            return true;
    return false;
}

mgl_string *mgl_string_strip(mgl_render *r, const mgl_string *string, const mgl_string *set,
                             bool left, bool right)
{
    size_t from = 0, to = string->length, last, cost = set ? set->length * 2 + 4 : 4;
    while (left && from < to && mgl_render_spend(r, cost) &&
           is_in(string->bytes + from, mgl_utf8_size(string->bytes[from]), set))
        from += mgl_utf8_size(string->bytes[from]);
    while (right && to > from && mgl_render_spend(r, cost)) {
        last = mgl_utf8_last(string->bytes, to);
        if (!is_in(string->bytes + last, to - last, set))
            break;
        to = last;
    }
    if (r->status)
        return NULL;
    return mgl_string_share(r, string->bytes + from, to - from);
}

static bool add_part(mgl_render *r, mgl_list *list, const char *from, const char *to)
{
    mgl_value part;
    return mgl_render_spend(r, 8) && mgl_string_value(r, from, (size_t)(to - from), &part) &&
           mgl_list_add(r, list, part);
}

static bool split_by(mgl_render *r, const mgl_string *string, const mgl_string *by, uint64_t most,
                     mgl_list *list)
{
    const char *at = string->bytes, *end = at + string->length, *found;
    while (most-- && (found = mgl_string_find(r, at, (size_t)(end - at), by)) != NULL) {
        if (!add_part(r, list, at, found))
            return false;
        at = found + by->length;
    }
    return !r->status && add_part(r, list, at, end);
}

/* Returns the last occurrence; NULL: not found, or the rendering has failed. */
static const char *find_last(mgl_render *r, const char *start, const char *end,
                             const mgl_string *part)
{
    const size_t length = part->length;
    if (end - start < (ptrdiff_t)length)
        return NULL;
    for (const char *place = end - length;; place--) {
        const bool begins = !length || *place == *part->bytes;
        if (!mgl_render_spend(r, begins ? length + 1 : 1))
            return NULL;
        if (begins && !memcmp(place, part->bytes, length))
            return place;
        if (place == start)
            return NULL;
    }
}

/* Splits from the right; the parts are appended last first. */
static bool split_by_right(mgl_render *r, const mgl_string *string, const mgl_string *by,
                           uint64_t most, mgl_list *list)
{
    const char *start = string->bytes, *end = start + string->length, *found;
    while (most-- && (found = find_last(r, start, end, by)) != NULL) {
        if (!mgl_render_spend(r, (size_t)(end - found)) ||
            !add_part(r, list, found + by->length, end))
            return false;
        end = found;
    }
    return !r->status && mgl_render_spend(r, (size_t)(end - start)) &&
           add_part(r, list, start, end);
}

static bool is_space_at(const char *at)
{
    uint32_t character;
    mgl_utf8_next(at, &character);
    return mgl_character_is_space(character);
}

static const char *skip(const char *at, const char *end, bool space)
{
    while (at < end && is_space_at(at) == space)
        at += mgl_utf8_size(*at);
    return at;
}

static bool split_words(mgl_render *r, const mgl_string *string, uint64_t most, mgl_list *list)
{
    const char *end = string->bytes + string->length, *at = skip(string->bytes, end, true);
    if (!mgl_render_spend(r, string->length * 2))
        return false;
    while (at < end && most--) {
        const char *to = skip(at, end, false);
        if (!add_part(r, list, at, to))
            return false;
        at = skip(to, end, true);
    }
    return at == end || add_part(r, list, at, end);
}

/* Returns the start of the run of white space (or of other characters) that ends at `at`. */
static const char *skip_back(const char *start, const char *at, bool space)
{
    while (at > start) {
        const char *last = start + mgl_utf8_last(start, (size_t)(at - start));
        if (is_space_at(last) != space)
            break;
        at = last;
    }
    return at;
}

static bool split_words_right(mgl_render *r, const mgl_string *string, uint64_t most,
                              mgl_list *list)
{
    const char *start = string->bytes, *at = skip_back(start, start + string->length, true);
    if (!mgl_render_spend(r, string->length * 2))
        return false;
    while (at > start && most--) {
        const char *from = skip_back(start, at, false);
        if (!add_part(r, list, from, at))
            return false;
        at = skip_back(start, from, true);
    }
    return at == start || add_part(r, list, start, at);
}

static void reverse(mgl_list *list)
{
    for (size_t i = 0, k = list->count; i + 1 < k; i++) {
        mgl_value item = list->items[i];
        list->items[i] = list->items[--k];
        list->items[k] = item;
    }
}

mgl_list *mgl_string_split(mgl_render *r, const mgl_string *string, const mgl_string *by,
                           int64_t most, bool from_right)
{
    uint64_t splits = most < 0 ? UINT64_MAX : (uint64_t)most;
    mgl_list *list = mgl_list_new(r, 0);
    bool good;
    if (!list)
        return NULL;
    if (by && !by->length) {
        mgl_render_fail(r, "the separator is empty");
        return NULL;
    }
    if (from_right)
        good = by ? split_by_right(r, string, by, splits, list)
                  : split_words_right(r, string, splits, list);
    else
        good = by ? split_by(r, string, by, splits, list) : split_words(r, string, splits, list);
    if (good && from_right)
        reverse(list);
    return good ? list : NULL;
}

/* Returns the length of the line end at `at`, by the rules of str.splitlines, or 0. */
static size_t line_end(const char *at, const char *end)
{
    uint32_t c;
    size_t size = mgl_utf8_next(at, &c);
    if (c == '\r' && end - at > 1 && at[1] == '\n')
        return 2;
    bool ends = (c >= '\n' && c <= '\r') || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
                c == 0x2029;
    return ends ? size : 0;
}

mgl_list *mgl_string_lines(mgl_render *r, const mgl_string *string, bool keep_ends)
{
    mgl_list *list = mgl_list_new(r, 0);
    const char *at = string->bytes, *end = at + string->length, *line = at;
    if (!list || !mgl_render_spend(r, string->length))
        return NULL;
    while (at < end) {
        size_t size = line_end(at, end);
        if (size && !add_part(r, list, line, keep_ends ? at + size : at))
            return NULL;
        at += size ? size : mgl_utf8_size(*at);
        line = size ? at : line;
    }
    return line == end || add_part(r, list, line, end) ? list : NULL;
}
