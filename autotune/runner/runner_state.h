/* What the parts of the device lab share, lab_*.c. Private to them. */
#ifndef MGL_AUTOTUNE_RUNNER_RUNNER_STATE_H
#define MGL_AUTOTUNE_RUNNER_RUNNER_STATE_H

#include "autotune/runner/process.h"
#include "autotune/runner/runner.h"

enum {
    MGL_RUNNER_LONG = 5, /* times the limit of a request, where weights or kernels are made */
    MGL_RUNNER_COMPILE_S = 300, /* and so many seconds more where a kernel may be compiled */
    MGL_RUNNER_KEYS = 2 * MGL_MOST_COMPILERS
};

/* The programs of a candidate, as text: what a worker is sent, and what outlives the candidate. */
typedef struct mgl_runner_set {
    int serial; /* names it; 0: there is none */
    int program_count;
    char *texts[MGL_MAX_WORKLOADS]; /* (program_count) owned */
    size_t lengths[MGL_MAX_WORKLOADS];
    char keys[MGL_MAX_WORKLOADS][MGL_SHA256_HEX]; /* (program_count) of their kernels; CUDA */
    int program_of[MGL_MAX_WORKLOADS];            /* (workloads) */
    double streamed[MGL_MAX_WORKLOADS];           /* (workloads) bytes that a token reads */
    uint64_t machine_bytes;                       /* of the largest machine */
    bool takes[MGL_MAX_WORKLOADS]; /* (program_count) whether it takes the texts below */
    /* (source_count) texts in the place of sources of the kernel */
    int source_count;
    char files[MGL_WIRE_SOURCES][sizeof((mgl_wire_set *)0)->files[0]];
    char *sources[MGL_WIRE_SOURCES]; /* owned */
} mgl_runner_set;

/* Which program of which set is on a side of the executor's duel. */
typedef struct mgl_runner_resident {
    int serial, program;
} mgl_runner_resident;

/* Tokens of one launch: (batch, MGL_WORKLOAD_TOKENS). */
typedef int32_t mgl_runner_tokens[MGL_MAX_SEQUENCES * MGL_WORKLOAD_TOKENS];

/* How a trial ended, where it did. */
typedef struct mgl_runner_verdict {
    mgl_outcome outcome; /* MGL_OUTCOME_OK: it did not */
    char diagnostic[MGL_MAX_DIAGNOSTIC + 1];
} mgl_runner_verdict;

/* What a lab does with candidates. */
typedef enum mgl_runner_deed { MGL_RUNNER_CHECK, MGL_RUNNER_PAIR, MGL_RUNNER_REAL } mgl_runner_deed;

typedef struct mgl_runner_state {
    mgl_runner runner; /* first: what the caller has */
    mgl_runner_options options;
    char *device, *program, *kernels; /* owned copies */
    double limit_s;
    uint64_t limit_bytes;
    mgl_process *executor, *referee;
    const mgl_runner_tool *tool; /* that runs workers which are started now; NULL: none */
    const char *readable; /* what workers that are started now may read of a model; NULL: nothing */
    char sandbox[256];    /* as in mgl_runner_device */
    mgl_wire_device facts; /* of the device, when the executor was asked last */
    int serials;           /* so far */
    mgl_runner_set standard, incumbent, candidate; /* the default, ... */
    mgl_runner_resident resident[MGL_SIDES];
    /* of the candidate that was checked last: */
    bool checked;
    uint64_t seed;
    uint64_t expected; /* seed of the launches that follow */
    mgl_runner_tokens made[MGL_SIDES][MGL_MAX_WORKLOADS];
    double fastest; /* stream of the session, in bytes a second; 0: none was measured */
    bool measured[MGL_MAX_WORKLOADS]; /* the stream of as many bytes */
    struct {
        mgl_process *process;
        char key[MGL_SHA256_HEX];    /* of the kernel that it compiles; "": idle */
    } compilers[MGL_MOST_COMPILERS]; /* (lab.compilers) */
    struct {
        char digest[MGL_SHA256_HEX]; /* of a candidate; "": none */
        char keys[MGL_MAX_WORKLOADS][MGL_SHA256_HEX];
    } keys[MGL_RUNNER_KEYS]; /* those that were asked for last, in turn: to hash a kernel's sources
                             takes milliseconds */
    int next_keys;
    char (*ready)[MGL_SHA256_HEX]; /* (ready_count) keys of kernels that were compiled */
    size_t ready_count, ready_capacity;
    bool killed; /* a worker that was at work on the candidate was, by somebody: not its fault */
    mgl_fault fault; /* tests only: of the next that is done of `fault_in` */
    mgl_runner_deed fault_in;
} mgl_runner_state;

