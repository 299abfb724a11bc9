/* Implements process.h: spawning, monitoring and ending of a worker, and the exchange of messages.
 * vm/cuda/child.c does the same for a compiler child of the same binary. */
#include "autotune/runner/process.h"

#include "autotune/runner/runner.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SOCKET = 3, /* descriptor of the worker's end of the socket */
    MAX_STATUS = 1 << 16
};
static const double memory_every_s = 0.05, reap_s = 10, reap_aborted_s = 0.02;

struct mgl_process {
    mgl_process_options options;
    pid_t pid; /* 0: already reaped */
    int socket;
    bool dead;
    int how; /* wait status */
    bool known;
    mgl_request_kind kind; /* kind of the current request */
    double deadline, limit_s, looked;
    mgl_fate stopped;   /* why waiting ended */
    uint64_t peak;      /* largest resident memory seen, in bytes */
    uint64_t oom_kills; /* OOM kills of the machine when the worker started */
};

void mgl_answer_clear(mgl_answer *answer)
{
    mgl_free(answer->bytes);
    *answer = (mgl_answer){0};
}

mgl_status mgl_answer_fail(const mgl_answer *answer, mgl_error *err)
{
    if (err)
        *err = answer->error;
    return answer->error.code;
}

/* ---- environment ----------------------------------------------------------------------------- */

static bool begins(const char *text, const char *start)
{
    return !strncmp(text, start, strlen(start));
}

/* Whether the name of the entry (before `=`) contains the word. */
static bool holds(const char *entry, const char *word)
{
    const char *end = strchr(entry, '='), *at = strstr(entry, word);
    return end && at && at < end;
}

static bool is_passed_on(const char *entry)
{
    static const char *const allowed[] = {
        "PATH=", "HOME=", "LD_LIBRARY_PATH=", "LANG=", "TMPDIR=", "CUDA_", "MEGALITH_", "XDG_"};
    static const char *const secret[] = {"KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL"};
    bool good = false;
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++)
        good |= begins(entry, allowed[i]);
    for (size_t i = 0; i < sizeof secret / sizeof *secret; i++)
        good &= !holds(entry, secret[i]);
    return good;
}

char **mgl_process_environment(char *const *from, const char *kernels)
{
    static const char name[] = "MEGALITH_CACHE=";
    size_t count = 0, bytes = sizeof name + (kernels ? strlen(kernels) : 0);
    for (size_t i = 0; from && from[i]; i++) {
        count++;
        bytes += strlen(from[i]) + 1;
    }
    char **out = mgl_alloc_zero(1, (count + 2) * sizeof *out + bytes);
    if (!out)
        return NULL;
    char *to = (char *)(out + count + 2);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (is_passed_on(from[i]) && !(kernels && begins(from[i], name))) {
            out[kept++] = to;
            to = stpcpy(to, from[i]) + 1;
        }
    if (kernels) {
        out[kept++] = to;
        stpcpy(stpcpy(to, name), kernels);
    }
    return out;
}

/* ---- start ----------------------------------------------------------------------------------- */

/* Returns 0 or an error number. Standard streams are /dev/null, because libraries may print to
 * them. */
static int set_files(posix_spawn_file_actions_t *files, int socket)
{
    int error = posix_spawn_file_actions_adddup2(files, socket, SOCKET);
    for (int fd = 0; fd <= 2 && !error; fd++)
        error = posix_spawn_file_actions_addopen(files, fd, "/dev/null", O_RDWR, 0);
    return error ? error : posix_spawn_file_actions_addclosefrom_np(files, SOCKET + 1);
}

/* Returns 0 or an error number. The worker has its own process group: Ctrl-C in a terminal reaches
 * only the runner, which ends the worker. */
static int set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int error = posix_spawnattr_setflags(
        attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    if (!error)
        error = posix_spawnattr_setsigdefault(attributes, &all);
    if (!error)
        error = posix_spawnattr_setsigmask(attributes, &none);
    return error ? error : posix_spawnattr_setpgroup(attributes, 0);
}

enum { MOST_WORDS = 24 };

