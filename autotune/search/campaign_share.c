/*
 * Distributed campaigns: several workers run one campaign on a shared store. Each worker runs the
 * loop of campaign.c with its own device, and workers communicate only through the store. Before
 * each trial, a worker reads the trials stored since its last read. Its proposers learn them, and
 * its runner starts with a new incumbent. Then the worker reserves a trial number.
 *
 * Two workers may decide at the same time. So the significance level of a decision follows from the
 * number of the trial, which is unique, instead of the count of decisions.
 */
#include "autotune/search/campaign_parts.h"

#include <string.h>

mgl_status mgl_campaign_check_kind(const mgl_campaign_record *record,
                                   const mgl_runner_device *device, mgl_error *err)
{
    const char *wanted = record->device ? record->device : "";
    if (!strcmp(wanted, device->name))
        return MGL_OK;
    return mgl_fail(err, MGL_USAGE, "--device",
                    "the campaign \"%.80s\" runs on %.80s, and this device is %.80s: their times "
                    "cannot be compared; begin another campaign with --name",
                    record->name, wanted, device->name);
}

mgl_status campaign_join(campaign *c, mgl_error *err)
{
    if (!mgl_store_is_shared(c->o->store))
        return MGL_OK;
    mgl_status status =
        mgl_store_count_quarantined(c->o->store, c->record->id, &c->quarantined, err);
    return status ? status
                  : mgl_store_join(c->o->store, c->record->id, c->device.name, c->device.uuid,
                                   &c->worker, err);
}

mgl_status campaign_leave(campaign *c, bool *last, mgl_error *err)
{
    int64_t others = 0;
    mgl_status status = MGL_OK;
    bool joined = c->worker != NULL;
    mgl_store_leave(c->worker);
    c->worker = NULL;
    if (joined)
        status = mgl_store_count_workers(c->o->store, c->record->id, &others, err);
    *last = others == 0;
    return status;
}

mgl_status campaign_has_workers(mgl_store *store, int64_t id, bool *out, mgl_error *err)
{
    int64_t count = 0;
    mgl_status status = mgl_store_count_workers(store, id, &count, err);
    *out = count > 0;
    return status;
}

mgl_status campaign_check_workers(mgl_store *store, int64_t id, mgl_error *err)
{
    bool any = false;
    mgl_status status = campaign_has_workers(store, id, &any, err);
    if (status || !any)
        return status;
    return mgl_fail(err, MGL_DEVICE, mgl_store_path(store),
                    "workers run this campaign; stop them with `megalith campaign stop`, or wait");
}

/* ---- trials of other workers ----------------------------------------------------------------- */

static mgl_status hear_one(void *user, const mgl_trial *trial, mgl_error *err)
{
    campaign *c = user;
    c->seen = trial->id;
    c->record->trials++;
    if (trial->verdict.outcome == MGL_OUTCOME_OK && !trial->control)
        c->newest = trial->number;
    campaign_count_keep(c, trial);
    mgl_status status = mgl_check_abort(c->o->abort, err);
    return status || trial->control ? status : campaign_teach(c, trial, err);
}

mgl_status campaign_hear(campaign *c, mgl_error *err)
{
    if (!c->seen)
        c->record->trials = 0; /* all trials are read */
    return mgl_store_each_newer(c->o->store, c->record->id, c->seen, hear_one, c, err);
}

/* Switches to an incumbent that another worker kept. */
static mgl_status follow(campaign *c, mgl_error *err)
{
    if (!c->newest || c->newest == c->record->incumbent)
        return MGL_OK;
    c->record->incumbent = c->newest;
    mgl_status status = campaign_load_incumbent(c, err);
    if (!status)
        status = campaign_restart_runner(c, err);
    return status ? status
                  : campaign_tell(c, false, "start", NULL, err,
                                  "trial %lld of another worker is the incumbent",
                                  (long long)c->newest);
}

/* Ends the run if another worker quarantined an incumbent: what the proposers learned is invalid,
 * and new proposers must learn from the store. */
static mgl_status look_for_quarantined(campaign *c, mgl_error *err)
{
    int64_t now = 0;
    mgl_status status = mgl_store_count_quarantined(c->o->store, c->record->id, &now, err);
    if (!status && now != c->quarantined)
        campaign_end(c, "running", "another worker found that an incumbent is incorrect");
    return status;
}

/* ---- numbers --------------------------------------------------------------------------------- */

int64_t campaign_number(const campaign *c)
{
    return c->worker ? c->taken : c->record->trials + 1;
}

/* Workers draw in parallel, and no seed is drawn twice. */
uint64_t campaign_draw_seed(campaign *c, int64_t number)
{
    if (!c->worker)
        return mgl_campaign_seed(c->record->seed, number);
    uint64_t own = mgl_campaign_seed(c->record->seed, mgl_store_worker_id(c->worker));
    return mgl_campaign_seed(own, ++c->draws);
}

mgl_status campaign_take_number(campaign *c, int64_t *number, mgl_error *err)
{
    *number = c->record->trials + 1;
    if (!c->worker)
        return MGL_OK;
    mgl_status status = campaign_hear(c, err);
    if (!status)
        status = look_for_quarantined(c, err);
    if (status || c->over)
        return status;
    status = follow(c, err);
    if (!status && !c->taken)
        status = mgl_store_take_number(c->worker, c->o->max_trials, &c->taken, err);
    *number = c->taken;
    if (c->taken)
        c->decisions = c->taken - 1;
    return status;
}
