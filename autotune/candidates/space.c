/*
 * Search spaces: the default values, and reading and writing of the JSON form. The default values
 * of a knob are a few steps around values that are known to work; queue runs begin and end at
 * fractions of the target's queues. Lowering decides whether values fit together, so a space may
 * contain many rejected configs. Implements space.h.
 */
#include "autotune/candidates/space.h"

#include "base/json.h"
#include "base/json_out.h"

#include <stdio.h>
#include <string.h>

#define SCHEMA "megalith.space/1"
enum { MAX_SPACE = 1 << 20 }; /* bytes of a space's text */

/* Default values of the knobs except queue runs; `gpu` knobs are left out on the CPU, which streams
 * nothing. Some knobs are left out deliberately. `rows` and `second_rows`: fewer rows make prompts
 * slower, which no workload measures, so a search would reduce them without a visible cost. The
 * same holds for the knobs of a second list, `gamma_scaled` and `warpgroups`. `share`: it was
 * slower wherever it was measured. `merge` has one value besides the default, which merges splits
 * of attention by tasks of their own. */
#define KNOB_VALUES(X)                                                                             \
    X("splits", false, 0, 1, 2, 4, 6, 8, 12, 16, 24, 32)                                           \
    X("exchange", false, 0, MGL_EXCHANGE_COUNTERS, MGL_EXCHANGE_FLAGS)                             \
    X("exchange_precision", false, 0, 1, 2, 3)                                                     \
    X("merge", false, 0, MGL_MERGE_IN_O)                                                           \
    X("unsplit", true, 0, 1, 256, 1024)                                                            \
    X("page_bytes", true, 4096, 8192, 12288, 16384, 24576, 32768)                                  \
    X("ring_pages", true, 0, 4, 6, 8, 12, 16, 24)                                                  \
    X("warps", true, 4, 8, 12, 16)                                                                 \
    X("stage_bytes", true, 0, 16384, 24576, 32768, 49152, 65536)                                   \
    X("flight_bytes", true, 16384, 32768, 49152, 65536, 98304, 131072, 262144)                     \
    X("pending_bytes", true, 0, 16384, 32768, 49152, 65536, 98304)                                 \
    X("prefetch_bytes", true, 0, 65536, 131072, 262144)

#define COUNT_OF(...) (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int))
static const struct {
    const char *name;
    bool gpu;
    int count;
    int values[12]; /* (count) */
} knob_values[] = {
#define X(name, gpu, ...) {name, gpu, COUNT_OF(__VA_ARGS__), {__VA_ARGS__}},
    KNOB_VALUES(X)
#undef X
};

/* ---- the default ---------------------------------------------------------------------------- */

/* Inserts a value in order. False: the value is already in the list, or the list is full. */
static bool add_value(mgl_knob *knob, int value)
{
    int at = knob->count;
    while (at > 0 && knob->values[at - 1] > value)
        at--;
    if (knob->count == MGL_MAX_KNOB_VALUES || (at > 0 && knob->values[at - 1] == value))
        return false;
    memmove(knob->values + at + 1, knob->values + at,
            (size_t)(knob->count - at) * sizeof *knob->values);
    knob->values[at] = value;
    knob->count++;
    return true;
}

static mgl_knob knob_of(int number)
{
    const mgl_knob_row *row = mgl_knob_row_get(number);
    return (mgl_knob){.name = row->name, .changes_format = row->changes_format};
}

/* Adds a knob unless it has only one value. */
static void add_knob(mgl_search_space *space, const mgl_knob *knob)
{
    if (knob->count > 1)
        space->knobs[space->count++] = *knob;
}

/* Adds the knobs of a queue run. It begins at 0 or at a quarter. Its length is an eighth or a
 * multiple of it, or the largest multiple of 16 or 8 queues, which often divides rows evenly. */
static void add_runs(const mgl_target *target, mgl_step step, mgl_search_space *out)
{
    mgl_knob first = knob_of(mgl_knob_first(step)), count = knob_of(mgl_knob_run(step));
    for (int i = 0; i < 4; i++)
        add_value(&first, target->queues * i / 4);
    for (int i = 0; i <= 8; i++)
        add_value(&count, target->queues * i / 8);
    add_value(&count, target->queues / 16 * 16);
    add_value(&count, target->queues / 8 * 8);
    add_knob(out, &first);
    add_knob(out, &count);
}

void mgl_search_space_default(const mgl_target *target, bool changes_format, mgl_search_space *out)
{
    bool cpu = !strcmp(target->arch, "cpu");
    *out = (mgl_search_space){.moves = (1u << MGL_MOVE_COUNT) - 1};
    for (size_t i = 0; i < sizeof knob_values / sizeof *knob_values; i++) {
        mgl_knob knob = knob_of(mgl_knob_find(knob_values[i].name));
        if ((knob.changes_format && !changes_format) || (knob_values[i].gpu && cpu))
            continue;
        for (int v = 0; v < knob_values[i].count; v++)
            add_value(&knob, knob_values[i].values[v]);
        add_knob(out, &knob);
    }
    for (int s = 0; s < MGL_STEP_COUNT; s++)
        add_runs(target, (mgl_step)s, out);
}

