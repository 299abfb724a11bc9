/* Settings of the language model of a campaign (proposer "chat"): checks the request, reads and
 * writes the campaign's options, and opens the proposer. Called by tune.c and tune_run.c. */
#ifndef MGL_AUTOTUNE_TUNE_CHAT_H
#define MGL_AUTOTUNE_TUNE_CHAT_H

#include "autotune/tune.h"
#include "base/json_out.h"

/* Whether a list of proposers, such as "evolve:2,chat", contains `name`. */
bool mgl_tune_names(const char *proposers, const char *name);
/* MGL_USAGE: the endpoint is missing or invalid, or it is given without the proposer "chat". */
mgl_status mgl_tune_check_chat(const mgl_tune_request *request, mgl_error *err);
/* Write the chat members of a campaign's options, and read them. */
void mgl_tune_put_chat(const mgl_tune_request *request, mgl_json_out *to);
mgl_status mgl_tune_read_chat(const mgl_json *options, mgl_tune *tune, mgl_error *err);
mgl_status mgl_tune_open_chat(const mgl_tune *tune, const mgl_tune_run_options *options,
                              mgl_proposer **out, mgl_error *err);

#endif
