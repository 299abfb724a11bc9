/*
 * Declares one run of fail_calls: a scenario, a failing call, and the result. fail_trial.c
 * implements it.
 */
#ifndef MGL_TESTS_TOOLS_FAIL_TRIAL_H
#define MGL_TESTS_TOOLS_FAIL_TRIAL_H

#include "tests/tools/fail_calls.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    FAIL_SPACE = MGL_FAIL_KIND_COUNT, /* the kind of the runs with little address space */
    FAIL_LIMIT_S = 10,
    FAIL_PATH = 512,
    FAIL_NOTE = 160
};

/* Result of a run: name, bad, meaning. */
#define VERDICTS(X)                                                                                \
    X(same, false, "the reference's answer, although a call failed")                               \
    X(not_reached, false, "the reference's answer; there was no such call this time")              \
    X(told, false, "what failed stands in the answer, as missing or unknown: doctor")              \
    X(refused, false, "a message and a code that fits")                                            \
    X(crash, true, "ended by a signal")                                                            \
    X(hang, true, "did not end within the limit")                                                  \
    X(wrong_answer, true, "code 0 with another answer than the reference's")                       \
    X(wrong_code, true, "a code that the contract has not for this")                               \
    X(no_message, true, "no message on standard error")                                            \
    X(no_object, true, "with --json, standard output is not one megalith.error/1")                 \
    X(torn_output, true,                                                                           \
      "the output is neither the old file nor the new one, or has other rights")                   \
    X(left_behind, true, "a file beside the output that no next writer removes")                   \
    X(changed_input, true, "the checkpoint is no longer what it was")

typedef enum verdict {
#define MGL_X(name, bad, meaning) VERDICT_##name,
    VERDICTS(MGL_X)
#undef MGL_X
        VERDICT_COUNT
} verdict;

extern const struct fail_verdict {
    const char *name;
    bool bad;
} fail_verdicts[VERDICT_COUNT];

extern const struct fail_kind {
    const char *name;
    int number;                        /* errno */
} fail_kinds[MGL_FAIL_KIND_COUNT + 1]; /* the last is FAIL_SPACE */

/* Bytes of a file, or an answer. Release bytes with mgl_free. */
typedef struct content {
    char *bytes;
    size_t length;
} content;

typedef struct scenario {
    const char *name;
    int code; /* exit code without failures */
    const char *output, *line;
    bool json;
    bool refused;   /* whether it is rejected with a message without failures */
    content answer; /* its answer, without varying parts */
    content file;   /* its output */
    uint64_t calls[MGL_FAIL_KIND_COUNT];
} scenario;

/* One run of a scenario. */
typedef struct trial {
    uint16_t scenario, kind;
    bool forever;
    uint64_t at; /* number of the call; of FAIL_SPACE, KiB */
} trial;

typedef struct outcome {
    uint8_t verdict;
    int16_t code;         /* exit code, or the signal's number below 0 */
    char note[FAIL_NOTE]; /* the last message on standard error */
} outcome;

/* A job: a process that runs trials, with its folder and files. */
typedef struct job {
    char folder[FAIL_PATH], out[FAIL_PATH], err[FAIL_PATH], count[FAIL_PATH];
    mgl_fail_page *page;
} job;

extern scenario fail_scenarios[];
extern const int fail_scenario_count;

/* Options of all runs. */
typedef struct fail_setup {
    char megalith[PATH_MAX], shim[PATH_MAX];
    const char *model;
    bool traces; /* print the call's position in the program on standard error */
} fail_setup;
extern fail_setup fail_given;

_Noreturn void fail_with(const char *what, const char *detail);

/* Makes the folder of all runs, which is removed at exit, and the inputs. */
void fail_prepare(void);
/* Makes the folder of one job. */
void fail_open_job(int number, job *j);
/* Runs each scenario without failures. */
void fail_learn(const job *j);
/* Runs and checks one trial. */
outcome fail_try(const job *j, const trial *t);
/* Prints the standard error of the job's last run. */
void fail_show(const job *j);
/* Ends the program if the copied model has changed. */
void fail_check_model(void);

#endif
