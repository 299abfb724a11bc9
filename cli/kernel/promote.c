/*
 * megalith kernel promote UNIT: passes a text of a micro-kernel through all gates, and adds the
 * text to the overlay if it is kept.
 */
#include "api/cancel.h"
#include "cli/kernel/text.h"
#include "cli/signals.h"

#define PROMOTE_OPTIONS(X)                                                                         \
    MGL_CLI_KERNEL_TEXT_OPTIONS(X)                                                                 \
    X(text, device, "--device", "cuda|cuda:N", 0, 0, "device that checks the text (cuda)")         \
    MGL_CLI_KERNEL_DEVICE_OPTIONS(X)                                                               \
    MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(PROMOTE_OPTIONS)

static mgl_status promote(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    const mgl_cli_kernel_given given = MGL_CLI_KERNEL_GIVEN(o);
    mgl_cli_kernel_text text = {0};
    mgl_kernel_device device = {0};
    mgl_kernel_findings verdict = {0};
    bool kept = false;
    mgl_status status = mgl_cli_kernel_text_read(operand, &given, &text, err);
    if (!status)
        status = mgl_cli_kernel_device_open(&given, "cuda", MGL_TRIAL_PROMOTE, &device, err);
    if (!status && !device.given)
        status = mgl_fail(err, MGL_USAGE, "--device",
                          "a text is promoted only after checks on a device; name a device");
    const mgl_kernel_options how = {.arch = device.arch,
                                    .abort = mgl_cancel_flag(mgl_cli_cancel())};
    if (!status)
        status = mgl_kernel_evaluate(&text.candidate, &how, &device, &verdict, err);
    if (!status)
        status = mgl_kernel_promote(&text.candidate, &verdict, &kept, err);
    if (!status)
        mgl_cli_kernel_tell(text.candidate.unit, &verdict, kept, o->json.given);
    mgl_kernel_findings_clear(&verdict);
    mgl_kernel_device_clear(&device);
    mgl_cli_kernel_text_clear(&text);
    return status;
}

const mgl_cli_verb mgl_cli_kernel_promote_verb = {
    .name = "kernel promote",
    .operand = "UNIT",
    .summary = "installs a text of a micro-kernel for new kernels, if all gates pass",
    .example = "  megalith kernel promote merge --text merge.cuh --shape llama-1b --workloads "
               "'ctx=0,2048'",
    .gives_verdict = true,
    MGL_CLI_VERB_OPTIONS,
    .run = promote,
};
