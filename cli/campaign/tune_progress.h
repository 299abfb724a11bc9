/*
 * The progress of a campaign, as one line on standard error:
 *
 *     12 of 100 trials, best +3.10 % (+2.40 to +3.90) in trial 7, 2 h 10 min left
 *
 * On a terminal the line is rewritten in place. Elsewhere it is printed when the best changes,
 * every 30 seconds, and at the end. With --verbose, one line per trial is printed instead.
 */
#ifndef MGL_CLI_CAMPAIGN_TUNE_PROGRESS_H
#define MGL_CLI_CAMPAIGN_TUNE_PROGRESS_H

#include "cli/campaign/campaign.h"

typedef struct mgl_cli_tune_progress {
    const mgl_cli_tuning *how;
    bool clock;                 /* trials are measured */
    int64_t trials, begun;      /* trials so far, and trials before this run */
    double spent;               /* seconds of earlier runs */
    double began, printed;      /* clock: start of this run; last printed line */
    int64_t printed_trials;     /* trials in the last printed line */
    int64_t best;               /* number of the best trial; 0: the default */
    double gain, lo, hi;        /* logarithms of speed over the default, summed over kept steps */
    double best_us, default_us; /* predicted; 0: unknown */
    bool paused;
} mgl_cli_tune_progress;

/* Reads the state of the campaign from the store. */
mgl_status mgl_cli_tune_progress_begin(mgl_cli_tune_progress *progress, const mgl_tune *tune,
                                       const mgl_cli_tuning *how, mgl_error *err);
/* Updates the progress by an event, and prints the event if users need it. */
void mgl_cli_tune_progress_event(mgl_cli_tune_progress *progress, const mgl_campaign_event *event);
/* Formats the line for the clock time `now`. */
void mgl_cli_tune_progress_format(const mgl_cli_tune_progress *progress, double now, mgl_text *out);

#endif
