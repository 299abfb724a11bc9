/* See kernel_text.h. */
#include "cli/kernel_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "cli/signals.h"
#include "pipeline.h"

/* ---- the text -------------------------------------------------------------------------------- */

static mgl_status read_values(const mgl_cli_kernel_given *g, mgl_cli_kernel_text *r, mgl_error *err)
{
    for (size_t i = 0; i < g->tune_count; i++) {
        const char *given = g->tune[i], *equals = strchr(given, '=');
        char *end = NULL;
        const long long value = equals ? strtoll(equals + 1, &end, 10) : 0;
        if (!equals || end == equals + 1 || *end || equals - given >= 40)
            return mgl_fail(err, MGL_USAGE, "--tune", "'%.60s' is not NAME=N", given);
        snprintf(r->names[i], sizeof r->names[i], "%.*s", (int)(equals - given), given);
        r->values[i] = (mgl_kernel_value){r->names[i], value};
    }
    r->candidate.values = r->values;
    r->candidate.value_count = (int)g->tune_count;
    return MGL_OK;
}

/* What is larger than a text may be is read whole, so that its size is a verdict. */
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
        return mgl_fail(err, MGL_USAGE, NULL, "--text is needed: a file with the unit's text");
    mgl_status status = mgl_cli_kernel_find(unit, &out->candidate.unit, err);
    if (!status)
        status = mgl_cli_kernel_region(g->region, &out->candidate.region, err);
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

static mgl_status read_workloads(const mgl_cli_kernel_given *g, mgl_cli_kernel_device *out,
                                 mgl_error *err)
{
    mgl_config config;
    out->options.shape = g->shape;
    mgl_status status = g->shape ? mgl_synthetic_find_shape(g->shape, &config, err) : MGL_OK;
    if (status || !g->workloads)
        return status;
    out->options.models = &out->workloads;
    return mgl_workloads_parse(g->workloads, &out->workloads, err);
}

mgl_status mgl_cli_kernel_device_open(const mgl_cli_kernel_given *g, const char *standard,
                                      mgl_trial_depth depth, mgl_cli_kernel_device *out,
                                      mgl_error *err)
{
    mgl_device device = {0};
    const char *name = g->device ? g->device : standard;
    out->given = strcmp(name, "none") != 0;
    if (!out->given)
        return MGL_OK;
    out->options = (mgl_trial_options){.device = name,
                                       .no_sandbox = g->no_sandbox,
                                       .depth = depth,
                                       .abort = mgl_cancel_flag(mgl_cli_cancel())};
    mgl_status status = read_workloads(g, out, err);
    if (!status)
        status = mgl_device_find(name, &device, err);
    if (!status && device.kind != MGL_VM_CUDA)
        status = mgl_fail(err, MGL_USAGE, "--device",
                          "'%.40s' runs no micro-kernel; there are none, cuda and cuda:N", name);
    if (!status)
        status = mgl_overlay_read(NULL, &out->overlay, err);
    snprintf(out->arch, sizeof out->arch, "%s", device.target.arch);
    out->options.sources = out->overlay.sources;
    out->options.source_count = out->overlay.source_count;
    return status;
}

void mgl_cli_kernel_device_clear(mgl_cli_kernel_device *device)
{
    mgl_overlay_clear(&device->overlay);
}

/* ---- the gates ------------------------------------------------------------------------------- */

static mgl_status try_on_device(const mgl_cli_kernel_text *text,
                                const mgl_cli_kernel_device *device, mgl_cli_kernel_verdict *out,
                                mgl_error *err)
{
    char *tuned = NULL;
    mgl_status status = mgl_trial_text(&text->candidate, &tuned, err);
    if (!status)
        status = mgl_kernel_try(text->candidate.unit, tuned, &device->options, &out->trial, err);
    mgl_free(tuned);
    if (status)
        return status;
    out->tried = true;
    out->outcome = out->trial.outcome;
    out->diagnostic = out->trial.diagnostic;
    return MGL_OK;
}

