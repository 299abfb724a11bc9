/*
 * Finds stop strings in a stream (Knuth-Morris-Pratt). See stops.h.
 */
#include "importer/tokenizer/stops.h"

#include "base/memory.h"
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

/* Returns the length of the matched prefix after one more byte. */
static size_t step(const mgl_stop_text *text, size_t matched, char byte)
{
    while (matched && text->bytes[matched] != byte)
        matched = text->shorter[matched];
    return matched + (text->bytes[matched] == byte);
}

static mgl_status open_text(mgl_stop_text *text, const char *bytes, mgl_error *err)
{
    text->length = strlen(bytes);
    text->bytes = mgl_strndup(bytes, text->length);
    text->shorter = mgl_alloc_zero(text->length + 1, sizeof *text->shorter);
    if (!text->bytes || !text->shorter)
        return mgl_fail_memory(err, (text->length + 1) * sizeof *text->shorter);
    for (size_t i = 1; i < text->length; i++)
        text->shorter[i + 1] = step(text, text->shorter[i], text->bytes[i]);
    return MGL_OK;
}

static mgl_status check_text(const char *bytes, size_t index, mgl_error *err)
{
    char where[32];
    snprintf(where, sizeof where, "stops[%zu]", index);
    if (!bytes)
        return mgl_fail(err, MGL_USAGE, where, "is NULL");
    if (!*bytes)
        return mgl_fail(err, MGL_BAD_INPUT, where, "is empty: a reply would end before it began");
    if (mgl_utf8_valid(bytes, strlen(bytes)) != strlen(bytes))
        return mgl_fail(err, MGL_BAD_INPUT, where, "is not UTF-8, and would never be found");
    return MGL_OK;
}

mgl_status mgl_stops_open(mgl_stops *stops, const char *const *texts, size_t count, mgl_error *err)
{
    mgl_status status = MGL_OK;
    *stops = (mgl_stops){0};
    if (count == 0)
        return MGL_OK;
    stops->texts = mgl_alloc_zero(count, sizeof *stops->texts);
    if (!stops->texts)
        return mgl_fail_memory(err, count * sizeof *stops->texts);
    for (size_t i = 0; i < count && !status; i++) {
        status = check_text(texts[i], i, err);
        if (!status)
            status = open_text(&stops->texts[stops->count++], texts[i], err);
    }
    if (status)
        mgl_stops_clear(stops);
    return status;
}

void mgl_stops_clear(mgl_stops *stops)
{
    for (size_t i = 0; i < stops->count; i++) {
        mgl_free(stops->texts[i].bytes);
        mgl_free(stops->texts[i].shorter);
    }
    mgl_free(stops->texts);
    mgl_text_clear(&stops->text);
    *stops = (mgl_stops){0};
}

/* Advances every stop string by a byte. Returns the length of the longest one that is now
 * complete, or 0. */
static size_t look(mgl_stops *stops, char byte)
{
    size_t whole = 0;
    for (size_t i = 0; i < stops->count; i++) {
        mgl_stop_text *text = &stops->texts[i];
        text->matched = step(text, text->matched, byte);
        if (text->matched < text->length)
            continue;
        whole = text->length > whole ? text->length : whole;
    }
    return whole;
}

/* Returns how many bytes at the end of the stream begin a stop string. */
static size_t begun(const mgl_stops *stops)
{
    size_t most = 0;
    for (size_t i = 0; i < stops->count; i++)
        most = stops->texts[i].matched > most ? stops->texts[i].matched : most;
    return most;
}

/* Removes the output of the last call from the text. */
static void drop_out(mgl_stops *stops)
{
    mgl_text *text = &stops->text;
    if (stops->out)
        memmove(text->bytes, text->bytes + stops->out, text->length - stops->out);
    text->length -= stops->out;
    stops->out = 0;
}

mgl_status mgl_stops_next(mgl_stops *stops, const char *bytes, size_t length, bool last,
                          mgl_error *err)
{
    drop_out(stops);
    if (stops->found)
        return MGL_OK;
    size_t held = stops->text.length;
    mgl_text_append(&stops->text, bytes, length);
    if (stops->text.failed)
        return mgl_fail_memory(err, held + length);
    for (size_t i = 0; i < length && !stops->found; i++) {
        size_t whole = look(stops, bytes[i]);
        stops->found = whole > 0;
        if (stops->found)
            stops->out = stops->text.length = held + i + 1 - whole;
    }
    if (!stops->found)
        stops->out = stops->text.length - (last ? 0 : begun(stops));
    return MGL_OK;
}
