/*
 * An exchange with an endpoint of OpenAI's chat form: the body of a request, what a response holds,
 * and how long to wait behind one that failed. Who asks, and what for, is not known here.
 */
#ifndef MGL_AUTOTUNE_AGENTS_COMPLETION_H
#define MGL_AUTOTUNE_AGENTS_COMPLETION_H

#include "autotune/agents/http.h"
#include "autotune/store/record.h"
#include "base/json_out.h"

/* ---- a request ------------------------------------------------------------------------------- */

/* A body that is built: begin, messages, end. The text is `to`'s. */
void mgl_completion_begin(mgl_json_out *to, const char *model);
void mgl_completion_put_message(mgl_json_out *to, const char *role, const char *content);
void mgl_completion_end(mgl_json_out *to, double temperature, int max_tokens);

/* The more often the model repeated itself, the freer it may answer: min(1, 0.2 + 0.2 k). */
double mgl_completion_temperature(int repeats);

enum { MGL_COMPLETION_BYTES_OF_A_TOKEN = 4 /* where an endpoint does not count */ };

/* ---- a response ------------------------------------------------------------------------------ */

/* Release with mgl_completion_clear. */
typedef struct mgl_completion {
    mgl_outcome outcome; /* MGL_OUTCOME_OK: there is a content; or PROPOSER_... */
    char diagnostic[MGL_MAX_DIAGNOSTIC + 1];
    mgl_json json;
    const char *content; /* of json; NULL: none */
    int64_t tokens_in, tokens_out;
    bool estimated; /* the endpoint did not say how many */
} mgl_completion;

void mgl_completion_read(const mgl_http_response *response, mgl_completion *out);
void mgl_completion_clear(mgl_completion *completion);
/* Sets outcome and diagnostic. */
void mgl_completion_fail(mgl_completion *completion, mgl_outcome outcome, const mgl_error *why);

/* Whether the endpoint failed, and may answer later. */
bool mgl_completion_is_endpoint(mgl_outcome outcome);
/* Seconds to wait behind so many failures in a row: as long as the endpoint said (negative: it did
 * not), else twice as long each time; MGL_COMPLETION_MAX_WAIT at most. */
enum {
    MGL_COMPLETION_MAX_WAIT = 600,   /* seconds */
    MGL_COMPLETION_MOST_FAILURES = 7 /* in a row: then the endpoint is asked no more in this run */
};
double mgl_completion_wait(int failures, double retry_after_s);

#endif
