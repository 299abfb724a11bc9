/* megalith campaign status: prints the state of a campaign. */
#include "cli/campaign/campaign.h"

#define STATUS_OPTIONS(X)                                                                          \
    MGL_CLI_STORE_OPTION(X)                                                                        \
    MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(STATUS_OPTIONS)

static mgl_status print_json(const mgl_cli_campaign *c, mgl_error *err)
{
    mgl_json_out out = {0};
    mgl_json_out_begin(&out, "megalith.campaign/1");
    mgl_status status = mgl_cli_campaign_put(&out, c->store, &c->record, err);
    return mgl_cli_finish_json(&out, status);
}

static mgl_status show_status(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    mgl_cli_campaign c = {0};
    mgl_status status = mgl_cli_campaign_open(o->store.value, operand, false, &c, err);
    if (!status)
        status =
            o->json.given ? print_json(&c, err) : mgl_cli_campaign_print(c.store, &c.record, err);
    mgl_cli_campaign_close(&c);
    return status;
}

const mgl_cli_verb mgl_cli_campaign_status_verb = {
    .name = "campaign status",
    .operand = "NAME",
    .operand_optional = true,
    .summary = "prints the progress of a campaign and its best result so far (the newest)",
    .example = "  megalith campaign status --json",
    MGL_CLI_VERB_OPTIONS,
    .run = show_status,
};
