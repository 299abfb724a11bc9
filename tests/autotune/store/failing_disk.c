/* Implements the SQLite VFS that injects disk faults. See failing_disk.h. */
#include "tests/autotune/store/failing_disk.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A file of this VFS; the real VFS's file follows in memory. */
typedef struct file {
    sqlite3_file base;
    const char *path; /* path from SQLite; NULL: a temporary file */
} file;

static sqlite3_vfs *real_vfs;
static uint64_t operations, fail_at;
static disk_failure failure;
static bool keeps_flushed;

void disk_fail_at(uint64_t n, disk_failure how)
{
    operations = 0;
    fail_at = n;
    failure = how;
}

uint64_t disk_count(void)
{
    return operations;
}

void disk_keep_flushed(bool on)
{
    keeps_flushed = on;
}

/* Whether the operation is to fail. */
static bool denied(void)
{
    operations++;
    return fail_at && (operations == fail_at || (failure == DISK_GONE && operations > fail_at));
}

static sqlite3_file *real(sqlite3_file *of)
{
    return (sqlite3_file *)((file *)of + 1);
}

/* ---- files ----------------------------------------------------------------------------------- */

static int do_close(sqlite3_file *f)
{
    return real(f)->pMethods ? real(f)->pMethods->xClose(real(f)) : SQLITE_OK;
}

static int do_read(sqlite3_file *f, void *to, int count, sqlite3_int64 at)
{
    return real(f)->pMethods->xRead(real(f), to, count, at);
}

static int do_write(sqlite3_file *f, const void *from, int count, sqlite3_int64 at)
{
    if (!denied())
        return real(f)->pMethods->xWrite(real(f), from, count, at);
    if (failure == DISK_BROKEN && count > 1)
        real(f)->pMethods->xWrite(real(f), from, count / 2, at);
    return failure == DISK_FULL ? SQLITE_FULL : SQLITE_IOERR_WRITE;
}

static int do_truncate(sqlite3_file *f, sqlite3_int64 size)
{
    return denied() ? SQLITE_IOERR_TRUNCATE : real(f)->pMethods->xTruncate(real(f), size);
}

static void copy_flushed(sqlite3_file *f)
{
    enum { PATH = 600, CHUNK = 65536 };
    static char chunk[CHUNK];
    char to[PATH];
    sqlite3_int64 size = 0;
    if (!((file *)f)->path || real(f)->pMethods->xFileSize(real(f), &size))
        return;
    snprintf(to, sizeof to, "%s.flushed", ((file *)f)->path);
    FILE *copy = fopen(to, "wb");
    for (sqlite3_int64 at = 0; copy && at < size; at += CHUNK) {
        int count = size - at < CHUNK ? (int)(size - at) : CHUNK;
        if (real(f)->pMethods->xRead(real(f), chunk, count, at) ||
            fwrite(chunk, 1, (size_t)count, copy) != (size_t)count)
            abort();
    }
    if (!copy || fclose(copy))
        abort();
}

static int do_sync(sqlite3_file *f, int flags)
{
    (void)flags;
    if (denied())
        return SQLITE_IOERR_FSYNC;
    if (keeps_flushed)
        copy_flushed(f);
    return SQLITE_OK;
}

static int do_size(sqlite3_file *f, sqlite3_int64 *size)
{
    return real(f)->pMethods->xFileSize(real(f), size);
}

static int do_lock(sqlite3_file *f, int level)
{
    return real(f)->pMethods->xLock(real(f), level);
}

static int do_unlock(sqlite3_file *f, int level)
{
    return real(f)->pMethods->xUnlock(real(f), level);
}

static int do_check_lock(sqlite3_file *f, int *out)
{
    return real(f)->pMethods->xCheckReservedLock(real(f), out);
}

static int do_control(sqlite3_file *f, int op, void *argument)
{
    return real(f)->pMethods->xFileControl(real(f), op, argument);
}

static int do_sector(sqlite3_file *f)
{
    return real(f)->pMethods->xSectorSize(real(f));
}

static int do_facts(sqlite3_file *f)
{
    return real(f)->pMethods->xDeviceCharacteristics(real(f));
}

static int do_shm_map(sqlite3_file *f, int page, int size, int extend, void volatile **out)
{
    *out = NULL;
    if (extend && denied())
        return SQLITE_IOERR_SHMSIZE;
    return real(f)->pMethods->xShmMap(real(f), page, size, extend, out);
}

static int do_shm_lock(sqlite3_file *f, int from, int count, int flags)
{
    return real(f)->pMethods->xShmLock(real(f), from, count, flags);
}

static void do_shm_barrier(sqlite3_file *f)
{
    real(f)->pMethods->xShmBarrier(real(f));
}

static int do_shm_unmap(sqlite3_file *f, int remove)
{
    return real(f)->pMethods->xShmUnmap(real(f), remove);
}

static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = do_close,
    .xRead = do_read,
    .xWrite = do_write,
    .xTruncate = do_truncate,
    .xSync = do_sync,
    .xFileSize = do_size,
    .xLock = do_lock,
    .xUnlock = do_unlock,
    .xCheckReservedLock = do_check_lock,
    .xFileControl = do_control,
    .xSectorSize = do_sector,
    .xDeviceCharacteristics = do_facts,
    .xShmMap = do_shm_map,
    .xShmLock = do_shm_lock,
    .xShmBarrier = do_shm_barrier,
    .xShmUnmap = do_shm_unmap,
};

/* ---- the VFS --------------------------------------------------------------------------------- */

static int do_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *f, int flags, int *given)
{
    (void)vfs;
    f->pMethods = NULL;
    if (denied())
        return SQLITE_CANTOPEN;
    int code = real_vfs->xOpen(real_vfs, path, real(f), flags, given);
    ((file *)f)->path = path;
    f->pMethods = real(f)->pMethods ? &methods : NULL;
    return code;
}

static int do_delete(sqlite3_vfs *vfs, const char *path, int sync_folder)
{
    (void)vfs;
    return denied() ? SQLITE_IOERR_DELETE : real_vfs->xDelete(real_vfs, path, sync_folder);
}

void disk_install(void)
{
    static sqlite3_vfs failing;
    real_vfs = sqlite3_vfs_find(NULL);
    failing = *real_vfs; /* the rest is the real one's; its data goes with the copy */
    failing.pNext = NULL;
    failing.zName = "failing-disk";
    failing.szOsFile = (int)sizeof(file) + real_vfs->szOsFile;
    failing.xOpen = do_open;
    failing.xDelete = do_delete;
    if (sqlite3_vfs_register(&failing, 1))
        abort();
}
