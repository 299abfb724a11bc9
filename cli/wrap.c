/* Greedy line breaking of a stream. See wrap.h. */
#include "cli/wrap.h"

#include "base/utf8.h"

#include <string.h>
#include <utf8proc.h>

enum { TAB = 8, CODE_INDENT = 4, FENCE = 3, MOST_CHARACTER = 4 };

/* ---- characters ------------------------------------------------------------------------------ */

static int width_of(uint32_t c)
{
    int width = utf8proc_charwidth((utf8proc_int32_t)c);
    return width < 0 ? 0 : width;
}

/* A blank at which a line may end. No-break blanks are letters. */
static bool is_blank(uint32_t c)
{
    if (c < 0x80)
        return c == ' ';
    return utf8proc_category((utf8proc_int32_t)c) == UTF8PROC_CATEGORY_ZS && c != 0xA0 &&
           c != 0x2007 && c != 0x202F;
}

/* Korean separates words by blanks, although its letters are wide. */
static bool is_hangul(uint32_t c)
{
    return (c >= 0x1100 && c <= 0x11FF) || (c >= 0x3130 && c <= 0x318F) ||
           (c >= 0xA960 && c <= 0xA97F) || (c >= 0xAC00 && c <= 0xD7FF);
}

static bool is_wide(uint32_t c)
{
    return width_of(c) == 2 && !is_hangul(c);
}

/* Characters that may not begin a line: closing marks, small kana, and length marks. */
static bool closes(uint32_t c)
{
    static const char marks[] =
        "、。，．・：；？！）」』】〉》〕］｝〗〙’”…ー々ゝゞぁぃぅぇぉっゃゅょゎ"
        "ァィゥェォッャュョヮヵヶ,.:;?!)]}%";
    char text[MOST_CHARACTER + 1] = {0};
    mgl_utf8_put(c, text);
    return strstr(marks, text) != NULL;
}

/* Characters that may not end a line. */
static bool opens(uint32_t c)
{
    static const char marks[] = "（「『【〈《〔［｛〖〘‘“([{";
    char text[MOST_CHARACTER + 1] = {0};
    mgl_utf8_put(c, text);
    return strstr(marks, text) != NULL;
}

/* Whether a line may end between the last character of the word and this one. */
static bool may_break(mgl_cli_wrap *w, uint32_t c)
{
    utf8proc_int32_t state = w->grapheme;
    bool apart =
        utf8proc_grapheme_break_stateful((utf8proc_int32_t)w->last, (utf8proc_int32_t)c, &state);
    w->grapheme = state;
    return apart && (is_wide(w->last) || is_wide(c)) && !closes(c) && !opens(w->last);
}

/* ---- printing -------------------------------------------------------------------------------- */

/* Advances the cursor. A terminal itself starts a new line before text that does not fit. */
static void advance(mgl_cli_wrap *w, int width)
{
    int column = w->column + width;
    if (w->width > 0 && column > w->width)
        column = width > 2 ? (column - 1) % w->width + 1 : width;
    w->column = column;
}

static bool put_line_end(mgl_cli_wrap *w)
{
    w->column = 0;
    return w->put("\n", 1);
}

/* Prints the word that is held back, on this line or on the next. */
static bool put_held(mgl_cli_wrap *w)
{
    bool good = true;
    size_t from = 0, length = w->gap + w->word;
    bool fits = w->width <= 0 || w->column + w->gap_width + w->word_width <= w->width;
    if (w->word && !fits && !w->plain && !w->through && w->column > 0) {
        good = put_line_end(w);
        from = w->gap;
    } else {
        advance(w, w->gap_width);
    }
    if (length > from)
        good &= w->put(w->held + from, length - from);
    advance(w, w->word_width);
    w->begun |= length > 0;
    w->gap = w->word = 0;
    w->gap_width = w->word_width = 0;
    return good;
}

static void hold(mgl_cli_wrap *w, const char *bytes, size_t length)
{
    memcpy(w->held + w->gap + w->word, bytes, length);
}

/* Resets the state of the word, so that another word can start. */
static void forget_word(mgl_cli_wrap *w)
{
    w->through = false;
    w->last = 0;
    w->grapheme = 0;
}

/* ---- lines of the text ----------------------------------------------------------------------- */

/* Bullets and numbers of lists. Indented lines after them are not code. */
static bool is_item(const char *word)
{
    return strchr("-*+", *word) || (*word >= '0' && *word <= '9');
}

/* The mark of a fence that begins the word; 0: none. A word with marks after text is inline
 * code. */
static char find_fence(const char *word, size_t length)
{
    if (length < FENCE || (*word != '`' && *word != '~') || word[1] != *word || word[2] != *word)
        return 0;
    size_t marks = FENCE;
    while (marks < length && word[marks] == *word)
        marks++;
    return memchr(word + marks, '`', length - marks) ? 0 : *word;
}