/* Returns 0 or an error number. */
static int spawn(const mgl_process_options *options, int socket, char **environment, pid_t *pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    char name[] = "megalith", flag[] = MGL_WORKER_FLAG, number[16], program[PATH_MAX];
    char *argv[MOST_WORDS + 4] = {name};
    int count = 0;
    for (; options->under && options->under[count] && count < MOST_WORDS; count++)
        argv[count] = (char *)options->under[count];
    /* for a tool, "/proc/self/exe" would mean the tool itself */
    if (count > 0 && !realpath(options->program, program))
        return errno;
    if (count > 0)
        argv[count] = program;
    argv[count + 1] = flag;
    argv[count + 2] = number;
    snprintf(number, sizeof number, "%d%s", (int)SOCKET, count > 0 ? MGL_WORKER_UNDER_TOOL : "");
    int error = posix_spawn_file_actions_init(&files);
    if (error)
        return error;
    error = posix_spawnattr_init(&attributes);
    if (!error) {
        error = set_files(&files, socket);
        if (!error)
            error = set_attributes(&attributes);
        if (!error)
            error = posix_spawn(pid, count > 0 ? argv[0] : options->program, &files, &attributes,
                                argv, environment);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&files);
    return error;
}

/* Number of OOM kills of the kernel on this machine; 0 if the kernel does not count them. */
static uint64_t count_oom_kills(void)
{
    static const char name[] = "\noom_kill ";
    char *text;
    size_t length;
    if (mgl_file_read("/proc/vmstat", MAX_STATUS, &text, &length, NULL))
        return 0;
    const char *line = strstr(text, name);
    uint64_t count = line ? strtoull(line + strlen(name), NULL, 10) : 0;
    mgl_free(text);
    return count;
}

static mgl_status start(mgl_process *p, mgl_error *err)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        return mgl_fail_errno(err, p->options.program, "a worker could not be started");
    uint64_t oom_kills = count_oom_kills();
    char **environment = mgl_process_environment(environ, p->options.kernels);
    errno = environment ? spawn(&p->options, ends[1], environment, &p->pid) : ENOMEM;
    close(ends[1]);
    mgl_free(environment);
    if (!errno) {
        p->oom_kills = oom_kills;
        p->socket = ends[0];
        return MGL_OK;
    }
    mgl_status status = mgl_fail_errno(err, p->options.program, "a worker could not be started");
    close(ends[0]);
    return status;
}

mgl_status mgl_process_start(const mgl_process_options *options, mgl_process **out, mgl_error *err)
{
    *out = NULL;
    mgl_process *p = mgl_alloc_zero(1, sizeof *p);
    if (!p)
        return mgl_fail_memory(err, sizeof *p);
    p->options = *options;
    mgl_status status = start(p, err);
    if (status)
        mgl_free(p);
    else
        *out = p;
    return status;
}

pid_t mgl_process_id(const mgl_process *process)
{
    return process->pid;
}

bool mgl_process_lives(const mgl_process *process)
{
    return process && !process->dead;
}

/* ---- end ------------------------------------------------------------------------------------- */

static bool is_aborted(const mgl_process *p)
{
    return p->options.abort && atomic_load(p->options.abort);
}

/* Waits until the process is reaped or the limit expires. */
static void reap_within(mgl_process *p, double limit_s)
{
    double end = mgl_clock_s() + limit_s;
    struct timespec pause = {.tv_nsec = 1000000};
    while (p->pid) {
        pid_t pid = waitpid(p->pid, &p->how, WNOHANG);
        p->known = pid == p->pid;
        if (p->known || (pid < 0 && errno != EINTR))
            p->pid = 0;
        else if (mgl_clock_s() > end)
            return;
        else
            nanosleep(&pause, NULL);
    }
}

/* Waits for a killed process. A process with a GPU context may take long to end. */
static void reap(mgl_process *p)
{
    reap_within(p, is_aborted(p) ? reap_aborted_s : reap_s);
}

/* Kills the process. Its children (compilers) end with it. The processes of a tool are killed by
 * their process group. */
static void end_process(mgl_process *p)
{
    if (p->pid)
        kill(p->options.under ? -p->pid : p->pid, SIGKILL);
    if (p->socket >= 0)
        close(p->socket);
    p->socket = -1;
    p->dead = true;
    reap(p);
}

void mgl_process_close(mgl_process *process)
{
    if (!process)
        return;
    end_process(process);
    mgl_free(process);
}

bool mgl_process_finish(mgl_process *process, double limit_s)
{
    if (process->dead)
        return process->known;
    if (process->socket >= 0)
        close(process->socket);
    process->socket = -1;
    reap_within(process, limit_s);
    const bool ended = process->known;
    end_process(process);
    return ended;
}

/* ---- monitoring ------------------------------------------------------------------------------ */

/* Bytes reported by a line of /proc/PID/status; 0: the line is missing. */
static uint64_t bytes_in(const char *text, const char *line)
{
    const char *at = strstr(text, line);
    return at ? (uint64_t)strtoull(at + strlen(line), NULL, 10) * 1024 : 0;
}

