/* megalith kernel export UNIT: writes the text of a version. */
#include "cli/kernel/loop.h"

#include <string.h>

#define EXPORT_OPTIONS(X)                                                                          \
    X(text, at, "--at", "NAME", 0, 0, "version to export (the current branch)")                    \
    X(text, output, "-o", "F", 0, 0, "write to this file (default: standard output)")              \
    X(flag, json, "--json", NULL, 0, 0, "print one JSON object with verdict, values and text")     \
    MGL_CLI_PLACE_OPTIONS(X)
MGL_CLI_OPTIONS(EXPORT_OPTIONS)

static void put_record(const mgl_version_record *r, mgl_json_out *out)
{
    mgl_json_out_begin(out, "megalith.kernel/1");
    mgl_kernel_store_put_record(r, out);
    mgl_json_out_close(out);
    mgl_text_put(&out->text, "\n");
}

static mgl_status write_record(const struct options *o, const mgl_version_record *r, mgl_error *err)
{
    mgl_json_out out = {0};
    if (o->json.given)
        put_record(r, &out);
    else
        mgl_text_put(&out.text, r->text);
    mgl_status status = mgl_cli_write_text(o->output.value, &out.text, err);
    mgl_text_clear(&out.text);
    return status;
}

static mgl_status export_text(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    const mgl_kernel_store_options how = MGL_CLI_PLACE(o, true);
    mgl_kernel_store b = {0};
    mgl_version_record r = {0};
    mgl_status status = mgl_kernel_store_open(operand, &how, &b, err);
    if (!status)
        status = mgl_versions_get(mgl_kernel_session_versions(b.bench), o->at.value, &r, err);
    if (!status)
        status = write_record(o, &r, err);
    mgl_version_clear(&r);
    mgl_kernel_store_close(&b);
    return status;
}

const mgl_cli_verb mgl_cli_kernel_export_verb = {
    .name = "kernel export",
    .operand = "UNIT",
    .summary = "prints the text of a version or the original text, or the whole version as JSON",
    .example = "  megalith kernel export merge -o merge.cuh",
    .notes = MGL_CLI_PLACE_NOTES,
    MGL_CLI_VERB_OPTIONS,
    .run = export_text,
};
