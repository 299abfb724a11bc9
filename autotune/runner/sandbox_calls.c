/*
 * seccomp part of the sandbox: a list of system calls that a worker does not need, and the classic
 * BPF program made from it, which the kernel runs at each call. Calls that are not listed are
 * allowed. Each listed call has an instruction that compares its number, and then a condition on an
 * argument:
 *
 *     load arch; different from ours: kill     numbers mean other calls there
 *     load number; x32: ENOSYS
 *     number == N ?  [load argument; compare]  return EPERM, or allow
 *     ...
 *     return allow
 *
 * libseccomp would not do: its rules compare an argument only once, and prlimit64 allows two
 * values.
 *
 * The kernel caches calls that are allowed by their number alone and skips the filter for them, so
 * frequent calls of a driver are not slower.
 */
#include "autotune/runner/sandbox_parts.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined __x86_64__
#define ARCH AUDIT_ARCH_X86_64
#elif defined __aarch64__ && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define ARCH AUDIT_ARCH_AARCH64
#endif

/* Drops capabilities of root that file rules cannot restrict, such as inspecting other processes.
 * The device driver does not need them: it also works for ordinary users. */
void mgl_sandbox_drop_rights(void)
{
    static const unsigned kept = 1u << CAP_DAC_OVERRIDE | 1u << CAP_DAC_READ_SEARCH |
                                 1u << CAP_FOWNER | 1u << CAP_IPC_LOCK | 1u << CAP_SYS_NICE;
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct rights[_LINUX_CAPABILITY_U32S_3] = {0};
    if (syscall(SYS_capget, &head, rights))
        return;
    rights[0].permitted &= kept;
    rights[0].effective &= kept;
    rights[0].inheritable = rights[1].inheritable = 0;
    rights[1].permitted = rights[1].effective = 0;
    syscall(SYS_capset, &head, rights);
}

#ifndef ARCH

int mgl_sandbox_look_calls(void)
{
    return ENOSYS;
}

int mgl_sandbox_refuse_calls(void)
{
    return ENOSYS;
}

#else

/* Conditions under which a listed call is allowed. Arguments are compared in their lower 32 bits,
 * which is their full width except for pointers. */
typedef enum condition {
    NEVER,
    NEVER_KNOWN, /* fails with ENOSYS, so that the C library uses a fallback */
    IF_OWN,      /* the argument is this process's id */
    IF_OWN_OR_0,
    IF_THREAD, /* the argument has CLONE_THREAD */
    IF_NULL,   /* the argument, a pointer, is NULL */
    IF_NOT_PDEATHSIG
} condition;

