/*
 * Virtual machine (VM) interface. A VM loads a validated program and the weights of a checkpoint,
 * and runs requests on them any number of times.
 *
 * Two implementations share this interface: the CPU VM (vm/cpu) and the CUDA VM (vm/cuda). Callers
 * are api/, autotune/, cli/ and eval/. mgl_vm_open runs the validator first and rejects every
 * program that the validator rejects; no other function opens a machine.
 */
#ifndef MGL_VM_VM_H
#define MGL_VM_VM_H

#include "schedule/program.h"
#include "schedule/step.h"

#include <stdatomic.h>

typedef enum mgl_vm_kind { MGL_VM_CPU, MGL_VM_CUDA } mgl_vm_kind;

typedef struct mgl_vm mgl_vm;

/* Device addresses of a machine's memory. */
typedef struct mgl_vm_places {
    const uint64_t *tapes;   /* (queue_count) addresses */
    const uint64_t *buffers; /* (buffer_count) */
    bool swizzled;           /* KV buffers store their chunks in the order of mgl_kv_chunk */
} mgl_vm_places;

/* Writes every tape and every const buffer at its address, and any part of the KV buffers. All
 * memory is zero before the call. The machine calls it once, with the device's context current. All
 * writes must be complete when it returns. */
typedef mgl_status mgl_vm_fill_fn(void *user, const mgl_program *program,
                                  const mgl_vm_places *places, mgl_error *err);

struct mgl_weights; /* vm/weights.h */

/* A compiled kernel. */
typedef struct mgl_vm_kernel {
    const char *arch;  /* "sm_90a" */
    const char *key;   /* mgl_cuda_kernel_key of its sources and program */
    const void *bytes; /* (length), followed by a 0 byte */
    size_t length;
} mgl_vm_kernel;

typedef struct mgl_vm_options {
    mgl_vm_kind kind;
    int device;          /* ordinal of the GPU */
    int deadline_ms;     /* watchdog, in ms; 0: 2,000 */
    bool plain;          /* CPU: run plain C kernels on the packed bytes instead of the vector
                            kernels */
    int threads;         /* CPU: compute threads; 0: one per processor that the process may use */
    bool verify;         /* CPU: verify the checksums of mapped weights, which are used in place */
    const char *arch;    /* CUDA: compile for this architecture instead of the live device's
                            ("compute_80": PTX, which runs the cp.async path); NULL: live */
    int trace_epochs;    /* CUDA: record the events of the last n epochs; 0: no trace */
    bool strict_formats; /* reject formats that cannot hold the checkpoint's values exactly */
#ifdef MGL_TEST_BUILD
    bool unchecked; /* skip the validator; exists only in test builds */
#endif
    uint32_t delay_seed; /* tests only, CUDA: random delays in the kernel; launch n of the
                            machine uses seed delay_seed + n; 0: none */

    /* CUDA: writes the weights on the device, instead of packing the graph's on the host; or
     * NULL */
    mgl_vm_fill_fn *fill;
    void *fill_user;

    /* CUDA: an open machine on the same device, whose tapes, const buffers and KV cache this
     * machine uses instead of own ones. The program must agree with the owner's on them
     * (mgl_validator_check_pair). The owner has no owner itself, and outlives this machine. Only
     * one of them may run at a time, and neither can be exchanged. NULL: this machine has its own
     * weights and cache */
    mgl_vm *owner;

    const struct mgl_weights *weights; /* already packed weights, used instead of packing the
                                          graph's; or NULL. The CUDA machine needs them only while
                                          it opens. The CPU machine uses mapped weights in place, so
                                          they must outlive it */
    const mgl_vm_kernel *kernels;      /* (kernel_count) CUDA: a matching kernel is used instead of
                                          compiling */
    int kernel_count;

    const atomic_int *abort; /* set by any thread: opening ends with MGL_INTERRUPTED; may be NULL */
    mgl_stage_fn *on_stage;  /* progress of opening; may be NULL */
    void *stage_user;
} mgl_vm_options;

