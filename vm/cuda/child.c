/*
 * Runs NVRTC in a child process: the same program, executed with a hidden argument, compiles one
 * recipe and returns the result. Unlike NVRTC, a process can be killed at any moment. compile.c
 * calls mgl_cuda_child_compile in the parent; main calls mgl_cuda_compile_worker in the child.
 *
 * The request is a memfd, passed as the child's standard input. The answer comes through a pipe,
 * its standard output. Both use the binary layout of the program, since both ends are the same
 * binary. The child inherits no other descriptor except standard error. It has default signal
 * handling and its own process group, so a terminal's Ctrl-C reaches only the parent, which kills
 * the child. The child dies with the thread that started it; that thread waits until the child has
 * ended.
 */
#include "vm/cuda/compile.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"

enum { POLL_MS = 10, LARGEST_RESULT = 256 << 20, LARGEST_REQUEST = 64 << 20 };

/* Header of a request. For each source, its name and its text follow, each 0-terminated. */
typedef struct request {
    char magic[8];
    mgl_cuda_recipe recipe; /* `sources` is invalid here */
} request;

/* Header of an answer. The `length` bytes of the result follow. */
typedef struct answer {
    char magic[8];
    mgl_status status;
    mgl_error error;
    mgl_cuda_image image; /* `bytes` is invalid here */
} answer;

static const char request_magic[8] = "mglnvrq", answer_magic[8] = "mglnvan";

static const char *child_program;

void mgl_cuda_compile_use_child(const char *program)
{
    child_program = program;
}

const char *mgl_cuda_child_program(void)
{
    return child_program;
}

