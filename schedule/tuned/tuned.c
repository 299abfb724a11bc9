/*
 * Tuned entries as text and as programs: strict JSON parser, printer, digest, matching and replay
 * (lowering plus moves). Parsing is strict because a file in a user's folder may have any origin
 * and age. Values can still be meaningless: lowering, moves and the validator reject those.
 */
#include "schedule/tuned/tuned.h"

#include "base/json.h"
#include "base/json_out.h"
#include "schedule/text/scan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SCHEMA "megalith.tuned/1"
enum { FIRST_STEP = 256, MAX_SIZE = 1 << 28 };

#define KEYS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* The names of the model's extras in an entry. */
static const struct {
    const char *name;
    mgl_extras bit;
} extras[] = {{"qkv_bias", MGL_EXTRA_QKV_BIAS},
              {"o_bias", MGL_EXTRA_O_BIAS},
              {"mlp_bias", MGL_EXTRA_MLP_BIAS},
              {"qk_norm", MGL_EXTRA_QK_NORM}};
enum { EXTRA_COUNT = sizeof extras / sizeof *extras };

void mgl_tuned_clear(mgl_tuned *entry)
{
    mgl_moves_clear(&entry->moves);
    *entry = (mgl_tuned){0};
}

/* ---- reading -------------------------------------------------------------------------------- */

typedef struct reader {
    mgl_json *json;
    mgl_tuned *to;
    mgl_error *err;
} reader;

static mgl_status refuse(const reader *r, const char *key, const char *what)
{
    char where[200];
    snprintf(where, sizeof where, "%.120s: %.60s", r->json->file, key);
    return mgl_fail(r->err, MGL_BAD_INPUT, where, "%s", what);
}

static mgl_status check_keys(const reader *r, const cJSON *object, const char *const *known)
{
    for (const cJSON *item = object->child; item; item = item->next) {
        const char *const *key = known;
        while (*key && strcmp(*key, item->string) != 0)
            key++;
        if (!*key)
            return refuse(r, item->string, "is a key that no tuned entry has");
    }
    return MGL_OK;
}

/* A required object that contains only the given keys. */
static mgl_status open_object(const reader *r, const char *key, const char *const *known,
                              const cJSON **out)
{
    mgl_status status = mgl_json_get_object(r->json, r->json->root, key, true, out, r->err);
    return status ? status : check_keys(r, *out, known);
}

/* Reads a text of at most `size` - 1 printable ASCII characters that need no escapes in JSON. */
static mgl_status read_plain(const reader *r, const cJSON *object, const char *key, bool required,
                             char *to, size_t size)
{
    const char *text = "";
    mgl_status status = mgl_json_get_string(r->json, object, key, required, &text, r->err);
    bool plain = !status && strlen(text) < size;
    for (const char *at = text; plain && *at; at++)
        plain = *at >= ' ' && *at <= '~' && *at != '"' && *at != '\\';
    if (status)
        return status;
    if (!plain || (required && !*text))
        return refuse(r, key, "is too long, empty, or not plain letters");
    memcpy(to, text, strlen(text) + 1);
    return MGL_OK;
}

static mgl_status read_int(const reader *r, const cJSON *object, const char *key, int64_t hi,
                           int *out)
{
    int64_t value = 0;
    mgl_status status = mgl_json_get_int(r->json, object, key, true, 1, hi, &value, r->err);
    *out = (int)value;
    return status;
}

static mgl_status read_float(const reader *r, const cJSON *object, const char *key, float *out)
{
    double value = 0;
    mgl_status status = mgl_json_get_double(r->json, object, key, true, &value, r->err);
    *out = (float)value;
    if (!status && (!(*out > 0) || isinf(*out)))
        status = refuse(r, key, "is not a positive finite number");
    return status;
}

/* A name is used as a word of the text form and as a file name. */
static mgl_status read_name(const reader *r)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_.-";
    char *name = r->to->name;
    mgl_status status = read_plain(r, r->json->root, "name", true, name, sizeof r->to->name);
    if (!status && (strspn(name, letters) != strlen(name) || name[0] == '.'))
        status = refuse(r, "name", "has other letters than a-z, 0-9, `_`, `.` and `-`");
    return status;
}

