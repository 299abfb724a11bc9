/*
 * megalith kernel bench UNIT: runs a paired benchmark of a micro-kernel's text, which must be
 * correct, against the text in use. Without a text, compares the text in use with itself.
 */
#include "cli/kernel/text.h"

#define BENCH_OPTIONS(X)                                                                           \
    MGL_CLI_KERNEL_TEXT_OPTIONS(X)                                                                 \
    X(text, device, "--device", "cuda|cuda:N", 0, 0, "where (cuda)")                               \
    MGL_CLI_KERNEL_DEVICE_OPTIONS(X)                                                               \
    MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(BENCH_OPTIONS)

static mgl_status bench(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    const mgl_cli_kernel_given given = MGL_CLI_KERNEL_GIVEN(o);
    mgl_cli_kernel_text text = {0};
    mgl_kernel_device device = {0};
    mgl_kernel_findings verdict = {0};
    mgl_status status = mgl_cli_kernel_device_open(&given, "cuda", MGL_TRIAL_MODELS, &device, err);
    if (!status)
        status = given.text ? mgl_cli_kernel_text_read(operand, &given, &text, err)
                            : mgl_kernel_find(operand, &text.candidate.unit, err);
    if (!status)
        status = mgl_kernel_bench(&text.candidate, &device, &verdict, err);
    if (!status)
        mgl_cli_kernel_tell(text.candidate.unit, &verdict, false, o->json.given);
    mgl_kernel_findings_clear(&verdict);
    mgl_kernel_device_clear(&device);
    mgl_cli_kernel_text_clear(&text);
    return status;
}

const mgl_cli_verb mgl_cli_kernel_bench_verb = {
    .name = "kernel bench",
    .operand = "UNIT",
    .summary = "times a text of a micro-kernel against the current one",
    .example = "  megalith kernel bench merge --text merge.cuh\n"
               "  megalith kernel bench merge --text merge.cuh --shape llama-1b --workloads "
               "'ctx=0,8192'",
    .gives_verdict = true,
    MGL_CLI_VERB_OPTIONS,
    .run = bench,
};
