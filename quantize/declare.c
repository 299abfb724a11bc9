/*
 * Writes the JSON files of a quantized checkpoint. See declare.h. The keys are those of
 * QuantizationConfig and QuantizationArgs of compressed-tensors.
 */
#include "quantize/declare.h"

#include "base/json_out.h"
#include "base/memory.h"

#include <stdio.h>
#include <string.h>

#define CONFIG "quantization_config"
#define TIED   "tie_word_embeddings"

/* ---- indented JSON --------------------------------------------------------------------------- */

static void put_line(mgl_text *out, int depth)
{
    mgl_text_put(out, "\n");
    for (int i = 0; i < depth; i++)
        mgl_text_put(out, "  ");
}

/* Appends JSON without spaces, with a line for each member as Transformers writes it. */
static void put_indented(const mgl_text *json, mgl_text *out)
{
    bool quoted = false;
    int depth = 0;
    for (size_t i = 0; i < json->length; i++) {
        const char *at = json->bytes + i;
        const bool opens = *at == '{' || *at == '[', closes = *at == '}' || *at == ']';
        const bool is_empty = opens && (at[1] == '}' || at[1] == ']');
        if (quoted) {
            mgl_text_append(out, at, *at == '\\' ? 2 : 1);
            i += *at == '\\';
            quoted = *at != '"';
        } else if (is_empty) {
            mgl_text_append(out, at, 2);
            i++;
        } else {
            if (closes)
                put_line(out, --depth);
            mgl_text_append(out, at, 1);
            depth += opens;
            if (opens || *at == ',')
                put_line(out, depth);
            else if (*at == ':')
                mgl_text_put(out, " ");
            quoted = *at == '"';
        }
    }
    mgl_text_put(out, "\n");
}

/* ---- quantization_config --------------------------------------------------------------------- */

static const char *layout_of(mgl_weight_format format)
{
    return format.code == MGL_CODE_E4M3 ? "float-quantized" : "pack-quantized";
}

/* A group of the config. */
typedef struct group {
    mgl_weight_format format;
    const char *target; /* a module or class; NULL: the matrices of the layers with 8 bits because
                         * of bits_per_weight */
} group;

static void put_targets(const mgl_quantize_plan *plan, const group *g, mgl_json_out *out)
{
    char module[MGL_MODULE_NAME];
    mgl_json_out_array(out, "targets");
    if (g->target)
        mgl_json_out_string(out, NULL, g->target);
    for (size_t i = 0; i < plan->files->tensors.count && !g->target; i++) {
        const mgl_planned_source *s = &plan->sources[i];
        mgl_quantize_module(plan->files->tensors.items[i].name, module);
        if (s->quantized && !s->is_head && s->format.code == g->format.code)
            mgl_json_out_string(out, NULL, module);
    }
    mgl_json_out_close_array(out);
}

static void put_group(const mgl_quantize_plan *plan, const mgl_quantize_request *r, const group *g,
                      int number, mgl_json_out *out)
{
    const mgl_weight_format f = g->format;
    char name[32];
    const bool is_row = f.group == MGL_GROUP_ALL;
    snprintf(name, sizeof name, "group_%d", number);
    mgl_json_out_object(out, name);
    mgl_json_out_string(out, "format", layout_of(f));
    mgl_json_out_null(out, "input_activations");
    mgl_json_out_null(out, "output_activations");
    put_targets(plan, g, out);
    mgl_json_out_object(out, "weights");
    mgl_json_out_null(out, "actorder");
    mgl_json_out_null(out, "block_structure");
    mgl_json_out_bool(out, "dynamic", false);
    if (is_row)
        mgl_json_out_null(out, "group_size");
    else
        mgl_json_out_int(out, "group_size", f.group);
    mgl_json_out_int(out, "num_bits", mgl_weight_code_get(f.code)->bits);
    mgl_json_out_string(out, "observer", r->method == MGL_METHOD_RTN ? "minmax" : "mse");
    mgl_json_out_object(out, "observer_kwargs");
    mgl_json_out_close_object(out);
    mgl_json_out_string(out, "strategy", is_row ? "channel" : "group");
    mgl_json_out_bool(out, "symmetric", !f.zeros);
    mgl_json_out_string(out, "type", f.code == MGL_CODE_E4M3 ? "float" : "int");
    mgl_json_out_close_object(out);
    mgl_json_out_close_object(out);
}

static bool is_equal(mgl_weight_format a, mgl_weight_format b)
{
    return a.code == b.code && a.group == b.group && a.zeros == b.zeros;
}

/* The name of the head's module. */
static void find_head(const mgl_quantize_plan *plan, char module[MGL_MODULE_NAME])
{
    mgl_quantize_module(MGL_TENSOR_HEAD, module);
    for (size_t i = 0; i < plan->files->tensors.count; i++)
        if (plan->sources[i].is_head && !plan->sources[i].copied)
            mgl_quantize_module(plan->files->tensors.items[i].name, module);
}

/* Lists the modules that the target "Linear" may select and that are not quantized: the head, and
 * other matrices, such as those of the vision part of a wrapper. */
