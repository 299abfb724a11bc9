/*
 * Turns: processes that judge micro-kernels on one device at the same time agree by a file on who
 * has the device when. What is examined shares it with what others examine; what is timed has it
 * alone, since whoever else computes there changes the times. What only compiles takes no turn.
 *
 * A turn is a lock of the file, so it ends with the process that has it, however that ends. Whoever
 * waits to be alone goes before those that have not begun to share: each of several processes
 * examines first and times then, so the examinations go on side by side, and the times are taken
 * one behind the other.
 */
#ifndef MGL_AUTOTUNE_KERNELS_TRIAL_DEVICE_LOCK_H
#define MGL_AUTOTUNE_KERNELS_TRIAL_DEVICE_LOCK_H

#include "base/error.h"

typedef enum mgl_device_lock_kind {
    MGL_DEVICE_LOCK_SHARED,
    MGL_DEVICE_LOCK_ALONE
} mgl_device_lock_kind;

/* End with mgl_device_lock_end. */
typedef struct mgl_device_lock {
    int file; /* -1: none */
} mgl_device_lock;

/* Waits for a turn; `path`, which is made where it does not stand, NULL: nobody else judges, and
 * the turn begins at once. MGL_INTERRUPTED: `abort` (may be NULL) was set. MGL_BAD_INPUT,
 * MGL_SYSTEM: the file can not be made, or not be locked. */
mgl_status mgl_device_lock_take(const char *path, mgl_device_lock_kind kind,
                                const atomic_int *abort, mgl_device_lock *out, mgl_error *err);
void mgl_device_lock_end(mgl_device_lock *turn);

#endif
