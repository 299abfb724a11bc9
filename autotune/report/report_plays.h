/*
 * Simulated timelines ("plays") of the campaign's default and of its best program: one epoch of
 * each, simulated by the cost model and drawn side by side in the report. They are predictions,
 * even if the campaign measured. Called by report_facts.c.
 */
#ifndef MGL_AUTOTUNE_REPORT_REPORT_PLAYS_H
#define MGL_AUTOTUNE_REPORT_REPORT_PLAYS_H

#include "autotune/store/store.h"
#include "schedule/cost/cost.h"

/* The timeline of one epoch. */
typedef struct report_play {
    mgl_cost cost;
    mgl_cost_span *spans; /* (span_count) by queue */
    int span_count, queue_count;
} report_play;

typedef struct report_plays {
    mgl_schedule_config start; /* the campaign's initial config */
    double start_us;           /* its predicted objective in us; 0: none */
    /* (workloads) predicted us; start_us is their geometric mean */
    double start_each[MGL_MAX_WORKLOADS];
    mgl_workload workload;   /* the simulated workload: the campaign's first */
    int layers;              /* layers of the model */
    report_play first, best; /* span_count 0: none */
    char why[120];           /* the reason why a play is missing; "": both exist */
} report_plays;

/* Simulate the default (start), and the proposal of trial `best` (0: nothing more). A program that
 * cannot be simulated is explained in `why`; only failures of memory or the store are errors.
 * Release with report_plays_clear, also after a failure. */
mgl_status report_plays_start(const mgl_campaign_record *campaign, report_plays *out,
                              mgl_error *err);
mgl_status report_plays_best(mgl_store *store, const mgl_campaign_record *campaign, int64_t best,
                             report_plays *plays, mgl_error *err);
void report_plays_clear(report_plays *plays);

#endif
