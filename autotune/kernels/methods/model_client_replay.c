/* The model client that replays answers from a file. */
#include "autotune/kernels/methods/model_client.h"

#include "autotune/agents/completion.h"
#include "base/format.h"
#include "base/json_fields.h"
#include "base/memory.h"

#include <string.h>

enum { MAX_SCRIPT = 64 << 20 };

typedef struct script {
    mgl_model_client model_client; /* first member: a script is a model client */
    mgl_json json;
    const cJSON *next; /* NULL: end of the script */
    int used;
} script;

static mgl_status read_object(const script *s, const cJSON *answer, mgl_reply *out, mgl_error *err)
{
    const int64_t most = INT64_C(1) << 40;
    const char *outcome = NULL, *content = NULL;
    const mgl_json_field fields[] = {
        MGL_JSON_OPTIONAL_REAL("retry_after_s", &out->retry_after_s),
        MGL_JSON_OPTIONAL_INT("tokens_in", 0, most, &out->tokens_in),
        MGL_JSON_OPTIONAL_INT("tokens_out", 0, most, &out->tokens_out)};
    mgl_status status = mgl_json_get_string(&s->json, answer, "outcome", false, &outcome, err);
    if (!status && outcome &&
        (!mgl_outcome_parse(outcome, &out->verdict.outcome) ||
         strncmp(outcome, "PROPOSER_", 9) != 0))
        return mgl_fail(err, MGL_BAD_INPUT, s->json.file,
                        "an answer's outcome is one of PROPOSER_..., and not '%.80s'", outcome);
    if (!status)
        status = mgl_json_get_string(&s->json, answer, "content", !outcome, &content, err);
    if (!status)
        status = MGL_JSON_GET(&s->json, answer, fields, err);
    mgl_text_put(&out->content, content ? content : "");
    if (outcome)
        mgl_trial_verdict_set(&out->verdict, out->verdict.outcome, "the script says so");
    return status;
}

static mgl_status read_answer(const script *s, const cJSON *answer, mgl_reply *out, mgl_error *err)
{
    mgl_status status = MGL_OK;
    if (cJSON_IsString(answer))
        mgl_text_put(&out->content, answer->valuestring);
    else if (cJSON_IsObject(answer))
        status = read_object(s, answer, out, err);
    else
        status = mgl_fail(err, MGL_BAD_INPUT, s->json.file, "an answer is a string or an object");
    return !status && out->content.failed ? mgl_fail_memory(err, out->content.length) : status;
}

static mgl_status ask_script(mgl_model_client *self, const char *body, size_t length,
                             mgl_reply *out, mgl_error *err)
{
    script *s = (script *)self;
    (void)body;
    *out = (mgl_reply){.retry_after_s = -1,
                       .tokens_in = (int64_t)(length / MGL_COMPLETION_BYTES_OF_A_TOKEN)};
    if (!s->next) {
        out->verdict.outcome = MGL_OUTCOME_PROPOSER_BUDGET;
        mgl_format_into(out->verdict.diagnostic, sizeof out->verdict.diagnostic,
                        "the script has no answer behind its %d.", s->used);
        return MGL_OK;
    }
    const cJSON *answer = s->next;
    s->next = answer->next;
    s->used++;
    return read_answer(s, answer, out, err);
}

static void close_script(mgl_model_client *self)
{
    script *s = (script *)self;
    mgl_json_clear(&s->json);
    mgl_free(s);
}

/* Parses all answers at the start, so that a bad answer is reported before the first request. */
static mgl_status check_answers(const script *s, mgl_error *err)
{
    mgl_status status = MGL_OK;
    for (const cJSON *at = s->next; at && !status; at = at->next) {
        mgl_reply reply = {0};
        status = read_answer(s, at, &reply, err);
        mgl_reply_clear(&reply);
    }
    return status;
}

/* Takes ownership of the tree. If `status` is an error, there is no tree. */
static mgl_status open_tree(mgl_status status, mgl_json *json, mgl_model_client **out,
                            mgl_error *err)
{
    script *s = status ? NULL : mgl_alloc_zero(1, sizeof *s);
    *out = NULL;
    if (!status && !s)
        status = mgl_fail_memory(err, sizeof *s);
    if (!status && !cJSON_IsArray(json->root))
        status = mgl_fail(err, MGL_BAD_INPUT, json->file, "a script is a JSON list of answers");
    if (!status) {
        *s = (script){{"scripted", ask_script, close_script}, *json, json->root->child, 0};
        status = check_answers(s, err);
    }
    if (status) {
        mgl_json_clear(json);
        mgl_free(s);
        return status;
    }
    *out = &s->model_client;
    return MGL_OK;
}

mgl_status mgl_model_client_open_replay(const char *path, mgl_model_client **out, mgl_error *err)
{
    mgl_json json = {0};
    return open_tree(mgl_json_read_file(path, MAX_SCRIPT, &json, err), &json, out, err);
}

mgl_status mgl_model_client_open_replay_text(const char *text, size_t length, const char *file,
                                             mgl_model_client **out, mgl_error *err)
{
    mgl_json json = {0};
    return open_tree(mgl_json_parse(text, length, MAX_SCRIPT, file, &json, err), &json, out, err);
}
