/*
 * Progress of long work: one line on the terminal of standard error, redrawn in place.
 *
 *     weights  [#########-----------]  45 %  1.3 of 2.9 GB, 812 MB/s, 2 s left
 *
 * The line appears after one second of work and is redrawn at most ten times a second. It is erased
 * before anything else is printed on that terminal. It consists of plain characters, carriage
 * returns and blanks, without escape sequences. Nothing is shown if standard error is not a
 * terminal, if TERM is "dumb" or empty, or with --quiet.
 */
#ifndef MGL_CLI_PROGRESS_H
#define MGL_CLI_PROGRESS_H

#include "megalith.h"

/* kinds of counts, and the unit printed after the numbers */
#define MGL_CLI_COUNTS(X)                                                                          \
    X(BYTES, "B")                                                                                  \
    X(TOKENS, "tokens")                                                                            \
    X(SAMPLES, "samples")

typedef enum mgl_cli_count {
#define MGL_X(id, name) MGL_CLI_COUNT_##id,
    MGL_CLI_COUNTS(MGL_X)
#undef MGL_X
} mgl_cli_count;

/* The state of the work. */
typedef struct mgl_cli_progress {
    const char *label; /* name of the work, static storage */
    mgl_cli_count count;
    uint64_t done, total; /* total 0: unknown */
    double seconds;       /* since the start; set by mgl_cli_bar_show */
} mgl_cli_progress;

/* A progress line. Zero-initialized, it shows nothing. */
typedef struct mgl_cli_bar {
    bool on;
    int descriptor;    /* descriptor of the terminal */
    double delay_s;    /* shorter work is not shown */
    const char *label; /* name of the current work; NULL: none */
    const char *text;  /* the whole line, instead of label and numbers; or NULL */
    double start_s;    /* clock at the start of the work */
    double drawn_s;    /* clock at the last drawing */
    int shown;         /* characters now on the terminal */
} mgl_cli_bar;

enum { MGL_CLI_MAX_BAR = 160 }; /* characters of a line, at most */

/* Formats the line in fewer than `columns` characters and returns its length. `to` has
 * MGL_CLI_MAX_BAR + 1 bytes. */
int mgl_cli_bar_format(char *to, int columns, const mgl_cli_progress *progress);
/* Draws the line if it is due. If done == total, the work is over and the line is erased. */
void mgl_cli_bar_show(mgl_cli_bar *bar, const mgl_cli_progress *progress);
void mgl_cli_bar_erase(mgl_cli_bar *bar);

/* ---- the one bar of the program -------------------------------------------------------------- */

/* Enables progress if standard error is a terminal that can redraw a line. */
void mgl_cli_start_bar(void);
bool mgl_cli_has_bar(void);
/* Shows the progress of the work. Call it on the thread that called the library. */
void mgl_cli_show(const char *label, mgl_cli_count count, uint64_t done, uint64_t total);
/* Shows the caller's text until something else is shown. */
void mgl_cli_show_text(const char *label, const char *text);
/* mgl_cli_show as a callback of the library. */
mgl_stage_fn mgl_cli_show_stage;
/* Call before printing anything; from any thread. */
void mgl_cli_erase_bar(void);
/* Erases the line and disables progress. */
void mgl_cli_stop_bar(void);

#endif
