/*
 * Files: whole reads and read-only maps, through a seam that a test can make fail.
 * A mapped file that shrinks under the map is an error of the next mgl_map_read, never a crash:
 * bytes of a map are read through mgl_map_read alone.
 */
#ifndef MGL_BASE_FILE_H
#define MGL_BASE_FILE_H

#include "base/error.h"

/* Reads the whole file, at most `cap` bytes, with a 0 behind it. Release with mgl_free. */
mgl_status mgl_file_read(const char *path, size_t cap, char **out, size_t *length, mgl_error *err);
/* The same for a file of a folder that somebody else filled: what is no regular file, a named pipe
 * above all, is refused instead of waited for. */
mgl_status mgl_file_read_regular(const char *path, size_t cap, char **out, size_t *length,
                                 mgl_error *err);
/* Whether something of that name stands there, be it a link that leads nowhere. */
bool mgl_file_stands(const char *path);

typedef struct mgl_map mgl_map;
mgl_status mgl_map_open(const char *path, mgl_map **out, mgl_error *err);
void mgl_map_close(mgl_map *map); /* NULL is fine */
size_t mgl_map_size(const mgl_map *map);

/* Copies bytes [offset, offset + length) of the file. Fails when they are outside the map, and
 * when the file has shrunk meanwhile (SIGBUS is caught for the calling thread). Thread safe. */
mgl_status mgl_map_read(const mgl_map *map, size_t offset, size_t length, void *to, mgl_error *err);

/* The bytes themselves, for those who read them in place: under mgl_map_guard alone, and asking
 * mgl_map_check behind it, since a page that holds the new end of a file that shrank reads as zeros. */
const void *mgl_map_bytes(const mgl_map *map);
/* Runs `work`. False when it touched a page of a map that is gone; `work` then did not come to its
 * end. Of any thread. */
typedef void mgl_guarded_fn(void *user);
bool mgl_map_guard(mgl_guarded_fn *work, void *user);
/* MGL_BAD_INPUT when the file has fewer than `end` bytes by now. */
mgl_status mgl_map_check(const mgl_map *map, size_t end, mgl_error *err);

/* A large file that is written whole or not at all: in a file beside `path`, which takes the place
 * of what stood there when it is finished. What stands there and is no regular file is refused. */
typedef struct mgl_output mgl_output;
mgl_status mgl_output_open(const char *path, mgl_output **out, mgl_error *err);
/* Writes `length` bytes at `offset`, in any order. Thread safe. */
mgl_status mgl_output_write(mgl_output *output, uint64_t offset, const void *bytes, size_t length,
                            mgl_error *err);
/* Makes it the file of that name; releases it, also when that fails. */
mgl_status mgl_output_finish(mgl_output *output, mgl_error *err);
/* Removes and releases what was written. NULL is fine. */
void mgl_output_abandon(mgl_output *output);

/* Tests: the n-th file operation (open, read, map, write, rename) from now fails with EIO. 0 switches it off. */
void mgl_file_fail_at(uint64_t n);

#endif