mgl_status mgl_cli_kernel_judge(const mgl_cli_kernel_text *text,
                                const mgl_kernel_options *before_device,
                                const mgl_cli_kernel_device *device, mgl_cli_kernel_verdict *out,
                                mgl_error *err)
{
    mgl_status status = mgl_kernel_verify(&text->candidate, before_device, &out->before, err);
    if (status)
        return status;
    out->outcome = out->before.outcome;
    out->diagnostic = out->before.diagnostic;
    if (!device->given || out->outcome != MGL_OUTCOME_UNMEASURED || before_device->no_compile)
        return MGL_OK;
    return try_on_device(text, device, out, err);
}

void mgl_cli_kernel_verdict_clear(mgl_cli_kernel_verdict *verdict)
{
    mgl_kernel_result_clear(&verdict->before);
}

/* ---- the answer -------------------------------------------------------------------------------
 */

static void put_resources(mgl_json_out *out, const mgl_kernel_resources *r)
{
    mgl_json_out_object(out, "resources");
    mgl_json_out_int(out, "registers", r->registers);
    mgl_json_out_int(out, "spill_stores", r->spill_stores);
    mgl_json_out_int(out, "spill_loads", r->spill_loads);
    mgl_json_out_int(out, "frame", r->frame);
    mgl_json_out_int(out, "shared", r->shared);
    mgl_json_out_int(out, "global", r->global);
    mgl_json_out_int(out, "constant", r->constant);
    mgl_json_out_close_object(out);
}

static void put_duel(mgl_json_out *out, const char *key, const mgl_kernel_duel *duel)
{
    if (duel->workload_count == 0)
        return;
    mgl_json_out_object(out, key);
    mgl_json_out_string(out, "model", duel->shape);
    mgl_json_out_string(out, "outcome", mgl_outcome_name(duel->outcome));
    if (duel->timed) {
        mgl_json_out_real(out, "gain", duel->gain);
        mgl_json_out_real(out, "gain_lo", duel->gain_lo);
        mgl_json_out_real(out, "gain_hi", duel->gain_hi);
        mgl_json_out_real(out, "level", duel->level);
        mgl_json_out_int(out, "pairs", duel->pairs);
    }
    mgl_json_out_array(out, "workloads");
    for (int w = 0; w < duel->workload_count; w++) {
        const mgl_workload_result *r = &duel->results[w];
        mgl_json_out_object(out, NULL);
        mgl_json_out_int(out, "batch", duel->workloads.list[w].batch);
        mgl_json_out_int(out, "context", duel->workloads.list[w].context);
        mgl_json_out_real(out, "error", r->error);
        mgl_json_out_real(out, "error_default", r->error_default);
        if (duel->timed) {
            mgl_json_out_real(out, "incumbent_us", r->incumbent_us);
            mgl_json_out_real(out, "candidate_us", r->candidate_us);
            mgl_json_out_real(out, "stream_us", r->stream_us);
            mgl_json_out_real(out, "gain", r->gain);
        }
        mgl_json_out_close_object(out);
    }
    mgl_json_out_close_array(out);
    mgl_json_out_close_object(out);
}

void mgl_cli_kernel_put_trial(mgl_json_out *out, const char *key, const mgl_kernel_trial *t)
{
    mgl_json_out_object(out, key);
    mgl_json_out_string(out, "nonce", t->nonce);
    mgl_json_out_string(out, "device", t->device);
    mgl_json_out_string(out, "driver", t->driver);
    mgl_json_out_real(out, "seconds", t->seconds);
    mgl_json_out_object(out, "exam");
    mgl_json_out_int(out, "programs", t->harnesses);
    mgl_json_out_int(out, "cases", t->cases);
    mgl_json_out_real(out, "error", t->exam.error);
    mgl_json_out_real(out, "incumbent_error", t->exam.incumbent_error);
    mgl_json_out_real(out, "bias", t->exam.bias);
    mgl_json_out_close_object(out);
    put_duel(out, "duel", &t->duel);
    put_duel(out, "models", &t->models);
    mgl_json_out_close_object(out);
}

