/*
 * Several workers on one campaign of a shared store, each a process on its own machine with its own
 * device. A worker takes the number of its next trial, and nobody else has that number while the
 * worker lives: it says so every 5 s, and is removed when it did not for 30 s, or at once by a
 * worker of the same machine that sees that its process ended. What it had taken is then free, and
 * goes first.
 *
 *     mgl_store_join(store, campaign, "NVIDIA H200", uuid, &worker, &err);
 *     mgl_store_take_number(worker, 60, &number, &err);
 *     ... mgl_store_add_trial(store, &trial, &err);
 *     mgl_store_leave(worker);
 *
 * While a worker has joined, mgl_store_add_trial of its store holds two things more. A trial whose
 * number another worker has by now is MGL_USAGE. A trial that would be kept, but was measured
 * against another incumbent than there is (mgl_trial.against), becomes MGL_OUTCOME_NO_GAIN.
 */
#ifndef MGL_AUTOTUNE_STORE_STORE_SHARE_H
#define MGL_AUTOTUNE_STORE_STORE_SHARE_H

#include "autotune/store/store.h"

typedef struct mgl_store_worker mgl_store_worker;

/* The store has to be shared, and has one worker at most. */
mgl_status mgl_store_join(mgl_store *store, int64_t campaign, const char *device, const char *uuid,
                          mgl_store_worker **out, mgl_error *err);
int64_t mgl_store_worker_id(const mgl_store_worker *worker);
/* What it had taken is free. NULL is fine. */
void mgl_store_leave(mgl_store_worker *worker);

/* The number of the next trial, at most `most` (0: any); 0: there is none that is free. */
mgl_status mgl_store_take_number(mgl_store_worker *worker, int64_t most, int64_t *number,
                                 mgl_error *err);
/* Takes the oldest submission that waits and that nobody else has, for the trial of that number. */
mgl_status mgl_store_take_submission(mgl_store_worker *worker, int64_t number, bool *found,
                                     mgl_submission *out, mgl_error *err);
/* Workers of a campaign that live, whoever asks included. */
mgl_status mgl_store_count_workers(mgl_store *store, int64_t campaign, int64_t *out,
                                   mgl_error *err);

#endif
