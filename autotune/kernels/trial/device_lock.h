/*
 * Device lock: a file lock (readers-writer lock with writer preference) for processes that measure
 * micro-kernels on one device. Correctness checks share the device. Timing uses the device
 * exclusively, because other work on the device changes the times. Compilation takes no lock.
 *
 * The lock is released when the owner's process ends, for any reason. A process that waits for
 * exclusive access goes before processes that have not yet started to share. Each process first
 * checks and then times. So the checks overlap, and the timings run one after the other. trial.c
 * takes the locks.
 */
#ifndef MGL_AUTOTUNE_KERNELS_TRIAL_DEVICE_LOCK_H
#define MGL_AUTOTUNE_KERNELS_TRIAL_DEVICE_LOCK_H

#include "base/error.h"

typedef enum mgl_device_lock_kind {
    MGL_DEVICE_LOCK_SHARED,
    MGL_DEVICE_LOCK_ALONE
} mgl_device_lock_kind;

/* Release with mgl_device_lock_end. */
typedef struct mgl_device_lock {
    int file; /* -1: no lock */
} mgl_device_lock;

/* Waits for the lock. `path` is created if it is missing; NULL: no other process measures, and no
 * lock is taken. MGL_INTERRUPTED: `abort` (may be NULL) was set. MGL_BAD_INPUT, MGL_SYSTEM: the
 * file cannot be created or locked. */
mgl_status mgl_device_lock_take(const char *path, mgl_device_lock_kind kind,
                                const atomic_int *abort, mgl_device_lock *out, mgl_error *err);
void mgl_device_lock_end(mgl_device_lock *lock);

#endif
