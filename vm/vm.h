/*
 * A virtual machine: loads a checked program with the bytes of a checkpoint and runs it, as often
 * as wanted. The CPU VM (vm/cpu) and the CUDA VM (vm/cuda) stand behind this one interface.
 *
 * mgl_vm_open validates the program first and refuses what the validator rejects: there is no other
 * way to a machine.
 */
#ifndef MGL_VM_VM_H
#define MGL_VM_VM_H

#include "schedule/program.h"
#include "schedule/step.h"

#include <stdatomic.h>

typedef enum mgl_vm_kind { MGL_VM_CPU, MGL_VM_CUDA } mgl_vm_kind;

typedef struct mgl_vm mgl_vm;

/* Where the memory of a machine lies on its device. */
typedef struct mgl_vm_places {
    const uint64_t *tapes;   /* (queue_count) addresses */
    const uint64_t *buffers; /* (buffer_count) */
    bool swizzled;           /* KV buffers have their chunks as mgl_kv_chunk has them */
} mgl_vm_places;

/* Writes every tape and every const buffer where they lie, and what it likes of the KV buffers; all
 * memory is zero before. Called once, with the device's context current; everything must have
 * landed when it returns. */
typedef mgl_status mgl_vm_fill_fn(void *user, const mgl_program *program,
                                  const mgl_vm_places *places, mgl_error *err);

struct mgl_weights; /* vm/weights.h */

/* A kernel that was compiled before. */
typedef struct mgl_vm_kernel {
    const char *arch;  /* "sm_90a" */
    const char *key;   /* mgl_cuda_kernel_key of what it was compiled from */
    const void *bytes; /* (length), a 0 behind them */
    size_t length;
} mgl_vm_kernel;

typedef struct mgl_vm_options {
    mgl_vm_kind kind;
    int device;          /* ordinal of the GPU */
    int deadline_ms;     /* watchdog; 0: 2,000 */
    bool plain;          /* CPU: plain C kernels over the packed bytes rather than the fast path */
    int threads;         /* CPU: that compute; 0: one a processor that the process may use */
    bool verify;         /* CPU: look at the checksums of mapped weights, which it uses in place */
    const char *arch;    /* CUDA: compile for this architecture instead of the live device's
                            ("compute_80": PTX, which runs the cp.async path); NULL: live */
    int trace_epochs;    /* CUDA: keep the events of so many epochs, the last ones; 0: no trace */
    bool strict_formats; /* refuse formats that can not hold the checkpoint's numbers */
#ifdef MGL_TEST_BUILD
    bool unchecked; /* skip the validator; exists in the builds of tests alone */
#endif
    uint32_t delay_seed; /* tests only, CUDA: random delays in the kernel, of seed delay_seed + n in
                            launch n of the machine; 0: none */

    /* CUDA: makes the weights on the device, in place of packing the graph's on the host; or NULL
     */
    mgl_vm_fill_fn *fill;
    void *fill_user;

    const struct mgl_weights
        *weights;                 /* packed before, in place of packing the graph's; or NULL.
                                     The CUDA machine needs them while it is opened; the CPU's
                                     uses those that are mapped in place: they must outlive it */
    const mgl_vm_kernel *kernels; /* (kernel_count) CUDA: in place of compiling, where one of
                                     them fits */
    int kernel_count;

    const atomic_int *abort; /* set by anybody: opening ends with MGL_INTERRUPTED; may be NULL */
    mgl_stage_fn *on_stage;  /* of opening; may be NULL */
    void *stage_user;
} mgl_vm_options;

typedef enum mgl_vm_mode { MGL_VM_GENERATE, MGL_VM_SCORE } mgl_vm_mode;

