/*
 * The lab: who executes candidates. A lab has no opinion: it answers with outcomes of executing (it
 * hung, it was wrong) and with raw pairs; whether something is kept is decided by its caller.
 *
 * Three labs: `device` runs worker processes on a GPU or, for correctness alone, on the CPU; `none`
 * measures nothing; tests have one that plays a device with a virtual clock.
 */
#ifndef MGL_AUTOTUNE_RUNNER_RUNNER_H
#define MGL_AUTOTUNE_RUNNER_RUNNER_H

#include "autotune/runner/real.h"
#include "autotune/search/gate.h"
#include "eval/paired_bench.h"

/* What the device is, as results name it. */
typedef struct mgl_runner_device {
    char name[128], uuid[48], driver[32];
    mgl_target target;
    uint64_t memory_total, memory_free, l2_bytes;
    char sandbox[256]; /* what its workers may do in spite of sandbox.h, a sentence; "": nothing */
} mgl_runner_device;

/* What came of running a candidate for correctness. */
typedef struct mgl_runner_check {
    mgl_outcome outcome; /* MGL_OUTCOME_OK: correct on every workload */
    char diagnostic[MGL_MAX_DIAGNOSTIC + 1];
    double errors[MGL_MAX_WORKLOADS]; /* (workloads) relative L2 of logits, the largest; -1: none */
    double defaults[MGL_MAX_WORKLOADS]; /* (workloads) of the default, on the same nonce */
    bool same_kernel;
    double compile_s, seconds;
} mgl_runner_check;

/* What a launch of one token of each sequence is made of, and what it left (eval/paired_bench.h).
 */
typedef struct mgl_runner_look {
    int workload;
    mgl_synthetic_kind kind;
    uint64_t seed;
} mgl_runner_look;
typedef struct mgl_runner_memory {
    unsigned char constants[MGL_SHA256_BYTES];
    int32_t tokens[MGL_MAX_SEQUENCES]; /* (batch) */
    unsigned char *memory;             /* (length) owned: mgl_free */
    size_t length;
} mgl_runner_memory;

/* A tool that runs a worker and looks at what its launches do. */
typedef struct mgl_runner_tool {
    const char *const *words; /* its path and flags; NULL at their end */
    bool no_sandbox;          /* its part in the worker can not work there */
} mgl_runner_tool;
/* What came of it. What the tool found is in its own log. */
typedef struct mgl_runner_under {
    bool done;                        /* all launches ended well, and then the tool */
    bool hung;                        /* it did not end within its time, and was killed */
    char why[MGL_MAX_DIAGNOSTIC + 1]; /* of one that is not done */
} mgl_runner_under;

/* Kernels that a lab compiles at the same time, at most. */
enum { MGL_MOST_COMPILERS = 12 };

/* What took so long, all together. */
typedef struct mgl_runner_time {
    const char *what; /* NULL: nothing did */
    double seconds;
    int64_t count;
} mgl_runner_time;

enum { MGL_RUNNER_WAITS = 20 /* kinds of requests */ };

/* What a device does for a lab. */
typedef enum mgl_runner_work {
    MGL_RUNNER_LAUNCHES,  /* of programs */
    MGL_RUNNER_WEIGHTS,   /* and cache, made of a seed */
    MGL_RUNNER_REFERENCE, /* in f32 */
    MGL_RUNNER_STREAM,
    MGL_RUNNER_WORKS
} mgl_runner_work;

