/*
 * Reads lines that a person types or that a pipe delivers, for `chat`. If standard input and output
 * are terminals and libedit is installed, libedit edits the lines with a history. Otherwise the
 * terminal edits them. Another thread can interrupt the wait for a line.
 *
 * The history is not saved: it ends with the program.
 */
#ifndef MGL_CLI_LINES_H
#define MGL_CLI_LINES_H

#include "base/error.h"
#include "base/text.h"

#include <locale.h>

struct mgl_libedit;

/* Release with mgl_cli_lines_close, also after a failed open. The struct must not move while
 * open. */
typedef struct mgl_cli_lines {
    bool terminal; /* standard input is a terminal */
    bool colour;   /* the prompt is printed in bold */
    bool more;     /* print the prompt of a continuation line */
    const struct mgl_libedit *edit;
    void *editor, *history;  /* handles of libedit; NULL: libedit is not used */
    locale_t locale, before; /* the locale of libedit, and the thread's previous locale */
    int wake[2];             /* a pipe: a byte written to it interrupts the wait */
    char buffer[4096];       /* (length) bytes read; those before `at` were consumed */
    size_t at, length;
    bool interrupted, typed; /* the line was interrupted; text was typed before */
} mgl_cli_lines;

typedef enum mgl_cli_line {
    MGL_CLI_LINE,
    MGL_CLI_LINE_END,        /* end of input: Ctrl-D, or the end of the pipe */
    MGL_CLI_LINE_DROPPED,    /* interrupted with text on the line */
    MGL_CLI_LINE_INTERRUPTED /* interrupted with no text on the line, as far as is known */
} mgl_cli_line;

mgl_status mgl_cli_lines_open(mgl_cli_lines *lines, mgl_error *err);
/* Reads a line and appends it without its line end to *out. `more`: the line continues the one
 * before. */
mgl_status mgl_cli_lines_read(mgl_cli_lines *lines, bool more, mgl_text *out, mgl_cli_line *kind,
                              mgl_error *err);
/* Interrupts the current or next wait for a line. Any thread may call it. */
void mgl_cli_lines_interrupt(const mgl_cli_lines *lines);
/* Discards pending interruptions. */
void mgl_cli_lines_calm(mgl_cli_lines *lines);
void mgl_cli_lines_close(mgl_cli_lines *lines);

#endif
