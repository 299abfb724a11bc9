/*
 * Output files that are written completely or not at all. A file has no name (O_TMPFILE) until it
 * is finished, so a killed process leaves nothing behind. To replace an existing file X, the new
 * file is linked beside it as X.megalith-RANDOM.partial and renamed to X. If the file system does
 * not support unnamed files, the file has that temporary name from the start.
 *
 * The writer holds a lock (flock) on the file. A file with such a name and without a lock was left
 * by a killed process; the next writer of X removes it. The pattern is X, MGL_OUTPUT_MARK, eight
 * digits of base 32 and MGL_OUTPUT_END. No other file is ever removed.
 */
#ifndef MGL_BASE_OUTPUT_H
#define MGL_BASE_OUTPUT_H

#include "base/error.h"

#define MGL_OUTPUT_MARK ".megalith-"
#define MGL_OUTPUT_END  ".partial"

/* An output in progress. A link is followed: its target is replaced, and the link stays. A
 * folder, a device, a pipe and a dangling link are errors. A new file has the default mode. */
typedef struct mgl_output mgl_output;
mgl_status mgl_output_open(const char *path, mgl_output **out, mgl_error *err);

/* Checks whether an output can be opened at the path. Call before long work that writes there. */
mgl_status mgl_output_check(const char *path, mgl_error *err);

/* Writes `length` bytes at `offset`, in any order. Thread safe. */
mgl_status mgl_output_write(mgl_output *output, uint64_t offset, const void *bytes, size_t length,
                            mgl_error *err);

/* Gives the file its name, flushing before and after; releases the output, also on failure. An
 * existing file is replaced only when the whole new file is in place. After that point, an error
 * means that the disk did not confirm the name. */
mgl_status mgl_output_finish(mgl_output *output, mgl_error *err);

/* Writes a whole file at once. */
mgl_status mgl_output_write_file(const char *path, const void *bytes, size_t length,
                                 mgl_error *err);

/* Discards and releases an output. NULL is fine. */
void mgl_output_abandon(mgl_output *output);

/* For tests: behave as on a file system without unnamed files. */
void mgl_output_use_names(bool on);

#endif
