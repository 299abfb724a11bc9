/*
 * Location of a store: the default path, creation of folder and file, and rejected file systems.
 * SQLite's write-ahead log requires memory and locks shared by all processes. Network file systems
 * guarantee neither, and a store that two machines write would be corrupted. FUSE is allowed: most
 * of it is local, and it cannot be distinguished here. Implements store_place.h.
 */
#include "autotune/store/store_place.h"
#include "autotune/store/store.h"

#include "base/file.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <unistd.h>

enum { PRIVATE_FOLDER = 0700, PRIVATE_FILE = 0600 };

/* ---- default path ---------------------------------------------------------------------------- */

mgl_status mgl_store_state_folder(mgl_text *out, mgl_error *err)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    if (state && state[0] == '/') /* the XDG specification requires ignoring relative paths */
        mgl_text_format(out, "%s/megalith", state);
    else if (home && home[0] == '/')
        mgl_text_format(out, "%s/.local/state/megalith", home);
    else
        return mgl_fail(err, MGL_USAGE, "--store",
                        "neither XDG_STATE_HOME nor HOME is set; name a file for "
                        "campaigns with --store");
    return out->failed ? mgl_fail_memory(err, 0) : MGL_OK;
}

mgl_status mgl_store_default_path(mgl_text *out, mgl_error *err)
{
    mgl_status status = mgl_store_state_folder(out, err);
    if (status)
        return status;
    mgl_text_put(out, "/campaigns.db");
    return out->failed ? mgl_fail_memory(err, 0) : MGL_OK;
}

/* ---- file systems --------------------------------------------------------------------------- */

/* statfs(2) types, from linux/magic.h and the file systems' sources. The last three are cluster
 * file systems on shared disks. */
static const struct {
    uint32_t type;
    const char *name;
} remote[] = {
    {0x6969, "NFS"},        {0x517B, "SMB"},          {0xFF534D42, "CIFS"},   {0xFE534D42, "SMB2"},
    {0x01021997, "9p"},     {0x5346414F, "AFS"},      {0x6B414653, "AFS"},    {0x73757245, "Coda"},
    {0x564C, "NCP"},        {0x00C36400, "Ceph"},     {0x0BD00BD0, "Lustre"}, {0x47504653, "GPFS"},
    {0x19830326, "BeeGFS"}, {0x20030528, "OrangeFS"}, {0xAAD7AAEA, "PanFS"},  {0x7461636F, "OCFS2"},
    {0x01161970, "GFS2"},
};

static _Atomic uint32_t pretended;

void mgl_store_pretend_file_system(uint32_t type)
{
    atomic_store(&pretended, type);
}

const char *mgl_store_remote_name(uint32_t type)
{
    for (size_t i = 0; i < sizeof remote / sizeof *remote; i++)
        if (remote[i].type == type)
            return remote[i].name;
    return NULL;
}

/* Checks the file system of the file itself, because a link may lead elsewhere. */
static mgl_status check_file_system(const char *path, const char *folder, mgl_error *err)
{
    struct statfs facts;
    if (mgl_file_denied() || (statfs(path, &facts) && statfs(folder, &facts)))
        return mgl_fail_path(err, folder, "the file system cannot be asked for");
    uint32_t type = atomic_load(&pretended);
    const char *name = mgl_store_remote_name(type ? type : (uint32_t)facts.f_type);
    if (!name)
        return MGL_OK;
    return mgl_fail(err, MGL_BAD_INPUT, path,
                    "is on a network file system (%s), where a store is not safe; name a "
                    "--store on a local disk",
                    name);
}

/* ---- file ------------------------------------------------------------------------------------ */

/* Creates an empty file, readable only by its owner; SQLite uses the same permissions for the files
 * beside it. An existing file is never opened here, because closing it would release this process's
 * POSIX locks on it. */
static mgl_status make_file(const char *path, mgl_error *err)
{
    int descriptor =
        mgl_file_denied() ? -1 : open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, PRIVATE_FILE);
    if (descriptor < 0 && errno == EEXIST)
        return MGL_OK;
    if (descriptor < 0 && errno == EROFS)
        return mgl_fail(err, MGL_SYSTEM, path,
                        "cannot be made on a read-only file system; take another --store");
    if (descriptor < 0)
        return mgl_fail_path(err, path, "the store cannot be made");
    close(descriptor);
    return MGL_OK;
}

static mgl_status check_file(const char *path, bool write, mgl_error *err)
{
    bool stands = false;
    struct stat facts = {0};
    mgl_status status = mgl_file_look(path, &stands, &facts, err);
    if (status)
        return status;
    if (stands && !S_ISREG(facts.st_mode))
        return mgl_fail(err, MGL_BAD_INPUT, path,
                        "is no regular file, as a store has to be; take another --store");
    if (!stands && !write)
        return mgl_fail(err, MGL_BAD_INPUT, path,
                        "there is no store of campaigns; `megalith tune` makes one");
    return stands ? MGL_OK : make_file(path, err);
}

mgl_status mgl_store_prepare_place(const char *path, bool write, mgl_error *err)
{
    char folder[PATH_MAX];
    if (!path[0] || strlen(path) >= PATH_MAX)
        return mgl_fail(err, MGL_USAGE, "--store", "needs the path of a file");
    if (!mgl_file_split(path, folder)[0])
        return mgl_fail(err, MGL_BAD_INPUT, path, "is a folder; name a file in it");
    bool stands;
    struct stat facts;
    mgl_status status = mgl_file_look(folder, &stands, &facts, err);
    if (!status && !stands && !write)
        return check_file(path, false, err);
    if (!status && !stands)
        status = mgl_folder_make(folder, PRIVATE_FOLDER, err);
    if (!status)
        status = check_file_system(path, folder, err);
    return status ? status : check_file(path, write, err);
}

/* ---- lock holder ----------------------------------------------------------------------------- */

/* Parses a line of /proc/locks, such as "1: POSIX  ADVISORY  WRITE 4711 fe:01:1234 120 120".
 * Returns the process if it holds a lock on that byte of that file; else 0. */
static int64_t parse_lock(const char *line, uint64_t inode, uint64_t byte)
{
    long long pid = 0;
    uint64_t locked = 0, from = 0, to = 0;
    int fields = sscanf(line, "%*d: POSIX %*s WRITE %lld %*x:%*x:%" SCNu64 " %" SCNu64 " %" SCNu64,
                        &pid, &locked, &from, &to);
    bool fits = fields == 4 && locked == inode && from <= byte && byte <= to;
    return fits ? (int64_t)pid : 0;
}

int64_t mgl_store_find_writer(const char *path)
{
    /* byte of the -shm file: "WAL-mode file format", section 2.2.2 */
    enum { WRITE_LOCK = 120, MAX_LOCKS = 16 << 20 };
    char shared[PATH_MAX + 8], *locks = NULL;
    struct stat facts;
    size_t length = 0;
    int64_t pid = 0;
    snprintf(shared, sizeof shared, "%s-shm", path);
    if (stat(shared, &facts) || mgl_file_read("/proc/locks", MAX_LOCKS, &locks, &length, NULL))
        return 0;
    for (char *line = locks; line && !pid; line = strchr(line, '\n')) {
        line += *line == '\n';
        pid = parse_lock(line, facts.st_ino, WRITE_LOCK);
    }
    mgl_free(locks);
    return pid;
}
