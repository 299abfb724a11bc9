/*
 * Final measurement: the winner against the default on a new runner, so that no state of a long
 * run has an effect. It uses a fresh process, fresh memory, a fresh nonce, and the decision's
 * number of pairs for every workload. Each kept trial was measured against the incumbent at that
 * time. Only the final measurement covers all kept trials together. The measured gain has no
 * effect on the campaign.
 *
 * A winner that is correct on synthetic weights is also run on the model's own weights (real.h).
 * If it fails there, it is not a winner (campaign_quarantine.c). The cuBLAS CUDA graph baseline of
 * the benchmark is timed for comparison.
 */
#include "autotune/answers/answer.h"
#include "autotune/search/campaign_parts.h"
#include "base/format.h"
#include "base/memory.h"

#include <math.h>
#include <string.h>

/* Makes a program that passes all gates; otherwise fails with the reason. */
static mgl_status pass(const campaign *c, const mgl_proposal *proposal, mgl_candidate *out,
                       mgl_error *err)
{
    mgl_status status = mgl_gate_pass(c->subject, proposal, c->o->abort, out, err);
    if (!status && out->verdict.outcome != MGL_OUTCOME_UNMEASURED)
        status = mgl_fail(err, MGL_GATE, "final", "%s: %s", mgl_outcome_name(out->verdict.outcome),
                          out->verdict.diagnostic);
    return status;
}

static mgl_status start(campaign *c, mgl_error *err)
{
    mgl_proposal first = {.config = c->subject->start};
    mgl_status status = pass(c, &first, &c->incumbent, err);
    return status ? status : campaign_restart_runner(c, err);
}

static mgl_status load_winner(campaign *c, attempt *a, mgl_error *err)
{
    mgl_trial winner = {0};
    mgl_status status =
        mgl_store_get_trial(c->o->store, c->record->id, c->record->incumbent, false, &winner, err);
    if (!status)
        status = pass(c, &winner.proposal, &a->candidate, err);
    memcpy(a->trial.digest, a->candidate.digest, sizeof a->trial.digest);
    mgl_trial_clear(&winner);
    return status;
}

static mgl_status check(campaign *c, attempt *a, mgl_error *err)
{
    unsigned char nonce[MGL_SHA256_BYTES];
    mgl_measurement m = measure_begin(c, a);
    mgl_status status = attempt_draw_nonce(a, nonce, err);
    if (!status)
        status = mgl_measure_check(&m, nonce, err);
    a->decided = m.decided;
    return status;
}

/* ---- real checkpoint ------------------------------------------------------------------------- */

/* Results of the final measurement that are not part of the trial. */
typedef struct final_facts {
    mgl_real_facts real;
    double baseline_us[MGL_MAX_WORKLOADS]; /* (workloads); 0: not measured */
    char no_baseline[MGL_MAX_DIAGNOSTIC + 1];
} final_facts;

/* Converts a failed side measurement to a note; the final measurement continues. */
static mgl_status note(mgl_status status, const mgl_error *why, char out[MGL_MAX_DIAGNOSTIC + 1],
                       mgl_error *err)
{
    if (status == MGL_INTERRUPTED || status == MGL_NO_MEMORY) {
        if (err)
            *err = *why;
        return status;
    }
    if (status) /* the message without its location, which may be a path */
        mgl_format_into(out, MGL_MAX_DIAGNOSTIC + 1, "%s", why->message);
    return MGL_OK;
}

static mgl_status look_at_checkpoint(campaign *c, attempt *a, final_facts *f, mgl_error *err)
{
    mgl_error why = {0};
    if (!c->o->checkpoint || !c->o->runner->decode)
        return MGL_OK;
    mgl_real_texts *texts = mgl_alloc_zero(1, sizeof *texts);
    mgl_trial_verdict verdict = {.outcome = MGL_OUTCOME_OK};
    mgl_status status = texts ? MGL_OK : mgl_fail_memory(&why, sizeof *texts);
    if (!status)
        status = mgl_real_open(c->o->checkpoint, c->subject, texts, &why);
    if (!status)
        status = mgl_real_run(c->o->runner, &a->candidate, texts, c->subject->allow_formats,
                              &f->real, &verdict, &why);
    if (!status && verdict.outcome != MGL_OUTCOME_OK)
        attempt_take(a, &verdict);
    if (status)
        f->real.checked = false;
    mgl_free(texts);
    return note(status, &why, f->real.note, err);
}

static mgl_status time_baseline(campaign *c, final_facts *f, mgl_error *err)
{
    mgl_runner *runner = c->o->runner;
    mgl_error why = {0};
    mgl_status status = MGL_OK;
    for (int w = 0; w < c->subject->workloads.count && !status && runner->baseline; w++)
        status = runner->baseline(runner, w, &f->baseline_us[w], &why);
    return note(status, &why, f->no_baseline, err);
}

/* ---- times ----------------------------------------------------------------------------------- */