static void put_ignored(const mgl_quantize_plan *plan, mgl_json_out *out)
{
    char head[MGL_MODULE_NAME], module[MGL_MODULE_NAME];
    mgl_quantize_module(MGL_TENSOR_HEAD, head);
    mgl_json_out_array(out, "ignore");
    if (plan->keeps_head)
        mgl_json_out_string(out, NULL, head);
    for (size_t i = 0; i < plan->files->tensors.count; i++) {
        const mgl_stored_tensor *t = &plan->files->tensors.items[i];
        const mgl_planned_source *s = &plan->sources[i];
        mgl_quantize_module(t->name, module);
        if (!s->quantized && !s->dropped && t->rank == 2 && (int)i != plan->embedding &&
            mgl_text_ends(t->name, ".weight") && !(plan->keeps_head && !strcmp(module, head)))
            mgl_json_out_string(out, NULL, module);
    }
    mgl_json_out_close_array(out);
}

/* Whether a matrix of the layers has 8 bits because of bits_per_weight. */
static bool has_wide(const mgl_quantize_plan *plan, const mgl_quantize_request *r)
{
    for (size_t i = 0; i < plan->files->tensors.count; i++) {
        const mgl_planned_source *s = &plan->sources[i];
        if (s->quantized && !s->is_head && s->format.code != r->layers.code)
            return true;
    }
    return false;
}

static void put_quantization(const mgl_quantize_plan *plan, const mgl_quantize_request *r,
                             mgl_json_out *out)
{
    char head[MGL_MODULE_NAME];
    const bool has_two = !plan->keeps_head && !is_equal(r->layers, r->head);
    const bool is_mixed = has_two && strcmp(layout_of(r->layers), layout_of(r->head)) != 0;
    mgl_weight_format wide = r->layers;
    int number = 0;
    wide.code = MGL_CODE_INT8;
    find_head(plan, head);
    mgl_json_out_object(out, CONFIG);
    mgl_json_out_object(out, "config_groups");
    put_group(plan, r, &(group){r->layers, "Linear"}, number++, out);
    if (has_wide(plan, r))
        put_group(plan, r, &(group){wide, NULL}, number++, out);
    if (has_two)
        put_group(plan, r, &(group){r->head, head}, number++, out);
    mgl_json_out_close_object(out);
    mgl_json_out_string(out, "format", is_mixed ? "mixed-precision" : layout_of(r->layers));
    mgl_json_out_null(out, "global_compression_ratio");
    put_ignored(plan, out);
    mgl_json_out_null(out, "kv_cache_scheme");
    mgl_json_out_string(out, "quant_method", "compressed-tensors");
    mgl_json_out_string(out, "quantization_status", "compressed");
    mgl_json_out_close_object(out);
}

/* ---- the files ------------------------------------------------------------------------------- */

/* Copies the keys of the root, except the keys that are written anew. */
static void put_members(const mgl_quantize_plan *plan, const cJSON *root, mgl_json_out *out)
{
    cJSON *item;
    cJSON_ArrayForEach(item, root)
    {
        const bool is_tie = plan->untied && !strcmp(item->string, TIED);
        if (!is_tie && strcmp(item->string, CONFIG) != 0)
            mgl_json_out_value(out, item->string, item);
    }
    if (plan->untied)
        mgl_json_out_bool(out, TIED, false);
}

mgl_status mgl_quantize_put_config(const mgl_quantize_plan *plan,
                                   const mgl_quantize_request *request, const char *text,
                                   size_t length, const char *path, mgl_text *out, mgl_error *err)
{
    mgl_json json = {0};
    mgl_json_out lines = {0};
    mgl_status status = mgl_json_parse_values(text, length, length, path, &json, err);
    if (status)
        return status;
    mgl_json_out_object(&lines, NULL);
    put_members(plan, json.root, &lines);
    put_quantization(plan, request, &lines);
    mgl_json_out_close_object(&lines);
    if (!lines.text.failed)
        put_indented(&lines.text, out);
    if (lines.text.failed || out->failed)
        status = mgl_fail_memory(err, length);
    mgl_text_clear(&lines.text);
    mgl_json_clear(&json);
    return status;
}

mgl_status mgl_quantize_put_index(const mgl_quantize_plan *plan, mgl_text *out, mgl_error *err)
{
    mgl_json_out lines = {0};
    char name[MGL_SHARD_NAME];
    uint64_t total = 0;
    for (size_t i = 0; i < plan->count; i++)
        total += plan->tensors[i].bytes;
    mgl_json_out_object(&lines, NULL);
    mgl_json_out_object(&lines, "metadata");
    mgl_json_out_int(&lines, "total_size", (int64_t)total);
    mgl_json_out_close_object(&lines);
    mgl_json_out_object(&lines, "weight_map");
    for (size_t i = 0; i < plan->count; i++) {
        mgl_quantize_shard_name(plan, plan->tensors[i].file, name);
        mgl_json_out_string(&lines, plan->tensors[i].name, name);
    }
    mgl_json_out_close_object(&lines);
    mgl_json_out_close_object(&lines);
    if (!lines.text.failed)
        put_indented(&lines.text, out);
    const bool failed = lines.text.failed || out->failed;
    mgl_text_clear(&lines.text);
    return failed ? mgl_fail_memory(err, plan->count * sizeof name) : MGL_OK;
}
