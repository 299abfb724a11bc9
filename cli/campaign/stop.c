/*
 * megalith campaign stop: asks the process that runs a campaign to end it after the current trial.
 */
#include "cli/campaign/campaign.h"

#include <string.h>

#define STOP_OPTIONS(X)                                                                            \
    MGL_CLI_STORE_OPTION(X)                                                                        \
    MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(STOP_OPTIONS)

static mgl_status stop(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    mgl_cli_campaign c = {0};
    mgl_json_out out = {0};
    bool running = false;
    mgl_status status = mgl_cli_campaign_open(o->store.value, operand, true, &c, err);
    if (!status)
        status = mgl_tune_stop(c.store, &c.record, &running, err);
    if (!status && o->json.given) {
        mgl_json_out_begin(&out, "megalith.campaign/1");
        mgl_answer_campaign(&out, &c.record);
        mgl_json_out_bool(&out, "running", running);
        mgl_cli_end_json(&out);
    } else if (!status) {
        bool ended = c.record.state && !strcmp(c.record.state, "ended");
        mgl_cli_printf(running ? "%s stops after the current trial\n"
                       : ended ? "%s has already ended\n"
                               : "%s was not running; it is now stopped\n",
                       c.record.name);
    }
    mgl_cli_campaign_close(&c);
    return status;
}

const mgl_cli_verb mgl_cli_campaign_stop_verb = {
    .name = "campaign stop",
    .operand = "NAME",
    .operand_optional = true,
    .summary = "stops a campaign after the current trial",
    .example = "  megalith campaign stop",
    MGL_CLI_VERB_OPTIONS,
    .run = stop,
};
