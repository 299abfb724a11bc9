/* Implements the pre-tokenizer steps. See split.h. */
#include "importer/tokenizer/split.h"

#include "base/memory.h"
#include "base/utf8.h"
#include "importer/tokenizer/byte_level.h"

#include <string.h>

mgl_status mgl_splitter_add(mgl_splitter *splitter, mgl_split_step step, mgl_error *err)
{
    if (!mgl_grow((void **)&splitter->steps, &splitter->capacity, splitter->count, sizeof step)) {
        mgl_pattern_free(step.pattern);
        return mgl_fail_memory(err, sizeof step);
    }
    splitter->steps[splitter->count++] = step;
    return MGL_OK;
}

void mgl_splitter_clear(mgl_splitter *splitter)
{
    for (size_t i = 0; i < splitter->count; i++)
        mgl_pattern_free(splitter->steps[i].pattern);
    mgl_free(splitter->steps);
    *splitter = (mgl_splitter){0};
}

bool mgl_splitter_workspace_open(mgl_splitter_workspace *workspace, size_t count)
{
    workspace->count = count;
    workspace->texts = mgl_alloc_zero(count ? count : 1, sizeof *workspace->texts);
    return workspace->texts;
}

void mgl_splitter_workspace_clear(mgl_splitter_workspace *workspace)
{
    for (size_t i = 0; i < workspace->count && workspace->texts; i++) {
        mgl_text_clear(&workspace->texts[i].text);
        mgl_text_clear(&workspace->texts[i].mapped);
    }
    mgl_free(workspace->texts);
    *workspace = (mgl_splitter_workspace){0};
}

/* One run through the steps. */
typedef struct run {
    const mgl_splitter *splitter;
    mgl_splitter_workspace *w;
    mgl_piece_fn *take;
    void *user;
    mgl_error *err;
} run;

static mgl_status run_step(run *r, size_t index, mgl_piece piece);

/* ---- splitting at a pattern ----------------------------------------------------------------- */

/* A walk over the stretches of a piece: the matches and the text between them. One stretch may
 * be held back, because the next can still be joined to it. */
typedef struct cut {
    run *r;
    size_t next; /* index of the step that gets the parts */
    mgl_piece piece;
    mgl_split_behavior behavior;
    bool map;          /* parts are mapped to GPT-2's byte alphabet */
    mgl_text *mapped;  /* buffer for the mapping */
    bool held, before; /* a stretch is held; the last stretch was a match */
    size_t held_at, held_to;
} cut;

static mgl_status hand_on(cut *c, size_t at, size_t to)
{
    mgl_piece part = {c->piece.text + at, to - at, 0};
    if (at == to)
        return MGL_OK;
    if (c->piece.head > at)
        part.head = c->piece.head < to ? c->piece.head - at : part.length;
    if (c->map) {
        c->mapped->length = 0;
        mgl_byte_level_map(part.text, part.head, c->mapped);
        size_t head = c->mapped->length;
        mgl_byte_level_map(part.text + part.head, part.length - part.head, c->mapped);
        if (c->mapped->failed) {
            mgl_text_clear(c->mapped);
            return mgl_fail_memory(c->r->err, 2 * part.length);
        }
        part = (mgl_piece){c->mapped->bytes, c->mapped->length, head};
    }
    return run_step(c->r, c->next, part);
}

static mgl_status release(cut *c)
{
    bool held = c->held;
    c->held = false;
    return held ? hand_on(c, c->held_at, c->held_to) : MGL_OK;
}

/* Holds [at, to) back; with `join`, appends it to the held stretch. */
static mgl_status hold(cut *c, bool join, size_t at, size_t to)
{
    if (!(join && c->held)) {
        mgl_status status = release(c);
        if (status)
            return status;
        c->held_at = at;
    }
    c->held = true;
    c->held_to = to;
    return MGL_OK;
}

/* Processes the next stretch. Stretches come in order and without gaps. */
static mgl_status stretch(cut *c, size_t at, size_t to, bool match)
{
    bool before = c->before;
    c->before = match;
    switch (c->behavior) {
    case MGL_SPLIT_ISOLATED:
        return hand_on(c, at, to);
    case MGL_SPLIT_REMOVED:
        return match ? MGL_OK : hand_on(c, at, to);
    case MGL_SPLIT_CONTIGUOUS:
        return hold(c, match == before, at, to);
    case MGL_SPLIT_MERGED_WITH_PREVIOUS:
        return hold(c, match && !before, at, to);
    case MGL_SPLIT_MERGED_WITH_NEXT:
        return hold(c, before && !match, at, to);
    }
    return MGL_OK;
}

