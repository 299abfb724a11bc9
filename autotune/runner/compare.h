/*
 * Correctness of a candidate's results: compares its logits and tokens with the f32 reference. Pure
 * functions; the numbers come from worker processes. Called by runner_check.c and the micro-kernel
 * correctness checks.
 */
#ifndef MGL_AUTOTUNE_RUNNER_COMPARE_H
#define MGL_AUTOTUNE_RUNNER_COMPARE_H

#include "autotune/store/record.h"

/* Steps of a launch whose logits are compared. */
enum { MGL_COMPARED_STEPS = 4 };

/* Position of logits in a launch. */
typedef struct mgl_compare_place {
    mgl_workload workload;
    int sequence, step;
} mgl_compare_place;

/* Compares logits (vocab) with the reference. The verdict is MGL_OUTCOME_OK, UNWRITTEN, NONFINITE
 * or MISMATCH, with a diagnostic of place, distance and pattern. *error is the relative L2 error,
 * or -1 if there is none. */
void mgl_compare_logits(const mgl_compare_place *at, const float *logits, const float *wanted,
                        int vocab, double *error, mgl_trial_verdict *verdict);

/* Describes the pattern of wrong values (count) in words, such as "all zero" or "every 8-th". */
void mgl_compare_pattern(const float *values, const float *wanted, int count, char *to,
                         size_t size);

/* Reference values for the tokens of a launch, each (batch, tokens). */
typedef struct mgl_compare_reference {
    const float *largest; /* largest logit of each step */
    const float *chosen;  /* logit of the token that the candidate generated */
    const float *norms;   /* L2 norm of all logits of the step */
} mgl_compare_reference;

/* Returns the index of the first generated token (batch, tokens), by step, that the reference does
 * not allow, and sets the verdict to MGL_OUTCOME_SEMANTIC. -1: all are allowed. */
int mgl_compare_tokens(mgl_workload workload, int tokens, const int32_t *made,
                       const mgl_compare_reference *reference, int vocab,
                       mgl_trial_verdict *verdict);

/* Whether all tokens are in the vocabulary; else the verdict is MGL_OUTCOME_SEMANTIC. The reference
 * can be computed only then. */
bool mgl_compare_known(mgl_workload workload, int tokens, const int32_t *made, int vocab,
                       mgl_trial_verdict *verdict);

/* The largest allowed distance between the largest logit and the logit of a correct token. */
double mgl_compare_room(double norm, int vocab);

/* Compares two launches bitwise. Returns the index of the first different word of `count`; -1:
 * equal. */
int mgl_compare_words(const void *a, const void *b, size_t count);

#endif