static bool write_all(int to, const void *bytes, size_t length)
{
    const char *from = bytes;
    while (length > 0) {
        ssize_t n = write(to, from, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        from += n;
        length -= (size_t)n;
    }
    return true;
}

/* ---- parent --------------------------------------------------------------------------------- */

typedef struct child {
    pid_t pid;
    int from; /* read end of the answer pipe */
} child;

/* Returns a descriptor from which the request is read; -1 with errno on error. */
static int write_request(const mgl_cuda_recipe *recipe)
{
    request head = {.recipe = *recipe};
    memcpy(head.magic, request_magic, sizeof head.magic);
    int file = memfd_create("megalith request", MFD_CLOEXEC);
    if (file < 0)
        return -1;
    bool good = write_all(file, &head, sizeof head);
    for (int i = 0; i < recipe->source_count && good; i++) {
        const mgl_cuda_source *source = &recipe->sources[i];
        const char *text = (const char *)source->text;
        good = write_all(file, source->name, strlen(source->name) + 1) &&
               write_all(file, text, strlen(text) + 1);
    }
    if (good && lseek(file, 0, SEEK_SET) == 0)
        return file;
    close(file);
    return -1;
}

/* Returns 0 or an error number. */
static int set_up(posix_spawn_file_actions_t *files, posix_spawnattr_t *attributes, int in, int out)
{
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int error = posix_spawn_file_actions_adddup2(files, in, 0);
    if (!error)
        error = posix_spawn_file_actions_adddup2(files, out, 1);
    if (!error)
        error = posix_spawn_file_actions_addclosefrom_np(files, 3);
    if (!error)
        error = posix_spawnattr_setflags(
            attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    if (!error)
        error = posix_spawnattr_setsigdefault(attributes, &all);
    if (!error)
        error = posix_spawnattr_setsigmask(attributes, &none);
    return error ? error : posix_spawnattr_setpgroup(attributes, 0);
}

/* Returns 0 or an error number. */
static int spawn(const char *program, int in, int out, pid_t *pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    char parent[16], flag[] = MGL_CUDA_WORKER_FLAG, name[] = "megalith";
    char *argv[] = {name, flag, parent, NULL};
    snprintf(parent, sizeof parent, "%ld", (long)getpid());
    int error = posix_spawn_file_actions_init(&files);
    if (error)
        return error;
    error = posix_spawnattr_init(&attributes);
    if (!error) {
        error = set_up(&files, &attributes, in, out);
        if (!error)
            error = posix_spawn(pid, program, &files, &attributes, argv, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&files);
    return error;
}

static mgl_status start(const char *program, const mgl_cuda_recipe *recipe, child *out,
                        mgl_error *err)
{
    int ends[2], in = write_request(recipe);
    if (in < 0)
        return mgl_fail_errno(err, "nvrtc", "the request to the compiler could not be written");
    if (pipe2(ends, O_CLOEXEC)) {
        close(in);
        return mgl_fail_errno(err, "nvrtc", "the compiler could not be started");
    }
    errno = spawn(program, in, ends[1], &out->pid);
    mgl_status status =
        errno ? mgl_fail_errno(err, "nvrtc", "the compiler could not be started") : MGL_OK;
    close(in);
    close(ends[1]);
    if (status)
        close(ends[0]);
    out->from = ends[0];
    return status;
}

/* Reads `length` bytes of the answer. False if the answer ended early or `abort` was set. */
static bool read_answer(const child *c, void *to, size_t length, const atomic_int *abort)
{
    char *at = to;
    while (length > 0) {
        struct pollfd end = {.fd = c->from, .events = POLLIN};
        if (abort && atomic_load(abort))
            return false;
        if (poll(&end, 1, POLL_MS) <= 0)
            continue;
        ssize_t n = read(c->from, at, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        length -= (size_t)n;
    }
    return true;
}

/* Reads a complete answer of the child; false if it is incomplete. */
static bool take_answer(const child *c, const atomic_int *abort, answer *head, mgl_cuda_image *out)
{
    bool good = read_answer(c, head, sizeof *head, abort) &&
                !memcmp(head->magic, answer_magic, sizeof head->magic) &&
                head->image.length <= LARGEST_RESULT;
    if (!good)
        return false;
    *out = head->image;
    out->bytes = out->length ? mgl_alloc_zero(out->length + 1, 1) : NULL;
    if (out->bytes && read_answer(c, out->bytes, out->length, abort))
        return true;
    if (out->length == 0)
        return head->status != MGL_OK;
    if (!out->bytes) /* the child succeeded: report the parent's own error */
        head->status = mgl_fail_memory(&head->error, out->length + 1);
    bool told = !out->bytes;
    mgl_cuda_image_clear(out);
    return told;
}

/* Error for a child that ended without an answer. */
static mgl_status explain(int how, bool known, mgl_error *err)
{
    if (known && WIFSIGNALED(how)) {
        const char *name = sigdescr_np(WTERMSIG(how));
        return mgl_fail(err, MGL_DEVICE, "nvrtc",
                        "the compiler of the kernel was ended by signal %d (%s) before it was "
                        "done; try again, with more memory free if that ran out",
                        WTERMSIG(how), name ? name : "unknown");
    }
    return mgl_fail(err, MGL_DEVICE, "nvrtc",
                    "the compiler of the kernel ended with code %d before it was done; try again, "
                    "with more memory free if that ran out",
                    known && WIFEXITED(how) ? WEXITSTATUS(how) : -1);
}

/* Waits until the child has ended. Returns whether its exit status is known. */
static bool reap(const child *c, int *how)
{
    pid_t pid;
    do
        pid = waitpid(c->pid, how, 0);
    while (pid < 0 && errno == EINTR);
    return pid == c->pid;
}

mgl_status mgl_cuda_child_compile(const char *program, const mgl_cuda_recipe *recipe,
                                  const atomic_int *abort, mgl_cuda_image *out, mgl_error *err)
{
    child c;
    int how = 0;
    *out = (mgl_cuda_image){0};
    answer *head = mgl_alloc_zero(1, sizeof *head);
    if (!head)
        return mgl_fail_memory(err, sizeof *head);
    mgl_status status = start(program, recipe, &c, err);
    if (status) {
        mgl_free(head);
        return status;
    }
    bool answered = take_answer(&c, abort, head, out);
    bool aborted = abort && atomic_load(abort);
    if (!answered) /* a child that answered exits by itself */
        kill(c.pid, SIGKILL);
    close(c.from);
    bool known = reap(&c, &how);
    if (answered) {
        status = head->status;
        if (status && err)
            *err = head->error;
    } else if (aborted) {
        status = mgl_fail_interrupted(err);
    } else {
        status = explain(how, known, err);
        out->died = true;
    }
    mgl_free(head);
    return status;
}

/* ---- child ---------------------------------------------------------------------------------- */

/* Reads all of standard input, which is a file, and appends a 0 byte. NULL: no valid request. */
static char *read_request(size_t *length)
{
    struct stat facts;
    size_t done = 0;
    if (fstat(0, &facts) || facts.st_size < (off_t)sizeof(request) ||
        facts.st_size > LARGEST_REQUEST)
        return NULL;
    *length = (size_t)facts.st_size;
    char *bytes = mgl_alloc_zero(*length + 1, 1);
    while (bytes && done < *length) {
        ssize_t n = read(0, bytes + done, *length - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            mgl_free(bytes);
            return NULL;
        }
        done += (size_t)n;
    }
    return bytes;
}

/* The next text of the request. */
static const char *take_text(const char **at, const char *end)
{
    const char *text = *at;
    size_t length = strlen(text) + 1;
    *at = length < (size_t)(end - text) ? text + length : end;
    return text;
}

/* Parses a request. The sources point into its bytes. */
static bool parse_request(const char *bytes, size_t length,
                          mgl_cuda_source sources[MGL_RECIPE_SOURCES], mgl_cuda_recipe *out)
{
    const char *at = bytes + sizeof(request), *end = bytes + length;
    request head;
    memcpy(&head, bytes, sizeof head);
    *out = head.recipe;
    out->sources = sources;
    if (memcmp(head.magic, request_magic, sizeof head.magic) != 0 ||
        out->source_count > MGL_RECIPE_SOURCES)
        return false;
    for (int i = 0; i < out->source_count; i++) {
        sources[i].name = take_text(&at, end);
        sources[i].text = (const unsigned char *)take_text(&at, end);
    }
    return true;
}

static bool answer_request(const mgl_cuda_recipe *recipe, int to)
{
    mgl_cuda_image image;
    answer *head = mgl_alloc_zero(1, sizeof *head);
    if (!head)
        return false;
    memcpy(head->magic, answer_magic, sizeof head->magic);
    head->status = mgl_cuda_recipe_compile(recipe, &image, &head->error);
    head->image = image;
    head->image.bytes = NULL;
    bool good = write_all(to, head, sizeof *head) && write_all(to, image.bytes, image.length);
    mgl_cuda_image_clear(&image);
    mgl_free(head);
    return good;
}

int mgl_cuda_compile_worker(const char *parent)
{
    mgl_cuda_source sources[MGL_RECIPE_SOURCES];
    mgl_cuda_recipe recipe;
    size_t length;
    prctl(PR_SET_NAME, "megalith-nvrtc"); /* instead of "exe" */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != atol(parent)) /* the parent may have died before prctl */
        return 1;
    /* output that a library prints must not mix with the answer */
    int to = fcntl(1, F_DUPFD_CLOEXEC, 3);
    if (to < 0 || dup2(2, 1) < 0)
        return 1;
    char *bytes = read_request(&length);
    bool good =
        bytes && parse_request(bytes, length, sources, &recipe) && answer_request(&recipe, to);
    mgl_free(bytes);
    return !good;
}
