/*
 * Landlock part of the sandbox: files that a worker may open. Everything that is not listed is
 * rejected, also for reading. Rights unknown to an older kernel cannot be restricted there.
 * Constants and structs of the kernel interface are repeated here, because system headers are often
 * older than the kernel.
 *
 * A rule for a folder applies to everything below it, including mounts. /proc is readable as a
 * whole; Landlock still rejects the memory, descriptors and environment of processes outside the
 * sandbox.
 */
#include "autotune/runner/sandbox_parts.h"

#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* linux/landlock.h: the numbers of the calls are equal on all architectures. */
enum { CREATE_RULESET = 444, ADD_RULE = 445, RESTRICT_SELF = 446 };
enum { CREATE_VERSION = 1, RULE_PATH_BENEATH = 1, RESTRICT_ALL_THREADS = 1 << 3 };

struct ruleset_attr {
    uint64_t handled_files, handled_net, scoped;
};

struct path_beneath_attr {
    uint64_t allowed;
    int32_t parent;
} __attribute__((packed));

enum {
    WRITE_FILE = 1 << 1,
    READ_FILE = 1 << 2,
    READ_DIR = 1 << 3,
    REMOVE_FILE = 1 << 5,
    MAKE_REG = 1 << 8,
    REFER = 1 << 13,     /* since ABI 2 */
    TRUNCATE = 1 << 14,  /* since ABI 3 */
    IOCTL_DEV = 1 << 15, /* since ABI 5 */
    ALL_1 = (1 << 13) - 1,
    NET_BIND_AND_CONNECT = 3,   /* since ABI 4: TCP */
    SCOPE_SOCKET_AND_SIGNAL = 3 /* since ABI 6: abstract sockets, signals to others */
};
enum {
    READ = READ_FILE | READ_DIR,
    USE = READ_FILE | WRITE_FILE | TRUNCATE | IOCTL_DEV, /* for a file */
    KEEP = READ | WRITE_FILE | REMOVE_FILE | MAKE_REG | REFER | TRUNCATE
};

typedef struct ruleset {
    int descriptor, abi;
    uint64_t handled; /* file rights that this kernel knows */
} ruleset;

int mgl_sandbox_look_files(int *abi)
{
    long found = syscall(CREATE_RULESET, NULL, 0, CREATE_VERSION);
    *abi = found > 0 ? (int)found : 0;
    return found > 0 ? 0 : errno;
}

/* Returns 0 or an error number. */
static int open_ruleset(ruleset *out)
{
    int error = mgl_sandbox_look_files(&out->abi);
    if (error)
        return error;
    out->handled = ALL_1 | (out->abi >= 2 ? REFER : 0u) | (out->abi >= 3 ? TRUNCATE : 0u) |
                   (out->abi >= 5 ? IOCTL_DEV : 0u);
    const struct ruleset_attr attr = {.handled_files = out->handled,
                                      .handled_net = out->abi >= 4 ? NET_BIND_AND_CONNECT : 0,
                                      .scoped = out->abi >= 6 ? SCOPE_SOCKET_AND_SIGNAL : 0};
    out->descriptor = (int)syscall(CREATE_RULESET, &attr, sizeof attr, 0);
    return out->descriptor < 0 ? errno : 0;
}

/* ---- paths ----------------------------------------------------------------------------------- */

/* Adds a rule. A path that does not exist needs none. A path that cannot be opened stays
 * rejected. */
static void allow(const ruleset *set, const char *path, uint64_t rights)
{
    struct stat facts;
    int at = open(path, O_PATH | O_CLOEXEC);
    if (at < 0)
        return;
    if (!fstat(at, &facts) && !S_ISDIR(facts.st_mode))
        rights &= USE; /* files have no other rights */
    const struct path_beneath_attr rule = {rights & set->handled, at};
    syscall(ADD_RULE, set->descriptor, RULE_PATH_BENEATH, &rule, 0);
    close(at);
}

/* Whether a folder contains more than programs and libraries: the root, or a user's home. */
static bool is_too_much(const char *folder)
{
    char real[PATH_MAX], own[PATH_MAX];
    const char *home = getenv("HOME");
    if (!realpath(folder, real) || !strcmp(real, "/"))
        return true;
    if (!home || !realpath(home, own))
        return false;
    size_t length = strlen(real);
    return !strncmp(own, real, length) && (own[length] == '/' || !own[length]);
}

