/* Implements the parser of contexts and the check of their conditions. */
#include "autotune/kernels/gates/context.h"

#include <stdio.h>
#include <string.h>

enum { LARGEST = 64 << 10 };

/* State of the parser: the result, and the names that expressions may use. */
typedef struct reading {
    mgl_kernel_context *out;
    const char *names[MGL_CONTEXT_NAMES];
    mgl_error *err;
} reading;

static mgl_status fail(const reading *r, const char *what, const char *why)
{
    return mgl_fail(r->err, MGL_BAD_INPUT, r->out->json.file, "%s: %s", what, why);
}

static mgl_status read_string(const reading *r, const cJSON *of, const char *key, bool required,
                              char *to, size_t size)
{
    const char *text = "";
    mgl_status status = mgl_json_get_string(&r->out->json, of, key, required, &text, r->err);
    if (status)
        return status;
    return (size_t)snprintf(to, size, "%s", text) < size ? MGL_OK : fail(r, key, "is too long");
}

static mgl_status parse_expression(const reading *r, const char *text, const char *what,
                                   mgl_expression *out)
{
    mgl_error why = {0};
    if (!mgl_expression_parse(text, r->names, r->out->name_count, out, &why))
        return MGL_OK;
    return fail(r, what, why.message);
}

static mgl_status read_expression(const reading *r, const cJSON *of, const char *key,
                                  mgl_expression *out)
{
    const char *text = NULL;
    mgl_status status = mgl_json_get_string(&r->out->json, of, key, true, &text, r->err);
    return status ? status : parse_expression(r, text, key, out);
}

static mgl_status read_conditions(const reading *r, const char *key, mgl_expression *out,
                                  int *count)
{
    const cJSON *list = NULL, *item;
    mgl_status status =
        mgl_json_get_array(&r->out->json, r->out->json.root, key, false, &list, r->err);
    if (status || !list)
        return status;
    cJSON_ArrayForEach(item, list)
    {
        if (*count == MGL_CONTEXT_CONDITIONS || !cJSON_IsString(item))
            return fail(r, key, "has to have at most 8 expressions");
        status = parse_expression(r, item->valuestring, key, &out[(*count)++]);
        if (status)
            return status;
    }
    return MGL_OK;
}

/* ---- scalars and tunables ---------------------------------------------------------------------
 */

static mgl_status read_values(const reading *r, const cJSON *list, mgl_context_name *out)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, list)
    {
        if (out->value_count == MGL_CONTEXT_VALUES)
            return fail(r, out->name, "has more than 32 values");
        int64_t *value = &out->values[out->value_count++];
        mgl_status status =
            mgl_json_item_int(&r->out->json, item, "values", 0, INT64_C(1) << 40, value, r->err);
        if (status)
            return status;
        out->from = out->value_count == 1 || *value < out->from ? *value : out->from;
        out->to = out->value_count == 1 || *value > out->to ? *value : out->to;
    }
    return out->value_count ? MGL_OK : fail(r, out->name, "has no values");
}

static mgl_status read_name(reading *r, const cJSON *of, bool listed)
{
    const cJSON *values = NULL;
    const int64_t most = INT64_C(1) << 40;
    if (r->out->name_count == MGL_CONTEXT_NAMES)
        return fail(r, "scalars", "more than 16 scalars and tunables");
    mgl_context_name *out = &r->out->names[r->out->name_count];
    mgl_status status = read_string(r, of, "name", true, out->name, sizeof out->name);
    if (!status)
        status = mgl_json_get_array(&r->out->json, of, "values", listed, &values, r->err);
    if (!status && values)
        status = read_values(r, values, out);
    else if (!status)
        status = mgl_json_get_int(&r->out->json, of, "from", true, 0, most, &out->from, r->err);
    if (!status && !values)
        status = mgl_json_get_int(&r->out->json, of, "to", true, out->from, most, &out->to, r->err);
    r->names[r->out->name_count] = out->name;
    r->out->name_count += !status;
    return status;
}

