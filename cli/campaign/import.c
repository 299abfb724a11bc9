/*
 * megalith campaign import F: starts a campaign from the winner of an archive. The winner is
 * replayed, validated and measured on this machine before it is used.
 */
#include "cli/campaign/campaign.h"

#include "base/file.h"
#include "base/memory.h"

#define IMPORT_OPTIONS(X)                                                                          \
    X(text, name, "--name", "NAME", 0, 0, "name of the new campaign (the archive's)")              \
    X(text, device, "--device", "cuda[:N]|cpu|none", 0, 0,                                         \
      "replaces the archive's device: none proves, cpu also executes (cuda for a GPU of the "      \
      "archive's model; or none, if the archive has none)")                                        \
    X(flag, allow_formats, "--allow-formats", NULL, 0, 0,                                          \
      "allow the winner to change number formats")                                                 \
    MGL_CLI_STORE_OPTION(X)                                                                        \
    MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(IMPORT_OPTIONS)

static void tell(const struct options *o, const mgl_campaign_record *c)
{
    mgl_json_out out = {0};
    if (!o->json.given) {
        mgl_cli_printf("%s: imported the archive's winner; `megalith campaign resume` replays, "
                       "validates and measures it\n",
                       c->name);
        return;
    }
    mgl_json_out_begin(&out, "megalith.campaign/1");
    mgl_answer_campaign(&out, c);
    mgl_cli_end_json(&out);
}

static mgl_status import_archive(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    const mgl_tune_request request = {
        .name = o->name.value, .device = o->device.value, .allow_formats = o->allow_formats.given};
    mgl_store *store = NULL;
    mgl_archive archive = {0};
    mgl_campaign_record record = {0};
    char *text = NULL;
    size_t length = 0;
    mgl_status status = mgl_file_read(operand, MGL_ARCHIVE_MAX, &text, &length, err);
    if (!status)
        status = mgl_archive_parse(text, length, operand, &archive, err);
    if (!status)
        status = mgl_store_open(o->store.value, true, &store, err);
    if (!status)
        status = mgl_tune_import(store, &archive, &request, &record, err);
    if (!status)
        tell(o, &record);
    mgl_campaign_record_clear(&record);
    mgl_archive_clear(&archive);
    mgl_store_close(store);
    mgl_free(text);
    return status;
}

const mgl_cli_verb mgl_cli_campaign_import_verb = {
    .name = "campaign import",
    .operand = "F",
    .operand_is_file = true,
    .summary = "begins a campaign with an archive's winner, which is measured before it is used",
    .example = "  megalith campaign import night.json --name other-card",
    MGL_CLI_VERB_OPTIONS,
    .run = import_archive,
};
