/*
 * megalith kernel verify UNIT: passes a text of a micro-kernel through the gates that need no
 * device and, with --device, through the gates on the device.
 */
#include "api/cancel.h"
#include "cli/kernel/text.h"
#include "cli/signals.h"

#define VERIFY_OPTIONS(X)                                                                          \
    MGL_CLI_KERNEL_TEXT_OPTIONS(X)                                                                 \
    X(text, arch, "--arch", "A", 0, 0, "sm_80, sm_90a, sm_100a, ... (the device's, or sm_90a)")    \
    X(flag, scan_only, "--scan-only", NULL, 0, 0, "stop before the compiler")                      \
    X(text, ptx, "--ptx", "F.ptx", 0, 0, "write the PTX of the text to this file")                 \
    X(text, base_ptx, "--base-ptx", "F.ptx", 0, 0,                                                 \
      "write the PTX of the unit's original text to this file, for `kernel ptx learn`")            \
    X(text, device, "--device", "none|cuda|cuda:N", 0, 0,                                          \
      "device that checks and times the text; none: stop before (none)")                           \
    X(flag, correctness_only, "--correctness-only", NULL, 0, 0, "stop before timing")              \
    MGL_CLI_KERNEL_DEVICE_OPTIONS(X)                                                               \
    MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(VERIFY_OPTIONS)

/* Writes PTX to a file that the user named. A text that was not compiled has none. */
static mgl_status write_ptx(const char *path, const char *ptx, size_t length, mgl_error *err)
{
    if (path && !ptx)
        mgl_cli_say("kernel verify", "%s is not written: the text was not compiled", path);
    return path && ptx ? mgl_cli_write_file(path, ptx, length, err) : MGL_OK;
}

static mgl_status verify(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    const mgl_cli_kernel_given given = MGL_CLI_KERNEL_GIVEN(o);
    mgl_cli_kernel_text text = {0};
    mgl_kernel_device device = {0};
    mgl_kernel_findings verdict = {0};
    mgl_status status = mgl_cli_kernel_text_read(operand, &given, &text, err);
    if (!status)
        status = mgl_cli_kernel_device_open(
            &given, "none", o->correctness_only.given ? MGL_TRIAL_CORRECTNESS : MGL_TRIAL_MODELS,
            &device, err);
    const mgl_kernel_options how = {.arch = o->arch.value  ? o->arch.value
                                            : device.given ? device.arch
                                                           : NULL,
                                    .no_compile = o->scan_only.given,
                                    .abort = mgl_cancel_flag(mgl_cli_cancel())};
    if (!status)
        status = mgl_kernel_evaluate(&text.candidate, &how, &device, &verdict, err);
    if (!status)
        mgl_cli_kernel_tell(text.candidate.unit, &verdict, false, o->json.given);
    const mgl_kernel_result *made = &verdict.before;
    if (!status)
        status = write_ptx(o->ptx.value, made->ptx, made->ptx_length, err);
    if (!status)
        status = write_ptx(o->base_ptx.value, made->own_ptx, made->own_ptx_length, err);
    mgl_kernel_findings_clear(&verdict);
    mgl_kernel_device_clear(&device);
    mgl_cli_kernel_text_clear(&text);
    return status;
}

const mgl_cli_verb mgl_cli_kernel_verify_verb = {
    .name = "kernel verify",
    .operand = "UNIT",
    .summary = "checks a text of a micro-kernel; with --device, also on the device",
    .example = "  megalith kernel show merge --text > merge.cuh\n"
               "  megalith kernel verify merge --text merge.cuh --region device --json\n"
               "  megalith kernel verify merge --text merge.cuh --device cuda\n"
               "  megalith kernel verify merge --text merge.cuh --ptx new.ptx --base-ptx old.ptx",
    .gives_verdict = true,
    MGL_CLI_VERB_OPTIONS,
    .run = verify,
};
