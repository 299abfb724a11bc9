/* megalith kernel promote UNIT: puts a text of a micro-kernel into the overlay, when all gates say
 * that it may be kept. */
#include "cli/kernel_text.h"
#include "cli/signals.h"
#include "pipeline.h"

#include "base/memory.h"

#define PROMOTE_OPTIONS(X)                                                                         \
    MGL_CLI_KERNEL_TEXT_OPTIONS(X)                                                                 \
    X(text, device, "--device", "cuda|cuda:N", 0, 0, "that judges it (cuda)")                      \
    MGL_CLI_KERNEL_DEVICE_OPTIONS(X)                                                               \
    MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(PROMOTE_OPTIONS)

/* What the overlay keeps beside the text. */
static mgl_status write_evidence(const mgl_cli_kernel_verdict *v, char **out, mgl_error *err)
{
    mgl_json_out json = {0};
    mgl_json_out_begin(&json, "megalith.kernel/1");
    mgl_json_out_string(&json, "outcome", mgl_outcome_name(v->outcome));
    mgl_json_out_string(&json, "hash", v->before.hash);
    mgl_cli_kernel_put_trial(&json, "trial", &v->trial);
    mgl_json_out_close(&json);
    *out = json.text.failed ? NULL : json.text.bytes;
    if (json.text.failed)
        mgl_text_clear(&json.text);
    return *out ? MGL_OK : mgl_fail_memory(err, 1);
}

static mgl_status keep(const mgl_cli_kernel_text *text, const mgl_cli_kernel_verdict *v,
                       mgl_error *err)
{
    char *tuned = NULL, *evidence = NULL;
    mgl_status status = mgl_trial_text(&text->candidate, &tuned, err);
    if (!status)
        status = write_evidence(v, &evidence, err);
    if (!status)
        status = mgl_overlay_put(NULL, text->candidate.unit, tuned, evidence, err);
    mgl_free(tuned);
    mgl_free(evidence);
    return status;
}

static mgl_status promote(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    const mgl_cli_kernel_given given = MGL_CLI_KERNEL_GIVEN(o);
    mgl_cli_kernel_text text = {0};
    mgl_cli_kernel_device device = {0};
    mgl_cli_kernel_verdict verdict = {0};
    mgl_status status = mgl_cli_kernel_text_read(operand, &given, &text, err);
    if (!status)
        status = mgl_cli_kernel_device_open(&given, "cuda", MGL_TRIAL_PROMOTE, &device, err);
    if (!status && !device.given)
        status = mgl_fail(err, MGL_USAGE, "--device", "what no device has judged is not promoted");
    const mgl_kernel_options how = {.arch = device.arch,
                                    .abort = mgl_cancel_flag(mgl_cli_cancel())};
    if (!status)
        status = mgl_cli_kernel_judge(&text, &how, &device, &verdict, err);
    const bool kept = !status && verdict.tried && verdict.outcome == MGL_OUTCOME_OK;
    if (kept)
        status = keep(&text, &verdict, err);
    if (!status)
        mgl_cli_kernel_tell(text.candidate.unit, &verdict, kept, o->json.given);
    mgl_cli_kernel_verdict_clear(&verdict);
    mgl_cli_kernel_device_clear(&device);
    mgl_cli_kernel_text_clear(&text);
    return status;
}

const mgl_cli_verb mgl_cli_kernel_promote_verb = {
    .name = "kernel promote",
    .operand = "UNIT",
    .summary = "compiles kernels with a text of a micro-kernel, when all gates say OK",
    .example = "  megalith kernel promote merge --text merge.cuh --shape llama-1b --workloads "
               "'ctx=0,2048'",
    MGL_CLI_VERB_OPTIONS,
    .run = promote,
};
