/* Implements the feedback loop: requests, answers, retries of the endpoint, and the saved state. */
#include "autotune/kernels/methods/feedback.h"

#include "autotune/agents/completion.h"
#include "autotune/agents/extract.h"
#include "base/draw.h"
#include "base/format.h"
#include "base/json_fields.h"
#include "base/memory.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <string.h>

static const char fence[] = "cuda"; /* language tag of the code fence of an answer */

/* The verdict of an earlier text. */
typedef struct seen {
    mgl_digest digest;
    mgl_trial_verdict verdict;
    int call;
} seen;

/* A failed attempt. */
typedef struct attempt {
    int call; /* 0: no attempt */
    mgl_trial_verdict verdict;
    mgl_text code; /* empty: the answer had no text */
} attempt;

struct mgl_feedback {
    mgl_feedback_options options;
    int calls;
    int repeats;                        /* answers in a row that repeat an earlier text */
    seen seen[MGL_FEEDBACK_MOST_CALLS]; /* (seen_count) */
    int seen_count;
    attempt last[MGL_FEEDBACK_SHOWN]; /* newest last */
    mgl_trial_verdict verdict;        /* verdict of the last call */
    mgl_text good;                    /* empty: none so far */
};

mgl_status mgl_feedback_open(const mgl_feedback_options *options, mgl_feedback **out,
                             mgl_error *err)
{
    mgl_feedback *f = *out = mgl_alloc_zero(1, sizeof *f);
    if (!f)
        return mgl_fail_memory(err, sizeof *f);
    f->options = *options;
    if (f->options.calls < 1)
        f->options.calls = MGL_FEEDBACK_CALLS;
    if (f->options.calls > MGL_FEEDBACK_MOST_CALLS)
        f->options.calls = MGL_FEEDBACK_MOST_CALLS;
    return MGL_OK;
}

void mgl_feedback_close(mgl_feedback *f)
{
    if (!f)
        return;
    for (int i = 0; i < MGL_FEEDBACK_SHOWN; i++)
        mgl_text_clear(&f->last[i].code);
    mgl_text_clear(&f->good);
    mgl_free(f);
}

int mgl_feedback_count(const mgl_feedback *f)
{
    return f->calls;
}

bool mgl_feedback_ended(const mgl_feedback *f)
{
    return f->good.length > 0 || f->calls >= f->options.calls;
}

const char *mgl_feedback_code(const mgl_feedback *f)
{
    return f->good.length ? f->good.bytes : NULL;
}

const mgl_trial_verdict *mgl_feedback_verdict(const mgl_feedback *f)
{
    return f->calls ? &f->verdict : NULL;
}

/* ---- a request ------------------------------------------------------------------------------- */

static double temperature_of(const mgl_feedback *f)
{
    return mgl_completion_temperature(f->repeats);
}

static int max_tokens_of(const mgl_feedback *f)
{
    return f->repeats ? MGL_FEEDBACK_TOKENS + MGL_FEEDBACK_TOKENS / 2 : MGL_FEEDBACK_TOKENS;
}

/* The delimiter changes with each request, so that earlier answers of the model cannot contain
 * it. */
static uint64_t border_of(const mgl_feedback *f)
{
    uint64_t state = f->options.seed + (uint64_t)f->calls;
    return mgl_draw(&state);
}

static void put_data(mgl_text *out, uint64_t border, const char *bytes, size_t length)
{
    mgl_text_format(out, "<<<data %016" PRIx64 "\n", border);
    mgl_utf8_repair(bytes, length, out);
    if (!length || bytes[length - 1] != '\n')
        mgl_text_put(out, "\n");
    mgl_text_format(out, "data>>> %016" PRIx64 "\n", border);
}

static void put_attempt(const mgl_feedback *f, const attempt *a, mgl_text *out)
{
    uint64_t border = border_of(f);
    char error[MGL_MAX_DIAGNOSTIC + 1];
    mgl_text line = {0};
    mgl_trial_verdict_print(&a->verdict, &line);
    mgl_format_ends(error, sizeof error, "%s", line.bytes ? line.bytes : "");
    out->failed |= line.failed;
    mgl_text_clear(&line);
    mgl_text_format(out, "## Attempt %d of %d failed\n\n", a->call, f->options.calls);
    put_data(out, border, error, strlen(error));
    mgl_text_format(out, "%s\n\n", mgl_outcome_kernel_hint(a->verdict.outcome));
    if (a->code.length)
        put_data(out, border, a->code.bytes, a->code.length);
    else
        mgl_text_put(out, "There was no text in it that could be taken.\n");
    mgl_text_put(out, "\n");
}

