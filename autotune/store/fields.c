/* Defines the field tables of fields.h from its lists. */
#include "autotune/store/fields.h"

#include <string.h>

#define X(kind, name, member) MGL_FIELD(mgl_campaign_record, kind, name, member),
static const mgl_field campaign[] = {MGL_CAMPAIGN_FIELDS(X)};
#undef X
#define X(kind, name, member) MGL_FIELD(mgl_trial, kind, name, member),
static const mgl_field trial[] = {MGL_TRIAL_FIELDS(X)};
#undef X
#define X(kind, name, member) MGL_FIELD(mgl_workload_result, kind, name, member),
static const mgl_field result[] = {MGL_RESULT_FIELDS(X)};
#undef X
#define X(kind, name, member) MGL_FIELD(mgl_pair, kind, name, member),
static const mgl_field pair[] = {MGL_PAIR_FIELDS(X)};
#undef X

const mgl_fields mgl_campaign_fields = MGL_FIELDS(campaign);
const mgl_fields mgl_trial_fields = MGL_FIELDS(trial);
const mgl_fields mgl_result_fields = MGL_FIELDS(result);
const mgl_fields mgl_pair_fields = MGL_FIELDS(pair);

bool mgl_field_is_int(mgl_field_kind kind)
{
    return kind <= MGL_FIELD_BOOL;
}

int64_t mgl_field_int(mgl_field_kind kind, const void *at)
{
    return kind == MGL_FIELD_INT    ? *(const int *)at
           : kind == MGL_FIELD_UINT ? *(const unsigned *)at
           : kind == MGL_FIELD_BOOL ? *(const bool *)at
                                    : *(const int64_t *)at;
}

bool mgl_field_set_int(mgl_field_kind kind, void *at, int64_t value)
{
    if (kind == MGL_FIELD_INT)
        *(int *)at = (int)value;
    else if (kind == MGL_FIELD_UINT)
        *(unsigned *)at = (unsigned)value;
    else if (kind == MGL_FIELD_BOOL)
        *(bool *)at = value != 0;
    else
        *(int64_t *)at = value;
    return mgl_field_int(kind, at) == value;
}

const char *mgl_field_text(mgl_field_kind kind, const void *at)
{
    return kind == MGL_FIELD_TEXT      ? *(char *const *)at
           : kind == MGL_FIELD_OUTCOME ? mgl_outcome_name(*(const mgl_outcome *)at)
                                       : at;
}

bool mgl_config_is_none(const mgl_schedule_config *config)
{
    static const mgl_schedule_config none;
    return !memcmp(config, &none, sizeof none);
}