/* Decides whether the line is code, from its indentation and its first word. */
static void look_at_line(mgl_cli_wrap *w)
{
    const char *word = w->held + w->gap;
    char mark = find_fence(word, w->word);
    w->plain = w->fence || mark || *word == '|' || (w->gap_width >= CODE_INDENT && !is_item(word));
    if (mark && !w->fence)
        w->fence = mark;
    else if (mark && mark == w->fence)
        w->fence = 0;
}

/* Called when the word is complete, or long enough to be printed. */
static bool end_word(mgl_cli_wrap *w)
{
    if (!w->begun && w->word)
        look_at_line(w);
    return put_held(w);
}

static bool take_line_end(mgl_cli_wrap *w)
{
    bool good = true;
    if (w->word || (w->gap && w->column + w->gap_width <= w->width))
        good = end_word(w);
    w->gap = 0;
    w->gap_width = 0;
    good &= put_line_end(w);
    w->begun = w->plain = false;
    forget_word(w);
    return good;
}

static bool take_blank(mgl_cli_wrap *w, const char *bytes, size_t length, int width)
{
    bool good = true;
    if (w->word || w->gap + length > MGL_CLI_WRAP_HELD / 2)
        good = end_word(w);
    forget_word(w);
    hold(w, bytes, length);
    w->gap += length;
    w->gap_width += width;
    return good;
}

static bool take_tab(mgl_cli_wrap *w)
{
    bool good = end_word(w);
    w->plain |= !w->begun;
    w->begun = true;
    forget_word(w);
    w->column += TAB - w->column % TAB;
    if (w->column > w->width)
        w->column = w->width;
    return good && w->put("\t", 1);
}

static bool take_letter(mgl_cli_wrap *w, uint32_t c, const char *bytes, size_t length)
{
    bool good = true;
    if (w->last && may_break(w, c) && (w->begun || w->word > FENCE)) {
        if (w->word)
            good = end_word(w);
        w->through = false;
    }
    w->last = c;
    hold(w, bytes, length);
    w->word += length;
    w->word_width += width_of(c);
    bool whole = w->plain || w->through || w->word_width > w->width ||
                 w->gap + w->word > MGL_CLI_WRAP_HELD - MOST_CHARACTER;
    if (!whole || (!w->begun && w->word < FENCE))
        return good;
    good &= end_word(w);
    w->through = true;
    return good;
}

static bool take(mgl_cli_wrap *w, const char *bytes, size_t length)
{
    uint32_t c = 0xFFFD;
    size_t used;
    if (mgl_utf8_look(bytes, length, &used) == MGL_UTF8_WHOLE)
        mgl_utf8_next(bytes, &c);
    if (c == '\n')
        return take_line_end(w);
    if (c == '\t')
        return take_tab(w);
    return is_blank(c) ? take_blank(w, bytes, length, width_of(c))
                       : take_letter(w, c, bytes, length);
}

/* ---- the stream ------------------------------------------------------------------------------ */

/* Updates the width, which may change between texts. */
static void look_at_width(mgl_cli_wrap *w)
{
    w->width = w->columns();
    if (w->width > 0 && w->column > w->width)
        w->column = (w->column - 1) % w->width + 1;
}

bool mgl_cli_wrap_end(mgl_cli_wrap *w)
{
    bool good = true;
    if (w->gap || w->word)
        good = end_word(w);
    if (w->part_length)
        good &= w->put(w->part, w->part_length);
    w->part_length = 0;
    return good;
}

/* Completes a character that began in the text before. Returns how many bytes of this text belong
 * to it. */
static size_t complete(mgl_cli_wrap *w, const char *text, size_t length, bool *good)
{
    size_t taken = 0, used = 0;
    mgl_utf8_kind kind = MGL_UTF8_CUT;
    while (w->part_length && kind == MGL_UTF8_CUT && taken < length) {
        w->part[w->part_length++] = text[taken++];
        kind = mgl_utf8_look(w->part, w->part_length, &used);
    }
    if (kind == MGL_UTF8_CUT)
        return taken;
    if (kind == MGL_UTF8_BAD && taken && used < w->part_length)
        taken--; /* the byte begins another character */
    *good &= take(w, w->part, kind == MGL_UTF8_BAD ? used : w->part_length);
    w->part_length = 0;
    return taken;
}

bool mgl_cli_wrap_print(mgl_cli_wrap *w, const char *text, size_t length)
{
    bool good = true;
    look_at_width(w);
    if (w->width <= 0)
        return mgl_cli_wrap_end(w) && (!length || w->put(text, length));
    size_t at = complete(w, text, length, &good), used;
    while (at < length && good) {
        if (mgl_utf8_look(text + at, length - at, &used) == MGL_UTF8_CUT) {
            w->part_length = length - at;
            memcpy(w->part, text + at, w->part_length);
            return good;
        }
        good = take(w, text + at, used);
        at += used;
    }
    return good;
}
