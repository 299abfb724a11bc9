/*
 * Chat proposer: asks a language model at an OpenAI-compatible chat endpoint for proposals. Several
 * requests are in flight, so that the device does not wait for answers. A request contains the
 * device profile, the search space, the best program, the distribution of its time, and the last
 * verdicts. It contains no host name, user name or path. Foreign texts are only between marked
 * delimiters. An answer becomes a proposal like any other. Campaigns use this proposer.
 */
#ifndef MGL_AUTOTUNE_AGENTS_CHAT_H
#define MGL_AUTOTUNE_AGENTS_CHAT_H

#include "autotune/search/campaign.h"
#include "autotune/search/proposer.h"
#include "autotune/store/store.h"

typedef struct mgl_chat_options {
    const mgl_subject *subject; /* must outlive the proposer */
    const char *device;         /* "NVIDIA H200"; "none" */
    const char *shape;          /* name of the model's shape, never a path */
    const char *url, *model;    /* URL and model name of the endpoint */
    const char *key;            /* NULL: none is sent; kept only in this process's memory */
    mgl_store *store;           /* receives messages and costs; NULL: they are not stored */
    int64_t campaign;
    int64_t budget_tokens, budget_requests; /* limits over the life of the campaign; 0: no limit */
    int flights;                            /* concurrent requests; 0: 2 */
    double timeout_s;                       /* per request; 0: 120 */
    /* Called when requests start to fail, fail in another way, or succeed again; may be NULL. */
    void (*on_event)(void *user, const mgl_campaign_event *event);
    void *user;
} mgl_chat_options;

/* MGL_USAGE: the endpoint is not allowed, or libcurl is missing. */
mgl_status mgl_chat_open(const mgl_chat_options *options, mgl_proposer **out, mgl_error *err);

/* The body of the next request. Works without libcurl. */
mgl_status mgl_chat_show(const mgl_chat_options *options, const mgl_trial *trials, int count,
                         mgl_text *out, mgl_error *err);

/*
 * mgl_chat_take_key takes the key from the environment variable MEGALITH_CHAT_KEY and removes the
 * variable; *out is NULL if it is not set. mgl_chat_read_key reads it from MGL_STDIN, or from a
 * file that only its owner can read (otherwise MGL_USAGE). Wipe and release the key with
 * mgl_chat_forget_key.
 */
mgl_status mgl_chat_take_key(char **out, mgl_error *err);
mgl_status mgl_chat_read_key(const char *path, char **out, mgl_error *err);
void mgl_chat_forget_key(char *key); /* NULL is fine */

#endif