static mgl_status read_extra(const reader *r, const cJSON *item)
{
    for (int i = 0; i < EXTRA_COUNT && cJSON_IsString(item); i++)
        if (!strcmp(item->valuestring, extras[i].name) && !(r->to->extras & extras[i].bit)) {
            r->to->extras |= extras[i].bit;
            return MGL_OK;
        }
    return refuse(r, "extras",
                  "is an array of qkv_bias, o_bias, mlp_bias and qk_norm, each at most once");
}

static mgl_status read_extras(const reader *r, const cJSON *shape)
{
    const cJSON *names, *item;
    mgl_status status = mgl_json_get_array(r->json, shape, "extras", false, &names, r->err);
    if (status)
        return status;
    r->to->any_extras = !names;
    cJSON_ArrayForEach(item, names)
    {
        if (!status)
            status = read_extra(r, item);
    }
    return status;
}

static mgl_status read_shape(const reader *r)
{
    const cJSON *shape;
    mgl_geometry *g = &r->to->geometry;
#define MGL_X(type, name, key, most, constant) #name,
    mgl_status status =
        open_object(r, "shape", KEYS(MGL_GEOMETRY_FACTS(MGL_X) "tied", "extras"), &shape);
#undef MGL_X
    for (int i = 0; i < MGL_GEOMETRY_FACT_COUNT && !status; i++)
        status = mgl_geometry_facts[i].is_float
                     ? read_float(r, shape, mgl_geometry_facts[i].name,
                                  mgl_fact_float(g, &mgl_geometry_facts[i]))
                     : read_int(r, shape, mgl_geometry_facts[i].name, MAX_SIZE,
                                mgl_fact_size(g, &mgl_geometry_facts[i]));
    if (!status)
        status = mgl_json_get_bool(r->json, shape, "tied", true, &r->to->tied, r->err);
    return status ? status : read_extras(r, shape);
}

static mgl_status read_dtype(const reader *r, const cJSON *object, const char *key, mgl_dtype *out)
{
    const char *name = NULL;
    mgl_status status = mgl_json_get_string(r->json, object, key, true, &name, r->err);
    if (!status && (!mgl_dtype_parse(name, out) || *out == MGL_I32))
        status = refuse(r, key, "is not a number format of weights");
    return status;
}

/* Reads the optional format of quantized matrices. */
static mgl_status read_weights(const reader *r, const cJSON *object, const char *key,
                               mgl_weight_format *out)
{
    const char *text = NULL;
    mgl_status status = mgl_json_get_string(r->json, object, key, false, &text, r->err);
    if (status || !text)
        return status;
    const char *at = text, *end = text + strlen(text);
    if (mgl_weight_format_read(&at, end, out) != MGL_FORMAT_READ || at != end ||
        !mgl_weight_format_is_scaled(*out))
        return refuse(r, key, "is not a format of quantized weights, such as int4 group 128 f16");
    return MGL_OK;
}

static mgl_status read_formats(const reader *r)
{
    const cJSON *formats;
    mgl_status status = open_object(r, "formats", KEYS("dtype", "kv", "layers", "head"), &formats);
    if (!status)
        status = read_dtype(r, formats, "dtype", &r->to->dtype);
    if (!status)
        status = read_dtype(r, formats, "kv", &r->to->kv);
    if (!status)
        status = read_weights(r, formats, "layers", &r->to->layers);
    return status ? status : read_weights(r, formats, "head", &r->to->head);
}

/* The device, target, sequences and capacity. */
static mgl_status read_place(const reader *r)
{
    char target[32] = "";
    const cJSON *root = r->json->root, *capacity;
    mgl_tuned *to = r->to;
    mgl_status status = read_plain(r, root, "device", true, to->device, sizeof to->device);
    if (!status)
        status = read_plain(r, root, "target", true, target, sizeof target);
    if (!status)
        status = mgl_target_parse(target, &to->target, r->err);
    if (!status)
        status = read_int(r, root, "sequences", MGL_MAX_SEQUENCES, &to->sequences);
    if (!status)
        status = open_object(r, "capacity", KEYS("lo", "hi"), &capacity);
    if (!status)
        status = read_int(r, capacity, "lo", MGL_MAX_CAPACITY, &to->capacity_lo);
    if (!status)
        status = read_int(r, capacity, "hi", MGL_MAX_CAPACITY, &to->capacity_hi);
    if (!status && to->capacity_lo > to->capacity_hi)
        status = refuse(r, "capacity", "ends before it begins");
    return status ? status : read_int(r, root, "lowering", INT32_MAX, &to->lowering);
}

