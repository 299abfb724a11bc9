/*
 * The chain of incumbents, replayed from trials in order. Each trial was measured against the
 * incumbent at that time, so its gain is relative to that incumbent. A trial that was later
 * quarantined (record.h) was the incumbent until then. From that point the last correct kept trial
 * before it is the incumbent again. Used by propose.c and by the reports.
 */
#ifndef MGL_AUTOTUNE_SEARCH_CHAIN_H
#define MGL_AUTOTUNE_SEARCH_CHAIN_H

#include "autotune/store/record.h"

/* The owner of the chain defines `value`: microseconds, or a log ratio. mgl_chain_begin sets the
 * default as the incumbent. */
typedef struct mgl_chain {
    int64_t number; /* number of the incumbent; 0: the default */
    double value;   /* value of the incumbent */
    /* id of the last trial measured against this incumbent; 0: the incumbent is correct */
    int64_t until;
    int64_t right_number; /* number of the last correct incumbent */
    double right_value;   /* its value */
} mgl_chain;

void mgl_chain_begin(mgl_chain *chain, double value);
/* Call before a trial is evaluated: advances to the incumbent at the time of the trial. */
void mgl_chain_reach(mgl_chain *chain, const mgl_trial *trial);
/* mgl_chain_has: whether the trial became the incumbent. mgl_chain_add: makes it the incumbent. */
bool mgl_chain_has(const mgl_trial *trial);
void mgl_chain_add(mgl_chain *chain, const mgl_trial *trial, double value);

#endif