/* ---- runner_device.c ----------------------------------------------------------------------------
 */

/* mgl_process_ask, of which the lab notes how long it took. */
mgl_status mgl_runner_ask_process(mgl_runner_state *runner, mgl_process *process,
                                  const mgl_question *question, size_t wanted, mgl_answer *out,
                                  mgl_error *err);
/* A request was waited for since `since` (mgl_clock_s); and the device worked. */
void mgl_runner_note_wait(mgl_runner_state *runner, mgl_request_kind kind, double since);
void mgl_runner_note_work(mgl_runner_state *runner, mgl_runner_work work, double seconds);
/* Asks the executor, which is started where none lives. */
mgl_status mgl_runner_ask(mgl_runner_state *runner, const mgl_question *question, size_t wanted,
                          mgl_answer *out, mgl_error *err);
/* A worker of a role, greeted: MGL_DEVICE and the like where it has no device. In two halves the
 * caller does something else while it opens its device; a failure of either leaves none. */
mgl_status mgl_runner_start_worker(mgl_runner_state *runner, mgl_worker_role role,
                                   mgl_process **out, mgl_error *err);
mgl_status mgl_runner_call_worker(mgl_runner_state *runner, mgl_worker_role role, mgl_process **out,
                                  mgl_error *err);
mgl_status mgl_runner_await_worker(mgl_runner_state *runner, mgl_worker_role role,
                                   mgl_process **worker, mgl_error *err);
/* Ends the executor; the next one starts clean. */
void mgl_runner_end_executor(mgl_runner_state *runner);

/* A failure as an error of the lab's own. */
mgl_status mgl_runner_fail(const mgl_answer *answer, mgl_error *err);
/* A failure of the candidate's, as its verdict. Ends an executor that may be damaged, and looks
 * whether a new one works: where it does not, the lab fails: nothing is known of the candidate. */
mgl_status mgl_runner_blame(mgl_runner_state *runner, const mgl_answer *answer,
                            mgl_runner_verdict *verdict, mgl_error *err);

/* Puts a program of a set on a side, if it is not there. What goes wrong with the candidate's side
 * is the verdict; `facts` may be NULL. */
mgl_status mgl_runner_place(mgl_runner_state *runner, mgl_side side, const mgl_runner_set *set,
                            int program, mgl_wire_facts *facts, mgl_runner_verdict *verdict,
                            mgl_error *err);
/* One launch: tokens (batch, load->tokens) and seconds. What goes wrong on the candidate's side is
 * the verdict. */
mgl_status mgl_runner_launch(mgl_runner_state *runner, const mgl_wire_load *load, int32_t *tokens,
                             double *seconds, mgl_runner_verdict *verdict, mgl_error *err);
/* Tests only: the fault that the options planted, once; and telling the executor of one, or of
 * none. */
mgl_fault mgl_runner_take_fault(mgl_runner_state *runner, mgl_runner_deed deed);
mgl_status mgl_runner_arm(mgl_runner_state *runner, mgl_fault fault, mgl_error *err);

/* ---- runner_set.c -------------------------------------------------------------------------------
 */

