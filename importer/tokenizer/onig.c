/*
 * Translates Oniguruma's regular expressions to PCRE2 with a recursive-descent parser. The two
 * agree on most of what tokenizers use. Where they differ, the parser writes out Oniguruma's
 * meaning:
 *
 *     \s \w \d \h \b      Oniguruma's Unicode classes, as explicit classes and lookarounds
 *     ^ $ .               line anchors everywhere; (?m) is PCRE2's (?s)
 *     \p{Han}             a script, not its extensions; long names of categories
 *     [a[^b]&&[c-d]]      nested classes and intersections, by lookaheads
 *     x{2,3}+ x{2}? x{,3} a repeated repeat, an optional one, from zero; not possessive or lazy
 *     a(?i)b|c            the option applies to the end of the group, including its branches
 *     (?i)ss              also matches the sharp s, see onig_case.h
 *
 * Features without a counterpart (callouts, absent operators, conditionals, subexpression calls,
 * \k) are rejected by name. Source of the rules: Oniguruma's doc/RE and its behavior.
 *
 * The system's libonig would not do: its classes are those of its own Unicode version (14 in Debian
 * 12). Hugging Face's tokenizers contain an Oniguruma of Unicode 16, and 9,272 more characters are
 * letters there.
 */
#include "importer/tokenizer/onig.h"

#include "base/utf8.h"
#include "importer/tokenizer/onig_case.h"
#include "importer/tokenizer/pattern.h"
#include "importer/tokenizer/unicode_tables.h"

#include <stdio.h>
#include <string.h>

static mgl_status parse_branches(mgl_onig *t, bool inside);

mgl_status mgl_onig_refuse(mgl_onig *t, const char *what)
{
    return mgl_fail(t->err, MGL_BAD_INPUT, t->file,
                    "the pattern \"%.80s\" has, at byte %zu, %s, which is not supported",
                    t->pattern, (size_t)(t->at - t->pattern), what);
}

mgl_status mgl_onig_malformed(mgl_onig *t, const char *what)
{
    return mgl_fail(t->err, MGL_BAD_INPUT, t->file, "the pattern \"%.80s\" is malformed: %s",
                    t->pattern, what);
}

uint32_t mgl_onig_peek(const mgl_onig *t)
{
    uint32_t character;
    if (t->at >= t->end)
        return MGL_ONIG_END;
    mgl_utf8_next(t->at, &character);
    return character;
}

uint32_t mgl_onig_take(mgl_onig *t)
{
    uint32_t character = mgl_onig_peek(t);
    if (character != MGL_ONIG_END)
        t->at += mgl_utf8_size(*t->at);
    return character;
}

bool mgl_onig_starts(const mgl_onig *t, const char *text)
{
    size_t length = strlen(text);
    return (size_t)(t->end - t->at) >= length && !memcmp(t->at, text, length);
}

bool mgl_onig_skip(mgl_onig *t, const char *text)
{
    if (!mgl_onig_starts(t, text))
        return false;
    t->at += strlen(text);
    return true;
}

void mgl_onig_put_literal(mgl_text *out, uint32_t character)
{
    bool plain = (character >= '0' && character <= '9') || (character >= 'A' && character <= 'Z') ||
                 (character >= 'a' && character <= 'z');
    if (plain)
        mgl_text_format(out, "%c", (char)character);
    else
        mgl_text_format(out, "\\x{%X}", (unsigned)character);
}

/* Skips white space or a comment of (?x), or (?#...), at the cursor. */
static bool skip_blank(mgl_onig *t)
{
    if (t->extended && t->at < t->end && strchr(" \t\n\r\f\v", *t->at)) {
        t->at++;
        return true;
    }
    if (t->extended && mgl_onig_skip(t, "#")) {
        while (t->at < t->end && *t->at != '\n')
            t->at++;
        return true;
    }
    const char *close = mgl_onig_starts(t, "(?#") ? strchr(t->at, ')') : NULL;
    if (close)
        t->at = close + 1;
    return close;
}

