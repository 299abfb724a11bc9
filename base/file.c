/*
 * Reads and maps files. See file.h. Before every system call that a test can make fail, the code
 * calls mgl_file_denied.
 *
 * A map is read with memcpy under a guard. Touching a page past the end of a file that shrank
 * raises SIGBUS in the reading thread. The signal handler jumps back into the guarded copy with
 * siglongjmp. The page that contains the new end reads as zeros instead, so the size is checked
 * again after the copy. A SIGBUS from other code is passed to the handler that was installed
 * before.
 */
#include "base/file.h"

#include "base/memory.h"
#include "base/placeholder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
    PAGE = 4096,              /* of memory; if pages are larger, madvise rejects partial ones */
    RELEASED_BYTES = 1 << 16, /* reads of this size or more are of weights, which are read once */
    FIRST_ROOM = 4096,
    DEVICE_CAP = 4096 /* bytes that are read from a device: enough for /dev/null */
};

struct mgl_map {
    char *path;        /* owned: for messages */
    const char *bytes; /* (size), NULL for an empty file */
    size_t size;       /* when it was mapped */
    int descriptor;    /* stays open: its size is queried after every read */
};

static _Atomic uint64_t operations;
static _Atomic uint64_t fail_at;

void mgl_file_fail_at(uint64_t n)
{
    atomic_store(&operations, 0);
    atomic_store(&fail_at, n);
}

bool mgl_file_denied(void)
{
    uint64_t at = atomic_load(&fail_at);
    if (!at || atomic_fetch_add(&operations, 1) + 1 != at)
        return false;
    errno = EIO;
    return true;
}

/* ---- whole files ---------------------------------------------------------------------------- */

static int open_file(const char *path, int flags)
{
    if (mgl_file_denied())
        return -1;
    int descriptor;
    do
        descriptor = open(path, O_RDONLY | O_CLOEXEC | flags);
    while (descriptor < 0 && errno == EINTR);
    return descriptor;
}

static ssize_t read_some(int descriptor, char *to, size_t length)
{
    if (mgl_file_denied())
        return -1;
    ssize_t n;
    do
        n = read(descriptor, to, length);
    while (n < 0 && errno == EINTR);
    return n;
}

/* A file that is read to its end. */
typedef struct reading {
    int descriptor;
    const char *path; /* for messages */
    size_t cap;       /* bytes at most */
    bool fits;        /* false: the file has more than `cap` bytes */
} reading;

static mgl_status fail_size(reading *r, mgl_error *err)
{
    struct stat facts;
    bool device = !fstat(r->descriptor, &facts) && S_ISCHR(facts.st_mode);
    r->fits = false;
    return mgl_fail(err, MGL_BAD_INPUT, r->path,
                    "is larger than %zu bytes, which is the most that is read%s", r->cap,
                    device ? " of a device" : "");
}

/* Computes the initial buffer size, and lowers the limit for devices: a character device other
 * than a terminal, such as /dev/zero, may have no end. */
static mgl_status measure(reading *r, size_t *room, mgl_error *err)
{
    struct stat facts;
    if (fstat(r->descriptor, &facts))
        return mgl_fail_errno(err, r->path, "cannot be read");
    *room = FIRST_ROOM;
    if (S_ISREG(facts.st_mode) && facts.st_size > 0) {
        if ((uint64_t)facts.st_size > r->cap)
            return fail_size(r, err);
        *room = (size_t)facts.st_size + 2;
    } else if (S_ISBLK(facts.st_mode)) {
        return mgl_fail(err, MGL_BAD_INPUT, r->path, "is a device; give a file or a pipe");
    } else if (S_ISCHR(facts.st_mode) && !isatty(r->descriptor) && r->cap > DEVICE_CAP) {
        r->cap = DEVICE_CAP;
    }
    return MGL_OK;
}

