/* Implements the attempts as system calls in a child process. See sandbox_attempts.h. */
#include "tests/autotune/runner/sandbox_attempts.h"

#include "base/parallel.h"
#include "vm/cuda/cache.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int result_of(long result)
{
    return result < 0 ? errno : 0;
}

/* ---- the network ----------------------------------------------------------------------------- */

static int connect_tcp(const attempt_place *place)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)place->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int s = socket(AF_INET, SOCK_STREAM, 0);
    return s < 0 ? errno : result_of(connect(s, (struct sockaddr *)&to, sizeof to));
}

static int send_udp(const attempt_place *place)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)place->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int s = socket(AF_INET, SOCK_DGRAM, 0);
    return s < 0 ? errno : result_of(sendto(s, "x", 1, 0, (struct sockaddr *)&to, sizeof to));
}

static int connect_unix(const attempt_place *place)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    snprintf(to.sun_path, sizeof to.sun_path, "%s", place->socket);
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    return s < 0 ? errno : result_of(connect(s, (struct sockaddr *)&to, sizeof to));
}

static int make_pair(const attempt_place *place)
{
    int ends[2];
    (void)place;
    return result_of(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
}

static int send_elsewhere(const attempt_place *place)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    snprintf(to.sun_path, sizeof to.sun_path, "%s", place->socket);
    return result_of(sendto(place->pair, "x", 1, 0, (struct sockaddr *)&to, sizeof to));
}

/* ---- programs and processes ------------------------------------------------------------------ */

static int execute(const attempt_place *place)
{
    char *argv[] = {"true", NULL};
    (void)place;
    execv("/bin/true", argv);
    return errno;
}

static int fork_once(const attempt_place *place)
{
    (void)place;
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    return pid < 0 ? errno : result_of(waitpid(pid, NULL, 0));
}

static int spawn(const attempt_place *place)
{
    char *argv[] = {"true", NULL};
    pid_t pid;
    (void)place;
    return posix_spawn(&pid, "/bin/true", NULL, NULL, argv, NULL);
}

static int clone_with_struct(const attempt_place *place)
{
    (void)place;
    return result_of(syscall(SYS_clone3, NULL, 0));
}

static int outlive(const attempt_place *place)
{
    (void)place;
    return result_of(prctl(PR_SET_PDEATHSIG, 0));
}

static int trace_parent(const attempt_place *place)
{
    (void)place;
    return result_of(ptrace(PTRACE_SEIZE, getppid(), NULL, NULL));
}

static int read_parent(const attempt_place *place)
{
    char word[8];
    struct iovec to = {word, sizeof word}, from = {(void *)(uintptr_t)place->word, sizeof word};
    return result_of(process_vm_readv(getppid(), &to, 1, &from, 1, 0));
}

static int write_parent(const attempt_place *place)
{
    char word[8];
    memcpy(word, place->word, sizeof word);
    struct iovec from = {word, sizeof word}, to = {(void *)(uintptr_t)place->word, sizeof word};
    return result_of(process_vm_writev(getppid(), &from, 1, &to, 1, 0));
}

static int signal_parent(const attempt_place *place)
{
    (void)place;
    return result_of(kill(getppid(), 0));
}

static int signal_group(const attempt_place *place)
{
    (void)place;
    return result_of(kill(0, 0));
}

static int signal_parents_thread(const attempt_place *place)
{
    (void)place;
    return result_of(syscall(SYS_tgkill, getppid(), getppid(), 0));
}

static int open_parent(const attempt_place *place)
{
    (void)place;
    return result_of(syscall(SYS_pidfd_open, getppid(), 0));
}

static int limit_parent(const attempt_place *place)
{
    struct rlimit limit;
    (void)place;
    return result_of(prlimit(getppid(), RLIMIT_CORE, NULL, &limit));
}

/* ---- other system calls ---------------------------------------------------------------------- */

static int leave_namespace(const attempt_place *place)
{
    (void)place;
    return result_of(unshare(CLONE_FS));
}

#define CALL_ATTEMPTS(X)                                                                           \
    X(mount)                                                                                       \
    X(umount2)                                                                                     \
    X(setns)                                                                                       \
    X(bpf)                                                                                         \
    X(userfaultfd)                                                                                 \
    X(keyctl)                                                                                      \
    X(perf_event_open)                                                                             \
    X(io_uring_setup)                                                                              \
    X(open_by_handle_at)                                                                           \
    X(pidfd_getfd)                                                                                 \
    X(kexec_load)

