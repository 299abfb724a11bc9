/*
 * The protocol between a runner and its worker processes over a socket: the runner sends requests,
 * and the worker replies to each in order. Both ends are the same program (the greeting compares
 * versions), so a message is a head, a struct of fixed fields, and further bytes. The worker trusts
 * the runner. The runner checks the form of every reply and trusts nothing else, because a
 * candidate runs in the worker and may have damaged it.
 */
#ifndef MGL_AUTOTUNE_RUNNER_PROTOCOL_H
#define MGL_AUTOTUNE_RUNNER_PROTOCOL_H

#include "base/sha256.h"
#include "eval/paired_bench.h"

/*  enum    name    request                                  reply after its head */
#define MGL_REQUESTS(X)                                                                            \
    X(HELLO, "hello")   /* mgl_wire_hello                  mgl_paired_bench_device, or nothing */  \
    X(FAULT, "fault")   /* i32 mgl_fault                   nothing */                              \
    X(SET, "set")       /* mgl_wire_set, texts, schedule   f64 seconds of the compiler */          \
    X(RUN, "run")       /* mgl_wire_load                   f64 seconds, i32 (batch, tokens) */     \
    X(LOGITS, "logits") /* i32 side, i32 batch             f32 (batch, vocab) */                   \
    X(REFER, "refer")   /* mgl_wire_refer, i32 made           see mgl_wire_refer */                \
    X(STREAM, "stream") /* mgl_wire_stream                 f64 seconds */                          \
    X(LOOK, "look")     /* nothing                         mgl_paired_bench_clocks */              \
    X(DEVICE, "device") /* nothing                         mgl_paired_bench_device */              \
    X(PROMOTE, "promote")       /* nothing                         nothing */                      \
    X(DROP, "drop")             /* i32 side                        nothing */                      \
    X(COMPILE, "compile")       /* mgl_wire_set, texts, schedule   nothing */                      \
    X(SANDBOX, "sandbox")       /* a path to read, or nothing      mgl_wire_sandbox */             \
    X(CHECKPOINT, "checkpoint") /* mgl_wire_checkpoint, schedule text   nothing */                 \
    X(DECODE, "decode")         /* mgl_wire_decode, i32 prompts  see mgl_wire_decode */            \
    X(BASELINE, "baseline")     /* mgl_wire_baseline             f64 seconds */                    \
    X(KERNEL, "kernel")         /* mgl_wire_kernel, text, schedule   see mgl_wire_kernel */        \
    X(MEMORY, "memory") /* i32 side                      hash, see mgl_paired_bench_get_memory */

typedef enum mgl_request_kind {
#define MGL_X(id, name) MGL_REQUEST_##id,
    MGL_REQUESTS(MGL_X)
#undef MGL_X
        MGL_REQUEST_COUNT
} mgl_request_kind;
const char *mgl_request_name(mgl_request_kind kind);

/* The role of a worker: an executor runs candidates; a referee computes references and never runs a
 * candidate; a compiler compiles kernels in advance. */
typedef enum mgl_worker_role { MGL_EXECUTOR, MGL_REFEREE, MGL_COMPILER } mgl_worker_role;

/* For tests only: faults that a worker injects into the candidate's launches. Columns: enum,
 * name. */
#define MGL_FAULTS(X)                                                                              \
    X(NONE, "")                                                                                    \
    X(HANG, "hang")                                                                                \
    X(CRASH, "crash")                                                                              \
    X(GARBAGE, "garbage") /* the reply is invalid */                                               \
    X(MEMORY, "memory")   /* allocates memory without limit */                                     \
    X(SLOW, "slow")       /* reports 20 ms more for a launch */                                    \
    X(WRONG_LOGITS, "wrong_logits")                                                                \
    X(WRONG_TOKEN, "wrong_token")                                                                  \
    X(NO_TOKEN, "no_token") /* a token outside the vocabulary */                                   \
    X(NAN, "nan")                                                                                  \
    X(SECOND_DIFFERS, "second_differs")                                                            \
    X(POISON, "poison")     /* a logit has the fill pattern of outputs */                          \
    X(CANARY, "canary")     /* a write outside every buffer is detected */                         \
    X(WATCHDOG, "watchdog") /* the device watchdog ends the launch */                              \
    X(ADDRESS, "address")   /* an illegal address on the device */

typedef enum mgl_fault {
#define MGL_X(id, name) MGL_FAULT_##id,
    MGL_FAULTS(MGL_X)
#undef MGL_X
        MGL_FAULT_COUNT
} mgl_fault;
bool mgl_fault_parse(const char *name, mgl_fault *out); /* false: no such fault */

enum {
    MGL_WIRE_STEPS = 8,              /* steps of a REFER, at most */
    MGL_WIRE_LARGEST = 512 << 20,    /* bytes of a message */
    MGL_WIRE_STREAM_LOOKS = 1 << 10, /* passes of a STREAM, at most */
    MGL_WIRE_POSITIONS = 1 << 10,    /* positions of a sequence of a DECODE, at most */
    MGL_WIRE_SOURCES = 32,           /* sources of a SET, at most */
};

