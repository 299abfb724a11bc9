/*
 * Text form of moves: names, parser, printer and lists. Parser and printer follow the letters of
 * moves.def: each letter is one parameter with a name, a range and a field of mgl_move. The other
 * files of this folder implement the moves.
 */
#include "schedule/moves/moves.h"

#include "base/format.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "schedule/text/scan.h"

#include <string.h>

enum {
    MAX_TEXT = 1 << 16,  /* maximum bytes of a text */
    MAX_LAYER = 1 << 16, /* above the layers of any model */
    MAX_COUNT = 1 << 20,
    LETTERS = 6
};

static const struct kind {
    const char *name, *parameters, *what;
} kinds[MGL_MOVE_COUNT] = {
#define MGL_MOVE(id, name, parameters, what) {name, parameters, what},
#include "schedule/moves/moves.def"
#undef MGL_MOVE
};

/* The parameters, by their letters. */
static const struct parameter {
    char letter;
    const char *name;
    int lowest, highest;
    size_t field; /* offset of the int in mgl_move */
} parameters[LETTERS] = {
    {'l', "layer", 0, MAX_LAYER, offsetof(mgl_move, layer)},
    {'s', "step", 0, 0, offsetof(mgl_move, step)},
    {'f', "from", 0, MGL_MAX_QUEUES - 1, offsetof(mgl_move, from)},
    {'t', "to", 0, MGL_MAX_QUEUES, offsetof(mgl_move, to)},
    {'n', "count", 1, MAX_COUNT, offsetof(mgl_move, count)},
    {'p', "count", -MAX_COUNT, MAX_COUNT, offsetof(mgl_move, count)},
};

static const struct parameter *find_parameter(char letter)
{
    const struct parameter *p = parameters;
    while (p->letter != letter)
        p++;
    return p;
}

static int *field_of(mgl_move *move, const struct parameter *p)
{
    return (int *)(void *)((char *)move + p->field);
}

static const char *step_name(int step)
{
    return step == MGL_MOVE_STEP_MERGE ? "merge" : mgl_step_name((mgl_step)step);
}

const char *mgl_move_name(mgl_move_kind kind)
{
    return kinds[kind].name;
}

const char *mgl_move_what(mgl_move_kind kind)
{
    return kinds[kind].what;
}

void mgl_move_print_usage(mgl_move_kind kind, mgl_text *out)
{
    mgl_text_put(out, kinds[kind].name);
    for (const char *letter = kinds[kind].parameters; *letter; letter++) {
        const struct parameter *p = find_parameter(*letter);
        const char *value = *letter == 'l'   ? "N|all"
                            : *letter == 's' ? "STEP"
                            : *letter == 'p' ? "N|-N"
                                             : "N";
        mgl_text_format(out, " %s=%s", p->name, value);
    }
}

/* ---- lists ---------------------------------------------------------------------------------- */

void mgl_moves_clear(mgl_moves *moves)
{
    mgl_free(moves->moves);
    *moves = (mgl_moves){0};
}

mgl_status mgl_moves_add(mgl_moves *moves, const mgl_move *move, mgl_error *err)
{
    size_t capacity = (size_t)moves->capacity;
    if (moves->count >= MGL_MAX_MOVES)
        return mgl_fail(err, MGL_BAD_INPUT, mgl_move_name(move->kind),
                        "there are %d moves, and a list has no more", MGL_MAX_MOVES);
    if (!mgl_grow((void **)&moves->moves, &capacity, (size_t)moves->count, sizeof *moves->moves))
        return mgl_fail_memory(err, capacity * sizeof *moves->moves);
    moves->capacity = (int)capacity;
    moves->moves[moves->count++] = *move;
    return MGL_OK;
}

/* ---- printing ------------------------------------------------------------------------------- */

void mgl_move_print(const mgl_move *move, mgl_text *out)
{
    mgl_move copy = *move;
    mgl_text_put(out, kinds[move->kind].name);
    for (const char *letter = kinds[move->kind].parameters; *letter; letter++) {
        const struct parameter *p = find_parameter(*letter);
        int value = *field_of(&copy, p);
        mgl_text_format(out, " %s=", p->name);
        if (*letter == 's')
            mgl_text_put(out, step_name(value));
        else if (*letter == 'l' && value == MGL_MOVE_ALL)
            mgl_text_put(out, "all");
        else
            mgl_text_format(out, "%d", value);
    }
}

void mgl_moves_print(const mgl_moves *moves, mgl_text *out)
{
    for (int i = 0; i < moves->count; i++) {
        mgl_move_print(&moves->moves[i], out);
        mgl_text_put(out, "\n");
    }
}

/* ---- reading -------------------------------------------------------------------------------- */

/* "a, b or c" of names, for messages. */
struct list {
    char text[200];
};

static void add_name(struct list *list, const char *name, bool first)
{
    size_t n = strlen(list->text);
    mgl_format_into(list->text + n, sizeof list->text - n, "%s%s", first ? "" : ", ", name);
}

static struct list list_kinds(void)
{
    struct list list = {""};
    for (int i = 0; i < MGL_MOVE_COUNT; i++)
        add_name(&list, kinds[i].name, i == 0);
    return list;
}

static struct list list_steps(void)
{
    struct list list = {""};
    for (int i = 0; i <= MGL_MOVE_STEP_MERGE; i++)
        add_name(&list, step_name(i), i == 0);
    return list;
}

