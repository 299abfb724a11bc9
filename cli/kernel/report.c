/* megalith kernel report: prints the experiment log by op and by idea, with failures included. */
#include "cli/kernel/loop.h"

#define REPORT_OPTIONS(X)                                                                          \
    X(flag, csv, "--csv", NULL, 0, 0, "print every row as CSV")                                    \
    X(text, experiment_log, "--log", "F.json", 0, 0,                                               \
      "the experiment log (experiment_log.json in --folder)")                                      \
    MGL_CLI_FOLDER_OPTION(X)
MGL_CLI_OPTIONS(REPORT_OPTIONS)

static mgl_status report(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    mgl_experiment_log experiment_log = {0};
    mgl_text out = {0};
    (void)operand;
    mgl_status status = mgl_kernel_store_experiment_log(o->experiment_log.value, o->folder.value,
                                                        &experiment_log, err);
    if (!status)
        (o->csv.given ? mgl_experiment_log_put_csv
                      : mgl_experiment_log_put_markdown)(&experiment_log, &out);
    if (!status)
        status = mgl_cli_write_text(NULL, &out, err);
    mgl_experiment_log_clear(&experiment_log);
    mgl_text_clear(&out);
    return status;
}

const mgl_cli_verb mgl_cli_kernel_report_verb = {
    .name = "kernel report",
    .summary = "summarizes the experiment log by op and by idea, with counts of failures",
    .example = "  megalith kernel report\n"
               "  megalith kernel report --csv > tried.csv",
    MGL_CLI_VERB_OPTIONS,
    .run = report,
};
