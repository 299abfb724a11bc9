/*
 * Reads lines with libedit or from the terminal or a pipe, with interruption through a pipe. See
 * lines.h.
 */
#include "cli/lines.h"

#include "base/utf8.h"
#include "cli/cli.h"
#include "cli/libedit.h"

#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

enum { HISTORY = 1000, MARK = 1 /* history: entries; mark: around escape sequences in a prompt */ };

#define BOLD  "\033[1m"
#define PLAIN "\033[0m"

/* ---- bytes ----------------------------------------------------------------------------------- */

typedef enum input { GOT_END, GOT_BYTE, GOT_INTERRUPT, GOT_ERROR } input;

void mgl_cli_lines_calm(mgl_cli_lines *lines)
{
    char bytes[64];
    while (read(lines->wake[0], bytes, sizeof bytes) > 0)
        continue;
}

void mgl_cli_lines_interrupt(const mgl_cli_lines *lines)
{
    if (write(lines->wake[1], "", 1) < 0)
        return; /* the pipe is full: an interruption is pending already */
}

/* Waits for input or an interruption, and fills the buffer. */
static input fill(mgl_cli_lines *lines)
{
    struct pollfd in[] = {{.fd = lines->wake[0], .events = POLLIN},
                          {.fd = STDIN_FILENO, .events = POLLIN}};
    if (poll(in, 2, -1) < 0)
        return errno == EINTR ? GOT_BYTE : GOT_ERROR;
    if (in[0].revents) {
        mgl_cli_lines_calm(lines);
        lines->at = lines->length = 0;
        return GOT_INTERRUPT;
    }
    ssize_t count = read(STDIN_FILENO, lines->buffer, sizeof lines->buffer);
    if (count < 0)
        return errno == EINTR || errno == EAGAIN ? GOT_BYTE : GOT_ERROR;
    lines->at = 0;
    lines->length = (size_t)count;
    return count ? GOT_BYTE : GOT_END;
}

static input get_byte(mgl_cli_lines *lines, char *out)
{
    while (lines->at == lines->length) {
        input got = fill(lines);
        if (got != GOT_BYTE)
            return got;
    }
    *out = lines->buffer[lines->at++];
    return GOT_BYTE;
}

/* ---- reading without an editor --------------------------------------------------------------- */

/* Writes to the terminal. */
static void show(const mgl_cli_lines *lines, const char *before, const char *text,
                 const char *behind)
{
    FILE *to = isatty(STDOUT_FILENO) ? stdout : stderr;
    if (!lines->terminal || !isatty(fileno(to)))
        return;
    fprintf(to, "%s%s%s", before, text, behind);
    fflush(to);
}

static input read_plain(mgl_cli_lines *lines, mgl_text *out)
{
    char c;
    input got;
    size_t start = out->length;
    show(lines, lines->colour ? BOLD : "", lines->more ? "..." : ">>>",
         lines->colour ? PLAIN " " : " ");
    while ((got = get_byte(lines, &c)) == GOT_BYTE && c != '\n' &&
           out->length - start < MGL_CLI_MAX_TEXT)
        mgl_text_append(out, &c, 1);
    if (got == GOT_END && out->length > start)
        got = GOT_BYTE; /* the last line needs no line end */
    if (got == GOT_BYTE && out->length > start && out->bytes[out->length - 1] == '\r')
        out->bytes[--out->length] = 0;
    lines->typed = out->length > start;
    if (got != GOT_BYTE)
        show(lines, "", "\n", "");
    return got;
}

/* ---- reading with libedit -------------------------------------------------------------------- */

static mgl_cli_lines *lines_of(void *editor)
{
    void *lines = NULL;
    mgl_libedit_find()->get(editor, MGL_LIBEDIT_USER, &lines);
    return lines;
}

/* The blank is last, because libedit drops escape sequences at the end of a prompt. */
static wchar_t *choose_prompt(void *editor)
{
    static wchar_t prompts[2][2][32] = {
        {L">>> ", L"... "},
        {L"\1" BOLD L"\1>>>\1" PLAIN L"\1 ", L"\1" BOLD L"\1...\1" PLAIN L"\1 "}};
    const mgl_cli_lines *lines = lines_of(editor);
    return prompts[lines->colour][lines->more];
}

/* libedit's callback for a character: 1; 0 at the end; -1 on an error or interruption. */
static int get_character(void *editor, wchar_t *out)
{
    mgl_cli_lines *lines = lines_of(editor);
    mbstate_t state = {0};
    size_t made = (size_t)-2;
    char c;
    while (made == (size_t)-2) {
        input got = get_byte(lines, &c);
        if (got == GOT_INTERRUPT) {
            const mgl_libedit_line *line = lines->edit->line(editor);
            lines->interrupted = true;
            lines->typed = line->last > line->start;
        }
        if (got != GOT_BYTE)
            return got == GOT_END ? 0 : -1;
        made = mbrtowc(out, &c, 1, &state);
    }
    if (made == (size_t)-1)
        *out = 0xFFFD;
    return 1;
}

static void put_character(mgl_text *out, wchar_t c)
{
    char bytes[4];
    mgl_text_append(out, bytes, (size_t)mgl_utf8_put((uint32_t)c, bytes));
}