static mgl_status read_config(const reader *r)
{
    const cJSON *config;
    mgl_schedule_config_default(&r->to->config);
    mgl_status status =
        mgl_json_get_object(r->json, r->json->root, "config", true, &config, r->err);
    return status ? status
                  : mgl_schedule_config_merge(r->json, config, "config.", &r->to->config, r->err);
}

/* Reads an array of strings as the lines of one text. */
static mgl_status read_moves(const reader *r)
{
    const cJSON *moves, *item;
    mgl_text lines = {0};
    mgl_status status = mgl_json_get_array(r->json, r->json->root, "moves", true, &moves, r->err);
    if (status)
        return status;
    cJSON_ArrayForEach(item, moves)
    {
        if (!cJSON_IsString(item) || strchr(item->valuestring, '\n'))
            status = refuse(r, "moves", "is an array of strings, one move each");
        else
            mgl_text_format(&lines, "%s\n", item->valuestring);
    }
    if (!status && lines.failed)
        status = mgl_fail_memory(r->err, lines.capacity);
    if (!status && lines.length)
        status = mgl_moves_parse(lines.bytes, lines.length, r->json->file, &r->to->moves, r->err);
    mgl_text_clear(&lines);
    return status;
}

static mgl_status read_interval(const reader *r, const cJSON *evidence)
{
    const cJSON *interval;
    mgl_tuned_evidence *to = &r->to->evidence;
    mgl_status status = mgl_json_get_array(r->json, evidence, "interval", true, &interval, r->err);
    if (status)
        return status;
    const cJSON *lo = interval->child, *hi = lo ? lo->next : NULL;
    if (!hi || hi->next || !cJSON_IsNumber(lo) || !cJSON_IsNumber(hi))
        return refuse(r, "interval", "is an array of two numbers");
    to->gain_lo = lo->valuedouble;
    to->gain_hi = hi->valuedouble;
    return MGL_OK;
}

static mgl_status read_evidence(const reader *r)
{
    const cJSON *evidence;
    mgl_tuned_evidence *to = &r->to->evidence;
    mgl_status status = open_object(
        r, "evidence", KEYS("gain", "interval", "commit", "date", "archive"), &evidence);
    if (!status)
        status = mgl_json_get_double(r->json, evidence, "gain", true, &to->gain, r->err);
    if (!status)
        status = read_interval(r, evidence);
    if (!status)
        status = read_plain(r, evidence, "commit", false, to->commit, sizeof to->commit);
    if (!status)
        status = read_plain(r, evidence, "date", false, to->date, sizeof to->date);
    if (!status)
        status = read_plain(r, evidence, "archive", false, to->archive, sizeof to->archive);
    return status;
}

static mgl_status read_schema(const reader *r)
{
    const char *schema = NULL;
    mgl_status status =
        mgl_json_get_string(r->json, r->json->root, "schema", true, &schema, r->err);
    if (!status && strcmp(schema, SCHEMA) != 0)
        status = refuse(r, "schema", "is not \"" SCHEMA "\"");
    return status ? status
                  : check_keys(r, r->json->root,
                               KEYS("schema", "name", "shape", "formats", "device", "target",
                                    "sequences", "capacity", "lowering", "config", "moves",
                                    "evidence"));
}

static mgl_status read_entry(const reader *r)
{
    static mgl_status (*const parts[])(const reader *r) = {read_schema,  read_name,    read_shape,
                                                           read_formats, read_place,   read_config,
                                                           read_moves,   read_evidence};
    mgl_status status = MGL_OK;
    if (!cJSON_IsObject(r->json->root))
        return mgl_fail(r->err, MGL_BAD_INPUT, r->json->file, "is not a JSON object");
    for (size_t i = 0; i < sizeof parts / sizeof *parts && !status; i++)
        status = parts[i](r);
    return status;
}

mgl_status mgl_tuned_parse(const char *text, size_t length, const char *file, mgl_tuned *out,
                           mgl_error *err)
{
    mgl_json json;
    reader r = {&json, out, err};
    *out = (mgl_tuned){0};
    mgl_status status = mgl_json_parse(text, length, MGL_TUNED_BYTES, file, &json, err);
    if (status)
        return status;
    status = read_entry(&r);
    mgl_json_clear(&json);
    if (status)
        mgl_tuned_clear(out);
    return status;
}

