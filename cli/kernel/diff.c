/*
 * megalith kernel diff UNIT: prints the difference between two versions, or between a version and
 * the original text of the unit.
 */
#include "cli/kernel/loop.h"

#define DIFF_OPTIONS(X)                                                                            \
    X(text, from, "--from", "NAME", 0, 0, "the old version (original)")                            \
    X(text, to, "--to", "NAME", 0, 0, "the new version (the current branch)")                      \
    MGL_CLI_PLACE_OPTIONS(X)
MGL_CLI_OPTIONS(DIFF_OPTIONS)

static mgl_status diff(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    const mgl_kernel_store_options how = MGL_CLI_PLACE(o, true);
    mgl_kernel_store b = {0};
    mgl_text out = {0};
    mgl_status status = mgl_kernel_store_open(operand, &how, &b, err);
    if (!status)
        status = mgl_kernel_store_diff(&b, o->from.value, o->to.value, &out, err);
    if (!status)
        mgl_cli_print(out.bytes ? out.bytes : "", out.length);
    mgl_text_clear(&out);
    mgl_kernel_store_close(&b);
    return status;
}

const mgl_cli_verb mgl_cli_kernel_diff_verb = {
    .name = "kernel diff",
    .operand = "UNIT",
    .summary = "prints the lines that differ between two versions of a micro-kernel",
    .example = "  megalith kernel diff merge",
    .notes = MGL_CLI_PLACE_NOTES,
    MGL_CLI_VERB_OPTIONS,
    .run = diff,
};
