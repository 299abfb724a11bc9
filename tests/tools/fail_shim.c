/*
 * A preloaded library (LD_PRELOAD) that counts a program's calls of the C library and makes those
 * fail that fail_calls.h selects: the n-th of a kind, or all from it on.
 *
 * Calls are counted after loading, from the program and the libraries that it was started with,
 * including the C library. Calls of libraries opened later are not counted. The C library calls
 * malloc by its name, so its allocations (stdio, dlopen) are counted. Its system calls cannot be
 * intercepted, so the standard streams are replaced by streams with writes of this library.
 *
 * A failing call is not executed, except close: Linux has closed the file when close returns EIO.
 */
#include "tests/tools/fail_calls.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MAX_RANGES = 32, MAX_FRAMES = 48 };

static const struct {
    const char *name;
    int number;
} kinds[] = {
#define MGL_X(kind, number, calls) {#kind, number},
    MGL_FAIL_KINDS(MGL_X)
#undef MGL_X
};

static mgl_fail_page *page; /* NULL: nothing is counted */
static int chosen = -1;     /* kind that fails; -1: none */
static uint64_t fail_at;
static bool forever, traced;

/* Address ranges of the code whose calls count. */
static struct {
    uintptr_t from, to;
} ranges[MAX_RANGES];
static size_t range_count;

/* ---- selection of failures ------------------------------------------------------------------- */

static bool is_counted(const void *caller)
{
    for (size_t i = 0; i < range_count; i++)
        if ((uintptr_t)caller >= ranges[i].from && (uintptr_t)caller < ranges[i].to)
            return true;
    return false;
}

static void trace(void)
{
    void *frames[MAX_FRAMES];
    static atomic_bool done;
    if (traced && !atomic_exchange(&done, true))
        backtrace_symbols_fd(frames, backtrace(frames, MAX_FRAMES), STDERR_FILENO);
}

/* Counts a call. Returns true, with errno set, if it must fail. */
static bool fails(int kind, const void *caller)
{
    if (!page || !is_counted(caller))
        return false;
    uint64_t n = atomic_fetch_add(&page->calls[kind], 1) + 1;
    if (kind != chosen || n < fail_at || (n > fail_at && !forever))
        return false;
    atomic_fetch_add(&page->failed, 1);
    trace();
    errno = kinds[kind].number;
    return true;
}

#define FAILS(kind) fails(MGL_FAIL_##kind, __builtin_return_address(0))

/* ---- memory and threads ---------------------------------------------------------------------- */

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

void *malloc(size_t bytes)
{
    return FAILS(malloc) ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t size)
{
    return FAILS(calloc) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t bytes)
{
    return FAILS(realloc) ? NULL : __libc_realloc(old, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return FAILS(memalign) ? NULL : __libc_memalign(alignment, bytes);
}

int posix_memalign(void **to, size_t alignment, size_t bytes)
{
    void *memory = FAILS(memalign) ? NULL : __libc_memalign(alignment, bytes);
    if (!memory)
        return ENOMEM;
    *to = memory;
    return 0;
}

void *mmap(void *at, size_t bytes, int protection, int flags, int descriptor, off_t offset)
{
    if (FAILS(mmap))
        return MAP_FAILED;
    return (void *)syscall(SYS_mmap, at, bytes, protection, flags, descriptor, offset);
}

/* The original function that this one replaces. */
static void find_next(const char *name, void *function)
{
    void *at = dlsym(RTLD_NEXT, name);
    memcpy(function, &at, sizeof at);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*work)(void *), void *user)
{
    static int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (FAILS(pthread_create))
        return EAGAIN;
    find_next("pthread_create", &next);
    return next(thread, how, work, user);
}

int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *files,
                const posix_spawnattr_t *how, char *const argv[], char *const environment[])
{
    static int (*next)(pid_t *, const char *, const posix_spawn_file_actions_t *,
                       const posix_spawnattr_t *, char *const[], char *const[]);
    if (FAILS(spawn))
        return EAGAIN;
    find_next("posix_spawn", &next);
    return next(pid, path, files, how, argv, environment);
}

/* A missing library: dlerror reports that. */
void *dlopen(const char *path, int flags)
{
    static void *(*next)(const char *, int);
    find_next("dlopen", &next);
    return next(FAILS(dlopen) ? "/nowhere/missing.so" : path, flags);
}

/* ---- files ----------------------------------------------------------------------------------- */

static int open_at(int folder, const char *path, int flags, unsigned mode)
{
    return (int)syscall(SYS_openat, folder, path, flags, mode);
}

static unsigned take_mode(int flags, va_list more)
{
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(more, unsigned) : 0;
}

