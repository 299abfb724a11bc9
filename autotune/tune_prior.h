/* What a campaign takes over from earlier ones: see tune_prior.c. */
#ifndef MGL_AUTOTUNE_TUNE_PRIOR_H
#define MGL_AUTOTUNE_TUNE_PRIOR_H

#include "autotune/tune.h"

/* Tells each surrogate among the proposers of the earlier campaigns of the store. A campaign that
 * has no trials yet says so by an event. */
mgl_status mgl_tune_add_prior(const mgl_tune *tune, const mgl_campaign_options *options,
                              mgl_error *err);

#endif
