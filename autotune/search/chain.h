/*
 * The chain of incumbents, as trials are told in order. A trial is measured against the incumbent
 * of its time, and so is what it is worth. One that is condemned (record.h) was that incumbent for
 * a while all the same; behind that stands again what was kept before it and is right.
 */
#ifndef MGL_AUTOTUNE_SEARCH_CHAIN_H
#define MGL_AUTOTUNE_SEARCH_CHAIN_H

#include "autotune/store/record.h"

/* What a value is, whoever has the chain says: us, or a log ratio. Zero but for the values, of the
 * default. */
typedef struct mgl_chain {
    int64_t number;       /* of the incumbent; 0: the default */
    double value;         /* of the incumbent */
    int64_t until;        /* id of the last trial that it is the incumbent of; 0: it is right */
    int64_t right_number; /* of the last one that is right, and */
    double right_value;   /* its value */
} mgl_chain;

void mgl_chain_begin(mgl_chain *chain, double value);
/* Before anything is made of a trial: the incumbent is that of its time. */
void mgl_chain_reach(mgl_chain *chain, const mgl_trial *trial);
/* Whether a trial became the incumbent, and the same of all behind it. */
bool mgl_chain_has(const mgl_trial *trial);
void mgl_chain_add(mgl_chain *chain, const mgl_trial *trial, double value);

#endif