typedef struct mgl_runner mgl_runner;
struct mgl_runner {
    bool measures; /* has a clock */
    bool executes; /* can tell what is correct */
    double busy_s; /* of all works so far, by the device's clock: a sum of `works` */
    int compilers; /* kernels that it compiles at the same time; at most MGL_MOST_COMPILERS */
    mgl_runner_time waits[MGL_RUNNER_WAITS]; /* whoever asked for something has waited so long */
    mgl_runner_time
        works[MGL_RUNNER_WORKS]; /* and the device has worked so long, by its own clock */
    /* The device; also what it is now. */
    mgl_status (*get_device)(mgl_runner *self, mgl_runner_device *out, mgl_error *err);
    /* Takes the default's programs as incumbent: the start of a campaign, and of every run of it.
     */
    mgl_status (*start)(mgl_runner *self, const mgl_candidate *incumbent, mgl_error *err);
    /* Makes a candidate resident and looks whether it is correct, before any clock. */
    mgl_status (*check)(mgl_runner *self, const mgl_candidate *candidate,
                        const unsigned char nonce[MGL_SHA256_BYTES], mgl_runner_check *out,
                        mgl_error *err);
    /* A candidate of which nothing is known yet, for `look` alone. NULL: the lab executes nothing.
     */
    mgl_status (*take)(mgl_runner *self, const mgl_candidate *candidate, mgl_error *err);
    /* One launch of a side on poisoned memory, and what it left. *outcome as for `pair`, of the
     * candidate. NULL: the lab executes nothing. */
    mgl_status (*look)(mgl_runner *self, mgl_side side, const mgl_runner_look *at,
                       mgl_runner_memory *out, mgl_outcome *outcome,
                       char diagnostic[MGL_MAX_DIAGNOSTIC + 1], mgl_error *err);
    /* A launch of one token of each workload of the subject, by a worker of its own that a tool
     * runs. A candidate that hangs or fails there is no failure. NULL: the lab executes nothing. */
    mgl_status (*under)(mgl_runner *self, const mgl_runner_tool *tool,
                        const mgl_candidate *candidate, uint64_t seed, mgl_runner_under *out,
                        mgl_error *err);
    /* `count` pairs of a workload, in an order drawn from `seed`, of the incumbent and the
     * candidate that was checked last; with `control` the incumbent stands on both sides. *outcome
     * is MGL_OUTCOME_OK, or what ended it, with `diagnostic`. */
    mgl_status (*pair)(mgl_runner *self, int workload, int count, uint64_t seed, bool control,
                       mgl_pair *out, mgl_outcome *outcome, char diagnostic[MGL_MAX_DIAGNOSTIC + 1],
                       mgl_error *err);
    /* Microseconds that the workload's bytes of the candidate take at the device's fastest stream;
     * 0: the working set is under twice the L2 cache, or there is no clock. */
    mgl_status (*floor)(mgl_runner *self, int workload, bool again, double *us, mgl_error *err);
    /* What the default and the candidate that was checked last make of the texts on the weights of
     * a real checkpoint: one program of each, of `sequences` sequences. It has a worker of its own.
     * *outcome as for `pair`, of the candidate; that the default comes to grief is a failure. NULL:
     * the lab executes nothing. */
    mgl_status (*decode)(mgl_runner *self, const mgl_real_texts *texts, int program, int sequences,
                         mgl_real_numbers *out, mgl_outcome *outcome,
                         char diagnostic[MGL_MAX_DIAGNOSTIC + 1], mgl_error *err);
    /* Microseconds that bench's baseline, a CUDA graph of cuBLAS calls, takes a token of the
     * workload, in a worker of its own. MGL_DEVICE where there is no cuBLAS, or no room. NULL:
     * there is no clock. */
    mgl_status (*baseline)(mgl_runner *self, int workload, double *us, mgl_error *err);
    /* The candidate that was checked last becomes the incumbent. */
    mgl_status (*promote)(mgl_runner *self, mgl_error *err);
    /* A compile that will be wanted soon: goes on beside everything else. May do nothing. */
    void (*prepare)(mgl_runner *self, const mgl_candidate *candidate);
    /* Whether no compile is left to wait for. NULL: there never is one. */
    bool (*is_ready)(mgl_runner *self, const mgl_candidate *candidate);
    void (*close)(mgl_runner *self);
};

typedef struct mgl_runner_options {
    const mgl_subject *subject; /* must outlive the lab */
    const char *device;         /* "cuda", "cuda:1", "cpu" */
    const char *program;        /* that the worker is: "/proc/self/exe"; its main hands what stands
                                   behind MGL_WORKER_FLAG to mgl_worker_main */
    const char *kernels;        /* folder of the campaign's kernel cache */
    uint64_t kernel_bytes;      /* that it may have; 0: no limit */
    const atomic_int *abort;    /* may be NULL */
    double limit_s;             /* for one request of a worker; 0: 60, and more for compiling */
    uint64_t limit_bytes;       /* of a worker's resident memory; 0: half of the machine's */
    bool no_sandbox;            /* workers may do whatever this process may */
    const char *fault; /* tests only: what the worker does wrong in the first check, "hang", or in
                          the first pairs, "pair:hang", or on a real checkpoint, "real:hang":
                          MGL_FAULTS in protocol.h; NULL: nothing */
} mgl_runner_options;

/* Bytes that a campaign needs of its device: two machines as large as the candidate's largest, and
 * the reference. */
uint64_t mgl_runner_bytes(const mgl_subject *subject, const mgl_candidate *candidate);

#define MGL_WORKER_FLAG       "--tune-worker"
#define MGL_WORKER_UNDER_TOOL ",tool"    /* behind the socket's number: a tool has started it */
int mgl_worker_main(const char *socket); /* the exit code of the process */

/* A lab is used by one thread, which outlives it: its workers die with the thread that started
 * them. Strings of the options are copied. */
mgl_status mgl_runner_device_open(const mgl_runner_options *options, mgl_runner **out,
                                  mgl_error *err);
mgl_status mgl_runner_none_open(const mgl_subject *subject, mgl_runner **out, mgl_error *err);

#endif
