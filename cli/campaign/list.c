/* megalith campaign list: prints the campaigns of a store. */
#include "cli/campaign/campaign.h"

#define LIST_OPTIONS(X)                                                                            \
    MGL_CLI_STORE_OPTION(X)                                                                        \
    MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(LIST_OPTIONS)

typedef struct listing {
    mgl_store *store;
    mgl_json_out *out; /* NULL: print lines */
} listing;

static void tell(const listing *to, const mgl_campaign_record *c)
{
    if (!to->out) {
        mgl_cli_printf("%-9s %8lld trials %8.2f h  %s\n", c->state, (long long)c->trials,
                       c->seconds / 3600, c->name);
        return;
    }
    mgl_json_out_object(to->out, NULL);
    mgl_answer_campaign(to->out, c);
    mgl_json_out_close_object(to->out);
}

/* The caller owns the record. A copy gets the current state of the campaign. */
static mgl_status list_one(void *user, const mgl_campaign_record *c, mgl_error *err)
{
    const listing *to = user;
    mgl_campaign_record now;
    mgl_status status = mgl_store_find_campaign(to->store, c->name, &now, err);
    if (!status)
        status = mgl_tune_look_state(to->store, &now, err);
    if (!status)
        tell(to, &now);
    mgl_campaign_record_clear(&now);
    return status;
}

static mgl_status list(const char *operand, const void *options, mgl_error *err)
{
    (void)operand;
    const struct options *o = options;
    mgl_store *store = NULL;
    mgl_json_out out = {0};
    mgl_status status = mgl_store_open(o->store.value, false, &store, err);
    listing to = {store, o->json.given ? &out : NULL};
    if (o->json.given) {
        mgl_json_out_begin(&out, "megalith.campaign/1");
        mgl_json_out_array(&out, "campaigns");
    }
    if (!status)
        status = mgl_store_each_campaign(store, list_one, &to, err);
    if (!status && o->json.given) {
        mgl_json_out_close_array(&out);
        mgl_cli_end_json(&out);
    }
    mgl_text_clear(&out.text);
    mgl_store_close(store);
    return status;
}

const mgl_cli_verb mgl_cli_campaign_list_verb = {
    .name = "campaign list",
    .summary = "lists the campaigns of a store, oldest first",
    .example = "  megalith campaign list",
    MGL_CLI_VERB_OPTIONS,
    .run = list,
};
