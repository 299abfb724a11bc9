/* Implements the normalizer steps. See normalize.h. */
#include "importer/tokenizer/normalize.h"

#include "base/memory.h"
#include "base/utf8.h"
#include "importer/tokenizer/byte_level.h"
#include "importer/tokenizer/unicode_tables.h"

#include <string.h>
#include <utf8proc.h>

static void clear_step(mgl_normalize_step *step)
{
    mgl_free(step->content);
    mgl_pattern_free(step->pattern);
}

mgl_status mgl_normalizer_add(mgl_normalizer *normalizer, mgl_normalize_step step, mgl_error *err)
{
    if (!mgl_grow((void **)&normalizer->steps, &normalizer->capacity, normalizer->count,
                  sizeof step)) {
        clear_step(&step);
        return mgl_fail_memory(err, sizeof step);
    }
    normalizer->steps[normalizer->count++] = step;
    return MGL_OK;
}

void mgl_normalizer_clear(mgl_normalizer *normalizer)
{
    for (size_t i = 0; i < normalizer->count; i++)
        clear_step(&normalizer->steps[i]);
    mgl_free(normalizer->steps);
    *normalizer = (mgl_normalizer){0};
}

void mgl_normalizer_workspace_clear(mgl_normalizer_workspace *workspace)
{
    mgl_free(workspace->characters);
    mgl_text_clear(&workspace->text);
    mgl_text_clear(&workspace->spare);
    *workspace = (mgl_normalizer_workspace){0};
}

/* ---- normal forms --------------------------------------------------------------------------- */

/* Returns the number of leading bytes that the form does not change: ASCII, and up to U+02FF for
 * NFC (all of these are composed, and none combines with the character before it). */
static size_t unchanged_prefix(const mgl_normalize_step *step, const char *text, size_t length)
{
    unsigned char limit = step->compose && !step->compatible ? 0xCC : 0x80;
    size_t at = 0;
    while (at < length && (unsigned char)text[at] < limit)
        at++;
    return at;
}

/* Appends the decomposition of one character at characters[*count]. */
static mgl_status decompose_one(mgl_normalizer_workspace *w, int32_t character, int options,
                                size_t *count, mgl_error *err)
{
    bool as_it_is = mgl_unicode_is_young_composite((uint32_t)character);
    for (;;) {
        size_t room = w->character_room - *count;
        int32_t *to = room ? w->characters + *count : NULL;
        int class = UTF8PROC_BOUNDCLASS_START;
        utf8proc_ssize_t got = 1;
        if (!as_it_is)
            got = utf8proc_decompose_char(character, to, (utf8proc_ssize_t)room,
                                          (utf8proc_option_t)options, &class);
        else if (to)
            *to = character;
        if (got < 0) /* cannot happen: valid UTF-8 has only such characters */
            return mgl_fail(err, MGL_BAD_INPUT, NULL, "U+%04X has no normal form",
                            (unsigned)character);
        if ((size_t)got <= room) {
            *count += (size_t)got;
            return MGL_OK;
        }
        size_t wanted = (w->character_room + (size_t)got) * 2 + 64, bytes;
        int32_t *grown =
            mgl_mul(wanted, sizeof *grown, &bytes) ? mgl_realloc(w->characters, bytes) : NULL;
        if (!grown)
            return mgl_fail_memory(err, wanted * sizeof *grown);
        w->characters = grown;
        w->character_room = wanted;
    }
}

static int combining_class(int32_t character)
{
    int class = utf8proc_get_property(character)->combining_class;
    return class && mgl_unicode_is_young_mark((uint32_t)character) ? 0 : class;
}

/* Sorts a run of combining marks by class with a stable sort: insertion sort for short runs,
 * counting sort for long ones. */
static bool order_marks(int32_t *marks, size_t count)
{
    if (count <= 32) {
        for (size_t i = 1; i < count; i++) {
            int32_t mark = marks[i];
            size_t at = i;
            for (; at > 0 && combining_class(marks[at - 1]) > combining_class(mark); at--)
                marks[at] = marks[at - 1];
            marks[at] = mark;
        }
        return true;
    }
    size_t start[257] = {0};
    int32_t *sorted = mgl_alloc(count * sizeof *sorted);
    if (!sorted)
        return false;
    for (size_t i = 0; i < count; i++)
        start[combining_class(marks[i]) + 1]++;
    for (int class = 1; class <= 256; class ++)
        start[class] += start[class - 1];
    for (size_t i = 0; i < count; i++)
        sorted[start[combining_class(marks[i])]++] = marks[i];
    memcpy(marks, sorted, count * sizeof *sorted);
    mgl_free(sorted);
    return true;
}

