/* Implements completion.h: JSON of requests and responses, outcomes of failed requests, and the
 * delay after a failure. */
#include "autotune/agents/completion.h"

#include "base/format.h"

enum { MOST_DOUBLINGS = 9 };

/* ---- a request ------------------------------------------------------------------------------- */

void mgl_completion_begin(mgl_json_out *to, const char *model)
{
    mgl_text_put(&to->text, "{");
    mgl_json_out_string(to, "model", model);
    mgl_json_out_array(to, "messages");
}

void mgl_completion_put_message(mgl_json_out *to, const char *role, const char *content)
{
    mgl_json_out_object(to, NULL);
    mgl_json_out_string(to, "role", role);
    mgl_json_out_string(to, "content", content);
    mgl_json_out_close_object(to);
}

void mgl_completion_end(mgl_json_out *to, double temperature, int max_tokens)
{
    mgl_json_out_close_array(to);
    mgl_json_out_real(to, "temperature", temperature);
    mgl_json_out_int(to, "max_tokens", max_tokens);
    mgl_json_out_bool(to, "stream", false);
    mgl_json_out_close(to);
}

double mgl_completion_temperature(int repeats)
{
    double wanted = 0.2 + 0.2 * repeats;
    return wanted > 1 ? 1 : wanted;
}

/* ---- a response ------------------------------------------------------------------------------ */

void mgl_completion_fail(mgl_completion *a, mgl_outcome outcome, const mgl_error *why)
{
    mgl_trial_verdict_set(&a->verdict, outcome, "%s", why->message);
}

/* Reads choices[0].message.content, and the token counts in usage if present. */
static mgl_status read_content(mgl_completion *a, mgl_error *why)
{
    const cJSON *choices = NULL, *message = NULL, *usage = NULL;
    mgl_status status = mgl_json_get_array(&a->json, a->json.root, "choices", true, &choices, why);
    const cJSON *first = status ? NULL : choices->child;
    if (!status && !cJSON_IsObject(first))
        status = mgl_fail(why, MGL_BAD_INPUT, "answer", "has no choice");
    if (!status)
        status = mgl_json_get_object(&a->json, first, "message", true, &message, why);
    if (!status)
        status = mgl_json_get_string(&a->json, message, "content", true, &a->content, why);
    if (status || mgl_json_get_object(&a->json, a->json.root, "usage", false, &usage, NULL) ||
        !usage)
        return status;
    const int64_t most = INT64_C(1) << 40;
    a->estimated =
        mgl_json_get_int(&a->json, usage, "prompt_tokens", true, 0, most, &a->tokens_in, NULL) ||
        mgl_json_get_int(&a->json, usage, "completion_tokens", true, 0, most, &a->tokens_out, NULL);
    return MGL_OK;
}

static void read_body(mgl_completion *a, const mgl_http_response *response)
{
    mgl_error why = {0};
    a->estimated = true;
    mgl_status status = mgl_json_parse(response->body, response->length, MGL_HTTP_MAX_BYTES,
                                       "answer", &a->json, &why);
    if (!status && !cJSON_IsObject(a->json.root))
        status = mgl_fail(&why, MGL_BAD_INPUT, "answer", "is no object");
    if (!status)
        status = read_content(a, &why);
    if (status)
        mgl_completion_fail(a, MGL_OUTCOME_PROPOSER_SCHEMA, &why);
}

static mgl_outcome outcome_of_status(int status)
{
    if (status == 401 || status == 403)
        return MGL_OUTCOME_PROPOSER_AUTH;
    return status == 429 ? MGL_OUTCOME_PROPOSER_RATE : MGL_OUTCOME_PROPOSER_HTTP;
}

void mgl_completion_read(const mgl_http_response *response, mgl_completion *a)
{
    mgl_error why = {0};
    *a = (mgl_completion){.verdict.outcome = MGL_OUTCOME_OK, .estimated = true};
    switch (response->end) {
    case MGL_HTTP_TIMED_OUT:
        mgl_fail(&why, MGL_SYSTEM, "", "no answer within its time");
        mgl_completion_fail(a, MGL_OUTCOME_PROPOSER_TIMEOUT, &why);
        return;
    case MGL_HTTP_TOO_LONG:
        mgl_fail(&why, MGL_SYSTEM, "", "the answer has more than %d bytes", MGL_HTTP_MAX_BYTES);
        mgl_completion_fail(a, MGL_OUTCOME_PROPOSER_SCHEMA, &why);
        return;
    case MGL_HTTP_FAILED:
        mgl_fail(&why, MGL_SYSTEM, "", "%.200s", response->reason);
        mgl_completion_fail(a, MGL_OUTCOME_PROPOSER_HTTP, &why);
        return;
    case MGL_HTTP_DONE:
        break;
    }
    if (response->status == 200) {
        read_body(a, response);
        return;
    }
    mgl_fail(&why, MGL_SYSTEM, "", "the endpoint answered with status %d%s", response->status,
             response->status >= 300 && response->status < 400 ? ": redirects are not followed"
                                                               : "");
    mgl_completion_fail(a, outcome_of_status(response->status), &why);
}

void mgl_completion_clear(mgl_completion *a)
{
    mgl_json_clear(&a->json);
    a->content = NULL;
}

/* ---- failures -------------------------------------------------------------------------------- */

bool mgl_completion_is_endpoint(mgl_outcome outcome)
{
    return outcome == MGL_OUTCOME_PROPOSER_HTTP || outcome == MGL_OUTCOME_PROPOSER_TIMEOUT ||
           outcome == MGL_OUTCOME_PROPOSER_RATE;
}

double mgl_completion_wait(int failures, double retry_after_s)
{
    int doublings = failures < MOST_DOUBLINGS ? failures - 1 : MOST_DOUBLINGS;
    double wait =
        retry_after_s >= 0 ? retry_after_s : (double)(1 << (doublings > 0 ? doublings : 0));
    return wait > MGL_COMPLETION_MAX_WAIT ? MGL_COMPLETION_MAX_WAIT : wait;
}