/* Resident memory in bytes (0: unknown), and its maximum so far in *peak. */
static uint64_t resident_bytes(pid_t pid, uint64_t *peak)
{
    char path[40], *text;
    size_t length;
    snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
    if (mgl_file_read(path, MAX_STATUS, &text, &length, NULL))
        return 0;
    const uint64_t held = bytes_in(text, "\nVmRSS:"), most = bytes_in(text, "\nVmHWM:");
    *peak = most > *peak ? most : *peak;
    *peak = held > *peak ? held : *peak;
    mgl_free(text);
    return held;
}

/* Whether another process killed the worker. SIGKILL comes from the kernel's OOM killer or from a
 * process. It came from a process if both conditions hold: the worker used less than half of its
 * memory limit, and the kernel has made no OOM kill since the worker started. */
static bool is_killed(const mgl_process *p, int signal)
{
    return signal == SIGKILL && (!p->options.limit_bytes || p->peak < p->options.limit_bytes / 2) &&
           count_oom_kills() == p->oom_kills;
}

/* Callback of the wire: returns whether to continue waiting. */
static bool watch(void *user)
{
    mgl_process *p = user;
    double now = mgl_clock_s();
    if (is_aborted(p))
        p->stopped = MGL_FATE_STOPPED;
    else if (now > p->deadline)
        p->stopped = MGL_FATE_HUNG;
    if (!p->stopped && p->options.limit_bytes && now > p->looked + memory_every_s) {
        p->looked = now;
        uint64_t held = resident_bytes(p->pid, &p->peak);
        if (held > p->options.limit_bytes)
            p->stopped = MGL_FATE_GREW;
    }
    return p->stopped == MGL_FATE_ANSWERED;
}

/* ---- requests -------------------------------------------------------------------------------- */

static mgl_wire wire_of(mgl_process *p)
{
    return (mgl_wire){.socket = p->socket, .go = watch, .user = p};
}

/* Writes the message for a worker that gave no answer. */
static void explain(const mgl_process *p, mgl_answer *out)
{
    const char *what = mgl_request_name(out->kind);
    const char *name = out->signal ? sigdescr_np(out->signal) : NULL;
    if (out->fate == MGL_FATE_HUNG)
        mgl_fail(&out->error, MGL_DEVICE, what, "did not end within %.3g s: the worker was killed",
                 p->limit_s);
    else if (out->fate == MGL_FATE_GREW)
        mgl_fail(&out->error, MGL_DEVICE, what,
                 "took more than the %llu bytes of memory that a worker may have, and was killed",
                 (unsigned long long)p->options.limit_bytes);
    else if (out->fate == MGL_FATE_BROKE)
        mgl_fail(&out->error, MGL_DEVICE, what,
                 "the worker answered with no reply, and was killed");
    else if (out->signal)
        mgl_fail(&out->error, MGL_DEVICE, what, "the worker was ended by signal %d (%s)",
                 out->signal, name ? name : "unknown");
    else
        mgl_fail(&out->error, MGL_DEVICE, what, "the worker ended with code %d",
                 p->known && WIFEXITED(p->how) ? WEXITSTATUS(p->how) : -1);
}

/* Ends a worker that gave no answer. */
static mgl_status give_up(mgl_process *p, mgl_fate fate, mgl_answer *out, mgl_error *err)
{
    if (fate == MGL_FATE_DIED)
        reap(p); /* reaped before it is killed, so that its own exit status is kept */
    end_process(p);
    out->fate = fate;
    out->kind = p->kind;
    out->signal = fate == MGL_FATE_DIED && p->known && WIFSIGNALED(p->how) ? WTERMSIG(p->how) : 0;
    out->killed = is_killed(p, out->signal);
    if (fate == MGL_FATE_STOPPED)
        return mgl_fail_interrupted(err);
    explain(p, out);
    return MGL_OK;
}

static mgl_fate fate_of(const mgl_process *p, mgl_wire_end end)
{
    return end == MGL_WIRE_STOPPED ? p->stopped : MGL_FATE_DIED;
}

mgl_status mgl_process_post(mgl_process *p, const mgl_question *q, mgl_error *err)
{
    mgl_wire wire = wire_of(p);
    mgl_wire_head head = {
        .magic = MGL_WIRE_MAGIC, .kind = q->kind, .length = q->fixed_length + q->length};
    p->kind = q->kind;
    p->limit_s = q->limit_s;
    p->deadline = mgl_clock_s() + q->limit_s;
    p->stopped = MGL_FATE_ANSWERED;
    if (is_aborted(p)) {
        end_process(p);
        return mgl_fail_interrupted(err);
    }
    /* If sending fails, the cause is found when the reply is awaited. */
    if (p->dead || mgl_wire_send(&wire, &head, sizeof head) ||
        mgl_wire_send(&wire, q->fixed, q->fixed_length))
        return MGL_OK;
    mgl_wire_send(&wire, q->bytes, q->length);
    return MGL_OK;
}

