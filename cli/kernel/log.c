/* megalith kernel log UNIT: prints the versions of a branch, newest first. */
#include "cli/kernel/loop.h"

#define LOG_OPTIONS(X)                                                                             \
    X(text, at, "--at", "NAME", 0, 0, "version to begin at (the current branch)")                  \
    MGL_CLI_PLACE_OPTIONS(X)                                                                       \
    MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(LOG_OPTIONS)

enum { SHOWN = 12 /* digits of an id */ };

static mgl_status print_one(void *user, const mgl_version_record *r, mgl_error *err)
{
    (void)user, (void)err;
    mgl_cli_printf("%.*s  %-12s %-18s %s\n", SHOWN, r->id, mgl_outcome_name(r->verdict.outcome),
                   r->transformation, r->note);
    return MGL_OK;
}

static mgl_status log_json(const struct options *o, const mgl_kernel_store *b, mgl_error *err)
{
    mgl_json_out out = {0};
    mgl_json_out_begin(&out, "megalith.kernel/1");
    mgl_status status = mgl_kernel_store_put_log(b, o->at.value, &out, err);
    return mgl_cli_finish_json(&out, status);
}

static mgl_status show_log(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    const mgl_kernel_store_options how = MGL_CLI_PLACE(o, true);
    mgl_kernel_store b = {0};
    mgl_status status = mgl_kernel_store_open(operand, &how, &b, err);
    if (!status)
        status = o->json.given ? log_json(o, &b, err)
                               : mgl_versions_log(mgl_kernel_session_versions(b.bench), o->at.value,
                                                  print_one, NULL, err);
    mgl_kernel_store_close(&b);
    return status;
}

const mgl_cli_verb mgl_cli_kernel_log_verb = {
    .name = "kernel log",
    .operand = "UNIT",
    .summary = "lists the versions of a branch, newest first",
    .example = "  megalith kernel log merge",
    .notes = MGL_CLI_PLACE_NOTES,
    MGL_CLI_VERB_OPTIONS,
    .run = show_log,
};
