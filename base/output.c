/*
 * Implements the atomic output files of output.h. The folder stays open: the file is created,
 * linked, renamed and removed relative to the folder, even if the path changes in the meantime.
 *
 * Locks: a writer locks its file before the file has a name, or else right after, and unlocks it
 * when the file is renamed or removed. A process that removes a leftover file takes the lock first,
 * and then checks that the name still refers to the locked file. So removal and writing exclude
 * each other, except for a file that has its name but not yet its lock. Its writer makes the same
 * check after locking, and uses another name if the check fails.
 */
#include "base/output.h"

#include "base/file.h"
#include "base/memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    DIGITS = 8,
    SUFFIX = sizeof MGL_OUTPUT_MARK - 1 + DIGITS + sizeof MGL_OUTPUT_END - 1,
    PREFIX = 100, /* bytes of X in the temporary name, so that the temporary name is valid if X
                   * is */
    TRIES = 100
};
static const char digits[] = "0123456789abcdefghijklmnopqrstuv";

struct mgl_output {
    char *path;                          /* owned: as given, for messages */
    char *name;                          /* owned: the final name in the folder */
    int folder;                          /* descriptor */
    int descriptor;                      /* of the file; -1: not open */
    char temporary[PREFIX + SUFFIX + 1]; /* the current name in the folder; "": unnamed */
};

static atomic_bool only_names;

void mgl_output_use_names(bool on)
{
    atomic_store(&only_names, on);
}

/* ---- names ---------------------------------------------------------------------------------- */

static int prefix_of(const char *name)
{
    size_t length = strlen(name);
    return length < PREFIX ? (int)length : PREFIX;
}

/* Makes a name that is most likely unused, from the time and a counter. */
static void draw_temporary(mgl_output *output)
{
    static atomic_uint_fast64_t draws;
    struct timespec now = {0};
    char drawn[DIGITS + 1] = "";
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t number = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    number += atomic_fetch_add(&draws, 1);
    for (int i = 0; i < DIGITS; i++, number >>= 5)
        drawn[i] = digits[number & 31];
    snprintf(output->temporary, sizeof output->temporary,
             "%.*s" MGL_OUTPUT_MARK "%s" MGL_OUTPUT_END, prefix_of(output->name), output->name,
             drawn);
}

/* Returns whether `entry` matches the temporary names of a writer of `name`. */
static bool is_temporary(const char *entry, const char *name)
{
    int prefix = prefix_of(name);
    if (strlen(entry) != (size_t)prefix + SUFFIX || strncmp(entry, name, (size_t)prefix) != 0)
        return false;
    entry += prefix;
    if (strncmp(entry, MGL_OUTPUT_MARK, sizeof MGL_OUTPUT_MARK - 1) != 0)
        return false;
    entry += sizeof MGL_OUTPUT_MARK - 1;
    return strspn(entry, digits) >= DIGITS && !strcmp(entry + DIGITS, MGL_OUTPUT_END);
}

/* Returns whether the name refers to the open file. */
static bool has_name(int descriptor, int folder, const char *name)
{
    struct stat opened, named;
    return !fstat(descriptor, &opened) && !fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) &&
           opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

/* ---- leftovers of killed processes ----------------------------------------------------------- */

