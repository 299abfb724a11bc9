/* Implements evaluate.h: device setup, all gates in order, JSON output, and promotion. */
#include "autotune/kernels/trial/evaluate.h"

#include "base/memory.h"
#include "eval/synthetic.h"
#include "vm/pipeline/device.h"

#include <stdio.h>
#include <string.h>

/* ---- the device ------------------------------------------------------------------------------ */

static mgl_status read_workloads(const mgl_kernel_device_options *g, mgl_kernel_device *out,
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

/* A requested comparison of replies must not be skipped silently. */
static mgl_status check_checkpoint(const char *checkpoint, const mgl_kernel_device *device,
                                   mgl_trial_depth depth, mgl_error *err)
{
    if (!checkpoint || (device->given && depth >= MGL_TRIAL_MODELS))
        return MGL_OK;
    return mgl_fail(err, MGL_USAGE, "--checkpoint",
                    device->given ? "the gates end before replies are compared: leave out one of "
                                    "--checkpoint and --correctness-only"
                                  : "replies are compared on a device: name one with --device");
}

mgl_status mgl_kernel_device_open(const mgl_kernel_device_options *g, mgl_kernel_device *out,
                                  mgl_error *err)
{
    mgl_device device = {0};
    out->given = g->device && strcmp(g->device, "none") != 0;
    mgl_status checked = check_checkpoint(g->checkpoint, out, g->depth, err);
    if (checked || !out->given)
        return checked;
    out->options = (mgl_trial_options){.device = g->device,
                                       .no_sandbox = g->no_sandbox,
                                       .depth = g->depth,
                                       .checkpoint = g->checkpoint,
                                       .device_lock = g->device_lock,
                                       .abort = g->abort};
    mgl_status status = read_workloads(g, out, err);
    if (!status)
        status = mgl_device_find(g->device, &device, err);
    if (!status && device.kind != MGL_VM_CUDA)
        status = mgl_fail(err, MGL_USAGE, "--device",
                          "'%.40s' runs no micro-kernel; name a GPU: cuda or cuda:N", g->device);
    if (!status)
        status = mgl_overlay_read(NULL, &out->overlay, err);
    snprintf(out->arch, sizeof out->arch, "%s", device.target.arch);
    out->options.sources = out->overlay.sources;
    out->options.source_count = out->overlay.source_count;
    return status;
}

void mgl_kernel_device_clear(mgl_kernel_device *device)
{
    mgl_overlay_clear(&device->overlay);
}

/* ---- the gates ------------------------------------------------------------------------------- */

/* Collects the numbers of the verdict: the counts of ptxas, and the times of the last paired
 * benchmark that was timed. */
static void take_facts(const mgl_kernel_findings *found, mgl_facts *out)
{
    const mgl_kernel_resources *r = &found->before.resources;
    const mgl_kernel_paired_bench *bench =
        found->trial.models.timed ? &found->trial.models : &found->trial.paired_bench;
    *out = (mgl_facts){0};
    if (found->before.compiled) {
        out->registers = (double)r->registers;
        out->spill_bytes = (double)(r->spill_stores + r->spill_loads);
        out->shared_bytes = (double)r->shared;
    }
    if (!found->tried || !bench->timed)
        return;
    out->gain = bench->gain;
    out->gain_lo = bench->gain_lo;
    out->gain_hi = bench->gain_hi;
    out->time_us = bench->results[0].candidate_us;
    out->floor_us = bench->results[0].stream_us;
}

static mgl_status try_on_device(const mgl_kernel_unit *unit, const char *text,
                                const mgl_kernel_device *device, mgl_kernel_findings *out,
                                mgl_error *err)
{
    mgl_status status = mgl_kernel_try(unit, text, &device->options, &out->trial, err);
    if (status)
        return status;
    out->tried = true;
    out->verdict = out->trial.verdict;
    return MGL_OK;
}

mgl_status mgl_kernel_evaluate(const mgl_kernel_candidate *candidate,
                               const mgl_kernel_options *before_device,
                               const mgl_kernel_device *device, mgl_kernel_findings *out,
                               mgl_error *err)
{
    mgl_status status = mgl_kernel_verify(candidate, before_device, &out->before, err);
    if (status)
        return status;
    out->tried = false;
    out->verdict = out->before.verdict;
    if (device->given && out->verdict.outcome == MGL_OUTCOME_UNMEASURED &&
        !before_device->no_compile) {
        char *tuned = NULL;
        status = mgl_trial_text(candidate, &tuned, err);
        if (!status)
            status = try_on_device(candidate->unit, tuned, device, out, err);
        mgl_free(tuned);
    }
    take_facts(out, &out->verdict.facts);
    return status;
}

/* The unit's current text: the promoted text, else the built-in text. */
static const char *text_of(const mgl_kernel_unit *unit, const mgl_kernel_device *device)
{
    size_t length;
    for (int i = 0; i < device->overlay.source_count; i++)
        if (!strcmp(device->overlay.sources[i].name, unit->file))
            return (const char *)device->overlay.sources[i].text;
    return mgl_kernel_unit_text(unit, &length);
}

mgl_status mgl_kernel_bench(const mgl_kernel_candidate *candidate, const mgl_kernel_device *device,
                            mgl_kernel_findings *out, mgl_error *err)
{
    const mgl_kernel_options how = {.arch = device->arch, .abort = device->options.abort};
    if (!device->given)
        return mgl_fail(err, MGL_USAGE, "--device", "nothing is timed without a device");
    return candidate->text
               ? mgl_kernel_evaluate(candidate, &how, device, out, err)
               : try_on_device(candidate->unit, text_of(candidate->unit, device), device, out, err);
}

void mgl_kernel_findings_clear(mgl_kernel_findings *verdict)
{
    mgl_kernel_result_clear(&verdict->before);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

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

static void put_paired_bench(mgl_json_out *out, const char *key,
                             const mgl_kernel_paired_bench *paired_bench)
{
    if (paired_bench->workload_count == 0)
        return;
    mgl_json_out_object(out, key);
    mgl_json_out_string(out, "model", paired_bench->shape);
    mgl_json_out_string(out, "outcome", mgl_outcome_name(paired_bench->verdict.outcome));
    if (paired_bench->timed) {
        mgl_json_out_real(out, "gain", paired_bench->gain);
        mgl_json_out_real(out, "gain_lo", paired_bench->gain_lo);
        mgl_json_out_real(out, "gain_hi", paired_bench->gain_hi);
        mgl_json_out_real(out, "level", paired_bench->level);
        mgl_json_out_int(out, "pairs", paired_bench->pairs);
    }
    mgl_json_out_array(out, "workloads");
    for (int w = 0; w < paired_bench->workload_count; w++) {
        const mgl_workload_result *r = &paired_bench->results[w];
        mgl_json_out_object(out, NULL);
        mgl_json_out_int(out, "batch", paired_bench->workloads.list[w].batch);
        mgl_json_out_int(out, "context", paired_bench->workloads.list[w].context);
        mgl_json_out_real(out, "error", r->error);
        mgl_json_out_real(out, "error_default", r->error_default);
        if (paired_bench->timed) {
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

/* Writes the sanitizers that the trial reached. */
static void put_sanitizers(mgl_json_out *out, const mgl_sanitizer_ends *ends)
{
    mgl_json_out_object(out, "sanitizers");
    for (int s = 0; s < MGL_SANITIZER_COUNT; s++) {
        const mgl_sanitizer_end *e = &ends->of[s];
        if (!e->ran && !e->skipped[0])
            continue;
        mgl_json_out_object(out, mgl_sanitizer_name(s));
        mgl_json_out_string(out, "end", e->found ? "found" : e->ran ? "ok" : "skipped");
        mgl_json_out_string(out, "why", e->ran ? NULL : e->skipped);
        mgl_json_out_bool(out, "sandbox", !e->no_sandbox);
        mgl_json_out_close_object(out);
    }
    mgl_json_out_close_object(out);
}

static void put_spent(mgl_json_out *out, const mgl_trial_spent *s)
{
    mgl_json_out_object(out, "spent");
    mgl_json_out_real(out, "compiling", s->compiling);
    mgl_json_out_real(out, "waiting", s->waiting);
    mgl_json_out_real(out, "exam", s->correctness);
    mgl_json_out_real(out, "sanitizers", s->sanitizers);
    mgl_json_out_real(out, "duel", s->paired_bench);
    mgl_json_out_real(out, "models", s->models);
    mgl_json_out_real(out, "checkpoint", s->checkpoint);
    mgl_json_out_close_object(out);
}

static void put_trial(mgl_json_out *out, const char *key, const mgl_kernel_trial *t)
{
    mgl_json_out_object(out, key);
    mgl_json_out_string(out, "nonce", t->nonce);
    mgl_json_out_string(out, "device", t->device);
    mgl_json_out_string(out, "driver", t->driver);
    mgl_json_out_real(out, "seconds", t->seconds);
    put_spent(out, &t->spent);
    mgl_json_out_object(out, "exam");
    mgl_json_out_int(out, "programs", t->harnesses);
    mgl_json_out_int(out, "cases", t->cases);
    mgl_json_out_real(out, "error", t->correctness.error);
    mgl_json_out_real(out, "incumbent_error", t->correctness.incumbent_error);
    mgl_json_out_real(out, "bias", t->correctness.bias);
    mgl_json_out_close_object(out);
    put_sanitizers(out, &t->sanitizers);
    put_paired_bench(out, "duel", &t->paired_bench);
    put_paired_bench(out, "models", &t->models);
    if (t->real.texts > 0 || t->real.note[0])
        mgl_real_put(out, &t->real);
    mgl_json_out_close_object(out);
}

void mgl_kernel_put_outcome(mgl_json_out *out, const mgl_trial_verdict *v)
{
    mgl_json_out_string(out, "outcome", mgl_outcome_name(v->outcome));
    mgl_json_out_string(out, "diagnostic", v->diagnostic[0] ? v->diagnostic : NULL);
    mgl_json_out_string(out, "hint", mgl_outcome_kernel_hint(v->outcome));
}

void mgl_kernel_put_gates(mgl_json_out *out, const mgl_kernel_findings *v)
{
    const mgl_kernel_result *b = &v->before;
    mgl_json_out_int(out, "line", b->verdict.line);
    mgl_json_out_string(out, "hash", b->hash[0] ? b->hash : NULL);
    mgl_json_out_bool(out, "compiled", b->compiled);
    mgl_json_out_string(out, "not_compiled", b->not_compiled[0] ? b->not_compiled : NULL);
    if (b->compiled) {
        mgl_json_out_real(out, "compile_s", b->compile_s);
        put_resources(out, &b->resources);
    }
    if (v->tried)
        put_trial(out, "trial", &v->trial);
}

void mgl_kernel_put_verdict(mgl_json_out *out, const mgl_kernel_unit *unit,
                            const mgl_kernel_findings *v, bool promoted)
{
    mgl_json_out_string(out, "unit", unit->name);
    mgl_kernel_put_outcome(out, &v->verdict);
    mgl_kernel_put_gates(out, v);
    if (promoted)
        mgl_json_out_bool(out, "promoted", promoted);
}

/* ---- promotion ------------------------------------------------------------------------------- */

/* The evidence that the overlay stores with the text. */
static mgl_status write_evidence(const mgl_kernel_findings *v, char **out, mgl_error *err)
{
    mgl_json_out json = {0};
    mgl_json_out_begin(&json, "megalith.kernel/1");
    mgl_json_out_string(&json, "outcome", mgl_outcome_name(v->verdict.outcome));
    mgl_json_out_string(&json, "hash", v->before.hash);
    put_trial(&json, "trial", &v->trial);
    mgl_json_out_close(&json);
    *out = json.text.failed ? NULL : json.text.bytes;
    if (json.text.failed)
        mgl_text_clear(&json.text);
    return *out ? MGL_OK : mgl_fail_memory(err, 1);
}

static mgl_status put_into_overlay(const mgl_kernel_candidate *candidate,
                                   const mgl_kernel_findings *v, mgl_error *err)
{
    char *tuned = NULL, *evidence = NULL;
    mgl_status status = mgl_trial_text(candidate, &tuned, err);
    if (!status)
        status = write_evidence(v, &evidence, err);
    if (!status)
        status = mgl_overlay_put(NULL, candidate->unit, tuned, evidence, err);
    mgl_free(tuned);
    mgl_free(evidence);
    return status;
}

mgl_status mgl_kernel_promote(const mgl_kernel_candidate *candidate,
                              const mgl_kernel_findings *verdict, bool *promoted, mgl_error *err)
{
    *promoted = false;
    if (!verdict->tried || verdict->verdict.outcome != MGL_OUTCOME_OK)
        return MGL_OK;
    mgl_status status = put_into_overlay(candidate, verdict, err);
    *promoted = !status;
    return status;
}
