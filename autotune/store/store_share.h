/*
 * Distributed workers with leases: several workers run one campaign of a shared store, each a
 * process on its own machine with its own device. A worker reserves the number of its next trial,
 * and no other worker gets that number while the first one is alive. A worker renews its lease
 * every 5 s (heartbeat). It is removed after 30 s without renewal, or at once by a worker on the
 * same machine that sees its process ended. Its reserved numbers then become free, and are assigned
 * first. Called by campaign_share.c and campaign_source.c.
 *
 *     mgl_store_join(store, campaign, "NVIDIA H200", uuid, &worker, &err);
 *     mgl_store_take_number(worker, 60, &number, &err);
 *     ... mgl_store_add_trial(store, &trial, &err);
 *     mgl_store_leave(worker);
 *
 * While a worker has joined, mgl_store_add_trial checks two more conditions. MGL_USAGE: another
 * worker has taken over the trial's number. If the trial would be kept but was measured against an
 * incumbent that is no longer current (mgl_trial.against), it becomes MGL_OUTCOME_NO_GAIN.
 */
#ifndef MGL_AUTOTUNE_STORE_STORE_SHARE_H
#define MGL_AUTOTUNE_STORE_STORE_SHARE_H

#include "autotune/store/store.h"

typedef struct mgl_store_worker mgl_store_worker;

/* Registers a worker. The store must be shared, and may have one worker at most. */
mgl_status mgl_store_join(mgl_store *store, int64_t campaign, const char *device, const char *uuid,
                          mgl_store_worker **out, mgl_error *err);
int64_t mgl_store_worker_id(const mgl_store_worker *worker);
/* Removes the worker and frees its numbers. NULL is allowed. */
void mgl_store_leave(mgl_store_worker *worker);

/* Reserves the number of the next trial, at most `most` (0: no limit); *number 0: none is free. */
mgl_status mgl_store_take_number(mgl_store_worker *worker, int64_t most, int64_t *number,
                                 mgl_error *err);
/* Claims the oldest waiting submission that no other worker has claimed, for the trial of that
 * number. */
mgl_status mgl_store_take_submission(mgl_store_worker *worker, int64_t number, bool *found,
                                     mgl_submission *out, mgl_error *err);
/* Counts the live workers of a campaign, including the caller. */
mgl_status mgl_store_count_workers(mgl_store *store, int64_t campaign, int64_t *out,
                                   mgl_error *err);

#endif
