/* How likely tokens were, in the JSON of `run`. */
#ifndef MGL_CLI_GENERATE_LOGPROBS_H
#define MGL_CLI_GENERATE_LOGPROBS_H

#include "base/json_out.h"
#include "megalith.h"

/* "logprobs": of each token of the reply, with the likeliest in its place; null where none were
 * asked for. */
void mgl_cli_put_logprobs(mgl_json_out *out, const mgl_result *result);
/* "prompt_logprobs": of each token of the prompt; null where none were asked for. */
void mgl_cli_put_prompt_logprobs(mgl_json_out *out, const mgl_ids *prompt,
                                 const mgl_result *result);

#endif