int open(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    unsigned mode = take_mode(flags, more);
    va_end(more);
    return FAILS(open) ? -1 : open_at(AT_FDCWD, path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    unsigned mode = take_mode(flags, more);
    va_end(more);
    return FAILS(open) ? -1 : open_at(folder, path, flags, mode);
}

FILE *fopen(const char *path, const char *mode)
{
    static FILE *(*next)(const char *, const char *);
    if (FAILS(open))
        return NULL;
    find_next("fopen", &next);
    return next(path, mode);
}

DIR *fdopendir(int descriptor)
{
    static DIR *(*next)(int);
    if (FAILS(open))
        return NULL;
    find_next("fdopendir", &next);
    return next(descriptor);
}

struct dirent *readdir(DIR *entries)
{
    static struct dirent *(*next)(DIR *);
    if (FAILS(read))
        return NULL;
    find_next("readdir", &next);
    return next(entries);
}

ssize_t read(int descriptor, void *to, size_t length)
{
    return FAILS(read) ? -1 : syscall(SYS_read, descriptor, to, length);
}

ssize_t pread(int descriptor, void *to, size_t length, off_t offset)
{
    return FAILS(read) ? -1 : syscall(SYS_pread64, descriptor, to, length, offset);
}

static ssize_t write_from(int descriptor, const void *bytes, size_t length, const void *caller)
{
    if (!fails(MGL_FAIL_write, caller))
        return syscall(SYS_write, descriptor, bytes, length);
    if (descriptor == STDOUT_FILENO || descriptor == STDERR_FILENO)
        atomic_fetch_or(&page->failed_on, UINT64_C(1) << descriptor);
    return -1;
}

ssize_t write(int descriptor, const void *bytes, size_t length)
{
    return write_from(descriptor, bytes, length, __builtin_return_address(0));
}

ssize_t pwrite(int descriptor, const void *bytes, size_t length, off_t offset)
{
    return FAILS(write) ? -1 : syscall(SYS_pwrite64, descriptor, bytes, length, offset);
}

int fsync(int descriptor)
{
    return FAILS(fsync) ? -1 : (int)syscall(SYS_fsync, descriptor);
}

int fdatasync(int descriptor)
{
    return FAILS(fsync) ? -1 : (int)syscall(SYS_fdatasync, descriptor);
}

int sync_file_range(int descriptor, off_t offset, off_t count, unsigned flags)
{
    if (FAILS(fsync))
        return -1;
    return (int)syscall(SYS_sync_file_range, descriptor, offset, count, flags);
}

int rename(const char *from, const char *to)
{
    return FAILS(rename) ? -1 : (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int renameat(int from_folder, const char *from, int to_folder, const char *to)
{
    return FAILS(rename) ? -1 : (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, 0);
}

int link(const char *from, const char *to)
{
    return FAILS(rename) ? -1 : (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags)
{
    return FAILS(rename) ? -1 : (int)syscall(SYS_linkat, from_folder, from, to_folder, to, flags);
}

int fchmod(int descriptor, mode_t mode)
{
    return FAILS(rename) ? -1 : (int)syscall(SYS_fchmod, descriptor, mode);
}

int close(int descriptor)
{
    int result = (int)syscall(SYS_close, descriptor);
    return FAILS(close) ? -1 : result;
}

int flock(int descriptor, int operation)
{
    return FAILS(flock) ? -1 : (int)syscall(SYS_flock, descriptor, operation);
}

int unlink(const char *path)
{
    return FAILS(unlink) ? -1 : (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

int unlinkat(int folder, const char *path, int flags)
{
    return FAILS(unlink) ? -1 : (int)syscall(SYS_unlinkat, folder, path, flags);
}

int dup2(int from, int to)
{
    return FAILS(dup) ? -1 : (int)syscall(SYS_dup3, from, to, 0);
}

int fcntl(int descriptor, int command, ...)
{
    va_list more;
    va_start(more, command);
    void *argument = va_arg(more, void *); /* the kernel accepts partial writes */
    va_end(more);
    bool duplicates = command == F_DUPFD || command == F_DUPFD_CLOEXEC;
    if (duplicates && FAILS(dup))
        return -1;
    return (int)syscall(SYS_fcntl, descriptor, command, argument);
}

int pipe2(int ends[2], int flags)
{
    return FAILS(dup) ? -1 : (int)syscall(SYS_pipe2, ends, flags);
}

int memfd_create(const char *name, unsigned flags)
{
    return FAILS(dup) ? -1 : (int)syscall(SYS_memfd_create, name, flags);
}

ssize_t getrandom(void *to, size_t length, unsigned flags)
{
    return FAILS(random) ? -1 : syscall(SYS_getrandom, to, length, flags);
}

/* ---- file status ----------------------------------------------------------------------------- */

static int stat_at(int folder, const char *path, struct stat *facts, int flags)
{
    return (int)syscall(SYS_newfstatat, folder, path, facts, flags);
}

int stat(const char *path, struct stat *facts)
{
    return FAILS(stat) ? -1 : stat_at(AT_FDCWD, path, facts, 0);
}

int lstat(const char *path, struct stat *facts)
{
    return FAILS(stat) ? -1 : stat_at(AT_FDCWD, path, facts, AT_SYMLINK_NOFOLLOW);
}

int fstat(int descriptor, struct stat *facts)
{
    return FAILS(stat) ? -1 : (int)syscall(SYS_fstat, descriptor, facts);
}

int fstatat(int folder, const char *path, struct stat *facts, int flags)
{
    return FAILS(stat) ? -1 : stat_at(folder, path, facts, flags);
}

int access(const char *path, int mode)
{
    return FAILS(stat) ? -1 : (int)syscall(SYS_faccessat, AT_FDCWD, path, mode);
}

int faccessat(int folder, const char *path, int mode, int flags)
{
    static int (*next)(int, const char *, int, int);
    if (FAILS(stat))
        return -1;
    find_next("faccessat", &next);
    return next(folder, path, mode, flags);
}

char *realpath(const char *path, char *to)
{
    static char *(*next)(const char *, char *);
    if (FAILS(stat))
        return NULL;
    find_next("realpath", &next);
    return next(path, to);
}

/* Programs built with 64-bit file offsets call these. */
#if __has_attribute(copy) /* gcc compares the attributes of the two */
#define ALIAS(of) __attribute__((alias(#of), copy(of)))
#else
#define ALIAS(of) __attribute__((alias(#of)))
#endif
extern __typeof__(mmap) mmap64 ALIAS(mmap);
extern __typeof__(open) open64 ALIAS(open);
extern __typeof__(openat) openat64 ALIAS(openat);
extern __typeof__(fopen) fopen64 ALIAS(fopen);
extern __typeof__(pread) pread64 ALIAS(pread);
extern __typeof__(pwrite) pwrite64 ALIAS(pwrite);

/* ---- the beginning --------------------------------------------------------------------------- */

static ssize_t write_stream(void *descriptor, const char *bytes, size_t length)
{
    const void *ours = (const void *)(uintptr_t)ranges[0].from; /* the program's own */
    ssize_t n = write_from((int)(intptr_t)descriptor, bytes, length, ours);
    return n < 0 ? 0 : n;
}

static FILE *open_stream(int descriptor)
{
    return fopencookie((void *)(intptr_t)descriptor, "w",
                       (cookie_io_functions_t){.write = write_stream});
}

static int add_range(struct dl_phdr_info *object, size_t size, void *user)
{
    const char *own = user;
    uintptr_t from = UINTPTR_MAX, to = 0;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        uintptr_t start = object->dlpi_addr + part->p_vaddr;
        if (part->p_type != PT_LOAD)
            continue;
        from = start < from ? start : from;
        to = start + part->p_memsz > to ? start + part->p_memsz : to;
    }
    bool is_own = (uintptr_t)own >= from && (uintptr_t)own < to;
    if (size && !is_own && range_count < MAX_RANGES) {
        ranges[range_count].from = from;
        ranges[range_count++].to = to;
    }
    return 0;
}

static void choose(const char *kind)
{
    const char *at = getenv("FAIL_AT"), *all = getenv("FAIL_FOREVER");
    for (int i = 0; kind && i < MGL_FAIL_KIND_COUNT; i++)
        if (!strcmp(kinds[i].name, kind))
            chosen = i;
    fail_at = at ? strtoull(at, NULL, 10) : 0;
    forever = all && all[0] == '1';
}

__attribute__((constructor)) static void begin(void)
{
    void *frames[1];
    const char *path = getenv("FAIL_COUNT");
    int file = path ? open_at(AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0) : -1;
    if (file < 0)
        return;
    FILE *out = open_stream(STDOUT_FILENO), *err = open_stream(STDERR_FILENO);
    void *shared = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (!out || !err || shared == MAP_FAILED)
        _exit(126);
    setvbuf(err, NULL, _IONBF, 0);
    stdout = out;
    stderr = err;
    choose(getenv("FAIL_KIND"));
    traced = getenv("FAIL_TRACE") && backtrace(frames, 1); /* its first call allocates */
    dl_iterate_phdr(add_range, &page);
    page = shared;
}
