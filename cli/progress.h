/*
 * How far long work is: one line on the terminal of standard error, drawn over itself.
 *
 *     weights  [#########-----------]  45 %  1.3 of 2.9 GB, 812 MB/s, 2 s left
 *
 * It is shown for what has lasted a second, ten times a second at most, and erased before anything
 * else is printed on that terminal. It is made of plain characters, carriage returns and blanks:
 * there is no escape sequence in it. Nothing is shown where standard error is no terminal, where
 * the terminal says that it is dumb, and with --quiet.
 */
#ifndef MGL_CLI_PROGRESS_H
#define MGL_CLI_PROGRESS_H

#include "megalith.h"

/*  what is counted, a unit's name behind the numbers */
#define MGL_CLI_COUNTS(X)                                                                          \
    X(BYTES, "B")                                                                                  \
    X(TOKENS, "tokens")                                                                            \
    X(SAMPLES, "samples")

typedef enum mgl_cli_count {
#define MGL_X(id, name) MGL_CLI_COUNT_##id,
    MGL_CLI_COUNTS(MGL_X)
#undef MGL_X
} mgl_cli_count;

/* How far something is. */
typedef struct mgl_cli_progress {
    const char *label; /* what is going on: static storage */
    mgl_cli_count count;
    uint64_t done, total; /* total 0: nobody knows how long it takes */
    double seconds;       /* since it began; set by mgl_cli_bar_show */
} mgl_cli_progress;

/* A place for the line. Zero-initialised, it shows nothing. */
typedef struct mgl_cli_bar {
    bool on;
    int descriptor;    /* of the terminal */
    double delay_s;    /* what lasts no longer is not shown */
    const char *label; /* of what is going on; NULL: nothing */
    const char *text;  /* the whole line, in place of label and numbers; or NULL */
    double start_s;    /* clock when that began */
    double drawn_s;    /* clock when the line was drawn last */
    int shown;         /* characters on the terminal */
} mgl_cli_bar;

enum { MGL_CLI_MAX_BAR = 160 }; /* characters of a line, at most */

/* Writes the line in fewer than `columns` characters; its length. `to`: MGL_CLI_MAX_BAR + 1. */
int mgl_cli_bar_format(char *to, int columns, const mgl_cli_progress *progress);
/* Shows it when it is time to. With done == total it is over, and what was shown is erased. */
void mgl_cli_bar_show(mgl_cli_bar *bar, const mgl_cli_progress *progress);
void mgl_cli_bar_erase(mgl_cli_bar *bar);

/* ---- the one bar of the program -------------------------------------------------------------- */

/* From here on progress is shown, if standard error is a terminal that can. */
void mgl_cli_start_bar(void);
bool mgl_cli_has_bar(void);
/* On the thread that called the library. */
void mgl_cli_show(const char *label, mgl_cli_count count, uint64_t done, uint64_t total);
/* The same with a line of the caller's; it lasts until something else is shown. */
void mgl_cli_show_text(const char *label, const char *text);
/* mgl_cli_show as the library calls it. */
mgl_stage_fn mgl_cli_show_stage;
/* Before anything is printed; from any thread. */
void mgl_cli_erase_bar(void);
/* The same, and shows nothing more. */
void mgl_cli_stop_bar(void);

#endif
