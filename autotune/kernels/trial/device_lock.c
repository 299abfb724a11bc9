/*
 * Implements the device lock with two byte-range locks of a file. All holders lock byte DEVICE,
 * shared or exclusive. Processes that wait for exclusive access, or have it, lock byte WISH. The
 * locks are open file description locks (F_OFD_SETLK), so two locks of one process exclude each
 * other too.
 */
#include "autotune/kernels/trial/device_lock.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

enum { DEVICE, WISH }; /* bytes of the file */

static struct flock lock_of(short type, off_t byte)
{
    return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
}

/* Tries to lock a byte. *failed: an error other than a busy lock. */
static bool try_lock(int file, short type, off_t byte, bool *failed)
{
    struct flock lock = lock_of(type, byte);
    const bool taken = !mgl_file_denied() && !fcntl(file, F_OFD_SETLK, &lock);
    *failed = !taken && errno != EAGAIN && errno != EACCES && errno != EINTR;
    return taken;
}

/* Whether a process waits for exclusive access or has it. */
static bool is_wished(int file, bool *failed)
{
    struct flock lock = lock_of(F_WRLCK, WISH);
    *failed = fcntl(file, F_OFD_GETLK, &lock) != 0;
    return !*failed && lock.l_type != F_UNLCK;
}

static bool try_device_lock(int file, mgl_device_lock_kind kind, bool *failed)
{
    if (kind == MGL_DEVICE_LOCK_ALONE)
        return try_lock(file, F_WRLCK, DEVICE, failed);
    return !is_wished(file, failed) && !*failed && try_lock(file, F_RDLCK, DEVICE, failed);
}

static mgl_status wait_for(int file, const char *path, mgl_device_lock_kind kind,
                           const atomic_int *abort, mgl_error *err)
{
    const struct timespec pause = {.tv_nsec = 5 * 1000 * 1000};
    bool failed = false;
    if (kind == MGL_DEVICE_LOCK_ALONE)
        try_lock(file, F_RDLCK, WISH, &failed);
    while (!failed && !try_device_lock(file, kind, &failed) && !failed) {
        mgl_status status = mgl_check_abort(abort, err);
        if (status)
            return status;
        nanosleep(&pause, NULL);
    }
    return failed ? mgl_fail_errno(err, path, "the device lock cannot be taken") : MGL_OK;
}

mgl_status mgl_device_lock_take(const char *path, mgl_device_lock_kind kind,
                                const atomic_int *abort, mgl_device_lock *out, mgl_error *err)
{
    *out = (mgl_device_lock){.file = -1};
    if (!path)
        return MGL_OK;
    out->file =
        mgl_file_denied() ? -1 : open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (out->file < 0)
        return mgl_fail_path(err, path, "the file of the device lock cannot be created");
    mgl_status status = wait_for(out->file, path, kind, abort, err);
    if (status)
        mgl_device_lock_end(out);
    return status;
}

void mgl_device_lock_end(mgl_device_lock *lock)
{
    if (lock->file >= 0)
        close(lock->file);
    lock->file = -1;
}
