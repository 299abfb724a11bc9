/*
 * Input files: whole reads, lookups, folder listings and read-only memory maps. Output files:
 * output.h. Tests can make any file operation fail (mgl_file_fail_at).
 *
 * If a mapped file shrinks while it is mapped, the next mgl_map_read returns an error; the process
 * does not crash. So bytes of a map are read only through mgl_map_read or under mgl_map_guard.
 */
#ifndef MGL_BASE_FILE_H
#define MGL_BASE_FILE_H

#include "base/error.h"
#include "base/text.h"

#include <limits.h>
#include <sys/stat.h>

#define MGL_STDIN "/dev/stdin"

/* Reads the whole file, at most `cap` bytes, and appends a 0. Release with mgl_free. A pipe, a
 * terminal and MGL_STDIN are read to their end. Of other character devices only a few bytes are
 * read, because the device may have no end. A larger file is an error (MGL_BAD_INPUT). */
mgl_status mgl_file_read(const char *path, size_t cap, char **out, size_t *length, mgl_error *err);
/* Same as mgl_file_read. *fits becomes false if the file was rejected because of its size. */
mgl_status mgl_file_read_fitting(const char *path, size_t cap, char **out, size_t *length,
                                 bool *fits, mgl_error *err);
/* Same, for a file of a folder that the user downloaded: anything but a regular file (for
 * instance a named pipe) is rejected without blocking, and so are placeholders
 * (base/placeholder.h). */
mgl_status mgl_file_read_regular(const char *path, size_t cap, char **out, size_t *length,
                                 mgl_error *err);
/* Sets *stands to whether the path exists; a dangling link exists. If the system cannot answer
 * (for instance for lack of permission), this is an error. */
mgl_status mgl_file_stands(const char *path, bool *stands, mgl_error *err);
/* Same, following links; *facts receives the stat result if the path exists. */
mgl_status mgl_file_look(const char *path, bool *stands, struct stat *facts, mgl_error *err);

/* Sets *stands to whether the path leads to a folder. */
mgl_status mgl_folder_stands(const char *path, bool *stands, mgl_error *err);
/* Sets *holds to whether FOLDER/NAME exists; links are followed. */
mgl_status mgl_folder_holds(const char *folder, const char *name, bool *holds, mgl_error *err);

/* Sets *same if both paths lead to one file, through symbolic or hard links. If neither path
 * exists, *same means that they are the same name in the same folder. */
mgl_status mgl_file_same(const char *a, const char *b, bool *same, mgl_error *err);
/* Returns MGL_BAD_INPUT if the output is the same file as the input (which may be NULL). */
mgl_status mgl_file_check_output(const char *output, const char *input, mgl_error *err);
/* Formats a path. MGL_BAD_INPUT: it is longer than PATH_MAX - 1 bytes. */
mgl_status mgl_file_path(char out[PATH_MAX], mgl_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Copies the folder of a path shorter than PATH_MAX bytes; returns the file name within the
 * path. */
const char *mgl_file_split(const char *path, char folder[PATH_MAX]);

/* Writes FOLDER/NAME. Release with mgl_text_clear, also after a failure. */
mgl_status mgl_path_join(const char *folder, const char *name, mgl_text *out, mgl_error *err);

/* Creates a folder and its missing parents with the given mode (minus the umask). An existing
 * folder is left unchanged. */
mgl_status mgl_folder_make(const char *path, unsigned rights, mgl_error *err);
/* Lists the names in a folder that end in `suffix`, sorted by bytes, without hidden files. If
 * the folder does not exist, the list is empty. Release with mgl_file_list_clear. */
typedef struct mgl_file_list {
    char **names; /* (count) */
    size_t count, capacity;
} mgl_file_list;
mgl_status mgl_folder_list(const char *path, const char *suffix, mgl_file_list *out,
                           mgl_error *err);
void mgl_file_list_clear(mgl_file_list *list);
/* Free bytes for this user in the file system of an existing path. */
mgl_status mgl_disk_free(const char *path, uint64_t *bytes, mgl_error *err);

typedef struct mgl_map mgl_map;
mgl_status mgl_map_open(const char *path, mgl_map **out, mgl_error *err);
void mgl_map_close(mgl_map *map); /* NULL is fine */
size_t mgl_map_size(const mgl_map *map);
const char *mgl_map_path(const mgl_map *map); /* as it was opened */

/* Copies bytes [offset, offset + length) of the file. Fails if the range is outside the map, or
 * if the file has shrunk (SIGBUS is caught for the calling thread). Thread safe. */
mgl_status mgl_map_read(const mgl_map *map, size_t offset, size_t length, void *to, mgl_error *err);

/* The mapped bytes, for reading in place. Read them only under mgl_map_guard, and call
 * mgl_map_check afterwards: the page with the new end of a file that shrank reads as zeros. */
const void *mgl_map_bytes(const mgl_map *map);
/* Runs `work`. Returns false if `work` touched a page of a map that no longer exists; `work` was
 * then aborted. Callable from any thread. */
typedef void mgl_guarded_fn(void *user);
bool mgl_map_guard(mgl_guarded_fn *work, void *user);
/* Returns MGL_BAD_INPUT if the file now has fewer than `end` bytes. */
mgl_status mgl_map_check(const mgl_map *map, size_t end, mgl_error *err);

/* For tests: the n-th file operation (look, open, lock, read, map, write, rights, flush, link,
 * rename, close, make) from now fails with EIO. 0 switches this off. */
void mgl_file_fail_at(uint64_t n);
/* Called before each file operation: returns whether the operation must fail, with errno set. */
bool mgl_file_denied(void);

#endif
