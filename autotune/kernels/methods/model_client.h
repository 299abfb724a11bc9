/*
 * Model clients: send a request of a loop to a model and return the reply. The replay client reads
 * answers from a file, for tests and replays. The chat client calls an HTTP endpoint. An external
 * proposer needs no client: one command prints the request, another takes the answer.
 */
#ifndef MGL_AUTOTUNE_KERNELS_METHODS_MODEL_CLIENT_H
#define MGL_AUTOTUNE_KERNELS_METHODS_MODEL_CLIENT_H

#include "autotune/store/record.h"
#include "base/text.h"

/* One reply. Release with mgl_reply_clear. */
typedef struct mgl_reply {
    mgl_trial_verdict verdict; /* MGL_OUTCOME_OK: content is set; else PROPOSER_... */
    mgl_text content;          /* the answer of the model */
    double retry_after_s;      /* negative: not given by the endpoint */
    double seconds;
    int64_t tokens_in,
        tokens_out; /* the token counts are estimates, because the endpoint gave none */
} mgl_reply;
void mgl_reply_clear(mgl_reply *reply);

typedef struct mgl_model_client mgl_model_client;
struct mgl_model_client {
    const char *name;
    /* Waits for the answer. Endpoint errors are outcomes of the reply. */
    mgl_status (*ask)(mgl_model_client *self, const char *body, size_t length, mgl_reply *out,
                      mgl_error *err);
    void (*close)(mgl_model_client *self);
};
void mgl_model_client_close(mgl_model_client *model_client); /* NULL is fine */

/*
 * The client replays a JSON list of answers in order. An answer is a string, or an object
 *     {"content": "...", "outcome": "PROPOSER_RATE", "retry_after_s": 2,
 *      "tokens_in": 100, "tokens_out": 20}
 * with `content` or `outcome`; all other members are optional. After the last answer every request
 * ends with PROPOSER_BUDGET.
 */
mgl_status mgl_model_client_open_replay(const char *path, mgl_model_client **out, mgl_error *err);
/* Opens a replay client from a text; `file` is the name in messages. */
mgl_status mgl_model_client_open_replay_text(const char *text, size_t length, const char *file,
                                             mgl_model_client **out, mgl_error *err);

typedef struct mgl_model_client_chat_options {
    const char *url;
    const char *key;         /* NULL: none is sent; only the transport stores the key */
    double timeout_s;        /* per request; 0: 300 */
    const atomic_int *abort; /* may be NULL */
} mgl_model_client_chat_options;
/* MGL_USAGE: the endpoint is not allowed, or libcurl is missing. */
mgl_status mgl_model_client_open_chat(const mgl_model_client_chat_options *options,
                                      mgl_model_client **out, mgl_error *err);

/* Delay between two requests of a loop; tests use a simulated clock. */
typedef struct mgl_waiter {
    /* Fails with MGL_INTERRUPTED if the wait was aborted. */
    mgl_status (*wait)(void *user, double seconds, mgl_error *err);
    void *user;
} mgl_waiter;
/* Waits in real time; `abort` may be NULL. */
mgl_waiter mgl_waiter_real(const atomic_int *abort);

#endif