/* Whether a search may not choose this value, because no workload measures its cost: fewer rows, or
 * a second list, which may exchange other number formats. */
static bool is_no_search_s(const char *name, int value)
{
    if (!strcmp(name, "rows"))
        return value > 0 && value < MGL_MAX_ROWS;
    return !strcmp(name, "second_rows") || !strcmp(name, "gamma_scaled") ||
           !strcmp(name, "warpgroups");
}

static bool has_knob(const mgl_search_space *space, const char *name)
{
    for (int i = 0; i < space->count; i++)
        if (!strcmp(space->knobs[i].name, name))
            return true;
    return false;
}

void mgl_search_space_admit(const mgl_schedule_config *config, const mgl_schedule_config *start,
                            mgl_search_space *space)
{
    for (int k = 0; k < MGL_PLAIN_KNOBS; k++) { /* the space already contains the queue knobs */
        mgl_knob knob = knob_of(k);
        const int value = mgl_knob_get(config, k);
        if (knob.changes_format || has_knob(space, knob.name) || is_no_search_s(knob.name, value))
            continue;
        add_value(&knob, mgl_knob_get(start, k));
        add_value(&knob, value);
        add_knob(space, &knob);
    }
}

/* ---- reading -------------------------------------------------------------------------------- */

/* State of parsing. */
struct reading {
    const mgl_json *json;
    const mgl_target *target;
    bool changes_format;
    mgl_search_space *out;
};

static mgl_status check_keys(const mgl_json *json, mgl_error *err)
{
    for (const cJSON *item = json->root->child; item; item = item->next)
        if (strcmp(item->string, "schema") != 0 && strcmp(item->string, "knobs") != 0 &&
            strcmp(item->string, "moves") != 0)
            return mgl_fail(err, MGL_BAD_INPUT, json->file,
                            "unknown key \"%.60s\"; a space has schema, knobs and moves",
                            item->string);
    return MGL_OK;
}

/* Checks that a number of queues, or a queue index, is within the target's queues. */
static mgl_status check_queues(const struct reading *r, int number, int64_t value,
                               const char *where, mgl_error *err)
{
    bool run = number >= MGL_PLAIN_KNOBS;
    bool count = run && mgl_knob_row_get(number)->open;
    if (!run || value < r->target->queues + (count ? 1 : 0))
        return MGL_OK;
    return mgl_fail(err, MGL_BAD_INPUT, where, "must be within the target's %d queues, not %lld",
                    r->target->queues, (long long)value);
}

static mgl_status read_value(const struct reading *r, int number, const cJSON *item,
                             const char *where, mgl_knob *knob, mgl_error *err)
{
    int64_t value = 0;
    mgl_status status =
        mgl_json_item_int(r->json, item, knob->name, INT32_MIN, INT32_MAX, &value, err);
    if (!status)
        status = mgl_knob_check(number, value, where, err);
    if (!status)
        status = check_queues(r, number, value, where, err);
    if (status)
        return status;
    if (knob->count == MGL_MAX_KNOB_VALUES)
        return mgl_fail(err, MGL_BAD_INPUT, where, "a knob has at most %d values",
                        MGL_MAX_KNOB_VALUES);
    if (!add_value(knob, (int)value))
        return mgl_fail(err, MGL_BAD_INPUT, where, "%lld is given twice", (long long)value);
    return MGL_OK;
}

static mgl_status fail_unknown_knob(const mgl_json *json, const char *name, mgl_error *err)
{
    mgl_text names = {0};
    for (int i = 0; i < mgl_knob_count(); i++)
        mgl_text_format(&names, "%s%s", i ? ", " : "", mgl_knob_name(i));
    mgl_status status =
        mgl_fail(err, MGL_BAD_INPUT, json->file, "unknown knob \"%.60s\"; known: %s", name,
                 names.bytes ? names.bytes : "those of a ScheduleConfig");
    mgl_text_clear(&names);
    return status;
}

