/*
 * Finds, replaces and compares the regions of a unit's text. See unit.h for the marks.
 *
 * A mark is a whole line, so a string or a comment inside a function cannot be a mark. A line that
 * starts like a mark and is not one is an error, because its author meant a mark.
 */
#include "autotune/kernels/gates/unit.h"

#include <stdio.h>
#include <string.h>

static const char opening[] = "/* region: ", closing[] = " */";

typedef struct cursor {
    const char *text, *at, *end;
    int line; /* line number of `at`, from 1 */
} cursor;

/* The next line without its end. False: end of the text. */
static bool take_line(cursor *c, const char **line, size_t *length)
{
    if (c->at >= c->end)
        return false;
    const char *stop = memchr(c->at, '\n', (size_t)(c->end - c->at));
    *line = c->at;
    *length = (size_t)((stop ? stop : c->end) - c->at);
    c->at = stop ? stop + 1 : c->end;
    c->line++;
    return true;
}

static bool begins(const char *line, size_t length, const char *with)
{
    size_t n = strlen(with);
    return length >= n && !memcmp(line, with, n);
}

/* The word of a mark. False: the line only starts like a mark. */
static bool read_mark(const char *line, size_t length, char name[16])
{
    const size_t first = sizeof opening - 1, last = sizeof closing - 1;
    if (length <= first + last || memcmp(line + length - last, closing, last) != 0 ||
        length - first - last >= 16)
        return false;
    memcpy(name, line + first, length - first - last);
    name[length - first - last] = 0;
    return true;
}

typedef struct finding {
    mgl_kernel_regions *out;
    int open; /* the open region; MGL_KERNEL_REGION_COUNT: none */
    bool seen[MGL_KERNEL_REGION_COUNT], any, ended;
} finding;

static mgl_status fail_mark(int line, const char *name, const char *why, mgl_error *err)
{
    char where[32];
    snprintf(where, sizeof where, "line %d", line);
    return mgl_fail(err, MGL_BAD_INPUT, where, "`region: %s` %s", name, why);
}

static mgl_status take_mark(finding *f, const cursor *c, size_t line_at, const char *name,
                            mgl_error *err)
{
    mgl_kernel_region region = MGL_KERNEL_REGION_COUNT;
    bool end = !strcmp(name, "end");
    if (!end && !mgl_kernel_region_parse(name, &region))
        return fail_mark(c->line, name, "is no region: launch, macros, device, end", err);
    if (f->ended)
        return fail_mark(c->line, name, "is after the last mark", err);
    if (end && f->open == MGL_KERNEL_REGION_COUNT)
        return fail_mark(c->line, name, "ends nothing", err);
    if (!end && f->seen[region])
        return fail_mark(c->line, name, "is given twice", err);
    if (f->open != MGL_KERNEL_REGION_COUNT)
        f->out->of[f->open].end = line_at;
    f->ended = end;
    f->open = (int)region;
    if (!end) {
        f->seen[region] = f->any = true;
        f->out->of[region].first = f->out->of[region].end = (size_t)(c->at - c->text);
    }
    return MGL_OK;
}

mgl_status mgl_kernel_regions_find(const char *text, size_t length, mgl_kernel_regions *out,
                                   mgl_error *err)
{
    cursor c = {text, text, text + length, 0};
    finding f = {.out = out, .open = MGL_KERNEL_REGION_COUNT};
    const char *line;
    size_t n;
    *out = (mgl_kernel_regions){0};
    while (take_line(&c, &line, &n)) {
        char name[16];
        if (!begins(line, n, opening))
            continue;
        if (!read_mark(line, n, name))
            return fail_mark(c.line, "...", "is no mark: it has to be the whole line", err);
        mgl_status status = take_mark(&f, &c, (size_t)(line - text), name, err);
        if (status)
            return status;
    }
    if (!f.any)
        return mgl_fail(err, MGL_BAD_INPUT, "line 1", "the text has no `region: ...` marks");
    return f.ended ? MGL_OK : fail_mark(c.line, "end", "is missing", err);
}

