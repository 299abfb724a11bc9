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
    int master, slave; /* the master side; the program's side, -1: closed */
    char *bytes;       /* (length) all output, 0-terminated */
    size_t length;
    char screen[SCREEN_ROWS][SCREEN_COLUMNS + 1]; /* lines without trailing blanks */
} terminal;

/* Release with terminal_close. */
void terminal_open(terminal *t, int columns);
void terminal_close(terminal *t);

/* Starts build/megalith with `line` split at blanks. Its three streams are the terminal, or
 * standard output or error is /dev/null. `kind`: TERM. */
typedef struct terminal_program {
    const char *line, *kind;
    bool no_output, no_error; /* that stream is not on the terminal */
} terminal_program;
pid_t terminal_start(terminal *t, const terminal_program *program);
/* The same for any program with all streams on the terminal; arguments end with NULL. */
pid_t terminal_start_other(terminal *t, char **argv);
/* The same for a login shell that reads what is written to `master`. */
pid_t terminal_start_shell(terminal *t);

/* Reads the output for this time. Returns false if the program has closed the terminal. */
bool terminal_read(terminal *t, double seconds);
/* Reads until `text` appears, at most for this time. Returns whether it appeared. */
bool terminal_await(terminal *t, const char *text, double seconds);
/* Reads to the end; the exit code, or 128 + signal. */
int terminal_end(terminal *t, pid_t pid);

/* Fills the screen from the bytes. */
void terminal_draw(terminal *t);

#endif