/* ---- writing -------------------------------------------------------------------------------- */

/* Appends one value in JSON format. */
static void put_number(mgl_text *out, double value)
{
    mgl_json_out json = {0};
    mgl_json_out_double(&json, NULL, value);
    mgl_text_put(out, json.text.bytes ? json.text.bytes : "");
    out->failed |= json.text.failed;
    mgl_text_clear(&json.text);
}

static void put_float(mgl_text *out, float value)
{
    mgl_json_out json = {0};
    mgl_json_out_float(&json, NULL, value);
    mgl_text_put(out, json.text.bytes ? json.text.bytes : "");
    out->failed |= json.text.failed;
    mgl_text_clear(&json.text);
}

/* Appends a config, indented as part of an object. */
static void put_config(mgl_text *out, const mgl_schedule_config *config, bool published)
{
    mgl_text text = {0};
    if (published)
        mgl_schedule_config_print_published(config, &text);
    else
        mgl_schedule_config_print(config, &text);
    out->failed |= text.failed;
    for (size_t i = 0; i + 1 < text.length; i++) {
        mgl_text_append(out, text.bytes + i, 1);
        if (text.bytes[i] == '\n')
            mgl_text_put(out, "  ");
    }
    mgl_text_clear(&text);
}

static void put_moves(mgl_text *out, const mgl_moves *moves)
{
    mgl_text_put(out, "[");
    for (int i = 0; i < moves->count; i++) {
        mgl_text_put(out, i ? ",\n    \"" : "\n    \"");
        mgl_move_print(&moves->moves[i], out);
        mgl_text_put(out, "\"");
    }
    mgl_text_put(out, moves->count ? "\n  ]" : "]");
}

static void put_extras(const mgl_tuned *e, mgl_text *out)
{
    const char *before = "";
    if (e->any_extras)
        return;
    mgl_text_put(out, ", \"extras\": [");
    for (int i = 0; i < EXTRA_COUNT; i++)
        if (e->extras & extras[i].bit) {
            mgl_text_format(out, "%s\"%s\"", before, extras[i].name);
            before = ", ";
        }
    mgl_text_put(out, "]");
}

static void put_weights(const char *key, mgl_weight_format format, mgl_text *out)
{
    char text[MGL_WEIGHT_FORMAT_TEXT];
    if (mgl_weight_format_is_scaled(format))
        mgl_text_format(out, ", \"%s\": \"%s\"", key, mgl_weight_format_print(format, text));
}

/* Appends all fields except the evidence, without the closing brace. published: with the first
 * published names of knobs, so that digests outlive a renaming. */
static void put_inputs(const mgl_tuned *e, bool published, mgl_text *out)
{
    mgl_text_format(out, "{\n  \"schema\": \"" SCHEMA "\",\n  \"name\": \"%s\",\n  \"shape\": {",
                    e->name);
    for (int i = 0; i < MGL_GEOMETRY_FACT_COUNT; i++) {
        const double value = mgl_fact_value(&e->geometry, &mgl_geometry_facts[i]);
        mgl_text_format(out, "\"%s\": ", mgl_geometry_facts[i].name);
        if (mgl_geometry_facts[i].is_float)
            put_float(out, (float)value);
        else
            mgl_text_format(out, "%d", (int)value);
        mgl_text_put(out, ", ");
    }
    mgl_text_format(out, "\"tied\": %s", e->tied ? "true" : "false");
    put_extras(e, out);
    mgl_text_format(out, "},\n  \"formats\": {\"dtype\": \"%s\", \"kv\": \"%s\"",
                    mgl_dtype_name(e->dtype), mgl_dtype_name(e->kv));
    put_weights("layers", e->layers, out);
    put_weights("head", e->head, out);
    mgl_text_put(out, "},\n");
    mgl_text_format(out, "  \"device\": \"%s\",\n  \"target\": \"%s:%d\",\n  \"sequences\": %d,\n",
                    e->device, e->target.arch, e->target.queues, e->sequences);
    mgl_text_format(out, "  \"capacity\": {\"lo\": %d, \"hi\": %d},\n  \"lowering\": %d,\n",
                    e->capacity_lo, e->capacity_hi, e->lowering);
    mgl_text_put(out, "  \"config\": ");
    put_config(out, &e->config, published);
    mgl_text_put(out, ",\n  \"moves\": ");
    put_moves(out, &e->moves);
}

