/*
 * Reads the declaration of compressed-tensors: the layout, and one config group for each way in
 * which modules are quantized. A group is an object, or the name of a preset with its targets.
 * Quantization of activations is ignored: it is not a property of the weights.
 */
#include "importer/quantized/declared.h"

#include <string.h>
#include <strings.h>

#define USE_SUPPORTED "use a checkpoint in a supported layout or the original checkpoint"

/* The groups of preset names, as in quant_scheme.py of compressed-tensors. */
static const struct preset {
    const char *name;
    mgl_quantization_group group;
} presets[] = {
    {"UNQUANTIZED", {.plain = true}},
    {"W8A16", {{0}, false, false, true, 8, MGL_SCALES_GROUP, 128, 1}},
    {"W4A16", {{0}, false, false, true, 4, MGL_SCALES_GROUP, 128, 1}},
    {"W4A8", {{0}, false, false, true, 4, MGL_SCALES_GROUP, 128, 1}},
    {"W4AFP8", {{0}, false, false, true, 4, MGL_SCALES_GROUP, 128, 1}},
    {"W4A16_ASYM", {{0}, false, false, false, 4, MGL_SCALES_GROUP, 128, 1}},
    {"W8A8", {{0}, false, false, true, 8, MGL_SCALES_CHANNEL, -1, 1}},
    {"INT8", {{0}, false, false, true, 8, MGL_SCALES_CHANNEL, -1, 1}},
    {"FP8", {{0}, false, true, true, 8, MGL_SCALES_TENSOR, -1, 1}},
    {"FP8_DYNAMIC", {{0}, false, true, true, 8, MGL_SCALES_CHANNEL, -1, 1}},
    {"FP8_BLOCK", {{0}, false, true, true, 8, MGL_SCALES_BLOCK, 128, 128}},
};

static const char *const layouts[] = {"pack-quantized",  "int-quantized", "float-quantized",
                                      "naive-quantized", "dense",         "mixed-precision"};

/* Checks a `format`, of the whole checkpoint or of a group. */
static void check_layout(mgl_config_reader *r, const cJSON *object)
{
    const char *layout = mgl_config_string(r, object, "format");
    bool known = !layout;
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts && !known; i++)
        known = !strcmp(layouts[i], layout);
    if (!known)
        mgl_config_refuse(r, "format",
                          "the layout \"%.80s\" is not supported; supported: pack-quantized, "
                          "int-quantized, float-quantized and naive-quantized; " USE_SUPPORTED,
                          layout);
}

/* Reads the strategy. If the key is missing, other keys imply it, as in compressed-tensors. */
static void read_strategy(mgl_config_reader *r, const cJSON *weights, mgl_quantization_group *group)
{
    const char *name = mgl_config_string(r, weights, "strategy");
    const int64_t size = mgl_declared_int(r, weights, "group_size", 0);
    const cJSON *given = mgl_json_member(weights, "group_size");
    const bool has_size = given && !cJSON_IsNull(given);
    if (!name)
        name = !has_size ? "tensor" : size == -1 ? "channel" : "group";
    group->group_rows = 1;
    group->group = -1;
    if (!strcmp(name, "tensor")) {
        group->strategy = MGL_SCALES_TENSOR;
    } else if (!strcmp(name, "channel")) {
        group->strategy = MGL_SCALES_CHANNEL;
    } else if (!strcmp(name, "group")) {
        group->strategy = MGL_SCALES_GROUP;
        group->group = size;
        mgl_declared_check_group(r, "config_groups.weights.group_size", size);
    } else if (!strcmp(name, "block")) {
        mgl_declared_block(r, "config_groups.weights.block_structure",
                           mgl_json_member(weights, "block_structure"), group);
    } else {
        mgl_config_refuse(r, "config_groups.weights.strategy",
                          "scales by \"%.80s\" are not supported; supported: tensor, channel, "
                          "group and block",
                          name);
    }
}