/* MGL_VM_FILL: reads the prompt into the cache, and produces nothing. */
typedef enum mgl_vm_mode { MGL_VM_GENERATE, MGL_VM_SCORE, MGL_VM_FILL } mgl_vm_mode;

/* One sequence of a launch. */
typedef struct mgl_vm_sequence {
    mgl_vm_mode mode;
    const int32_t *prompt; /* (prompt_count) ids below vocab; 1 to capacity of them, at least 2
                              to score */
    int32_t prompt_count;
    int32_t start;   /* positions already in the KV cache, from earlier launches of this machine
                        (or its `fill`); the prompt continues there */
    int32_t max_new; /* MGL_VM_GENERATE: at least 1; start + prompt_count + max_new <= capacity */
    float temperature;
    int32_t top_k;
    float top_p;
    float min_p;                                               /* 0: off */
    float repeat_penalty, presence_penalty, frequency_penalty; /* instructions/sample/penalties.h;
                                                                  all 0: off */
    const int32_t *before; /* (before_count) tokens before the prompt, at the positions before
                              `start`; a repeat penalty needs all of them */
    int32_t before_count;
    int32_t before_output; /* the last n of `before` are output, which presence and frequency
                              penalties count; the others are prompt */
    uint64_t seed;
    const int32_t *ends; /* (end_count) end tokens, at most MGL_MAX_ENDS */
    int32_t end_count;
    bool reuse; /* prefix caching: skip prompt tokens that the cache already holds from earlier
                   launches of this machine; needs start 0, not for scoring */
} mgl_vm_sequence;

/* Called in order with each new token. Returns false to end the launch. */
typedef bool mgl_vm_token_fn(void *user, int sequence, int32_t token);

/* Called with each new token before delivery. Returns true if a stop text ends the reply with this
 * token. Tokens that the machine produces for the sequence after that are discarded. */
typedef bool mgl_vm_stop_fn(void *user, int sequence, int32_t token);

/* Log-probability of a new token, and the most likely tokens at its position, from raw logits. */
typedef struct mgl_vm_likelihood {
    int32_t token;
    float logprob; /* natural logarithm */
    int count;     /* entries of `ids` and `logprobs` */
    int32_t ids[MGL_MOST_LIKELY];
    float logprobs[MGL_MOST_LIKELY];
} mgl_vm_likelihood;

/* Called in order with each delivered token, even after on_token returned false. */
typedef void mgl_vm_likelihood_fn(void *user, int sequence, const mgl_vm_likelihood *likelihood);

/* Contents of the cache: see vm/prefix.h. */
typedef struct mgl_prefix {
    int32_t *ids;                     /* (sequences, capacity) of the program */
    int32_t known[MGL_MAX_SEQUENCES]; /* valid ids of each sequence */
} mgl_prefix;

typedef struct mgl_vm_request {
    const mgl_vm_sequence *sequences; /* (count), at most limits.sequences */
    int count;
    mgl_vm_token_fn *on_token;           /* may be NULL */
    mgl_vm_stop_fn *is_stop;             /* may be NULL */
    mgl_vm_likelihood_fn *on_likelihood; /* may be NULL; called if likely > 0 */
    int likely; /* most likely tokens to report, at most MGL_MOST_LIKELY; 0: no report */
    void *user; /* passed to the three callbacks */
    const atomic_int *abort; /* set by any thread: the launch ends at the next sample task, on
                                the CPU at once; may be NULL */
    mgl_stage_fn *on_stage;  /* progress of MGL_STAGE_PROMPT, through mgl_vm_tell_prompt; may be
                                NULL */
    void *stage_user;
} mgl_vm_request;

