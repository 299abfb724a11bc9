/* Translates escapes and character classes of Oniguruma's patterns to PCRE2. See onig.h. */
#include "importer/tokenizer/onig.h"

#include "importer/tokenizer/onig_case.h"
#include "importer/tokenizer/unicode_tables.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* A character class that is being read: what a PCRE2 class can list, and what it cannot list. */
typedef struct class_parts {
    mgl_text listed; /* inside of [...] */
    mgl_text others; /* further alternatives, each a pattern for one character, preceded by | */
} class_parts;

/* ---- escapes -------------------------------------------------------------------------------- */

static int digit_value(uint32_t c, int base)
{
    int value = c >= '0' && c <= '9'   ? (int)c - '0'
                : c >= 'a' && c <= 'f' ? (int)c - 'a' + 10
                : c >= 'A' && c <= 'F' ? (int)c - 'A' + 10
                                       : 99;
    return value < base ? value : -1;
}

bool mgl_onig_take_number(mgl_onig *t, int base, int most, uint32_t *out)
{
    uint32_t value = 0;
    int digits = 0;
    for (; digits < most && digit_value(mgl_onig_peek(t), base) >= 0; digits++) {
        int digit = digit_value(mgl_onig_take(t), base);
        if (value > (UINT32_MAX - 16) / 16)
            return false;
        value = value * (uint32_t)base + (uint32_t)digit;
    }
    *out = value;
    return digits > 0;
}

/* Reads \x{H..}, \xHH, \uHHHH and octal, after the letter. */
static mgl_status take_code(mgl_onig *t, uint32_t letter, uint32_t *out)
{
    bool good, braces = letter == 'x' && mgl_onig_skip(t, "{");
    if (letter == 'x')
        good =
            mgl_onig_take_number(t, 16, braces ? 8 : 2, out) && (!braces || mgl_onig_skip(t, "}"));
    else if (letter == 'u')
        good = mgl_onig_take_number(t, 16, 4, out);
    else
        good = mgl_onig_take_number(t, 8, 2, out) || ((*out = 0), true);
    if (!good || *out > 0x10FFFF || (*out >= 0xD800 && *out < 0xE000))
        return mgl_onig_malformed(t, "a character given by its number is not one");
    if (letter != 'u' && !braces && *out >= 0x80)
        return mgl_onig_refuse(t, "a raw byte");
    return MGL_OK;
}

/* Returns the character of a simple escape such as \n, or 0. */
static uint32_t control_escape(uint32_t letter)
{
    switch (letter) {
    case 't':
        return '\t';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 'f':
        return '\f';
    case 'v':
        return '\v';
    case 'a':
        return 7;
    case 'e':
        return 27;
    default:
        return 0;
    }
}

