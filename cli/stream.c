/*
 * Implements the standard streams and files of cli.h. All output to standard output passes through
 * here. A full disk is reported as an error. If the reader of a pipe is gone (SIGPIPE is ignored),
 * the work ends without a message. A progress line on the terminal is erased before anything else
 * is printed there.
 */
#include "cli/cli.h"
#include "cli/progress.h"
#include "cli/wrap.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/format.h"
#include "base/output.h"
#include "importer/checkpoint.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

static int output_errno; /* errno of the first failure; 0: none */
static bool printed;     /* guarded by the lock of stdout */

static bool note(bool good)
{
    if (!good && !output_errno)
        output_errno = errno ? errno : EIO;
    return output_errno == 0;
}

static void begin_output(void)
{
    mgl_cli_erase_bar();
    flockfile(stdout);
    printed = true;
}

bool mgl_cli_print(const char *bytes, size_t length)
{
    if (length == 0)
        return output_errno == 0;
    begin_output();
    bool good = fwrite(bytes, 1, length, stdout) == length;
    funlockfile(stdout);
    return note(good);
}

bool mgl_cli_put(const char *string)
{
    return mgl_cli_print(string, strlen(string));
}

static void put_out(void *good, const char *bytes, size_t length)
{
    *(bool *)good &= fwrite(bytes, 1, length, stdout) == length;
}

bool mgl_cli_printf(const char *format, ...)
{
    va_list args;
    bool good = true;
    begin_output();
    va_start(args, format);
    mgl_format(put_out, &good, format, args);
    va_end(args);
    funlockfile(stdout);
    return note(good);
}

/* Columns of standard output; 0: it is not a terminal, or its width is unknown. */
static int count_columns(void)
{
    struct winsize size = {0};
    bool known = isatty(STDOUT_FILENO) && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    return known ? size.ws_col : 0;
}

void mgl_cli_wrap_start(mgl_cli_wrap *wrap)
{
    *wrap = (mgl_cli_wrap){.columns = count_columns, .put = mgl_cli_print};
}

bool mgl_cli_wrap_all(const char *text, size_t length)
{
    mgl_cli_wrap wrap;
    mgl_cli_wrap_start(&wrap);
    return mgl_cli_wrap_print(&wrap, text, length) && mgl_cli_wrap_end(&wrap);
}

bool mgl_cli_has_printed(void)
{
    flockfile(stdout);
    bool answer = printed;
    funlockfile(stdout);
    return answer;
}

bool mgl_cli_flush(void)
{
    return note(fflush(stdout) == 0);
}

void mgl_cli_lose_output(void)
{
    errno = ENOMEM;
    note(false);
}

mgl_status mgl_cli_output_end(mgl_error *err)
{
    mgl_cli_flush();
    if (!output_errno)
        return MGL_OK;
    if (output_errno == ENOMEM)
        return mgl_fail(err, MGL_NO_MEMORY, "standard output",
                        "out of memory: the answer could not be printed");
    if (output_errno == EPIPE)
        return mgl_fail(err, MGL_INTERRUPTED, NULL, "%s", "");
    errno = output_errno;
    return mgl_fail_errno(err, "standard output", "could not be written");
}

/* Whether a stream accepts a block without waiting for its reader. */
static bool takes_block(int descriptor)
{
    struct pollfd out = {.fd = descriptor, .events = POLLOUT};
    return poll(&out, 1, 0) == 1 && (out.revents & POLLOUT);
}

static bool takes_output(void)
{
    return takes_block(STDOUT_FILENO);
}

bool mgl_cli_takes_errors(void)
{
    if (!takes_block(STDERR_FILENO) || ftrylockfile(stderr))
        return false;
    funlockfile(stderr);
    return true;
}

/* Locks standard output. Waits at most `seconds` for a thread that prints. */
static bool take_output(double seconds)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    double end = mgl_clock_s() + seconds;
    while (ftrylockfile(stdout)) {
        if (mgl_clock_s() > end)
            return false;
        nanosleep(&pause, NULL);
    }
    return true;
}