static void read_weights(mgl_config_reader *r, const cJSON *weights, mgl_quantization_group *group)
{
    const char *type = mgl_config_string(r, weights, "type");
    group->bits = mgl_declared_int(r, weights, "num_bits", 8);
    group->symmetric = mgl_config_flag(r, weights, "symmetric", true);
    group->is_float = type && !strcmp(type, "float");
    if (type && !group->is_float && strcmp(type, "int") != 0)
        mgl_config_refuse(r, "config_groups.weights.type",
                          "numbers of type \"%.80s\" are not supported; supported: int and float",
                          type);
    if (group->is_float && group->bits != 8)
        mgl_config_refuse(
            r, "config_groups.weights.num_bits",
            "floating-point weights of %lld bits are not supported; supported: 8 bits "
            "(e4m3); " USE_SUPPORTED,
            (long long)group->bits);
    else
        mgl_declared_check_bits(r, "config_groups.weights.num_bits", group->bits);
    if (group->is_float && !group->symmetric)
        mgl_config_refuse(r, "config_groups.weights.symmetric",
                          "floating-point weights with zero points are not supported; supported: "
                          "symmetric true");
    mgl_declared_reject(r, weights, "dynamic", MGL_NEUTRAL_OFF,
                        "weights that are quantized while the model runs are not supported; "
                        "supported: false");
    read_strategy(r, weights, group);
}

static void read_preset(mgl_config_reader *r, const char *name, mgl_quantization_group *group)
{
    const mgl_module_list targets = group->targets;
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++)
        if (!strcasecmp(presets[i].name, name)) {
            *group = presets[i].group;
            group->targets = targets;
            return;
        }
    mgl_config_refuse(r, "config_groups",
                      "the preset \"%.80s\" is not supported; supported: W8A16, W4A16, W4A16_ASYM, "
                      "W4A8, W4AFP8, W8A8, INT8, FP8, FP8_DYNAMIC and FP8_BLOCK; " USE_SUPPORTED,
                      name);
}

/* Reads a group: an object, a preset's name, or a list of targets whose key is a preset's name. */
static void read_group(mgl_config_reader *r, const cJSON *item, mgl_quantization_group *group)
{
    const cJSON *weights = NULL;
    mgl_error cause;
    if (cJSON_IsString(item)) {
        read_preset(r, item->valuestring, group);
        return;
    }
    if (cJSON_IsArray(item)) {
        mgl_declared_entries(r, item, "config_groups", &group->targets);
        read_preset(r, item->string, group);
        return;
    }
    if (!cJSON_IsObject(item)) {
        mgl_config_refuse(r, "config_groups", "\"%.80s\" is neither an object nor a preset's name",
                          item->string);
        return;
    }
    check_layout(r, item);
    mgl_declared_list(r, item, "targets", &group->targets);
    mgl_config_take(r, mgl_json_get_object(r->json, item, "weights", false, &weights, &cause),
                    &cause);
    group->plain = !weights;
    if (weights)
        read_weights(r, weights, group);
}

void mgl_declared_read_compressed(mgl_config_reader *r, mgl_quantization *out)
{
    const cJSON *groups = NULL, *item, *sparsity = mgl_json_member(r->root, "sparsity_config");
    mgl_error cause;
    check_layout(r, r->root);
    mgl_declared_reject(r, r->root, "kv_cache_scheme", MGL_NEUTRAL_OFF,
                        "a quantized key and value cache is not supported; supported: null; "
                        "export the model without a KV cache scheme");
    mgl_declared_reject(r, r->root, "transform_config", MGL_NEUTRAL_OFF,
                        "transforms of weights and activations are not supported; export the model "
                        "without transforms");
    mgl_declared_reject(r, r->root, "moe_sparsity_config", MGL_NEUTRAL_OFF,
                        "sparse mixtures of experts are not supported; use another checkpoint");
    const char *sparse = cJSON_IsObject(sparsity) ? mgl_config_string(r, sparsity, "format") : NULL;
    if (!sparse || strcmp(sparse, "dense") != 0)
        mgl_declared_reject(r, r->root, "sparsity_config", MGL_NEUTRAL_OFF,
                            "sparse weights are not supported; export the model without sparsity "
                            "compression");
    mgl_declared_list(r, r->root, "ignore", &out->ignore);
    mgl_config_take(
        r, mgl_json_get_object(r->json, r->root, "config_groups", true, &groups, &cause), &cause);
    const int count = groups ? cJSON_GetArraySize(groups) : 0;
    mgl_quantization_group *group = count ? mgl_declared_groups(r, out, (size_t)count) : NULL;
    if (!group)
        return;
    cJSON_ArrayForEach(item, groups)
    {
        read_group(r, item, group++);
    }
}
