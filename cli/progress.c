/*
 * Formats and draws the progress line. The program has one line, guarded by a lock. See progress.h.
 */
#include "cli/progress.h"

#include "base/clock.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { COLUMNS = 80, LABEL = 8, LEAST_BAR = 10, MOST_BAR = 30, DETAILS = 100 };

static const double delay_s = 1, pause_s = 0.1;
static const long wait_ns = 20000000; /* longest wait for the bar's lock */

/* ---- the line -------------------------------------------------------------------------------- */

static const char *count_name(mgl_cli_count count)
{
    static const char *const names[] = {
#define MGL_X(id, name) [MGL_CLI_COUNT_##id] = name,
        MGL_CLI_COUNTS(MGL_X)
#undef MGL_X
    };
    return names[count];
}

/* The unit for a number of bytes. */
static double byte_unit(double bytes, const char **name)
{
    static const char *const names[] = {"kB", "MB", "GB", "TB"};
    double unit = 1e3;
    int i = 0;
    for (; i < 3 && bytes >= 1e3 * unit; i++)
        unit *= 1e3;
    *name = names[i];
    return unit;
}

/* "1.3 of 2.9 GB, 812 MB/s" */
static int format_bytes(char *to, size_t size, const mgl_cli_progress *p, double rate)
{
    const char *of, *rated;
    double unit = byte_unit((double)p->total, &of), rate_unit = byte_unit(rate, &rated);
    return snprintf(to, size, "%.1f of %.1f %s, %.0f %s/s", (double)p->done / unit,
                    (double)p->total / unit, of, rate / rate_unit, rated);
}

/* "812 of 8578 tokens, 85.3 tokens/s" */
static int format_count(char *to, size_t size, const mgl_cli_progress *p, double rate)
{
    const char *name = count_name(p->count);
    return snprintf(to, size, "%" PRIu64 " of %" PRIu64 " %s, %.*f %s/s", p->done, p->total, name,
                    rate < 1     ? 2
                    : rate < 100 ? 1
                                 : 0,
                    rate, name);
}

/* ", 2 s left" */
static void format_left(char *to, size_t size, double seconds)
{
    if (seconds < 100)
        snprintf(to, size, ", %.0f s left", ceil(seconds));
    else
        snprintf(to, size, ", %.0f min left", ceil(seconds / 60));
}

/* Amounts, rate and remaining time, if known. */
static void format_details(char *to, size_t size, const mgl_cli_progress *p)
{
    double rate = p->seconds > 0 ? (double)p->done / p->seconds : 0;
    int length = p->count == MGL_CLI_COUNT_BYTES ? format_bytes(to, size, p, rate)
                                                 : format_count(to, size, p, rate);
    if (rate > 0 && length < (int)size)
        format_left(to + length, size - (size_t)length, (double)(p->total - p->done) / rate);
}

/* "[#########-----------]", as wide as there is room; "" when there is too little. */
static void format_bar(char *to, int room, double part)
{
    int width = room - 3 < MOST_BAR ? room - 3 : MOST_BAR;
    int full = (int)(part * width);
    *to = 0;
    if (width < LEAST_BAR)
        return;
    *to++ = '[';
    memset(to, '#', (size_t)full);
    memset(to + full, '-', (size_t)(width - full));
    memcpy(to + width, "] ", 3);
}

int mgl_cli_bar_format(char *to, int columns, const mgl_cli_progress *p)
{
    char details[DETAILS], bar[MOST_BAR + 8];
    int most = columns - 1 < MGL_CLI_MAX_BAR ? columns - 1 : MGL_CLI_MAX_BAR, length;
    if (most < 1)
        most = 0;
    if (p->total == 0) {
        length = snprintf(to, (size_t)most + 1, "%-*s %.0f s", LABEL, p->label, p->seconds);
    } else {
        double part = p->done < p->total ? (double)p->done / (double)p->total : 1;
        format_details(details, sizeof details, p);
        format_bar(bar, most - (LABEL + 1 + 5 + 2 + (int)strlen(details)), part);
        length = snprintf(to, (size_t)most + 1, "%-*s %s%3.0f %%  %s", LABEL, p->label, bar,
                          100 * part, details);
    }
    return length < most ? length : most;
}

/* ---- drawing --------------------------------------------------------------------------------- */

static int columns_of(int descriptor)
{
    struct winsize size;
    return !ioctl(descriptor, TIOCGWINSZ, &size) && size.ws_col > 0 ? size.ws_col : COLUMNS;
}

/* Ignores errors: a terminal may be gone. */
static void write_out(const mgl_cli_bar *bar, const char *bytes, int length)
{
    if (write(bar->descriptor, bytes, (size_t)length) < 0)
        return;
}

