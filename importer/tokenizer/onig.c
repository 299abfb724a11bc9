/*
 * Oniguruma's regular expressions rewritten for PCRE2. The two agree on most of what tokenizers
 * use; where they differ this parser writes out what Oniguruma means:
 *
 *     \s \w \d \h \b      Oniguruma's Unicode classes, as explicit classes and lookarounds
 *     ^ $ .               line anchors everywhere; (?m) is PCRE2's (?s)
 *     \p{Han}             a script, not its extensions; long names of categories
 *     [a[^b]&&[c-d]]      nested classes and intersections, by lookaheads
 *     x{2,3}+ x{2}? x{,3} a repeated repeat, an optional one, from zero; not possessive or lazy
 *     a(?i)b|c            the option holds to the end of the group, its branches included
 *
 * What has no counterpart here (callouts, absent operators, conditionals, subexpression calls, \k)
 * is refused by name. Source of the rules: Oniguruma's doc/RE and its behaviour.
 */
#include "base/memory.h"
#include "base/utf8.h"
#include "importer/tokenizer/pattern.h"
#include "importer/tokenizer/unicode_tables.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define MAX_DEPTH 100
#define END       UINT32_MAX

typedef struct translator {
    const char *pattern, *at, *end;
    const char *file;
    mgl_text *out;
    mgl_error *err;
    int depth;
    bool extended; /* (?x): blanks and comments are left out */
    bool caseless; /* (?i) */
} translator;

/* One character class while it is being read: what a PCRE2 class can list, and what it can not. */
typedef struct class_parts {
    mgl_text listed; /* inside of [...] */
    mgl_text others; /* further alternatives, each a matcher of one character, with a | before */
} class_parts;

static mgl_status parse_branches(translator *t, bool inside);

static mgl_status refuse(translator *t, const char *what)
{
    return mgl_fail(t->err, MGL_BAD_INPUT, t->file,
                    "the pattern \"%.80s\" has, at byte %zu, %s, which is not supported",
                    t->pattern, (size_t)(t->at - t->pattern), what);
}

static mgl_status malformed(translator *t, const char *what)
{
    return mgl_fail(t->err, MGL_BAD_INPUT, t->file, "the pattern \"%.80s\" is malformed: %s",
                    t->pattern, what);
}

static uint32_t peek(const translator *t)
{
    uint32_t character;
    if (t->at >= t->end)
        return END;
    mgl_utf8_next(t->at, &character);
    return character;
}

static uint32_t take(translator *t)
{
    uint32_t character = peek(t);
    if (character != END)
        t->at += mgl_utf8_size(*t->at);
    return character;
}

static bool starts(const translator *t, const char *text)
{
    size_t length = strlen(text);
    return (size_t)(t->end - t->at) >= length && !memcmp(t->at, text, length);
}

static bool skip(translator *t, const char *text)
{
    if (!starts(t, text))
        return false;
    t->at += strlen(text);
    return true;
}

/* A literal character, safe inside and outside of a class. */
static void put_literal(mgl_text *out, uint32_t character)
{
    bool plain = (character >= '0' && character <= '9') || (character >= 'A' && character <= 'Z') ||
                 (character >= 'a' && character <= 'z');
    if (plain)
        mgl_text_format(out, "%c", (char)character);
    else
        mgl_text_format(out, "\\x{%X}", (unsigned)character);
}

/* ---- escapes -------------------------------------------------------------------------------- */

static int digit_value(uint32_t c, int base)
{
    int value = c >= '0' && c <= '9'   ? (int)c - '0'
                : c >= 'a' && c <= 'f' ? (int)c - 'a' + 10
                : c >= 'A' && c <= 'F' ? (int)c - 'A' + 10
                                       : 99;
    return value < base ? value : -1;
}

/* Up to `most` digits of a number. False when there is none. */
static bool take_number(translator *t, int base, int most, uint32_t *out)
{
    uint32_t value = 0;
    int digits = 0;
    for (; digits < most && digit_value(peek(t), base) >= 0; digits++) {
        int digit = digit_value(take(t), base);
        if (value > (UINT32_MAX - 16) / 16)
            return false;
        value = value * (uint32_t)base + (uint32_t)digit;
    }
    *out = value;
    return digits > 0;
}

