/* Implements lock.h. */
#include "base/system/lock.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

enum { STEP_MS = 5 };

/* A link is not followed, and a named pipe does not block. */
static int open_path(const char *path, unsigned rights)
{
    const int flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    if (mgl_file_denied())
        return -1;
    int descriptor = open(path, O_RDONLY | O_DIRECTORY | flags);
    return descriptor < 0 && (errno == ENOENT || errno == ENOTDIR)
               ? open(path, O_RDWR | O_CREAT | flags, (mode_t)rights)
               : descriptor;
}

mgl_status mgl_lock_take(const char *path, unsigned rights, int wait_ms, int *descriptor,
                         bool *taken, mgl_error *err)
{
    const struct timespec step = {.tv_nsec = STEP_MS * 1000 * 1000};
    *taken = false;
    *descriptor = open_path(path, rights);
    if (*descriptor < 0)
        return mgl_fail_path(err, path, "the lock file cannot be created");
    for (int waited = 0;; waited += STEP_MS) {
        *taken = !mgl_file_denied() && !flock(*descriptor, LOCK_EX | LOCK_NB);
        if (*taken || (errno == EWOULDBLOCK && waited >= wait_ms))
            return MGL_OK;
        if (errno != EWOULDBLOCK)
            break;
        nanosleep(&step, NULL);
    }
    mgl_status status = mgl_fail_errno(err, path, "the lock cannot be taken");
    close(*descriptor);
    *descriptor = -1;
    return status;
}
