/* Defines the field tables of fields.h from its lists. */
#include "autotune/store/fields.h"

#include <string.h>

#define FIELD(record, kind, name, member)                                                          \
    {MGL_FIELD_##kind, #name, offsetof(record, member), sizeof(((record *)0)->member)},
#define TABLE(name, list)                                                                          \
    const mgl_fields mgl_##name##_fields = {list, (int)(sizeof list / sizeof *list)};

#define X(kind, name, member) FIELD(mgl_campaign_record, kind, name, member)
static const mgl_field campaign[] = {MGL_CAMPAIGN_FIELDS(X)};
#undef X
#define X(kind, name, member) FIELD(mgl_trial, kind, name, member)
static const mgl_field trial[] = {MGL_TRIAL_FIELDS(X)};
#undef X
#define X(kind, name, member) FIELD(mgl_workload_result, kind, name, member)
static const mgl_field result[] = {MGL_RESULT_FIELDS(X)};
#undef X
#define X(kind, name, member) FIELD(mgl_pair, kind, name, member)
static const mgl_field pair[] = {MGL_PAIR_FIELDS(X)};
#undef X

TABLE(campaign, campaign)
TABLE(trial, trial)
TABLE(result, result)
TABLE(pair, pair)

bool mgl_config_is_none(const mgl_schedule_config *config)
{
    static const mgl_schedule_config none;
    return !memcmp(config, &none, sizeof none);
}
