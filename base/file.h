/*
 * Files: whole reads and read-only maps, through a seam that a test can make fail.
 * A mapped file that shrinks under the map is an error of the next mgl_map_read, never a crash:
 * bytes of a map are read through mgl_map_read alone. Files that are written: output.h.
 */
#ifndef MGL_BASE_FILE_H
#define MGL_BASE_FILE_H

#include "base/error.h"

#include <limits.h>
#include <sys/stat.h>

#define MGL_STDIN "/dev/stdin"

/* Reads the whole file, at most `cap` bytes, with a 0 behind it. Release with mgl_free. A pipe, a
 * terminal and MGL_STDIN are read to their end; of another device few bytes, since it may have
 * none. What is larger is refused. */
mgl_status mgl_file_read(const char *path, size_t cap, char **out, size_t *length, mgl_error *err);
/* The same, and whether the file's size was what it was refused for (*fits is false). */
mgl_status mgl_file_read_fitting(const char *path, size_t cap, char **out, size_t *length,
                                 bool *fits, mgl_error *err);
/* The same for a file of a folder that somebody else filled: what is no regular file, a named pipe
 * above all, is rejected without a wait, and so are the files of base/placeholder.h. */
mgl_status mgl_file_read_regular(const char *path, size_t cap, char **out, size_t *length,
                                 mgl_error *err);
/* Whether something of that name stands there, be it a link that leads nowhere. That nothing does
 * is known only when the system says so; where it cannot look, that is an error. */
mgl_status mgl_file_stands(const char *path, bool *stands, mgl_error *err);
/* The same of what links lead to, and what it is. */
mgl_status mgl_file_look(const char *path, bool *stands, struct stat *facts, mgl_error *err);

/* Whether both paths lead to one file, through links of either kind; or, where nothing stands at
 * either, are one name in one folder. */
mgl_status mgl_file_same(const char *a, const char *b, bool *same, mgl_error *err);
/* MGL_BAD_INPUT when the output is the same file as the input (which may be NULL). */
mgl_status mgl_file_check_output(const char *output, const char *input, mgl_error *err);
/* The folder of a path of less than PATH_MAX bytes; returns the name in it. */
const char *mgl_file_split(const char *path, char folder[PATH_MAX]);

/* Makes a folder and those above it that do not stand, with these rights (less the umask's). One
 * that stands stays as it is. */
mgl_status mgl_folder_make(const char *path, unsigned rights, mgl_error *err);
/* The names of what stands in a folder and ends in `suffix`, by their bytes; hidden ones are left
 * out. None where no such folder stands. Release with mgl_file_list_clear. */
typedef struct mgl_file_list {
    char **names; /* (count) */
    size_t count, capacity;
} mgl_file_list;
mgl_status mgl_folder_list(const char *path, const char *suffix, mgl_file_list *out,
                           mgl_error *err);
void mgl_file_list_clear(mgl_file_list *list);
/* Bytes that whoever asks can still write to the file system of a path that stands. */
mgl_status mgl_disk_free(const char *path, uint64_t *bytes, mgl_error *err);

typedef struct mgl_map mgl_map;
mgl_status mgl_map_open(const char *path, mgl_map **out, mgl_error *err);
void mgl_map_close(mgl_map *map); /* NULL is fine */
size_t mgl_map_size(const mgl_map *map);
const char *mgl_map_path(const mgl_map *map); /* as it was opened */

/* Copies bytes [offset, offset + length) of the file. Fails when they are outside the map, and
 * when the file has shrunk meanwhile (SIGBUS is caught for the calling thread). Thread safe. */
mgl_status mgl_map_read(const mgl_map *map, size_t offset, size_t length, void *to, mgl_error *err);

/* The bytes themselves, for those who read them in place: under mgl_map_guard alone, and asking
 * mgl_map_check behind it, since a page that holds the new end of a file that shrank reads as
 * zeros. */
const void *mgl_map_bytes(const mgl_map *map);
/* Runs `work`. False when it touched a page of a map that is gone; `work` then did not come to its
 * end. Of any thread. */
typedef void mgl_guarded_fn(void *user);
bool mgl_map_guard(mgl_guarded_fn *work, void *user);
/* MGL_BAD_INPUT when the file has fewer than `end` bytes by now. */
mgl_status mgl_map_check(const mgl_map *map, size_t end, mgl_error *err);

/* Tests: the n-th file operation (look, open, lock, read, map, write, rights, flush, link, rename,
 * close, make) from now fails with EIO. 0 switches it off. */
void mgl_file_fail_at(uint64_t n);
/* Asked before each operation: whether it is to fail, with errno set. */
bool mgl_file_denied(void);

#endif