static void put_user(const mgl_feedback *f, mgl_text *out)
{
    for (int i = 0; i < MGL_FEEDBACK_SHOWN; i++)
        if (f->last[i].call)
            put_attempt(f, &f->last[i], out);
    if (out->length)
        mgl_text_put(out, "## The task, as before\n\n");
    mgl_text_put(out, f->options.task);
}

mgl_status mgl_feedback_body(const mgl_feedback *f, mgl_text *out, mgl_error *err)
{
    mgl_text user = {0};
    mgl_json_out body = {0};
    put_user(f, &user);
    mgl_completion_begin(&body, f->options.model ? f->options.model : "");
    mgl_completion_put_message(&body, "system", f->options.system);
    mgl_completion_put_message(&body, "user", user.bytes ? user.bytes : "");
    mgl_completion_end(&body, temperature_of(f), max_tokens_of(f));
    bool failed = user.failed || body.text.failed;
    mgl_text_clear(&user);
    if (failed) {
        mgl_text_clear(&body.text);
        return mgl_fail_memory(err, MGL_FEEDBACK_MAX_CODE);
    }
    *out = body.text;
    return MGL_OK;
}

mgl_status mgl_feedback_prompt(const mgl_feedback *f, mgl_text *out, mgl_error *err)
{
    mgl_text user = {0};
    put_user(f, &user);
    mgl_text_put(out, f->options.system);
    mgl_text_put(out, "\n");
    mgl_text_append(out, user.bytes ? user.bytes : "", user.length);
    bool failed = user.failed || out->failed;
    mgl_text_clear(&user);
    return failed ? mgl_fail_memory(err, MGL_FEEDBACK_MAX_CODE) : MGL_OK;
}

/* ---- an answer ------------------------------------------------------------------------------- */

/* Extracts the text of an answer and applies the fix-ups. */
static mgl_status take_code(const mgl_reply *reply, mgl_text *code, mgl_fixups *fixups,
                            mgl_trial_verdict *v, mgl_error *err)
{
    const char *from = NULL;
    size_t bytes = 0;
    *fixups = (mgl_fixups){0};
    *v = reply->verdict;
    if (v->outcome)
        return MGL_OK;
    v->outcome = mgl_extract(reply->content.bytes ? reply->content.bytes : "",
                             reply->content.length, fence, 0, &from, &bytes);
    if (v->outcome) {
        mgl_trial_verdict_set(v, v->outcome, "expected one ```%s fence, but %s", fence,
                              v->outcome == MGL_OUTCOME_EXTRACT_NONE
                                  ? "there is none that is closed"
                                  : "there are several that differ");
        return MGL_OK;
    }
    if (bytes > MGL_FEEDBACK_MAX_CODE) {
        mgl_trial_verdict_set(v, MGL_OUTCOME_EXTRACT_NONE,
                              "the fence has %zu bytes, and at most %d are read", bytes,
                              MGL_FEEDBACK_MAX_CODE);
        return MGL_OK;
    }
    mgl_fixups_apply(from, bytes, code, fixups);
    return code->failed ? mgl_fail_memory(err, bytes) : MGL_OK;
}

static const seen *find_seen(const mgl_feedback *f, const mgl_digest *digest)
{
    for (int i = 0; i < f->seen_count; i++)
        if (!strcmp(f->seen[i].digest.hex, digest->hex))
            return &f->seen[i];
    return NULL;
}

static mgl_status evaluate(mgl_feedback *f, const mgl_text *code, mgl_trial_verdict *v,
                           mgl_error *err)
{
    mgl_digest digest = mgl_digest_text(code->bytes, code->length);
    const seen *before = find_seen(f, &digest);
    if (before) {
        f->repeats++;
        mgl_trial_verdict_set(
            v, MGL_OUTCOME_DUPLICATE, "the text of attempt %d again, which was %s: %s",
            before->call, mgl_outcome_name(before->verdict.outcome), before->verdict.diagnostic);
        return MGL_OK;
    }
    mgl_status status = f->options.evaluator.evaluate(f->options.evaluator.user, code->bytes,
                                                      code->length, NULL, 0, v, err);
    f->repeats = 0;
    f->seen[f->seen_count++] = (seen){.digest = digest, .verdict = *v, .call = f->calls + 1};
    return status;
}

