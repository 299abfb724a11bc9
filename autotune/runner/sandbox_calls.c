/*
 * System calls that a worker has no use for, as one list, and the filter that is made of it: a
 * program of classic BPF, which the kernel runs at each call. A call that is not on the list is
 * allowed. One that is on it has an instruction that compares its number and, behind that, what is
 * asked of an argument:
 *
 *     load arch; another than ours: kill       a number means another call there
 *     load number; x32: ENOSYS
 *     number == N ?  [load argument; compare]  return EPERM, or allow
 *     ...
 *     return allow
 *
 * The kernel knows of a call that is allowed by its number alone, and does not run the filter for
 * it: what a driver does a thousand times a second is no slower.
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

/* Rights of root that let it look into other processes, among others: no rule of files holds there.
 * A driver gets by without, as for any other user. */
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

/* When a call is allowed all the same. Arguments are looked at in their lower 32 bits, which is all
 * that these have, but for a pointer. */
typedef enum condition {
    NEVER,
    NEVER_KNOWN, /* fails with ENOSYS: the C library has another way then */
    IF_OWN,      /* the argument is this process */
    IF_OWN_OR_0,
    IF_THREAD, /* the argument has CLONE_THREAD */
    IF_NULL,   /* the argument, a pointer, is NULL */
    IF_NOT_PDEATHSIG
} condition;

/*  call, condition, the argument that it is of */
#define CALLS(X)                                                                                   \
    /* the network, and any other socket than the one that is open */                              \
    X(socket, NEVER, 0)                                                                            \
    X(socketpair, NEVER, 0)                                                                        \
    X(connect, NEVER, 0)                                                                           \
    X(bind, NEVER, 0)                                                                              \
    X(listen, NEVER, 0)                                                                            \
    X(accept, NEVER, 0)                                                                            \
    X(accept4, NEVER, 0)                                                                           \
    X(sendto, IF_NULL, 4)                                                                          \
    /* programs and processes of its own */                                                        \
    X(execve, NEVER, 0)                                                                            \
    X(execveat, NEVER, 0)                                                                          \
    X(clone, IF_THREAD, 0)                                                                         \
    X(clone3, NEVER_KNOWN, 0) /* its flags are in memory, which a filter does not see */           \
    X(prctl, IF_NOT_PDEATHSIG, 0)                                                                  \
    /* processes of others */                                                                      \
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
    /* ways around a check of calls or of paths */                                                 \
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
    /* the machine, should the worker be root */                                                   \
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

/* Of x86-64 alone. */
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

/* Calls that are younger than the headers of some systems. Their numbers are the same everywhere.
 */
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
    MOST_OF_A_CALL = 7, /* instructions */
    MOST = 8 + CALL_COUNT * MOST_OF_A_CALL,
    X32 = 0x40000000 /* numbers from here on are another way into x86-64 */
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

/* Goes on with the next step where the comparison (BPF_JEQ, ...) holds, and else skips so many. */
static void unless_skip(filter *f, unsigned comparison, uint32_t value, uint8_t skipped)
{
    add(f,
        (struct sock_filter)BPF_JUMP((uint16_t)(BPF_JMP | comparison | BPF_K), value, 0, skipped));
}

static size_t argument_at(const struct call *call)
{
    return offsetof(struct seccomp_data, args) + call->argument * sizeof(uint64_t);
}

/* The comparison of an argument, and the answer where it allows the call. */
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

/* Of all threads. Without SPEC_ALLOW older kernels slow down what the processor speculates on, of
 * which the times would tell. */
int mgl_sandbox_refuse_calls(void)
{
    filter f = {.count = 0};
    make(&f);
    const struct sock_fprog program = {f.count, f.steps};
    long left = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                        SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program);
    return left < 0 ? errno : left > 0 ? EBUSY : 0; /* above 0: a thread that can not follow */
}

#endif
