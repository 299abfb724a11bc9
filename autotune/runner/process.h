/*
 * A worker process, from the side of the runner. It is started with a minimal environment and
 * answers one request at a time. The runner kills it at its time limit, at its memory limit, after
 * a protocol error, or when it closes the process. A worker dies with the thread that started it,
 * and only that thread may use it. Used by runner_*.c and the micro-kernel trials.
 */
#ifndef MGL_AUTOTUNE_RUNNER_PROCESS_H
#define MGL_AUTOTUNE_RUNNER_PROCESS_H

#include "autotune/runner/protocol.h"

#include <sys/types.h>

typedef struct mgl_process mgl_process;

typedef struct mgl_process_options {
    const char *program;     /* "/proc/self/exe" */
    const char *kernels;     /* folder of compiled kernels; NULL: the default folder */
    const atomic_int *abort; /* may be NULL */
    uint64_t limit_bytes;    /* limit of resident memory; 0: no limit */
    /* command line of a tool that runs the program: path and flags, NULL-terminated, placed
     * before the program; NULL: no tool. All processes of the tool end with the worker */
    const char *const *under;
} mgl_process_options;

/* The result of a request. */
typedef enum mgl_fate {
    MGL_FATE_ANSWERED,
    MGL_FATE_DIED,  /* the worker ended by itself */
    MGL_FATE_HUNG,  /* killed at its time limit */
    MGL_FATE_GREW,  /* killed at its memory limit */
    MGL_FATE_BROKE, /* killed because its answer was not a valid reply */
    MGL_FATE_STOPPED
} mgl_fate;

/* The answer to a request. Release with mgl_answer_clear. */
typedef struct mgl_answer {
    mgl_fate fate;
    mgl_request_kind kind;
    mgl_error error; /* the worker's error, or the reason of its end; code MGL_OK: success */
    int signal;      /* signal that ended the worker; 0: none or unknown */
    bool killed;     /* killed by another process: neither the runner nor the kernel's OOM killer */
    double device_s; /* device seconds as in mgl_wire_reply; not negative */
    void *bytes;     /* (length) after the reply's head; NULL: none */
    size_t length;
} mgl_answer;
void mgl_answer_clear(mgl_answer *answer);
/* Converts a failed answer to an error. */
mgl_status mgl_answer_fail(const mgl_answer *answer, mgl_error *err);

/* Starts the process without contacting it. MGL_SYSTEM: this is impossible. Release with
 * mgl_process_close. */
mgl_status mgl_process_start(const mgl_process_options *options, mgl_process **out, mgl_error *err);
void mgl_process_close(mgl_process *process); /* kills the process; NULL is allowed */
/* Closes the socket and waits until the process ends by itself. False: it did not end in time and
 * was killed. mgl_process_close is still required. */
bool mgl_process_finish(mgl_process *process, double limit_s);
pid_t mgl_process_id(const mgl_process *process);
/* False after the process was killed or was found to have ended. */
bool mgl_process_lives(const mgl_process *process);

/* The body of a request: two parts, each of which may be empty. */
typedef struct mgl_question {
    mgl_request_kind kind;
    const void *fixed, *bytes;
    size_t fixed_length, length;
    double limit_s;
} mgl_question;

#define MGL_PROCESS_ANY SIZE_MAX /* accept a reply of any length */

/* Sends a request and waits for its reply. A successful reply must have `wanted` bytes after its
 * head. Fails only with MGL_INTERRUPTED (the worker was killed) and MGL_NO_MEMORY; every other
 * problem is in *out. */
mgl_status mgl_process_ask(mgl_process *process, const mgl_question *question, size_t wanted,
                           mgl_answer *out, mgl_error *err);

/* Sends a request to a worker that runs no candidate. The reply (wanted bytes) goes to `to`. A
 * failed request is an error. */
mgl_status mgl_process_get(mgl_process *process, const mgl_question *question, void *to,
                           size_t wanted, mgl_error *err);

/* The two halves of mgl_process_ask, so that the caller can work in between. */
mgl_status mgl_process_post(mgl_process *process, const mgl_question *question, mgl_error *err);
bool mgl_process_has_reply(const mgl_process *process); /* also true if the process is dead */
mgl_status mgl_process_await(mgl_process *process, size_t wanted, mgl_answer *out, mgl_error *err);

/* Filters an environment (NULL-terminated) for a worker, in one block. Only listed names pass, and
 * no name that contains KEY, TOKEN or similar. MEGALITH_CACHE is set to `kernels` unless that is
 * NULL. NULL: out of memory. Release with mgl_free. */
char **mgl_process_environment(char *const *from, const char *kernels);

#endif
