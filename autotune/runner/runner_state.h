/* State and functions shared by the parts of the device runner (runner_*.c), and private to
 * them. */
#ifndef MGL_AUTOTUNE_RUNNER_RUNNER_STATE_H
#define MGL_AUTOTUNE_RUNNER_RUNNER_STATE_H

#include "autotune/runner/process.h"
#include "autotune/runner/runner.h"

enum {
    MGL_RUNNER_LONG = 5,        /* factor on the request limit if weights or kernels are made */
    MGL_RUNNER_COMPILE_S = 300, /* additional seconds if a kernel may be compiled */
    MGL_RUNNER_KEYS = 2 * MGL_MOST_COMPILERS
};

/* The programs of a candidate as text, in the form sent to workers. Independent of the candidate's
 * life. */
typedef struct mgl_runner_set {
    int serial; /* unique number; 0: empty */
    int program_count;
    char *texts[MGL_MAX_WORKLOADS]; /* (program_count) owned */
    size_t lengths[MGL_MAX_WORKLOADS];
    /* (program_count) keys of their kernels; CUDA only */
    char keys[MGL_MAX_WORKLOADS][MGL_SHA256_HEX];
    int program_of[MGL_MAX_WORKLOADS];  /* (workloads) */
    double streamed[MGL_MAX_WORKLOADS]; /* (workloads) bytes read for a token */
    uint64_t machine_bytes;             /* memory of the largest machine */
    bool takes[MGL_MAX_WORKLOADS]; /* (program_count) whether the kernel uses the texts below */
    /* (source_count) replacement texts of kernel sources */
    int source_count;
    char files[MGL_WIRE_SOURCES][sizeof((mgl_wire_set *)0)->files[0]];
    char *sources[MGL_WIRE_SOURCES]; /* owned */
} mgl_runner_set;

/* The program loaded on a side of the executor's paired benchmark. */
typedef struct mgl_runner_resident {
    int serial, program;
} mgl_runner_resident;

/* Tokens of one launch: (batch, MGL_WORKLOAD_TOKENS). */
typedef int32_t mgl_runner_tokens[MGL_MAX_SEQUENCES * MGL_WORKLOAD_TOKENS];

/* A launch of a workload. */
static inline mgl_wire_load mgl_runner_load(mgl_side side, const mgl_workload *workload, int tokens,
                                            uint64_t seed)
{
    return (mgl_wire_load){.side = (int32_t)side,
                           .batch = workload->batch,
                           .context = workload->context,
                           .tokens = tokens,
                           .seed = seed};
}

/* Activities with a candidate. */
typedef enum mgl_runner_deed { MGL_RUNNER_CHECK, MGL_RUNNER_PAIR, MGL_RUNNER_REAL } mgl_runner_deed;

typedef struct mgl_runner_state {
    mgl_runner runner; /* first member: the interface that the caller holds */
    mgl_runner_options options;
    char *device, *program, *kernels; /* owned copies */
    double limit_s;
    uint64_t limit_bytes;
    mgl_process *executor, *referee;
    const mgl_runner_tool *tool;   /* tool for workers started now; NULL: none */
    const char *readable;          /* model path that workers started now may read; NULL: none */
    char sandbox[256];             /* as in mgl_runner_device */
    mgl_paired_bench_device facts; /* facts of the device, from the last answer of the executor */
    int serials;                   /* serial numbers used so far */
    mgl_runner_set standard, incumbent, candidate; /* the default, the incumbent, the candidate */
    mgl_runner_resident resident[MGL_SIDES];
    /* state of the candidate checked last: */
    bool checked;
    uint64_t seed;
    uint64_t expected; /* seed of the following launches */
    mgl_runner_tokens made[MGL_SIDES][MGL_MAX_WORKLOADS];
    double fastest; /* fastest stream of this session in bytes a second; 0: not measured */
    bool measured[MGL_MAX_WORKLOADS]; /* (workloads) the stream was measured */
    struct {
        mgl_process *process;
        char key[MGL_SHA256_HEX];    /* key of the kernel being compiled; "": idle */
    } compilers[MGL_MOST_COMPILERS]; /* (runner.compilers) */
    struct {
        char digest[MGL_SHA256_HEX]; /* digest of a candidate; "": the entry is free */
        char keys[MGL_MAX_WORKLOADS][MGL_SHA256_HEX];
    } keys[MGL_RUNNER_KEYS]; /* ring buffer of recent keys: hashing sources takes milliseconds */
    int next_keys;
    char (*ready)[MGL_SHA256_HEX]; /* (ready_count) keys of compiled kernels */
    size_t ready_count, ready_capacity;
    /* another process killed a worker that ran the candidate; not the candidate's fault */
    bool killed;
    mgl_fault fault; /* for tests only: fault of the next activity `fault_in` */
    mgl_runner_deed fault_in;
} mgl_runner_state;

