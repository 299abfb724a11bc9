/*
 * The arbiter: what becomes of a candidate, and whether the search goes on. It decides by the
 * verdict and the interval of the measurement alone; nobody's text has a say.
 *
 *   accept     faster beyond doubt: gain >= 1 % and the interval's lower end above 0, of a verdict
 *              that is OK: the candidate is what the search stands on, and may be promoted
 *   continue   it is not; the search goes on from the candidate where it is correct and at most
 *              three steps from the last that was accepted, else from that one
 *   finish     there is no use: five rounds without an acceptance, 90 % of the floor, the rounds or
 *              the budget used up
 *
 * Numbers that are none accept nothing and finish nothing.
 */
#ifndef MGL_AUTOTUNE_KERNELS_METHODS_ARBITER_H
#define MGL_AUTOTUNE_KERNELS_METHODS_ARBITER_H

#include "autotune/kernels/methods/judge.h"

enum { MGL_ARBITER_ROUNDS = 8, MGL_ARBITER_PLATEAU = 5, MGL_ARBITER_DEPTH = 3 };

typedef enum mgl_decision {
    MGL_DECISION_ACCEPT,
    MGL_DECISION_CONTINUE,
    MGL_DECISION_FINISH
} mgl_decision;
const char *mgl_decision_name(mgl_decision decision);

/* Why it finished. */
#define MGL_FINISHES(X)                                                                            \
    X(NOTHING, "it goes on")                                                                       \
    X(PLATEAU, "five rounds without an acceptance")                                                \
    X(FLOOR, "90 % of the floor are reached")                                                      \
    X(ROUNDS, "the rounds are used up")                                                            \
    X(BUDGET, "the budget is used up")
typedef enum mgl_finish {
#define MGL_X(id, why) MGL_FINISH_##id,
    MGL_FINISHES(MGL_X)
#undef MGL_X
} mgl_finish;
const char *mgl_finish_why(mgl_finish finish);

/* A search's memory; zero-initialise, and set what limits it. */
typedef struct mgl_arbiter {
    int rounds, plateau; /* at most; 0: MGL_ARBITER_ROUNDS, MGL_ARBITER_PLATEAU */
    int round;           /* that were decided */
    int since;           /* rounds since the last acceptance */
    int depth;           /* steps of what the search stands on from what was accepted last */
    int accepted;
} mgl_arbiter;

typedef struct mgl_ruling {
    mgl_decision decision;
    bool stand;        /* on the candidate; else on what was accepted last */
    bool kept;         /* the candidate was accepted, be it that the search finishes with it */
    mgl_finish finish; /* of MGL_DECISION_FINISH */
} mgl_ruling;

/* `spent`: the budget is used up. */
mgl_ruling mgl_arbiter_decide(mgl_arbiter *arbiter, const mgl_loop_verdict *verdict, bool spent);

#endif
