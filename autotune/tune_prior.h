/* Transfer from earlier campaigns: their trials become a prior of the surrogate proposer. Called by
 * tune_run.c before a campaign runs. */
#ifndef MGL_AUTOTUNE_TUNE_PRIOR_H
#define MGL_AUTOTUNE_TUNE_PRIOR_H

#include "autotune/tune.h"

/* Passes the trials of earlier campaigns in the store to each surrogate among the proposers. If the
 * campaign has no trials yet, also stores an event that lists them. */
mgl_status mgl_tune_add_prior(const mgl_tune *tune, const mgl_campaign_options *options,
                              mgl_error *err);

#endif
