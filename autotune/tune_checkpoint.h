/* The path of a campaign's model weights (checkpoint). The store keeps the path as an event, and no
 * command prints it. Called by tune.c. */
#ifndef MGL_AUTOTUNE_TUNE_CHECKPOINT_H
#define MGL_AUTOTUNE_TUNE_CHECKPOINT_H

#include "autotune/tune.h"

#define MGL_CHECKPOINT_EVENT "checkpoint" /* kind of the event; its text is the path */

/* Sets tune->checkpoint from `model` (may be NULL), or from the last checkpoint event in the store.
 * Without a model, a successor inherits the path of the campaign before it. With `add`, a new path
 * is stored as an event. A model without weights leaves the stored path unchanged. */
mgl_status mgl_tune_choose_checkpoint(mgl_tune *tune, const char *model, bool add, mgl_error *err);

#endif