static mgl_status measure(campaign *c, attempt *a, mgl_error *err)
{
    mgl_trial *trial = &a->trial;
    if (!c->o->runner->measures) {
        attempt_decide(a, MGL_OUTCOME_UNMEASURED,
                       "correct, but not timed: the device measures no times");
        return MGL_OK;
    }
    mgl_measurement m = measure_begin(c, a);
    mgl_status status = mgl_measure_pairs(&m, MGL_PAIRS_DECISION, err);
    a->decided = m.decided;
    if (!status && !a->decided)
        status = mgl_judge_summarize(trial, MGL_PAIRS_DECISION, err);
    if (status || a->decided)
        return status;
    /* no result is stored, so the next run of the ended campaign measures again */
    if (mgl_judge_is_disturbed(trial->pairs, trial->pair_count, trial->workload_count,
                               MGL_PAIRS_DECISION))
        return mgl_fail(err, MGL_DEVICE, "final",
                        "too many of the pairs against the default had an event (throttling, other "
                        "clocks, other processes); the same command measures them again when the "
                        "device is free");
    trial->verdict.outcome = trial->gain_lo > 0   ? MGL_OUTCOME_OK
                             : trial->gain_hi < 0 ? MGL_OUTCOME_REGRESSION
                                                  : MGL_OUTCOME_NO_GAIN;
    return MGL_OK;
}

/* ---- result ---------------------------------------------------------------------------------- */

static void put_baseline(mgl_json_out *out, const final_facts *f, int workloads)
{
    mgl_json_out_object(out, "cublas_graph");
    mgl_json_out_array(out, "us"); /* times of the workloads; 0: not measured */
    for (int w = 0; w < workloads; w++)
        mgl_json_out_real(out, NULL, f->baseline_us[w]);
    mgl_json_out_close_array(out);
    if (f->no_baseline[0])
        mgl_json_out_string(out, "note", f->no_baseline);
    mgl_json_out_close_object(out);
}

/* Stores the result as an event, whose text is JSON, and reports it. */
static mgl_status keep(campaign *c, const attempt *a, const final_facts *f, mgl_error *err)
{
    mgl_json_out out = {0};
    const mgl_trial *trial = &a->trial;
    mgl_json_out_begin(&out, "megalith.final/1");
    mgl_answer_trial(&out, trial);
    if (f->real.checked || f->real.texts > 0 || f->real.note[0])
        mgl_real_put(&out, &f->real);
    if (c->o->runner->baseline && !a->decided)
        put_baseline(&out, f, trial->workload_count);
    mgl_json_out_close(&out);
    mgl_status status = out.text.failed ? mgl_fail_memory(err, out.text.capacity)
                                        : mgl_store_add_event(c->o->store, c->record->id,
                                                              MGL_FINAL_EVENT, out.text.bytes, err);
    mgl_text_clear(&out.text);
    if (status)
        return status;
    if (a->decided)
        return campaign_tell(c, false, MGL_FINAL_EVENT, NULL, err, "trial %lld: %s: %s",
                             (long long)trial->number, mgl_outcome_name(trial->verdict.outcome),
                             trial->verdict.diagnostic);
    return campaign_tell(
        c, false, MGL_FINAL_EVENT, NULL, err,
        "trial %lld against the default, in a fresh process: %+.2f %% (%+.2f to %+.2f)",
        (long long)trial->number, 100 * expm1(trial->gain), 100 * expm1(trial->gain_lo),
        100 * expm1(trial->gain_hi));
}

static mgl_status make(campaign *c, attempt *a, mgl_error *err)
{
    final_facts f = {0};
    mgl_status status = start(c, err);
    if (!status)
        status = load_winner(c, a, err);
    if (!status)
        status = check(c, a, err);
    if (!status && !a->decided)
        status = look_at_checkpoint(c, a, &f, err);
    if (!status && !a->decided)
        status = measure(c, a, err);
    if (!status && !a->decided)
        status = time_baseline(c, &f, err);
    a->trial.seconds = campaign_clock(c) - a->began;
    return status ? status : keep(c, a, &f, err);
}

mgl_status mgl_campaign_measure_final(const mgl_campaign_options *options, mgl_error *err)
{
    campaign_locks held = {0};
    attempt a;
    campaign c = {.o = options, .subject = options->subject, .record = options->record};
    if (!options->runner->executes || options->record->incumbent == 0)
        return MGL_OK;
    c.began = campaign_clock(&c);
    mgl_status status = options->runner->get_device(options->runner, &c.device, err);
    if (!status)
        status = campaign_take_locks(&c, &held, err);
    if (status)
        return status;
    attempt_begin(&c, &a, options->record->incumbent);
    a.seed = mgl_campaign_seed(~options->record->seed, options->record->trials);
    a.trial.proposal.proposer = mgl_strdup(MGL_FINAL_EVENT);
    status = a.trial.proposal.proposer ? make(&c, &a, err) : mgl_fail_memory(err, 1);
    attempt_clear(&a);
    mgl_candidate_clear(&c.incumbent);
    campaign_release_locks(&held);
    return status;
}