/* Takes ownership of the code. */
static void remember(mgl_feedback *f, const mgl_trial_verdict *v, mgl_text *code)
{
    f->verdict = *v;
    if (mgl_outcome_is_good(v->outcome)) {
        f->good = *code;
        return;
    }
    mgl_text_clear(&f->last[0].code);
    memmove(&f->last[0], &f->last[1], (MGL_FEEDBACK_SHOWN - 1) * sizeof f->last[0]);
    f->last[MGL_FEEDBACK_SHOWN - 1] = (attempt){.call = f->calls, .verdict = *v, .code = *code};
}

/* A failed endpoint has not answered, so its reply is no call. A malformed answer is a call. */
static bool is_call(mgl_outcome outcome)
{
    return !mgl_completion_is_endpoint(outcome) && outcome != MGL_OUTCOME_PROPOSER_AUTH &&
           outcome != MGL_OUTCOME_PROPOSER_BUDGET;
}

static mgl_status take(mgl_feedback *f, mgl_feedback_call *call, mgl_error *err)
{
    mgl_text code = {0};
    mgl_trial_verdict v = {.outcome = MGL_OUTCOME_OK};
    call->number = f->calls + 1;
    call->temperature = temperature_of(f);
    call->max_tokens = max_tokens_of(f);
    call->verdict = &v;
    mgl_status status = take_code(call->reply, &code, &call->fixups, &v, err);
    if (!status && !v.outcome)
        status = evaluate(f, &code, &v, err);
    if (status) {
        mgl_text_clear(&code);
        return status;
    }
    if (f->options.on_call)
        f->options.on_call(f->options.user, call);
    if (is_call(call->reply->verdict.outcome)) {
        f->calls++;
        remember(f, &v, &code);
    }
    return MGL_OK;
}

mgl_status mgl_feedback_take(mgl_feedback *f, const char *request, const mgl_reply *reply,
                             mgl_error *err)
{
    mgl_feedback_call call = {.request = request, .reply = reply};
    if (mgl_feedback_ended(f))
        return mgl_fail(err, MGL_USAGE, "an answer", "the loop ended after %d call%s", f->calls,
                        mgl_plural((size_t)f->calls));
    return take(f, &call, err);
}

/* ---- run ------------------------------------------------------------------------------------- */

/* Handles a reply that is not a call: retry after a delay, or stop. */
static void stand_failure(mgl_outcome outcome, int *failures, mgl_feedback_call *call,
                          mgl_outcome *stopped)
{
    *failures = is_call(outcome) ? 0 : *failures + 1;
    if (!*failures)
        return;
    if (!mgl_completion_is_endpoint(outcome) || *failures >= MGL_COMPLETION_MOST_FAILURES)
        *stopped = outcome;
    else
        call->wait_s = mgl_completion_wait(*failures, call->reply->retry_after_s);
}

static mgl_status ask_once(mgl_feedback *f, mgl_model_client *model_client,
                           const mgl_waiter *waiter, int *failures, mgl_outcome *stopped,
                           mgl_error *err)
{
    mgl_text body = {0};
    mgl_reply reply = {0};
    mgl_feedback_call call = {.reply = &reply};
    mgl_status status = mgl_feedback_body(f, &body, err);
    call.request = body.bytes;
    if (!status)
        status = model_client->ask(model_client, body.bytes, body.length, &reply, err);
    if (!status) {
        stand_failure(reply.verdict.outcome, failures, &call, stopped);
        status = take(f, &call, err);
    }
    if (!status && call.wait_s > 0)
        status = waiter->wait(waiter->user, call.wait_s, err);
    mgl_reply_clear(&reply);
    mgl_text_clear(&body);
    return status;
}

mgl_status mgl_feedback_run(mgl_feedback *f, mgl_model_client *model_client,
                            const mgl_waiter *waiter, mgl_outcome *stopped, mgl_error *err)
{
    mgl_status status = MGL_OK;
    int failures = 0; /* failed requests in a row */
    *stopped = MGL_OUTCOME_OK;
    while (!status && !mgl_feedback_ended(f) && !*stopped)
        status = ask_once(f, model_client, waiter, &failures, stopped, err);
    return status;
}

/* ---- on disk --------------------------------------------------------------------------------- */

static void write_attempt(const attempt *a, mgl_json_out *out)
{
    mgl_json_out_object(out, NULL);
    mgl_json_out_int(out, "call", a->call);
    mgl_trial_verdict_put(out, &a->verdict);
    mgl_json_out_text(out, "code", a->code.bytes ? a->code.bytes : "", a->code.length);
    mgl_json_out_close_object(out);
}