/* The arguments are invalid, so a permitted call fails with another error than a forbidden one. */
#define MGL_X(name)                                                                                \
    static int try_##name(const attempt_place *place)                                              \
    {                                                                                              \
        (void)place;                                                                               \
        return result_of(syscall(SYS_##name, -1, 0, -1, -1, -1));                                  \
    }
CALL_ATTEMPTS(MGL_X)
#undef MGL_X

/* ---- files ----------------------------------------------------------------------------------- */

static int open_it(const char *path, int flags)
{
    int file = open(path, flags | O_CLOEXEC, 0600);
    if (file < 0)
        return errno;
    close(file);
    return 0;
}

static int read_secret(const attempt_place *place)
{
    return open_it(place->secret, O_RDONLY);
}

static int write_secret(const attempt_place *place)
{
    return open_it(place->secret, O_WRONLY);
}

static int cut_secret(const attempt_place *place)
{
    return result_of(truncate(place->secret, 1));
}

static int list_folder(const attempt_place *place)
{
    DIR *entries = opendir(place->folder);
    return entries ? closedir(entries) : errno;
}

static int make_file(const attempt_place *place)
{
    char path[120];
    snprintf(path, sizeof path, "%s/new", place->folder);
    return open_it(path, O_WRONLY | O_CREAT);
}

static int make_folder(const attempt_place *place)
{
    char path[120];
    snprintf(path, sizeof path, "%s/sub", place->folder);
    int made = result_of(mkdir(path, 0700));
    rmdir(path);
    return made;
}

static int remove_secret(const attempt_place *place)
{
    return result_of(unlink(place->secret));
}

/* Renames a file of the cache to a name outside. */
static int move_out(const attempt_place *place)
{
    char from[120], to[120];
    snprintf(from, sizeof from, "%s/mine", place->cache);
    snprintf(to, sizeof to, "%s/mine", place->folder);
    int made = open_it(from, O_WRONLY | O_CREAT);
    int moved = made ? made : result_of(rename(from, to));
    return moved == EXDEV ? EACCES : moved; /* the first Linux versions with Landlock return
                                               EXDEV */
}

static int write_tmp(const attempt_place *place)
{
    (void)place;
    return open_it("/tmp", O_WRONLY | O_TMPFILE);
}

static int write_library(const attempt_place *place)
{
    (void)place;
    return open_it("/usr", O_WRONLY | O_TMPFILE);
}

static int read_passwords(const attempt_place *place)
{
    (void)place;
    return open_it("/etc/passwd", O_RDONLY);
}

static int open_parents(const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/%s", (long)getppid(), name);
    return open_it(path, O_RDONLY);
}

static int read_parents_environment(const attempt_place *place)
{
    (void)place;
    return open_parents("environ");
}

static int read_parents_memory(const attempt_place *place)
{
    (void)place;
    return open_parents("mem");
}

static int read_parents_maps(const attempt_place *place)
{
    (void)place;
    return open_parents("maps");
}

static int find_parents_file(const attempt_place *place)
{
    char path[64], file[100];
    (void)place;
    snprintf(path, sizeof path, "/proc/%ld/fd/0", (long)getppid());
    return result_of(readlink(path, file, sizeof file));
}

/*  name, function, part, error, whether it succeeds outside */
const attempt attempts[] = {
    {"TCP", connect_tcp, BY_CALLS, EPERM, true},
    {"UDP", send_udp, BY_CALLS, EPERM, true},
    {"a socket of the machine", connect_unix, BY_CALLS, EPERM, true},
    {"a pair of sockets", make_pair, BY_CALLS, EPERM, true},
    {"an address for an open socket", send_elsewhere, BY_CALLS, EPERM, false},
    {"execve", execute, BY_CALLS, EPERM, true},
    {"fork", fork_once, BY_CALLS, EPERM, true},
    {"posix_spawn", spawn, BY_CALLS, EPERM, true},
    {"clone3", clone_with_struct, BY_CALLS, ENOSYS, false},
    {"outliving the runner", outlive, BY_CALLS, EPERM, true},
    {"ptrace of the parent", trace_parent, BY_CALLS, EPERM, false},
    {"reading the parent's memory", read_parent, BY_CALLS, EPERM, false},
    {"writing the parent's memory", write_parent, BY_CALLS, EPERM, false},
    {"a signal to the parent", signal_parent, BY_CALLS, EPERM, true},
    {"a signal to the group", signal_group, BY_CALLS, EPERM, true},
    {"a signal to the parent's thread", signal_parents_thread, BY_CALLS, EPERM, true},
    {"a descriptor of the parent", open_parent, BY_CALLS, EPERM, false},
    {"limits of the parent", limit_parent, BY_CALLS, EPERM, true},
    {"unshare", leave_namespace, BY_CALLS, EPERM, true},
#define MGL_X(name) {#name, try_##name, BY_CALLS, EPERM, false},
    CALL_ATTEMPTS(MGL_X)
#undef MGL_X
        {"reading a file", read_secret, BY_FILES, EACCES, true},
    {"writing a file", write_secret, BY_FILES, EACCES, true},
    {"cutting a file", cut_secret, BY_FILES, EACCES, true},
    {"listing a folder", list_folder, BY_FILES, EACCES, true},
    {"making a file", make_file, BY_FILES, EACCES, true},
    {"making a folder", make_folder, BY_FILES, EACCES, true},
    {"moving a file out of the cache", move_out, BY_FILES, EACCES, true},
    {"removing a file", remove_secret, BY_FILES, EACCES, true},
    {"a file in /tmp", write_tmp, BY_FILES, EACCES, false},
    {"a file in /usr", write_library, BY_FILES, EACCES, false},
    {"reading /etc/passwd", read_passwords, BY_FILES, EACCES, true},
    {"the parent's environment", read_parents_environment, BY_FILES, EACCES, true},
    {"the parent's memory by its file", read_parents_memory, BY_FILES, EACCES, false},
    {"the parent's map of memory", read_parents_maps, BY_FILES, EACCES, true},
    {"the parent's descriptors", find_parents_file, BY_FILES, EACCES, true},
};
const int attempt_count = sizeof attempts / sizeof *attempts;

/* ---- permitted operations -------------------------------------------------------------------- */

static int keep_kernel(const attempt_place *place)
{
    char key[65] = "key", reason[200];
    size_t length;
    if (!mgl_cuda_cache_put(place->cache, key, "kernel", 6, reason, sizeof reason))
        return EIO;
    void *bytes = mgl_cuda_cache_get(place->cache, key, &length);
    return bytes && length == 6 ? 0 : ENOENT;
}

static int trim_cache(const attempt_place *place)
{
    uint64_t left;
    int kept = keep_kernel(place);
    return kept ? kept : mgl_cuda_cache_trim(place->cache, 1, &left, NULL) || left ? EIO : 0;
}

static int read_self(const attempt_place *place)
{
    (void)place;
    return open_it("/proc/self/maps", O_RDONLY);
}

static int read_machine(const attempt_place *place)
{
    int memory = open_it("/proc/meminfo", O_RDONLY);
    (void)place;
    return memory ? memory : open_it("/sys/devices/system/cpu/online", O_RDONLY);
}

/* The runner's clocks read this file to find related processes. */
static int read_parents_state(const attempt_place *place)
{
    (void)place;
    return open_parents("stat");
}

static int load_library(const attempt_place *place)
{
    (void)place;
    return dlopen("libutil.so.1", RTLD_NOW) ? 0 : ENOENT;
}

static int use_null(const attempt_place *place)
{
    (void)place;
    return open_it("/dev/null", O_RDWR);
}

static void *name_thread(void *argument)
{
    (void)argument;
    return prctl(PR_SET_NAME, "a thread") ? argument : NULL;
}

static int run_thread(const attempt_place *place)
{
    pthread_t thread;
    void *failed = NULL;
    int error = pthread_create(&thread, NULL, name_thread, (void *)(uintptr_t)place);
    if (!error)
        error = pthread_join(thread, &failed);
    return failed ? EIO : error;
}

static int map_memory(const attempt_place *place)
{
    (void)place;
    void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? errno : result_of(mprotect(at, 4096, PROT_READ | PROT_EXEC));
}

static int make_memory_file(const attempt_place *place)
{
    (void)place;
    return result_of(memfd_create("x", MFD_CLOEXEC));
}

static int make_event(const attempt_place *place)
{
    (void)place;
    return result_of(eventfd(0, EFD_CLOEXEC));
}

static int make_pipe(const attempt_place *place)
{
    int ends[2];
    (void)place;
    return result_of(pipe(ends));
}

static int use_timer(const attempt_place *place)
{
    struct sigevent none = {.sigev_notify = SIGEV_NONE};
    struct timespec soon = {.tv_nsec = 1000};
    timer_t timer;
    (void)place;
    return result_of(timer_create(CLOCK_MONOTONIC, &none, &timer)) || nanosleep(&soon, NULL);
}

static int use_affinity(const attempt_place *place)
{
    cpu_set_t set;
    (void)place;
    return result_of(sched_getaffinity(0, sizeof set, &set)) ||
           sched_setaffinity(0, sizeof set, &set);
}

static int use_open_socket(const attempt_place *place)
{
    return result_of(send(place->pair, "x", 1, MSG_NOSIGNAL));
}

static int signal_self(const attempt_place *place)
{
    (void)place;
    signal(SIGUSR1, SIG_IGN);
    return raise(SIGUSR1) || kill(getpid(), SIGUSR1);
}

static int limit_self(const attempt_place *place)
{
    struct rlimit limit;
    (void)place;
    return result_of(getrlimit(RLIMIT_NOFILE, &limit)) || setrlimit(RLIMIT_NOFILE, &limit);
}

const use uses[] = {
    {"keeping a kernel", keep_kernel},
    {"removing kernels", trim_cache},
    {"/proc/self", read_self},
    {"/proc and /sys", read_machine},
    {"the parent's state", read_parents_state},
    {"a library", load_library},
    {"/dev/null", use_null},
    {"a thread", run_thread},
    {"memory", map_memory},
    {"a file in memory", make_memory_file},
    {"an event", make_event},
    {"a pipe", make_pipe},
    {"a timer", use_timer},
    {"affinity", use_affinity},
    {"the open socket", use_open_socket},
    {"a signal to itself", signal_self},
    {"its own limits", limit_self},
};
const int use_count = sizeof uses / sizeof *uses;