/* Reads to the end of the file with a growing buffer, because a pipe has no size. */
static mgl_status read_all(reading *r, char **out, size_t *length, mgl_error *err)
{
    size_t used = 0, capacity;
    mgl_status status = measure(r, &capacity, err);
    if (status)
        return status;
    char *bytes = mgl_alloc(capacity);
    if (!bytes)
        return mgl_fail_memory(err, capacity);
    for (;;) {
        if (used + 1 >= capacity) {
            char *grown = mgl_realloc(bytes, capacity * 2);
            if (!grown) {
                mgl_free(bytes);
                return mgl_fail_memory(err, capacity * 2);
            }
            bytes = grown;
            capacity *= 2;
        }
        ssize_t n = read_some(r->descriptor, bytes + used, capacity - used - 1);
        if (n <= 0 || used + (size_t)n > r->cap) {
            if (n < 0)
                status = mgl_fail_path(err, r->path, "cannot be read");
            else if (n > 0)
                status = fail_size(r, err);
            if (status) {
                mgl_free(bytes);
                return status;
            }
            break;
        }
        used += (size_t)n;
    }
    bytes[used] = 0;
    *out = bytes;
    *length = used;
    return MGL_OK;
}

/* Reads the open file, and closes it. */
static mgl_status read_opened(reading *r, char **out, size_t *length, mgl_error *err)
{
    *out = NULL;
    r->fits = true;
    if (r->descriptor < 0)
        return mgl_fail_path(err, r->path, "cannot be opened");
    if (r->cap > SIZE_MAX / 4)
        r->cap = SIZE_MAX / 4;
    mgl_status status = read_all(r, out, length, err);
    close(r->descriptor);
    return status;
}

/* Standard input is duplicated, not opened by its name: opening fails for a socket, and restarts
 * a file at its beginning. */
static int open_input(void)
{
    return mgl_file_denied() ? -1 : fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}

mgl_status mgl_file_read_fitting(const char *path, size_t cap, char **out, size_t *length,
                                 bool *fits, mgl_error *err)
{
    bool input = !strcmp(path, MGL_STDIN);
    reading r = {.path = input ? "standard input" : path, .cap = cap};
    r.descriptor = input ? open_input() : open_file(path, 0);
    mgl_status status = read_opened(&r, out, length, err);
    *fits = r.fits;
    return status;
}

mgl_status mgl_file_read(const char *path, size_t cap, char **out, size_t *length, mgl_error *err)
{
    bool fits;
    return mgl_file_read_fitting(path, cap, out, length, &fits, err);
}

mgl_status mgl_file_read_regular(const char *path, size_t cap, char **out, size_t *length,
                                 mgl_error *err)
{
    *out = NULL;
    struct stat facts;
    reading r = {.path = path, .cap = cap, .descriptor = open_file(path, O_NONBLOCK)};
    if (r.descriptor >= 0 && !fstat(r.descriptor, &facts) && !S_ISREG(facts.st_mode)) {
        close(r.descriptor);
        return mgl_fail(err, MGL_BAD_INPUT, path, "is not a regular file");
    }
    mgl_status status = read_opened(&r, out, length, err);
    if (!status && (status = mgl_placeholder_check(path, *out, *length, err))) {
        mgl_free(*out);
        *out = NULL;
    }
    return status;
}

/* Converts the result of a stat call: 0, or -1 with errno. */
static mgl_status tell_of(const char *path, int result, bool *stands, mgl_error *err)
{
    *stands = result == 0;
    if (*stands || errno == ENOENT || errno == ENOTDIR)
        return MGL_OK;
    return mgl_fail_path(err, path, "cannot be looked up");
}

mgl_status mgl_file_stands(const char *path, bool *stands, mgl_error *err)
{
    struct stat facts;
    return tell_of(path, mgl_file_denied() ? -1 : lstat(path, &facts), stands, err);
}

mgl_status mgl_file_look(const char *path, bool *stands, struct stat *facts, mgl_error *err)
{
    return tell_of(path, mgl_file_denied() ? -1 : stat(path, facts), stands, err);
}

mgl_status mgl_file_path(char out[PATH_MAX], mgl_error *err, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(out, PATH_MAX, format, arguments);
    va_end(arguments);
    return length >= 0 && length < PATH_MAX
               ? MGL_OK
               : mgl_fail(err, MGL_BAD_INPUT, out,
                          "the path is longer than %d bytes; use a folder "
                          "with a shorter path",
                          PATH_MAX - 1);
}

