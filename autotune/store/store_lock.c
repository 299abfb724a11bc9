/*
 * Device locks: one process for each GPU. A lock is flock(2) on a small file. The lock ends when
 * its process ends for any reason, and a leftover file locks nothing. For people who inspect it,
 * the file contains the process id and the boot id of the machine. If a signal ended the process
 * during work, the file also contains a mark.
 *
 * The lock file of a GPU is in the user's state folder, because all stores use the same GPU. Locks
 * for campaigns without a GPU ("none:7", "cpu:7") are beside the store. If no state folder is
 * known, GPU locks are beside the store too.
 */
#include "autotune/store/store_query.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/system/lock.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { SIGNATURE = 128 }; /* largest content of the file with its final 0, in bytes */

struct mgl_store_lock {
    int descriptor;
};

static bool is_of_campaign(const char *uuid)
{
    return strchr(uuid, ':') || !strcmp(uuid, "none") || !strcmp(uuid, "cpu");
}

/* Appends the name, with every character except letters and digits replaced by a dash. */
static void put_plain(mgl_text *out, const char *name)
{
    enum { LONGEST = 64 };
    for (int i = 0; name[i] && i < LONGEST; i++) {
        char c = isalnum((unsigned char)name[i]) ? name[i] : '-';
        mgl_text_append(out, &c, 1);
    }
}

mgl_status mgl_store_lock_path(const mgl_store *store, const char *uuid, mgl_text *out,
                               mgl_error *err)
{
    mgl_status status = MGL_OK;
    mgl_text state = {0};
    if (is_of_campaign(uuid) || mgl_store_state_folder(&state, NULL)) {
        mgl_text_format(out, "%s-", mgl_store_beside(store));
    } else {
        mgl_text_format(out, "%s/locks", state.bytes);
        if (!out->failed)
            status = mgl_folder_make(out->bytes, 0700, err);
        mgl_text_put(out, "/");
    }
    mgl_text_clear(&state);
    put_plain(out, uuid);
    mgl_text_put(out, ".lock");
    return !status && out->failed ? mgl_fail_memory(err, 0) : status;
}

/* Writes the owner to the lock file. A failed write is no error, because the lock holds anyway. */
static void sign(int descriptor)
{
    char *boot = NULL, text[SIGNATURE];
    size_t length = 0;
    if (mgl_file_read("/proc/sys/kernel/random/boot_id", 64, &boot, &length, NULL))
        boot = NULL;
    int n = snprintf(text, sizeof text, "%ld\n%.40s", (long)getpid(), boot ? boot : "");
    mgl_free(boot);
    if (ftruncate(descriptor, 0) || pwrite(descriptor, text, (size_t)n, 0) != n)
        return;
}

static mgl_status fail_taken(const char *path, int descriptor, const char *uuid, mgl_error *err)
{
    char text[64] = "";
    ssize_t n = pread(descriptor, text, sizeof text - 1, 0);
    long pid = n > 0 ? strtol(text, NULL, 10) : 0;
    char who[40] = "another process";
    if (pid > 0)
        snprintf(who, sizeof who, "process %ld", pid);
    return mgl_fail(err, MGL_DEVICE, path,
                    is_of_campaign(uuid)
                        ? "%s runs this campaign; stop it with `megalith campaign stop`, or wait"
                        : "%s runs a campaign on this device; stop it with `megalith campaign "
                          "stop`, or take another --device",
                    who);
}

/* Waits a little, because mgl_store_lock_look holds the lock for some microseconds. */
static mgl_status open_lock(const char *path, const char *uuid, int *out, mgl_error *err)
{
    enum { WAIT_MS = 20 };
    bool taken = false;
    mgl_status status = mgl_lock_take(path, 0600, WAIT_MS, out, &taken, err);
    if (!status && taken)
        sign(*out);
    if (status || taken)
        return status;
    status = fail_taken(path, *out, uuid, err);
    close(*out);
    return status;
}

mgl_status mgl_store_lock_take(mgl_store *store, const char *uuid, mgl_store_lock **out,
                               mgl_error *err)
{
    mgl_text path = {0};
    *out = NULL;
    mgl_store_lock *lock = mgl_alloc_zero(1, sizeof *lock);
    mgl_status status =
        lock ? mgl_store_lock_path(store, uuid, &path, err) : mgl_fail_memory(err, 0);
    if (!status)
        status = open_lock(path.bytes, uuid, &lock->descriptor, err);
    mgl_text_clear(&path);
    if (status)
        mgl_free(lock);
    else
        *out = lock;
    return status;
}

mgl_status mgl_store_lock_look(mgl_store *store, const char *uuid, bool *held, mgl_error *err)
{
    mgl_text path = {0};
    *held = false;
    mgl_status status = mgl_store_lock_path(store, uuid, &path, err);
    int descriptor = status || mgl_file_denied()
                         ? -1
                         : open(path.bytes, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (!status && descriptor < 0 && errno != ENOENT)
        status = mgl_fail_path(err, path.bytes, "the lock cannot be looked at");
    if (descriptor >= 0) {
        *held = flock(descriptor, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
        close(descriptor);
    }
    mgl_text_clear(&path);
    return status;
}

void mgl_store_lock_release(mgl_store_lock *lock)
{
    if (!lock)
        return;
    if (!ftruncate(lock->descriptor, 0))
        flock(lock->descriptor, LOCK_UN);
    close(lock->descriptor);
    mgl_free(lock);
}

/* ---- interruption mark ----------------------------------------------------------------------- */

static const char mark[] = "\ninterrupted";

/* Reads the lock file; returns its length, 0 if it cannot be read. */
static size_t read_lock(int descriptor, char *text, size_t size)
{
    ssize_t n = descriptor < 0 ? 0 : pread(descriptor, text, size - 1, 0);
    text[n > 0 ? n : 0] = 0;
    return n > 0 ? (size_t)n : 0;
}

void mgl_store_lock_mark(const char *path)
{
    char text[SIGNATURE];
    int descriptor = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (descriptor < 0)
        return;
    size_t length = read_lock(descriptor, text, sizeof text);
    if (strtol(text, NULL, 10) == getpid() && !strstr(text, mark) &&
        pwrite(descriptor, mark, sizeof mark - 1, (off_t)length) < 0)
        length = 0; /* then the process counts as killed */
    close(descriptor);
}

bool mgl_store_lock_is_marked(const mgl_store *store, const char *uuid)
{
    char text[SIGNATURE] = "";
    mgl_text path = {0};
    if (!mgl_store_lock_path(store, uuid, &path, NULL)) {
        int descriptor = open(path.bytes, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        read_lock(descriptor, text, sizeof text);
        if (descriptor >= 0)
            close(descriptor);
    }
    mgl_text_clear(&path);
    return strstr(text, mark) != NULL;
}