static void skip_blanks(mgl_onig *t)
{
    while (skip_blank(t))
        t->parted = true;
}

/* Reads {n}, {n,}, {,m} or {n,m} at the brace. Returns false if it is not an interval; the brace
 * is then a literal. */
static bool take_interval(mgl_onig *t, uint32_t *lo, uint32_t *hi, bool *exact)
{
    const char *start = t->at;
    mgl_onig_skip(t, "{");
    bool low = mgl_onig_take_number(t, 10, 6, lo), high = false;
    *exact = false;
    if (!low)
        *lo = 0;
    if (mgl_onig_skip(t, ",")) {
        high = mgl_onig_take_number(t, 10, 6, hi);
        if (!high)
            *hi = UINT32_MAX;
    } else {
        *hi = *lo;
        *exact = true;
    }
    if ((low || high) && mgl_onig_skip(t, "}"))
        return true;
    t->at = start;
    return false;
}

/* ---- groups --------------------------------------------------------------------------------- */

/* Translates (?imx-imx) or (?imx-imx:, after the question mark. Writes "(?..:" for both; an
 * option without its own group applies to the rest of the enclosing group. */
static mgl_status parse_options(mgl_onig *t)
{
    bool on = true, extended = t->extended, before = t->extended;
    bool caseless = t->caseless, caseless_before = t->caseless;
    mgl_text_put(t->out, "(?");
    for (;;) {
        uint32_t c = mgl_onig_take(t);
        if (c == '-' && on) {
            on = false;
            mgl_text_put(t->out, "-");
        } else if (c == 'i') {
            caseless = on;
            mgl_text_put(t->out, "i");
        } else if (c == 'm') {
            mgl_text_put(t->out, "s");
        } else if (c == 'x') {
            extended = on;
        } else if (c == ':' || c == ')') {
            mgl_text_put(t->out, ":");
            t->extended = extended;
            t->caseless = caseless;
            t->before = 0;
            mgl_status status = parse_branches(t, c == ':' || t->depth > 0);
            t->before = 0;
            if (status)
                return status;
            mgl_text_put(t->out, ")");
            if (c == ':' && !mgl_onig_skip(t, ")"))
                return mgl_onig_malformed(t, "a group does not end");
            t->extended = before;
            t->caseless = caseless_before;
            return MGL_OK;
        } else {
            return mgl_onig_refuse(t, "an option or a group of an unknown kind");
        }
    }
}

/* Skips (?<name>, after the less-than sign: the group is written without its name. */
static mgl_status skip_name(mgl_onig *t)
{
    const char *close = memchr(t->at, '>', (size_t)(t->end - t->at));
    if (!close || close == t->at)
        return mgl_onig_malformed(t, "the name of a group does not end");
    t->at = close + 1;
    return MGL_OK;
}

static mgl_status parse_group(mgl_onig *t)
{
    static const char *const same[] = {"?:", "?=", "?!", "?<=", "?<!", "?>"};
    const char *opening = "";
    mgl_status status = MGL_OK;
    for (size_t i = 0; i < sizeof same / sizeof *same && !*opening; i++) {
        if (mgl_onig_skip(t, same[i]))
            opening = same[i];
    }
    if (!*opening && mgl_onig_skip(t, "?<")) {
        status = skip_name(t);
    } else if (!*opening && mgl_onig_skip(t, "?")) {
        if (mgl_onig_peek(t) != 'i' && mgl_onig_peek(t) != 'm' && mgl_onig_peek(t) != 'x' &&
            mgl_onig_peek(t) != '-')
            return mgl_onig_refuse(t, "a group of an unknown kind");
        return parse_options(t);
    } else if (!*opening && mgl_onig_peek(t) == '*') {
        return mgl_onig_refuse(t, "a callout");
    }
    if (status)
        return status;
    bool behind = t->behind, plain = !strcmp(opening, "?:");
    mgl_text_format(t->out, "(%s", opening);
    t->behind |= !strncmp(opening, "?<", 2);
    t->before = plain ? t->before : 0;
    t->parted = true;
    status = parse_branches(t, true);
    if (status)
        return status;
    t->behind = behind;
    t->before = plain ? t->before : 0;
    t->parted = true;
    if (!mgl_onig_skip(t, ")"))
        return mgl_onig_malformed(t, "a group does not end");
    mgl_text_put(t->out, ")");
    return MGL_OK;
}

