/*
 * The proposer that asks a language model, at any endpoint of OpenAI's chat form. Several requests
 * are in flight, so that the device does not wait for answers. What is sent holds the device's
 * profile, the space, the best program, where its time goes and the last verdicts; no host, no
 * user, no path, and texts of others only within marked borders. What comes back is a proposal like
 * any other.
 */
#ifndef MGL_AUTOTUNE_AGENTS_CHAT_H
#define MGL_AUTOTUNE_AGENTS_CHAT_H

#include "autotune/search/campaign.h"
#include "autotune/search/proposer.h"
#include "autotune/store/store.h"

typedef struct mgl_chat_options {
    const mgl_subject *subject; /* must outlive the proposer */
    const char *device;         /* "NVIDIA H200"; "none" */
    const char *shape;          /* name of the model's shape: never a path */
    const char *url, *model;    /* of the endpoint */
    const char *key;            /* NULL: none is sent; kept in this process's memory alone */
    mgl_store *store;           /* for messages and costs; NULL: they are not kept */
    int64_t campaign;
    int64_t budget_tokens, budget_requests; /* of the campaign's life; 0: no limit */
    int flights;                            /* requests at once; 0: 2 */
    double timeout_s;                       /* of a request; 0: 120 */
    /* Told when requests begin to fail, or fail in another way, and when answers come again; NULL:
     * nobody is. */
    void (*on_event)(void *user, const mgl_campaign_event *event);
    void *user;
} mgl_chat_options;

/* MGL_USAGE: an endpoint that may not be asked, or no libcurl. */
mgl_status mgl_chat_open(const mgl_chat_options *options, mgl_proposer **out, mgl_error *err);

/* The body of the request that would be sent next. Works without libcurl. */
mgl_status mgl_chat_show(const mgl_chat_options *options, const mgl_trial *trials, int count,
                         mgl_text *out, mgl_error *err);

/* The key of the environment's MEGALITH_CHAT_KEY, which is removed from it; *out is NULL when there
 * is none. Or of a file that nobody but its owner may read (MGL_USAGE otherwise), or of MGL_STDIN.
 * Wipe and release it with mgl_chat_forget_key. */
mgl_status mgl_chat_take_key(char **out, mgl_error *err);
mgl_status mgl_chat_read_key(const char *path, char **out, mgl_error *err);
void mgl_chat_forget_key(char *key); /* NULL is fine */

#endif
