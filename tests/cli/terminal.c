/* Implements a pseudo-terminal and the interpretation of its output. See terminal.h. */
#include "terminal.h"

#include "base/clock.h"
#include "tests/time_limit.h"

#include <check.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_ARGUMENTS = 32, MAX_LINE = 4096, BLOCK = 4096 };

void terminal_open(terminal *t, int columns)
{
    struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};
    *t = (terminal){.master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), .slave = -1};
    ck_assert_int_ge(t->master, 0);
    ck_assert_int_eq(grantpt(t->master), 0);
    ck_assert_int_eq(unlockpt(t->master), 0);
    t->slave = open(ptsname(t->master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    ck_assert_int_ge(t->slave, 0);
    ck_assert_int_eq(ioctl(t->slave, TIOCSWINSZ, &size), 0);
}

void terminal_close(terminal *t)
{
    if (t->slave >= 0)
        close(t->slave);
    close(t->master);
    free(t->bytes);
}

static void split(char *line, char **argv)
{
    int count = 1;
    argv[0] = (char *)(uintptr_t)MGL_BINARY_DIR "/megalith";
    for (char *word = strtok(line, " "); word; word = strtok(NULL, " ")) {
        ck_assert_int_lt(count, MAX_ARGUMENTS - 1);
        argv[count++] = word;
    }
    argv[count] = NULL;
}

static _Noreturn void execute(terminal *t, const terminal_program *program, char **argv)
{
    int nothing = open("/dev/null", O_RDWR);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    setsid();
    ioctl(t->slave, TIOCSCTTY, 0);
    dup2(t->slave, 0);
    dup2(program->no_output ? nothing : t->slave, 1);
    dup2(program->no_error ? nothing : t->slave, 2);
    setenv("TERM", program->kind, 1);
    execv(argv[0], argv);
    _exit(99);
}

static pid_t start(terminal *t, const terminal_program *program, char **argv)
{
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0)
        execute(t, program, argv);
    close(t->slave);
    t->slave = -1;
    return pid;
}

pid_t terminal_start(terminal *t, const terminal_program *program)
{
    static char copy[MAX_LINE];
    char *argv[MAX_ARGUMENTS];
    ck_assert_uint_lt(strlen(program->line), sizeof copy);
    strcpy(copy, program->line);
    split(copy, argv);
    return start(t, program, argv);
}

pid_t terminal_start_other(terminal *t, char **argv)
{
    return start(t, &(terminal_program){.kind = "dumb"}, argv);
}

pid_t terminal_start_shell(terminal *t)
{
    char *argv[] = {(char *)(uintptr_t) "/bin/sh", (char *)(uintptr_t) "-i", NULL};
    return terminal_start_other(t, argv);
}

/* Reads the available output. False at the end. */
static bool take(terminal *t)
{
    t->bytes = realloc(t->bytes, t->length + BLOCK + 1);
    ck_assert_ptr_nonnull(t->bytes);
    ssize_t n = read(t->master, t->bytes + t->length, BLOCK);
    t->length += n > 0 ? (size_t)n : 0;
    t->bytes[t->length] = 0;
    return n > 0; /* EIO: no process has the terminal open */
}

bool terminal_read(terminal *t, double seconds)
{
    double end = mgl_clock_s() + seconds, left;
    while ((left = end - mgl_clock_s()) > 0) {
        struct pollfd in = {.fd = t->master, .events = POLLIN};
        if (poll(&in, 1, (int)(left * 1000) + 1) > 0 && !take(t))
            return false;
    }
    return true;
}

bool terminal_await(terminal *t, const char *text, double seconds)
{
    double end = mgl_clock_s() + time_limit(seconds);
    bool open = true;
    while (open && mgl_clock_s() < end && !(t->bytes && strstr(t->bytes, text)))
        open = terminal_read(t, 0.01);
    return t->bytes && strstr(t->bytes, text);
}

int terminal_end(terminal *t, pid_t pid)
{
    int status;
    while (terminal_read(t, 1))
        continue;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void terminal_draw(terminal *t)
{
    int row = 0, column = 0;
    memset(t->screen, ' ', sizeof t->screen);
    for (size_t i = 0; i < t->length; i++) {
        char c = t->bytes[i];
        if (c == '\r')
            column = 0;
        else if (c == '\n')
            row++;
        else
            t->screen[row][column++] = c;
        ck_assert_int_lt(row, SCREEN_ROWS);
        ck_assert_int_lt(column, SCREEN_COLUMNS);
    }
    for (row = 0; row < SCREEN_ROWS; row++) {
        column = SCREEN_COLUMNS;
        while (column > 0 && t->screen[row][column - 1] == ' ')
            column--;
        t->screen[row][column] = 0;
    }
}
