/* Declares the forbidden operations that test_sandbox tries in a child process. */
#ifndef MGL_TESTS_AUTOTUNE_RUNNER_SANDBOX_ATTEMPTS_H
#define MGL_TESTS_AUTOTUNE_RUNNER_SANDBOX_ATTEMPTS_H

#include <stdbool.h>

/* Files, sockets and memory for the attempts. The test makes them in the parent. */
typedef struct attempt_place {
    char folder[64];  /* outside: readable and writable without the sandbox */
    char cache[80];   /* the kernel cache, which the sandbox permits */
    char secret[80];  /* a file of `folder` */
    char socket[80];  /* path of a listening Unix socket */
    int port;         /* a TCP port that listens at 127.0.0.1 */
    int pair;         /* an open socket */
    const void *word; /* address in the parent's memory, mapped in the child too */
} attempt_place;

/* Result of an attempt. 0: it succeeded; else errno. */
typedef int attempt_fn(const attempt_place *place);

typedef enum attempt_part { BY_CALLS, BY_FILES } attempt_part;

typedef struct attempt {
    const char *name;
    attempt_fn *fn;
    attempt_part part; /* the part of the sandbox that forbids it */
    int error;         /* errno of the forbidden operation */
    bool possible;     /* it succeeds without the sandbox on every machine */
} attempt;

extern const attempt attempts[];
extern const int attempt_count;

/* Operations that must succeed in the sandbox. */
typedef struct use {
    const char *name;
    attempt_fn *fn;
} use;
extern const use uses[];
extern const int use_count;

#endif
