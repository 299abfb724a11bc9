/*
 * Lines that a person types, or that come through a pipe. On a terminal libedit edits them, with a
 * history, where it is installed; else the terminal does. Waiting for a line can be interrupted
 * from another thread.
 *
 * Nothing is remembered beyond the program's end: what was typed stays with the terminal.
 */
#ifndef MGL_CLI_LINES_H
#define MGL_CLI_LINES_H

#include "base/error.h"
#include "base/text.h"

#include <locale.h>

struct mgl_libedit;

/* Release with mgl_cli_lines_close, also where opening failed. It stays where it was opened. */
typedef struct mgl_cli_lines {
    bool terminal; /* lines come from one */
    bool colour;   /* the prompt has an escape sequence around it */
    bool more;     /* the prompt is that of a further line */
    const struct mgl_libedit *edit;
    void *editor, *history;  /* of libedit; NULL: none */
    locale_t locale, before; /* of this thread while there is an editor: libedit prints by it */
    int wake[2];             /* a pipe: what is written to it interrupts */
    char buffer[4096];       /* (length) what was read and not taken, from `at` on */
    size_t at, length;
    bool interrupted, typed; /* the line was; something had been typed */
} mgl_cli_lines;

typedef enum mgl_cli_line {
    MGL_CLI_LINE,
    MGL_CLI_LINE_END,        /* there is none any more: Ctrl-D, or the end of the pipe */
    MGL_CLI_LINE_DROPPED,    /* interrupted, with something in it */
    MGL_CLI_LINE_INTERRUPTED /* interrupted where nothing was typed, as far as that is known */
} mgl_cli_line;

mgl_status mgl_cli_lines_open(mgl_cli_lines *lines, mgl_error *err);
/* Reads a line, appends it without its end to *out, and says what came. `more`: it goes on with the
 * one before. */
mgl_status mgl_cli_lines_read(mgl_cli_lines *lines, bool more, mgl_text *out, mgl_cli_line *kind,
                              mgl_error *err);
/* From any thread: whoever waits for a line, or will, is interrupted. */
void mgl_cli_lines_interrupt(const mgl_cli_lines *lines);
/* A new start: an interruption that nobody saw is forgotten. */
void mgl_cli_lines_calm(mgl_cli_lines *lines);
void mgl_cli_lines_close(mgl_cli_lines *lines);

#endif
