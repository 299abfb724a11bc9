/*
 * Declares the functions of libedit (a line editor) that a prompt needs. libedit is opened at run
 * time. Names, numbers and meanings follow its manual, editline(3); ABI 2 has had them since 2016.
 * The declarations are written for this project.
 */
#ifndef MGL_CLI_LIBEDIT_H
#define MGL_CLI_LIBEDIT_H

#include <stdbool.h>
#include <stdio.h>
#include <wchar.h>

/* Filled by history functions. */
typedef struct mgl_libedit_event {
    int number;
    const wchar_t *text;
} mgl_libedit_event;

/* The current line. */
typedef struct mgl_libedit_line {
    const wchar_t *start, *cursor, *last;
} mgl_libedit_line;

/*  member, result, symbol, arguments */
#define MGL_LIBEDIT_FUNCTIONS(X)                                                                   \
    X(open, void *, "el_init", (const char *program, FILE *in, FILE *out, FILE *error))            \
    X(close, void, "el_end", (void *editor))                                                       \
    X(set, int, "el_wset", (void *editor, int option, ...))                                        \
    X(get, int, "el_wget", (void *editor, int option, ...))                                        \
    X(read, const wchar_t *, "el_wgets", (void *editor, int *count))                               \
    X(line, const mgl_libedit_line *, "el_wline", (void *editor))                                  \
    X(resize, void, "el_resize", (void *editor))                                                   \
    X(source, int, "el_source", (void *editor, const char *file))                                  \
    X(history_open, void *, "history_winit", (void))                                               \
    X(history_close, void, "history_wend", (void *history))                                        \
    X(history, int, "history_w", (void *history, mgl_libedit_event *event, int option, ...))

typedef struct mgl_libedit {
#define MGL_X(member, result, symbol, arguments) result(*member) arguments;
    MGL_LIBEDIT_FUNCTIONS(MGL_X)
#undef MGL_X
} mgl_libedit;

enum {
    MGL_LIBEDIT_EDITOR = 2,
    MGL_LIBEDIT_SIGNAL = 3,
    MGL_LIBEDIT_HISTORY = 10,
    MGL_LIBEDIT_GET_CHARACTER = 13,
    MGL_LIBEDIT_USER = 14,
    MGL_LIBEDIT_TERMINAL = 16, /* 1: libedit sets the terminal's modes now */
    MGL_LIBEDIT_PROMPT = 21,   /* the prompt, with a mark around its escape sequences */
    /* of a history: */
    MGL_LIBEDIT_SIZE = 1,
    MGL_LIBEDIT_ENTER = 10,
    MGL_LIBEDIT_UNIQUE = 20
};

/* The table of functions, opened on first use and kept; NULL: libedit is not installed. Not thread
 * safe. */
const mgl_libedit *mgl_libedit_find(void);

#endif
