/*
 * Settings of the proposer "chat" of a campaign. The endpoint and the model name are part of the
 * campaign, so the record's options contain them. The API key and the budgets belong to the process
 * that runs the campaign, and are not stored.
 */
#include "autotune/tune_chat.h"

#include "autotune/agents/chat.h"
#include "autotune/agents/http.h"
#include "base/memory.h"

#include <string.h>
#include <strings.h>

/* Seconds. Answers are polled between two trials, so an answer may wait before it is read. */
static const double timeout_s = 300;

bool mgl_tune_names(const char *proposers, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = proposers; at; at = strchr(at, ','), at = at ? at + 1 : NULL)
        if (!strncmp(at, name, length) && strchr(",:", at[length]))
            return true;
    return false;
}

/* Whether the query of a URL contains an API key. The URL is stored, so it must not contain
 * secrets. */
static bool has_key(const char *url)
{
    static const char *const names[] = {"key=", "token=", "secret=", "password="};
    const char *query = strchr(url, '?');
    for (size_t i = 0; query && i < sizeof names / sizeof *names; i++)
        for (const char *at = query; *at; at++)
            if (!strncasecmp(at, names[i], strlen(names[i])))
                return true;
    return false;
}

mgl_status mgl_tune_check_chat(const mgl_tune_request *r, mgl_error *err)
{
    bool named = r->proposers && mgl_tune_names(r->proposers, "chat");
    if (!named && (r->chat_url || r->chat_model))
        return mgl_fail(err, MGL_USAGE, r->chat_url ? "--chat-url" : "--chat-model",
                        "applies to the proposer chat only; add --proposer evolve:2,chat");
    if (!named)
        return MGL_OK;
    if (!r->chat_url || !r->chat_model || !r->chat_model[0])
        return mgl_fail(
            err, MGL_USAGE, "--proposer",
            "the proposer chat needs a language model; give --chat-url and --chat-model");
    if (has_key(r->chat_url))
        return mgl_fail(err, MGL_USAGE, "--chat-url",
                        "contains a key, which would be stored; give the key with --chat-key-file "
                        "or MEGALITH_CHAT_KEY");
    return mgl_http_check_url(r->chat_url, err);
}

void mgl_tune_put_chat(const mgl_tune_request *r, mgl_json_out *to)
{
    if (!r->chat_url)
        return;
    mgl_json_out_string(to, "chat_url", r->chat_url);
    mgl_json_out_string(to, "chat_model", r->chat_model);
}

static mgl_status take_string(const mgl_json *json, const char *key, char **to, mgl_error *err)
{
    const char *text = NULL;
    mgl_status status = mgl_json_get_string(json, json->root, key, false, &text, err);
    *to = !status && text ? mgl_strdup(text) : NULL;
    return !status && text && !*to ? mgl_fail_memory(err, strlen(text) + 1) : status;
}

mgl_status mgl_tune_read_chat(const mgl_json *options, mgl_tune *tune, mgl_error *err)
{
    mgl_status status = take_string(options, "chat_url", &tune->chat_url, err);
    return status ? status : take_string(options, "chat_model", &tune->chat_model, err);
}

static mgl_status make_options(const mgl_tune *tune, mgl_chat_options *out, mgl_error *err)
{
    *out = (mgl_chat_options){.subject = &tune->subject,
                              .device = tune->record.device,
                              .shape = tune->record.model,
                              .url = tune->chat_url,
                              .model = tune->chat_model,
                              .store = tune->record.id ? tune->store : NULL,
                              .campaign = tune->record.id,
                              .timeout_s = timeout_s};
    if (tune->chat_url && tune->chat_model)
        return MGL_OK;
    return mgl_fail(err, MGL_USAGE, "--proposer",
                    "the proposer chat needs a language model, and the campaign has no endpoint; "
                    "give --chat-url and --chat-model");
}

mgl_status mgl_tune_open_chat(const mgl_tune *tune, const mgl_tune_run_options *o,
                              mgl_proposer **out, mgl_error *err)
{
    mgl_chat_options options;
    mgl_status status = make_options(tune, &options, err);
    options.key = o->chat_key;
    options.budget_tokens = o->budget_tokens;
    options.budget_requests = o->budget_requests;
    options.on_event = o->on_event;
    options.user = o->user;
    return status ? status : mgl_chat_open(&options, out, err);
}

/* ---- preview of the next request ------------------------------------------------------------- */

enum { LAST = 16 }; /* trials that a request may include, and the controls between them */

typedef struct last_trials {
    mgl_trial list[LAST + 1]; /* (count) */
    int count;
} last_trials;

static mgl_status get(const mgl_tune *tune, int64_t number, last_trials *to, mgl_error *err)
{
    return mgl_store_get_trial(tune->store, tune->record.id, number, false, &to->list[to->count++],
                               err);
}

/* Fetches the last trials. If the incumbent is older, fetches it first. */
static mgl_status get_last(const mgl_tune *tune, last_trials *to, mgl_error *err)
{
    const mgl_campaign_record *c = &tune->record;
    int64_t from = c->trials > LAST ? c->trials - LAST + 1 : 1;
    mgl_status status = MGL_OK;
    if (c->incumbent > 0 && c->incumbent < from)
        status = get(tune, c->incumbent, to, err);
    for (int64_t n = from; n <= c->trials && !status; n++)
        status = get(tune, n, to, err);
    return status;
}

mgl_status mgl_tune_show_prompt(const mgl_tune *tune, mgl_text *out, mgl_error *err)
{
    mgl_chat_options options;
    last_trials last = {0};
    mgl_status status = make_options(tune, &options, err);
    if (!status && tune->store && tune->record.id)
        status = get_last(tune, &last, err);
    if (!status)
        status = mgl_chat_show(&options, last.list, last.count, out, err);
    for (int i = 0; i < last.count; i++)
        mgl_trial_clear(&last.list[i]);
    return status;
}