static void remove_if_free(int folder, const char *name)
{
    struct stat facts;
    if (fstatat(folder, name, &facts, AT_SYMLINK_NOFOLLOW) || !S_ISREG(facts.st_mode))
        return;
    int left = openat(folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (left < 0)
        return;
    if (!flock(left, LOCK_EX | LOCK_NB) && has_name(left, folder, name))
        unlinkat(folder, name, 0);
    close(left);
}

/* Removes leftover files. Errors are ignored: the next writer tries again. */
static void remove_left(const mgl_output *output)
{
    int list = openat(output->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = list < 0 ? NULL : fdopendir(list);
    if (!entries) {
        if (list >= 0)
            close(list);
        return;
    }
    for (struct dirent *entry = readdir(entries); entry; entry = readdir(entries))
        if (is_temporary(entry->d_name, output->name))
            remove_if_free(output->folder, entry->d_name);
    closedir(entries);
}

/* ---- opening -------------------------------------------------------------------------------- */

static void release(mgl_output *output)
{
    if (output->descriptor >= 0)
        close(output->descriptor);
    if (output->folder >= 0)
        close(output->folder);
    mgl_free(output->path);
    mgl_free(output->name);
    mgl_free(output);
}

void mgl_output_abandon(mgl_output *output)
{
    if (!output)
        return;
    if (output->temporary[0])
        unlinkat(output->folder, output->temporary, 0);
    release(output);
}

static mgl_status fail_create(const mgl_output *output, mgl_error *err)
{
    return mgl_fail_path(err, output->path, "could not be created");
}

/* Only a regular file may exist at the path, or nothing. */
static mgl_status check_kind(const mgl_output *output, bool *stands, mgl_error *err)
{
    struct stat facts;
    *stands = !stat(output->path, &facts);
    if (*stands && S_ISREG(facts.st_mode))
        return MGL_OK;
    if (*stands && !S_ISDIR(facts.st_mode))
        return mgl_fail(err, MGL_BAD_INPUT, output->path, "is not a regular file");
    if (*stands)
        errno = EISDIR;
    return errno == ENOENT ? MGL_OK : fail_create(output, err);
}

/* Resolves the links at the end of the path into `to` (PATH_MAX bytes). */
static mgl_status follow_links(const mgl_output *output, char *to, mgl_error *err)
{
    struct stat facts;
    bool stands;
    const char *path = output->path;
    mgl_status status = check_kind(output, &stands, err);
    if (status)
        return status;
    bool found = !mgl_file_denied() && !lstat(path, &facts);
    if (!found && errno != ENOENT)
        return fail_create(output, err);
    if (!found || !S_ISLNK(facts.st_mode)) {
        int length = snprintf(to, PATH_MAX, "%s", path);
        errno = length ? ENAMETOOLONG : ENOENT;
        return length > 0 && length < PATH_MAX ? MGL_OK : fail_create(output, err);
    }
    if (!stands)
        return mgl_fail(err, MGL_BAD_INPUT, path,
                        "is a link that leads nowhere; remove it, or create what it names");
    return realpath(path, to) ? MGL_OK : fail_create(output, err);
}

/* A folder that is writable but not readable can be neither listed nor flushed. */
static int open_folder(const char *path)
{
    int folder = mgl_file_denied() ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return folder < 0 && errno == EACCES ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : folder;
}

static mgl_status find_place(mgl_output *output, mgl_error *err)
{
    char path[PATH_MAX], folder[PATH_MAX];
    mgl_status status = follow_links(output, path, err);
    if (status)
        return status;
    const char *name = mgl_file_split(path, folder);
    output->name = mgl_strdup(name);
    if (!output->name)
        return mgl_fail_memory(err, strlen(name) + 1);
    output->folder = open_folder(folder);
    return output->folder < 0 ? fail_create(output, err) : MGL_OK;
}

/* Returns false with errno; EWOULDBLOCK means that another process holds the lock. On a file
 * system without locks, no other process can lock the file in order to remove it. */
static bool take_lock(int descriptor)
{
    if (mgl_file_denied())
        return false;
    if (!flock(descriptor, LOCK_EX | LOCK_NB))
        return true;
    return errno == ENOLCK || errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL;
}

static void print_link(int descriptor, char link[64])
{
    snprintf(link, 64, "/proc/self/fd/%d", descriptor);
}

/* Returns -1 with EOPNOTSUPP if unnamed files are not supported, or cannot be named later. */
static int create_unnamed(const mgl_output *output)
{
    char link[64];
    if (atomic_load(&only_names))
        return errno = EOPNOTSUPP, -1;
    if (mgl_file_denied())
        return -1;
    int file = openat(output->folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    if (file < 0)
        return -1;
    print_link(file, link);
    if (!faccessat(AT_FDCWD, link, F_OK, 0))
        return file;
    close(file);
    return errno = EOPNOTSUPP, -1;
}

/* Tries one name; -1 with EEXIST when it is taken. */
static int create_named(mgl_output *output)
{
    draw_temporary(output);
    int file = mgl_file_denied() ? -1
                                 : openat(output->folder, output->temporary,
                                          O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0) {
        output->temporary[0] = 0;
        return -1;
    }
    bool locked = take_lock(file);
    if (locked && has_name(file, output->folder, output->temporary))
        return file;
    if (locked || errno == EWOULDBLOCK)
        errno = EEXIST; /* a cleaner took it for a leftover, and removes it */
    else
        unlinkat(output->folder, output->temporary, 0);
    output->temporary[0] = 0;
    int why = errno;
    close(file);
    return errno = why, -1;
}

/* Creates an unnamed file if the file system supports that, else a named one. Locks it. */
static mgl_status create(mgl_output *output, mgl_error *err)
{
    output->descriptor = create_unnamed(output);
    if (output->descriptor >= 0)
        return take_lock(output->descriptor) ? MGL_OK : fail_create(output, err);
    if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)
        return fail_create(output, err);
    for (int i = 0; i < TRIES && output->descriptor < 0; i++) {
        output->descriptor = create_named(output);
        if (output->descriptor < 0 && errno != EEXIST)
            break;
    }
    return output->descriptor < 0 ? fail_create(output, err) : MGL_OK;
}

mgl_status mgl_output_open(const char *path, mgl_output **out, mgl_error *err)
{
    mgl_output *output = mgl_alloc_zero(1, sizeof *output);
    if (!output)
        return mgl_fail_memory(err, sizeof *output);
    output->folder = output->descriptor = -1;
    output->path = mgl_strdup(path);
    mgl_status status =
        output->path ? find_place(output, err) : mgl_fail_memory(err, strlen(path) + 1);
    if (!status) {
        remove_left(output);
        status = create(output, err);
    }
    if (status)
        mgl_output_abandon(output);
    else
        *out = output;
    return status;
}

mgl_status mgl_output_write_file(const char *path, const void *bytes, size_t length, mgl_error *err)
{
    mgl_output *output;
    mgl_status status = mgl_output_open(path, &output, err);
    if (status)
        return status;
    status = mgl_output_write(output, 0, bytes, length, err);
    if (!status)
        return mgl_output_finish(output, err);
    mgl_output_abandon(output);
    return status;
}

mgl_status mgl_output_check(const char *path, mgl_error *err)
{
    mgl_output *output;
    mgl_status status = mgl_output_open(path, &output, err);
    if (!status)
        mgl_output_abandon(output);
    return status;
}

/* ---- writing -------------------------------------------------------------------------------- */

static mgl_status fail_write(const mgl_output *output, mgl_error *err)
{
    return mgl_fail_errno(err, output->path, "could not be written");
}

/* Starts writeback early, while more data is produced. The final flush cannot be interrupted,
 * and then has little left to wait for. If this fails, the final flush waits for all the data. */
static void start_writing(const mgl_output *output, off64_t offset, off64_t count)
{
    if (sync_file_range(output->descriptor, offset, count, SYNC_FILE_RANGE_WRITE))
        return;
}

mgl_status mgl_output_write(mgl_output *output, uint64_t offset, const void *bytes, size_t length,
                            mgl_error *err)
{
    const char *from = bytes;
    off64_t start = (off64_t)offset, count = (off64_t)length;
    while (length > 0) {
        ssize_t n =
            mgl_file_denied() ? -1 : pwrite(output->descriptor, from, length, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return fail_write(output, err);
        from += n;
        offset += (uint64_t)n;
        length -= (size_t)n;
    }
    start_writing(output, start, count);
    return MGL_OK;
}

/* Returns true if the data is on the disk. */
static bool flush(int descriptor)
{
    int result;
    if (mgl_file_denied())
        return false;
    do
        result = fsync(descriptor);
    while (result && errno == EINTR);
    return !result;
}

/* Gives the unnamed file a temporary name in the folder. */
static bool link_temporary(mgl_output *output)
{
    char link[64];
    print_link(output->descriptor, link);
    for (int i = 0; i < TRIES; i++) {
        draw_temporary(output);
        if (!mgl_file_denied() &&
            !linkat(AT_FDCWD, link, output->folder, output->temporary, AT_SYMLINK_FOLLOW))
            return true;
        output->temporary[0] = 0;
        if (errno != EEXIST)
            return false;
    }
    return false;
}

static bool rename_temporary(mgl_output *output)
{
    if (mgl_file_denied() ||
        renameat(output->folder, output->temporary, output->folder, output->name))
        return false;
    output->temporary[0] = 0;
    return true;
}

/* The name is on the disk once the folder is flushed. Not every folder can be flushed: an
 * unreadable one gives EBADF, and some file systems give EINVAL. */
static mgl_status confirm(mgl_output *output, mgl_error *err)
{
    bool flushed = flush(output->folder) || errno == EBADF || errno == EINVAL;
    int why = errno;
    bool closed = !close(output->descriptor) && !mgl_file_denied();
    output->descriptor = -1;
    if (flushed && closed)
        return MGL_OK;
    if (!flushed)
        errno = why;
    return mgl_fail_errno(err, output->path,
                          "is written, but the disk did not confirm that it stays there");
}

/* Copies the mode of the existing file, so that the same users can read the new file. Returns
 * false with errno. On a file system without modes there is nothing to copy. */
static bool keep_rights(const mgl_output *output)
{
    struct stat facts;
    if (mgl_file_denied())
        return false;
    if (fstatat(output->folder, output->name, &facts, AT_SYMLINK_NOFOLLOW))
        return errno == ENOENT;
    if (!S_ISREG(facts.st_mode))
        return true;
    if (mgl_file_denied())
        return false;
    return !fchmod(output->descriptor, facts.st_mode & 0777) || errno == EPERM ||
           errno == EOPNOTSUPP || errno == ENOSYS;
}

mgl_status mgl_output_finish(mgl_output *output, mgl_error *err)
{
    bool placed = keep_rights(output) && flush(output->descriptor) &&
                  (output->temporary[0] || link_temporary(output)) && rename_temporary(output);
    if (!placed) {
        mgl_status status = fail_write(output, err);
        mgl_output_abandon(output);
        return status;
    }
    mgl_status status = confirm(output, err);
    release(output);
    return status;
}