/* Results of a run. The VM owns the arrays, which are valid until its next run. */
typedef struct mgl_vm_report {
    int launches;
    int epochs;
    const int32_t *output[MGL_MAX_SEQUENCES]; /* (produced[s]) new tokens */
    int32_t produced[MGL_MAX_SEQUENCES];
    int32_t state[MGL_MAX_SEQUENCES];      /* MGL_STATE_... of schedule/step.h */
    const float *score[MGL_MAX_SEQUENCES]; /* (start + prompt_count) log-probabilities, 0 up to
                                              [start]; only when scoring */
    int32_t reused[MGL_MAX_SEQUENCES];     /* prompt tokens skipped by prefix caching */
    int32_t written[MGL_MAX_SEQUENCES];    /* cache positions written by this launch and earlier
                                              ones */
    double prefill_s, decode_s;            /* until the first token; from there to the end */
    double device_s;                       /* launch time between device events; 0 on the CPU */
} mgl_vm_report;

/* Facts for logs, `info` and results. After an exchange, check_s and pack_s describe the exchange,
 * and compile_s is 0. */
typedef struct mgl_vm_facts {
    char device[128];
    double driver_s;  /* starting the driver (if this process had not) and creating its context */
    double check_s;   /* the validator */
    double pack_s;    /* the weights: packing, or reading and checking, and uploading */
    double kernel_s;  /* building the kernel, in parallel with the weights */
    double nvrtc_s;   /* part of kernel_s spent in NVRTC; 0 for an existing kernel */
    double compile_s; /* part of kernel_s spent waiting after the weights were ready */
    size_t tape_bytes, const_bytes, kv_bytes; /* all queues */
    int registers, spill_bytes, shared_bytes; /* of the kernel; 0 on the CPU */
    const char *instructions;                 /* CPU: name of mgl_products; static */
    int threads;                              /* CPU: compute threads */
    size_t memory_bytes, scratch_bytes;       /* CPU: process memory for weights; process memory for
                                                 everything but weights and cache */
} mgl_vm_facts;

/* Runs the validator, as mgl_vm_open does first. MGL_REJECTED: *err holds its first diagnostic. */
mgl_status mgl_vm_check(const mgl_program *program, const mgl_graph *graph, mgl_error *err);
/* Like mgl_vm_check, and also rejects formats that cannot hold every value of the graph's
 * tensors. */
mgl_status mgl_vm_check_strict(const mgl_program *program, const mgl_graph *graph, mgl_error *err);

/* Opens a machine for the program, with the weights of `graph` or of the options. The program and
 * the graph must outlive the machine. MGL_REJECTED: *err holds the validator's first diagnostic.
 * Release with mgl_vm_close. */
mgl_status mgl_vm_open(const mgl_program *program, const mgl_graph *graph,
                       const mgl_vm_options *options, mgl_vm **out, mgl_error *err);
void mgl_vm_close(mgl_vm *vm); /* NULL is allowed */

/* Replaces the program of an open machine with another program of the same model; the kernel stays
 * loaded. Both programs have the same geometry, formats, limits and architecture, and the same
 * kernel (on a GPU, mgl_cuda_kernel_key). Queues, edges and activation buffers may differ. The new
 * program is validated first, as in mgl_vm_open.
 *
 * Segments and row groups that both programs contain are copied from the old tapes; the others come
 * from `graph`. If the machine was opened with a `fill`, that function writes all weights anew: its
 * fill_user must still be valid. Afterwards the machine equals one opened with the new program:
 * bytes of tapes, tables and buffers are the same, and the cache is empty (or filled). The caller
 * may then release the old program. If the CPU machine uses mapped weights in place, they are
 * copied: it needs that memory then, and no longer needs the map.
 *
 * MGL_REJECTED: the validator rejects the program. MGL_BAD_INPUT: the programs do not match, or the
 * device has no memory for the new tapes beside the old. After any error except MGL_DEVICE, the
 * machine keeps its old program and still runs it. After MGL_DEVICE the machine has no program: all
 * calls fail until it is closed. */