/* Allows each folder of a ":"-separated list such as LD_LIBRARY_PATH; NULL: no list. */
static void allow_list(const ruleset *set, const char *list)
{
    char folder[PATH_MAX];
    while (list && *list) {
        size_t length = strcspn(list, ":");
        snprintf(folder, sizeof folder, "%.*s",
                 (int)(length < sizeof folder ? length : sizeof folder - 1), list);
        if (!is_too_much(folder))
            allow(set, folder, READ);
        list += length + (list[length] == ':');
    }
}

/* Allows the folder of a loaded library, which may load parts of itself from there, as NVRTC
 * does. */
static int allow_library(struct dl_phdr_info *info, size_t size, void *user)
{
    const ruleset *set = user;
    char real[PATH_MAX], folder[PATH_MAX];
    (void)size;
    if (!info->dlpi_name || info->dlpi_name[0] != '/' || !realpath(info->dlpi_name, real))
        return 0;
    mgl_file_split(real, folder);
    allow(set, is_too_much(folder) ? real : folder, READ);
    return 0;
}

static void allow_system(ruleset *set)
{
    static const char *const read[] = {"/usr",
                                       "/lib",
                                       "/lib64",
                                       "/lib32",
                                       "/etc/ld.so.cache",
                                       "/etc/ld.so.conf",
                                       "/etc/ld.so.conf.d",
                                       "/etc/localtime",
                                       "/etc/nvidia",
                                       "/proc",
                                       "/sys"};
    static const char *const used[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random",
                                       "/dev/urandom"};
    for (size_t i = 0; i < sizeof read / sizeof *read; i++)
        allow(set, read[i], READ);
    for (size_t i = 0; i < sizeof used / sizeof *used; i++)
        allow(set, used[i], USE);
    allow(set, "/proc/self", READ | WRITE_FILE); /* to set thread names */
    dl_iterate_phdr(allow_library, set);
    allow_list(set, getenv("LD_LIBRARY_PATH"));
    allow_list(set, getenv("CUDA_HOME"));
}

/* Allows a model folder. The files of a snapshot are links to another folder. */
static void allow_model(const ruleset *set, const char *model)
{
    char path[PATH_MAX];
    DIR *entries = opendir(model);
    allow(set, model, READ);
    for (struct dirent *e = entries ? readdir(entries) : NULL; e; e = readdir(entries))
        if (e->d_type == DT_LNK && snprintf(path, sizeof path, "%s/%s", model, e->d_name) > 0)
            allow(set, path, READ_FILE);
    if (entries)
        closedir(entries);
}

/* Device files of NVIDIA drivers: desktop and server, Jetson, WSL. */
static bool is_of_gpu(const char *name)
{
    static const char *const starts[] = {"nvidia", "nvhost", "nvmap", "dxg"};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (!strncmp(name, starts[i], strlen(starts[i])))
            return true;
    return false;
}

static void allow_gpu(const ruleset *set)
{
    char path[PATH_MAX];
    DIR *entries = opendir("/dev");
    for (struct dirent *e = entries ? readdir(entries) : NULL; e; e = readdir(entries))
        if (is_of_gpu(e->d_name)) {
            snprintf(path, sizeof path, "/dev/%s", e->d_name);
            allow(set, path, USE | READ_DIR);
        }
    if (entries)
        closedir(entries);
    allow(set, "/dev/shm", KEEP);
}

/* ---- entry ----------------------------------------------------------------------------------- */

/* Returns 0 or an error number. A kernel that reports ABI 8 may still not know the flag. */
static int restrict_self(const ruleset *set)
{
    if (set->abi >= 8 && !syscall(RESTRICT_SELF, set->descriptor, RESTRICT_ALL_THREADS))
        return 0;
    return syscall(RESTRICT_SELF, set->descriptor, 0) ? errno : 0;
}

int mgl_sandbox_refuse_files(const mgl_sandbox_options *options, int *abi)
{
    ruleset set = {.descriptor = -1};
    int error = open_ruleset(&set);
    *abi = set.abi;
    if (error)
        return error;
    allow_system(&set);
    if (options->gpu)
        allow_gpu(&set);
    if (options->cache)
        allow(&set, options->cache, KEEP);
    if (options->model)
        allow_model(&set, options->model);
    error = restrict_self(&set);
    close(set.descriptor);
    return error;
}
