/*
 * Implements extract.h in one pass over the lines. A small stack contains the open fences. A fence
 * that closes becomes a candidate: the first fence with the requested tag wins, else the longest
 * fence. The time is linear in the length of the text.
 */
#include "autotune/agents/extract.h"

#include <string.h>
#include <strings.h>

enum { DEPTH = 8 /* nesting depth of fences; deeper fences are plain text */ };

/* A line of text. */
typedef struct line {
    const char *from, *end; /* without the line end */
    const char *next;
} line;

/* A line of three or more backquotes or tildes. */
typedef struct fence {
    char mark;
    size_t count;
    const char *info; /* (info_bytes) the text after the marks, without surrounding blanks */
    size_t info_bytes;
    bool tagged;      /* the fence has the requested tag */
    const char *body; /* start of the next line */
} fence;

/* The best candidate so far among the tagged fences, or among all other fences. */
typedef struct fenced_text {
    const char *from; /* (bytes) NULL: none */
    size_t bytes;
    bool ambiguous;
} fenced_text;

typedef struct scan {
    const char *tag;
    fence open[DEPTH]; /* (depth) */
    int depth;
    fenced_text tagged, any;
} scan;

static line take_line(const char *at, const char *end)
{
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    line l = {at, stop ? stop : end, stop ? stop + 1 : end};
    if (l.end > l.from && l.end[-1] == '\r')
        l.end--;
    return l;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* ---- reasoning text -------------------------------------------------------------------------- */

static const char *const thoughts[] = {"think>", "thinking>", "thought>", "reasoning>"};

/* The position after a tag "<think>" or "</think>" at `at`; NULL: no tag there. */
static const char *behind_thought(const char *at, const char *end, const char *bracket)
{
    size_t skip = strlen(bracket);
    if ((size_t)(end - at) < skip || memcmp(at, bracket, skip) != 0)
        return NULL;
    at += skip;
    for (size_t i = 0; i < sizeof thoughts / sizeof *thoughts; i++) {
        size_t length = strlen(thoughts[i]);
        if ((size_t)(end - at) >= length && !strncasecmp(at, thoughts[i], length))
            return at + length;
    }
    return NULL;
}

/* The position after the next tag of that kind; NULL: none. */
static const char *find_thought(const char *at, const char *end, const char *bracket)
{
    while (at < end && (at = memchr(at, '<', (size_t)(end - at))) != NULL) {
        const char *behind = behind_thought(at, end, bracket);
        if (behind)
            return behind;
        at++;
    }
    return NULL;
}

/* The start of the answer. Some endpoints omit the opening tag of the first reasoning text. */
static const char *find_answer(const char *text, const char *end)
{
    const char *close = find_thought(text, end, "</");
    const char *open = find_thought(text, end, "<");
    return close && (!open || open > close) ? close : text;
}

/* If a line opens a reasoning text: the position after it, or the end if it is not closed. */
static const char *skip_thought(const line *l, const char *end)
{
    const char *at = l->from;
    while (at < l->end && is_blank(*at))
        at++;
    const char *inside = behind_thought(at, end, "<");
    if (!inside)
        return NULL;
    const char *behind = find_thought(inside, end, "</");
    return behind ? behind : end;
}

/* The position after blanks and reasoning texts. */
static const char *skip_to_text(const char *at, const char *end)
{
    for (;;) {
        while (at < end && (is_blank(*at) || *at == '\r' || *at == '\n'))
            at++;
        const line rest = {at, end, end};
        const char *behind = skip_thought(&rest, end);
        if (!behind)
            return at;
        at = behind;
    }
}

/* ---- fences ---------------------------------------------------------------------------------- */

/* Whether the text after the marks starts with the tag: "json", "JSON {.wide}", "cuda:a.cuh". */
static bool has_tag(const fence *f, const char *tag)
{
    size_t length = strlen(tag);
    const char *info = f->info;
    if (f->info_bytes < length || strncasecmp(info, tag, length) != 0)
        return false;
    return f->info_bytes == length || strchr(" \t:,;{(", info[length]);
}

static bool read_fence(const line *l, const char *tag, fence *out)
{
    const char *at = l->from, *end = l->end;
    while (at < end && is_blank(*at))
        at++;
    const char *marks = at;
    char mark = at < end ? *at : 0;
    if (mark != '`' && mark != '~')
        return false;
    while (at < end && *at == mark)
        at++;
    *out = (fence){.mark = mark, .count = (size_t)(at - marks), .body = l->next};
    while (at < end && is_blank(*at))
        at++;
    while (end > at && is_blank(end[-1]))
        end--;
    out->info = at;
    out->info_bytes = (size_t)(end - at);
    out->tagged = has_tag(out, tag);
    /* ```code``` within a line is not a fence */
    return out->count >= 3 && !(mark == '`' && memchr(at, '`', out->info_bytes));
}

static bool is_empty(const char *from, size_t bytes)
{
    while (bytes && strchr(" \t\r\n", *from) && *from)
        from++, bytes--;
    return bytes == 0;
}

/* Keeps the first candidate with the requested tag, or the longest of the others. */
static void take(fenced_text *r, const char *from, size_t bytes, bool longest)
{
    bool replaces = !r->from || (longest && bytes > r->bytes);
    bool same = r->from && bytes == r->bytes && !memcmp(from, r->from, bytes);
    if (replaces)
        *r = (fenced_text){from, bytes, false};
    else if (!same && (!longest || bytes == r->bytes))
        r->ambiguous = true;
}

static void close_fence(scan *s, const char *end)
{
    const fence *f = &s->open[--s->depth];
    size_t bytes = (size_t)(end - f->body);
    if (is_empty(f->body, bytes))
        return;
    if (f->tagged)
        take(&s->tagged, f->body, bytes, false);
    take(&s->any, f->body, bytes, true);
}

static void take_fence(scan *s, const fence *f, const line *l)
{
    const fence *top = s->depth ? &s->open[s->depth - 1] : NULL;
    if (top && f->mark == top->mark && f->count >= top->count && !f->info_bytes)
        close_fence(s, l->from);
    else if (top && top->tagged && f->tagged && f->mark == top->mark && f->count == top->count)
        s->open[s->depth - 1] = *f; /* the tagged fence before this one was never closed: drop it */
    else if (!top || (!top->tagged && f->info_bytes && s->depth < DEPTH))
        s->open[s->depth++] = *f;
}

static void scan_fences(scan *s, const char *at, const char *end)
{
    fence f;
    while (at < end) {
        line l = take_line(at, end);
        const char *behind = s->depth ? NULL : skip_thought(&l, end);
        if (!behind && read_fence(&l, s->tag, &f))
            take_fence(s, &f, &l);
        at = behind ? behind : l.next;
    }
}

mgl_outcome mgl_extract(const char *text, size_t length, const char *tag, char bare,
                        const char **from, size_t *bytes)
{
    scan s = {.tag = tag};
    const char *end = text + length, *at = find_answer(text, end);
    scan_fences(&s, at, end);
    const fenced_text *best = s.tagged.from ? &s.tagged : &s.any;
    if (best->ambiguous)
        return MGL_OUTCOME_EXTRACT_AMBIGUOUS;
    *from = best->from;
    *bytes = best->bytes;
    if (best->from)
        return MGL_OUTCOME_OK;
    at = skip_to_text(at, end);
    if (!bare || at == end || *at != bare)
        return MGL_OUTCOME_EXTRACT_NONE;
    *from = at;
    *bytes = (size_t)(end - at);
    return MGL_OUTCOME_OK;
}