static mgl_status read_names(reading *r, const char *key, bool listed)
{
    const cJSON *list = NULL, *item;
    mgl_status status =
        mgl_json_get_array(&r->out->json, r->out->json.root, key, !listed, &list, r->err);
    if (status || !list)
        return status;
    cJSON_ArrayForEach(item, list)
    {
        status = read_name(r, item, listed);
        if (status)
            return status;
    }
    return MGL_OK;
}

/* ---- tensors, tolerances, programs ------------------------------------------------------------
 */

static mgl_status read_tensors(const reading *r, const char *key, bool input,
                               mgl_context_tensor *out, int *count)
{
    const cJSON *list = NULL, *item;
    mgl_status status =
        mgl_json_get_array(&r->out->json, r->out->json.root, key, true, &list, r->err);
    if (status)
        return status;
    cJSON_ArrayForEach(item, list)
    {
        mgl_context_tensor *t = &out[*count];
        if (*count == MGL_CONTEXT_TENSORS)
            return fail(r, key, "more than 16");
        (*count)++;
        status = read_string(r, item, "name", true, t->name, sizeof t->name);
        if (!status)
            status = read_string(r, item, "type", true, t->type, sizeof t->type);
        if (!status)
            status = read_string(r, item, "init", input, t->init, sizeof t->init);
        if (!status)
            status = read_expression(r, item, "size", &t->size);
        if (status)
            return status;
    }
    return MGL_OK;
}

static mgl_status read_numbers(const reading *r)
{
    const mgl_json *json = &r->out->json;
    const cJSON *of = NULL;
    mgl_context_budget *b = &r->out->budget;
    const int64_t most = INT64_C(1) << 30;
    mgl_status status = mgl_json_get_object(json, json->root, "tolerances", true, &of, r->err);
    if (!status)
        status = mgl_json_get_double(json, of, "f32", true, &r->out->tolerance_f32, r->err);
    if (!status)
        status = mgl_json_get_double(json, of, "bf16", true, &r->out->tolerance_bf16, r->err);
    if (!status)
        status = mgl_json_get_double(json, of, "f16", true, &r->out->tolerance_f16, r->err);
    if (!status)
        status = mgl_json_get_object(json, json->root, "budget", true, &of, r->err);
    if (!status)
        status = mgl_json_get_int(json, of, "registers", true, 1, 255, &b->registers, r->err);
    if (!status)
        status = mgl_json_get_int(json, of, "shared", true, 0, most, &b->shared, r->err);
    if (!status)
        status = mgl_json_get_int(json, of, "spill", true, 0, most, &b->spill, r->err);
    return status ? status
                  : mgl_json_get_int(json, of, "global", true, 0, most, &b->global, r->err);
}

static mgl_status read_harness(const reading *r, const cJSON *of)
{
    const mgl_json *json = &r->out->json;
    mgl_context_harness *h = &r->out->harnesses[r->out->harness_count];
    int64_t sequences = 1, capacity = 0;
    if (r->out->harness_count == MGL_CONTEXT_HARNESSES)
        return fail(r, "harness", "more than 8");
    r->out->harness_count++;
    mgl_status status = read_string(r, of, "variant", true, h->variant, sizeof h->variant);
    if (!status)
        status = read_string(r, of, "shape", true, h->shape, sizeof h->shape);
    if (!status)
        status = read_string(r, of, "dtype", true, h->dtype, sizeof h->dtype);
    if (!status)
        status = read_string(r, of, "config", false, h->config, sizeof h->config);
    if (!status)
        status = mgl_json_get_int(json, of, "sequences", true, 1, 16, &sequences, r->err);
    if (!status)
        status = mgl_json_get_int(json, of, "capacity", true, 1, 1 << 20, &capacity, r->err);
    h->sequences = (int)sequences;
    h->capacity = (int)capacity;
    return status;
}

static mgl_status read_harnesses(const reading *r)
{
    const cJSON *list = NULL, *item;
    mgl_status status =
        mgl_json_get_array(&r->out->json, r->out->json.root, "harness", true, &list, r->err);
    if (status)
        return status;
    cJSON_ArrayForEach(item, list)
    {
        status = read_harness(r, item);
        if (status)
            return status;
    }
    return r->out->harness_count ? MGL_OK : fail(r, "harness", "names no program");
}