void mgl_cli_bar_erase(mgl_cli_bar *bar)
{
    char line[MGL_CLI_MAX_BAR + 3];
    if (bar->shown == 0)
        return;
    memset(line, ' ', sizeof line);
    line[0] = line[bar->shown + 1] = '\r';
    write_out(bar, line, bar->shown + 2);
    bar->shown = 0;
}

static int format_text(char *to, int columns, const char *text)
{
    const int most = columns - 1 < MGL_CLI_MAX_BAR ? columns - 1 : MGL_CLI_MAX_BAR;
    return most > 0 ? snprintf(to, (size_t)most + 1, "%.*s", most, text) : 0;
}

/* Blanks overwrite the rest of a longer line. */
static void draw(mgl_cli_bar *bar, const mgl_cli_progress *progress)
{
    char line[2 * MGL_CLI_MAX_BAR + 2];
    const int columns = columns_of(bar->descriptor);
    const int length = bar->text ? format_text(line + 1, columns, bar->text)
                                 : mgl_cli_bar_format(line + 1, columns, progress);
    int rest = bar->shown > length ? bar->shown - length : 0;
    line[0] = '\r';
    memset(line + 1 + length, ' ', (size_t)rest);
    write_out(bar, line, 1 + length + rest);
    bar->shown = length + rest;
}

void mgl_cli_bar_show(mgl_cli_bar *bar, const mgl_cli_progress *progress)
{
    mgl_cli_progress now = *progress;
    double clock = mgl_clock_s();
    if (!bar->on)
        return;
    if (!bar->label || strcmp(bar->label, now.label) != 0) {
        mgl_cli_bar_erase(bar);
        bar->label = now.label;
        bar->start_s = clock;
    }
    now.seconds = clock - bar->start_s;
    if (now.total > 0 && now.done >= now.total) {
        mgl_cli_bar_erase(bar);
        bar->label = NULL;
    } else if (now.seconds >= bar->delay_s && clock - bar->drawn_s >= pause_s) {
        draw(bar, &now);
        bar->drawn_s = clock;
    }
}

/* ---- the one bar of the program -------------------------------------------------------------- */

static mgl_cli_bar the_bar;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the_bar */

void mgl_cli_start_bar(void)
{
    const char *kind = getenv("TERM");
    bool dumb = !kind || !kind[0] || !strcmp(kind, "dumb");
    the_bar = (mgl_cli_bar){
        .on = isatty(STDERR_FILENO) && !dumb, .descriptor = STDERR_FILENO, .delay_s = delay_s};
}

bool mgl_cli_has_bar(void)
{
    pthread_mutex_lock(&lock);
    bool on = the_bar.on;
    pthread_mutex_unlock(&lock);
    return on;
}

void mgl_cli_show(const char *label, mgl_cli_count count, uint64_t done, uint64_t total)
{
    mgl_cli_progress progress = {.label = label, .count = count, .done = done, .total = total};
    pthread_mutex_lock(&lock);
    mgl_cli_bar_show(&the_bar, &progress);
    pthread_mutex_unlock(&lock);
}

void mgl_cli_show_text(const char *label, const char *text)
{
    const mgl_cli_progress progress = {.label = label};
    pthread_mutex_lock(&lock);
    the_bar.text = text;
    mgl_cli_bar_show(&the_bar, &progress);
    the_bar.text = NULL;
    pthread_mutex_unlock(&lock);
}

void mgl_cli_show_stage(void *user, mgl_stage stage, uint64_t done, uint64_t total)
{
    static const struct {
        const char *label;
        mgl_cli_count count;
    } stages[] = {[MGL_STAGE_WEIGHTS] = {"weights", MGL_CLI_COUNT_BYTES},
                  [MGL_STAGE_KERNEL] = {"kernel", MGL_CLI_COUNT_BYTES},
                  [MGL_STAGE_PROMPT] = {"prompt", MGL_CLI_COUNT_TOKENS}};
    (void)user;
    mgl_cli_show(stages[stage].label, stages[stage].count, done, total);
}

/* False if another thread holds the bar, because the terminal does not accept output. */
static bool take_bar(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += wait_ns;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    return !pthread_mutex_timedlock(&lock, &until);
}

void mgl_cli_erase_bar(void)
{
    if (!take_bar())
        return;
    mgl_cli_bar_erase(&the_bar);
    pthread_mutex_unlock(&lock);
}

void mgl_cli_stop_bar(void)
{
    if (!take_bar())
        return;
    mgl_cli_bar_erase(&the_bar);
    the_bar.on = false;
    pthread_mutex_unlock(&lock);
}
