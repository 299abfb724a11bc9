/*
 * Records of a campaign: plain data shared by proposers, the judge, the store, the reports and the
 * commands. A record owns its strings; NULL means no value.
 */
#ifndef MGL_AUTOTUNE_STORE_RECORD_H
#define MGL_AUTOTUNE_STORE_RECORD_H

#include "autotune/store/verdict.h"
#include "schedule/moves/moves.h"

enum {
    MGL_MAX_WORKLOADS = 16,
    MGL_WORKLOAD_TOKENS = 32, /* tokens of a sequence in a launch */
    MGL_MAX_HYPOTHESIS = 500  /* bytes */
};

/* A measured decoding workload. The objective is the geometric mean over the workloads of
 * microseconds a token, for all sequences together. */
typedef struct mgl_workload {
    int batch;   /* sequences */
    int context; /* positions in the KV cache of each sequence */
} mgl_workload;

typedef struct mgl_workloads {
    mgl_workload list[MGL_MAX_WORKLOADS]; /* (count), sorted by batch */
    int count;
} mgl_workloads;

/* "ctx=0,8192;batch=1,8": every context with every batch. Either key may be left out (defaults 0
 * and 1). */
mgl_status mgl_workloads_parse(const char *text, mgl_workloads *out, mgl_error *err);
void mgl_workloads_print(const mgl_workloads *workloads, mgl_text *out);

/* A proposal: a config and moves, or a whole schedule text. */
typedef struct mgl_proposal {
    char *proposer;   /* "evolve" */
    char *hypothesis; /* one line of data: never interpreted, never displayed unescaped */
    int64_t parent;   /* number of the parent trial; 0: the default */
    mgl_schedule_config config;
    mgl_moves moves;
    char *schedule; /* text of a whole program, instead of config and moves; or NULL */
    int64_t queued; /* id of the submission; 0: not from a submission */
} mgl_proposal;
void mgl_proposal_clear(mgl_proposal *proposal);

/* Purpose of a pair: a cheap screen, a second stage for candidates that passed the screen, the
 * decision on fresh pairs, an A/A control, a repeated decision for a suspicious gain, or a decision
 * on fewer pairs after a clear screen. */
typedef enum mgl_pair_stage {
    MGL_PAIRS_SCREEN,
    MGL_PAIRS_SURVIVORS,
    MGL_PAIRS_DECISION,
    MGL_PAIRS_CONTROL,
    MGL_PAIRS_REPEAT,
    MGL_PAIRS_CLEAR,
    MGL_PAIRS_STAGES
} mgl_pair_stage;

/* A pair: one launch of the incumbent and one of the candidate, one directly after the other. */
typedef struct mgl_pair {
    int workload;
    int stage; /* mgl_pair_stage */
    bool candidate_first;
    /* an event occurred (throttling, different clocks, another process): counted, not used */
    bool dropped;
    double incumbent_us, candidate_us; /* microseconds a token */
    unsigned sm_mhz[2], memory_mhz;    /* SM clocks of the two launches (incumbent, candidate); 0:
                                        * unknown */
    unsigned temperature;
    uint64_t reasons; /* NVML clock event reasons */
} mgl_pair;

/* The results of one workload. */
typedef struct mgl_workload_result {
    double predicted_us;               /* predicted by the cost model; 0: none */
    double incumbent_us, candidate_us; /* medians; 0: not measured */
    double gain, gain_lo, gain_hi;     /* log(incumbent / candidate): estimate and interval */
    double stream_us; /* time to stream its bytes at the session's fastest rate; 0: no floor */
    double error, error_default; /* relative L2 error of logits against f32; -1: not compared */
    int pairs, dropped;
} mgl_workload_result;

/* A trial as it is stored. */
typedef struct mgl_trial {
    int64_t id;       /* assigned by the store; 0: not stored */
    int64_t campaign; /* campaign id */
    int64_t number;   /* 1, 2, ... within the campaign */
    int64_t against;  /* number of the incumbent that it was measured against; not stored */
    mgl_proposal proposal;
    char digest[MGL_SHA256_HEX]; /* digest of the programs, without names; "": none */
    char nonce[MGL_SHA256_HEX];  /* source of weights, tokens and cache; "": none */
    /* A/A pairs, the incumbent against itself: NO_GAIN if they show no difference, SUSPICIOUS if
     * they are bad */
    bool control;
    bool same_kernel; /* same kernel as the incumbent: exchanged instead of compiled */
    mgl_trial_verdict verdict;
    int duplicate_of; /* number of the earlier trial; 0: no duplicate */
    /* Set if the trial was the incumbent and the final measurement found it wrong. Its outcome is
     * then the error that was found. The value is the id of the last trial stored before the
     * quarantine. 0: not quarantined. */
    int64_t quarantined;
    double predicted_us;           /* predicted objective; 0: none */
    double gain, gain_lo, gain_hi; /* log ratio of the objective; all 0: not measured */
    double p_value;                /* p value of the hypothesis "no gain"; -1: not measured */
    double level;                  /* the share of the campaign's error rate that was used */
    int workload_count;
    mgl_workload_result workloads[MGL_MAX_WORKLOADS];
    mgl_pair *pairs; /* (pair_count) owned */
    int pair_count;
    double seconds; /* duration of the whole trial */
    double compile_s, gpu_s;
    int64_t started_unix; /* Unix time in seconds */
    char commit[48], driver[32], device_uuid[48];
    char manifest[MGL_SHA256_HEX]; /* mgl_frozen_digest */
} mgl_trial;
void mgl_trial_clear(mgl_trial *trial);

/* A campaign as it is stored. */
typedef struct mgl_campaign_record {
    int64_t id;
    char *name;
    char *model;  /* name of the shape, or a hash of its geometry; never a path */
    char *shape;  /* JSON of the geometry, from which the synthetic graph is made */
    char *device; /* "NVIDIA H200"; "none" */
    char *target; /* "sm_90a:132" */
    char *dtype;
    char *workloads; /* output of mgl_workloads_print */
    char *space;     /* JSON */
    char *options;   /* JSON of the settings that have no field here: proposers and shares,
                      * allow_formats, ... */
    char *state;     /* "running", "paused", "ended", "stopped" */
    char *reason;    /* why the campaign is paused or ended, as one sentence */
    int64_t capacity;
    uint64_t seed;
    int64_t created_unix, updated_unix;
    char manifest[MGL_SHA256_HEX]; /* manifest at its start */
    double seconds;                /* seconds spent so far, over all runs */
    int64_t trials;                /* trials so far */
    int64_t incumbent;             /* number of the incumbent trial; 0: the default */
} mgl_campaign_record;
void mgl_campaign_record_clear(mgl_campaign_record *record);

#endif
