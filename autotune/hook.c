/*
 * Implements hook.h. Programs are started with posix_spawn. A reaper thread polls the children
 * every 20 ms, kills the children that exceeded their time limit, and collects exit states.
 */
#include "autotune/hook.h"

#include "base/clock.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A running process. */
typedef struct child {
    pid_t pid;  /* id of the process and of its process group; 0: the entry is free */
    double end; /* monotonic time at which the process is killed */
} child;

struct mgl_hook {
    char *program;
    double seconds;
    pthread_t reaper;
    pthread_mutex_t guard; /* protects the members below */
    child children[MGL_HOOKS_AT_ONCE];
    bool closing; /* the reaper thread ends when no process is left */
};

/* Kills and reaps children once. Returns the number of running children. */
static int look_after(mgl_hook *hook)
{
    int left = 0;
    for (int i = 0; i < MGL_HOOKS_AT_ONCE; i++) {
        child *c = &hook->children[i];
        if (!c->pid)
            continue;
        if (mgl_clock_s() > c->end)
            kill(-c->pid, SIGKILL);
        if (waitpid(c->pid, NULL, WNOHANG) != 0)
            c->pid = 0;
        left += c->pid != 0;
    }
    return left;
}

static void *reap(void *user)
{
    const struct timespec step = {.tv_nsec = 20 * 1000 * 1000};
    mgl_hook *hook = user;
    for (;;) {
        pthread_mutex_lock(&hook->guard);
        bool over = look_after(hook) == 0 && hook->closing;
        pthread_mutex_unlock(&hook->guard);
        if (over)
            return NULL;
        nanosleep(&step, NULL);
    }
}

mgl_status mgl_hook_open(const char *program, double seconds, mgl_hook **out, mgl_error *err)
{
    *out = NULL;
    mgl_hook *hook = mgl_alloc_zero(1, sizeof *hook);
    if (!hook)
        return mgl_fail_memory(err, sizeof *hook);
    hook->program = mgl_strdup(program);
    hook->seconds = seconds > 0 ? seconds : MGL_HOOK_SECONDS;
    pthread_mutex_init(&hook->guard, NULL);
    errno = hook->program ? pthread_create(&hook->reaper, NULL, reap, hook) : ENOMEM;
    if (!errno) {
        *out = hook;
        return MGL_OK;
    }
    mgl_status status = mgl_fail_errno(
        err, program, "cannot start the thread that watches the program of --on-event");
    pthread_mutex_destroy(&hook->guard);
    mgl_free(hook->program);
    mgl_free(hook);
    return status;
}

/* Returns a descriptor from which the text can be read; -1 with errno on failure. */
static int write_input(const char *text, size_t length)
{
    int file = memfd_create("megalith event", MFD_CLOEXEC);
    while (file >= 0 && length > 0) {
        ssize_t n = write(file, text, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            close(file);
            return -1;
        }
        text += n;
        length -= (size_t)n;
    }
    if (file >= 0)
        lseek(file, 0, SEEK_SET);
    return file;
}

/* Starts the program with default signal handlers, in its own process group, with only descriptors
 * 0, 1 and 2 open. Returns 0 or an error number. */
static int spawn(const mgl_hook *hook, int input, pid_t *pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none, all;
    char *argv[] = {hook->program, NULL};
    sigemptyset(&none);
    sigfillset(&all);
    int error = posix_spawn_file_actions_init(&files);
    if (error)
        return error;
    error = posix_spawnattr_init(&how);
    if (!error) {
        error = posix_spawn_file_actions_adddup2(&files, input, 0);
        if (!error) /* the child must not write to the standard output of this command */
            error = posix_spawn_file_actions_adddup2(&files, 2, 1);
        if (!error)
            error = posix_spawn_file_actions_addclosefrom_np(&files, 3);
        posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK |
                                           POSIX_SPAWN_SETPGROUP);
        posix_spawnattr_setsigdefault(&how, &all);
        posix_spawnattr_setsigmask(&how, &none);
        posix_spawnattr_setpgroup(&how, 0);
        if (!error)
            error = posix_spawnp(pid, hook->program, &files, &how, argv, environ);
        posix_spawnattr_destroy(&how);
    }
    posix_spawn_file_actions_destroy(&files);
    return error;
}

static mgl_status start(mgl_hook *hook, child *free_one, int input, mgl_error *err)
{
    if (!free_one)
        return mgl_fail(err, MGL_SYSTEM, hook->program,
                        "already running %d times; it is not started for this event",
                        MGL_HOOKS_AT_ONCE);
    errno = spawn(hook, input, &free_one->pid);
    if (errno) {
        free_one->pid = 0;
        return mgl_fail_errno(err, hook->program, "cannot be started");
    }
    free_one->end = mgl_clock_s() + hook->seconds;
    return MGL_OK;
}

mgl_status mgl_hook_tell(mgl_hook *hook, const char *json, size_t length, mgl_error *err)
{
    child *free_one = NULL;
    int input = write_input(json, length);
    if (input < 0)
        return mgl_fail_errno(err, hook->program, "cannot create its input");
    pthread_mutex_lock(&hook->guard);
    for (int i = 0; i < MGL_HOOKS_AT_ONCE && !free_one; i++)
        if (!hook->children[i].pid)
            free_one = &hook->children[i];
    mgl_status status = start(hook, free_one, input, err);
    pthread_mutex_unlock(&hook->guard);
    close(input);
    return status;
}

/* Sets all deadlines to 0, so that the reaper kills the running processes. */
static void hurry(mgl_hook *hook)
{
    pthread_mutex_lock(&hook->guard);
    for (int i = 0; i < MGL_HOOKS_AT_ONCE; i++)
        hook->children[i].end = 0;
    pthread_mutex_unlock(&hook->guard);
}

static bool is_running(mgl_hook *hook)
{
    bool running = false;
    pthread_mutex_lock(&hook->guard);
    for (int i = 0; i < MGL_HOOKS_AT_ONCE; i++)
        running |= hook->children[i].pid != 0;
    pthread_mutex_unlock(&hook->guard);
    return running;
}

void mgl_hook_close(mgl_hook *hook, const atomic_int *abort)
{
    const struct timespec step = {.tv_nsec = 10 * 1000 * 1000};
    if (!hook)
        return;
    while (is_running(hook) && !(abort && atomic_load(abort)))
        nanosleep(&step, NULL);
    hurry(hook);
    pthread_mutex_lock(&hook->guard);
    hook->closing = true;
    pthread_mutex_unlock(&hook->guard);
    pthread_join(hook->reaper, NULL);
    pthread_mutex_destroy(&hook->guard);
    mgl_free(hook->program);
    mgl_free(hook);
}
