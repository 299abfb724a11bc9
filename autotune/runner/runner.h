/*
 * The runner interface: executes candidates, checks their correctness, and returns outcomes and raw
 * timing pairs. The caller decides whether to keep a candidate.
 *
 * Implementations: `device` uses worker processes on a GPU, or on the CPU for correctness only
 * (runner_device.c); `none` executes nothing (runner_none.c); tests use a scripted runner with a
 * virtual clock. Called by the campaign loop and the micro-kernel trials.
 */
#ifndef MGL_AUTOTUNE_RUNNER_RUNNER_H
#define MGL_AUTOTUNE_RUNNER_RUNNER_H

#include "autotune/candidates/gate.h"
#include "autotune/runner/real.h"
#include "eval/paired_bench.h"

/* Facts of the device, as stored with results. */
typedef struct mgl_runner_device {
    char name[128], uuid[48], driver[32];
    mgl_target target;
    uint64_t memory_free;
    /* sentence about missing parts of the workers' sandbox (sandbox.h); "": it is complete */
    char sandbox[256];
} mgl_runner_device;

/* Result of a correctness check. */
typedef struct mgl_runner_check {
    mgl_trial_verdict verdict; /* MGL_OUTCOME_OK: correct on every workload */
    /* (workloads) largest relative L2 error of logits; -1: none */
    double errors[MGL_MAX_WORKLOADS];
    /* (workloads) largest relative L2 error of the default, on the same nonce */
    double defaults[MGL_MAX_WORKLOADS];
    bool same_kernel;
    double compile_s, seconds;
} mgl_runner_check;

/* Parameters of a launch of one token for each sequence, and its results (eval/paired_bench.h). */
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

/* A tool that runs a worker and checks its launches, such as a memory checker. */
typedef struct mgl_runner_tool {
    const char *const *words; /* path and flags, NULL-terminated */
    bool no_sandbox;          /* the tool cannot work inside the sandbox */
} mgl_runner_tool;
/* Result of a run under a tool. The tool writes its findings to its own log. */
typedef struct mgl_runner_under {
    bool done;                        /* all launches and the tool ended successfully */
    bool hung;                        /* the time limit expired, and the process was killed */
    char why[MGL_MAX_DIAGNOSTIC + 1]; /* why the run is not `done` */
} mgl_runner_under;

/* Limit of parallel kernel compilations of a runner. */
enum { MGL_MOST_COMPILERS = 12 };

/* Accumulated time of one activity. */
typedef struct mgl_runner_time {
    const char *what; /* NULL: unused entry */
    double seconds;
    int64_t count;
} mgl_runner_time;

enum { MGL_RUNNER_WAITS = 20 /* kinds of requests */ };

/* Kinds of device work. */
typedef enum mgl_runner_work {
    MGL_RUNNER_LAUNCHES,  /* launches of programs */
    MGL_RUNNER_WEIGHTS,   /* generating weights and cache from a seed */
    MGL_RUNNER_REFERENCE, /* computing the f32 reference */
    MGL_RUNNER_STREAM,
    MGL_RUNNER_WORKS
} mgl_runner_work;