mgl_status mgl_vm_exchange(mgl_vm *vm, const mgl_program *program, const mgl_graph *graph,
                           mgl_error *err);

/* Runs the request in one launch, or in two if the machine has a reader. MGL_WATCHDOG: *err names
 * the queue, task, counter, wanted value and seen value; the VM stays usable. MGL_BAD_INPUT: the
 * model computed NaN or infinity. A sequence then ended with MGL_STATE_NOT_A_NUMBER and the tokens
 * before it, or has such a score; *out holds all results up to there. */
mgl_status mgl_vm_run(mgl_vm *vm, const mgl_vm_request *request, mgl_vm_report *out,
                      mgl_error *err);

/* Lets `reader`, a machine whose owner is `vm`, read prompts for it: mgl_vm_run then runs a request
 * of one sequence that has more than `least` tokens to read in two launches. In the first, the
 * reader reads all of them except the last one. NULL: no reader. Closing the reader also ends
 * this. */
void mgl_vm_set_reader(mgl_vm *vm, mgl_vm *reader, int32_t least);

/* Logits (vocab) of the last sampled row of the last run. */
mgl_status mgl_vm_get_logits(mgl_vm *vm, float *logits, mgl_error *err);
/* Scores tokens begin + 1 to count - 1 of a sequence, ids (count), and writes the logits of each:
 * logits (count - 1 - begin, vocab), where row i is the distribution of token begin + 1 + i. Tokens
 * before `begin` that the cache does not hold are read too. `abort`: as in mgl_vm_request; may be
 * NULL. MGL_BAD_INPUT: the model computed NaN or infinity. (vm/logits.c) */
mgl_status mgl_vm_score_logits(mgl_vm *vm, const int32_t *ids, int32_t count, int32_t begin,
                               const atomic_int *abort, float *logits, mgl_error *err);
void mgl_vm_get_facts(const mgl_vm *vm, mgl_vm_facts *out);

/* ---- correctness checks of programs (vm/poison.c) ------------------------------------------- */

/* Logits (vocab) of row `row` of the last epoch of the last run, from 0 to the last sampled row. If
 * the run ended normally, row r is the r-th sequence of that epoch. */
mgl_status mgl_vm_get_row_logits(mgl_vm *vm, int row, float *logits, mgl_error *err);

/* Fills with `word` all memory that a correct program writes before it reads: activations, outputs,
 * and the cache from position `context` on. The launch still initializes its own buffers
 * afterwards. Also writes the guards: MGL_GUARD_BYTES of a known value after every buffer and
 * tape. */
mgl_status mgl_vm_poison(mgl_vm *vm, uint32_t word, int context, mgl_error *err);
/* MGL_GATE: a guard was overwritten since mgl_vm_poison; *err names the place. */
mgl_status mgl_vm_check_guards(mgl_vm *vm, mgl_error *err);

/* CUDA: clears the cache and calls the `fill` of the options to write weights and cache anew. */
mgl_status mgl_vm_refill(mgl_vm *vm, mgl_error *err);

/* Bytes of a program's buffer, including its sets. */
size_t mgl_vm_buffer_bytes(const mgl_buffer *buffer);
/* Copies a buffer of the whole program (schedule/program.h), including its sets, as the last run
 * left it. The element order of a cache is specific to the machine. */
mgl_status mgl_vm_get_buffer(mgl_vm *vm, int buffer, void *to, mgl_error *err);
/* SHA-256 of the current contents of all tapes and const buffers, which tasks only read. */
mgl_status mgl_vm_hash_constants(mgl_vm *vm, unsigned char hash[MGL_SHA256_BYTES], mgl_error *err);

/* ---- for machine implementations ------------------------------------------------------------ */