static struct list list_parameters(const struct kind *kind)
{
    struct list list = {""};
    for (const char *letter = kind->parameters; *letter; letter++)
        add_name(&list, find_parameter(*letter)->name, letter == kind->parameters);
    return list;
}

static bool read_step(mgl_scan *s, int *out)
{
    mgl_word word;
    if (!mgl_scan_word(s, "a step", &word))
        return false;
    for (int i = 0; i <= MGL_MOVE_STEP_MERGE; i++)
        if (mgl_word_is(word, step_name(i))) {
            *out = i;
            return true;
        }
    return mgl_scan_fail(s, word.at, s->at, "unknown step `%.*s`; known: %s", word.length, word.at,
                         list_steps().text);
}

/* Reads a number in the parameter's range, with a minus sign if the range has negative numbers. */
static bool read_number(mgl_scan *s, const struct parameter *p, int *out)
{
    int64_t number = 0;
    mgl_scan_skip_blanks(s);
    const char *from = s->at;
    bool minus = p->lowest < 0 && mgl_scan_take(s, '-');
    if (!mgl_scan_number(s, p->letter == 'l' ? "a number, or all" : "a number", p->highest,
                         &number))
        return false;
    *out = (int)(minus ? -number : number);
    if (*out < p->lowest)
        return mgl_scan_fail(s, from, s->at, "`%s` is at least %d", p->name, p->lowest);
    if (p->letter == 'p' && *out == 0)
        return mgl_scan_fail(s, from, s->at, "a move by 0 places changes nothing");
    return true;
}

static bool read_value(mgl_scan *s, const struct parameter *p, mgl_move *move)
{
    int *value = field_of(move, p);
    if (p->letter == 's')
        return read_step(s, value);
    if (p->letter == 'l' && mgl_scan_take_word(s, "all")) {
        *value = MGL_MOVE_ALL;
        return true;
    }
    return read_number(s, p, value);
}

/* Reads name=value. `*seen` has a bit for each letter of the kind already read. */
static bool read_parameter(mgl_scan *s, const struct kind *kind, unsigned *seen, mgl_move *move)
{
    mgl_word word;
    if (!mgl_scan_word(s, "a parameter", &word))
        return false;
    for (int i = 0; kind->parameters[i]; i++) {
        const struct parameter *p = find_parameter(kind->parameters[i]);
        if (!mgl_word_is(word, p->name))
            continue;
        if (*seen >> i & 1)
            return mgl_scan_fail(s, word.at, s->at, "`%s` is given twice", p->name);
        *seen |= 1U << i;
        return mgl_scan_expect(s, '=') && read_value(s, p, move);
    }
    return mgl_scan_fail(s, word.at, s->at, "unknown parameter `%.*s` of %s; known: %s",
                         word.length, word.at, kind->name, list_parameters(kind).text);
}

static bool read_parameters(mgl_scan *s, const struct kind *kind, mgl_move *move)
{
    unsigned seen = 0;
    while (!mgl_scan_at_line_end(s))
        if (!read_parameter(s, kind, &seen, move))
            return false;
    for (int i = 0; kind->parameters[i]; i++)
        if (!(seen >> i & 1))
            return mgl_scan_fail(s, s->at, s->at, "`%s=` is missing; %s has %s",
                                 find_parameter(kind->parameters[i])->name, kind->name,
                                 list_parameters(kind).text);
    return true;
}

static bool read_move(mgl_scan *s, mgl_move *out)
{
    mgl_word word;
    *out = (mgl_move){0};
    if (!mgl_scan_word(s, "a move", &word))
        return false;
    for (int i = 0; i < MGL_MOVE_COUNT; i++)
        if (mgl_word_is(word, kinds[i].name)) {
            out->kind = (mgl_move_kind)i;
            return read_parameters(s, &kinds[i], out);
        }
    return mgl_scan_fail(s, word.at, s->at, "unknown move `%.*s`; known: %s", word.length, word.at,
                         list_kinds().text);
}

static bool read_moves(mgl_scan *s, mgl_moves *out)
{
    while (mgl_scan_next_line(s)) {
        mgl_move move;
        const char *from = s->at;
        if (!read_move(s, &move))
            return false;
        if (out->count == MGL_MAX_MOVES)
            return mgl_scan_fail(s, from, s->at, "a list has at most %d moves", MGL_MAX_MOVES);
        s->status = mgl_moves_add(out, &move, s->err);
        if (s->status)
            return false;
    }
    return true;
}

mgl_status mgl_moves_parse(const char *text, size_t length, const char *file, mgl_moves *out,
                           mgl_error *err)
{
    *out = (mgl_moves){0};
    if (length > MAX_TEXT)
        return mgl_fail(err, MGL_BAD_INPUT, file, "the moves have %zu bytes; at most %d are read",
                        length, MAX_TEXT);
    text = length ? text : "";
    mgl_scan scan = {
        .source = {file ? file : "moves", text + length, text, 1}, .at = text, .err = err};
    mgl_status status = mgl_utf8_check_mark(text, length, file, err);
    if (status)
        return status;
    if (!read_moves(&scan, out)) {
        mgl_moves_clear(out);
        return scan.status;
    }
    return MGL_OK;
}