typedef struct mgl_runner mgl_runner;
struct mgl_runner {
    bool measures;                           /* has a clock */
    bool executes;                           /* executes programs and checks their correctness */
    double busy_s;                           /* device seconds so far: the sum of `works` */
    int compilers;                           /* parallel compilations; at most MGL_MOST_COMPILERS */
    mgl_runner_time waits[MGL_RUNNER_WAITS]; /* time spent waiting for requests, by kind */
    mgl_runner_time works[MGL_RUNNER_WORKS]; /* time that the device worked, by its own clock */
    /* Returns the device and its current state. */
    mgl_status (*get_device)(mgl_runner *self, mgl_runner_device *out, mgl_error *err);
    /* Makes the candidate the incumbent, and starts the workers. Called at the start of every
     * run. */
    mgl_status (*start)(mgl_runner *self, const mgl_candidate *incumbent, mgl_error *err);
    /* Loads a candidate and checks its correctness, before any timing. */
    mgl_status (*check)(mgl_runner *self, const mgl_candidate *candidate,
                        const unsigned char nonce[MGL_SHA256_BYTES], mgl_runner_check *out,
                        mgl_error *err);
    /* Loads a candidate without a check, for `look` only. NULL: the runner executes nothing. */
    mgl_status (*take)(mgl_runner *self, const mgl_candidate *candidate, mgl_error *err);
    /* Runs one launch of a side on poisoned memory, and returns its memory. *verdict is as for
     * `pair`, for the candidate. NULL: the runner executes nothing. */
    mgl_status (*look)(mgl_runner *self, mgl_side side, const mgl_runner_look *at,
                       mgl_runner_memory *out, mgl_trial_verdict *verdict, mgl_error *err);
    /* Launches one token of each workload in a separate worker that a tool runs. A candidate that
     * hangs or fails there is no error. NULL: the runner executes nothing. */
    mgl_status (*under)(mgl_runner *self, const mgl_runner_tool *tool,
                        const mgl_candidate *candidate, uint64_t seed, mgl_runner_under *out,
                        mgl_error *err);
    /* Times `count` pairs of a workload, in an order drawn from `seed`, of the incumbent and the
     * candidate checked last. With `control`, both sides are the incumbent. The verdict is
     * MGL_OUTCOME_OK, or the reason of an early end. NULL: there is no clock. */
    mgl_status (*pair)(mgl_runner *self, int workload, int count, uint64_t seed, bool control,
                       mgl_pair *out, mgl_trial_verdict *verdict, mgl_error *err);
    /* The floor in microseconds: the time to read the workload's bytes of the candidate with the
     * device's fastest stream. `again`: measure the stream again. 0: the working set is below twice
     * the L2 cache. NULL: there is no clock. */
    mgl_status (*floor)(mgl_runner *self, int workload, bool again, double *us, mgl_error *err);
    /* Runs one program (for `sequences` sequences) of the default and of the candidate checked last
     * on the weights of a real checkpoint, in a separate worker. *verdict is as for `pair`, for the
     * candidate; a failure of the default is an error. NULL: the runner executes nothing. */
    mgl_status (*decode)(mgl_runner *self, const mgl_real_texts *texts, int program, int sequences,
                         mgl_real_numbers *out, mgl_trial_verdict *verdict, mgl_error *err);
    /* Times the cuBLAS CUDA graph baseline in microseconds a token of the workload, in a separate
     * worker. MGL_DEVICE: there is no cuBLAS or not enough memory. NULL: there is no clock. */
    mgl_status (*baseline)(mgl_runner *self, int workload, double *us, mgl_error *err);
    /* Makes the candidate checked last the incumbent. NULL: there is no clock. */
    mgl_status (*promote)(mgl_runner *self, mgl_error *err);
    /* Starts compiling a candidate's kernels in the background. May do nothing. NULL: as is_ready.
     */
    void (*prepare)(mgl_runner *self, const mgl_candidate *candidate);
    /* Whether the candidate's kernels are compiled. NULL: nothing is ever compiled. */
    bool (*is_ready)(mgl_runner *self, const mgl_candidate *candidate);
    void (*close)(mgl_runner *self);
};

typedef struct mgl_runner_options {
    const mgl_subject *subject; /* must outlive the runner */
    const char *device;         /* "cuda", "cuda:1", "cpu" */
    /* the worker's executable: "/proc/self/exe"; its main passes the argument after
     * MGL_WORKER_FLAG to mgl_worker_main */
    const char *program;
    const char *kernels;     /* folder of the campaign's kernel store */
    uint64_t kernel_bytes;   /* limit of that folder; 0: no limit */
    const atomic_int *abort; /* may be NULL */
    double limit_s;          /* time limit of a request; 0: 60, and more for compiling */
    uint64_t limit_bytes;    /* limit of a worker's resident memory; 0: half of the machine's */
    bool no_sandbox;         /* workers run without the sandbox */
    /* For tests only: fault that the worker injects in the first check ("hang"), in the first
     * pairs ("pair:hang"), or on a real checkpoint ("real:hang"); names in MGL_FAULTS of
     * protocol.h. NULL: none. */
    const char *fault;
} mgl_runner_options;

/* Device memory that a campaign needs in bytes: two machines of the size of the candidate's largest
 * program, and the reference. */
uint64_t mgl_runner_bytes(const mgl_subject *subject, const mgl_candidate *candidate);

/* The check on a real checkpoint (real.h): decodes with each program of the candidate that was
 * checked last, until one fails, and compares. MGL_DEVICE: the runner executes nothing. */
mgl_status mgl_real_run(mgl_runner *runner, const mgl_candidate *candidate,
                        const mgl_real_texts *texts, bool changes_format, mgl_real_facts *facts,
                        mgl_trial_verdict *verdict, mgl_error *err);

#define MGL_WORKER_FLAG       "--tune-worker"
#define MGL_WORKER_UNDER_TOOL ",tool"    /* suffix of the socket number under a tool */
int mgl_worker_main(const char *socket); /* returns the exit code of the process */

/* Opens a device runner. Only one thread may use it, and that thread must outlive it, because
 * workers die with the thread that started them. Strings of the options are copied. */
mgl_status mgl_runner_device_open(const mgl_runner_options *options, mgl_runner **out,
                                  mgl_error *err);
mgl_status mgl_runner_none_open(const mgl_subject *subject, mgl_runner **out, mgl_error *err);

#endif