static input read_edited(mgl_cli_lines *lines, mgl_text *out)
{
    int count = 0;
    mgl_libedit_event event;
    lines->interrupted = false;
    lines->edit->resize(lines->editor);
    /* libedit itself does this after the prompt; a Ctrl-D typed before would then be lost. */
    lines->edit->set(lines->editor, MGL_LIBEDIT_TERMINAL, 1);
    const wchar_t *line = lines->edit->read(lines->editor, &count);
    if (lines->interrupted || !line || count <= 0) {
        show(lines, "", "\n", "");
        return lines->interrupted ? GOT_INTERRUPT : GOT_END;
    }
    for (int i = 0; i < count && line[i] != L'\n' && line[i] != L'\r'; i++)
        put_character(out, line[i]);
    if (line[0] != L'\n')
        lines->edit->history(lines->history, &event, MGL_LIBEDIT_ENTER, line);
    return GOT_BYTE;
}

static bool is_dumb(void)
{
    const char *kind = getenv("TERM");
    return !kind || !kind[0] || !strcmp(kind, "dumb");
}

/* A UTF-8 locale: the user's, or C.UTF-8. */
static locale_t open_locale(void)
{
    static const char *const names[] = {"", "C.UTF-8"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        locale_t locale = newlocale(LC_CTYPE_MASK, names[i], NULL);
        if (locale && !strcmp(nl_langinfo_l(CODESET, locale), "UTF-8"))
            return locale;
        if (locale)
            freelocale(locale);
    }
    return NULL;
}

static void close_editor(mgl_cli_lines *lines)
{
    if (lines->editor)
        lines->edit->close(lines->editor);
    if (lines->history)
        lines->edit->history_close(lines->history);
    if (lines->locale) {
        uselocale(lines->before);
        freelocale(lines->locale);
    }
    lines->editor = lines->history = NULL;
    lines->locale = NULL;
}

/* Opens libedit. On any failure, the terminal edits the lines. */
static void open_editor(mgl_cli_lines *lines)
{
    mgl_libedit_event event;
    const mgl_libedit *edit = mgl_libedit_find();
    lines->locale = edit ? open_locale() : NULL;
    if (!lines->locale)
        return;
    lines->before = uselocale(lines->locale);
    lines->edit = edit;
    lines->editor = edit->open("megalith", stdin, stdout, stderr);
    lines->history = edit->history_open();
    if (!lines->editor || !lines->history) {
        close_editor(lines);
        return;
    }
    edit->history(lines->history, &event, MGL_LIBEDIT_SIZE, HISTORY);
    edit->history(lines->history, &event, MGL_LIBEDIT_UNIQUE, 1);
    edit->set(lines->editor, MGL_LIBEDIT_USER, lines);
    edit->set(lines->editor, MGL_LIBEDIT_SIGNAL, 0);
    edit->set(lines->editor, MGL_LIBEDIT_EDITOR, L"emacs");
    edit->set(lines->editor, MGL_LIBEDIT_HISTORY, edit->history, lines->history);
    edit->set(lines->editor, MGL_LIBEDIT_PROMPT, choose_prompt, MARK);
    edit->set(lines->editor, MGL_LIBEDIT_GET_CHARACTER, get_character);
    edit->source(lines->editor, NULL);
}

/* ---- lines ----------------------------------------------------------------------------------- */

mgl_status mgl_cli_lines_open(mgl_cli_lines *lines, mgl_error *err)
{
    const char *no_colour = getenv("NO_COLOR");
    *lines = (mgl_cli_lines){.terminal = isatty(STDIN_FILENO) != 0, .wake = {-1, -1}};
    if (pipe2(lines->wake, O_CLOEXEC | O_NONBLOCK))
        return mgl_fail_errno(err, NULL, "the system cannot create a pipe");
    bool able = lines->terminal && isatty(STDOUT_FILENO) && !is_dumb();
    lines->colour = able && !(no_colour && no_colour[0]);
    if (able)
        open_editor(lines);
    return MGL_OK;
}

mgl_status mgl_cli_lines_read(mgl_cli_lines *lines, bool more, mgl_text *out, mgl_cli_line *kind,
                              mgl_error *err)
{
    lines->more = more;
    input got = lines->editor ? read_edited(lines, out) : read_plain(lines, out);
    if (got == GOT_ERROR)
        return mgl_fail_errno(err, "standard input", "could not be read");
    if (out->failed || out->length >= MGL_CLI_MAX_TEXT)
        return out->failed ? mgl_fail_memory(err, out->capacity)
                           : mgl_fail(err, MGL_BAD_INPUT, "standard input",
                                      "a message is larger than %d MiB", MGL_CLI_MAX_TEXT >> 20);
    *kind = got == GOT_BYTE  ? MGL_CLI_LINE
            : got == GOT_END ? MGL_CLI_LINE_END
            : lines->typed   ? MGL_CLI_LINE_DROPPED
                             : MGL_CLI_LINE_INTERRUPTED;
    return MGL_OK;
}

void mgl_cli_lines_close(mgl_cli_lines *lines)
{
    close_editor(lines);
    for (int i = 0; i < 2; i++)
        if (lines->wake[i] >= 0)
            close(lines->wake[i]);
    *lines = (mgl_cli_lines){.wake = {-1, -1}};
}