static mgl_status read_all(reading *r)
{
    const mgl_json *json = &r->out->json;
    mgl_kernel_context *c = r->out;
    mgl_status status = mgl_json_get_string(json, json->root, "meaning", true, &c->meaning, r->err);
    if (!status)
        status = read_names(r, "scalars", false);
    c->scalar_count = c->name_count;
    if (!status)
        status = read_names(r, "tunables", true);
    if (!status)
        status = read_conditions(r, "valid_args", c->valid_args, &c->valid_args_count);
    if (!status)
        status = read_conditions(r, "valid_config", c->valid_config, &c->valid_config_count);
    if (!status)
        status = read_tensors(r, "inputs", true, c->inputs, &c->input_count);
    if (!status)
        status = read_tensors(r, "outputs", false, c->outputs, &c->output_count);
    if (!status)
        status = read_expression(r, json->root, "bytes", &c->bytes);
    if (!status)
        status = read_expression(r, json->root, "flops", &c->flops);
    if (!status)
        status = read_numbers(r);
    return status ? status : read_harnesses(r);
}

mgl_status mgl_kernel_context_parse(const char *text, size_t length, const char *file,
                                    mgl_kernel_context *out, mgl_error *err)
{
    const char *schema = NULL;
    reading r = {.out = out, .err = err};
    *out = (mgl_kernel_context){0};
    mgl_status status = mgl_json_parse(text, length, LARGEST, file, &out->json, err);
    if (!status)
        status = mgl_json_get_string(&out->json, out->json.root, "schema", true, &schema, err);
    if (!status && strcmp(schema, "megalith.kernel/1") != 0)
        status = fail(&r, "schema", "is not megalith.kernel/1");
    if (!status)
        status = read_all(&r);
    if (status)
        mgl_kernel_context_clear(out);
    return status;
}

mgl_status mgl_kernel_context_read(const mgl_kernel_unit *unit, mgl_kernel_context *out,
                                   mgl_error *err)
{
    char name[128];
    *out = (mgl_kernel_context){0};
    snprintf(name, sizeof name, "instructions/%s/context.json", mgl_op_get(unit->op)->name);
    for (int i = 0; i < mgl_kernel_context_source_count; i++)
        if (!strcmp(mgl_kernel_context_sources[i].name, name)) {
            const char *text = (const char *)mgl_kernel_context_sources[i].text;
            return mgl_kernel_context_parse(text, strlen(text), name, out, err);
        }
    return mgl_fail(err, MGL_BAD_INPUT, name, "the op has no context");
}

void mgl_kernel_context_clear(mgl_kernel_context *context)
{
    mgl_json_clear(&context->json);
    *context = (mgl_kernel_context){0};
}

const mgl_context_harness *mgl_kernel_context_harness(const mgl_kernel_context *context,
                                                      const mgl_kernel_unit *unit)
{
    const char *dot = strchr(unit->name, '.');
    for (int i = 0; i < context->harness_count; i++)
        if (!strcmp(context->harnesses[i].variant, dot ? dot + 1 : "own"))
            return &context->harnesses[i];
    return &context->harnesses[0];
}

static bool hold(const mgl_expression *conditions, int count, const int64_t *values)
{
    int64_t value;
    for (int i = 0; i < count; i++)
        if (!mgl_expression_value(&conditions[i], values, &value) || value <= 0)
            return false;
    return true;
}

static bool is_within(const mgl_context_name *name, int64_t value)
{
    for (int i = 0; i < name->value_count; i++)
        if (name->values[i] == value)
            return true;
    return name->value_count == 0 && value >= name->from && value <= name->to;
}

bool mgl_kernel_context_holds(const mgl_kernel_context *context, const int64_t *values)
{
    for (int i = 0; i < context->name_count; i++)
        if (!is_within(&context->names[i], values[i]))
            return false;
    return hold(context->valid_args, context->valid_args_count, values) &&
           hold(context->valid_config, context->valid_config_count, values);
}
