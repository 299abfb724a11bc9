/*
 * megalith campaign report: writes the campaign's report as an HTML page, or as Markdown for a
 * terminal.
 */
#include "cli/campaign/campaign.h"

#include "autotune/report/report.h"
#include "base/file.h"

#include <string.h>

#define REPORT_OPTIONS(X)                                                                          \
    X(text, output, "-o", "F.html", 0, 0,                                                          \
      "write one HTML file (default: Markdown to standard output)")                                \
    MGL_CLI_STORE_OPTION(X)
MGL_CLI_OPTIONS(REPORT_OPTIONS)

/* Rejects the store's own path, because the page would overwrite all campaigns. */
static mgl_status check_place(mgl_store *store, const char *path, mgl_error *err)
{
    if (!path || mgl_store_is_shared(store))
        return MGL_OK;
    return mgl_file_check_output(path, mgl_store_path(store), err);
}

mgl_status mgl_cli_campaign_report(mgl_store *store, const char *name, bool running,
                                   const char *path, mgl_error *err)
{
    mgl_campaign_record record = {0};
    mgl_text page = {0};
    mgl_status status = check_place(store, path, err);
    if (!status)
        status = mgl_store_find_campaign(store, name, &record, err);
    if (!status)
        status =
            mgl_report_html(store, &record, &(mgl_report_options){.running = running}, &page, err);
    if (!status)
        status = mgl_cli_write_text(path, &page, err);
    mgl_text_clear(&page);
    mgl_campaign_record_clear(&record);
    return status;
}

static mgl_status report(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    mgl_cli_campaign c = {0};
    mgl_text text = {0};
    mgl_status status = mgl_cli_campaign_open(o->store.value, operand, false, &c, err);
    if (!status)
        status = check_place(c.store, o->output.value, err);
    const mgl_report_options how = {.running = !status && !strcmp(c.record.state, "running")};
    if (!status && o->output.given)
        status = mgl_report_html(c.store, &c.record, &how, &text, err);
    else if (!status)
        status = mgl_report_markdown(c.store, &c.record, &text, err);
    if (!status)
        status = mgl_cli_write_text(o->output.value, &text, err);
    mgl_text_clear(&text);
    mgl_cli_campaign_close(&c);
    return status;
}

const mgl_cli_verb mgl_cli_campaign_report_verb = {
    .name = "campaign report",
    .operand = "NAME",
    .operand_optional = true,
    .summary = "reports what a campaign found, as one HTML file or as Markdown",
    .example = "  megalith campaign report -o night.html",
    MGL_CLI_VERB_OPTIONS,
    .run = report,
};
