/*
 * What a campaign keeps: plain data that proposers, judges, the store, the report and the command
 * line share. Strings are owned by the record that has them; NULL stands for none.
 */
#ifndef MGL_AUTOTUNE_STORE_RECORD_H
#define MGL_AUTOTUNE_STORE_RECORD_H

#include "autotune/search/verdict.h"
#include "schedule/moves/moves.h"

enum {
    MGL_MAX_WORKLOADS = 16,
    MGL_WORKLOAD_TOKENS = 32, /* of a sequence, in a launch */
    MGL_MAX_DIAGNOSTIC = 300, /* bytes that a proposer reads back */
    MGL_MAX_HYPOTHESIS = 500  /* bytes */
};

/* What is decoded. The objective is the geometric mean over the workloads of microseconds a token,
 * of all sequences together. */
typedef struct mgl_workload {
    int batch;   /* sequences */
    int context; /* positions in the cache of each */
} mgl_workload;

typedef struct mgl_workloads {
    mgl_workload list[MGL_MAX_WORKLOADS]; /* (count), by batch */
    int count;
} mgl_workloads;

/* "ctx=0,8192;batch=1,8": every context with every batch; either may be left out (0; 1). */
mgl_status mgl_workloads_parse(const char *text, mgl_workloads *out, mgl_error *err);
void mgl_workloads_print(const mgl_workloads *workloads, mgl_text *out);

/* What somebody proposes: a config and moves, or a whole schedule text. */
typedef struct mgl_proposal {
    char *proposer;   /* "evolve" */
    char *hypothesis; /* one line, data: never an instruction, never shown unescaped */
    int64_t parent;   /* number of the trial that it stands on; 0: the default */
    mgl_schedule_config config;
    mgl_moves moves;
    char *schedule; /* the text of a whole program, in place of config and moves; or NULL */
    int64_t queued; /* id of the submission that it came by; 0: none */
} mgl_proposal;
void mgl_proposal_clear(mgl_proposal *proposal);

/* What a pair was measured for: a cheap look, a second one at what survived it, the decision on
 * fresh pairs, an A/A control, the decision once more, where it was too good to be believed, or the
 * decision on fewer pairs, where the cheap look left no doubt. */
typedef enum mgl_pair_stage {
    MGL_PAIRS_SCREEN,
    MGL_PAIRS_SURVIVORS,
    MGL_PAIRS_DECISION,
    MGL_PAIRS_CONTROL,
    MGL_PAIRS_REPEAT,
    MGL_PAIRS_CLEAR,
    MGL_PAIRS_STAGES
} mgl_pair_stage;

/* One pair: incumbent and candidate, one launch each, one behind the other. */
typedef struct mgl_pair {
    int workload;
    int stage; /* mgl_pair_stage */
    bool candidate_first;
    bool dropped; /* an event: throttling, other clocks, another process; counted, not used */
    double incumbent_us, candidate_us; /* a token */
    unsigned sm_mhz[2], memory_mhz;    /* of incumbent and candidate; 0: unknown */
    unsigned temperature;
    uint64_t reasons; /* NVML's clock event reasons */
} mgl_pair;

/* What was found out about one workload. */
typedef struct mgl_workload_result {
    double predicted_us;               /* of the cost model; 0: none */
    double incumbent_us, candidate_us; /* medians; 0: not measured */
    double gain, gain_lo, gain_hi;     /* of log(incumbent / candidate): its centre, its interval */
    double stream_us;            /* its bytes at the fastest stream of the session; 0: no floor */
    double error, error_default; /* relative L2 of logits against f32; -1: not compared */
    int pairs, dropped;
} mgl_workload_result;

/* The diagnostic of an error, in one line: lines that are added to its message, as of a compiler's
 * log, stand behind each other as far as there is room, without those that only point at a place;
 * of a long sentence both ends. */
void mgl_diagnostic_of(const mgl_error *why, char out[MGL_MAX_DIAGNOSTIC + 1]);

/* One trial, as the store has it. */
typedef struct mgl_trial {
    int64_t id;       /* of the store; 0: not stored */
    int64_t campaign; /* id */
    int64_t number;   /* 1, 2, ... in the campaign */
    int64_t against;  /* number of the incumbent that it is measured against; not stored */
    mgl_proposal proposal;
    char digest[MGL_SHA256_HEX]; /* of the programs, without names; "" where there is none */
    char nonce[MGL_SHA256_HEX];  /* that weights, tokens and cache were made of; "" where none */
    bool control;                /* A/A pairs, the incumbent against itself: NO_GAIN where they find
                                    nothing, SUSPICIOUS where they are bad */
    bool same_kernel;            /* as the incumbent's: exchanged rather than compiled */
    mgl_outcome outcome;
    char diagnostic[MGL_MAX_DIAGNOSTIC + 1]; /* first diagnostic of the outcome */
    int duplicate_of;                        /* number of the trial; 0: none */
    /* It was the incumbent, and was found wrong when the campaign ended, which its outcome says
     * since: id of the last trial that was stored before that. 0: no such trial. */
    int64_t quarantined;
    double predicted_us;           /* the objective; 0: none */
    double gain, gain_lo, gain_hi; /* of the objective, log ratio; all 0: not measured */
    double p_value;                /* of "no gain"; -1: not measured */
    double level;                  /* the share of the campaign's error rate that it had */
    int workload_count;
    mgl_workload_result workloads[MGL_MAX_WORKLOADS];
    mgl_pair *pairs; /* (pair_count) owned */
    int pair_count;
    double seconds; /* of the whole trial */
    double compile_s, gpu_s;
    int64_t started_unix; /* seconds */
    char commit[48], driver[32], device_uuid[48];
    char manifest[MGL_SHA256_HEX]; /* mgl_frozen_digest */
} mgl_trial;
void mgl_trial_clear(mgl_trial *trial);

/* A campaign, as the store has it. */
typedef struct mgl_campaign_record {
    int64_t id;
    char *name;
    char *model;  /* name of the shape, or the hash of config.json's geometry: never a path */
    char *shape;  /* JSON of the geometry: what the synthetic graph is made of */
    char *device; /* "NVIDIA H200"; "none" */
    char *target; /* "sm_90a:132" */
    char *dtype;
    char *workloads; /* mgl_workloads_print */
    char *space;     /* JSON */
    char *options;   /* JSON of the rest that shapes it: proposers and shares, allow_narrow, ... */
    char *state;     /* "running", "paused", "ended", "stopped" */
    char *reason;    /* why it is paused or ended; one sentence */
    int64_t capacity;
    uint64_t seed;
    int64_t created_unix, updated_unix;
    char manifest[MGL_SHA256_HEX]; /* that it began with */
    double seconds;                /* spent so far, over all of its runs */
    int64_t trials;                /* so far */
    int64_t incumbent;             /* number of the trial; 0: the default */
} mgl_campaign_record;
void mgl_campaign_record_clear(mgl_campaign_record *record);

#endif