/* Reads \p{Name}, \p{^Name} or \P{Name} after the letter: the name, and whether it is negated. */
static mgl_status take_property(mgl_onig *t, bool *negated, char name[64])
{
    size_t length = 0;
    if (!mgl_onig_skip(t, "{"))
        return mgl_onig_malformed(t, "\\p is not followed by {");
    if (mgl_onig_skip(t, "^"))
        *negated = !*negated;
    while (mgl_onig_peek(t) != '}') {
        uint32_t c = mgl_onig_take(t);
        if (c == MGL_ONIG_END || c >= 0x80 || length + 1 >= 64)
            return mgl_onig_malformed(t, "the name of a property does not end");
        if (c != ' ' && c != '_' && c != '-')
            name[length++] = (char)c;
    }
    name[length] = 0;
    mgl_onig_skip(t, "}");
    if (!length ||
        strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789") != length)
        return mgl_onig_malformed(t, "the name of a property is not one");
    return MGL_OK;
}

/* Appends a set to a class, complemented if `negated`. `body` is the inside of [...]. */
static void put_set(class_parts *parts, const char *body, bool negated)
{
    if (negated)
        mgl_text_format(&parts->others, "|[^%s]", body);
    else
        mgl_text_put(&parts->listed, body);
}

static mgl_status put_property(mgl_onig *t, class_parts *parts, bool inside, bool negated)
{
    char name[64], script[96];
    mgl_status status = take_property(t, &negated, name);
    if (status)
        return status;
    bool complement = false;
    const char *body = inside && !strcasecmp(name, "word")
                           ? mgl_unicode_property("PosixWord", &complement)
                           : mgl_unicode_property(name, &complement);
    if (!body) {
        snprintf(script, sizeof script, "\\p{sc:%s}", name);
        body = script;
    }
    put_set(parts, body, negated != complement);
    return MGL_OK;
}

/* Appends the set of an escape whose letter is already taken. *done: it was a set. Inside a
 * class, Oniguruma's \w lacks the six digits of Latin-1 (superscripts, fractions) that it has
 * outside. */
static mgl_status put_set_escape(mgl_onig *t, class_parts *parts, bool inside, uint32_t letter,
                                 bool *done)
{
    bool unused;
    const char *word = mgl_unicode_property(inside ? "PosixWord" : "Word", &unused);
    *done = true;
    switch (letter) {
    case 's':
    case 'S':
        put_set(parts, MGL_UNICODE_SPACE, letter == 'S');
        return MGL_OK;
    case 'd':
    case 'D':
        put_set(parts, mgl_unicode_property("Nd", &unused), letter == 'D');
        return MGL_OK;
    case 'w':
    case 'W':
        put_set(parts, word, letter == 'W');
        return MGL_OK;
    case 'h':
    case 'H':
        put_set(parts, "0-9a-fA-F", letter == 'H');
        return MGL_OK;
    case 'p':
    case 'P':
        return put_property(t, parts, inside, letter == 'P');
    default:
        *done = false;
        return MGL_OK;
    }
}

mgl_status mgl_onig_take_escaped(mgl_onig *t, uint32_t letter, uint32_t *out)
{
    *out = control_escape(letter);
    if (*out)
        return MGL_OK;
    if (letter == 'x' || letter == 'u' || letter == '0')
        return take_code(t, letter, out);
    if (letter == MGL_ONIG_END)
        return mgl_onig_malformed(t, "it ends in a backslash");
    if (letter == 'c' || letter == 'C' || letter == 'M')
        return mgl_onig_refuse(t, "a control or meta escape");
    *out = letter;
    return MGL_OK;
}

/* ---- character classes ---------------------------------------------------------------------- */

static void clear_parts(class_parts *parts)
{
    mgl_text_clear(&parts->listed);
    mgl_text_clear(&parts->others);
}

/* Writes a finished class as one pattern for one character. */
static void put_class(mgl_text *out, const class_parts *parts, bool negated)
{
    const char *listed = parts->listed.length ? parts->listed.bytes : NULL;
    const char *others = parts->others.length ? parts->others.bytes : NULL;
    if (!others) {
        if (listed)
            mgl_text_format(out, negated ? "[^%s]" : "[%s]", listed);
        else
            mgl_text_put(out, negated ? "(?s:.)" : "(?!)(?s:.)");
        return;
    }
    mgl_text_put(out, negated ? "(?:(?!" : "(?:");
    if (listed)
        mgl_text_format(out, "[%s]", listed);
    mgl_text_put(out, listed ? others : others + 1); /* without the first | */
    mgl_text_put(out, negated ? ")(?s:.))" : ")");
}

static bool parts_failed(const class_parts *parts)
{
    return parts->listed.failed || parts->others.failed;
}

/* Reads [:alpha:] and similar. *done: false for other text. */
static mgl_status posix_class(mgl_onig *t, class_parts *parts, bool *done)
{
    char name[24] = "Posix"; /* the prefix matters for classes that differ */
    size_t prefix = strlen(name), length = prefix;
    const char *start = t->at;
    *done = false;
    if (!mgl_onig_skip(t, "[:"))
        return MGL_OK;
    bool negated = mgl_onig_skip(t, "^");
    while (t->at < t->end && *t->at >= 'a' && *t->at <= 'z' && length + 1 < sizeof name)
        name[length++] = *t->at++;
    name[length] = 0;
    if (length == prefix || !mgl_onig_skip(t, ":]")) {
        t->at = start;
        return MGL_OK;
    }
    bool complement;
    const char *body = mgl_unicode_property(name, &complement);
    if (!body)
        body = mgl_unicode_property(name + prefix, &complement);
    if (!body)
        return mgl_onig_refuse(t, "an unknown POSIX bracket");
    put_set(parts, body, negated);
    *done = true;
    return MGL_OK;
}

/* Reads one character of a class, which may start a range. *set: it was a set, which is written. */
static mgl_status class_character(mgl_onig *t, class_parts *parts, uint32_t *out, bool *set)
{
    *set = false;
    *out = mgl_onig_take(t);
    if (*out != '\\')
        return MGL_OK;
    uint32_t letter = mgl_onig_take(t);
    mgl_status status = put_set_escape(t, parts, true, letter, set);
    if (status || *set)
        return status;
    if (letter == 'b') {
        *out = 8;
        return MGL_OK;
    }
    if (letter == 'R' || letter == 'X')
        return mgl_onig_refuse(t, "\\R or \\X within a class");
    return mgl_onig_take_escaped(t, letter, out);
}

static mgl_status class_item(mgl_onig *t, class_parts *parts)
{
    uint32_t from, to;
    bool set;
    mgl_status status = class_character(t, parts, &from, &set);
    if (status || set)
        return status;
    mgl_onig_put_literal(&parts->listed, from);
    bool range = mgl_onig_peek(t) == '-' && t->at + 1 < t->end && t->at[1] != ']' &&
                 t->at[1] != '[' && !(t->at[1] == '&' && t->at + 2 < t->end && t->at[2] == '&');
    if (!range)
        return MGL_OK;
    const char *hyphen = t->at;
    mgl_onig_take(t);
    class_parts behind = {0};
    status = class_character(t, &behind, &to, &set);
    clear_parts(&behind);
    if (status)
        return status;
    if (set) { /* a-\d: the hyphen is a character */
        t->at = hyphen + 1;
        mgl_onig_put_literal(&parts->listed, '-');
        return MGL_OK;
    }
    if (to < from)
        return mgl_onig_malformed(t, "a range of characters is empty");
    mgl_text_put(&parts->listed, "-");
    mgl_onig_put_literal(&parts->listed, to);
    return MGL_OK;
}

static mgl_status parse_class(mgl_onig *t, mgl_text *out);

/* Translates a class within a class: one more alternative. */
static mgl_status nested_class(mgl_onig *t, class_parts *parts)
{
    mgl_text_put(&parts->others, "|");
    return parse_class(t, &parts->others);
}

/* Reads the items up to && or the closing bracket. */
static mgl_status class_items(mgl_onig *t, class_parts *parts, bool first)
{
    mgl_status status = MGL_OK;
    if (first && mgl_onig_peek(t) == ']') {
        mgl_onig_take(t);
        mgl_onig_put_literal(&parts->listed, ']');
    }
    while (!status && mgl_onig_peek(t) != ']' && !mgl_onig_starts(t, "&&")) {
        bool done = false;
        if (mgl_onig_peek(t) == MGL_ONIG_END)
            return mgl_onig_malformed(t, "a character class does not end");
        if (mgl_onig_peek(t) == '[') {
            status = posix_class(t, parts, &done);
            if (!status && !done)
                status = nested_class(t, parts);
        } else {
            status = class_item(t, parts);
        }
    }
    return status;
}

/* Translates a class, from its bracket on, to one pattern for one character. */
static mgl_status parse_class(mgl_onig *t, mgl_text *out)
{
    class_parts parts = {0};
    mgl_text sides = {0}; /* (?=A)(?=B)... of an intersection */
    if (++t->depth > MGL_ONIG_MAX_DEPTH)
        return mgl_onig_refuse(t, "classes nested too deeply");
    mgl_onig_skip(t, "[");
    bool negated = mgl_onig_skip(t, "^");
    mgl_status status = class_items(t, &parts, true);
    while (!status && mgl_onig_skip(t, "&&")) {
        mgl_text_put(&sides, "(?=");
        put_class(&sides, &parts, false);
        mgl_text_put(&sides, ")");
        if (parts_failed(&parts))
            sides.failed = true;
        clear_parts(&parts);
        status = class_items(t, &parts, false);
    }
    mgl_onig_skip(t, "]");
    t->depth--;
    if (sides.failed || parts_failed(&parts))
        out->failed = true;
    if (!status && sides.length) {
        mgl_text_put(out, negated ? "(?:(?!" : "(?:");
        mgl_text_append(out, sides.bytes, sides.length);
        put_class(out, &parts, false);
        mgl_text_put(out, negated ? ")(?s:.))" : ")");
    } else if (!status) {
        put_class(out, &parts, negated);
    }
    clear_parts(&parts);
    mgl_text_clear(&sides);
    return status;
}

/* Translates a caseless class. It is closed under case here instead of by PCRE2. */
static mgl_status parse_caseless_class(mgl_onig *t)
{
    mgl_text matcher = {0}, missing = {0};
    uint32_t several = 0;
    bool negated = mgl_onig_starts(t, "[^");
    mgl_status status = parse_class(t, &matcher);
    if (!status && matcher.failed)
        status = mgl_fail_memory(t->err, matcher.capacity);
    if (!status)
        status = mgl_close_class(matcher.bytes, negated, t->file, &missing, &several, t->err);
    if (!status && several && !negated)
        status =
            mgl_onig_refuse(t, "a class with a character that is several without regard to case");
    t->out->failed |= missing.failed;
    if (!status && !missing.length)
        mgl_text_format(t->out, "(?-i:%s)", matcher.bytes);
    else if (!status)
        mgl_text_format(t->out, negated ? "(?-i:(?![%s])%s)" : "(?-i:[%s]|%s)", missing.bytes,
                        matcher.bytes);
    mgl_text_clear(&matcher);
    mgl_text_clear(&missing);
    return status;
}

mgl_status mgl_onig_parse_class(mgl_onig *t)
{
    return t->caseless ? parse_caseless_class(t) : parse_class(t, t->out);
}

/* Oniguruma's set escapes ignore the caseless option. */
mgl_status mgl_onig_parse_set(mgl_onig *t, uint32_t letter, bool *done)
{
    class_parts parts = {0};
    mgl_status status = put_set_escape(t, &parts, false, letter, done);
    if (*done && !status) {
        mgl_text_put(t->out, t->caseless ? "(?-i:" : "");
        put_class(t->out, &parts, false);
        mgl_text_put(t->out, t->caseless ? ")" : "");
        t->out->failed |= parts_failed(&parts);
    }
    clear_parts(&parts);
    return status;
}
