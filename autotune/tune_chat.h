/* What a campaign says of the language model that it asks: see tune_chat.c. */
#ifndef MGL_AUTOTUNE_TUNE_CHAT_H
#define MGL_AUTOTUNE_TUNE_CHAT_H

#include "autotune/tune.h"
#include "base/json_out.h"

/* Whether a list of proposers, such as "evolve:2,chat", has that one. */
bool mgl_tune_names(const char *proposers, const char *name);
/* MGL_USAGE: the endpoint of a request is none, or goes with no proposer. */
mgl_status mgl_tune_check_chat(const mgl_tune_request *request, mgl_error *err);
/* Members of a campaign's options, and the other way round. */
void mgl_tune_put_chat(const mgl_tune_request *request, mgl_json_out *to);
mgl_status mgl_tune_read_chat(const mgl_json *options, mgl_tune *tune, mgl_error *err);
mgl_status mgl_tune_open_chat(const mgl_tune *tune, const mgl_tune_run_options *options,
                              mgl_proposer **out, mgl_error *err);

#endif