void mgl_feedback_write(const mgl_feedback *f, mgl_json_out *out, const char *key)
{
    mgl_json_out_object(out, key);
    mgl_json_out_int(out, "calls", f->calls);
    mgl_json_out_int(out, "repeats", f->repeats);
    mgl_json_out_array(out, "seen");
    for (int i = 0; i < f->seen_count; i++) {
        mgl_json_out_object(out, NULL);
        mgl_json_out_string(out, "digest", f->seen[i].digest.hex);
        mgl_trial_verdict_put(out, &f->seen[i].verdict);
        mgl_json_out_int(out, "call", f->seen[i].call);
        mgl_json_out_close_object(out);
    }
    mgl_json_out_close_array(out);
    mgl_json_out_array(out, "last");
    for (int i = 0; i < MGL_FEEDBACK_SHOWN; i++)
        if (f->last[i].call)
            write_attempt(&f->last[i], out);
    mgl_json_out_close_array(out);
    mgl_json_out_close_object(out);
}

static mgl_status read_seen(mgl_feedback *f, const mgl_json *json, const cJSON *object,
                            mgl_error *err)
{
    const char *digest = NULL;
    int64_t call = 0;
    const mgl_json_field fields[] = {MGL_JSON_STRING("digest", &digest),
                                     MGL_JSON_INT("call", 1, MGL_FEEDBACK_MOST_CALLS, &call)};
    seen *to = &f->seen[f->seen_count];
    if (f->seen_count == MGL_FEEDBACK_MOST_CALLS)
        return mgl_fail(err, MGL_BAD_INPUT, json->file, "more than %d texts were seen",
                        MGL_FEEDBACK_MOST_CALLS);
    mgl_status status = MGL_JSON_GET(json, object, fields, err);
    if (!status)
        status = mgl_trial_verdict_read(json, object, &to->verdict, err);
    if (!status && strlen(digest) != MGL_SHA256_HEX - 1)
        status =
            mgl_fail(err, MGL_BAD_INPUT, json->file, "a digest has %d digits", MGL_SHA256_HEX - 1);
    if (status)
        return status;
    memcpy(to->digest.hex, digest, MGL_SHA256_HEX);
    to->call = (int)call;
    f->seen_count++;
    return MGL_OK;
}

static mgl_status read_attempt(const mgl_json *json, const cJSON *object, attempt *to,
                               mgl_error *err)
{
    const char *code = NULL;
    int64_t call = 0;
    const mgl_json_field fields[] = {MGL_JSON_INT("call", 1, MGL_FEEDBACK_MOST_CALLS, &call),
                                     MGL_JSON_STRING("code", &code)};
    mgl_status status = MGL_JSON_GET(json, object, fields, err);
    if (!status)
        status = mgl_trial_verdict_read(json, object, &to->verdict, err);
    if (status)
        return status;
    to->call = (int)call;
    mgl_text_put(&to->code, code);
    return to->code.failed ? mgl_fail_memory(err, strlen(code)) : MGL_OK;
}

mgl_status mgl_feedback_read(mgl_feedback *f, const mgl_json *json, const cJSON *object,
                             mgl_error *err)
{
    int64_t calls = 0, repeats = 0;
    const cJSON *list = NULL, *last = NULL;
    const mgl_json_field fields[] = {MGL_JSON_INT("calls", 0, MGL_FEEDBACK_MOST_CALLS, &calls),
                                     MGL_JSON_INT("repeats", 0, MGL_FEEDBACK_MOST_CALLS, &repeats),
                                     MGL_JSON_ARRAY("seen", &list), MGL_JSON_ARRAY("last", &last)};
    mgl_status status = MGL_JSON_GET(json, object, fields, err);
    if (!status && repeats > calls)
        status = mgl_fail(err, MGL_BAD_INPUT, json->file, "more repeats than calls");
    f->calls = (int)calls;
    f->repeats = (int)repeats;
    for (const cJSON *at = status ? NULL : list->child; at && !status; at = at->next)
        status = read_seen(f, json, at, err);
    int place = MGL_FEEDBACK_SHOWN - (status ? 0 : cJSON_GetArraySize(last));
    if (!status && place < 0)
        status = mgl_fail(err, MGL_BAD_INPUT, json->file, "%d attempts are kept at most",
                          MGL_FEEDBACK_SHOWN);
    for (const cJSON *at = status ? NULL : last->child; at && !status; at = at->next)
        status = read_attempt(json, at, &f->last[place++], err);
    return status;
}
