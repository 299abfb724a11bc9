/* The winner of a campaign without a clock: the correct trial with the lowest objective predicted
 * by the cost model. The default's objective is predicted for the same workloads. */
#include "autotune/answers/answer.h"

#include "base/format.h"

#include <math.h>
#include <string.h>

bool mgl_answer_has_clock(const mgl_campaign_record *campaign)
{
    return campaign->device && strcmp(campaign->device, "none") != 0 &&
           strcmp(campaign->device, "cpu") != 0;
}

bool mgl_answer_may_win(const mgl_trial *trial)
{
    return !trial->control && trial->predicted_us > 0 &&
           (mgl_outcome_is_correct(trial->verdict.outcome) ||
            trial->verdict.outcome == MGL_OUTCOME_UNMEASURED);
}

mgl_status mgl_answer_predict_default(const mgl_subject *subject, mgl_answer_predicted *out,
                                      mgl_error *err)
{
    const mgl_proposal start = {.config = subject->start};
    mgl_candidate made = {0};
    *out = (mgl_answer_predicted){.workloads = subject->workloads};
    if (!subject->has_costs)
        return MGL_OK;
    mgl_status status = mgl_gate_lower(subject, &start, &made, err);
    if (!status && made.verdict.outcome == MGL_OUTCOME_UNMEASURED) {
        mgl_gate_predict(subject, &made);
        out->default_us = made.predicted;
        memcpy(out->default_each, made.predicted_us, sizeof out->default_each);
    }
    mgl_candidate_clear(&made);
    return status;
}

void mgl_answer_note_predicted(mgl_answer_predicted *out, const mgl_trial *trial)
{
    if (!mgl_answer_may_win(trial) || !(trial->predicted_us < (out->number ? out->us : HUGE_VAL)))
        return;
    out->number = trial->number;
    out->us = trial->predicted_us;
    for (int w = 0; w < trial->workload_count; w++)
        out->each[w] = trial->workloads[w].predicted_us;
}

static mgl_status take_trial(void *user, const mgl_trial *trial, mgl_error *err)
{
    (void)err;
    mgl_answer_note_predicted(user, trial);
    return MGL_OK;
}

mgl_status mgl_answer_find_predicted(mgl_store *store, const mgl_campaign_record *campaign,
                                     mgl_answer_predicted *out, mgl_error *err)
{
    mgl_subject subject;
    *out = (mgl_answer_predicted){0};
    if (campaign->incumbent || mgl_answer_has_clock(campaign) || !campaign->trials)
        return MGL_OK;
    mgl_status status = mgl_subject_read(campaign, &subject, err);
    if (!status)
        status = mgl_answer_predict_default(&subject, out, err);
    mgl_subject_close(&subject);
    if (!status)
        status = mgl_store_each_trial(store, campaign->id, 1, 0, take_trial, out, err);
    if (out->default_us > 0 && out->us >= out->default_us)
        out->number = 0; /* the default is at least as fast */
    return status;
}

mgl_status mgl_answer_put_predicted(mgl_json_out *out, mgl_store *store,
                                    const mgl_campaign_record *campaign, mgl_error *err)
{
    mgl_trial trial = {0};
    mgl_answer_predicted best;
    mgl_status status = mgl_answer_find_predicted(store, campaign, &best, err);
    if (!status && !best.number)
        mgl_json_out_null(out, "predicted_best");
    if (status || !best.number)
        return status;
    status = mgl_store_get_trial(store, campaign->id, best.number, false, &trial, err);
    if (!status) {
        mgl_json_out_object(out, "predicted_best");
        mgl_json_out_bool(out, "predicted", true);
        mgl_json_out_real(out, "default_predicted_us", best.default_us);
        mgl_answer_trial(out, &trial);
        status = mgl_answer_proposal(out, &trial.proposal, err);
        mgl_json_out_close_object(out);
    }
    mgl_trial_clear(&trial);
    return status;
}

void mgl_answer_predicted_line(const mgl_answer_predicted *best, mgl_text *out)
{
    if (!best->number) {
        mgl_text_put(out, "the default");
        return;
    }
    mgl_text_format(out, "trial %lld, predicted %.1f us a token", (long long)best->number,
                    best->us);
    if (best->default_us > 0)
        mgl_text_format(out, ", the default %.1f", best->default_us);
    mgl_text_put(out, "; predicted, not measured");
}
