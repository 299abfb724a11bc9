/* megalith kernel bench UNIT: times a text of a micro-kernel, that is right, against the one that
 * runs today; without a text that one against itself. */
#include "cli/kernel_text.h"
#include "cli/signals.h"
#include "pipeline.h"

#include <string.h>

#define BENCH_OPTIONS(X)                                                                           \
    MGL_CLI_KERNEL_TEXT_OPTIONS(X)                                                                 \
    X(text, device, "--device", "cuda|cuda:N", 0, 0, "where (cuda)")                               \
    MGL_CLI_KERNEL_DEVICE_OPTIONS(X)                                                               \
    MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(BENCH_OPTIONS)

/* The unit's text today: what was promoted, or what was built in. */
static const char *text_of(const mgl_kernel_unit *unit, const mgl_kernel_device *device)
{
    size_t length;
    for (int i = 0; i < device->overlay.source_count; i++)
        if (!strcmp(device->overlay.sources[i].name, unit->file))
            return (const char *)device->overlay.sources[i].text;
    return mgl_kernel_unit_text(unit, &length);
}

static mgl_status bench_own(const char *operand, const mgl_kernel_device *device, bool json,
                            mgl_error *err)
{
    const mgl_kernel_unit *unit;
    mgl_kernel_verdict verdict = {.tried = true};
    mgl_status status = mgl_kernel_find(operand, &unit, err);
    if (!status)
        status = mgl_kernel_try(unit, text_of(unit, device), &device->options, &verdict.trial, err);
    if (status)
        return status;
    verdict.outcome = verdict.trial.outcome;
    verdict.diagnostic = verdict.trial.diagnostic;
    mgl_cli_kernel_tell(unit, &verdict, false, json);
    return MGL_OK;
}

static mgl_status bench_text(const char *operand, const mgl_cli_kernel_given *given,
                             const mgl_kernel_device *device, bool json, mgl_error *err)
{
    mgl_cli_kernel_text text = {0};
    mgl_kernel_verdict verdict = {0};
    const mgl_kernel_options how = {.arch = device->arch,
                                    .abort = mgl_cancel_flag(mgl_cli_cancel())};
    mgl_status status = mgl_cli_kernel_text_read(operand, given, &text, err);
    if (!status)
        status = mgl_kernel_judge(&text.candidate, &how, device, &verdict, err);
    if (!status)
        mgl_cli_kernel_tell(text.candidate.unit, &verdict, false, json);
    mgl_kernel_verdict_clear(&verdict);
    mgl_cli_kernel_text_clear(&text);
    return status;
}

static mgl_status bench(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    const mgl_cli_kernel_given given = MGL_CLI_KERNEL_GIVEN(o);
    mgl_kernel_device device = {0};
    mgl_status status = mgl_cli_kernel_device_open(&given, "cuda", MGL_TRIAL_MODELS, &device, err);
    if (!status && !device.given)
        status = mgl_fail(err, MGL_USAGE, "--device", "nothing is timed without a device");
    if (!status)
        status = given.text ? bench_text(operand, &given, &device, o->json.given, err)
                            : bench_own(operand, &device, o->json.given, err);
    mgl_kernel_device_clear(&device);
    return status;
}

const mgl_cli_verb mgl_cli_kernel_bench_verb = {
    .name = "kernel bench",
    .operand = "UNIT",
    .summary = "times a text of a micro-kernel against the one that runs today",
    .example = "  megalith kernel bench merge --text merge.cuh\n"
               "  megalith kernel bench merge --text merge.cuh --shape llama-1b --workloads "
               "'ctx=0,8192'",
    MGL_CLI_VERB_OPTIONS,
    .run = bench,
};
