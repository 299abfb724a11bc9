/*
 * megalith campaign next: prints as JSON what an external proposer needs: the space, the best
 * proposal, the last verdicts, and how to submit.
 */
#include "cli/campaign/campaign.h"

#define NEXT_OPTIONS(X)                                                                            \
    MGL_CLI_STORE_OPTION(X)                                                                        \
    MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(NEXT_OPTIONS)

static mgl_status next(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    mgl_cli_campaign c = {0};
    mgl_json_out out = {0};
    mgl_status status = mgl_cli_campaign_open(o->store.value, operand, false, &c, err);
    if (!status) {
        mgl_json_out_begin(&out, "megalith.campaign/1");
        status = mgl_answer_next(&out, c.store, &c.record, err);
    }
    if (!status)
        mgl_cli_end_json(&out);
    mgl_text_clear(&out.text);
    mgl_cli_campaign_close(&c);
    return status;
}

const mgl_cli_verb mgl_cli_campaign_next_verb = {
    .name = "campaign next",
    .operand = "NAME",
    .operand_optional = true,
    .summary = "prints what a proposer needs, as JSON: space, best, latest verdicts, how to submit",
    .example = "  megalith campaign next",
    MGL_CLI_VERB_OPTIONS,
    .run = next,
};
