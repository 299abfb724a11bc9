/*
 * Outputs: files that are written whole or not at all. What is written has no name (O_TMPFILE)
 * until it is finished, so that a process that is killed leaves nothing. To take the place of what
 * stood there it is linked beside it, as X.megalith-RANDOM.partial, and renamed to X. Where the
 * file system has no files without a name, it has that name from the start.
 *
 * Whoever writes holds a lock (flock) on the file. A file of such a name that nobody has locked was
 * left by a process that was killed; the next writer of X removes it. The pattern is that of
 * MGL_OUTPUT_MARK, eight digits of base 32 and MGL_OUTPUT_END, and nothing else is ever removed.
 */
#ifndef MGL_BASE_OUTPUT_H
#define MGL_BASE_OUTPUT_H

#include "base/error.h"

#define MGL_OUTPUT_MARK ".megalith-"
#define MGL_OUTPUT_END  ".partial"

/* A link is followed: what it leads to is replaced, and the link stays. A folder, a device, a pipe
 * and a link that leads nowhere are refused. The rights are those of any new file. */
typedef struct mgl_output mgl_output;
mgl_status mgl_output_open(const char *path, mgl_output **out, mgl_error *err);

/* Whether one can be opened there: to be asked before long work whose result goes there. */
mgl_status mgl_output_check(const char *path, mgl_error *err);

/* Writes `length` bytes at `offset`, in any order. Thread safe. */
mgl_status mgl_output_write(mgl_output *output, uint64_t offset, const void *bytes, size_t length,
                            mgl_error *err);

/* Makes it the file of that name, on the disk before and after; releases it, also when that fails.
 * What stood there is gone only when the whole new file is there: then an error says that the disk
 * did not confirm the name. */
mgl_status mgl_output_finish(mgl_output *output, mgl_error *err);

/* All of it at once: a file of these bytes. */
mgl_status mgl_output_write_file(const char *path, const void *bytes, size_t length,
                                 mgl_error *err);

/* Removes and releases what was written. NULL is fine. */
void mgl_output_abandon(mgl_output *output);

/* Tests: as on a file system that has no files without a name. */
void mgl_output_use_names(bool on);

#endif
