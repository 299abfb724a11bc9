/* megalith campaign delete: deletes a campaign and all its trials from the store. */
#include "cli/campaign/campaign.h"

#define DELETE_OPTIONS(X)                                                                          \
    MGL_CLI_STORE_OPTION(X)                                                                        \
    MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(DELETE_OPTIONS)

static mgl_status delete_campaign(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    mgl_cli_campaign c = {0};
    mgl_json_out out = {0};
    mgl_status status = mgl_cli_campaign_open(o->store.value, operand, true, &c, err);
    if (!status)
        status = mgl_tune_delete(c.store, &c.record, err);
    if (!status && o->json.given) {
        mgl_json_out_begin(&out, "megalith.campaign/1");
        mgl_answer_campaign(&out, &c.record);
        mgl_json_out_bool(&out, "deleted", true);
        mgl_cli_end_json(&out);
    } else if (!status) {
        mgl_cli_printf("deleted %s and its %lld trials\n", c.record.name,
                       (long long)c.record.trials);
    }
    mgl_cli_campaign_close(&c);
    return status;
}

const mgl_cli_verb mgl_cli_campaign_delete_verb = {
    .name = "campaign delete",
    .operand = "NAME",
    .summary = "deletes a campaign and all its trials",
    .example = "  megalith campaign delete smollm2-night",
    MGL_CLI_VERB_OPTIONS,
    .run = delete_campaign,
};
