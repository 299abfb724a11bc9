/* megalith campaign report: the campaign as a page, or as Markdown for the terminal. */
#include "cli/campaign.h"

#include "autotune/report.h"

#include <string.h>

#define REPORT_OPTIONS(X)                                                                          \
    X(text, output, "-o", "F.html", 0, 0, "one HTML file there, rather than Markdown here")        \
    MGL_CLI_STORE_OPTION(X)
MGL_CLI_OPTIONS(REPORT_OPTIONS)

static mgl_status report(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    mgl_cli_campaign c = {0};
    mgl_text text = {0};
    mgl_status status = mgl_cli_campaign_open(o->store.value, operand, false, &c, err);
    const mgl_report_options how = {.running = !status && !strcmp(c.record.state, "running")};
    if (!status && o->output.given)
        status = mgl_report_html(c.store, &c.record, &how, &text, err);
    else if (!status)
        status = mgl_report_markdown(c.store, &c.record, &text, err);
    if (!status)
        status = mgl_cli_campaign_write(o->output.value, &text, err);
    mgl_text_clear(&text);
    mgl_cli_campaign_close(&c);
    return status;
}

const mgl_cli_verb mgl_cli_campaign_report_verb = {
    .name = "campaign report",
    .operand = "NAME",
    .operand_optional = true,
    .summary = "what a campaign found, as one HTML file or as Markdown",
    .example = "  megalith campaign report -o night.html",
    MGL_CLI_VERB_OPTIONS,
    .run = report,
};
