/*
 * The gates before any device: what a proposal becomes. Parsed, lowered, its moves applied, named by
 * its digest, proved by the validator with meaning, and priced by the cost model, which only screens.
 * Pure: the same subject and proposal give the same candidate.
 */
#ifndef MGL_AUTOTUNE_GATE_H
#define MGL_AUTOTUNE_GATE_H

#include "autotune/record.h"
#include "autotune/space.h"
#include "importer/config.h"
#include "schedule/cost.h"

/* What is tuned. */
typedef struct mgl_subject {
    mgl_config config;      /* of the model */
    const mgl_graph *graph; /* of that geometry: the meaning */
    mgl_target target;
    mgl_dtype dtype;
    int capacity;
    mgl_workloads workloads;
    mgl_search_space space;
    bool allow_narrow;
    bool has_costs; /* of the device: else nothing is predicted */
    mgl_costs costs;
} mgl_subject;

/* The programs of a candidate: one for each number of sequences among the workloads. */
typedef struct mgl_candidate {
    mgl_outcome outcome; /* MGL_OUTCOME_UNMEASURED: through all gates */
    int code;            /* of MGL_OUTCOME_REJECTED: 203 for MG203 */
    char diagnostic[MGL_MAX_DIAGNOSTIC + 1];
    mgl_program *programs[MGL_MAX_WORKLOADS]; /* (program_count) owned */
    int program_count;
    int program_of[MGL_MAX_WORKLOADS]; /* (workloads) index of its program */
    char digest[MGL_SHA256_HEX];
    double predicted_us[MGL_MAX_WORKLOADS]; /* (workloads); 0: none */
    double predicted;                       /* the objective; 0: none */
    double check_s;                         /* the validator */
} mgl_candidate;

/* Fails only where memory ran out or `abort` was set: everything else is an outcome. */
mgl_status mgl_gate_pass(const mgl_subject *subject, const mgl_proposal *proposal,
                         const atomic_int *abort, mgl_candidate *out, mgl_error *err);
void mgl_candidate_clear(mgl_candidate *candidate);

/* A proposal as JSON ("megalith.proposal/1": config, moves as an array of strings, schedule,
 * hypothesis, parent), as agents hand it in. Strict: unknown and double keys, numbers that are none
 * and texts over their limits are MGL_BAD_INPUT. */
mgl_status mgl_proposal_parse(const char *text, size_t length, const char *file,
                              const mgl_search_space *space, mgl_proposal *out, mgl_error *err);
void mgl_proposal_print(const mgl_proposal *proposal, mgl_text *out);

/* The objective: the geometric mean of us (count). 0 when one of them is 0. */
double mgl_objective(const double *us, int count);

#endif
