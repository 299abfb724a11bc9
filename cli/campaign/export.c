/* megalith campaign export: writes the result of a campaign as one archive. */
#include "cli/campaign/campaign.h"

#define EXPORT_OPTIONS(X)                                                                          \
    X(text, output, "-o", "F", 0, 0, "write to this file (default: standard output)")              \
    MGL_CLI_STORE_OPTION(X)
MGL_CLI_OPTIONS(EXPORT_OPTIONS)

/* Prints to standard error, because standard output contains only the archive. */
static mgl_status say_predicted(mgl_store *store, const char *name, mgl_error *err)
{
    mgl_text line = {0};
    mgl_campaign_record record = {0};
    mgl_answer_predicted best;
    mgl_status status = mgl_store_find_campaign(store, name, &record, err);
    if (!status)
        status = mgl_answer_find_predicted(store, &record, &best, err);
    if (!status && best.number) {
        mgl_answer_predicted_line(&best, &line);
        if (!line.failed)
            mgl_cli_say("campaign export", "%s", line.bytes);
    }
    mgl_text_clear(&line);
    mgl_campaign_record_clear(&record);
    return status;
}

static mgl_status export_campaign(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    mgl_store *store = NULL;
    mgl_text text = {0};
    mgl_status status = mgl_store_open(o->store.value, false, &store, err);
    if (!status)
        status = mgl_archive_write(store, operand, &text, err);
    if (!status)
        status = say_predicted(store, operand, err);
    if (!status)
        status = mgl_cli_write_text(o->output.value, &text, err);
    mgl_text_clear(&text);
    mgl_store_close(store);
    return status;
}

const mgl_cli_verb mgl_cli_campaign_export_verb = {
    .name = "campaign export",
    .operand = "NAME",
    .operand_optional = true,
    .summary = "writes the winner with its moves and measurements as one archive, without paths",
    .example = "  megalith campaign export -o night.json",
    MGL_CLI_VERB_OPTIONS,
    .run = export_campaign,
};
