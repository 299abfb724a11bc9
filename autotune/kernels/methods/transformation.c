/* Parses transformations and scripts strictly: an unknown member is rejected. See
 * transformation.h. */
#include "autotune/kernels/methods/transformation.h"

#include <stdio.h>
#include <string.h>

enum { MAX_FILE = 1 << 20, MAX_NAME = 64, MAX_TUNABLE = 31 };

/* State of the parser: the file's JSON tree, and the error to fill. */
typedef struct reader {
    const mgl_json *json;
    mgl_error *err;
} reader;

bool mgl_names_have(const mgl_names *names, const char *name)
{
    for (int i = 0; i < names->count; i++)
        if (!strcmp(names->names[i], name))
            return true;
    return false;
}

void mgl_names_append(mgl_names *to, const mgl_names *names)
{
    for (int i = 0; i < names->count && to->count < MGL_MAX_NAMES; i++)
        if (!mgl_names_have(to, names->names[i]))
            to->names[to->count++] = names->names[i];
}

static mgl_status refuse(const reader *r, const char *what, const char *name)
{
    return mgl_fail(r->err, MGL_BAD_INPUT, r->json->file, "%s '%.80s'", what, name);
}

/* Rejects members that are not in `known`, a list that ends with NULL. */
static mgl_status check_members(const reader *r, const cJSON *object, const char *const *known)
{
    if (!cJSON_IsObject(object))
        return mgl_fail(r->err, MGL_BAD_INPUT, r->json->file, "must be an object");
    for (const cJSON *at = object->child; at; at = at->next) {
        const char *const *name = known;
        while (*name && strcmp(*name, at->string) != 0)
            name++;
        if (!*name)
            return refuse(r, "there is no member", at->string);
    }
    return MGL_OK;
}

static mgl_status get_string(const reader *r, const cJSON *object, const char *key,
                             const char **out)
{
    mgl_status status = mgl_json_get_string(r->json, object, key, true, out, r->err);
    return !status && !**out ? refuse(r, "empty:", key) : status;
}

/* Reads a name: letters, digits, '_', '-' and '.', starting with a letter. */
static mgl_status get_name(const reader *r, const cJSON *object, const char *key, const char **out)
{
    mgl_status status = get_string(r, object, key, out);
    if (status)
        return status;
    for (const char *at = *out; *at; at++) {
        bool letter = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z');
        bool other = (*at >= '0' && *at <= '9') || *at == '_' || *at == '-' || *at == '.';
        if ((!letter && !other) || (at == *out && !letter))
            return refuse(r, "no name", *out);
    }
    return strlen(*out) > MAX_NAME ? refuse(r, "too long a name", *out) : MGL_OK;
}

static mgl_status get_names(const reader *r, const cJSON *object, const char *key, bool wanted,
                            mgl_names *out)
{
    const cJSON *list = NULL;
    mgl_status status = mgl_json_get_array(r->json, object, key, true, &list, r->err);
    for (const cJSON *at = status ? NULL : list->child; at && !status; at = at->next) {
        if (!cJSON_IsString(at) || !at->valuestring[0] || out->count == MGL_MAX_NAMES)
            return refuse(r, "a list of names is wanted for", key);
        if (mgl_names_have(out, at->valuestring))
            return refuse(r, "given twice:", at->valuestring);
        out->names[out->count++] = at->valuestring;
    }
    return !status && wanted && !out->count ? refuse(r, "empty:", key) : status;
}

/* ---- parts of a transformation --------------------------------------------------------------- */

