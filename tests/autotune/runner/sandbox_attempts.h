/* Declares the forbidden operations that test_sandbox tries in a child process. */
#ifndef MGL_TESTS_AUTOTUNE_RUNNER_SANDBOX_ATTEMPTS_H
#define MGL_TESTS_AUTOTUNE_RUNNER_SANDBOX_ATTEMPTS_H

#include <stdbool.h>

/* Where attempts find what they need. Made by the test, in the parent. */
typedef struct attempt_place {
    char folder[64];  /* outside: readable and writable without the sandbox */
    char cache[80];   /* what the sandbox leaves */
    char secret[80];  /* a file of `folder` */
    char socket[80];  /* path of a socket that listens */
    int port;         /* of TCP, that listens at 127.0.0.1 */
    int pair;         /* an open socket */
    const void *word; /* of the parent's memory, which the child has too */
} attempt_place;

/* 0: it succeeded; else errno. */
typedef int attempt_fn(const attempt_place *place);

typedef enum attempt_part { BY_CALLS, BY_FILES } attempt_part;

typedef struct attempt {
    const char *name;
    attempt_fn *fn;
    attempt_part part; /* of the sandbox that refuses it */
    int error;         /* that it is refused with */
    bool possible;     /* it succeeds without the sandbox, wherever a test runs */
} attempt;

extern const attempt attempts[];
extern const int attempt_count;

/* What has to go on. */
typedef struct use {
    const char *name;
    attempt_fn *fn;
} use;
extern const use uses[];
extern const int use_count;

#endif
