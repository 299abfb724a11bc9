/*
 * The gates before any device: what a proposal becomes. Parsed, lowered, its moves applied, named
 * by its digest, proved by the validator with meaning, and priced by the cost model, which only
 * screens. Pure: the same subject and proposal give the same candidate.
 */
#ifndef MGL_AUTOTUNE_SEARCH_GATE_H
#define MGL_AUTOTUNE_SEARCH_GATE_H

#include "autotune/search/space.h"
#include "autotune/store/record.h"
#include "importer/config.h"
#include "schedule/cost/cost.h"

/* Predicted slower than what a proposal stands on by more: neither proposed nor measured. */
#define MGL_SCREEN_MARGIN 0.10

/* What is tuned. */
typedef struct mgl_subject {
    mgl_config config;      /* of the model */
    mgl_planner *planner;   /* makes and checks the programs: mgl_subject_open */
    const mgl_graph *graph; /* the planner's: the meaning, for the lab */
    mgl_target target;
    mgl_dtype dtype;
    int capacity;
    mgl_workloads workloads;
    mgl_schedule_config start; /* the campaign's default: what is not in the space stays as here */
    mgl_search_space space;
    bool allow_narrow;
    bool has_costs; /* of the device: else nothing is predicted */
    mgl_costs costs;
} mgl_subject;

/* Makes planner and graph of config, target, dtype and capacity. Copies of a subject share them.
 * Release with mgl_subject_close. */
mgl_status mgl_subject_open(mgl_subject *subject, mgl_error *err);
void mgl_subject_close(mgl_subject *subject);

/* The programs of a candidate: one for each number of sequences among the workloads. */
typedef struct mgl_candidate {
    mgl_outcome outcome; /* MGL_OUTCOME_UNMEASURED: through all gates */
    int code;            /* of MGL_OUTCOME_REJECTED: 203 for MG203 */
    char diagnostic[MGL_MAX_DIAGNOSTIC + 1];
    mgl_plan *plans[MGL_MAX_WORKLOADS];       /* (program_count) owned */
    mgl_program *programs[MGL_MAX_WORKLOADS]; /* (program_count) the plans', for the lab */
    int program_count;
    int program_of[MGL_MAX_WORKLOADS]; /* (workloads) index of its program */
    char digest[MGL_SHA256_HEX];
    double predicted_us[MGL_MAX_WORKLOADS]; /* (workloads); 0: none */
    double predicted;                       /* the objective; 0: none */
    double check_s;                         /* the validator */
    /* (source_count) texts in the place of sources of the kernel; of a micro-kernel's trial. Not
     * owned, 0-terminated. */
    const struct mgl_cuda_source *sources;
    int source_count;
    bool everywhere; /* all programs take the texts; false: those of mgl_cuda_takes_sources */
} mgl_candidate;

/* Whether a text begins as a proposal does: as a JSON object, or as a schedule. */
bool mgl_proposal_begins(const char *text, size_t length);
/* The first gates: parses or lowers, applies the moves, and names the programs by their digest, by
 * which a program that was tried before is known. Fails only where memory ran out: everything else
 * is an outcome. Release with mgl_candidate_clear. */
mgl_status mgl_gate_make(const mgl_subject *subject, const mgl_proposal *proposal,
                         mgl_candidate *out, mgl_error *err);
/* The parts of the gates that a search uses to look ahead: programs without a name and without a
 * proof, and the cost model's word on them (predicted stays 0 where the device has no costs). */
mgl_status mgl_gate_lower(const mgl_subject *subject, const mgl_proposal *proposal,
                          mgl_candidate *out, mgl_error *err);
void mgl_gate_predict(const mgl_subject *subject, mgl_candidate *candidate);
/* The others, of a candidate that has no worse outcome than MGL_OUTCOME_UNMEASURED: the validator
 * with meaning, what the device's machine can run, and the cost model. MGL_INTERRUPTED: `abort` was
 * set. */
mgl_status mgl_gate_prove(const mgl_subject *subject, const atomic_int *abort,
                          mgl_candidate *candidate, mgl_error *err);
/* Both. */
mgl_status mgl_gate_pass(const mgl_subject *subject, const mgl_proposal *proposal,
                         const atomic_int *abort, mgl_candidate *out, mgl_error *err);
/* The candidate has one plan more, which it owns, and whose program the lab runs. NULL: none. */
void mgl_candidate_take(mgl_candidate *candidate, mgl_plan *plan);
void mgl_candidate_clear(mgl_candidate *candidate);

/* A proposal as JSON, as agents hand it in; every key but the schema may be left out:
 *
 *     {"schema": "megalith.proposal/1", "hypothesis": "fewer edges", "parent": 12,
 *      "config": {"page_bytes": 8192}, "moves": ["rows layer=all step=o from=12 to=13 count=1"]}
 *
 * or "schedule", the text of a whole program, in place of config and moves. What `config` leaves
 * out is as in `start`. A text that does not begin with `{` is a schedule. Strict: unknown and
 * double keys, numbers that are none and texts over their limits are MGL_BAD_INPUT. Release with
 * mgl_proposal_clear. */
mgl_status mgl_proposal_parse(const char *text, size_t length, const char *file,
                              const mgl_schedule_config *start, mgl_proposal *out, mgl_error *err);
void mgl_proposal_print(const mgl_proposal *proposal, mgl_text *out);

/* The objective: the geometric mean of us (count). 0 when one of them is 0. */
double mgl_objective(const double *us, int count);

#endif
