/* Implements the thread that waits for signals and ends a verb. See signals.h. */
#include "cli/signals.h"

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "vm/cuda/driver.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/*  signal, name */
#define CAUGHT_SIGNALS(X)                                                                          \
    X(SIGINT, "SIGINT")                                                                            \
    X(SIGTERM, "SIGTERM")                                                                          \
    X(SIGHUP, "SIGHUP")

enum { STACK_BYTES = 256 << 10, SIGNAL_CODE = 128 };

static const double grace_s = 0.1; /* time in which a verb may end by itself */
static const double twice_s =
    /* timeout(1) sends its signal twice, to the process and to its group */
    0.05;
static const double look_s = 0.01; /* interval of checks of the driver */
static const double turn_s = 0.02; /* longest wait for another thread's line */

static struct {
    const char *verb;
    bool json;
    mgl_cancel *cancel;
    sigset_t caught;
    atomic_int number;                 /* the first signal; 0: none */
    atomic_bool ended;                 /* the verb and its output are done */
    bool told;                         /* guarded by `telling`: the line was printed */
    void (*_Atomic answer)(bool ends); /* NULL: every signal ends the verb */
    const char *_Atomic hint;          /* follows the signal's name in the line; NULL: nothing */
} signals;

static pthread_mutex_t telling = PTHREAD_MUTEX_INITIALIZER;

/* The action before a verb is ended in the middle of its work. */
static struct {
    pthread_mutex_t lock;
    void (*leave)(const char *text); /* NULL: nothing */
    char text[PATH_MAX];
} leaving = {.lock = PTHREAD_MUTEX_INITIALIZER};

mgl_cancel *mgl_cli_cancel(void)
{
    return signals.cancel;
}

mgl_status mgl_cli_check_cancel(mgl_error *err)
{
    return atomic_load(&signals.number) ? mgl_fail_interrupted(err) : MGL_OK;
}

/* ---- messages -------------------------------------------------------------------------------- */

static const char *signal_name(int number)
{
#define MGL_X(signal, name)                                                                        \
    if (number == (signal))                                                                        \
        return name;
    CAUGHT_SIGNALS(MGL_X)
#undef MGL_X
    return "a signal";
}

/* Prints the line once. The caller holds `telling`. */
static void say_line(const char *more)
{
    const char *hint = atomic_load(&signals.hint);
    mgl_cli_stop_bar();
    if (!signals.told)
        mgl_cli_say(signals.verb, "interrupted by %s%s%s", signal_name(signals.number),
                    hint ? hint : "", more);
    signals.told = true;
}

/* Formats the "megalith.error/1" object. Its words need no escapes. */
static void write_object(char *to, size_t size)
{
    snprintf(to, size,
             "{\"schema\":\"megalith.error/1\",\"exit\":%d,\"where\":\"\","
             "\"message\":\"interrupted by %s\"}\n",
             SIGNAL_CODE + signals.number, signal_name(signals.number));
}

void mgl_cli_signals_hint(const char *hint)
{
    atomic_store(&signals.hint, hint);
}

void mgl_cli_signals_answer(void (*answer)(bool ends))
{
    atomic_store(&signals.answer, answer);
}

bool mgl_cli_signals_tell(void)
{
    char object[160];
    if (!atomic_load(&signals.number))
        return false;
    pthread_mutex_lock(&telling);
    say_line("");
    write_object(object, sizeof object);
    if (signals.json && !mgl_cli_has_printed())
        mgl_cli_put(object);
    pthread_mutex_unlock(&telling);
    return true;
}

/* ---- waiting thread -------------------------------------------------------------------------- */

static struct timespec timespec_of(double seconds)
{
    struct timespec time = {0};
    if (seconds > 0) {
        time.tv_sec = (time_t)seconds;
        time.tv_nsec = (long)((seconds - (double)time.tv_sec) * 1e9);
    }
    return time;
}

/* Locks `telling`. Gives up soon, because a thread may be blocked while it prints its line. */
static bool take_turn(void)
{
    double end = mgl_clock_s() + turn_s;
    const struct timespec pause = timespec_of(turn_s / 20);
    while (pthread_mutex_trylock(&telling)) {
        if (mgl_clock_s() > end)
            return false;
        nanosleep(&pause, NULL);
    }
    return true;
}

/* Like _exit, but without the wait for streams that ThreadSanitizer adds to _exit. */
static _Noreturn void end_program(int code)
{
    for (;;)
        syscall(SYS_exit_group, code);
}

void mgl_cli_signals_leave(void (*leave)(const char *text), const char *text)
{
    pthread_mutex_lock(&leaving.lock);
    bool fits = text && strlen(text) < sizeof leaving.text;
    leaving.leave = fits ? leave : NULL;
    if (fits)
        strcpy(leaving.text, text);
    pthread_mutex_unlock(&leaving.lock);
}