mgl_status mgl_kernel_region_replace(const char *text, size_t length, mgl_kernel_region region,
                                     const char *body, size_t body_length, mgl_text *out,
                                     mgl_error *err)
{
    mgl_kernel_regions regions;
    mgl_status status = mgl_kernel_regions_find(text, length, &regions, err);
    if (status)
        return status;
    if ((unsigned)region >= MGL_KERNEL_REGION_COUNT || regions.of[region].first == 0)
        return mgl_fail(err, MGL_BAD_INPUT, mgl_kernel_region_name(region),
                        "the text has no such region");
    mgl_text_append(out, text, regions.of[region].first);
    mgl_text_append(out, body, body_length);
    if (body_length > 0 && body[body_length - 1] != '\n')
        mgl_text_put(out, "\n");
    mgl_text_append(out, text + regions.of[region].end, length - regions.of[region].end);
    return out->failed ? mgl_fail_memory(err, length + body_length) : MGL_OK;
}

/* ---- comparing ------------------------------------------------------------------------------- */

static int line_of(const char *text, size_t at)
{
    int line = 1;
    for (size_t i = 0; i < at; i++)
        line += text[i] == '\n';
    return line;
}

static mgl_status fail_outside(const char *after, size_t at, mgl_kernel_region region,
                               mgl_error *err)
{
    char where[32];
    snprintf(where, sizeof where, "line %d", line_of(after, at));
    return mgl_fail(err, MGL_BAD_INPUT, where, "text outside of region `%s` was changed",
                    region == MGL_KERNEL_REGION_ANY ? "launch, macros or device"
                                                    : mgl_kernel_region_name(region));
}

/* The offset in `after` of the first different byte of the two ranges; SIZE_MAX: equal. */
static size_t differ(const char *before, size_t a, size_t a_end, const char *after, size_t b,
                     size_t b_end)
{
    for (; a < a_end && b < b_end; a++, b++)
        if (before[a] != after[b])
            return b;
    return a < a_end || b < b_end ? b : SIZE_MAX;
}

/* Compares the parts between the regions that may differ. */
static mgl_status compare_frames(const char *before, size_t before_length, const char *after,
                                 size_t after_length, const mgl_kernel_regions *was,
                                 const mgl_kernel_regions *is, mgl_kernel_region region,
                                 mgl_error *err)
{
    size_t a = 0, b = 0, at;
    for (int i = 0; i < MGL_KERNEL_REGION_COUNT; i++) {
        if (region != MGL_KERNEL_REGION_ANY && (int)region != i)
            continue;
        if (was->of[i].first == 0 && is->of[i].first == 0)
            continue;
        at = differ(before, a, was->of[i].first, after, b, is->of[i].first);
        if (at != SIZE_MAX)
            return fail_outside(after, at, region, err);
        a = was->of[i].end;
        b = is->of[i].end;
    }
    at = differ(before, a, before_length, after, b, after_length);
    return at == SIZE_MAX ? MGL_OK : fail_outside(after, at, region, err);
}

/* Whether the regions are in order: each starts after the end of the one before it. */
static bool in_order(const mgl_kernel_regions *r)
{
    size_t last = 0;
    for (int i = 0; i < MGL_KERNEL_REGION_COUNT; i++) {
        if (r->of[i].first == 0)
            continue;
        if (r->of[i].first < last)
            return false;
        last = r->of[i].end;
    }
    return true;
}

mgl_status mgl_kernel_regions_compare(const char *before, size_t before_length, const char *after,
                                      size_t after_length, mgl_kernel_region region, mgl_error *err)
{
    mgl_kernel_regions was, is;
    mgl_status status = mgl_kernel_regions_find(before, before_length, &was, err);
    if (!status)
        status = mgl_kernel_regions_find(after, after_length, &is, err);
    if (status)
        return status;
    if (!in_order(&was) || !in_order(&is))
        return mgl_fail(err, MGL_BAD_INPUT, "line 1",
                        "the regions are not in the order launch, macros, device");
    return compare_frames(before, before_length, after, after_length, &was, &is, region, err);
}