const char *mgl_file_split(const char *path, char folder[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    size_t length = !slash ? 1 : slash > path ? (size_t)(slash - path) : 1;
    memcpy(folder, slash ? path : ".", length);
    folder[length] = 0;
    return slash ? slash + 1 : path;
}

static bool make_one(const char *path, unsigned rights)
{
    return (!mgl_file_denied() && !mkdir(path, (mode_t)rights)) || errno == EEXIST;
}

mgl_status mgl_folder_make(const char *path, unsigned rights, mgl_error *err)
{
    char upper[PATH_MAX];
    size_t length = strlen(path);
    errno = length ? ENAMETOOLONG : ENOENT;
    bool made = length && length < sizeof upper;
    for (size_t i = 1; made && i <= length; i++)
        if (!path[i] || path[i] == '/') {
            memcpy(upper, path, i);
            upper[i] = 0;
            made = make_one(upper, rights);
        }
    struct stat facts;
    if (made && !stat(path, &facts) && !S_ISDIR(facts.st_mode)) {
        errno = ENOTDIR;
        made = false;
    }
    return made ? MGL_OK : mgl_fail_path(err, path, "the folder cannot be made");
}

void mgl_file_list_clear(mgl_file_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        mgl_free(list->names[i]);
    mgl_free(list->names);
    *list = (mgl_file_list){0};
}

mgl_status mgl_folder_stands(const char *path, bool *stands, mgl_error *err)
{
    struct stat facts;
    mgl_status status = mgl_file_look(path, stands, &facts, err);
    *stands = !status && *stands && S_ISDIR(facts.st_mode);
    return status;
}

mgl_status mgl_folder_holds(const char *folder, const char *name, bool *holds, mgl_error *err)
{
    mgl_text path;
    struct stat facts;
    *holds = false;
    mgl_status status = mgl_path_join(folder, name, &path, err);
    if (!status)
        status = mgl_file_look(path.bytes, holds, &facts, err);
    mgl_text_clear(&path);
    return status;
}

mgl_status mgl_path_join(const char *folder, const char *name, mgl_text *out, mgl_error *err)
{
    *out = (mgl_text){0};
    mgl_text_format(out, "%s/%s", folder, name);
    return out->failed ? mgl_fail_memory(err, strlen(folder)) : MGL_OK;
}

static mgl_status list_entries(DIR *folder, const char *path, const char *suffix,
                               mgl_file_list *out, mgl_error *err)
{
    for (;;) {
        errno = mgl_file_denied() ? errno : 0;
        struct dirent *entry = errno ? NULL : readdir(folder);
        if (!entry)
            return errno ? mgl_fail_path(err, path, "the folder cannot be read") : MGL_OK;
        if (entry->d_name[0] == '.' || !mgl_text_ends(entry->d_name, suffix))
            continue;
        char *name = mgl_strdup(entry->d_name);
        if (!name ||
            !mgl_grow((void **)&out->names, &out->capacity, out->count, sizeof *out->names)) {
            mgl_free(name);
            return mgl_fail_memory(err, sizeof *out->names);
        }
        out->names[out->count++] = name;
    }
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

mgl_status mgl_folder_list(const char *path, const char *suffix, mgl_file_list *out, mgl_error *err)
{
    *out = (mgl_file_list){0};
    DIR *folder = mgl_file_denied() ? NULL : opendir(path);
    if (!folder && errno == ENOENT)
        return MGL_OK;
    if (!folder)
        return mgl_fail_path(err, path, "the folder cannot be read");
    mgl_status status = list_entries(folder, path, suffix, out, err);
    closedir(folder);
    if (status)
        mgl_file_list_clear(out);
    else if (out->count)
        qsort(out->names, out->count, sizeof *out->names, compare_names);
    return status;
}

mgl_status mgl_disk_free(const char *path, uint64_t *bytes, mgl_error *err)
{
    struct statvfs facts;
    if (mgl_file_denied() || statvfs(path, &facts))
        return mgl_fail_path(err, path, "the free space cannot be asked for");
    *bytes = (uint64_t)facts.f_bavail * facts.f_frsize;
    return MGL_OK;
}

static bool is_one(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Sets *same if both paths lead to the same file, and *neither if neither path exists. */
static mgl_status is_same(const char *a, const char *b, bool *same, bool *neither, mgl_error *err)
{
    struct stat facts[2];
    bool has_a = false, has_b = false;
    mgl_status status = mgl_file_look(a, &has_a, &facts[0], err);
    if (!status)
        status = mgl_file_look(b, &has_b, &facts[1], err);
    *same = has_a && has_b && is_one(&facts[0], &facts[1]);
    *neither = !status && !has_a && !has_b;
    return status;
}

mgl_status mgl_file_same(const char *a, const char *b, bool *same, mgl_error *err)
{
    char folder[2][PATH_MAX];
    bool neither;
    mgl_status status = is_same(a, b, same, &neither, err);
    if (status || !neither || strlen(a) >= PATH_MAX || strlen(b) >= PATH_MAX)
        return status;
    const char *name_a = mgl_file_split(a, folder[0]), *name_b = mgl_file_split(b, folder[1]);
    return strcmp(name_a, name_b) ? MGL_OK : is_same(folder[0], folder[1], same, &neither, err);
}

mgl_status mgl_file_check_output(const char *output, const char *input, mgl_error *err)
{
    bool same = false;
    mgl_status status = input ? mgl_file_same(output, input, &same, err) : MGL_OK;
    if (status || !same)
        return status;
    return mgl_fail(err, MGL_BAD_INPUT, output,
                    "is one of the files that are read (%.400s); name another one for the output",
                    input);
}

/* ---- maps ----------------------------------------------------------------------------------- */

/* Where the guarded copy of this thread continues after a SIGBUS; NULL outside a guard. Static
 * thread-local storage, because a signal handler must not trigger its allocation. */
static _Thread_local sigjmp_buf *volatile guard __attribute__((tls_model("initial-exec")));

static struct sigaction earlier_handler;

static void on_bus_error(int signal, siginfo_t *info, void *context)
{
    if (guard)
        siglongjmp(*guard, 1);
    if (earlier_handler.sa_flags & SA_SIGINFO) {
        earlier_handler.sa_sigaction(signal, info, context);
    } else if (earlier_handler.sa_handler != SIG_DFL && earlier_handler.sa_handler != SIG_IGN) {
        earlier_handler.sa_handler(signal);
    } else {
        sigaction(SIGBUS, &earlier_handler, NULL); /* the fault repeats on return; */
        if (info->si_code <= 0)                    /* a signal that was sent is sent again */
            raise(signal);
    }
}

static void install_handler(void)
{
    struct sigaction action = {0};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_NODEFER; /* so that the jump has no mask to restore */
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, NULL, &earlier_handler);
    sigaction(SIGBUS, &action, NULL);
}

/* The handler leaves the signal mask unchanged (SA_NODEFER), so the jump need not restore it.
 * The thread sanitizer's own handler, which runs first, does change the mask. */
#ifdef __SANITIZE_THREAD__
enum { KEEP_MASK = 1 };
#else
enum { KEEP_MASK = 0 };
#endif

/* The jump returns into this function. None of its variables live across the jump. */
__attribute__((noinline)) bool mgl_map_guard(mgl_guarded_fn *work, void *user)
{
    sigjmp_buf here;
    if (sigsetjmp(here, KEEP_MASK)) {
        guard = NULL;
        return false;
    }
    guard = &here; /* the fences keep the compiler from moving the work out of the guard */
    atomic_signal_fence(memory_order_seq_cst);
    work(user);
    atomic_signal_fence(memory_order_seq_cst);
    guard = NULL;
    return true;
}

struct copy {
    void *to;
    const char *from;
    size_t length;
};

static void copy_bytes(void *user)
{
    const struct copy *c = user;
    memcpy(c->to, c->from, c->length);
}

/* Releases the pages of a range after it was read; the file's data stays in the page cache. */
static void release_pages(const char *from, size_t length)
{
    uintptr_t start = ((uintptr_t)from + PAGE - 1) / PAGE * PAGE;
    uintptr_t end = ((uintptr_t)from + length) / PAGE * PAGE;
    if (end > start)
        madvise((void *)start, end - start, MADV_DONTNEED);
}

static mgl_status map_descriptor(mgl_map *map, const char *path, mgl_error *err)
{
    struct stat facts;
    if (fstat(map->descriptor, &facts))
        return mgl_fail_errno(err, path, "its size cannot be read");
    if (!S_ISREG(facts.st_mode))
        return mgl_fail(err, MGL_BAD_INPUT, path, "is not a regular file");
    map->size = (size_t)facts.st_size;
    if (!map->size)
        return MGL_OK;
    void *bytes = mgl_file_denied()
                      ? MAP_FAILED
                      : mmap(NULL, map->size, PROT_READ, MAP_SHARED, map->descriptor, 0);
    if (bytes == MAP_FAILED)
        return mgl_fail_errno(err, path, "cannot be mapped into memory");
    map->bytes = bytes;
    return MGL_OK;
}

mgl_status mgl_map_open(const char *path, mgl_map **out, mgl_error *err)
{
    *out = NULL;
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install_handler);
    mgl_map *map = mgl_alloc_zero(1, sizeof *map);
    if (!map)
        return mgl_fail_memory(err, sizeof *map);
    map->path = mgl_strdup(path);
    /* Non-blocking: a named pipe instead of a file is rejected without waiting. */
    map->descriptor = map->path ? open_file(path, O_NONBLOCK) : -1;
    mgl_status status = MGL_OK;
    if (!map->path)
        status = mgl_fail_memory(err, strlen(path) + 1);
    else if (map->descriptor < 0)
        status = mgl_fail_path(err, path, "cannot be opened");
    else
        status = map_descriptor(map, path, err);
    if (status) {
        mgl_map_close(map);
        return status;
    }
    *out = map;
    return MGL_OK;
}

void mgl_map_close(mgl_map *map)
{
    if (!map)
        return;
    if (map->bytes)
        munmap((void *)map->bytes, map->size);
    if (map->descriptor >= 0)
        close(map->descriptor);
    mgl_free(map->path);
    mgl_free(map);
}

size_t mgl_map_size(const mgl_map *map)
{
    return map->size;
}

const void *mgl_map_bytes(const mgl_map *map)
{
    return map->bytes;
}

mgl_status mgl_map_check(const mgl_map *map, size_t end, mgl_error *err)
{
    struct stat facts;
    if (fstat(map->descriptor, &facts))
        return mgl_fail_errno(err, map->path, "its size cannot be read");
    if (facts.st_size < 0 || (size_t)facts.st_size < end)
        return mgl_fail(err, MGL_BAD_INPUT, map->path,
                        "the file shrank from %zu to %lld bytes while it was in use; restore it "
                        "and start again",
                        map->size, (long long)facts.st_size);
    return MGL_OK;
}

const char *mgl_map_path(const mgl_map *map)
{
    return map->path;
}

mgl_status mgl_map_read(const mgl_map *map, size_t offset, size_t length, void *to, mgl_error *err)
{
    size_t end;
    if (!mgl_add(offset, length, &end) || end > map->size)
        return mgl_fail(err, MGL_BAD_INPUT, map->path,
                        "%zu bytes at offset %zu are outside the file of %zu bytes", length, offset,
                        map->size);
    if (!length)
        return MGL_OK;
    if (mgl_file_denied())
        return mgl_fail_errno(err, map->path, "cannot be read");
    bool copied = mgl_map_guard(copy_bytes, &(struct copy){to, map->bytes + offset, length});
    mgl_status status = mgl_map_check(map, end, err);
    if (status)
        return status;
    if (length >= RELEASED_BYTES)
        release_pages(map->bytes + offset, length);
    if (!copied)
        return mgl_fail(err, MGL_SYSTEM, map->path,
                        "the disk could not deliver %zu bytes at offset %zu", length, offset);
    return MGL_OK;
}
