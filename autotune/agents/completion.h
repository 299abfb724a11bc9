/*
 * Requests and responses of an OpenAI-compatible chat endpoint: builds the body of a request,
 * parses a response, and computes the delay after a failure. The module is independent of the
 * purpose of a request. The chat proposer and the model clients of micro-kernels use it.
 */
#ifndef MGL_AUTOTUNE_AGENTS_COMPLETION_H
#define MGL_AUTOTUNE_AGENTS_COMPLETION_H

#include "autotune/agents/http.h"
#include "autotune/store/record.h"
#include "base/json_out.h"

/* ---- a request ------------------------------------------------------------------------------- */

/* Builds a body: begin, messages, end. The text belongs to `to`. */
void mgl_completion_begin(mgl_json_out *to, const char *model);
void mgl_completion_put_message(mgl_json_out *to, const char *role, const char *content);
void mgl_completion_end(mgl_json_out *to, double temperature, int max_tokens);

/* The temperature rises with the number of repeated answers: min(1, 0.2 + 0.2 k). */
double mgl_completion_temperature(int repeats);

enum { MGL_COMPLETION_BYTES_OF_A_TOKEN = 4 /* estimate for endpoints that do not count tokens */ };

/* ---- a response ------------------------------------------------------------------------------ */

/* Release with mgl_completion_clear. */
typedef struct mgl_completion {
    mgl_trial_verdict verdict; /* MGL_OUTCOME_OK: content is set; else PROPOSER_... */
    mgl_json json;
    const char *content; /* points into json; NULL: none */
    int64_t tokens_in, tokens_out;
    bool estimated; /* the token counts are estimates, because the endpoint gave none */
} mgl_completion;

void mgl_completion_read(const mgl_http_response *response, mgl_completion *out);
void mgl_completion_clear(mgl_completion *completion);
/* Sets the verdict. */
void mgl_completion_fail(mgl_completion *completion, mgl_outcome outcome, const mgl_error *why);

/* Whether the endpoint failed temporarily and may answer later. */
bool mgl_completion_is_endpoint(mgl_outcome outcome);
/* Delay in seconds after this number of failures in a row. It is the delay that the endpoint
 * demands (negative: none given), else it doubles with each failure. The maximum is
 * MGL_COMPLETION_MAX_WAIT. */
enum {
    MGL_COMPLETION_MAX_WAIT = 600, /* seconds */
    MGL_COMPLETION_MOST_FAILURES =
        7 /* failures in a row after which a run sends no more requests */
};
double mgl_completion_wait(int failures, double retry_after_s);

#endif