static void tell_json(const mgl_kernel_unit *unit, const mgl_cli_kernel_verdict *v, bool promoted)
{
    mgl_json_out out = {0};
    const mgl_kernel_result *b = &v->before;
    mgl_json_out_begin(&out, "megalith.kernel/1");
    mgl_json_out_string(&out, "unit", unit->name);
    mgl_json_out_string(&out, "outcome", mgl_outcome_name(v->outcome));
    mgl_json_out_string(&out, "diagnostic", v->diagnostic[0] ? v->diagnostic : NULL);
    mgl_json_out_string(&out, "hint", mgl_outcome_hint(v->outcome));
    mgl_json_out_int(&out, "line", b->line);
    mgl_json_out_string(&out, "hash", b->hash[0] ? b->hash : NULL);
    mgl_json_out_bool(&out, "compiled", b->compiled);
    mgl_json_out_string(&out, "not_compiled", b->not_compiled[0] ? b->not_compiled : NULL);
    if (b->compiled) {
        mgl_json_out_real(&out, "compile_s", b->compile_s);
        put_resources(&out, &b->resources);
    }
    if (v->tried)
        mgl_cli_kernel_put_trial(&out, "trial", &v->trial);
    if (promoted)
        mgl_json_out_bool(&out, "promoted", promoted);
    mgl_cli_end_json(&out);
}

static void tell_duel(const char *what, const mgl_kernel_duel *duel)
{
    if (!duel->timed)
        return;
    mgl_cli_printf("%s, %s: %+.2f %% (%+.2f to %+.2f) of %d pairs\n", what, duel->shape,
                   100 * expm1(duel->gain), 100 * expm1(duel->gain_lo), 100 * expm1(duel->gain_hi),
                   duel->pairs);
    for (int w = 0; w < duel->workload_count; w++) {
        const mgl_workload_result *r = &duel->results[w];
        mgl_cli_printf("  batch %d, context %d: %.1f us a token, the incumbent %.1f us, its bytes "
                       "%.1f us\n",
                       duel->workloads.list[w].batch, duel->workloads.list[w].context,
                       r->candidate_us, r->incumbent_us, r->stream_us);
    }
}

static void tell_trial(const mgl_kernel_trial *t)
{
    mgl_cli_printf("examined in %d programs, %d cases: error %.2g, the incumbent's %.2g, bias "
                   "%.2g\n",
                   t->harnesses, t->cases, t->exam.error, t->exam.incumbent_error, t->exam.bias);
    tell_duel("alone", &t->duel);
    tell_duel("in the model", &t->models);
}

static void tell_lines(const mgl_cli_kernel_verdict *v, bool promoted)
{
    const mgl_kernel_result *b = &v->before;
    const mgl_kernel_resources *r = &b->resources;
    if (v->tried && v->diagnostic[0])
        mgl_cli_printf("%s: %s\n", mgl_outcome_name(v->outcome), v->diagnostic);
    else
        mgl_cli_printf("%s\n", v->diagnostic[0] ? v->diagnostic : mgl_outcome_name(v->outcome));
    mgl_cli_printf("%s\n", promoted ? "It is promoted: kernels are compiled with it from now on."
                                    : mgl_outcome_hint(v->outcome));
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

void mgl_cli_kernel_tell(const mgl_kernel_unit *unit, const mgl_cli_kernel_verdict *verdict,
                         bool promoted, bool json)
{
    mgl_cli_end_with(mgl_outcome_exit(verdict->outcome));
    if (json)
        tell_json(unit, verdict, promoted);
    else
        tell_lines(verdict, promoted);
}