/* One sequence of a launch. */
typedef struct mgl_vm_sequence {
    mgl_vm_mode mode;
    const int32_t *prompt; /* (prompt_count) ids below vocab; 1 to capacity of them, 2 to score */
    int32_t prompt_count;
    int32_t start;   /* positions already in the KV cache, from earlier launches of this machine (or
                        its `fill`): the prompt goes on from there; 0 to score */
    int32_t max_new; /* at least 1; start + prompt_count + max_new <= capacity */
    float temperature;
    int32_t top_k;
    float top_p;
    float min_p;                                               /* 0: off */
    float repeat_penalty, presence_penalty, frequency_penalty; /* instructions/sample/penalties.h;
                                                                  all 0: off */
    const int32_t *before; /* (before_count) tokens in front of the prompt, at the positions before
                              `start`: a repeat penalty needs all of them */
    int32_t before_count;
    int32_t before_output; /* the last so many of `before` are output, which presence and frequency
                              penalties count; the others are prompt */
    uint64_t seed;
    const int32_t *ends; /* (end_count) end tokens, at most MGL_MAX_ENDS */
    int32_t end_count;
    bool reuse; /* what the cache holds of the prompt, from earlier launches of this machine, is not
                   read again; with start 0, and not to score */
} mgl_vm_sequence;

/* Called in order with each new token; false asks the launch to end. */
typedef bool mgl_vm_token_fn(void *user, int sequence, int32_t token);

/* Called with each new token before it is given out: whether a reply ends with it by a stop text.
 * What the machine makes of that sequence behind it is given to nobody. */
typedef bool mgl_vm_stop_fn(void *user, int sequence, int32_t token);

/* How likely a new token was, and the likeliest in its place; of raw logits. */
typedef struct mgl_vm_likelihood {
    int32_t token;
    float logprob; /* natural logarithm */
    int count;     /* of the next */
    int32_t ids[MGL_MOST_LIKELY];
    float logprobs[MGL_MOST_LIKELY];
} mgl_vm_likelihood;

/* Called in order with each new token that is given out, also when on_token wants no more. */
typedef void mgl_vm_likelihood_fn(void *user, int sequence, const mgl_vm_likelihood *likelihood);

/* What is known of the cache: see vm/prefix.h. */
typedef struct mgl_prefix {
    int32_t *ids;                     /* (sequences, capacity) of the program */
    int32_t known[MGL_MAX_SEQUENCES]; /* so many of each sequence's ids */
} mgl_prefix;

typedef struct mgl_vm_request {
    const mgl_vm_sequence *sequences; /* (count), at most limits.sequences */
    int count;
    mgl_vm_token_fn *on_token;           /* may be NULL */
    mgl_vm_stop_fn *is_stop;             /* may be NULL */
    mgl_vm_likelihood_fn *on_likelihood; /* may be NULL; with `likely`, */
    int likely; /* at most MGL_MOST_LIKELY: the likeliest tokens that it is told; 0: not called */
    void *user; /* for the three */
    const atomic_int *abort; /* set by anybody: end at the next sample, on the CPU at once; may be
                                NULL */
    mgl_stage_fn *on_stage;  /* of MGL_STAGE_PROMPT, through mgl_vm_tell_prompt; may be NULL */
    void *stage_user;
} mgl_vm_request;

/* What came out. Arrays belong to the VM, until its next run. */
typedef struct mgl_vm_report {
    int launches;
    int epochs;
    const int32_t *output[MGL_MAX_SEQUENCES]; /* (produced[s]) new tokens */
    int32_t produced[MGL_MAX_SEQUENCES];
    int32_t state[MGL_MAX_SEQUENCES]; /* MGL_STATE_... of schedule/step.h */
    const float
        *score[MGL_MAX_SEQUENCES];     /* (prompt_count) log-probabilities, [0] = 0; when scoring */
    int32_t reused[MGL_MAX_SEQUENCES]; /* tokens of the prompt that were not read */
    int32_t written[MGL_MAX_SEQUENCES]; /* positions of the cache that this launch, or those before
                                           it, have written */
    double prefill_s, decode_s;         /* to the first token; from there to the end */
    double device_s; /* of the launch, between events of the device; 0 on the CPU */
} mgl_vm_report;

/* Facts for logs, `info` and results. Behind an exchange check_s and pack_s are of it, and nothing
 * was waited for a kernel. */
