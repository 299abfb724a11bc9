/*
 * Arbiter: the acceptance and early-stopping rule of the profile-guided search (greedy hill
 * climbing with bounded backtracking). Input: the verdict of a candidate. Output: a ruling that
 * decides what happens to the candidate and whether the search continues. Only the outcome and the
 * measured confidence interval count; no text of a model is read. The rounds (rounds.c) call it
 * once per round.
 *
 *   accept     The candidate is faster: the outcome is OK, the gain is at least 1 % and the lower
 *              end of the interval is above 0. The candidate becomes the new base of the search
 *              and may be promoted.
 *   continue   Otherwise. The next round starts from the candidate if the candidate is correct and
 *              at most 3 steps from the last accepted text. Else it starts from that text.
 *   finish     5 rounds without an acceptance, 90 % of the floor reached, or the rounds used up.
 *
 * A NaN neither accepts a candidate nor finishes the search.
 */
#ifndef MGL_AUTOTUNE_KERNELS_METHODS_ARBITER_H
#define MGL_AUTOTUNE_KERNELS_METHODS_ARBITER_H

#include "autotune/kernels/methods/evaluator.h"

enum { MGL_ARBITER_ROUNDS = 8, MGL_ARBITER_PLATEAU = 5, MGL_ARBITER_DEPTH = 3 };

typedef enum mgl_decision {
    MGL_DECISION_ACCEPT,
    MGL_DECISION_CONTINUE,
    MGL_DECISION_FINISH
} mgl_decision;
const char *mgl_decision_name(mgl_decision decision);

/* Why the search finished. */
#define MGL_FINISHES(X)                                                                            \
    X(NOTHING, "it goes on")                                                                       \
    X(PLATEAU, "five rounds without an acceptance")                                                \
    X(FLOOR, "90 % of the floor are reached")                                                      \
    X(ROUNDS, "the rounds are used up")
typedef enum mgl_finish {
#define MGL_X(id, why) MGL_FINISH_##id,
    MGL_FINISHES(MGL_X)
#undef MGL_X
} mgl_finish;
const char *mgl_finish_why(mgl_finish finish);

/* State of one search. Zero-initialize it, then set the limit. */
typedef struct mgl_arbiter {
    int rounds; /* upper limit; 0: MGL_ARBITER_ROUNDS */
    int round;  /* rounds decided so far */
    int since;  /* rounds since the last acceptance */
    int depth;  /* steps from the last accepted text to the base of the search */
    int accepted;
} mgl_arbiter;

typedef struct mgl_ruling {
    mgl_decision decision;
    bool stand;        /* the next round starts from the candidate; else from the last accepted
                        * text */
    bool kept;         /* the candidate was accepted; may also be true if the search finishes */
    mgl_finish finish; /* the reason, for MGL_DECISION_FINISH */
} mgl_ruling;

mgl_ruling mgl_arbiter_decide(mgl_arbiter *arbiter, const mgl_trial_verdict *verdict);

#endif
