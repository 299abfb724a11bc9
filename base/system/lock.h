/* Exclusive locks between processes: flock(2) on a file or a folder. A lock ends with its process,
 * however that ends, so a leftover file locks nothing. */
#ifndef MGL_BASE_SYSTEM_LOCK_H
#define MGL_BASE_SYSTEM_LOCK_H

#include "base/error.h"

/* Opens the path, which is created as an empty file with the given mode (minus the umask) if it is
 * missing, and locks it. Waits at most `wait_ms` for another holder. *taken false: the other holder
 * still has it. Closing *descriptor ends the lock; it is open if the function returns MGL_OK, and
 * else -1. */
mgl_status mgl_lock_take(const char *path, unsigned rights, int wait_ms, int *descriptor,
                         bool *taken, mgl_error *err);

#endif