/* ---- structs (fixed fields, zero padding) ---------------------------------------------------- */

typedef struct mgl_wire_head {
    char magic[8]; /* MGL_WIRE_MAGIC */
    uint32_t kind; /* mgl_request_kind; a reply repeats its request's kind */
    uint32_t reply;
    uint64_t length; /* bytes after the head */
} mgl_wire_head;
#define MGL_WIRE_MAGIC "mgltune"

/* The start of a reply, after the head. Further bytes follow only if `status` is 0. */
typedef struct mgl_wire_reply {
    int32_t status;  /* mgl_status */
    double device_s; /* seconds that the device worked for it, without the launch of a RUN */
    char where[256], message[1600];
} mgl_wire_reply;

typedef struct mgl_wire_hello {
    char build[128]; /* mgl_wire_build */
    int32_t role;
    int64_t parent; /* process id */
    char device[64];
    mgl_config config;
} mgl_wire_hello;
/* Writes the identity of this program. Both ends must be equal. */
void mgl_wire_build(char out[128]);

/* A program and replacement texts of some of its kernel sources. After this struct come the texts,
 * one after the other, and then the schedule text. */
typedef struct mgl_wire_set {
    int32_t side;    /* for SET: the side that gets the program */
    int32_t context; /* for SET: context of the next load */
    uint64_t seed;   /* for SET: seed of the next load */
    char arch[16];   /* for COMPILE: the architecture */
    int32_t source_count;
    char files[MGL_WIRE_SOURCES][96]; /* (source_count) */
    uint64_t lengths[MGL_WIRE_SOURCES];
} mgl_wire_set;

typedef struct mgl_wire_load {
    int32_t side, batch, context, tokens, poison;
    int32_t kind; /* mgl_synthetic_kind */
    uint64_t seed;
} mgl_wire_load;
_Static_assert(sizeof(mgl_wire_load) == 6 * sizeof(int32_t) + sizeof(uint64_t), "no padding");

/* The generated tokens follow: i32 (batch, tokens). The reply: f32 largest, chosen and norms (3,
 * batch, tokens), then f32 logits (step_count, batch, vocab). */
typedef struct mgl_wire_refer {
    mgl_wire_load load;
    int32_t step_count, steps[MGL_WIRE_STEPS];
} mgl_wire_refer;

typedef struct mgl_wire_stream {
    double bytes;
    int32_t count;
} mgl_wire_stream;

/* Loads a program with the weights of a checkpoint, replacing the current one. */
typedef struct mgl_wire_checkpoint {
    int32_t side; /* mgl_side; MGL_INCUMBENT stands for the default */
    char path[4096];
} mgl_wire_checkpoint;

/* A launch of that program. The prompts follow: i32 (count, length). The reply: i32 tokens (count,
 * tokens), or with `score` f32 log-likelihoods of the prompts (count, length). */
typedef struct mgl_wire_decode {
    int32_t score, count, length, tokens;
} mgl_wire_decode;

/* Returns the median of `count` launches of the baseline (eval/baseline.h), after warm-up launches.
 * Only batch, context, tokens and seed of the load are used. */
typedef struct mgl_wire_baseline {
    mgl_wire_load load;
    int32_t count;
} mgl_wire_baseline;

enum { MGL_WIRE_VALUES = 16, MGL_WIRE_NAME = 40 };

/* Compiles a program's kernel with another text of one source. That text follows (text_length),
 * then the schedule text. The reply: mgl_wire_kernel_report, then the compiler's log, then the
 * PTX. */
typedef struct mgl_wire_kernel {
    char arch[16], file[128];
    uint64_t text_length;
    int64_t values[MGL_WIRE_VALUES]; /* (value_count) -D<name>=<value> */
    char names[MGL_WIRE_VALUES][MGL_WIRE_NAME];
    int64_t value_count;
} mgl_wire_kernel;

typedef struct mgl_wire_kernel_report {
    int64_t compiled;
    double compile_s;
    uint64_t log_length, ptx_length;
} mgl_wire_kernel_report;

/* The restrictions of a worker after it entered the sandbox (sandbox.h). */
typedef struct mgl_wire_sandbox {
    int32_t seccomp, landlock;
    char missing[200]; /* "": nothing */
} mgl_wire_sandbox;

/* ---- the socket ------------------------------------------------------------------------------ */

typedef enum mgl_wire_end {
    MGL_WIRE_DONE,
    MGL_WIRE_CLOSED, /* the other end is closed */
    MGL_WIRE_STOPPED /* `go` returned false */
} mgl_wire_end;

/* One end of a socket. While waiting, `go` is called every 10 ms; false ends the wait. NULL: waits
 * without limit. */
typedef struct mgl_wire {
    int socket;
    bool (*go)(void *user);
    void *user;
} mgl_wire;

mgl_wire_end mgl_wire_send(const mgl_wire *wire, const void *bytes, size_t length);
mgl_wire_end mgl_wire_receive(const mgl_wire *wire, void *bytes, size_t length);

#endif
