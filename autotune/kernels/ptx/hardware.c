/* Implements hardware.h: parses hardware.json and filters by target. */
#include "autotune/kernels/ptx/hardware.h"

#include "base/json.h"

#include <stdlib.h>
#include <string.h>

#define SCHEMA "megalith.ptx_hardware/1"

int mgl_ptx_target_number(const char *target)
{
    const char *digits = strpbrk(target, "0123456789");
    return digits ? atoi(digits) : 0;
}

static mgl_status write_feature(const mgl_json *json, const cJSON *item, int target, mgl_text *out,
                                mgl_error *err)
{
    int64_t since;
    const char *name, *instruction, *feature, *says;
    mgl_status status = mgl_json_get_int(json, item, "since", true, 0, 10000, &since, err);
    if (!status)
        status = mgl_json_get_string(json, item, "name", true, &name, err);
    if (!status)
        status = mgl_json_get_string(json, item, "instruction", true, &instruction, err);
    if (!status)
        status = mgl_json_get_string(json, item, "feature", true, &feature, err);
    if (!status)
        status = mgl_json_get_string(json, item, "says", true, &says, err);
    if (!status && since <= target)
        mgl_text_format(out, "%s (%s, %s): %s\n", name, instruction, feature, says);
    return status;
}

mgl_status mgl_ptx_hardware_write(const char *target, mgl_text *out, mgl_error *err)
{
    mgl_json json = {0};
    const char *schema, *text = (const char *)mgl_ptx_data_sources[0].text;
    const cJSON *features = NULL;
    mgl_status status = mgl_json_parse(text, strlen(text), 1 << 20, "hardware.json", &json, err);
    if (status)
        return status;
    status = mgl_json_get_string(&json, json.root, "schema", true, &schema, err);
    if (!status && strcmp(schema, SCHEMA) != 0)
        status = mgl_fail(err, MGL_BAD_INPUT, json.file, "the schema is not " SCHEMA);
    if (!status)
        status = mgl_json_get_array(&json, json.root, "features", true, &features, err);
    for (const cJSON *item = features ? features->child : NULL; item && !status; item = item->next)
        status = write_feature(&json, item, mgl_ptx_target_number(target), out, err);
    mgl_json_clear(&json);
    return status;
}
