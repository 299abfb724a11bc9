/*
 * A worker process as its lab sees it: started with next to nothing of the lab's environment, asked
 * one thing at a time, watched while it works on it, and killed when it takes too long or too much
 * memory, when it breaks the protocol, and when nobody wants it any more.
 *
 * A worker dies with the thread that started it, and is used by that thread alone.
 */
#ifndef MGL_AUTOTUNE_RUNNER_PROCESS_H
#define MGL_AUTOTUNE_RUNNER_PROCESS_H

#include "autotune/runner/protocol.h"

#include <sys/types.h>

typedef struct mgl_process mgl_process;

typedef struct mgl_process_options {
    const char *program;      /* "/proc/self/exe" */
    const char *kernels;      /* folder of compiled kernels; NULL: the default one */
    const atomic_int *abort;  /* may be NULL */
    uint64_t limit_bytes;     /* of resident memory; 0: none */
    const char *const *under; /* the words of a tool that runs the program, which stand in front of
                               * it, the tool's path first; NULL at their end; NULL: none. All of
                               * the tool's processes end with it */
} mgl_process_options;

/* How a request ended. */
typedef enum mgl_fate {
    MGL_FATE_ANSWERED,
    MGL_FATE_DIED,  /* it ended by itself */
    MGL_FATE_HUNG,  /* was killed at its time limit */
    MGL_FATE_GREW,  /* was killed at its memory limit */
    MGL_FATE_BROKE, /* was killed since it answered with something else than a reply */
    MGL_FATE_STOPPED
} mgl_fate;

/* What came of a request. Release with mgl_answer_clear. */
typedef struct mgl_answer {
    mgl_fate fate;
    mgl_request_kind kind;
    mgl_error
        error;   /* of the worker, code included; else how it ended; code MGL_OK: answered well */
    int signal;  /* that ended it; 0: none, or unknown */
    bool killed; /* by somebody who is neither the lab nor the kernel that ran out of memory */
    double device_s; /* mgl_wire_reply; not negative */
    void *bytes;     /* (length) behind the reply's head; NULL: none */
    size_t length;
} mgl_answer;
void mgl_answer_clear(mgl_answer *answer);

/* Starts the process: MGL_SYSTEM where that is not possible. It has not said anything yet. Release
 * with mgl_process_close. */
mgl_status mgl_process_start(const mgl_process_options *options, mgl_process **out, mgl_error *err);
void mgl_process_close(mgl_process *process); /* kills it; NULL is fine */
/* Tells it that nobody asks any more, and waits until it has ended by itself; false: it did not,
 * and was killed. Close it all the same. */
bool mgl_process_finish(mgl_process *process, double limit_s);
pid_t mgl_process_id(const mgl_process *process);
/* False once it was killed or found dead. */
bool mgl_process_lives(const mgl_process *process);

/* What a request consists of behind its head: two parts, each of which may be empty. */
typedef struct mgl_question {
    mgl_request_kind kind;
    const void *fixed, *bytes;
    size_t fixed_length, length;
    double limit_s;
} mgl_question;

#define MGL_PROCESS_ANY SIZE_MAX /* bytes of a reply: as many as there are */

/* Asks and waits. A reply that is no failure must have `wanted` bytes behind its head. Fails only
 * with MGL_INTERRUPTED (the worker was killed) and MGL_NO_MEMORY: all else is in *out. */
mgl_status mgl_process_ask(mgl_process *process, const mgl_question *question, size_t wanted,
                           mgl_answer *out, mgl_error *err);

/* The same in two halves; between them the caller does something else. */
mgl_status mgl_process_post(mgl_process *process, const mgl_question *question, mgl_error *err);
bool mgl_process_has_reply(const mgl_process *process); /* or is dead */
mgl_status mgl_process_await(mgl_process *process, size_t wanted, mgl_answer *out, mgl_error *err);

/* Of an environment (NULL at its end) what a worker gets, in one block: names by a list, and of
 * these none that holds a key, a token or the like. MEGALITH_CACHE is `kernels` unless that is
 * NULL. NULL: no memory. Release with mgl_free. */
char **mgl_process_environment(char *const *from, const char *kernels);

#endif
