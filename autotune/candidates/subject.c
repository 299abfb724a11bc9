/* Implements mgl_subject_read: what a campaign tunes, from the texts of its record. */
#include "autotune/candidates/gate.h"

#include "autotune/store/shape.h"
#include "base/aliases.h"
#include "base/json.h"

#include <string.h>

enum { MAX_TEXT = 1 << 20 };

mgl_status mgl_subject_check_formats(const mgl_campaign_record *record, mgl_error *err)
{
    bool gpu = strcmp(record->device, "none") != 0 && strcmp(record->device, "cpu") != 0;
    if (!gpu || !strcmp(record->dtype, "bf16"))
        return MGL_OK;
    return mgl_fail(err, MGL_USAGE, "--dtype",
                    "trials on a GPU have bf16 weights, not %.40s: --device none proves and "
                    "predicts %.40s schedules, and --device cpu executes them",
                    record->dtype, record->dtype);
}

static mgl_status read_options(const char *text, mgl_subject *out, mgl_error *err)
{
    mgl_json json;
    const cJSON *config = NULL;
    const char *key = NULL;
    mgl_status status = mgl_json_parse(text, strlen(text), MAX_TEXT, "options", &json, err);
    if (status)
        return status;
    status = mgl_alias_key(MGL_ALIAS_KEY, &json, json.root, "", "allow_formats", &key, err);
    if (!status)
        status = mgl_json_get_bool(&json, json.root, key, true, &out->allow_formats, err);
    if (!status)
        status = mgl_json_get_object(&json, json.root, "config", true, &config, err);
    mgl_schedule_config_default(&out->start);
    if (!status)
        status = mgl_schedule_config_merge(&json, config, "config.", &out->start, err);
    mgl_json_clear(&json);
    return status;
}

/* Finds measured costs. Costs belong to one device model, not to an architecture. If the campaign
 * has no device, uses the costs of the device that was measured for the target. */
static bool find_costs(const mgl_campaign_record *record, const mgl_target *target, mgl_costs *out)
{
    const char *device;
    if (!strcmp(record->device, "none"))
        return !mgl_costs_find_for(target, NULL, &device, out, NULL);
    return !mgl_costs_find(record->device, out, NULL);
}

mgl_status mgl_subject_read(const mgl_campaign_record *record, mgl_subject *out, mgl_error *err)
{
    *out = (mgl_subject){0};
    if (!record->options || !record->shape || !record->target || !record->dtype ||
        !record->workloads || !record->space || !record->device)
        return mgl_fail(err, MGL_BAD_INPUT, record->name, "the campaign's record is not complete");
    mgl_status status = mgl_subject_check_formats(record, err);
    if (!status)
        status = read_options(record->options, out, err);
    if (!status)
        status = mgl_shape_parse(record->shape, &out->config, err);
    if (!status)
        status = mgl_target_parse(record->target, &out->target, err);
    if (!status)
        status = mgl_workloads_parse(record->workloads, &out->workloads, err);
    if (!status)
        status = mgl_search_space_parse(record->space, strlen(record->space), "space", &out->target,
                                        out->allow_formats, &out->space, err);
    if (!status && !mgl_dtype_parse(record->dtype, &out->dtype))
        status =
            mgl_fail(err, MGL_BAD_INPUT, record->name, "its dtype %.40s is unknown", record->dtype);
    out->capacity = (int)record->capacity;
    if (!status)
        status = mgl_subject_open(out, err);
    out->has_costs = !status && find_costs(record, &out->target, &out->costs);
    return status;
}