/* ---- runner_device.c ------------------------------------------------------------------------- */

/* Calls mgl_process_ask and records its duration. */
mgl_status mgl_runner_ask_process(mgl_runner_state *runner, mgl_process *process,
                                  const mgl_question *question, size_t wanted, mgl_answer *out,
                                  mgl_error *err);
/* Record the time waited for a request since `since` (mgl_clock_s), and the device's work. */
void mgl_runner_note_wait(mgl_runner_state *runner, mgl_request_kind kind, double since);
void mgl_runner_note_work(mgl_runner_state *runner, mgl_runner_work work, double seconds);
/* Sends a request to the executor, which is started if necessary. If the request's time limit is 0,
 * the limit of the options applies. */
mgl_status mgl_runner_ask(mgl_runner_state *runner, const mgl_question *question, size_t wanted,
                          mgl_answer *out, mgl_error *err);
/* Starts a worker of a role and greets it. MGL_DEVICE and similar: it has no device. call_worker
 * and await_worker are the two halves; in between, the worker opens its device. If either half
 * fails, *worker is NULL. */
mgl_status mgl_runner_start_worker(mgl_runner_state *runner, mgl_worker_role role,
                                   mgl_process **out, mgl_error *err);
mgl_status mgl_runner_call_worker(mgl_runner_state *runner, mgl_worker_role role, mgl_process **out,
                                  mgl_error *err);
mgl_status mgl_runner_await_worker(mgl_runner_state *runner, mgl_worker_role role,
                                   mgl_process **worker, mgl_error *err);
/* Ends the executor. The next one starts clean. */
void mgl_runner_end_executor(mgl_runner_state *runner);

/* Converts a failed answer to a verdict on the candidate. Ends the executor if it may be damaged,
 * and tests whether a new one works. If not, the runner fails, and nothing is known about the
 * candidate. */
mgl_status mgl_runner_blame(mgl_runner_state *runner, const mgl_answer *answer,
                            mgl_trial_verdict *verdict, mgl_error *err);

/* mgl_runner_ask for a reply of `wanted` bytes, which go to `to`. A failed request becomes the
 * verdict on the candidate (mgl_runner_blame). If `verdict` is NULL, the executor ends, and the
 * runner fails. */
mgl_status mgl_runner_get(mgl_runner_state *runner, const mgl_question *question, void *to,
                          size_t wanted, mgl_trial_verdict *verdict, mgl_error *err);

/* Loads a program of a set on a side, if it is not loaded. A failure on the candidate's side
 * becomes the verdict. `kernel_s`: seconds of the compiler; may be NULL. */
mgl_status mgl_runner_place(mgl_runner_state *runner, mgl_side side, const mgl_runner_set *set,
                            int program, double *kernel_s, mgl_trial_verdict *verdict,
                            mgl_error *err);
/* Runs one launch: returns tokens (batch, load->tokens) and seconds. A failure on the candidate's
 * side becomes the verdict. */
mgl_status mgl_runner_launch(mgl_runner_state *runner, const mgl_wire_load *load, int32_t *tokens,
                             double *seconds, mgl_trial_verdict *verdict, mgl_error *err);
