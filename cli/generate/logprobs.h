/* Writes log-probabilities of tokens to the JSON of `run`. */
#ifndef MGL_CLI_GENERATE_LOGPROBS_H
#define MGL_CLI_GENERATE_LOGPROBS_H

#include "base/json_out.h"
#include "megalith.h"

/* "logprobs": for each token of the reply, its log-probability and the most likely tokens at its
 * position; null if not requested. */
void mgl_cli_put_logprobs(mgl_json_out *out, const mgl_result *result);
/* "prompt_logprobs": for each token of the prompt; null if not requested. */
void mgl_cli_put_prompt_logprobs(mgl_json_out *out, const mgl_ids *prompt,
                                 const mgl_result *result);

#endif
