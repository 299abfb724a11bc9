/*
 * Quarantine of a wrong winner: if the final measurement finds the incumbent wrong, the trial is
 * marked in the store, and the last correct kept trial before it becomes the incumbent again.
 * Resumed campaigns, reports and exports then use the restored incumbent. The final verdict is
 * stored first, as an event, so a run that is killed in between repeats the quarantine when it
 * resumes. Called by tune_run.c.
 */
#include "autotune/answers/answer.h"
#include "autotune/search/campaign_parts.h"

#include "base/format.h"

static mgl_status step_back(campaign *c, const mgl_answer_final_facts *last, mgl_error *err)
{
    char stands[40] = "the default";
    mgl_status status =
        mgl_store_quarantine(c->o->store, c->record->id, last->number, &last->verdict, err);
    if (!status)
        status = mgl_store_find_incumbent(c->o->store, c->record->id, &c->record->incumbent, err);
    if (status)
        return status;
    if (c->record->incumbent)
        mgl_format_into(stands, sizeof stands, "trial %lld", (long long)c->record->incumbent);
    return campaign_tell(c, true, MGL_QUARANTINED_EVENT, NULL, err,
                         "trial %lld is incorrect, so %s is the incumbent again: %s: %s",
                         (long long)last->number, stands, mgl_outcome_name(last->verdict.outcome),
                         last->verdict.diagnostic);
}

mgl_status mgl_campaign_quarantine(const mgl_campaign_options *options, mgl_error *err)
{
    campaign c = {.o = options, .record = options->record};
    mgl_answer_final_facts last;
    mgl_status status = mgl_answer_find_final(options->store, options->record->id, &last, err);
    if (status || !mgl_answer_is_wrong(&last) || last.number != options->record->incumbent)
        return status;
    return step_back(&c, &last, err);
}