/* Base of a machine: the functions that it implements. It is the first member of each machine. */
struct mgl_vm {
    const mgl_program *program;
    mgl_vm_kind kind; /* set by mgl_vm_open */
    void (*close)(mgl_vm *vm);
    mgl_status (*run)(mgl_vm *vm, const mgl_vm_request *request, mgl_vm_report *out,
                      mgl_error *err);
    mgl_status (*get_logits)(mgl_vm *vm, float *logits, mgl_error *err);
    void (*get_facts)(const mgl_vm *vm, mgl_vm_facts *out);
    mgl_status (*get_row_logits)(mgl_vm *vm, int row, float *logits, mgl_error *err);
    mgl_status (*poison)(mgl_vm *vm, uint32_t word, int context, mgl_error *err);
    mgl_status (*check_guards)(mgl_vm *vm, mgl_error *err);
    mgl_status (*refill)(mgl_vm *vm, mgl_error *err); /* may be NULL */
    mgl_status (*get_buffer)(mgl_vm *vm, int buffer, void *to, mgl_error *err);
    /* May be NULL. Copies `bytes` bytes from offset `first` of the tape of `queue`, or of `buffer`
     * if `queue` is -1. */
    mgl_status (*get_constant)(mgl_vm *vm, int queue, int buffer, size_t first, size_t bytes,
                               void *to, mgl_error *err);
    /* Called with an accepted program that matches the old one. Sets `program` on success. */
    mgl_status (*exchange)(mgl_vm *vm, const mgl_program *program, const mgl_graph *graph,
                           mgl_error *err);
    mgl_vm *owner;  /* of the options */
    int users;      /* open machines with this owner */
    mgl_vm *reader; /* one of them, or NULL: see mgl_vm_set_reader */
    int32_t least;
    mgl_prefix prefix; /* what the cache holds from earlier runs of this machine and its users;
                          unused if the machine has an owner */
    bool lost;         /* an exchange failed midway: `program` is NULL */
    /* set by mgl_vm_open: */
    double check_s; /* time of the validator */
#ifdef MGL_TEST_BUILD
    bool unchecked; /* of the options */
#endif
};

mgl_status mgl_vm_cpu_open(const mgl_program *program, const mgl_graph *graph,
                           const mgl_vm_options *options, mgl_vm **out, mgl_error *err);
mgl_status mgl_vm_cuda_open(const mgl_program *program, const mgl_graph *graph,
                            const mgl_vm_options *options, mgl_vm **out, mgl_error *err);

/* MGL_DEVICE: the machine has no program after a failed exchange. */
mgl_status mgl_vm_check_usable(const mgl_vm *vm, mgl_error *err);

/* Address of a buffer of an open CPU machine. NULL for a table that is gathered from the tapes. */
void *mgl_vm_cpu_buffer(mgl_vm *vm, int buffer);

enum {
    MGL_GUARD_BYTES = 256, /* after every buffer and tape in the machine's own memory */
    MGL_GUARD_BYTE = 0xC3  /* their value */
};

/* The parts of a buffer that mgl_vm_poison fills: `count` stretches of `width` bytes, `pitch` bytes
 * apart, starting at offset `first`. */
typedef struct mgl_vm_stretches {
    size_t first, width, pitch, count;
} mgl_vm_stretches;
mgl_vm_stretches mgl_vm_poisoned(const mgl_buffer *buffer, int context);
/* Index of the first byte of `guard` (bytes) that differs from `byte`, or -1. */
long mgl_vm_find_damage(const unsigned char *guard, size_t bytes, unsigned char byte);
/* MGL_GATE: byte `at` after the end of a buffer, or of the tape of `queue` if `buffer` is -1, was
 * written. */
mgl_status mgl_vm_fail_guard(const mgl_program *program, int buffer, int queue, long at,
                             mgl_error *err);

/* Buffer indices of the io operands, found from the operands of the sample task. */
typedef struct mgl_vm_io {
    int control, table, logits, best_value, best_id, sequence, prompt, output, score;
    int counts; /* -1: the program has no penalties */
} mgl_vm_io;
mgl_status mgl_vm_find_io(const mgl_program *program, mgl_vm_io *out, mgl_error *err);