static mgl_status order_all(int32_t *characters, size_t count, mgl_error *err)
{
    for (size_t i = 0; i < count;) {
        size_t end = i;
        while (end < count && combining_class(characters[end]))
            end++;
        if (end > i + 1 && !order_marks(characters + i, end - i))
            return mgl_fail_memory(err, (end - i) * sizeof *characters);
        i = end + 1;
    }
    return MGL_OK;
}

/* Composes in place; returns how many characters are left. Characters newer than the reference's
 * Unicode version are cut points: nothing is composed across them. */
static size_t compose(int32_t *characters, size_t count, int options)
{
    size_t left = 0;
    for (size_t at = 0, end; at < count; at = end) {
        bool alone = mgl_unicode_is_young_mark((uint32_t)characters[at]);
        for (end = at + 1; !alone && end < count; end++) {
            if (mgl_unicode_is_young_starter((uint32_t)characters[end - 1]) ||
                mgl_unicode_is_young_mark((uint32_t)characters[end]))
                break;
        }
        utf8proc_ssize_t got = utf8proc_normalize_utf32(
            characters + at, (utf8proc_ssize_t)(end - at), (utf8proc_option_t)options);
        size_t kept = got < 0 ? end - at : (size_t)got;
        memmove(characters + left, characters + at, kept * sizeof *characters);
        left += kept;
    }
    return left;
}

/* Appends the normal form of `text` to `out`. */
static mgl_status put_form(mgl_normalizer_workspace *w, const mgl_normalize_step *step,
                           const char *text, size_t length, mgl_text *out, mgl_error *err)
{
    int options = (step->compose ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) |
                  (step->compatible ? UTF8PROC_COMPAT : 0) | UTF8PROC_STABLE;
    size_t count = 0;
    mgl_status status = MGL_OK;
    for (size_t at = 0; at < length && !status;) {
        uint32_t character;
        at += mgl_utf8_next(text + at, &character);
        status = decompose_one(w, (int32_t)character, options, &count, err);
    }
    if (!status)
        status = order_all(w->characters, count, err);
    if (!status && step->compose)
        count = compose(w->characters, count, options);
    for (size_t i = 0; i < count && !status; i++) {
        char bytes[4];
        mgl_text_append(out, bytes, mgl_utf8_put((uint32_t)w->characters[i], bytes));
    }
    return status;
}

/* Applies the form to a whole text, and to its head alone to get the head's new length. */
static mgl_status run_form(mgl_normalizer_workspace *w, const mgl_normalize_step *step,
                           const char *text, size_t length, size_t *head, mgl_text *out,
                           mgl_error *err)
{
    size_t same = unchanged_prefix(step, text, length), old_head = *head;
    /* The last unchanged character may combine with what follows it. */
    if (same && same < length)
        same = mgl_utf8_last(text, same);
    mgl_text_append(out, text, same);
    mgl_status status = put_form(w, step, text + same, length - same, out, err);
    if (status || !old_head || old_head < same)
        return status;
    mgl_text alone = {0};
    status = put_form(w, step, text, old_head, &alone, err);
    bool kept = !alone.failed && !out->failed && alone.length <= out->length &&
                !memcmp(alone.bytes ? alone.bytes : "", out->bytes ? out->bytes : "", alone.length);
    *head = kept ? alone.length : out->length ? mgl_utf8_size(out->bytes[0]) : 0;
    if (alone.failed)
        out->failed = true;
    mgl_text_clear(&alone);
    return status;
}

/* ---- the other steps ------------------------------------------------------------------------ */

/* One run through the steps. */
typedef struct run {
    const mgl_normalizer *normalizer;
    mgl_normalizer_workspace *w;
    size_t step; /* index */
    mgl_error *err;
} run;

/* Counts `bytes` of output of the current step. */
static mgl_status count_made(const run *r, size_t bytes)
{
    return mgl_growth_take(r->w->growth, r->step, bytes, "normalizer", r->normalizer->file, r->err);
}

