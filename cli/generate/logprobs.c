/*
 * Writes log-probabilities to the JSON of `run`. The first token of a prompt has none and is null.
 * See logprobs.h.
 */
#include "cli/generate/logprobs.h"

#include <math.h>

static void put_logprob(mgl_json_out *out, int32_t id, float logprob)
{
    mgl_json_out_int(out, "id", id);
    if (isfinite(logprob))
        mgl_json_out_real(out, "logprob", (double)logprob);
    else
        mgl_json_out_null(out, "logprob");
}

void mgl_cli_put_logprobs(mgl_json_out *out, const mgl_result *result)
{
    if (!result->logprobs) {
        mgl_json_out_null(out, "logprobs");
        return;
    }
    mgl_json_out_array(out, "logprobs");
    for (size_t i = 0; i < result->output.count; i++) {
        mgl_json_out_object(out, NULL);
        put_logprob(out, result->output.ids[i], result->logprobs[i]);
        mgl_json_out_array(out, "top");
        for (size_t n = i * result->top_count; n < (i + 1) * result->top_count; n++) {
            mgl_json_out_object(out, NULL);
            put_logprob(out, result->top_ids[n], result->top_logprobs[n]);
            mgl_json_out_close_object(out);
        }
        mgl_json_out_close_array(out);
        mgl_json_out_close_object(out);
    }
    mgl_json_out_close_array(out);
}

void mgl_cli_put_prompt_logprobs(mgl_json_out *out, const mgl_ids *prompt, const mgl_result *result)
{
    if (!result->prompt_logprobs) {
        mgl_json_out_null(out, "prompt_logprobs");
        return;
    }
    mgl_json_out_array(out, "prompt_logprobs");
    for (size_t i = 0; i < prompt->count; i++) {
        mgl_json_out_object(out, NULL);
        put_logprob(out, prompt->ids[i], i ? result->prompt_logprobs[i] : NAN);
        mgl_json_out_close_object(out);
    }
    mgl_json_out_close_array(out);
}
