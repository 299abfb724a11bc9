/* Implements record.h: release of records. */
#include "autotune/store/record.h"

#include "base/memory.h"

void mgl_proposal_clear(mgl_proposal *proposal)
{
    mgl_free(proposal->proposer);
    mgl_free(proposal->hypothesis);
    mgl_free(proposal->schedule);
    mgl_moves_clear(&proposal->moves);
    *proposal = (mgl_proposal){0};
}

void mgl_trial_clear(mgl_trial *trial)
{
    mgl_proposal_clear(&trial->proposal);
    mgl_free(trial->pairs);
    *trial = (mgl_trial){0};
}

void mgl_campaign_record_clear(mgl_campaign_record *record)
{
    char *texts[] = {record->name,    record->model, record->shape,     record->device,
                     record->target,  record->dtype, record->workloads, record->space,
                     record->options, record->state, record->reason};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        mgl_free(texts[i]);
    *record = (mgl_campaign_record){0};
}
