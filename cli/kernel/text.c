/* Implements kernel/text.h: reads texts with their tunables, opens the device of the gates, and
 * prints verdicts. */
#include "cli/kernel/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/cancel.h"
#include "base/file.h"
#include "base/memory.h"
#include "cli/signals.h"

/* ---- the text -------------------------------------------------------------------------------- */

static mgl_status read_values(const mgl_cli_kernel_given *g, mgl_cli_kernel_text *r, mgl_error *err)
{
    for (size_t i = 0; i < g->tune_count; i++) {
        const char *given = g->tune[i], *equals = strchr(given, '=');
        char *end = NULL;
        const long long value = equals ? strtoll(equals + 1, &end, 10) : 0;
        if (!equals || end == equals + 1 || *end || equals - given >= 40)
            return mgl_fail(err, MGL_USAGE, "--tune", "invalid value: '%.60s'; give NAME=N", given);
        snprintf(r->names[i], sizeof r->names[i], "%.*s", (int)(equals - given), given);
        r->values[i] = (mgl_kernel_value){r->names[i], value};
    }
    r->candidate.values = r->values;
    r->candidate.value_count = (int)g->tune_count;
    return MGL_OK;
}

/* Reads the files. A text over the size limit is read whole, so that the gates report its size. */
static mgl_status read_texts(const mgl_cli_kernel_given *g, mgl_cli_kernel_text *r, mgl_error *err)
{
    mgl_kernel_candidate *c = &r->candidate;
    mgl_status status = mgl_file_read(g->text, MGL_CLI_MAX_TEXT, &r->text, &c->length, err);
    c->text = r->text;
    if (!status && g->before)
        status = mgl_file_read(g->before, MGL_CLI_MAX_TEXT, &r->before, &c->before_length, err);
    c->before = r->before;
    return status;
}

mgl_status mgl_cli_kernel_text_read(const char *unit, const mgl_cli_kernel_given *g,
                                    mgl_cli_kernel_text *out, mgl_error *err)
{
    if (!g->text)
        return mgl_fail(err, MGL_USAGE, NULL,
                        "--text is missing; give a file with the unit's text");
    mgl_status status = mgl_kernel_find(unit, &out->candidate.unit, err);
    if (!status)
        status = mgl_kernel_find_region(g->region, &out->candidate.region, err);
    if (!status)
        status = read_values(g, out, err);
    return status ? status : read_texts(g, out, err);
}

void mgl_cli_kernel_text_clear(mgl_cli_kernel_text *text)
{
    mgl_free(text->text);
    mgl_free(text->before);
    *text = (mgl_cli_kernel_text){0};
}

/* ---- the device ------------------------------------------------------------------------------ */

mgl_status mgl_cli_kernel_device_open(const mgl_cli_kernel_given *g, const char *standard,
                                      mgl_trial_depth depth, mgl_kernel_device *out, mgl_error *err)
{
    const mgl_kernel_device_options options = {.device = g->device ? g->device : standard,
                                               .shape = g->shape,
                                               .workloads = g->workloads,
                                               .checkpoint = g->checkpoint,
                                               .device_lock = g->device_lock,
                                               .no_sandbox = g->no_sandbox,
                                               .depth = depth,
                                               .abort = mgl_cancel_flag(mgl_cli_cancel())};
    return mgl_kernel_device_open(&options, out, err);
}

/* ---- printing a verdict ---------------------------------------------------------------------- */

static void tell_paired_bench(const char *what, const mgl_kernel_paired_bench *paired_bench)
{
    if (!paired_bench->timed)
        return;
    mgl_cli_printf("%s, %s: %+.2f %% (%+.2f to %+.2f) of %d pairs\n", what, paired_bench->shape,
                   100 * expm1(paired_bench->gain), 100 * expm1(paired_bench->gain_lo),
                   100 * expm1(paired_bench->gain_hi), paired_bench->pairs);
    for (int w = 0; w < paired_bench->workload_count; w++) {
        const mgl_workload_result *r = &paired_bench->results[w];
        mgl_cli_printf("  batch %d, context %d: %.1f us a token, the incumbent %.1f us, its bytes "
                       "%.1f us\n",
                       paired_bench->workloads.list[w].batch,
                       paired_bench->workloads.list[w].context, r->candidate_us, r->incumbent_us,
                       r->stream_us);
    }
}

static void tell_real(const mgl_real_facts *real)
{
    if (real->checked)
        mgl_cli_printf("on the checkpoint: %d of %d replies differ at tokens with close logits; "
                       "%.5f nats for each token, the incumbent has %.5f\n",
                       real->parted, real->texts, real->nll, real->nll_default);
    else if (real->note[0])
        mgl_cli_printf("on the checkpoint: %s\n", real->note);
}

static void tell_sanitizers(const mgl_sanitizer_ends *ends)
{
    char line[600];
    mgl_sanitizer_tell(ends, line, sizeof line);
    if (line[0])
        mgl_cli_printf("sanitizers: %s\n", line);
}

static void tell_trial(const mgl_kernel_trial *t)
{
    mgl_cli_printf(
        "checked in %d programs, %d cases: error %.2g, the incumbent's %.2g, bias %.2g\n",
        t->harnesses, t->cases, t->correctness.error, t->correctness.incumbent_error,
        t->correctness.bias);
    tell_sanitizers(&t->sanitizers);
    tell_paired_bench("alone", &t->paired_bench);
    tell_paired_bench("in the model", &t->models);
    tell_real(&t->real);
}

void mgl_cli_kernel_tell_gates(const mgl_kernel_findings *v)
{
    const mgl_kernel_result *b = &v->before;
    const mgl_kernel_resources *r = &b->resources;
    if (b->not_compiled[0])
        mgl_cli_printf("not compiled: %s\n", b->not_compiled);
    if (b->compiled)
        mgl_cli_printf(
            "compiled in %.1f s: %lld registers, %lld + %lld bytes spilled, %lld shared, "
            "%lld global\n",
            b->compile_s, (long long)r->registers, (long long)r->spill_stores,
            (long long)r->spill_loads, (long long)r->shared, (long long)(r->global + r->constant));
    if (v->tried)
        tell_trial(&v->trial);
}

void mgl_cli_kernel_tell_verdict(const mgl_trial_verdict *verdict, const char *hint)
{
    mgl_text line = {0};
    mgl_trial_verdict_print(verdict, &line);
    if (line.failed)
        mgl_cli_lose_output();
    else
        mgl_cli_printf("%s\n%s\n", line.bytes, hint);
    mgl_text_clear(&line);
}

static void tell_lines(const mgl_kernel_findings *v, bool promoted)
{
    mgl_cli_kernel_tell_verdict(
        &v->verdict, promoted ? "The text is promoted: kernels are compiled with it from now on."
                              : mgl_outcome_kernel_hint(v->verdict.outcome));
    mgl_cli_kernel_tell_gates(v);
}

void mgl_cli_kernel_tell(const mgl_kernel_unit *unit, const mgl_kernel_findings *verdict,
                         bool promoted, bool json)
{
    mgl_cli_end_with(mgl_outcome_exit(verdict->verdict.outcome));
    if (!json) {
        tell_lines(verdict, promoted);
        return;
    }
    mgl_json_out out = {0};
    mgl_json_out_begin(&out, "megalith.kernel/1");
    mgl_kernel_put_verdict(&out, unit, verdict, promoted);
    mgl_cli_end_json(&out);
}