/* call, condition, index of the argument */
#define CALLS(X)                                                                                   \
    /* network and new sockets; the open socket stays usable */                                    \
    X(socket, NEVER, 0)                                                                            \
    X(socketpair, NEVER, 0)                                                                        \
    X(connect, NEVER, 0)                                                                           \
    X(bind, NEVER, 0)                                                                              \
    X(listen, NEVER, 0)                                                                            \
    X(accept, NEVER, 0)                                                                            \
    X(accept4, NEVER, 0)                                                                           \
    X(sendto, IF_NULL, 4)                                                                          \
    /* starting programs and processes */                                                          \
    X(execve, NEVER, 0)                                                                            \
    X(execveat, NEVER, 0)                                                                          \
    X(clone, IF_THREAD, 0)                                                                         \
    X(clone3, NEVER_KNOWN, 0) /* its flags are in memory, which a filter cannot read */            \
    X(prctl, IF_NOT_PDEATHSIG, 0)                                                                  \
    /* access to other processes */                                                                \
    X(kill, IF_OWN, 0)                                                                             \
    X(tgkill, IF_OWN, 0)                                                                           \
    X(tkill, NEVER, 0)                                                                             \
    X(rt_sigqueueinfo, IF_OWN, 0)                                                                  \
    X(rt_tgsigqueueinfo, IF_OWN, 0)                                                                \
    X(prlimit64, IF_OWN_OR_0, 0)                                                                   \
    X(ptrace, NEVER, 0)                                                                            \
    X(process_vm_readv, NEVER, 0)                                                                  \
    X(process_vm_writev, NEVER, 0)                                                                 \
    X(process_madvise, NEVER, 0)                                                                   \
    X(process_mrelease, NEVER, 0)                                                                  \
    X(kcmp, NEVER, 0)                                                                              \
    X(pidfd_open, NEVER, 0)                                                                        \
    X(pidfd_getfd, NEVER, 0)                                                                       \
    X(pidfd_send_signal, NEVER, 0)                                                                 \
    /* calls that bypass checks of calls or paths */                                               \
    X(io_uring_setup, NEVER, 0)                                                                    \
    X(io_uring_enter, NEVER, 0)                                                                    \
    X(io_uring_register, NEVER, 0)                                                                 \
    X(open_by_handle_at, NEVER, 0)                                                                 \
    X(userfaultfd, NEVER, 0)                                                                       \
    X(bpf, NEVER, 0)                                                                               \
    X(perf_event_open, NEVER, 0)                                                                   \
    X(add_key, NEVER, 0)                                                                           \
    X(request_key, NEVER, 0)                                                                       \
    X(keyctl, NEVER, 0)                                                                            \
    /* machine administration, if the worker is root */                                            \
    X(unshare, NEVER, 0)                                                                           \
    X(setns, NEVER, 0)                                                                             \
    X(chroot, NEVER, 0)                                                                            \
    X(pivot_root, NEVER, 0)                                                                        \
    X(mount, NEVER, 0)                                                                             \
    X(umount2, NEVER, 0)                                                                           \
    X(open_tree, NEVER, 0)                                                                         \
    X(move_mount, NEVER, 0)                                                                        \
    X(fsopen, NEVER, 0)                                                                            \
    X(fsconfig, NEVER, 0)                                                                          \
    X(fsmount, NEVER, 0)                                                                           \
    X(fspick, NEVER, 0)                                                                            \
    X(mount_setattr, NEVER, 0)                                                                     \
    X(mknodat, NEVER, 0)                                                                           \
    X(swapon, NEVER, 0)                                                                            \
    X(swapoff, NEVER, 0)                                                                           \
    X(quotactl, NEVER, 0)                                                                          \
    X(acct, NEVER, 0)                                                                              \
    X(reboot, NEVER, 0)                                                                            \
    X(kexec_load, NEVER, 0)                                                                        \
    X(kexec_file_load, NEVER, 0)                                                                   \
    X(init_module, NEVER, 0)                                                                       \
    X(finit_module, NEVER, 0)                                                                      \
    X(delete_module, NEVER, 0)                                                                     \
    X(settimeofday, NEVER, 0)                                                                      \
    X(clock_settime, NEVER, 0)                                                                     \
    X(adjtimex, NEVER, 0)                                                                          \
    X(clock_adjtime, NEVER, 0)                                                                     \
    X(sethostname, NEVER, 0)                                                                       \
    X(setdomainname, NEVER, 0)                                                                     \
    X(syslog, NEVER, 0)

/* x86-64 only. */
#ifdef __x86_64__
#define OLD_CALLS(X)                                                                               \
    X(fork, NEVER, 0)                                                                              \
    X(vfork, NEVER, 0)                                                                             \
    X(mknod, NEVER, 0)                                                                             \
    X(iopl, NEVER, 0)                                                                              \
    X(ioperm, NEVER, 0)
#else
#define OLD_CALLS(X)
#endif

/* Calls that are newer than the headers of some systems. Their numbers are equal on all
 * architectures. */
#ifndef SYS_process_mrelease
#define SYS_process_mrelease 448
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif

static const struct call {
    uint32_t number;
    condition allowed;
    unsigned argument;
} calls[] = {
#define MGL_X(name, condition, argument) {SYS_##name, condition, argument},
    CALLS(MGL_X) OLD_CALLS(MGL_X)
#undef MGL_X
};