bool mgl_process_has_reply(const mgl_process *process)
{
    struct pollfd one = {.fd = process->socket, .events = POLLIN};
    return process->dead || poll(&one, 1, 0) > 0;
}

static bool is_form(const mgl_process *p, const mgl_wire_head *head)
{
    return !memcmp(head->magic, MGL_WIRE_MAGIC, sizeof head->magic) && head->reply == 1 &&
           head->kind == p->kind && head->length >= sizeof(mgl_wire_reply) &&
           head->length <= MGL_WIRE_LARGEST;
}

/* Reads status and message of a reply. The reply is untrusted. */
static bool take_status(const mgl_wire_reply *reply, mgl_answer *out)
{
    static const mgl_status known[] = {MGL_OK,     MGL_USAGE,      MGL_BAD_INPUT, MGL_REJECTED,
                                       MGL_DEVICE, MGL_GATE,       MGL_WATCHDOG,  MGL_NO_MEMORY,
                                       MGL_SYSTEM, MGL_INTERRUPTED};
    char where[sizeof reply->where], message[sizeof reply->message];
    memcpy(where, reply->where, sizeof where);
    memcpy(message, reply->message, sizeof message);
    where[sizeof where - 1] = message[sizeof message - 1] = 0;
    size_t i = 0, count = sizeof known / sizeof *known;
    out->device_s = isfinite(reply->device_s) && reply->device_s > 0 ? reply->device_s : 0;
    while (i < count && reply->status != (int32_t)known[i])
        i++;
    if (i == count || known[i] == MGL_OK)
        return i < count;
    char *lines = strchr(message, '\n');
    if (lines)
        *lines++ = 0;
    mgl_fail(&out->error, known[i], where, "%s", message);
    if (lines)
        mgl_error_add_lines(&out->error, lines);
    return true;
}

static mgl_status take_bytes(mgl_process *p, size_t length, mgl_answer *out, mgl_error *err)
{
    mgl_wire wire = wire_of(p);
    if (length == 0)
        return MGL_OK;
    out->bytes = mgl_alloc(length);
    if (!out->bytes) {
        end_process(p); /* the rest of the reply is lost */
        return mgl_fail_memory(err, length);
    }
    out->length = length;
    mgl_wire_end end = mgl_wire_receive(&wire, out->bytes, length);
    if (end == MGL_WIRE_DONE)
        return MGL_OK;
    mgl_answer_clear(out);
    return give_up(p, fate_of(p, end), out, err);
}

mgl_status mgl_process_await(mgl_process *p, size_t wanted, mgl_answer *out, mgl_error *err)
{
    mgl_wire wire = wire_of(p);
    mgl_wire_head head;
    mgl_wire_reply reply;
    *out = (mgl_answer){.kind = p->kind};
    if (p->dead || p->stopped)
        return give_up(p, p->stopped ? p->stopped : MGL_FATE_DIED, out, err);
    mgl_wire_end end = mgl_wire_receive(&wire, &head, sizeof head);
    if (end == MGL_WIRE_DONE && !is_form(p, &head))
        return give_up(p, MGL_FATE_BROKE, out, err);
    if (end == MGL_WIRE_DONE)
        end = mgl_wire_receive(&wire, &reply, sizeof reply);
    if (end != MGL_WIRE_DONE)
        return give_up(p, fate_of(p, end), out, err);
    size_t length = (size_t)head.length - sizeof reply;
    if (!take_status(&reply, out) || (length != (out->error.code ? 0 : wanted) &&
                                      (out->error.code || wanted != MGL_PROCESS_ANY)))
        return give_up(p, MGL_FATE_BROKE, out, err);
    return take_bytes(p, length, out, err);
}

mgl_status mgl_process_ask(mgl_process *p, const mgl_question *question, size_t wanted,
                           mgl_answer *out, mgl_error *err)
{
    *out = (mgl_answer){.kind = question->kind};
    mgl_status status = mgl_process_post(p, question, err);
    return status ? status : mgl_process_await(p, wanted, out, err);
}

mgl_status mgl_process_get(mgl_process *p, const mgl_question *question, void *to, size_t wanted,
                           mgl_error *err)
{
    mgl_answer answer;
    mgl_status status = mgl_process_ask(p, question, wanted, &answer, err);
    if (!status && answer.error.code)
        status = mgl_answer_fail(&answer, err);
    else if (!status && wanted)
        memcpy(to, answer.bytes, wanted);
    mgl_answer_clear(&answer);
    return status;
}