/* ---- caseless letters ------------------------------------------------------------------------ */

/* Returns whether a repeat follows at `at`. {1} does not count: Oniguruma drops it. */
static bool repeat_follows(const mgl_onig *t, const char *at)
{
    mgl_onig look = *t;
    uint32_t lo, hi;
    bool exact;
    look.at = at;
    skip_blanks(&look);
    uint32_t c = mgl_onig_peek(&look);
    if (c == '{')
        return take_interval(&look, &lo, &hi, &exact) && (lo != 1 || hi != 1);
    return c == '*' || c == '+' || c == '?';
}

/* Returns whether the character at `at` is an unescaped letter of a literal. */
static bool is_plain(const mgl_onig *t, const char *at)
{
    return at < t->end && *at && !strchr("\\^$.|?*+()[{", *at) &&
           !(t->extended && strchr(" \t\n\r\f\v#", *at));
}

/* Records that letters which fold to `first` .. `last` come next. Oniguruma joins literals
 * across groups without effect, and finds foldings in the result; such patterns are rejected. */
static mgl_status join(mgl_onig *t, uint32_t first, uint32_t last)
{
    bool split = t->parted && mgl_folding_joins(t->before, first);
    t->before = last;
    t->parted = false;
    return split ? mgl_onig_refuse(t,
                                   "letters that are one without regard to case, parted by a group")
                 : MGL_OK;
}

/* Writes letters and the characters with the same folding as alternatives. */
static void put_folding(mgl_onig *t, const mgl_folding *folding)
{
    mgl_text_put(t->out, "(?:");
    for (size_t i = 0; i < mgl_folding_length(folding); i++)
        mgl_onig_put_literal(t->out, folding->folded[i]);
    mgl_text_put(t->out, "|[");
    mgl_onig_put_literal(t->out, folding->characters[0]);
    if (folding->characters[1])
        mgl_onig_put_literal(t->out, folding->characters[1]);
    mgl_text_put(t->out, "])");
}

/* Finds the folding at the cursor: of the character there, or the longest folding of the letters
 * from there on. A letter that a repeat applies to is not included. *to: the position after it. */
static const mgl_folding *folding_here(const mgl_onig *t, const char **to)
{
    uint32_t folded[3], character;
    const char *ends[3], *at = t->at;
    size_t count = 0;
    mgl_utf8_next(at, &character);
    const mgl_folding *own = mgl_folding_of(character);
    *to = at + mgl_utf8_size(*at);
    if (own)
        return own;
    while (count < 3 && is_plain(t, at)) {
        at += mgl_utf8_next(at, &character);
        if (mgl_folding_of(character) || repeat_follows(t, at))
            break;
        folded[count] = mgl_fold(character);
        ends[count++] = at;
    }
    const mgl_folding *found = mgl_folding_at(folded, count);
    if (found)
        *to = ends[mgl_folding_length(found) - 1];
    return found;
}

/* Translates a literal at the cursor that has a folding. *done: false if there is none. */
static mgl_status parse_folding(mgl_onig *t, bool *done)
{
    const char *to;
    const mgl_folding *folding = t->caseless && is_plain(t, t->at) ? folding_here(t, &to) : NULL;
    *done = folding && !t->behind;
    if (folding && t->behind && mgl_folding_of(mgl_onig_peek(t)))
        return mgl_onig_refuse(
            t, "a character that is several without regard to case, in a lookbehind");
    if (!*done)
        return MGL_OK;
    t->at = to;
    put_folding(t, folding);
    return join(t, folding->folded[0], folding->folded[mgl_folding_length(folding) - 1]);
}