static mgl_status run_replace(const run *r, const mgl_normalize_step *step, const char *text,
                              size_t length, size_t *head, mgl_text *out)
{
    mgl_pattern_scan scan = {.text = text, .length = length};
    size_t old_head = *head, copied = 0, content = strlen(step->content);
    *head = 0;
    for (;;) {
        bool found;
        mgl_status status = mgl_pattern_next(step->pattern, r->w->matcher, &scan, &found, r->err);
        size_t until = found ? scan.start : length;
        if (!status)
            status = count_made(r, until - copied + (found ? content : 0));
        if (status)
            return status;
        mgl_text_append(out, text + copied, until - copied);
        if (copied < old_head)
            *head = out->length - (until > old_head ? until - old_head : 0);
        if (!found)
            return MGL_OK;
        mgl_text_append(out, step->content, content);
        /* The replacement belongs to the character before the end of the match. */
        if (old_head && (scan.end ? scan.end - 1 < old_head : true))
            *head = out->length;
        copied = scan.end;
    }
}

static void run_lowercase(const char *text, size_t length, size_t *head, mgl_text *out)
{
    size_t old_head = *head;
    for (size_t at = 0; at < length;) {
        uint32_t character;
        char bytes[8];
        size_t size = mgl_utf8_next(text + at, &character), put;
        if (character == 0x130) { /* the only one whose lower case is two characters */
            put = mgl_utf8_put('i', bytes);
            put += mgl_utf8_put(0x307, bytes + put);
        } else {
            put = mgl_utf8_put(mgl_unicode_lower(character), bytes);
        }
        mgl_text_append(out, bytes, put);
        if (at < old_head)
            *head = out->length;
        at += size;
    }
}

static void run_strip(const mgl_normalize_step *step, const char *text, size_t length, size_t *head,
                      mgl_text *out)
{
    size_t start = 0, end = length;
    uint32_t character;
    while (step->left && start < end) {
        size_t size = mgl_utf8_next(text + start, &character);
        if (!mgl_unicode_is_space(character))
            break;
        start += size;
    }
    while (step->right && end > start) {
        size_t last = mgl_utf8_last(text, end);
        mgl_utf8_next(text + last, &character);
        if (!mgl_unicode_is_space(character))
            break;
        end = last;
    }
    mgl_text_append(out, text + start, end - start);
    *head = *head > start ? *head - start : 0;
    if (*head > end - start)
        *head = end - start;
}

static void run_byte_level(const char *text, size_t length, size_t *head, mgl_text *out)
{
    size_t old_head = *head;
    mgl_byte_level_map(text, old_head, out);
    *head = out->length;
    mgl_byte_level_map(text + old_head, length - old_head, out);
}

/* Runs one step into `out`. Replace counts its output as it goes; the other steps have bounded
 * output. */
static mgl_status run_step(const run *r, const char *text, size_t length, size_t *head,
                           mgl_text *out)
{
    const mgl_normalize_step *step = &r->normalizer->steps[r->step];
    mgl_status status = MGL_OK;
    switch (step->kind) {
    case MGL_NORMALIZE_REPLACE:
        return run_replace(r, step, text, length, head, out);
    case MGL_NORMALIZE_FORM:
        status = run_form(r->w, step, text, length, head, out, r->err);
        break;
    case MGL_NORMALIZE_PREPEND:
        mgl_text_put(out, step->content);
        if (*head)
            *head += out->length;
        mgl_text_append(out, text, length);
        break;
    case MGL_NORMALIZE_LOWERCASE:
        run_lowercase(text, length, head, out);
        break;
    case MGL_NORMALIZE_STRIP:
        run_strip(step, text, length, head, out);
        break;
    case MGL_NORMALIZE_BYTE_LEVEL:
        run_byte_level(text, length, head, out);
        break;
    }
    return status ? status : count_made(r, out->length);
}

mgl_status mgl_normalizer_run(const mgl_normalizer *normalizer, mgl_normalizer_workspace *w,
                              const char *text, size_t length, const char **out, size_t *out_length,
                              size_t *head, mgl_error *err)
{
    run r = {normalizer, w, 0, err};
    for (; r.step < normalizer->count && length; r.step++) {
        const mgl_normalize_step *step = &normalizer->steps[r.step];
        if (step->kind == MGL_NORMALIZE_FORM && unchanged_prefix(step, text, length) == length)
            continue;
        w->spare.length = 0;
        mgl_status status = run_step(&r, text, length, head, &w->spare);
        if (!status && w->spare.failed) {
            mgl_text_clear(&w->spare);
            status = mgl_fail_memory(err, length);
        }
        if (status)
            return status;
        mgl_text swap = w->text;
        w->text = w->spare;
        w->spare = swap;
        text = w->text.bytes ? w->text.bytes : "";
        length = w->text.length;
    }
    *out = text;
    *out_length = length;
    return MGL_OK;
}