static void put_evidence(const mgl_tuned_evidence *e, mgl_text *out)
{
    const struct {
        const char *key, *text;
    } texts[] = {{"commit", e->commit}, {"date", e->date}, {"archive", e->archive}};
    mgl_text_put(out, ",\n  \"evidence\": {\"gain\": ");
    put_number(out, e->gain);
    mgl_text_put(out, ", \"interval\": [");
    put_number(out, e->gain_lo);
    mgl_text_put(out, ", ");
    put_number(out, e->gain_hi);
    mgl_text_put(out, "]");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].text[0])
            mgl_text_format(out, ", \"%s\": \"%s\"", texts[i].key, texts[i].text);
    mgl_text_put(out, "}\n}\n");
}

void mgl_tuned_print(const mgl_tuned *entry, mgl_text *out)
{
    put_inputs(entry, false, out);
    put_evidence(&entry->evidence, out);
}

mgl_status mgl_tuned_digest(const mgl_tuned *entry, char out[MGL_SHA256_HEX], mgl_error *err)
{
    mgl_text text = {0};
    unsigned char hash[MGL_SHA256_BYTES];
    put_inputs(entry, true, &text);
    if (text.failed) {
        mgl_text_clear(&text);
        return mgl_fail_memory(err, text.capacity);
    }
    mgl_sha256_of(text.bytes, text.length, hash);
    mgl_sha256_hex(hash, out);
    mgl_text_clear(&text);
    return MGL_OK;
}

/* ---- matching and replay --------------------------------------------------------------------- */

int mgl_tuned_step(int capacity, int most)
{
    int step = FIRST_STEP;
    while (step < capacity)
        step *= 2;
    return step < most ? step : most;
}

/* Whether the model's matrices have the formats of the entry. Models whose layers have several
 * formats, or reordered columns, have no entries. */
static bool has_formats(const mgl_tuned *entry, const mgl_graph *graph)
{
    mgl_weight_format layers, head;
    return mgl_graph_find_formats(graph, &layers, &head) < 0 &&
           mgl_weight_format_equal(layers, entry->layers) &&
           mgl_weight_format_equal(head, entry->head);
}

bool mgl_tuned_is_of(const mgl_tuned *entry, const mgl_graph *graph)
{
    return has_formats(entry, graph) && mgl_geometry_equal(&entry->geometry, &graph->geometry) &&
           entry->tied == graph->tied &&
           (entry->any_extras || entry->extras == mgl_graph_extras(graph));
}

bool mgl_tuned_fits(const mgl_tuned *entry, const mgl_graph *graph, const mgl_target *target,
                    const char *device, const mgl_lower_options *options)
{
    return mgl_tuned_is_of(entry, graph) && entry->dtype == options->dtype &&
           entry->kv == options->dtype && !strcmp(entry->device, device) &&
           !strcmp(entry->target.arch, target->arch) && entry->target.queues == target->queues &&
           entry->sequences == options->sequences && entry->capacity_lo <= options->capacity &&
           entry->capacity_hi >= options->capacity && entry->lowering == MGL_LOWERING_VERSION;
}

/* Replaces the program by the program after the moves. */
static mgl_status apply_moves(const mgl_tuned *entry, mgl_program **program, mgl_error *err)
{
    mgl_program *moved = NULL;
    if (!entry->moves.count)
        return MGL_OK;
    mgl_status status = mgl_moves_apply(*program, &entry->moves, &moved, err);
    mgl_program_free(*program);
    *program = status ? NULL : moved;
    return status;
}

mgl_status mgl_tuned_replay(const mgl_tuned *entry, const mgl_graph *graph,
                            const mgl_target *target, int capacity, bool penalties,
                            mgl_program **out, mgl_error *err)
{
    mgl_program *program = NULL;
    mgl_lower_options options = {.dtype = entry->dtype,
                                 .capacity = capacity,
                                 .sequences = entry->sequences,
                                 .penalties = penalties};
    *out = NULL;
    mgl_status status = mgl_schedule_lower(graph, target, &options, &entry->config, &program, err);
    if (!status)
        status = apply_moves(entry, &program, err);
    if (!status)
        status = mgl_tuned_digest(entry, program->tuned_digest, err);
    if (status) {
        mgl_program_free(program);
        return status;
    }
    memcpy(program->tuned, entry->name, sizeof program->tuned);
    *out = program;
    return MGL_OK;
}
