/* megalith campaign list: the campaigns of a store. */
#include "cli/campaign.h"

#define LIST_OPTIONS(X)                                                                            \
    MGL_CLI_STORE_OPTION(X)                                                                        \
    MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(LIST_OPTIONS)

static mgl_status print_one(void *user, const mgl_campaign_record *c, mgl_error *err)
{
    (void)user, (void)err;
    mgl_cli_printf("%-9s %8lld trials %8.2f h  %s\n", c->state, (long long)c->trials,
                   c->seconds / 3600, c->name);
    return MGL_OK;
}

static mgl_status put_one(void *user, const mgl_campaign_record *c, mgl_error *err)
{
    (void)err;
    mgl_json_out_object(user, NULL);
    mgl_answer_campaign(user, c);
    mgl_json_out_close_object(user);
    return MGL_OK;
}

static mgl_status list(const char *operand, const void *options, mgl_error *err)
{
    (void)operand;
    const struct options *o = options;
    mgl_store *store = NULL;
    mgl_json_out out = {0};
    mgl_status status = mgl_cli_store_open(o->store.value, false, &store, err);
    if (!status && !o->json.given)
        status = mgl_store_each_campaign(store, print_one, NULL, err);
    if (!status && o->json.given) {
        mgl_json_out_begin(&out, "megalith.campaign/1");
        mgl_json_out_array(&out, "campaigns");
        status = mgl_store_each_campaign(store, put_one, &out, err);
        mgl_json_out_close_array(&out);
    }
    if (!status && o->json.given)
        mgl_cli_end_json(&out);
    mgl_text_clear(&out.text);
    mgl_store_close(store);
    return status;
}

const mgl_cli_verb mgl_cli_campaign_list_verb = {
    .name = "campaign list",
    .summary = "the campaigns of a store, oldest first",
    .example = "  megalith campaign list",
    MGL_CLI_VERB_OPTIONS,
    .run = list,
};
