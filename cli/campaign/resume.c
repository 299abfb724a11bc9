/* megalith campaign resume: continues a campaign. All its parameters are read from the store. */
#include "cli/campaign/campaign.h"

#define RESUME_OPTIONS(X)                                                                          \
    MGL_CLI_RUN_OPTIONS(X)                                                                         \
    MGL_CLI_CHAT_OPTIONS(X)                                                                        \
    X(text, device, "--device", "cuda[:N]", 0, 0,                                                  \
      "another GPU of the same model (the campaign's GPU)")                                        \
    X(flag, rebase, "--rebase", NULL, 0, 0,                                                        \
      "if the frozen files have changed (exit 6 without this flag): begin a successor, NAME-2, "   \
      "which measures the best candidate again")                                                   \
    MGL_CLI_STORE_OPTION(X)                                                                        \
    MGL_CLI_QUIET_OPTION(X)                                                                        \
    MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(RESUME_OPTIONS)

static mgl_status resume(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    mgl_store *store = NULL;
    mgl_tune tune = {0};
    const mgl_cli_tuning how = MGL_CLI_TUNING("campaign resume", o);
    mgl_status status = mgl_cli_check_tuning(&how, o->store.value, err);
    if (!status)
        status = mgl_store_open(o->store.value, true, &store, err);
    if (!status)
        status = o->rebase.given ? mgl_tune_rebase(store, operand, &tune, err)
                                 : mgl_tune_find(store, operand, &tune, err);
    if (!status)
        status = mgl_cli_check_ended(&tune, &how, err);
    if (!status)
        status = mgl_cli_tune(&tune, &how, err);
    mgl_tune_clear(&tune);
    mgl_store_close(store);
    return status;
}

const mgl_cli_verb mgl_cli_campaign_resume_verb = {
    .name = "campaign resume",
    .operand = "NAME",
    .operand_optional = true,
    .summary = "resumes a campaign (the newest)",
    .example = "  megalith campaign resume --hours 16",
    MGL_CLI_VERB_OPTIONS,
    .run = resume,
};