static void leave(void)
{
    pthread_mutex_lock(&leaving.lock);
    if (leaving.leave)
        leaving.leave(leaving.text);
    pthread_mutex_unlock(&leaving.lock);
}

static _Noreturn void end_by_default(int number)
{
    sigset_t one;
    leave();
    mgl_cli_stop_bar();
    signal(number, SIG_DFL);
    sigemptyset(&one);
    sigaddset(&one, number);
    pthread_sigmask(SIG_UNBLOCK, &one, NULL);
    raise(number);
    end_program(SIGNAL_CODE + number);
}

/* Ends a verb that does not end by itself. No partial file remains, because a file gets its name
 * after it is complete. */
static _Noreturn void end_verb(void)
{
    char object[160];
    leave();
    write_object(object, sizeof object);
    if (take_turn()) {
        if (mgl_cli_takes_errors())
            say_line("");
        mgl_cli_abandon_output(signals.json ? object : "", turn_s);
    }
    end_program(SIGNAL_CODE + signals.number);
}

static void say_that_it_waits(void)
{
    if (!take_turn())
        return;
    if (mgl_cli_takes_errors())
        say_line("; it ends when the GPU's driver returns, or at once after a second signal");
    pthread_mutex_unlock(&telling);
}

/* Waits for a signal; 0: none came in that time. */
static int wait_for(double seconds)
{
    struct timespec time = timespec_of(seconds);
    int number = sigtimedwait(&signals.caught, NULL, &time);
    return number > 0 ? number : 0;
}

static int wait_for_first(void)
{
    int number;
    do
        number = sigwaitinfo(&signals.caught, NULL);
    while (number <= 0);
    return number;
}

/* Handles signals after the first one, until the verb ends. */
static _Noreturn void follow(int number)
{
    double start = mgl_clock_s();
    sigset_t seen;
    sigemptyset(&seen);
    sigaddset(&seen, number);
    for (;;) {
        double left = start + grace_s - mgl_clock_s();
        number = wait_for(left > look_s ? left : look_s);
        if (number && mgl_clock_s() - start < twice_s)
            continue;
        if (number && (sigismember(&seen, number) || atomic_load(&signals.ended)))
            end_by_default(number);
        if (number)
            sigaddset(&seen, number);
        if (mgl_clock_s() - start < grace_s)
            continue;
        if (!mgl_cu_is_busy())
            end_verb();
        say_that_it_waits();
    }
}

/* Waits for the first signal that ends the verb. */
static int wait_for_end(void)
{
    for (;;) {
        int number = wait_for_first();
        void (*answer)(bool) = atomic_load(&signals.answer);
        if (number != SIGINT || !answer || atomic_load(&signals.ended))
            return number;
        answer(false);
    }
}

static void *watch(void *unused)
{
    int number = wait_for_end();
    void (*answer)(bool) = atomic_load(&signals.answer);
    if (atomic_load(&signals.ended))
        end_by_default(number);
    atomic_store(&signals.number, number);
    leave(); /* a later check reports the interruption */
    mgl_cancel_set(signals.cancel);
    if (answer)
        answer(true);
    follow(number);
    return unused;
}

/* ---- start and end --------------------------------------------------------------------------- */

static void add_signal(int number)
{
    struct sigaction old;
    if (!sigaction(number, NULL, &old) && old.sa_handler != SIG_IGN)
        sigaddset(&signals.caught, number);
}

/* Starts the waiting thread. Threads and programs started later inherit the blocked signals. */
static void start_thread(void)
{
    pthread_t thread;
    pthread_attr_t how;
    pthread_sigmask(SIG_BLOCK, &signals.caught, NULL);
    bool made = !pthread_attr_init(&how);
    if (made) {
        pthread_attr_setstacksize(&how, STACK_BYTES);
        pthread_attr_setdetachstate(&how, PTHREAD_CREATE_DETACHED);
        made = !pthread_create(&thread, &how, watch, NULL);
        pthread_attr_destroy(&how);
    }
    if (!made)
        pthread_sigmask(SIG_UNBLOCK, &signals.caught, NULL);
}

mgl_status mgl_cli_signals_start(const char *verb, bool json, mgl_error *err)
{
    mgl_status status = mgl_cancel_new(&signals.cancel, err);
    if (status)
        return status;
    signals.verb = verb;
    signals.json = json;
    sigemptyset(&signals.caught);
#define MGL_X(signal, name) add_signal(signal);
    CAUGHT_SIGNALS(MGL_X)
#undef MGL_X
    start_thread();
    return MGL_OK;
}

int mgl_cli_signals_end(void)
{
    atomic_store(&signals.ended, true);
    return mgl_cli_signals_tell() ? SIGNAL_CODE + signals.number : 0;
}