/* For tests only: take the planted fault once, and send a fault (or none) to the executor. */
mgl_fault mgl_runner_take_fault(mgl_runner_state *runner, mgl_runner_deed deed);
mgl_status mgl_runner_arm(mgl_runner_state *runner, mgl_fault fault, mgl_error *err);

/* ---- runner_set.c ---------------------------------------------------------------------------- */

/* Copies a candidate's programs. Release with mgl_runner_set_clear. */
mgl_status mgl_runner_set_make(const mgl_subject *subject, const mgl_candidate *candidate,
                               int serial, mgl_runner_set *out, mgl_error *err);
void mgl_runner_set_clear(mgl_runner_set *set);
/* Builds the message for one program of a set: `fixed` and the bytes after it. MGL_NO_MEMORY:
 * memory ran out. */
mgl_status mgl_runner_set_write(const mgl_runner_set *set, int program, mgl_wire_set *fixed,
                                mgl_text *bytes, mgl_error *err);
/* The key of the kernel of a program, compiled with the candidate's sources. */
void mgl_runner_kernel_key(const mgl_candidate *candidate, int program, const char *arch,
                           char key[MGL_SHA256_HEX]);
/* MGL_DEVICE if two machines of the set and the reference do not fit into the device's memory. */
mgl_status mgl_runner_set_fits(const mgl_runner_set *set, const mgl_subject *subject,
                               const mgl_paired_bench_device *device, mgl_error *err);

/* ---- runner_under.c: implements mgl_runner.under --------------------------------------------- */

mgl_status mgl_runner_run_under(mgl_runner *self, const mgl_runner_tool *tool,
                                const mgl_candidate *candidate, uint64_t seed,
                                mgl_runner_under *out, mgl_error *err);

/* ---- runner_check.c, runner_pair.c: implement check, pair, floor and promote ----------------- */

mgl_status mgl_runner_check_candidate(mgl_runner *self, const mgl_candidate *candidate,
                                      const unsigned char nonce[MGL_SHA256_BYTES],
                                      mgl_runner_check *out, mgl_error *err);
mgl_status mgl_runner_measure_pairs(mgl_runner *self, int workload, int count, uint64_t seed,
                                    bool control, mgl_pair *out, mgl_trial_verdict *verdict,
                                    mgl_error *err);
mgl_status mgl_runner_measure_floor(mgl_runner *self, int workload, bool again, double *us,
                                    mgl_error *err);
mgl_status mgl_runner_promote(mgl_runner *self, mgl_error *err);

/* ---- runner_look.c: implements take and look ------------------------------------------------- */

mgl_status mgl_runner_take(mgl_runner *self, const mgl_candidate *candidate, mgl_error *err);
mgl_status mgl_runner_look_at(mgl_runner *self, mgl_side side, const mgl_runner_look *at,
                              mgl_runner_memory *out, mgl_trial_verdict *verdict, mgl_error *err);

/* ---- runner_real.c: implements decode and baseline ------------------------------------------- */

mgl_status mgl_runner_decode(mgl_runner *self, const mgl_real_texts *texts, int program,
                             int sequences, mgl_real_numbers *out, mgl_trial_verdict *verdict,
                             mgl_error *err);
mgl_status mgl_runner_time_baseline(mgl_runner *self, int workload, double *us, mgl_error *err);

/* ---- runner_build_ahead.c: background compilation -------------------------------------------- */

void mgl_runner_prepare(mgl_runner *self, const mgl_candidate *candidate);
bool mgl_runner_is_ready(mgl_runner *self, const mgl_candidate *candidate);
/* Records that the kernel was compiled, or that compiling it again is useless. */
void mgl_runner_note_kernel(mgl_runner_state *runner, const char *key);
/* If a compiler is making this kernel, waits for it. */
mgl_status mgl_runner_await_kernel(mgl_runner_state *runner, const char *key, mgl_error *err);
void mgl_runner_end_compilers(mgl_runner_state *runner);

#endif
