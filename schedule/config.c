/*
 * ScheduleConfig: what a search may choose, as JSON. The knobs and their ranges stand in config.def
 * alone; every field but the schema may be left out and then has its default, and a key that is not
 * known is refused together with the list of those that are, so that a misspelt knob never passes
 * for a measured one.
 */
#include "schedule/schedule.h"

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"

#include <stdio.h>
#include <string.h>

#define SCHEMA "megalith.config/1"
enum { MAX_CONFIG = 1 << 20 }; /* bytes of a config */

typedef struct knob {
    const char *key;
    bool open; /* 0 is allowed too */
    int lowest, highest, multiple, preset;
    size_t field; /* offset of the int in mgl_schedule_config */
} knob;

enum { SET, OPEN };
static const knob knobs[] = {
#define MGL_KNOB(field, open, lowest, highest, multiple, preset, what)                             \
    {#field, open, lowest, highest, multiple, preset, offsetof(mgl_schedule_config, field)},
#define MGL_KNOB_STEP(id, key, what)
#include "schedule/config.def"
#undef MGL_KNOB
#undef MGL_KNOB_STEP
};
enum { KNOB_COUNT = sizeof knobs / sizeof *knobs };

static const char *const steps[MGL_STEP_COUNT] = {
#define MGL_KNOB(field, open, lowest, highest, multiple, preset, what)
#define MGL_KNOB_STEP(id, key, what) [MGL_STEP_##id] = key,
#include "schedule/config.def"
#undef MGL_KNOB
#undef MGL_KNOB_STEP
};

const char *mgl_step_name(mgl_step step)
{
    return steps[step];
}

static int *field_of(mgl_schedule_config *config, const knob *k)
{
    return (int *)(void *)((char *)config + k->field);
}

void mgl_schedule_config_default(mgl_schedule_config *out)
{
    memset(out, 0, sizeof *out);
    for (int i = 0; i < KNOB_COUNT; i++)
        *field_of(out, &knobs[i]) = knobs[i].preset;
}

/* ---- reading -------------------------------------------------------------------------------- */

/* "file: key", for messages. */
typedef struct place {
    char text[200];
} place;

static place place_of(const mgl_json *json, const char *path, const char *key)
{
    place out;
    snprintf(out.text, sizeof out.text, "%.100s: %s%.60s", json->file, path, key);
    return out;
}

/* Is every key of the object one of `known` (`count`)? The first that is not is refused. */
static mgl_status check_keys(const mgl_json *json, const cJSON *object, const char *path,
                             const char *const *known, int count, mgl_error *err)
{
    for (const cJSON *item = object->child; item; item = item->next) {
        bool found = false;
        for (int i = 0; i < count && !found; i++)
            found = !strcmp(item->string, known[i]);
        if (found)
            continue;
        char list[256] = "";
        size_t n = 0;
        for (int i = 0; i < count && n < sizeof list; i++)
            n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", i ? ", " : "", known[i]);
        return mgl_fail(err, MGL_BAD_INPUT, place_of(json, path, item->string).text,
                        "unknown key \"%s%.60s\"; known here: %s", path, item->string, list);
    }
    return MGL_OK;
}

static mgl_status read_knob(const mgl_json *json, const cJSON *root, const char *path,
                            const knob *k, mgl_schedule_config *out, mgl_error *err)
{
    int64_t value = *field_of(out, k);
    mgl_status status =
        mgl_json_get_int(json, root, k->key, false, INT32_MIN, INT32_MAX, &value, err);
    if (status)
        return status;
    char multiple[40] = "a whole number";
    if (k->multiple > 1)
        snprintf(multiple, sizeof multiple, "a multiple of %d", k->multiple);
    bool good = value >= k->lowest && value <= k->highest && value % k->multiple == 0;
    if (!good && !(k->open && value == 0))
        return mgl_fail(err, MGL_BAD_INPUT, place_of(json, path, k->key).text,
                        "must be %s%s between %d and %d, not %lld", k->open ? "0 or " : "",
                        multiple, k->lowest, k->highest, (long long)value);
    *field_of(out, k) = (int)value;
    return MGL_OK;
}

static mgl_status read_step(const mgl_json *json, const cJSON *queues, const char *prefix, int step,
                            mgl_schedule_config *out, mgl_error *err)
{
    static const char *const known[] = {"first", "count"};
    const cJSON *object = NULL;
    int64_t first = 0, count = 0;
    char path[96];
    mgl_status status;
    snprintf(path, sizeof path, "%.30squeues.%s.", prefix, steps[step]);
    if ((status = mgl_json_get_object(json, queues, steps[step], false, &object, err)) || !object)
        return status;
    if ((status = check_keys(json, object, path, known, 2, err)) ||
        (status =
             mgl_json_get_int(json, object, "first", false, 0, MGL_MAX_QUEUES - 1, &first, err)) ||
        (status = mgl_json_get_int(json, object, "count", false, 0, MGL_MAX_QUEUES, &count, err)))
        return status;
    if (first + count > MGL_MAX_QUEUES)
        return mgl_fail(err, MGL_BAD_INPUT, place_of(json, "queues.", steps[step]).text,
                        "must end at queue %d, the last there can be, not at %lld",
                        MGL_MAX_QUEUES - 1, (long long)(first + count - 1));
    out->queues[step].first = (int)first;
    out->queues[step].count = (int)count;
    return MGL_OK;
}

static mgl_status read_schema(const mgl_json *json, mgl_error *err)
{
    const char *schema = NULL;
    mgl_status status = mgl_json_get_string(json, json->root, "schema", false, &schema, err);
    if (status)
        return status;
    if (!schema)
        return mgl_fail(err, MGL_BAD_INPUT, json->file,
                        "a ScheduleConfig says what it is: add \"schema\": \"" SCHEMA "\"");
    if (strcmp(schema, SCHEMA) != 0)
        return mgl_fail(err, MGL_BAD_INPUT, place_of(json, "", "schema").text,
                        "must be \"" SCHEMA "\", not \"%.80s\"", schema);
    return MGL_OK;
}

static mgl_status read_queues(const mgl_json *json, const cJSON *object, const char *path,
                              mgl_schedule_config *out, mgl_error *err)
{
    const cJSON *queues = NULL;
    char inner[64];
    mgl_status status;
    snprintf(inner, sizeof inner, "%.40squeues.", path);
    if ((status = mgl_json_get_object(json, object, "queues", false, &queues, err)) || !queues)
        return status;
    if ((status = check_keys(json, queues, inner, steps, MGL_STEP_COUNT, err)))
        return status;
    for (int i = 0; i < MGL_STEP_COUNT; i++)
        if ((status = read_step(json, queues, path, i, out, err)))
            return status;
    return MGL_OK;
}

mgl_status mgl_schedule_config_merge(const mgl_json *json, const cJSON *object, const char *path,
                                     mgl_schedule_config *out, mgl_error *err)
{
    const char *known[KNOB_COUNT + 2] = {"schema"};
    mgl_schedule_config config = *out;
    for (int i = 0; i < KNOB_COUNT; i++)
        known[i + 1] = knobs[i].key;
    known[KNOB_COUNT + 1] = "queues";
    mgl_status status = check_keys(json, object, path, known, KNOB_COUNT + 2, err);
    for (int i = 0; i < KNOB_COUNT && !status; i++)
        status = read_knob(json, object, path, &knobs[i], &config, err);
    if (!status)
        status = read_queues(json, object, path, &config, err);
    if (!status)
        *out = config;
    return status;
}

static mgl_status read_config(const mgl_json *json, mgl_schedule_config *out, mgl_error *err)
{
    if (!cJSON_IsObject(json->root))
        return mgl_fail(err, MGL_BAD_INPUT, json->file,
                        "a ScheduleConfig is a JSON object: {\"schema\": \"" SCHEMA "\", ...}");
    mgl_status status = read_schema(json, err);
    return status ? status : mgl_schedule_config_merge(json, json->root, "", out, err);
}

mgl_status mgl_schedule_config_parse(const char *text, size_t length, const char *file,
                                     mgl_schedule_config *out, mgl_error *err)
{
    mgl_json json;
    mgl_schedule_config config;
    mgl_status status = mgl_json_parse(text, length, MAX_CONFIG, file, &json, err);
    if (status)
        return status;
    mgl_schedule_config_default(&config);
    status = read_config(&json, &config, err);
    mgl_json_clear(&json);
    if (!status)
        *out = config;
    return status;
}

mgl_status mgl_schedule_config_read(const char *path, mgl_schedule_config *out, mgl_error *err)
{
    char *text;
    size_t length;
    mgl_status status = mgl_file_read(path, MAX_CONFIG, &text, &length, err);
    if (status)
        return status;
    status = mgl_schedule_config_parse(text, length, path, out, err);
    mgl_free(text);
    return status;
}

/* ---- writing -------------------------------------------------------------------------------- */

void mgl_schedule_config_print(const mgl_schedule_config *config, mgl_text *out)
{
    mgl_schedule_config copy = *config;
    mgl_text_put(out, "{\n  \"schema\": \"" SCHEMA "\"");
    for (int i = 0; i < KNOB_COUNT; i++)
        mgl_text_format(out, ",\n  \"%s\": %d", knobs[i].key, *field_of(&copy, &knobs[i]));
    mgl_text_put(out, ",\n  \"queues\": {");
    for (int i = 0; i < MGL_STEP_COUNT; i++)
        mgl_text_format(out, "%s\n    \"%s\": {\"first\": %d, \"count\": %d}", i ? "," : "",
                        steps[i], copy.queues[i].first, copy.queues[i].count);
    mgl_text_put(out, "\n  }\n}\n");
}