typedef struct mgl_vm_facts {
    char device[128];
    double driver_s;  /* starting the driver (of this process, where it was not) and its context */
    double check_s;   /* the validator */
    double pack_s;    /* the weights: packed, or read and checked, and uploaded */
    double kernel_s;  /* making the kernel, which goes on beside the weights */
    double nvrtc_s;   /* of that, the compiler: 0 for a kernel that was there */
    double compile_s; /* of kernel_s, what was waited for when the weights were there */
    size_t tape_bytes, const_bytes, kv_bytes; /* all queues */
    int registers, spill_bytes, shared_bytes; /* of the kernel; 0 on the CPU */
    const char *instructions;                 /* CPU: "avx512", "avx2", "neon", "plain"; static */
    int threads;                              /* CPU: that compute */
    size_t memory_bytes, scratch_bytes; /* CPU: of the process for weights, and for all but them and
                                           the cache */
} mgl_vm_facts;

/* What mgl_vm_open does first: MGL_REJECTED with the first diagnostic of the validator. */
mgl_status mgl_vm_check(const mgl_program *program, const mgl_graph *graph, mgl_error *err);
/* The same, and no format that can not hold each number of the graph's. */
mgl_status mgl_vm_check_strict(const mgl_program *program, const mgl_graph *graph, mgl_error *err);

/* Opens a machine for the program with the weights of `graph` or of the options. Both must outlive
 * it. Rejected: MGL_REJECTED with the first diagnostic. Release with mgl_vm_close. */
mgl_status mgl_vm_open(const mgl_program *program, const mgl_graph *graph,
                       const mgl_vm_options *options, mgl_vm **out, mgl_error *err);
void mgl_vm_close(mgl_vm *vm); /* NULL is fine */

/* Puts another program of the same model on an open machine, whose kernel stays: both programs have
 * the same geometry, formats, limits and architecture, and the same kernel (on a GPU,
 * mgl_cuda_kernel_key); queues, edges and the buffers of activations may differ. It is validated
 * first, like one that is opened. Segments, and row groups of them, that both have are copied from
 * where they lie; the others come from `graph`. All are made anew by the `fill` of the options that
 * the machine was opened with, where there is one: its fill_user must still be there. Behind it the
 * machine is as one that was opened with the program: bytes of tapes, tables and buffers are the
 * same, and the cache is empty (or filled). The program replaces the old one, which the caller may
 * release then. For the CPU machine that uses mapped weights in place, they are copied: it needs
 * the memory then, and the map no more.
 *
 * MGL_REJECTED, MGL_BAD_INPUT where they do not go together, or there is no memory on the device
 * for the new tapes beside the old, and any other error but one: the machine keeps its old program
 * and runs it. MGL_DEVICE: it has none any more, and says so until it is closed. */
mgl_status mgl_vm_exchange(mgl_vm *vm, const mgl_program *program, const mgl_graph *graph,
                           mgl_error *err);

/* Runs the request in one launch. MGL_WATCHDOG: *err says queue, task, counter, wanted, seen; the
 * VM stays usable. MGL_BAD_INPUT where the model computes what is no number: a sequence then ended
 * with MGL_STATE_NOT_A_NUMBER and the tokens before it, or has such a score, and *out has all that
 * came out. */
mgl_status mgl_vm_run(mgl_vm *vm, const mgl_vm_request *request, mgl_vm_report *out,
                      mgl_error *err);

/* Logits (vocab) of the last sampled row of the last run. */
mgl_status mgl_vm_get_logits(mgl_vm *vm, float *logits, mgl_error *err);
void mgl_vm_get_facts(const mgl_vm *vm, mgl_vm_facts *out);

/* ---- for those who judge a program (vm/poison.c)
 * --------------------------------------------------- */

/* Logits (vocab) of row `row` of the last epoch of the last run, from 0 to the last row that was
 * sampled. Of a run that ended by itself: row r is the r-th sequence that took part in that epoch.
 */
mgl_status mgl_vm_get_row_logits(mgl_vm *vm, int row, float *logits, mgl_error *err);

/* Fills with `word` whatever a right program writes before it reads it: activations, outputs, and
 * the cache from position `context` on. What a launch sets by itself it sets after this. Writes the
 * guards too: MGL_GUARD_BYTES behind every buffer and tape that have a known value. */
mgl_status mgl_vm_poison(mgl_vm *vm, uint32_t word, int context, mgl_error *err);
/* MGL_GATE with the place where something was written over a guard since mgl_vm_poison. */
mgl_status mgl_vm_check_guards(mgl_vm *vm, mgl_error *err);

