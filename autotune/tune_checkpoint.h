/* Where the weights of a campaign's model lie: known to its store, and told to nobody. */
#ifndef MGL_AUTOTUNE_TUNE_CHECKPOINT_H
#define MGL_AUTOTUNE_TUNE_CHECKPOINT_H

#include "autotune/tune.h"

#define MGL_CHECKPOINT_EVENT "checkpoint" /* kind of the event, whose text is the path */

/* tune->checkpoint: that of `model`, which may be NULL, or of the store's last such event; without
 * a model a successor has that of the campaign before it. With `add` a new one becomes an event. A
 * model that has no weights leaves the store's. */
mgl_status mgl_tune_choose_checkpoint(mgl_tune *tune, const char *model, bool add, mgl_error *err);

#endif
