/* Searches added tokens in a text with a sorted table. See added.h. */
#include "importer/tokenizer/added.h"

#include "base/memory.h"
#include "base/utf8.h"
#include "importer/tokenizer/unicode_tables.h"

#include <stdlib.h>
#include <string.h>

void mgl_added_token_clear(mgl_added_token *token)
{
    mgl_free(token->content);
    mgl_free(token->searched);
    mgl_free(token->decoded);
    *token = (mgl_added_token){0};
}

void mgl_added_clear(mgl_added *added)
{
    for (size_t i = 0; i < added->count; i++)
        mgl_added_token_clear(&added->tokens[i]);
    mgl_free(added->tokens);
    mgl_free(added->raw.sorted);
    mgl_free(added->normalized.sorted);
    mgl_pattern_free(added->word);
    *added = (mgl_added){0};
}

static int by_text(const void *a, const void *b)
{
    const mgl_added_token *left = *(const mgl_added_token *const *)a;
    const mgl_added_token *right = *(const mgl_added_token *const *)b;
    size_t least = left->searched_length < right->searched_length ? left->searched_length
                                                                  : right->searched_length;
    int order = memcmp(left->searched, right->searched, least);
    if (order)
        return order;
    if (left->searched_length != right->searched_length)
        return left->searched_length < right->searched_length ? -1 : 1;
    return (left > right) - (left < right); /* by order in the file */
}

static bool same_text(const mgl_added_token *a, const mgl_added_token *b)
{
    return a->searched_length == b->searched_length &&
           !memcmp(a->searched, b->searched, a->searched_length);
}

static mgl_status make_set(const mgl_added *added, bool normalized, mgl_added_set *set,
                           const char *file, mgl_error *err)
{
    size_t kept = 0;
    set->sorted = mgl_alloc_zero(added->count, sizeof *set->sorted);
    if (!set->sorted)
        return mgl_fail_memory(err, added->count * sizeof *set->sorted);
    for (size_t i = 0; i < added->count; i++) {
        const mgl_added_token *token = &added->tokens[i];
        if (!token->searched_length)
            return mgl_fail(err, MGL_BAD_INPUT, file,
                            "the normalizer leaves nothing of the added token \"%.200s\"",
                            token->content);
        if (token->normalized == normalized)
            set->sorted[set->count++] = token;
    }
    qsort(set->sorted, set->count, sizeof *set->sorted, by_text);
    for (size_t i = 0; i < set->count; i++) {
        if (kept && same_text(set->sorted[kept - 1], set->sorted[i]))
            continue;
        set->sorted[kept++] = set->sorted[i];
        set->first[(unsigned char)set->sorted[i]->searched[0] + 1]++;
    }
    set->count = kept;
    for (int byte = 0; byte < 256; byte++)
        set->first[byte + 1] += set->first[byte];
    return MGL_OK;
}

mgl_status mgl_added_finish(mgl_added *added, const char *file, mgl_error *err)
{
    mgl_status status = make_set(added, false, &added->raw, file, err);
    if (!status)
        status = make_set(added, true, &added->normalized, file, err);
    bool words = false;
    for (size_t i = 0; i < added->count; i++)
        words |= added->tokens[i].single_word;
    if (status || !words)
        return status;
    return mgl_pattern_pcre(mgl_unicode_word, file, &added->word, err);
}

/* ---- searching ------------------------------------------------------------------------------ */

/* Returns the longest token of a set that the text starts with, or NULL. */
static const mgl_added_token *longest_at(const mgl_added_set *set, const char *text, size_t length)
{
    unsigned char first = (unsigned char)text[0];
    size_t lo = set->first[first], hi = set->first[first + 1], depth = 1;
    const mgl_added_token *best = NULL;
    /* Binary search, one byte at a time. sorted[lo .. hi) start with the first `depth` bytes of
     * text; the shortest comes first. */
    while (lo < hi) {
        if (set->sorted[lo]->searched_length == depth)
            best = set->sorted[lo++];
        if (depth == length)
            break;
        unsigned char next = (unsigned char)text[depth];
        size_t from = lo, to = hi;
        while (from < to) { /* the first whose byte is at least `next` */
            size_t middle = from + (to - from) / 2;
            if ((unsigned char)set->sorted[middle]->searched[depth] < next)
                from = middle + 1;
            else
                to = middle;
        }
        lo = from;
        to = hi;
        while (from < to) { /* the first whose byte is greater */
            size_t middle = from + (to - from) / 2;
            if ((unsigned char)set->sorted[middle]->searched[depth] <= next)
                from = middle + 1;
            else
                to = middle;
        }
        hi = from;
        depth++;
    }
    return best;
}

/* Sets *alone if neither neighbor of a match is a word character. */
static mgl_status stands_alone(const mgl_added *added, mgl_matcher *matcher, const char *text,
                               size_t length, size_t at, size_t to, bool *alone, mgl_error *err)
{
    bool word = false;
    mgl_status status = MGL_OK;
    *alone = true;
    if (at > 0) {
        size_t last = mgl_utf8_last(text, at);
        status = mgl_pattern_at_start(added->word, matcher, text + last, at - last, &word, err);
        *alone = !word;
    }
    if (!status && to < length) {
        size_t size = mgl_utf8_size(text[to]);
        status = mgl_pattern_at_start(added->word, matcher, text + to, size, &word, err);
        *alone &= !word;
    }
    return status;
}

static size_t spaces_before(const char *text, size_t floor, size_t at)
{
    while (at > floor) {
        uint32_t character;
        size_t last = mgl_utf8_last(text, at);
        mgl_utf8_next(text + last, &character);
        if (!mgl_unicode_is_space(character))
            break;
        at = last;
    }
    return at;
}

static size_t spaces_behind(const char *text, size_t length, size_t at)
{
    while (at < length) {
        uint32_t character;
        size_t size = mgl_utf8_next(text + at, &character);
        if (!mgl_unicode_is_space(character))
            break;
        at += size;
    }
    return at;
}

mgl_status mgl_added_search(const mgl_added *added, const mgl_added_set *set, mgl_matcher *matcher,
                            const char *text, size_t length, mgl_added_fn *take, void *user,
                            mgl_error *err)
{
    size_t done = 0, next;
    mgl_status status = MGL_OK;
    for (size_t at = 0; set->count && at < length && !status; at = next) {
        unsigned char first = (unsigned char)text[at];
        next = at + 1;
        if (set->first[first] == set->first[first + 1])
            continue;
        const mgl_added_token *token = longest_at(set, text + at, length - at);
        if (!token)
            continue;
        size_t start = at, stop = next = at + token->searched_length;
        bool alone = true;
        if (token->single_word)
            status = stands_alone(added, matcher, text, length, start, stop, &alone, err);
        if (status || !alone)
            continue;
        if (token->lstrip)
            start = start > done ? spaces_before(text, done, start) : done;
        if (token->rstrip)
            stop = spaces_behind(text, length, stop);
        if (done < start)
            status = take(user, NULL, done, start, err);
        if (!status && start < stop)
            status = take(user, token, start, stop, err);
        done = stop;
    }
    if (!status && done != length)
        status = take(user, NULL, done, length, err);
    return status;
}
