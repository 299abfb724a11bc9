/*
 * Runs a list of prompts in launches, for `run`. One launch generates at most as many replies as
 * the model was opened for; longer lists take several launches, in order. A reply does not depend
 * on the prompts beside it.
 */
#ifndef MGL_CLI_GENERATE_BATCHES_H
#define MGL_CLI_GENERATE_BATCHES_H

#include "cli/generate/prompts.h"

/* The requests and results of all launches, and their total times. Zero-initialize; release with
 * mgl_cli_batches_clear. */
typedef struct mgl_cli_batches {
    mgl_request *requests; /* owned (prompts) */
    mgl_result *results;   /* owned (prompts); all zero without a reply */
    size_t count;          /* number of prompts */
    int64_t launches;
    double prefill_s, decode_s;
} mgl_cli_batches;

mgl_status mgl_cli_batches_make(size_t count, mgl_cli_batches *out, mgl_error *err);
/* Runs one launch with the prompts from *next on that have no error, at most `most` of them. A
 * prompt that is rejected gets its error and the others run. *next becomes the first prompt after
 * the launch. */
mgl_status mgl_cli_batches_run(mgl_cli_batches *batches, mgl_model *model, mgl_cli_prompts *prompts,
                               size_t most, mgl_batch_token_fn *on_token, void *user, size_t *next,
                               mgl_error *err);
void mgl_cli_batches_clear(mgl_cli_batches *batches);

#endif
