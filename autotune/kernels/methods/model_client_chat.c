/* The model client that sends requests to an HTTP endpoint, and the waiter in real time. */
#include "autotune/kernels/methods/model_client.h"

#include "autotune/agents/completion.h"
#include "base/clock.h"
#include "base/memory.h"

#include <string.h>
#include <time.h>

static const double default_timeout_s = 300, slice_s = 0.25;

typedef struct chat {
    mgl_model_client model_client; /* first member: a chat is a model client */
    mgl_http *http;
    double timeout_s;
    const atomic_int *abort;
} chat;

static mgl_status take_response(const mgl_http_response *response, mgl_reply *out, mgl_error *err)
{
    mgl_completion c;
    mgl_completion_read(response, &c);
    out->verdict = c.verdict;
    mgl_text_put(&out->content, c.content ? c.content : "");
    out->retry_after_s = response->retry_after_s;
    out->seconds = response->seconds;
    out->tokens_in = c.tokens_in;
    out->tokens_out = c.tokens_out;
    if (c.estimated && c.content)
        out->tokens_out = (int64_t)(strlen(c.content) / MGL_COMPLETION_BYTES_OF_A_TOKEN);
    mgl_completion_clear(&c);
    return out->content.failed ? mgl_fail_memory(err, response->length) : MGL_OK;
}

static mgl_status ask_chat(mgl_model_client *self, const char *body, size_t length, mgl_reply *out,
                           mgl_error *err)
{
    chat *c = (chat *)self;
    mgl_http_response response;
    bool ended = false;
    int request;
    *out = (mgl_reply){.retry_after_s = -1};
    mgl_status status = mgl_http_start(c->http, body, length, c->timeout_s, &request, err);
    while (!status && !ended) {
        status = mgl_check_abort(c->abort, err);
        if (!status)
            status = mgl_http_poll(c->http, slice_s, &ended, &response, err);
    }
    return status ? status : take_response(&response, out, err);
}

static void close_chat(mgl_model_client *self)
{
    chat *c = (chat *)self;
    mgl_http_close(c->http);
    mgl_free(c);
}

mgl_status mgl_model_client_open_chat(const mgl_model_client_chat_options *options,
                                      mgl_model_client **out, mgl_error *err)
{
    *out = NULL;
    chat *c = mgl_alloc_zero(1, sizeof *c);
    if (!c)
        return mgl_fail_memory(err, sizeof *c);
    c->model_client = (mgl_model_client){"chat", ask_chat, close_chat};
    c->timeout_s = options->timeout_s > 0 ? options->timeout_s : default_timeout_s;
    c->abort = options->abort;
    mgl_status status = mgl_http_open(options->url, options->key, &c->http, err);
    if (status)
        close_chat(&c->model_client);
    else
        *out = &c->model_client;
    return status;
}

void mgl_model_client_close(mgl_model_client *model_client)
{
    if (model_client)
        model_client->close(model_client);
}

void mgl_reply_clear(mgl_reply *reply)
{
    mgl_text_clear(&reply->content);
    *reply = (mgl_reply){0};
}

/* ---- the real clock -------------------------------------------------------------------------- */

static mgl_status wait_real(void *user, double seconds, mgl_error *err)
{
    const atomic_int *abort = user;
    double until = mgl_clock_s() + seconds, left;
    while ((left = until - mgl_clock_s()) > 0) {
        double now = left < slice_s ? left : slice_s;
        const struct timespec moment = {.tv_nsec = (long)(now * 1e9)};
        mgl_status status = mgl_check_abort(abort, err);
        if (status)
            return status;
        nanosleep(&moment, NULL);
    }
    return MGL_OK;
}

mgl_waiter mgl_waiter_real(const atomic_int *abort)
{
    return (mgl_waiter){wait_real, (void *)(uintptr_t)abort};
}