/* \x{H..}, \xHH, \uHHHH and octal, behind the letter. */
static mgl_status take_code(translator *t, uint32_t letter, uint32_t *out)
{
    bool good, braces = letter == 'x' && skip(t, "{");
    if (letter == 'x')
        good = take_number(t, 16, braces ? 8 : 2, out) && (!braces || skip(t, "}"));
    else if (letter == 'u')
        good = take_number(t, 16, 4, out);
    else
        good = take_number(t, 8, 2, out) || ((*out = 0), true);
    if (!good || *out > 0x10FFFF || (*out >= 0xD800 && *out < 0xE000))
        return malformed(t, "a character given by its number is not one");
    if (letter != 'u' && !braces && *out >= 0x80)
        return refuse(t, "a raw byte");
    return MGL_OK;
}

/* The character of a simple escape such as \n; 0 when `letter` is none. */
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

/* \p{Name}, \p{^Name}, \P{Name} behind the letter: the category's row and whether it is negated. */
static mgl_status take_property(translator *t, bool *negated, char name[64])
{
    size_t length = 0;
    if (!skip(t, "{"))
        return malformed(t, "\\p is not followed by {");
    if (skip(t, "^"))
        *negated = !*negated;
    while (peek(t) != '}') {
        uint32_t c = take(t);
        if (c == END || c >= 0x80 || length + 1 >= 64)
            return malformed(t, "the name of a property does not end");
        if (c != ' ' && c != '_' && c != '-')
            name[length++] = (char)c;
    }
    name[length] = 0;
    skip(t, "}");
    if (!length ||
        strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789") != length)
        return malformed(t, "the name of a property is not one");
    return MGL_OK;
}

/* Appends a set to a class, the complement of it if `negated`. `body` is the inside of [...]. */
static void put_set(class_parts *parts, const char *body, bool negated)
{
    if (negated)
        mgl_text_format(&parts->others, "|[^%s]", body);
    else
        mgl_text_put(&parts->listed, body);
}

static mgl_status put_property(translator *t, class_parts *parts, bool inside, bool negated)
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

/* An escape that stands for a set, its letter taken. *done says whether it was one. Inside of a
 * class Oniguruma's \\w lacks the six digits of Latin-1 (superscripts, fractions) that it has
 * outside. */
static mgl_status put_set_escape(translator *t, class_parts *parts, bool inside, uint32_t letter,
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

/* The one character that an escape stands for, its letter taken. */
static mgl_status escaped_character(translator *t, uint32_t letter, uint32_t *out)
{
    *out = control_escape(letter);
    if (*out)
        return MGL_OK;
    if (letter == 'x' || letter == 'u' || letter == '0')
        return take_code(t, letter, out);
    if (letter == END)
        return malformed(t, "it ends in a backslash");
    if (letter == 'c' || letter == 'C' || letter == 'M')
        return refuse(t, "a control or meta escape");
    *out = letter;
    return MGL_OK;
}

/* ---- character classes ---------------------------------------------------------------------- */

static void clear_parts(class_parts *parts)
{
    mgl_text_clear(&parts->listed);
    mgl_text_clear(&parts->others);
}

/* Writes a finished class as one matcher of one character. */
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

/* [:alpha:] and its like. *done false when this is none. */
static mgl_status posix_class(translator *t, class_parts *parts, bool *done)
{
    char name[24] = "Posix"; /* the prefix matters for those that differ */
    size_t prefix = strlen(name), length = prefix;
    const char *start = t->at;
    *done = false;
    if (!skip(t, "[:"))
        return MGL_OK;
    bool negated = skip(t, "^");
    while (t->at < t->end && *t->at >= 'a' && *t->at <= 'z' && length + 1 < sizeof name)
        name[length++] = *t->at++;
    name[length] = 0;
    if (length == prefix || !skip(t, ":]")) {
        t->at = start;
        return MGL_OK;
    }
    bool complement;
    const char *body = mgl_unicode_property(name, &complement);
    if (!body)
        body = mgl_unicode_property(name + prefix, &complement);
    if (!body)
        return refuse(t, "an unknown POSIX bracket");
    put_set(parts, body, negated);
    *done = true;
    return MGL_OK;
}

/* One character of a class, which may start a range. *set: it was a set and is written. */
static mgl_status class_character(translator *t, class_parts *parts, uint32_t *out, bool *set)
{
    *set = false;
    *out = take(t);
    if (*out != '\\')
        return MGL_OK;
    uint32_t letter = take(t);
    mgl_status status = put_set_escape(t, parts, true, letter, set);
    if (status || *set)
        return status;
    if (letter == 'b') {
        *out = 8;
        return MGL_OK;
    }
    if (letter == 'R' || letter == 'X')
        return refuse(t, "\\R or \\X within a class");
    return escaped_character(t, letter, out);
}

static mgl_status class_item(translator *t, class_parts *parts)
{
    uint32_t from, to;
    bool set;
    mgl_status status = class_character(t, parts, &from, &set);
    if (status || set)
        return status;
    put_literal(&parts->listed, from);
    bool range = peek(t) == '-' && t->at + 1 < t->end && t->at[1] != ']' && t->at[1] != '[' &&
                 !(t->at[1] == '&' && t->at + 2 < t->end && t->at[2] == '&');
    if (!range)
        return MGL_OK;
    const char *hyphen = t->at;
    take(t);
    class_parts behind = {0};
    status = class_character(t, &behind, &to, &set);
    clear_parts(&behind);
    if (status)
        return status;
    if (set) { /* a-\d: the hyphen is a character */
        t->at = hyphen + 1;
        put_literal(&parts->listed, '-');
        return MGL_OK;
    }
    if (to < from)
        return malformed(t, "a range of characters is empty");
    mgl_text_put(&parts->listed, "-");
    put_literal(&parts->listed, to);
    return MGL_OK;
}

static mgl_status parse_class(translator *t, mgl_text *out);

/* [..] within [..]: one more alternative. */
static mgl_status nested_class(translator *t, class_parts *parts)
{
    mgl_text_put(&parts->others, "|");
    return parse_class(t, &parts->others);
}

/* The items up to && or the closing bracket. */
static mgl_status class_items(translator *t, class_parts *parts, bool first)
{
    mgl_status status = MGL_OK;
    if (first && peek(t) == ']') {
        take(t);
        put_literal(&parts->listed, ']');
    }
    while (!status && peek(t) != ']' && !starts(t, "&&")) {
        bool done = false;
        if (peek(t) == END)
            return malformed(t, "a character class does not end");
        if (peek(t) == '[') {
            status = posix_class(t, parts, &done);
            if (!status && !done)
                status = nested_class(t, parts);
        } else {
            status = class_item(t, parts);
        }
    }
    return status;
}

/* A class from its bracket on, as one matcher of one character. */
static mgl_status parse_class(translator *t, mgl_text *out)
{
    class_parts parts = {0};
    mgl_text sides = {0}; /* (?=A)(?=B)... of an intersection */
    if (++t->depth > MAX_DEPTH)
        return refuse(t, "classes nested too deeply");
    skip(t, "[");
    bool negated = skip(t, "^");
    mgl_status status = class_items(t, &parts, true);
    while (!status && skip(t, "&&")) {
        mgl_text_put(&sides, "(?=");
        put_class(&sides, &parts, false);
        mgl_text_put(&sides, ")");
        if (parts_failed(&parts))
            sides.failed = true;
        clear_parts(&parts);
        status = class_items(t, &parts, false);
    }
    skip(t, "]");
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

/* ---- groups --------------------------------------------------------------------------------- */

/* (?imx-imx) or (?imx-imx:, behind the question mark. Writes "(?..:" for both; an option without a
 * group of its own holds for the rest of the enclosing one. */
static mgl_status parse_options(translator *t)
{
    bool on = true, extended = t->extended, before = t->extended;
    bool caseless = t->caseless, caseless_before = t->caseless;
    mgl_text_put(t->out, "(?");
    for (;;) {
        uint32_t c = take(t);
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
            mgl_status status = parse_branches(t, c == ':' || t->depth > 0);
            if (status)
                return status;
            mgl_text_put(t->out, ")");
            if (c == ':' && !skip(t, ")"))
                return malformed(t, "a group does not end");
            t->extended = before;
            t->caseless = caseless_before;
            return MGL_OK;
        } else {
            return refuse(t, "an option or a group of an unknown kind");
        }
    }
}

/* (?<name>, behind the less-than sign: the group is written without its name. */
static mgl_status skip_name(translator *t)
{
    const char *close = memchr(t->at, '>', (size_t)(t->end - t->at));
    if (!close || close == t->at)
        return malformed(t, "the name of a group does not end");
    t->at = close + 1;
    return MGL_OK;
}

static mgl_status parse_group(translator *t)
{
    static const char *const same[] = {"?:", "?=", "?!", "?<=", "?<!", "?>"};
    const char *opening = "";
    mgl_status status = MGL_OK;
    for (size_t i = 0; i < sizeof same / sizeof *same && !*opening; i++) {
        if (skip(t, same[i]))
            opening = same[i];
    }
    if (!*opening && skip(t, "?<")) {
        status = skip_name(t);
    } else if (!*opening && skip(t, "?")) {
        if (peek(t) != 'i' && peek(t) != 'm' && peek(t) != 'x' && peek(t) != '-')
            return refuse(t, "a group of an unknown kind");
        return parse_options(t);
    } else if (!*opening && peek(t) == '*') {
        return refuse(t, "a callout");
    }
    if (status)
        return status;
    mgl_text_format(t->out, "(%s", opening);
    status = parse_branches(t, true);
    if (status)
        return status;
    if (!skip(t, ")"))
        return malformed(t, "a group does not end");
    mgl_text_put(t->out, ")");
    return MGL_OK;
}

/* ---- atoms and repeats ---------------------------------------------------------------------- */

static mgl_status parse_reference(translator *t, uint32_t letter)
{
    uint32_t more, number = letter - '0';
    if (take_number(t, 10, 2, &more))
        return refuse(t, "a reference to a group above 9");
    mgl_text_format(t->out, "\\g{%u}", (unsigned)number);
    return MGL_OK;
}

static mgl_status parse_escape(translator *t)
{
    uint32_t letter = take(t), character;
    bool set;
    const char *word = mgl_unicode_property("Word", &set);
    class_parts parts = {0};
    mgl_status status = put_set_escape(t, &parts, false, letter, &set);
    if (set && !status) {
        put_class(t->out, &parts, false);
        t->out->failed |= parts_failed(&parts);
    }
    clear_parts(&parts);
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
        return refuse(t, "\\X, \\y, \\Y, \\k or \\g");
    else if (letter == 'N')
        mgl_text_put(t->out, "(?-s:.)");
    else if (letter == 'O')
        mgl_text_put(t->out, "(?s:.)");
    else if (letter >= '1' && letter <= '9')
        return parse_reference(t, letter);
    else {
        status = escaped_character(t, letter, &character);
        if (!status)
            put_literal(t->out, character);
    }
    return status;
}

/* Letters that are also the case folding of one character, longest first; with what they match. */
static const struct {
    const char *letters, *matcher;
} foldings[] = {
    {"ffi", "(?:ffi|\\x{FB03}|\\x{FB00}i|f\\x{FB01})"},
    {"ffl", "(?:ffl|\\x{FB04}|\\x{FB00}l|f\\x{FB02})"},
    {"ss", "(?:ss|[\\x{DF}\\x{1E9E}])"},
    {"ff", "(?:ff|\\x{FB00})"},
    {"fi", "(?:fi|\\x{FB01})"},
    {"fl", "(?:fl|\\x{FB02})"},
    {"st", "(?:st|[\\x{FB05}\\x{FB06}])"},
};

/* Such letters at the cursor in a caseless part, unless a repeat takes the last of them away. */
static bool parse_folding(translator *t)
{
    for (size_t i = 0; t->caseless && i < sizeof foldings / sizeof *foldings; i++) {
        size_t length = strlen(foldings[i].letters);
        if ((size_t)(t->end - t->at) < length || strncasecmp(t->at, foldings[i].letters, length))
            continue;
        if (t->at + length < t->end && strchr("*+?{", t->at[length]))
            continue;
        mgl_text_put(t->out, foldings[i].matcher);
        t->at += length;
        return true;
    }
    return false;
}

static mgl_status parse_atom(translator *t)
{
    uint32_t c = peek(t);
    if (parse_folding(t))
        return MGL_OK;
    if (c == '[')
        return parse_class(t, t->out);
    take(t);
    if (c == '(')
        return parse_group(t);
    if (c == '\\')
        return parse_escape(t);
    if (c == '*' || c == '+' || c == '?')
        return malformed(t, "there is nothing to repeat");
    if (c == '.')
        mgl_text_put(t->out, ".");
    else if (c == '^' || c == '$')
        mgl_text_format(t->out, "(?m:%c)", (char)c);
    else
        put_literal(t->out, c);
    return MGL_OK;
}

/* {n}, {n,}, {,m} or {n,m} at the brace; false when it is none and stands for itself. */
static bool take_interval(translator *t, uint32_t *lo, uint32_t *hi, bool *exact)
{
    const char *start = t->at;
    skip(t, "{");
    bool low = take_number(t, 10, 6, lo), high = false;
    *exact = false;
    if (!low)
        *lo = 0;
    if (skip(t, ",")) {
        high = take_number(t, 10, 6, hi);
        if (!high)
            *hi = UINT32_MAX;
    } else {
        *hi = *lo;
        *exact = true;
    }
    if ((low || high) && skip(t, "}"))
        return true;
    t->at = start;
    return false;
}

/* Puts what was written from `start` on into a group, so that one more repeat may follow. */
static void wrap(translator *t, size_t start)
{
    mgl_text_put(t->out, "(?:)");
    if (t->out->failed)
        return;
    char *bytes = t->out->bytes;
    memmove(bytes + start + 3, bytes + start, t->out->length - start - 4);
    memcpy(bytes + start, "(?:", 3);
    bytes[t->out->length - 1] = ')';
}

static void skip_blanks(translator *t)
{
    while (t->extended && t->at < t->end) {
        if (strchr(" \t\n\r\f\v", *t->at)) {
            t->at++;
        } else if (*t->at == '#') {
            while (t->at < t->end && *t->at != '\n')
                t->at++;
        } else {
            return;
        }
    }
}

/* One repeat at the cursor, if there is one. *done false when there is none. */
static mgl_status parse_repeat(translator *t, bool *done)
{
    uint32_t c = peek(t), lo, hi;
    bool exact;
    *done = true;
    if (c == '*' || c == '+' || c == '?') {
        take(t);
        mgl_text_format(t->out, "%c", (char)c);
        if (peek(t) == '?' || peek(t) == '+')
            mgl_text_format(t->out, "%c", (char)take(t));
        return MGL_OK;
    }
    if (c != '{' || !take_interval(t, &lo, &hi, &exact)) {
        *done = false;
        return MGL_OK;
    }
    if (lo > 65535 || (hi > 65535 && hi != UINT32_MAX))
        return refuse(t, "a repeat of more than 65,535");
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
    else if (!exact && skip(t, "?"))
        mgl_text_put(t->out, "?");
    return MGL_OK;
}

static mgl_status parse_piece(translator *t)
{
    size_t start = t->out->length;
    if (skip(t, "(?#")) {
        const char *close = memchr(t->at, ')', (size_t)(t->end - t->at));
        if (!close)
            return malformed(t, "a comment does not end");
        t->at = close + 1;
        return MGL_OK;
    }
    mgl_status status = parse_atom(t);
    for (int repeats = 0; !status; repeats++) {
        bool done;
        skip_blanks(t);
        uint32_t c = peek(t);
        if (repeats && (c == '*' || c == '+' || c == '?' || c == '{'))
            wrap(t, start);
        status = parse_repeat(t, &done);
        if (!done)
            break;
        if (repeats > MAX_DEPTH)
            return refuse(t, "too many repeats of one atom");
    }
    return status;
}

/* Branches up to the closing parenthesis (left to the caller) or the end. */
static mgl_status parse_branches(translator *t, bool inside)
{
    mgl_status status = MGL_OK;
    if (++t->depth > MAX_DEPTH)
        return refuse(t, "groups nested too deeply");
    while (!status) {
        skip_blanks(t);
        uint32_t c = peek(t);
        if (c == END)
            break;
        if (c == ')') {
            if (inside)
                break;
            status = malformed(t, "a closing parenthesis has no opening one");
        } else if (c == '|') {
            take(t);
            mgl_text_put(t->out, "|");
        } else {
            status = parse_piece(t);
        }
        if (t->out->failed)
            return mgl_fail_memory(t->err, t->out->capacity);
    }
    t->depth--;
    return status;
}

mgl_status mgl_onig_translate(const char *onig, const char *file, mgl_text *out, mgl_error *err)
{
    translator t = {onig, onig, onig + strlen(onig), file, out, err, -1, false, false};
    mgl_status status = parse_branches(&t, false);
    if (!status && out->failed)
        return mgl_fail_memory(err, out->capacity);
    return status;
}
