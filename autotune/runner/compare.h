/*
 * Whether what a candidate computed is right: its logits and tokens against the f32 reference's.
 * Pure functions; the numbers that they judge come from a process of their own.
 */
#ifndef MGL_AUTOTUNE_RUNNER_COMPARE_H
#define MGL_AUTOTUNE_RUNNER_COMPARE_H

#include "autotune/store/record.h"

/* How many steps of a launch have their logits compared. */
enum { MGL_COMPARED_STEPS = 4 };

/* Where logits are from. */
typedef struct mgl_compare_place {
    mgl_workload workload;
    int sequence, step;
} mgl_compare_place;

/* Logits (vocab) against the reference's. MGL_OUTCOME_OK; else UNWRITTEN, NONFINITE or MISMATCH,
 * with a diagnostic that says where, how far, and in which pattern. *error is the relative L2
 * error, or -1 where there is none. */
mgl_outcome mgl_compare_logits(const mgl_compare_place *at, const float *logits,
                               const float *wanted, int vocab, double *error,
                               char diagnostic[MGL_MAX_DIAGNOSTIC + 1]);

/* In which pattern values (count) that are wrong differ from the reference's. */
void mgl_compare_pattern(const float *values, const float *wanted, int count, char *to,
                         size_t size);

/* What the reference says of the tokens of a launch, each (batch, tokens). */
typedef struct mgl_compare_reference {
    const float *largest; /* logit of each step */
    const float *chosen;  /* logit of the token that was made */
    const float *norms;   /* of all logits of the step */
} mgl_compare_reference;

/* The first of the tokens made (batch, tokens), by step, that the reference does not allow. -1: all
 * are allowed. */
int mgl_compare_tokens(mgl_workload workload, int tokens, const int32_t *made,
                       const mgl_compare_reference *reference, int vocab,
                       char diagnostic[MGL_MAX_DIAGNOSTIC + 1]);

/* Whether all tokens are in the vocabulary: only then the reference can be asked. */
bool mgl_compare_known(mgl_workload workload, int tokens, const int32_t *made, int vocab,
                       char diagnostic[MGL_MAX_DIAGNOSTIC + 1]);

/* How far below the largest logit that of a right token may be. */
double mgl_compare_room(double norm, int vocab);

/* The first place where two launches differ, of `count` words; -1: nowhere. Bit by bit. */
int mgl_compare_words(const void *a, const void *b, size_t count);

#endif
