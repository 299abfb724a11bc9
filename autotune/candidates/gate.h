/*
 * The gates before the device: how a proposal becomes a candidate. A proposal is parsed or
 * lowered, its moves are applied, and the program gets a digest. The validator proves the program
 * including its meaning. The cost model predicts its time; a prediction may reject a candidate,
 * but never keeps one. The gates are pure functions: the same subject and proposal give the same
 * candidate. Called by the campaign loop, the proposers and tune.c.
 */
#ifndef MGL_AUTOTUNE_CANDIDATES_GATE_H
#define MGL_AUTOTUNE_CANDIDATES_GATE_H

#include "autotune/candidates/space.h"
#include "autotune/store/record.h"
#include "importer/config.h"
#include "schedule/cost/cost.h"

/* A program predicted to be slower than its parent by more than this share is neither proposed nor
 * measured. */
#define MGL_SCREEN_MARGIN 0.10

/* What a campaign tunes. */
typedef struct mgl_subject {
    mgl_config config;    /* config of the model */
    mgl_planner *planner; /* makes and checks the programs (mgl_subject_open) */
    const mgl_graph
        *graph; /* owned by the planner; specifies what the runner's reference computes */
    mgl_target target;
    mgl_dtype dtype;
    int capacity;
    mgl_workloads workloads;
    /* the campaign's default; knobs outside the space keep these values */
    mgl_schedule_config start;
    mgl_search_space space;
    bool allow_formats;
    bool has_costs; /* costs of the device are known; otherwise nothing is predicted */
    mgl_costs costs;
} mgl_subject;

/* Opens the planner and the graph for config, target, dtype and capacity. Copies of a subject share
 * them. Release with mgl_subject_close. */
mgl_status mgl_subject_open(mgl_subject *subject, mgl_error *err);
/* Reads and opens the subject of a campaign's record. Release with mgl_subject_close, after an
 * error too. */
mgl_status mgl_subject_read(const mgl_campaign_record *record, mgl_subject *out, mgl_error *err);
/* MGL_USAGE: the device of the record executes no weights in the record's dtype. Synthetic weights
 * on a GPU are made only in bf16 (eval/filler.c). */
mgl_status mgl_subject_check_formats(const mgl_campaign_record *record, mgl_error *err);
void mgl_subject_close(mgl_subject *subject);

/* The programs of a candidate: one for each number of sequences among the workloads. */
typedef struct mgl_candidate {
    mgl_trial_verdict verdict;          /* MGL_OUTCOME_UNMEASURED: passed all gates */
    mgl_plan *plans[MGL_MAX_WORKLOADS]; /* (program_count) owned */
    /* (program_count) programs of the plans, for the runner */
    mgl_program *programs[MGL_MAX_WORKLOADS];
    int program_count;
    int program_of[MGL_MAX_WORKLOADS]; /* (workloads) index of its program */
    char digest[MGL_SHA256_HEX];
    double predicted_us[MGL_MAX_WORKLOADS]; /* (workloads) us; 0: not predicted */
    double predicted;                       /* predicted objective in us; 0: not predicted */
    double check_s;                         /* seconds spent in the validator */
    /* (source_count) replacement texts of kernel sources, for a micro-kernel trial. Not owned,
     * 0-terminated. */
    const struct mgl_cuda_source *sources;
    int source_count;
    /* all programs use the texts; false: only programs for which mgl_cuda_takes_sources holds */
    bool everywhere;
} mgl_candidate;

/* Whether a text begins like a proposal: as a JSON object, or as a schedule text. */
bool mgl_proposal_begins(const char *text, size_t length);
/* The first gates: parses or lowers, applies the moves, and computes the digest, by which
 * duplicates are found. Fails only if memory runs out; every other problem is an outcome. Release
 * with mgl_candidate_clear. */
mgl_status mgl_gate_make(const mgl_subject *subject, const mgl_proposal *proposal,
                         mgl_candidate *out, mgl_error *err);
/* Parts of the gates for lookahead by a search. mgl_gate_lower makes the programs without digest
 * and proof. mgl_gate_predict runs the cost model (`predicted` stays 0 if the device has no
 * costs). */
mgl_status mgl_gate_lower(const mgl_subject *subject, const mgl_proposal *proposal,
                          mgl_candidate *out, mgl_error *err);
void mgl_gate_predict(const mgl_subject *subject, mgl_candidate *candidate);
/* The remaining gates, for a candidate with the outcome MGL_OUTCOME_UNMEASURED: the validator with
 * meaning, the limits of the machine, and the cost model. MGL_INTERRUPTED: `abort` was set. */
mgl_status mgl_gate_prove(const mgl_subject *subject, const atomic_int *abort,
                          mgl_candidate *candidate, mgl_error *err);
/* mgl_gate_make and mgl_gate_prove. */
mgl_status mgl_gate_pass(const mgl_subject *subject, const mgl_proposal *proposal,
                         const atomic_int *abort, mgl_candidate *out, mgl_error *err);
/* Appends a plan to the candidate, which takes ownership; the runner runs the plan's program. NULL:
 * does nothing. */
void mgl_candidate_take(mgl_candidate *candidate, mgl_plan *plan);
void mgl_candidate_clear(mgl_candidate *candidate);

/* Parses a proposal in JSON, the form in which agents submit it. Only "schema" is required:
 *
 *     {"schema": "megalith.proposal/1", "hypothesis": "fewer edges", "parent": 12,
 *      "config": {"page_bytes": 8192}, "moves": ["rows layer=all step=o from=12 to=13 count=1"]}
 *
 * Instead of config and moves, "schedule" may give the text of a whole program. Knobs that `config`
 * leaves out have the value of `start`. A text that does not begin with `{` is a schedule.
 * MGL_BAD_INPUT: unknown or double keys, invalid numbers, texts over their limits. Release with
 * mgl_proposal_clear. */
mgl_status mgl_proposal_parse(const char *text, size_t length, const char *file,
                              const mgl_schedule_config *start, mgl_proposal *out, mgl_error *err);
void mgl_proposal_print(const mgl_proposal *proposal, mgl_text *out);

/* The objective: the geometric mean of us (count); 0 if one of them is 0. */
double mgl_objective(const double *us, int count);

#endif