/* CUDA: clears the cache and has the `fill` of the options make weights and cache anew. */
mgl_status mgl_vm_refill(mgl_vm *vm, mgl_error *err);

/* Bytes of a buffer of a program, its sets included. */
size_t mgl_vm_buffer_bytes(const mgl_buffer *buffer);
/* Copies a buffer of the whole program (schedule/program.h), its sets included, as the last run
 * left it. The order of a cache's elements is the machine's own. */
mgl_status mgl_vm_get_buffer(mgl_vm *vm, int buffer, void *to, mgl_error *err);
/* Names all that tasks only read, tapes and const buffers, by what it holds now. */
mgl_status mgl_vm_hash_constants(mgl_vm *vm, unsigned char hash[MGL_SHA256_BYTES], mgl_error *err);

/* ---- for the machines
 * ----------------------------------------------------------------------------- */

/* What a machine implements; an open one starts with this. */
struct mgl_vm {
    const mgl_program *program;
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
    /* May be NULL. `bytes` of queue's tape, or of a buffer where `queue` is -1, from `first` on. */
    mgl_status (*get_constant)(mgl_vm *vm, int queue, int buffer, size_t first, size_t bytes,
                               void *to, mgl_error *err);
    /* Of a program that was accepted and goes with the old one; sets `program` where it succeeds.
     */
    mgl_status (*exchange)(mgl_vm *vm, const mgl_program *program, const mgl_graph *graph,
                           mgl_error *err);
    mgl_prefix prefix; /* what the cache holds of the runs so far */
    bool lost;         /* an exchange failed half way: `program` is NULL */
    /* set by mgl_vm_open: */
    double check_s; /* of the validator */
#ifdef MGL_TEST_BUILD
    bool unchecked; /* of the options */
#endif
};

mgl_status mgl_vm_cpu_open(const mgl_program *program, const mgl_graph *graph,
                           const mgl_vm_options *options, mgl_vm **out, mgl_error *err);
mgl_status mgl_vm_cuda_open(const mgl_program *program, const mgl_graph *graph,
                            const mgl_vm_options *options, mgl_vm **out, mgl_error *err);

/* MGL_DEVICE where the machine has no program any more. */
mgl_status mgl_vm_check_usable(const mgl_vm *vm, mgl_error *err);

/* Where a buffer of an open CPU machine lies; NULL for a table that is gathered from the tapes. */
void *mgl_vm_cpu_buffer(mgl_vm *vm, int buffer);

enum {
    MGL_GUARD_BYTES = 256, /* behind every buffer and tape of a machine's own memory */
    MGL_GUARD_BYTE = 0xC3  /* what stands in them */
};

/* The parts of a buffer that mgl_vm_poison fills: `count` stretches of `width` bytes, one every
 * `pitch` bytes, the first from `first` on. */
typedef struct mgl_vm_stretches {
    size_t first, width, pitch, count;
} mgl_vm_stretches;
mgl_vm_stretches mgl_vm_poisoned(const mgl_buffer *buffer, int context);
/* The first byte of `guard` (bytes) that has another value than `byte`, or -1. */
long mgl_vm_find_damage(const unsigned char *guard, size_t bytes, unsigned char byte);
/* MGL_GATE: byte `at` behind a buffer, or behind a tape for buffer -1, was written. */
mgl_status mgl_vm_fail_guard(const mgl_program *program, int buffer, int queue, long at,
                             mgl_error *err);

/* Which buffers play which part: found from the operands of enter and sample. Indices of buffers.
 */
typedef struct mgl_vm_io {
    int control, table, logits, best_value, best_id, sequence, prompt, output, score;
    int counts; /* -1: the program has no penalties */
} mgl_vm_io;
mgl_status mgl_vm_find_io(const mgl_program *program, mgl_vm_io *out, mgl_error *err);

/* Checks a request against the program and writes the initial control, table, sequence and prompt
 * buffers (shapes in schedule/step.h) of a launch. */
mgl_status mgl_vm_prepare(const mgl_program *program, const mgl_vm_request *request,
                          int32_t *control, int32_t *table, int32_t *sequences, int32_t *prompt,
                          mgl_error *err);

