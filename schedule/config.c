/*
 * ScheduleConfig as JSON: parser and printer of the choices of a search. config.def is the only
 * list of the knobs and their ranges. Every field except the schema is optional and has a default.
 * An unknown key is rejected with a list of the known keys, so that a misspelled knob is not
 * measured by mistake.
 */
#include "base/aliases.h"
#include "schedule/knobs.h"

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"

#include <stdio.h>
#include <string.h>

#define SCHEMA "megalith.config/1"
enum { MAX_CONFIG = 1 << 20 }; /* maximum bytes of a config */
/* JSON numbers are exact up to this one; mgl_knob_check knows the range of a knob. */
#define MOST_EXACT (INT64_C(1) << 53)

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

void mgl_schedule_config_default(mgl_schedule_config *out)
{
    memset(out, 0, sizeof *out);
    for (int i = 0; i < MGL_PLAIN_KNOBS; i++)
        mgl_knob_set(out, i, mgl_knob_row_get(i)->preset);
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

/* Checks that every key of the object is one of `known` (`count`). Rejects the first other key. */
static mgl_status check_keys(const mgl_json *json, const cJSON *object, const char *path,
                             const char *const *known, int count, mgl_error *err)
{
    for (const cJSON *item = object->child; item; item = item->next) {
        bool found = false;
        for (int i = 0; i < count && !found; i++)
            found = !strcmp(item->string, known[i]) ||
                    !strcmp(item->string, mgl_alias_published(MGL_ALIAS_KNOB, known[i]));
        if (found)
            continue;
        char list[400] = "";
        size_t n = 0;
        for (int i = 0; i < count && n < sizeof list; i++)
            n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", i ? ", " : "", known[i]);
        return mgl_fail(err, MGL_BAD_INPUT, place_of(json, path, item->string).text,
                        "unknown key \"%s%.60s\"; known keys: %s", path, item->string, list);
    }
    return MGL_OK;
}

static mgl_status read_knob(const mgl_json *json, const cJSON *root, const char *path, int knob,
                            mgl_schedule_config *out, mgl_error *err)
{
    const char *key = mgl_knob_row_get(knob)->name;
    int64_t value = mgl_knob_get(out, knob);
    mgl_status status = mgl_alias_key(MGL_ALIAS_KNOB, json, root, path, key, &key, err);
    if (!status)
        status = mgl_json_get_int(json, root, key, false, -MOST_EXACT, MOST_EXACT, &value, err);
    if (!status)
        status = mgl_knob_check(knob, value, place_of(json, path, key).text, err);
    if (!status)
        mgl_knob_set(out, knob, (int)value);
    return status;
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

/* A config inside another file may omit the schema. */
static mgl_status read_schema(const mgl_json *json, const cJSON *object, const char *path,
                              bool required, mgl_error *err)
{
    const char *schema = NULL;
    mgl_status status = mgl_json_get_string(json, object, "schema", false, &schema, err);
    if (status)
        return status;
    if (!schema && required)
        return mgl_fail(err, MGL_BAD_INPUT, json->file,
                        "the schema is missing: add \"schema\": \"" SCHEMA "\"");
    if (schema && strcmp(schema, SCHEMA) != 0)
        return mgl_fail(err, MGL_BAD_INPUT, place_of(json, path, "schema").text,
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
    const char *known[MGL_PLAIN_KNOBS + 2] = {"schema"};
    mgl_schedule_config config = *out;
    for (int i = 0; i < MGL_PLAIN_KNOBS; i++)
        known[i + 1] = mgl_knob_row_get(i)->name;
    known[MGL_PLAIN_KNOBS + 1] = "queues";
    mgl_status status = check_keys(json, object, path, known, MGL_PLAIN_KNOBS + 2, err);
    if (!status)
        status = read_schema(json, object, path, false, err);
    for (int i = 0; i < MGL_PLAIN_KNOBS && !status; i++)
        status = read_knob(json, object, path, i, &config, err);
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
    mgl_status status = read_schema(json, json->root, "", true, err);
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

/* Whether the knob is younger than the first published digests. Digests leave such a knob out while
 * it is open (0), so that digests of older configs remain valid. */
static bool is_younger(const char *name)
{
    return !strcmp(name, "unsplit");
}

static void print_config(const mgl_schedule_config *config, bool published, mgl_text *out)
{
    mgl_text_put(out, "{\n  \"schema\": \"" SCHEMA "\"");
    for (int i = 0; i < MGL_PLAIN_KNOBS; i++) {
        const char *name = mgl_knob_row_get(i)->name;
        if (published && is_younger(name) && mgl_knob_get(config, i) == 0)
            continue;
        if (published)
            name = mgl_alias_published(MGL_ALIAS_KNOB, name);
        mgl_text_format(out, ",\n  \"%s\": %d", name, mgl_knob_get(config, i));
    }
    mgl_text_put(out, ",\n  \"queues\": {");
    for (int i = 0; i < MGL_STEP_COUNT; i++)
        mgl_text_format(out, "%s\n    \"%s\": {\"first\": %d, \"count\": %d}", i ? "," : "",
                        steps[i], config->queues[i].first, config->queues[i].count);
    mgl_text_put(out, "\n  }\n}\n");
}

void mgl_schedule_config_print(const mgl_schedule_config *config, mgl_text *out)
{
    print_config(config, false, out);
}

void mgl_schedule_config_print_published(const mgl_schedule_config *config, mgl_text *out)
{
    print_config(config, true, out);
}