void mgl_cli_abandon_output(const char *instead, double seconds)
{
    if (!takes_output() || !take_output(seconds) || !takes_output())
        return;
    if (!printed)
        fputs(instead, stdout);
    fflush(stdout);
}

mgl_cli_time mgl_cli_format_time(double seconds)
{
    mgl_cli_time time;
    bool small = seconds < 0.1;
    snprintf(time.text, sizeof time.text, "%.*f %s", small ? 1 : 2, small ? seconds * 1e3 : seconds,
             small ? "ms" : "s");
    return time;
}

void mgl_cli_say(const char *verb, const char *format, ...)
{
    char line[2600]; /* room for an mgl_error and the verb */
    va_list args;
    int length = snprintf(line, sizeof line, "megalith%s%s: ", verb ? " " : "", verb ? verb : "");
    va_start(args, format);
    vsnprintf(line + length, sizeof line - (size_t)length, format, args);
    va_end(args);
    mgl_cli_erase_bar();
    fprintf(stderr, "%s\n", line);
}

void mgl_cli_say_lines(const char *verb, const char *lines)
{
    while (lines && *lines) {
        int length = (int)strcspn(lines, "\n");
        mgl_cli_say(verb, "%.*s", length, lines);
        lines += length + (lines[length] == '\n');
    }
}

/* Writes all bytes to the open file and closes it; false with errno set. */
static bool write_and_close(FILE *file, const char *bytes, size_t length)
{
    bool good = fwrite(bytes, 1, length, file) == length;
    int why = errno;
    if (fclose(file) && good) {
        good = false;
        why = errno;
    }
    errno = why;
    return good;
}

/* Whether the path is a device or a pipe, which is written directly. */
static bool is_direct(const char *path)
{
    struct stat facts;
    return !stat(path, &facts) && !S_ISREG(facts.st_mode) && !S_ISDIR(facts.st_mode);
}

static mgl_status write_direct(const char *path, const char *bytes, size_t length, mgl_error *err)
{
    FILE *file = fopen(path, "wb");
    if (!file)
        return mgl_fail_errno(err, path, "could not be created");
    return write_and_close(file, bytes, length) ? MGL_OK
                                                : mgl_fail_errno(err, path, "could not be written");
}

mgl_status mgl_cli_check_file(const char *path, mgl_error *err)
{
    if (!strcmp(path, "-"))
        return mgl_fail(err, MGL_USAGE, "-o", "names a file; write ./- for one that is called -");
    return is_direct(path) ? MGL_OK : mgl_output_check(path, err);
}

mgl_status mgl_cli_check_output(const char *path, const mgl_checkpoint *checkpoint,
                                const char *config, mgl_error *err)
{
    mgl_status status = mgl_checkpoint_check_output(checkpoint, path, err);
    if (!status)
        status = mgl_file_check_output(path, config, err);
    return status ? status : mgl_cli_check_file(path, err);
}

mgl_status mgl_cli_write_file(const char *path, const char *bytes, size_t length, mgl_error *err)
{
    return is_direct(path) ? write_direct(path, bytes, length, err)
                           : mgl_output_write_file(path, bytes, length, err);
}

mgl_status mgl_cli_write_text(const char *path, const mgl_text *text, mgl_error *err)
{
    if (text->failed)
        return mgl_fail_memory(err, text->capacity);
    if (path)
        return mgl_cli_write_file(path, text->bytes, text->length, err);
    mgl_cli_print(text->bytes, text->length);
    return MGL_OK;
}

void mgl_cli_end_json(mgl_json_out *out)
{
    mgl_json_out_close(out);
    mgl_text_put(&out->text, "\n");
    if (out->text.failed) {
        mgl_cli_put("{\"schema\":\"megalith.error/1\",\"exit\":4,\"where\":\"\","
                    "\"message\":\"out of memory\"}\n");
        mgl_cli_lose_output();
    } else {
        mgl_cli_print(out->text.bytes, out->text.length);
    }
    mgl_text_clear(&out->text);
    out->comma = false;
}

mgl_status mgl_cli_finish_json(mgl_json_out *out, mgl_status status)
{
    if (!status)
        mgl_cli_end_json(out);
    mgl_text_clear(&out->text);
    return status;
}