enum {
    CALL_COUNT = sizeof calls / sizeof *calls,
    MOST_OF_A_CALL = 7, /* instructions of one call, at most */
    MOST = 8 + CALL_COUNT * MOST_OF_A_CALL,
    X32 = 0x40000000 /* numbers from here on are x32 calls of x86-64 */
};

typedef struct filter {
    struct sock_filter steps[MOST];
    unsigned short count;
} filter;

static void add(filter *f, struct sock_filter step)
{
    f->steps[f->count++] = step;
}

static void load(filter *f, size_t offset)
{
    add(f, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

static void answer(filter *f, uint32_t what)
{
    add(f, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, what));
}

/* Continues with the next instruction if the comparison (BPF_JEQ, ...) holds, else skips
 * `skipped`. */
static void unless_skip(filter *f, unsigned comparison, uint32_t value, uint8_t skipped)
{
    add(f,
        (struct sock_filter)BPF_JUMP((uint16_t)(BPF_JMP | comparison | BPF_K), value, 0, skipped));
}

static size_t argument_at(const struct call *call)
{
    return offsetof(struct seccomp_data, args) + call->argument * sizeof(uint64_t);
}

/* Appends the comparison of an argument, and the answer if it allows the call. */
static void add_condition(filter *f, const struct call *call)
{
    uint32_t self = (uint32_t)getpid();
    if (call->allowed == NEVER || call->allowed == NEVER_KNOWN)
        return;
    load(f, argument_at(call));
    if (call->allowed == IF_NULL) {
        unless_skip(f, BPF_JEQ, 0, 3);
        load(f, argument_at(call) + sizeof(uint32_t));
        unless_skip(f, BPF_JEQ, 0, 1);
    } else if (call->allowed == IF_THREAD) {
        unless_skip(f, BPF_JSET, CLONE_THREAD, 1);
    } else if (call->allowed == IF_NOT_PDEATHSIG) {
        unless_skip(f, BPF_JEQ, PR_SET_PDEATHSIG, 1);
        answer(f, SECCOMP_RET_ERRNO | EPERM);
    } else {
        if (call->allowed == IF_OWN_OR_0) {
            unless_skip(f, BPF_JEQ, 0, 1);
            answer(f, SECCOMP_RET_ALLOW);
        }
        unless_skip(f, BPF_JEQ, self, 1);
    }
    answer(f, SECCOMP_RET_ALLOW);
}

static void add_call(filter *f, const struct call *call)
{
    unsigned short compare = f->count;
    unless_skip(f, BPF_JEQ, call->number, 0);
    add_condition(f, call);
    answer(f, SECCOMP_RET_ERRNO | (call->allowed == NEVER_KNOWN ? ENOSYS : EPERM));
    f->steps[compare].jf = (uint8_t)(f->count - compare - 1);
}

static void make(filter *f)
{
    load(f, offsetof(struct seccomp_data, arch));
    add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0));
    answer(f, SECCOMP_RET_KILL_PROCESS);
    load(f, offsetof(struct seccomp_data, nr));
    unless_skip(f, BPF_JGE, X32, 1);
    answer(f, SECCOMP_RET_ERRNO | ENOSYS);
    for (size_t i = 0; i < CALL_COUNT; i++)
        add_call(f, &calls[i]);
    answer(f, SECCOMP_RET_ALLOW);
}

int mgl_sandbox_look_calls(void)
{
    const uint32_t action = SECCOMP_RET_ERRNO;
    return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) ? errno : 0;
}

/* Installs the filter for all threads. Without SPEC_ALLOW, older kernels disable speculation for
 * the process, which would change times. */
int mgl_sandbox_refuse_calls(void)
{
    filter f = {.count = 0};
    make(&f);
    const struct sock_fprog program = {f.count, f.steps};
    long left = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                        SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program);
    /* above 0: id of a thread that cannot be synchronized */
    return left < 0 ? errno : left > 0 ? EBUSY : 0;
}

#endif