/* Writes one character of a literal. */
static mgl_status put_letter(mgl_onig *t, uint32_t character)
{
    mgl_onig_put_literal(t->out, character);
    if (!t->caseless)
        return MGL_OK;
    if (mgl_folding_of(character)) /* given by its number */
        return mgl_onig_refuse(t,
                               "a character that is several without regard to case, as an escape");
    return join(t, mgl_fold(character), mgl_fold(character));
}

/* ---- atoms and repeats ---------------------------------------------------------------------- */

static mgl_status parse_reference(mgl_onig *t, uint32_t letter)
{
    uint32_t more, number = letter - '0';
    if (mgl_onig_take_number(t, 10, 2, &more))
        return mgl_onig_refuse(t, "a reference to a group above 9");
    if (t->caseless)
        return mgl_onig_refuse(t, "a reference to a group without regard to case");
    mgl_text_format(t->out, "\\g{%u}", (unsigned)number);
    return MGL_OK;
}

static mgl_status parse_escape(mgl_onig *t)
{
    uint32_t letter = mgl_onig_take(t), character;
    bool set;
    const char *word = mgl_unicode_property("Word", &set);
    mgl_status status = mgl_onig_parse_set(t, letter, &set);
    uint32_t before = t->before;
    t->before = 0;
    if (status || set)
        return status;
    if (letter == 'b')
        mgl_text_format(t->out, "(?:(?<=[%s])(?![%s])|(?<![%s])(?=[%s]))", word, word, word, word);
    else if (letter == 'B')
        mgl_text_format(t->out, "(?:(?<=[%s])(?=[%s])|(?<![%s])(?![%s]))", word, word, word, word);
    else if (letter == 'A' || letter == 'z' || letter == 'Z' || letter == 'G' || letter == 'R' ||
             letter == 'K')
        mgl_text_format(t->out, "\\%c", (char)letter);
    else if (letter == 'X' || letter == 'y' || letter == 'Y' || letter == 'k' || letter == 'g')
        return mgl_onig_refuse(t, "\\X, \\y, \\Y, \\k or \\g");
    else if (letter == 'N')
        mgl_text_put(t->out, "(?-s:.)");
    else if (letter == 'O')
        mgl_text_put(t->out, "(?s:.)");
    else if (letter >= '1' && letter <= '9')
        return parse_reference(t, letter);
    else {
        status = mgl_onig_take_escaped(t, letter, &character);
        t->before = before;
        t->parted = true;
        if (!status)
            status = put_letter(t, character);
        t->parted = true;
    }
    return status;
}

/* ---- atoms ---------------------------------------------------------------------------------- */

static mgl_status parse_atom(mgl_onig *t)
{
    uint32_t c = mgl_onig_peek(t);
    bool done;
    mgl_status status = parse_folding(t, &done);
    if (status || done)
        return status;
    if (is_plain(t, t->at) || c == '{') /* a brace that does not begin an interval */
        return put_letter(t, mgl_onig_take(t));
    if (c != '(' && c != '\\')
        t->before = 0;
    if (c == '[')
        return mgl_onig_parse_class(t);
    mgl_onig_take(t);
    if (c == '(')
        return parse_group(t);
    if (c == '\\')
        return parse_escape(t);
    if (c == '*' || c == '+' || c == '?')
        return mgl_onig_malformed(t, "there is nothing to repeat");
    if (c == '.')
        mgl_text_put(t->out, ".");
    else if (c == '^' || c == '$')
        mgl_text_format(t->out, "(?m:%c)", (char)c);
    else
        mgl_onig_put_literal(t->out, c);
    return MGL_OK;
}

/* Wraps the output from `start` on into a group, so that another repeat can follow. */
static void wrap(mgl_onig *t, size_t start)
{
    mgl_text_put(t->out, "(?:)");
    if (t->out->failed)
        return;
    char *bytes = t->out->bytes;
    memmove(bytes + start + 3, bytes + start, t->out->length - start - 4);
    memcpy(bytes + start, "(?:", 3);
    bytes[t->out->length - 1] = ')';
}

