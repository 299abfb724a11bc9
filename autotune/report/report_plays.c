/*
 * Implements report_plays.h. A report uses only the store, so both programs are lowered again from
 * the campaign's record. An incomplete record, a shape that cannot be lowered and a device without
 * costs are no errors; the report then states why timelines are missing.
 */
#include "autotune/report/report_plays.h"

#include "autotune/candidates/gate.h"
#include "base/format.h"
#include "base/memory.h"

#include <string.h>

static void clear_play(report_play *play)
{
    mgl_free(play->spans);
    *play = (report_play){0};
}

void report_plays_clear(report_plays *plays)
{
    clear_play(&plays->first);
    clear_play(&plays->best);
}

static void say_why(report_plays *plays, const char *why)
{
    mgl_format_into(plays->why, sizeof plays->why, "%s", why);
}

/* Simulates the campaign's first workload, as mgl_gate_predict prices it. */
static mgl_status play_program(const mgl_subject *subject, const mgl_program *program,
                               report_play *out, mgl_error *err)
{
    const mgl_workload *workload = &subject->workloads.list[0];
    const double mean = workload->context + (double)(MGL_WORKLOAD_TOKENS - 1) / 2;
    const mgl_cost_load load = {workload->batch, mean, MGL_WORKLOAD_TOKENS};
    const mgl_program *list = mgl_cost_list(program, workload->batch);
    const size_t count = (size_t)list->task_count;
    out->spans = mgl_alloc_zero(count, sizeof *out->spans);
    if (!out->spans)
        return mgl_fail_memory(err, count * sizeof *out->spans);
    mgl_status status =
        mgl_schedule_cost_timeline(program, &subject->costs, &load, &out->cost, out->spans, err);
    if (status) {
        clear_play(out);
        return status;
    }
    out->span_count = list->task_count;
    out->queue_count = list->queue_count;
    return MGL_OK;
}

/* Lowers and simulates a proposal. `plays` (may be NULL) receives the predictions of the
 * default. */
static mgl_status play_proposal(const mgl_subject *subject, const mgl_proposal *proposal,
                                report_play *out, report_plays *plays, mgl_error *err)
{
    mgl_candidate made = {0};
    mgl_status status = mgl_gate_lower(subject, proposal, &made, err);
    if (!status && made.verdict.outcome == MGL_OUTCOME_UNMEASURED) {
        status = play_program(subject, made.programs[made.program_of[0]], out, err);
        if (!status && plays) {
            mgl_gate_predict(subject, &made);
            plays->start_us = made.predicted;
            memcpy(plays->start_each, made.predicted_us, sizeof plays->start_each);
        }
    }
    mgl_candidate_clear(&made);
    return status;
}

/* Returns the errors that must fail the report. All other errors become MGL_OK. */
static mgl_status keep_grave(mgl_status status)
{
    return status == MGL_NO_MEMORY || status == MGL_SYSTEM ? status : MGL_OK;
}

mgl_status report_plays_start(const mgl_campaign_record *campaign, report_plays *out,
                              mgl_error *err)
{
    mgl_subject subject;
    *out = (report_plays){0};
    mgl_schedule_config_default(&out->start);
    say_why(out, "The campaign's record has not what a program is made of.");
    mgl_status status = mgl_subject_read(campaign, &subject, err);
    if (status) {
        mgl_subject_close(&subject);
        return keep_grave(status);
    }
    out->start = subject.start;
    out->workload = subject.workloads.list[0];
    out->layers = subject.config.geometry.layers;
    if (!subject.has_costs) {
        say_why(out, "The costs of this device are not known, so nothing is predicted.");
    } else {
        const mgl_proposal proposal = {.config = out->start};
        status = play_proposal(&subject, &proposal, &out->first, out, err);
        say_why(out, out->first.span_count ? "" : "The default cannot be played through.");
    }
    mgl_subject_close(&subject);
    return keep_grave(status);
}

mgl_status report_plays_best(mgl_store *store, const mgl_campaign_record *campaign, int64_t best,
                             report_plays *plays, mgl_error *err)
{
    mgl_subject subject;
    mgl_trial trial = {0};
    if (!plays->first.span_count || !best)
        return MGL_OK;
    mgl_status status = mgl_subject_read(campaign, &subject, err);
    if (status) {
        mgl_subject_close(&subject);
        return keep_grave(status);
    }
    status = mgl_store_get_trial(store, campaign->id, best, false, &trial, err);
    if (!status)
        status = play_proposal(&subject, &trial.proposal, &plays->best, NULL, err);
    if (!plays->best.span_count)
        say_why(plays, "The best cannot be played through.");
    mgl_trial_clear(&trial);
    mgl_subject_close(&subject);
    return keep_grave(status);
}