/* Checks a request against the program and writes the initial control, table, sequence and prompt
 * buffers of a launch (shapes in schedule/step.h). */
mgl_status mgl_vm_prepare(const mgl_program *program, const mgl_vm_request *request,
                          int32_t *control, int32_t *table, int32_t *sequences, int32_t *prompt,
                          mgl_error *err);

/* Whether any penalty of a sequence is active. */
static inline bool mgl_vm_is_penalized(const mgl_vm_sequence *sequence)
{
    return (sequence->repeat_penalty != 0.0f && sequence->repeat_penalty != 1.0f) ||
           sequence->presence_penalty != 0.0f || sequence->frequency_penalty != 0.0f;
}

/* Initializes the counts of a launch (vocab, all 0 before) from the tokens before the prompt and
 * the prompt of a sequence. */
void mgl_vm_count_prompt(const mgl_vm_sequence *sequence, int32_t *counts);

/* Reports progress of prompt reading to the request's on_stage, if it exceeds *told, which starts
 * at 0. For a machine that can read the sequence buffer between epochs. */
void mgl_vm_tell_prompt(const mgl_vm_request *request, const int32_t *sequences, uint64_t *told);

/* Delivery of tokens from a machine to the caller's callbacks. Starts zeroed. */
typedef struct mgl_vm_delivery {
    int32_t given[MGL_MAX_SEQUENCES]; /* tokens of each sequence delivered */
    int32_t asked[MGL_ASKED_WORDS];   /* requests to sample, in the form of schedule/step.h */
    int likely;                       /* most likely tokens that sample reports */
    double first_s;                   /* clock at the first token, in s; 0: none yet */
} mgl_vm_delivery;

/* Starts the delivery of a launch. */
mgl_vm_delivery mgl_vm_begin_delivery(const mgl_program *program, const mgl_vm_request *request);
/* Delivers the next token of a sequence that no stop text has ended. `likely`: what sample reported
 * about the token, if requested. */
void mgl_vm_give(mgl_vm_delivery *delivery, const mgl_vm_request *request, int sequence,
                 int32_t token, const volatile int32_t *likely);
/* Words that sample reports for each token; 0: no report was requested. */
size_t mgl_vm_likely_words(const mgl_vm_request *request);
/* Whether a stop text has ended the sequence. */
bool mgl_vm_is_stopped(const mgl_vm_delivery *delivery, int sequence);
/* Removes from the report what a sequence produced after its stop text. The result does not depend
 * on how soon the machine learned of the stop. */
void mgl_vm_cut_stopped(const mgl_vm_delivery *delivery, const mgl_vm_request *request,
                        mgl_vm_report *report);

/* ---- packing, shared by the machines (vm/pack.c) -------------------------------------------- */

/* Writes rows [lo, hi) of a segment in tape layout to `to`. Both bounds are row group boundaries or
 * the segment's ends. */
mgl_status mgl_pack_rows(const mgl_program *program, const mgl_graph *graph,
                         const mgl_segment *segment, int64_t lo, int64_t hi, void *to,
                         mgl_error *err);
/* Writes a const buffer: the product of its extents, in elements of its dtype. */
mgl_status mgl_pack_const(const mgl_program *program, const mgl_graph *graph, int buffer, void *to,
                          mgl_error *err);
/* Rows that a const buffer is packed by; and the bytes of rows [lo, hi) of it. */
int64_t mgl_pack_const_rows(const mgl_program *program, int buffer);
mgl_status mgl_pack_const_part(const mgl_program *program, const mgl_graph *graph, int buffer,
                               int64_t lo, int64_t hi, void *to, mgl_error *err);
/* Elements and bytes of a buffer. */
int64_t mgl_buffer_elements(const mgl_buffer *buffer);
size_t mgl_buffer_bytes(const mgl_buffer *buffer);

#endif