/* Translates one repeat at the cursor. *done: false if there is none. */
static mgl_status parse_repeat(mgl_onig *t, bool *done)
{
    uint32_t c = mgl_onig_peek(t), lo, hi;
    bool exact;
    *done = true;
    if (repeat_follows(t, t->at))
        t->before = 0;
    if (c == '*' || c == '+' || c == '?') {
        mgl_onig_take(t);
        mgl_text_format(t->out, "%c", (char)c);
        if (mgl_onig_peek(t) == '?' || mgl_onig_peek(t) == '+')
            mgl_text_format(t->out, "%c", (char)mgl_onig_take(t));
        return MGL_OK;
    }
    if (c != '{' || !take_interval(t, &lo, &hi, &exact)) {
        *done = false;
        return MGL_OK;
    }
    if (lo > 65535 || (hi > 65535 && hi != UINT32_MAX))
        return mgl_onig_refuse(t, "a repeat of more than 65,535");
    bool possessive = hi < lo; /* {3,1} is {1,3}+ */
    if (possessive) {
        uint32_t swap = lo;
        lo = hi;
        hi = swap;
    }
    if (hi == UINT32_MAX)
        mgl_text_format(t->out, "{%u,}", (unsigned)lo);
    else
        mgl_text_format(t->out, "{%u,%u}", (unsigned)lo, (unsigned)hi);
    if (possessive)
        mgl_text_put(t->out, "+");
    else if (!exact && mgl_onig_skip(t, "?"))
        mgl_text_put(t->out, "?");
    return MGL_OK;
}

static mgl_status parse_piece(mgl_onig *t)
{
    size_t start = t->out->length;
    if (mgl_onig_starts(t, "(?#"))
        return mgl_onig_malformed(t, "a comment does not end");
    mgl_status status = parse_atom(t);
    for (int repeats = 0; !status; repeats++) {
        bool done;
        skip_blanks(t);
        uint32_t c = mgl_onig_peek(t);
        if (repeats && (c == '*' || c == '+' || c == '?' || c == '{'))
            wrap(t, start);
        status = parse_repeat(t, &done);
        if (!done)
            break;
        t->parted = true; /* {1} */
        if (repeats > MGL_ONIG_MAX_DEPTH)
            return mgl_onig_refuse(t, "too many repeats of one atom");
    }
    return status;
}

/* Translates branches up to the closing parenthesis (left to the caller) or the end. */
static mgl_status parse_branches(mgl_onig *t, bool inside)
{
    mgl_status status = MGL_OK;
    bool one = true; /* there is only one branch so far */
    if (++t->depth > MGL_ONIG_MAX_DEPTH)
        return mgl_onig_refuse(t, "groups nested too deeply");
    while (!status) {
        skip_blanks(t);
        uint32_t c = mgl_onig_peek(t);
        if (c == MGL_ONIG_END)
            break;
        if (c == ')') {
            if (inside)
                break;
            status = mgl_onig_malformed(t, "a closing parenthesis has no opening one");
        } else if (c == '|') {
            mgl_onig_take(t);
            mgl_text_put(t->out, "|");
            t->before = 0;
            one = false;
        } else {
            status = parse_piece(t);
        }
        if (t->out->failed)
            return mgl_fail_memory(t->err, t->out->capacity);
    }
    t->depth--;
    t->before = one ? t->before : 0;
    return status;
}

mgl_status mgl_onig_translate(const char *onig, const char *file, mgl_text *out, mgl_error *err)
{
    mgl_onig t = {.pattern = onig,
                  .at = onig,
                  .end = onig + strlen(onig),
                  .file = file,
                  .out = out,
                  .err = err,
                  .depth = -1};
    mgl_status status = parse_branches(&t, false);
    if (!status && out->failed)
        return mgl_fail_memory(err, out->capacity);
    return status;
}
