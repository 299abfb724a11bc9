/*
 * The campaign's default and its best, each played through by the cost model: what the report draws
 * side by side. Such a play is a prediction, whatever the campaign measured.
 */
#ifndef MGL_AUTOTUNE_REPORT_REPORT_PLAYS_H
#define MGL_AUTOTUNE_REPORT_REPORT_PLAYS_H

#include "autotune/store/store.h"
#include "schedule/cost/cost.h"

/* One epoch of a program. */
typedef struct report_play {
    mgl_cost cost;
    mgl_cost_span *spans; /* (span_count) by queue */
    int span_count, queue_count;
} report_play;

typedef struct report_plays {
    mgl_schedule_config start;            /* the campaign's first config */
    double start_us;                      /* its predicted objective; 0: none */
    double start_each[MGL_MAX_WORKLOADS]; /* (workloads) the values of this mean */
    mgl_workload workload;                /* the simulated workload: the campaign's first */
    int layers;                           /* of the model */
    report_play first, best;              /* span_count 0: there is none */
    char why[120];                        /* the reason why a play is missing; "": both exist */
} report_plays;

/* Plays the default, and the proposal of trial `best` (0: the default alone). What can not be
 * played is said in `why`; it fails only where memory or the store does. Release with
 * report_plays_clear, after a failure too. */
mgl_status report_plays_start(mgl_store *store, const mgl_campaign_record *campaign,
                              report_plays *out, mgl_error *err);
mgl_status report_plays_best(mgl_store *store, const mgl_campaign_record *campaign, int64_t best,
                             report_plays *plays, mgl_error *err);
void report_plays_clear(report_plays *plays);

#endif