static mgl_status cut_at_pattern(cut *c, const mgl_pattern *pattern, bool invert)
{
    mgl_pattern_scan scan = {.text = c->piece.text, .length = c->piece.length};
    size_t done = 0;
    for (;;) {
        bool found;
        mgl_status status = mgl_pattern_next(pattern, c->r->w->matcher, &scan, &found, c->r->err);
        if (status)
            return status;
        size_t until = found ? scan.start : scan.length;
        if (done != until)
            status = stretch(c, done, until, invert);
        if (!status && found)
            status = stretch(c, scan.start, scan.end, !invert);
        if (status)
            return status;
        if (!found)
            return release(c);
        done = scan.end;
    }
}

/* ---- Metaspace ------------------------------------------------------------------------------ */

/* Replaces the spaces of the piece, in `text`. */
static void replace_spaces(const mgl_split_step *step, mgl_text *text, mgl_piece *piece)
{
    size_t size = strlen(step->replacement), head = 0;
    const char *from = piece->text, *end = from + piece->length, *old_head = from + piece->head;
    text->length = 0;
    while (from < end) {
        const char *space = memchr(from, ' ', (size_t)(end - from));
        const char *until = space ? space : end;
        mgl_text_append(text, from, (size_t)(until - from));
        if (from < old_head)
            head = text->length - (until > old_head ? (size_t)(until - old_head) : 0);
        if (!space)
            break;
        mgl_text_append(text, step->replacement, size);
        if (space < old_head)
            head = text->length;
        from = space + 1;
    }
    *piece = (mgl_piece){text->bytes, text->length, head};
}

static mgl_status run_metaspace(run *r, const mgl_split_step *step, size_t index, mgl_piece piece)
{
    size_t size = strlen(step->replacement);
    mgl_text *text = &r->w->texts[index].text;
    replace_spaces(step, text, &piece);
    bool starts =
        !text->failed && piece.length >= size && !memcmp(piece.text, step->replacement, size);
    if (!starts &&
        (step->scheme == MGL_SPLIT_ALWAYS || (step->scheme == MGL_SPLIT_FIRST && piece.head > 0))) {
        mgl_text_append(text, step->replacement, size);
        if (!text->failed) {
            memmove(text->bytes + size, text->bytes, text->length - size);
            memcpy(text->bytes, step->replacement, size);
            piece = (mgl_piece){text->bytes, text->length, piece.head ? piece.head + size : 0};
        }
    }
    if (text->failed) {
        mgl_text_clear(text);
        return mgl_fail_memory(r->err, piece.length);
    }
    if (!step->cut)
        return run_step(r, index + 1, piece);
    cut c = {.r = r, .next = index + 1, .piece = piece, .behavior = MGL_SPLIT_MERGED_WITH_NEXT};
    return cut_at_pattern(&c, step->pattern, false);
}

/* ---- ByteLevel ------------------------------------------------------------------------------ */

static mgl_status run_byte_level(run *r, const mgl_split_step *step, size_t index, mgl_piece piece)
{
    mgl_split_texts *texts = &r->w->texts[index];
    if (step->prefix_space && piece.text[0] != ' ') {
        texts->text.length = 0;
        mgl_text_put(&texts->text, " ");
        mgl_text_append(&texts->text, piece.text, piece.length);
        if (texts->text.failed) {
            mgl_text_clear(&texts->text);
            return mgl_fail_memory(r->err, piece.length);
        }
        piece = (mgl_piece){texts->text.bytes, texts->text.length, piece.head ? piece.head + 1 : 0};
    }
    cut c = {.r = r,
             .next = index + 1,
             .piece = piece,
             .behavior = MGL_SPLIT_ISOLATED,
             .map = step->map,
             .mapped = &texts->mapped};
    return step->pattern ? cut_at_pattern(&c, step->pattern, false) : hand_on(&c, 0, piece.length);
}

static mgl_status run_step(run *r, size_t index, mgl_piece piece)
{
    mgl_status status = mgl_growth_take(r->w->growth, r->w->first + index, piece.length,
                                        "pre-tokenizer", r->splitter->file, r->err);
    if (status)
        return status;
    if (index == r->splitter->count)
        return r->take(r->user, piece.text, piece.length, r->err);
    const mgl_split_step *step = &r->splitter->steps[index];
    if (step->kind == MGL_SPLIT_METASPACE)
        return run_metaspace(r, step, index, piece);
    if (step->kind == MGL_SPLIT_BYTE_LEVEL)
        return run_byte_level(r, step, index, piece);
    cut c = {.r = r, .next = index + 1, .piece = piece, .behavior = step->behavior};
    return cut_at_pattern(&c, step->pattern, step->invert);
}

mgl_status mgl_splitter_run(const mgl_splitter *splitter, mgl_splitter_workspace *workspace,
                            mgl_piece piece, mgl_piece_fn *take, void *user, mgl_error *err)
{
    run r = {splitter, workspace, take, user, err};
    return piece.length ? run_step(&r, 0, piece) : MGL_OK;
}