static mgl_status read_knob(const struct reading *r, const cJSON *array, mgl_error *err)
{
    char where[200];
    int number = mgl_knob_find(array->string);
    if (number < 0)
        return fail_unknown_knob(r->json, array->string, err);
    snprintf(where, sizeof where, "%.100s: knobs.%s", r->json->file, array->string);
    mgl_knob knob = knob_of(number);
    for (int i = 0; i < r->out->count; i++) /* the knob appears twice: under its old name and its
                                             * new name */
        if (!strcmp(r->out->knobs[i].name, knob.name))
            return mgl_fail(err, MGL_BAD_INPUT, where, "the knob \"%s\" is given twice: remove one",
                            knob.name);
    if (knob.changes_format && !r->changes_format)
        return mgl_fail(err, MGL_BAD_INPUT, where,
                        "changes number formats; this needs --allow-formats");
    if (!cJSON_IsArray(array) || !array->child)
        return mgl_fail(err, MGL_BAD_INPUT, where, "must be an array of the allowed values");
    for (const cJSON *item = array->child; item; item = item->next) {
        mgl_status status = read_value(r, number, item, where, &knob, err);
        if (status)
            return status;
    }
    r->out->knobs[r->out->count++] = knob;
    return MGL_OK;
}

static mgl_status read_knobs(const struct reading *r, mgl_error *err)
{
    const cJSON *knobs = NULL;
    mgl_status status = mgl_json_get_object(r->json, r->json->root, "knobs", false, &knobs, err);
    if (status || !knobs)
        return status;
    _Static_assert((int)MGL_KNOB_ROWS <= (int)MGL_MAX_KNOBS, "a space has room for every knob");
    r->out->count = 0;
    for (const cJSON *item = knobs->child; item && !status; item = item->next)
        status = read_knob(r, item, err);
    return status;
}

static mgl_status read_move(const struct reading *r, const cJSON *item, mgl_error *err)
{
    mgl_text names = {0};
    for (int i = 0; i < MGL_MOVE_COUNT; i++) {
        if (cJSON_IsString(item) && !strcmp(item->valuestring, mgl_move_name((mgl_move_kind)i))) {
            mgl_text_clear(&names);
            r->out->moves |= 1u << i;
            return MGL_OK;
        }
        mgl_text_format(&names, "%s%s", i ? ", " : "", mgl_move_name((mgl_move_kind)i));
    }
    mgl_status status =
        mgl_fail(err, MGL_BAD_INPUT, r->json->file, "moves: unknown move: \"%.60s\"; known: %s",
                 cJSON_IsString(item) ? item->valuestring : "a value of another type",
                 names.bytes ? names.bytes : "several");
    mgl_text_clear(&names);
    return status;
}

static mgl_status read_moves(const struct reading *r, mgl_error *err)
{
    const cJSON *moves = NULL;
    mgl_status status = mgl_json_get_array(r->json, r->json->root, "moves", false, &moves, err);
    if (status || !moves)
        return status;
    r->out->moves = 0;
    for (const cJSON *item = moves->child; item && !status; item = item->next)
        status = read_move(r, item, err);
    return status;
}

static mgl_status read_space(const struct reading *r, mgl_error *err)
{
    if (!cJSON_IsObject(r->json->root))
        return mgl_fail(err, MGL_BAD_INPUT, r->json->file,
                        "a space must be a JSON object: {\"schema\": \"" SCHEMA "\", ...}");
    mgl_status status = mgl_json_check_schema(r->json, SCHEMA, err);
    if (!status)
        status = check_keys(r->json, err);
    if (!status)
        status = read_knobs(r, err);
    return status ? status : read_moves(r, err);
}

mgl_status mgl_search_space_parse(const char *text, size_t length, const char *file,
                                  const mgl_target *target, bool changes_format,
                                  mgl_search_space *out, mgl_error *err)
{
    mgl_json json;
    mgl_search_space space;
    mgl_status status = mgl_json_parse(text, length, MAX_SPACE, file, &json, err);
    if (status)
        return status;
    mgl_search_space_default(target, changes_format, &space);
    struct reading reading = {&json, target, changes_format, &space};
    status = read_space(&reading, err);
    mgl_json_clear(&json);
    if (!status)
        *out = space;
    return status;
}

/* ---- writing -------------------------------------------------------------------------------- */

void mgl_search_space_print(const mgl_search_space *space, mgl_text *out)
{
    mgl_json_out to = {0};
    mgl_json_out_begin(&to, SCHEMA);
    mgl_json_out_object(&to, "knobs");
    for (int k = 0; k < space->count; k++) {
        mgl_json_out_array(&to, space->knobs[k].name);
        for (int v = 0; v < space->knobs[k].count; v++)
            mgl_json_out_int(&to, NULL, space->knobs[k].values[v]);
        mgl_json_out_close_array(&to);
    }
    mgl_json_out_close_object(&to);
    mgl_json_out_array(&to, "moves");
    for (int i = 0; i < MGL_MOVE_COUNT; i++)
        if (space->moves & 1u << i)
            mgl_json_out_string(&to, NULL, mgl_move_name((mgl_move_kind)i));
    mgl_json_out_close_array(&to);
    mgl_json_out_close(&to);
    out->failed |= to.text.failed;
    if (to.text.bytes)
        mgl_text_append(out, to.text.bytes, to.text.length);
    mgl_text_put(out, "\n");
    mgl_text_clear(&to.text);
}