/* A copy of a candidate's programs. Release with mgl_runner_set_clear. */
mgl_status mgl_runner_set_make(const mgl_subject *subject, const mgl_candidate *candidate,
                               int serial, mgl_runner_set *out, mgl_error *err);
void mgl_runner_set_clear(mgl_runner_set *set);
/* What a worker is sent of one of its programs: fills `fixed`, and the bytes behind it.
 * MGL_NO_MEMORY where there are none. */
mgl_status mgl_runner_set_write(const mgl_runner_set *set, int program, mgl_wire_set *fixed,
                                mgl_text *bytes, mgl_error *err);
/* Names the kernel of a program that is compiled with the candidate's sources. */
void mgl_runner_kernel_key(const mgl_candidate *candidate, int program, const char *arch,
                           char key[MGL_SHA256_HEX]);
/* MGL_DEVICE, in bytes, where two machines of the set and the reference do not fit the device. */
mgl_status mgl_runner_set_fits(const mgl_runner_set *set, const mgl_subject *subject,
                               const mgl_wire_device *device, mgl_error *err);

/* ---- runner_under.c: one of the lab's functions -------------------------------------------------
 */

mgl_status mgl_runner_run_under(mgl_runner *self, const mgl_runner_tool *tool,
                                const mgl_candidate *candidate, uint64_t seed,
                                mgl_runner_under *out, mgl_error *err);

/* ---- runner_check.c, runner_pair.c: the lab's functions
 * -------------------------------------------- */

mgl_status mgl_runner_check_candidate(mgl_runner *self, const mgl_candidate *candidate,
                                      const unsigned char nonce[MGL_SHA256_BYTES],
                                      mgl_runner_check *out, mgl_error *err);
mgl_status mgl_runner_measure_pairs(mgl_runner *self, int workload, int count, uint64_t seed,
                                    bool control, mgl_pair *out, mgl_outcome *outcome,
                                    char diagnostic[MGL_MAX_DIAGNOSTIC + 1], mgl_error *err);
mgl_status mgl_runner_measure_floor(mgl_runner *self, int workload, bool again, double *us,
                                    mgl_error *err);
mgl_status mgl_runner_promote(mgl_runner *self, mgl_error *err);

/* ---- runner_look.c: likewise --------------------------------------------------------------------
 */

mgl_status mgl_runner_take(mgl_runner *self, const mgl_candidate *candidate, mgl_error *err);
mgl_status mgl_runner_look_at(mgl_runner *self, mgl_side side, const mgl_runner_look *at,
                              mgl_runner_memory *out, mgl_outcome *outcome,
                              char diagnostic[MGL_MAX_DIAGNOSTIC + 1], mgl_error *err);

/* ---- runner_real.c: likewise --------------------------------------------------------------------
 */

mgl_status mgl_runner_decode(mgl_runner *self, const mgl_real_texts *texts, int program,
                             int sequences, mgl_real_numbers *out, mgl_outcome *outcome,
                             char diagnostic[MGL_MAX_DIAGNOSTIC + 1], mgl_error *err);
mgl_status mgl_runner_time_baseline(mgl_runner *self, int workload, double *us, mgl_error *err);

/* ---- runner_build_ahead.c: kernels that are compiled before they are wanted
 * --------------------------- */

void mgl_runner_prepare(mgl_runner *self, const mgl_candidate *candidate);
bool mgl_runner_is_ready(mgl_runner *self, const mgl_candidate *candidate);
/* Notes that the kernel of this key was compiled, or that nobody need try again. */
void mgl_runner_note_kernel(mgl_runner_state *runner, const char *key);
/* Waits for the compiler that makes this kernel, if one does. */
mgl_status mgl_runner_await_kernel(mgl_runner_state *runner, const char *key, mgl_error *err);
void mgl_runner_end_compilers(mgl_runner_state *runner);

#endif