/* Whether a sequence has penalties. */
static inline bool mgl_vm_is_penalized(const mgl_vm_sequence *sequence)
{
    return (sequence->repeat_penalty != 0.0f && sequence->repeat_penalty != 1.0f) ||
           sequence->presence_penalty != 0.0f || sequence->frequency_penalty != 0.0f;
}

/* Counts (vocab, all 0 before) at the start of a launch: the tokens in front of and in the prompt
 * of a sequence. */
void mgl_vm_count_prompt(const mgl_vm_sequence *sequence, int32_t *counts);

/* For a machine that can see the sequence buffer between epochs: tells the request's on_stage how
 * many tokens of the prompts have been read, where that is more than *told, which starts at 0. */
void mgl_vm_tell_prompt(const mgl_vm_request *request, const int32_t *sequences, uint64_t *told);

/* Tokens on their way from a machine to whoever asked for them. All zero at first. */
typedef struct mgl_vm_delivery {
    int32_t given[MGL_MAX_SEQUENCES]; /* tokens of each sequence that were given out */
    int32_t asked[MGL_ASKED_WORDS];   /* what sample is to be asked, as schedule/step.h has it */
    int likely;                       /* tokens that sample tells as the likeliest */
    double first_s;                   /* clock at the first token; 0: there was none yet */
} mgl_vm_delivery;

/* Of a launch. */
mgl_vm_delivery mgl_vm_begin_delivery(const mgl_program *program, const mgl_vm_request *request);
/* Gives out the next token of a sequence that no stop text has ended; `likely`: what sample told of
 * it, where it was asked. */
void mgl_vm_give(mgl_vm_delivery *delivery, const mgl_vm_request *request, int sequence,
                 int32_t token, const volatile int32_t *likely);
/* Words (per token of a sequence) that sample tells where it is asked; 0: it is not. */
size_t mgl_vm_likely_words(const mgl_vm_request *request);
/* Whether a stop text has ended the sequence. */
bool mgl_vm_is_stopped(const mgl_vm_delivery *delivery, int sequence);
/* Of sequences that a stop text has ended, takes from the report what came behind it: how soon the
 * machine was told makes no difference. */
void mgl_vm_cut_stopped(const mgl_vm_delivery *delivery, const mgl_vm_request *request,
                        mgl_vm_report *report);

/* ---- packing, shared by the machines (vm/pack.c)
 * --------------------------------------------------- */

/* Writes the tape of queue `queue` (tape_bytes) with the graph's weights converted to the program's
 * dtype: the inverse of the segment descriptors. Reads each row once. */
mgl_status mgl_pack_tape(const mgl_program *program, const mgl_graph *graph, int queue, void *to,
                         mgl_error *err);
/* Writes rows [lo, hi) of a segment, both at row groups or at its ends, to where they stand on the
 * tape, which is `to`. */
mgl_status mgl_pack_rows(const mgl_program *program, const mgl_graph *graph,
                         const mgl_segment *segment, int64_t lo, int64_t hi, void *to,
                         mgl_error *err);
/* Writes a const buffer (its extents' product elements of its dtype). */
mgl_status mgl_pack_const(const mgl_program *program, const mgl_graph *graph, int buffer, void *to,
                          mgl_error *err);
/* The rows that a const buffer is packed by, and the bytes of rows [lo, hi) of it. */
int64_t mgl_pack_const_rows(const mgl_program *program, int buffer);
mgl_status mgl_pack_const_part(const mgl_program *program, const mgl_graph *graph, int buffer,
                               int64_t lo, int64_t hi, void *to, mgl_error *err);
/* Unpacks a segment's tensor `which` (0, or 1 of g8x2) from the queue's tape to row-major f32
 * (rows, cols). */
void mgl_unpack_segment(const mgl_program *program, const mgl_segment *segment, const void *tape,
                        int which, float *to);
/* One row of it (0: row_lo) to f32 (cols). */
void mgl_unpack_row(const mgl_program *program, const mgl_segment *segment, const void *tape,
                    int which, int64_t row, float *to);
/* Elements and bytes of a buffer. */
int64_t mgl_buffer_elements(const mgl_buffer *buffer);
size_t mgl_buffer_bytes(const mgl_buffer *buffer);

#endif
