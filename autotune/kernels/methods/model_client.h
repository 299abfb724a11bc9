/*
 * Askers: how a request of a loop reaches who answers, and the answer comes back. A script plays a
 * file of answers, for tests and for replays; chat asks an endpoint. An external proposer has none:
 * the request is printed, and the answer is handed in, each by a command of its own.
 */
#ifndef MGL_AUTOTUNE_KERNELS_METHODS_MODEL_CLIENT_H
#define MGL_AUTOTUNE_KERNELS_METHODS_MODEL_CLIENT_H

#include "autotune/store/record.h"
#include "base/text.h"

/* What came back. Release with mgl_reply_clear. */
typedef struct mgl_reply {
    mgl_outcome outcome; /* MGL_OUTCOME_OK: there is a content; or PROPOSER_... */
    char diagnostic[MGL_MAX_DIAGNOSTIC + 1];
    mgl_text content, raw; /* what the model said; the response as it came */
    double retry_after_s;  /* negative: the endpoint did not say */
    double seconds;
    int64_t tokens_in, tokens_out;
    bool estimated; /* the endpoint did not say how many */
} mgl_reply;
void mgl_reply_clear(mgl_reply *reply);

typedef struct mgl_model_client mgl_model_client;
struct mgl_model_client {
    const char *name;
    /* Waits for the answer. What goes wrong on the way is an outcome of the reply. */
    mgl_status (*ask)(mgl_model_client *self, const char *body, size_t length, mgl_reply *out,
                      mgl_error *err);
    void (*close)(mgl_model_client *self);
};
void mgl_model_client_close(mgl_model_client *model_client); /* NULL is fine */

/* A JSON list of answers, which are given in turn. Each is a string, or an object
 *     {"content": "...", "outcome": "PROPOSER_RATE", "retry_after_s": 2,
 *      "tokens_in": 100, "tokens_out": 20}
 * of which every member but one of the first two may be left out. Behind the last one every request
 * ends with PROPOSER_BUDGET. */
mgl_status mgl_model_client_open_replay(const char *path, mgl_model_client **out, mgl_error *err);
/* The same of a text; `file` for messages. */
mgl_status mgl_model_client_open_replay_text(const char *text, size_t length, const char *file,
                                             mgl_model_client **out, mgl_error *err);
/* How many answers were given. */
int mgl_model_client_replay_used(const mgl_model_client *script);

typedef struct mgl_model_client_chat_options {
    const char *url;
    const char *key;         /* NULL: none is sent; the transport alone keeps it */
    double timeout_s;        /* of a request; 0: 300 */
    const atomic_int *abort; /* may be NULL */
} mgl_model_client_chat_options;
/* MGL_USAGE: an endpoint that may not be asked, or no libcurl. */
mgl_status mgl_model_client_open_chat(const mgl_model_client_chat_options *options,
                                      mgl_model_client **out, mgl_error *err);

/* How long a loop waits between two requests; tests have a clock of their own. */
typedef struct mgl_waiter {
    /* Fails with MGL_INTERRUPTED when the wait was broken off. */
    mgl_status (*wait)(void *user, double seconds, mgl_error *err);
    void *user;
} mgl_waiter;
/* The real one; `abort` may be NULL. */
mgl_waiter mgl_waiter_real(const atomic_int *abort);

#endif
