/*
 * A pseudo-terminal for tests, with the visible screen: one screen of lines, where a carriage
 * return moves to the first column and new characters overwrite old ones.
 */
#ifndef MGL_TESTS_CLI_TERMINAL_H
#define MGL_TESTS_CLI_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { SCREEN_ROWS = 64, SCREEN_COLUMNS = 256 };

typedef struct terminal {
    int master, slave; /* what we read; what a program has as its terminal; -1: closed */
    char *bytes;       /* (length) all that came, 0-terminated */
    size_t length;
    char screen[SCREEN_ROWS][SCREEN_COLUMNS + 1]; /* lines without the blanks at their ends */
} terminal;

/* Release with terminal_close. */
void terminal_open(terminal *t, int columns);
void terminal_close(terminal *t);

/* Starts build/megalith with `line` split at blanks, its three streams on the terminal, or standard
 * output or error on /dev/null. `kind`: TERM. */
typedef struct terminal_program {
    const char *line, *kind;
    bool no_output, no_error; /* those two are not on the terminal */
} terminal_program;
pid_t terminal_start(terminal *t, const terminal_program *program);
/* The same of any program, NULL behind its last argument, with all streams on the terminal. */
pid_t terminal_start_other(terminal *t, char **argv);
/* The same of a shell that reads what is written to `master`, as after a login. */
pid_t terminal_start_shell(terminal *t);

/* Reads what comes within that time, or until the program has closed the terminal: false then. */
bool terminal_read(terminal *t, double seconds);
/* Reads until `text` has come, at most for that time; true when it has. */
bool terminal_await(terminal *t, const char *text, double seconds);
/* Reads to the end; the exit code, or 128 + signal. */
int terminal_end(terminal *t, pid_t pid);

/* Fills the screen from the bytes. */
void terminal_draw(terminal *t);

#endif