static mgl_status read_tunable(const reader *r, const cJSON *object, void *to_tunable)
{
    mgl_tunable *out = to_tunable;
    static const char *const known[] = {"name", "values", NULL};
    static const char small[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
    const cJSON *list = NULL;
    mgl_status status = check_members(r, object, known);
    if (!status)
        status = get_name(r, object, "name", &out->name);
    if (!status && (out->name[strspn(out->name, small)] || strlen(out->name) > MAX_TUNABLE))
        status = refuse(r, "a tunable's name has at most 31 small letters, digits and _, unlike",
                        out->name);
    if (!status)
        status = mgl_json_get_array(r->json, object, "values", true, &list, r->err);
    for (const cJSON *at = status ? NULL : list->child; at && !status; at = at->next) {
        if (out->count == MGL_MAX_TUNABLE_VALUES)
            return refuse(r, "too many values of", out->name);
        int64_t *to = &out->values[out->count++];
        status = mgl_json_item_int(r->json, at, out->name, 0, 1 << 20, to, r->err);
        if (!status && out->count > 1 && to[0] <= to[-1])
            return refuse(r, "values must be in ascending order:", out->name);
    }
    return !status && !out->count ? refuse(r, "no values of", out->name) : status;
}

static mgl_status read_region(const reader *r, const char *name, mgl_kernel_region *out)
{
    return mgl_kernel_region_parse(name, out) ? MGL_OK : refuse(r, "there is no region", name);
}

static mgl_status read_insert(const reader *r, const cJSON *object, void *to_insert)
{
    mgl_insert *out = to_insert;
    static const char *const known[] = {"region", "text", NULL};
    const char *region = NULL;
    mgl_status status = check_members(r, object, known);
    if (!status)
        status = get_string(r, object, "region", &region);
    if (!status)
        status = read_region(r, region, &out->region);
    return status ? status : get_string(r, object, "text", &out->text);
}

static mgl_status read_pass(const reader *r, const cJSON *object, void *to_pass)
{
    mgl_pass *out = to_pass;
    static const char *const known[] = {"name",      "instruction", "regions",
                                        "may_break", "retries",     NULL};
    mgl_names regions = {0};
    int64_t retries = 0;
    mgl_status status = check_members(r, object, known);
    if (!status)
        status = get_name(r, object, "name", &out->name);
    if (!status)
        status = get_string(r, object, "instruction", &out->instruction);
    if (!status)
        status = get_names(r, object, "regions", true, &regions);
    for (int i = 0; i < regions.count && !status; i++)
        status = read_region(r, regions.names[i], &out->regions[out->region_count++]);
    if (!status)
        status = mgl_json_get_bool(r->json, object, "may_break", true, &out->may_break, r->err);
    if (!status)
        status = mgl_json_get_int(r->json, object, "retries", true, 0, MGL_MAX_RETRIES, &retries,
                                  r->err);
    out->retries = (int)retries;
    return status;
}

/* Reads a list of objects; `read` fills one element of `size` bytes. */
typedef mgl_status read_fn(const reader *r, const cJSON *object, void *out);

static mgl_status read_list(const reader *r, const char *key, read_fn *read, void *to, size_t size,
                            int most, int *count)
{
    const cJSON *list = NULL;
    mgl_status status = mgl_json_get_array(r->json, r->json->root, key, true, &list, r->err);
    for (const cJSON *at = status ? NULL : list->child; at && !status; at = at->next) {
        if (*count == most)
            return refuse(r, "too many", key);
        status = read(r, at, (char *)to + (size_t)(*count)++ * size);
    }
    return status;
}

static mgl_status read_lists(const reader *r, mgl_transformation *t)
{
    mgl_status status = read_list(r, "tunables", read_tunable, t->tunables, sizeof *t->tunables,
                                  MGL_MAX_TUNABLES, &t->tunable_count);
    if (!status)
        status = read_list(r, "inserts", read_insert, t->inserts, sizeof *t->inserts,
                           MGL_MAX_INSERTS, &t->insert_count);
    if (!status)
        status = read_list(r, "passes", read_pass, t->passes, sizeof *t->passes, MGL_MAX_PASSES,
                           &t->pass_count);
    if (!status && !t->pass_count)
        status = refuse(r, "empty:", "passes");
    if (!status && t->passes[t->pass_count - 1].may_break)
        status = refuse(r, "the text after the last pass is evaluated: may_break must be false in",
                        t->passes[t->pass_count - 1].name);
    for (int i = 1; i < t->tunable_count && !status; i++)
        for (int j = 0; j < i && !status; j++)
            if (!strcmp(t->tunables[i].name, t->tunables[j].name))
                status = refuse(r, "given twice:", t->tunables[i].name);
    return status;
}

static mgl_status read_valid(const reader *r, mgl_transformation *t)
{
    const char *text = NULL, *names[MGL_MAX_TUNABLES];
    mgl_status status = mgl_json_get_string(r->json, r->json->root, "valid", false, &text, r->err);
    if (status || !text)
        return status;
    for (int i = 0; i < t->tunable_count; i++)
        names[i] = t->tunables[i].name;
    t->has_valid = true;
    return mgl_expression_parse(text, names, t->tunable_count, &t->valid, r->err);
}

static mgl_status read_names(const reader *r, mgl_transformation *t)
{
    const cJSON *root = r->json->root;
    mgl_status status = get_names(r, root, "architectures", true, &t->architectures);
    if (!status)
        status = get_names(r, root, "ops", true, &t->ops);
    if (!status)
        status = get_names(r, root, "requires", false, &t->requires);
    if (!status)
        status = get_names(r, root, "provides", true, &t->provides);
    for (int i = 0; i < t->ops.count && !status; i++)
        if (!mgl_kernel_unit_find(t->ops.names[i]))
            status = refuse(r, "no op that has micro-kernels:", t->ops.names[i]);
    return status;
}

/* Parses a text and checks its schema. */
static mgl_status read_tree(const char *text, size_t length, const char *file, const char *schema,
                            mgl_json *out, mgl_error *err)
{
    mgl_status status = mgl_json_parse(text, length, MAX_FILE, file, out, err);
    return status ? status : mgl_json_check_schema(out, schema, err);
}

mgl_status mgl_transformation_parse(const char *text, size_t length, const char *file,
                                    mgl_transformation *out, mgl_error *err)
{
    static const char *const known[] = {"schema", "name",     "summary",  "architectures",
                                        "ops",    "requires", "provides", "tunables",
                                        "valid",  "inserts",  "passes",   NULL};
    *out = (mgl_transformation){0};
    reader r = {&out->json, err};
    mgl_status status = read_tree(text, length, file, "megalith.transformation/1", &out->json, err);
    if (!status)
        status = check_members(&r, out->json.root, known);
    if (!status)
        status = get_name(&r, out->json.root, "name", &out->name);
    if (!status)
        status = get_string(&r, out->json.root, "summary", &out->summary);
    if (!status)
        status = read_names(&r, out);
    if (!status)
        status = read_lists(&r, out);
    if (!status)
        status = read_valid(&r, out);
    if (status)
        mgl_transformation_clear(out);
    return status;
}

void mgl_transformation_clear(mgl_transformation *t)
{
    mgl_json_clear(&t->json);
    *t = (mgl_transformation){0};
}

const char *mgl_transformation_missing(const mgl_transformation *t, const mgl_names *names)
{
    for (int i = 0; i < t->requires.count; i++) {
        if (!mgl_names_have(names, t->requires.names[i]))
        return t->requires.names[i];
    }
    return NULL;
}

int mgl_transformation_calls(const mgl_transformation *t)
{
    int calls = 0;
    for (int i = 0; i < t->pass_count; i++)
        calls += t->passes[i].region_count;
    return calls;
}

mgl_status mgl_transform_script_parse(const char *text, size_t length, const char *file,
                                      mgl_transform_script *out, mgl_error *err)
{
    static const char *const known[] = {"schema", "name", "architecture", "summary", "steps", NULL};
    *out = (mgl_transform_script){0};
    reader r = {&out->json, err};
    mgl_status status = read_tree(text, length, file, "megalith.script/1", &out->json, err);
    if (!status)
        status = check_members(&r, out->json.root, known);
    if (!status)
        status = get_name(&r, out->json.root, "name", &out->name);
    if (!status)
        status = get_name(&r, out->json.root, "architecture", &out->architecture);
    if (!status)
        status = get_string(&r, out->json.root, "summary", &out->summary);
    if (!status)
        status = get_names(&r, out->json.root, "steps", true, &out->steps);
    if (status)
        mgl_transform_script_clear(out);
    return status;
}

void mgl_transform_script_clear(mgl_transform_script *script)
{
    mgl_json_clear(&script->json);
    *script = (mgl_transform_script){0};
}
