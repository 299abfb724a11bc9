/*
 * Selects earlier campaigns as a prior. A campaign qualifies if it is in the same store, has the
 * same device, target and number format, and its model has a similar shape; the capacity may
 * differ. Of these, the two newest are used. Trials that started after this campaign was created
 * are left out, so a resumed campaign gets the same prior as at its start.
 */
#include "autotune/tune_prior.h"

#include "autotune/store/shape.h"
#include "base/memory.h"

#include <string.h>

enum {
    MOST_CAMPAIGNS = 2,
    MOST_TRIALS = 2000, /* limit of trials of one campaign; the first ones are used */
    NEAR_SHARE = 2      /* largest ratio of two sizes in similar shapes */
};

/* ---- selection of campaigns ------------------------------------------------------------------ */

static bool is_near_size(int a, int b)
{
    return a <= NEAR_SHARE * b && b <= NEAR_SHARE * a;
}

static bool is_near_shape(const mgl_geometry *a, const mgl_geometry *b)
{
    return is_near_size(a->hidden, b->hidden) && is_near_size(a->layers, b->layers) &&
           is_near_size(a->ffn, b->ffn) && is_near_size(a->heads, b->heads);
}

/* Whether the weights have the same codes. Groups may differ. */
static bool has_codes(const mgl_config *a, const mgl_config *b)
{
    return a->layers.code == b->layers.code && a->head.code == b->head.code;
}

struct found {
    const mgl_tune *tune;
    mgl_campaign_record list[MOST_CAMPAIGNS]; /* (count) the newest one last; only names and ids are
                                               * set */
    int count;
};

static bool is_same(const char *a, const char *b)
{
    return a && b && !strcmp(a, b);
}

static mgl_status consider(void *user, const mgl_campaign_record *other, mgl_error *err)
{
    struct found *found = user;
    const mgl_campaign_record *own = &found->tune->record;
    mgl_config config;
    if (other->id >= own->id || !is_same(other->device, own->device) ||
        !is_same(other->target, own->target) || !is_same(other->dtype, own->dtype) ||
        !other->shape || mgl_shape_parse(other->shape, &config, NULL) ||
        !has_codes(&config, &found->tune->subject.config) ||
        !is_near_shape(&config.geometry, &found->tune->subject.config.geometry))
        return MGL_OK;
    char *name = mgl_strdup(other->name);
    if (!name)
        return mgl_fail_memory(err, strlen(other->name));
    if (found->count == MOST_CAMPAIGNS) {
        mgl_free(found->list[0].name);
        memmove(found->list, found->list + 1, (MOST_CAMPAIGNS - 1) * sizeof *found->list);
        found->count--;
    }
    found->list[found->count++] = (mgl_campaign_record){.id = other->id, .name = name};
    return MGL_OK;
}

/* ---- trials of a campaign -------------------------------------------------------------------- */

struct trials {
    int64_t before;  /* unix time */
    mgl_trial *list; /* (count) */
    size_t count, capacity;
};

/* Copies the members that a search reads. The store lends the trial only for this call. */
static mgl_status take(void *user, const mgl_trial *trial, mgl_error *err)
{
    struct trials *t = user;
    mgl_trial copy = *trial;
    if (trial->started_unix > t->before || trial->proposal.schedule)
        return MGL_OK;
    if (!mgl_grow((void **)&t->list, &t->capacity, t->count, sizeof copy))
        return mgl_fail_memory(err, sizeof copy);
    copy.pairs = NULL;
    copy.pair_count = 0;
    copy.proposal.proposer = copy.proposal.hypothesis = copy.proposal.schedule = NULL;
    copy.proposal.moves = (mgl_moves){0};
    const mgl_moves *moves = &trial->proposal.moves;
    mgl_status status = MGL_OK;
    for (int i = 0; i < moves->count && !status; i++)
        status = mgl_moves_add(&copy.proposal.moves, &moves->moves[i], err);
    t->list[t->count++] = copy;
    return status;
}

static mgl_status tell(const mgl_tune *tune, int64_t campaign, const mgl_campaign_options *options,
                       size_t *told, mgl_error *err)
{
    struct trials t = {.before = tune->record.created_unix};
    mgl_status status = mgl_store_each_trial(tune->store, campaign, 1, MOST_TRIALS, take, &t, err);
    for (int p = 0; p < options->proposer_count && !status; p++) {
        mgl_proposer *proposer = options->proposers[p].proposer;
        if (!strcmp(proposer->name, "surrogate") && t.count > 0)
            status = mgl_surrogate_add_prior(proposer, t.list, (int)t.count, err);
    }
    *told += t.count;
    for (size_t i = 0; i < t.count; i++)
        mgl_trial_clear(&t.list[i]);
    mgl_free(t.list);
    return status;
}

/* ---- transfer -------------------------------------------------------------------------------- */

static mgl_status say(const mgl_tune *tune, const mgl_campaign_options *options,
                      const struct found *found, size_t told, mgl_error *err)
{
    mgl_text text = {0};
    mgl_text_format(&text, "surrogate learned from %zu trials of earlier campaigns:", told);
    for (int i = 0; i < found->count; i++)
        mgl_text_format(&text, "%s %s", i ? "," : "", found->list[i].name);
    mgl_status status = text.failed ? mgl_fail_memory(err, text.capacity) : MGL_OK;
    if (!status)
        status = mgl_store_add_event(tune->store, tune->record.id, "prior", text.bytes, err);
    if (!status && options->on_event) {
        const mgl_campaign_event event = {"prior", text.bytes, NULL};
        options->on_event(options->user, &event);
    }
    mgl_text_clear(&text);
    return status;
}

mgl_status mgl_tune_add_prior(const mgl_tune *tune, const mgl_campaign_options *options,
                              mgl_error *err)
{
    struct found found = {.tune = tune};
    size_t told = 0;
    bool wanted = false;
    for (int p = 0; p < options->proposer_count; p++)
        wanted |= !strcmp(options->proposers[p].proposer->name, "surrogate");
    if (!wanted || tune->record.id <= 0)
        return MGL_OK;
    mgl_status status = mgl_store_each_campaign(tune->store, consider, &found, err);
    for (int i = 0; i < found.count && !status; i++)
        status = tell(tune, found.list[i].id, options, &told, err);
    if (!status && told > 0 && tune->record.trials == 0)
        status = say(tune, options, &found, told, err);
    for (int i = 0; i < found.count; i++)
        mgl_free(found.list[i].name);
    return status;
}
