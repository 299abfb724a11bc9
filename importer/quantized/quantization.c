/*
 * Reads the declaration of a quantized checkpoint. See quantization.h. compressed.c reads the
 * config groups of compressed-tensors. Keys that change how weights are stored are checked; keys
 * that describe how weights were found (observers, damping, calibration) are ignored.
 */
#include "importer/quantized/declared.h"

#include "base/memory.h"
#include "importer/neutral.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { MAX_BESIDE = 16 * 1000 * 1000 };

static const char *const names[] = {
    [MGL_QUANTIZER_NONE] = "none", [MGL_QUANTIZER_COMPRESSED] = "compressed-tensors",
    [MGL_QUANTIZER_GPTQ] = "gptq", [MGL_QUANTIZER_AWQ] = "awq",
    [MGL_QUANTIZER_FP8] = "fp8",   [MGL_QUANTIZER_FBGEMM] = "fbgemm_fp8"};
_Static_assert(sizeof names / sizeof *names == MGL_QUANTIZER_COUNT, "every quantizer has a name");

#define USE_ORIGINAL "use a checkpoint in one of the supported layouts or the original checkpoint"

const char *mgl_quantizer_name(mgl_quantizer quantizer)
{
    return names[quantizer];
}

/* ---- values of keys -------------------------------------------------------------------------- */

bool mgl_declared_reject(mgl_config_reader *r, const cJSON *object, const char *key,
                         mgl_neutral neutral, const char *why)
{
    char value[64];
    const cJSON *item = mgl_json_member(object, key);
    const bool is_empty = cJSON_IsObject(item) && !item->child;
    if (mgl_is_neutral(item, neutral) || is_empty)
        return false;
    mgl_config_refuse(r, key, "%s: %s", mgl_value_print(item, value, sizeof value), why);
    return true;
}

int64_t mgl_declared_int(mgl_config_reader *r, const cJSON *object, const char *key,
                         int64_t missing)
{
    int64_t value = missing;
    mgl_error cause;
    mgl_config_take(
        r, mgl_json_get_int(r->json, object, key, false, -(1 << 30), 1 << 30, &value, &cause),
        &cause);
    return value;
}

static void add_entry(mgl_config_reader *r, const char *text, const char *key, mgl_module_list *out)
{
    bool valid;
    mgl_error cause;
    mgl_config_take(r, mgl_module_list_add(out, text, &valid, &cause), &cause);
    if (!valid)
        mgl_config_refuse(
            r, key, "the pattern \"%.80s\" is not a valid regular expression; correct it", text);
}

void mgl_declared_entries(mgl_config_reader *r, const cJSON *array, const char *key,
                          mgl_module_list *out)
{
    const cJSON *item;
    out->stands = array != NULL;
    cJSON_ArrayForEach(item, array)
    {
        if (cJSON_IsString(item))
            add_entry(r, item->valuestring, key, out);
        else
            mgl_config_refuse(r, key, "an entry is not a string; entries are names of modules");
    }
}

void mgl_declared_list(mgl_config_reader *r, const cJSON *object, const char *key,
                       mgl_module_list *out)
{
    const cJSON *list = NULL;
    mgl_error cause;
    mgl_config_take(r, mgl_json_get_array(r->json, object, key, false, &list, &cause), &cause);
    mgl_declared_entries(r, list, key, out);
}

bool mgl_declared_check_bits(mgl_config_reader *r, const char *key, int64_t bits)
{
    if (bits == 4 || bits == 8)
        return true;
    if (bits == 0)
        mgl_config_refuse(r, key, "the number of bits is missing or 0; supported: 4 and 8");
    else
        mgl_config_refuse(r, key, "weights of %lld bits are not supported; supported: 4 and 8",
                          (long long)bits);
    return false;
}

bool mgl_declared_check_group(mgl_config_reader *r, const char *key, int64_t group)
{
    if (group == -1 || (group > 0 && group <= MGL_MAX_WEIGHT_GROUP && group % MGL_GROUP_UNIT == 0))
        return true;
    mgl_config_refuse(r, key,
                      "groups of %lld columns are not supported; supported: multiples of %d up to "
                      "%d, and -1 for whole rows",
                      (long long)group, MGL_GROUP_UNIT, MGL_MAX_WEIGHT_GROUP);
    return false;
}

/* Makes room for `count` groups, which are zero. */
static bool make_groups(mgl_config_reader *r, mgl_quantization *out, size_t count)
{
    out->groups = mgl_alloc_zero(count, sizeof *out->groups);
    if (!out->groups) {
        if (!r->status)
            r->status = mgl_fail_memory(r->err, count * sizeof *out->groups);
        return false;
    }
    out->count = count;
    return true;
}

mgl_quantization_group *mgl_declared_groups(mgl_config_reader *r, mgl_quantization *out,
                                            size_t count)
{
    return make_groups(r, out, count) ? out->groups : NULL;
}

/* ---- GPTQ and AWQ ---------------------------------------------------------------------------- */

/* The key that a config has: the usual name, or its older name. */
static const char *key_of(const cJSON *object, const char *key, const char *older)
{
    return !mgl_json_member(object, key) && mgl_json_member(object, older) ? older : key;
}

static void read_integers(mgl_config_reader *r, mgl_quantization *out, const char *bits_key,
                          const char *group_key)
{
    mgl_quantization_group *group = mgl_declared_groups(r, out, 1);
    if (!group)
        return;
    group->strategy = MGL_SCALES_GROUP;
    group->bits = mgl_declared_int(r, r->root, bits_key, 0);
    group->group = mgl_declared_int(r, r->root, group_key, 128);
    mgl_declared_check_bits(r, bits_key, group->bits);
    mgl_declared_check_group(r, group_key, group->group);
}

/* Rejects two keys with different texts: one of them is wrong, and it cannot be told which. */
static void reject_contradiction(mgl_config_reader *r, const char *key, const char *other)
{
    const char *a = mgl_config_string(r, r->root, key), *b = mgl_config_string(r, r->root, other);
    if (a && b && strcasecmp(a, b) != 0)
        mgl_config_refuse(r, other, "contradicts %s; keep one of the two", key);
}

static void read_gptq(mgl_config_reader *r, mgl_quantization *out)
{
    const char *key = key_of(r->root, "checkpoint_format", "format");
    const char *format = mgl_config_string(r, r->root, key);
    const char *words = mgl_config_string(r, r->root, "pack_dtype");
    reject_contradiction(r, "checkpoint_format", "format");
    read_integers(r, out, "bits", "group_size");
    if (format && strcmp(format, "gptq") != 0 && strcmp(format, "gptq_v2") != 0)
        mgl_config_refuse(r, key,
                          "the layout \"%.80s\" is not supported; supported: gptq and "
                          "gptq_v2; save the model in one of these layouts",
                          format);
    if (words && strcmp(words, "int32") != 0)
        mgl_config_refuse(r, "pack_dtype",
                          "words of type \"%.80s\" are not supported; supported: int32", words);
    mgl_declared_reject(r, r->root, "dynamic", MGL_NEUTRAL_OFF,
                        "rules for single modules are not supported; " USE_ORIGINAL);
    mgl_declared_reject(r, r->root, "is_marlin_format", MGL_NEUTRAL_OFF,
                        "the marlin layout is not supported; save the model in the gptq layout");
    out->is_v2 = format && !strcmp(format, "gptq_v2");
    out->desc_act = mgl_config_flag(r, r->root, "desc_act", false);
    out->is_symmetry_declared = cJSON_IsBool(mgl_json_member(r->root, "sym"));
    if (out->count)
        out->groups[0].symmetric = mgl_config_flag(r, r->root, "sym", true);
}

static void read_awq(mgl_config_reader *r, mgl_quantization *out)
{
    const char *key = key_of(r->root, "version", key_of(r->root, "format", "checkpoint_format"));
    const char *version = mgl_config_string(r, r->root, key);
    const char *backend = mgl_config_string(r, r->root, "backend");
    read_integers(r, out, key_of(r->root, "bits", "w_bit"),
                  key_of(r->root, "group_size", "q_group_size"));
    if (version && strcasecmp(version, "gemm") != 0)
        mgl_config_refuse(r, key,
                          "the AWQ layout \"%.80s\" is not supported; supported: gemm; use a "
                          "checkpoint with version \"gemm\", or quantize the original checkpoint",
                          version);
    if (backend && !strcasecmp(backend, "llm-awq"))
        mgl_config_refuse(
            r, "backend",
            "the layout of llm-awq is not supported; supported: gemm of AutoAWQ; " USE_ORIGINAL);
    if (out->count && out->groups[0].bits == 8)
        mgl_config_refuse(r, key_of(r->root, "bits", "w_bit"),
                          "AWQ weights of 8 bits are not supported; supported: 4; " USE_ORIGINAL);
    if (out->count)
        out->groups[0].symmetric = !mgl_config_flag(r, r->root, "zero_point", true);
    mgl_declared_list(r, r->root, "modules_to_not_convert", &out->ignore);
    out->ignore_parts = true;
}

/* ---- fp8 ------------------------------------------------------------------------------------- */

void mgl_declared_block(mgl_config_reader *r, const char *key, const cJSON *sizes,
                        mgl_quantization_group *group)
{
    int64_t extents[2] = {0, 0};
    mgl_error cause;
    const bool is_array = cJSON_IsArray(sizes) && cJSON_GetArraySize(sizes) == 2;
    /* Older files of compressed-tensors have a text: "128x128". */
    const bool is_text =
        cJSON_IsString(sizes) &&
        sscanf(sizes->valuestring, "%5" SCNd64 "x%5" SCNd64, &extents[0], &extents[1]) == 2;
    const bool is_pair = is_array || is_text;
    for (int i = 0; i < 2 && is_array; i++) {
        const cJSON *item = i ? sizes->child->next : sizes->child;
        mgl_config_take(
            r, mgl_json_item_int(r->json, item, key, -(1 << 30), 1 << 30, &extents[i], &cause),
            &cause);
    }
    for (int i = 0; i < 2; i++)
        if (!is_pair || extents[i] <= 0 || extents[i] > MGL_MAX_WEIGHT_GROUP ||
            extents[i] % MGL_GROUP_UNIT) {
            mgl_config_refuse(r, key,
                              "blocks of this size are not supported; supported: two multiples of "
                              "%d up to %d, such as [128, 128]",
                              MGL_GROUP_UNIT, MGL_MAX_WEIGHT_GROUP);
            return;
        }
    group->strategy = MGL_SCALES_BLOCK;
    group->group_rows = extents[0];
    group->group = extents[1];
}

static void read_fp8(mgl_config_reader *r, mgl_quantization *out)
{
    const cJSON *sizes = mgl_json_member(r->root, "weight_block_size");
    const char *format = mgl_config_string(r, r->root, "fmt");
    mgl_quantization_group *group = mgl_declared_groups(r, out, 1);
    if (!group)
        return;
    *group = (mgl_quantization_group){
        .is_float = true, .symmetric = true, .bits = 8, .strategy = MGL_SCALES_TENSOR};
    if (!sizes) { /* the default of Transformers' FineGrainedFP8Config */
        group->strategy = MGL_SCALES_BLOCK;
        group->group_rows = group->group = 128;
        out->is_block_default = true;
    } else if (!cJSON_IsNull(sizes)) {
        mgl_declared_block(r, "weight_block_size", sizes, group);
    }
    if (format && strcmp(format, "e4m3") != 0 && strcmp(format, "float8_e4m3fn") != 0)
        mgl_config_refuse(r, "fmt",
                          "numbers of the format \"%.80s\" are not supported; supported: "
                          "e4m3",
                          format);
    mgl_declared_list(r, r->root, "modules_to_not_convert", &out->ignore);
    if (!out->ignore.stands)
        mgl_declared_list(r, r->root, "ignored_layers", &out->ignore);
    out->ignore_parts = true;
}

static void read_fbgemm(mgl_config_reader *r, mgl_quantization *out)
{
    mgl_quantization_group *group = mgl_declared_groups(r, out, 1);
    if (!group)
        return;
    *group = (mgl_quantization_group){
        .is_float = true, .symmetric = true, .bits = 8, .strategy = MGL_SCALES_CHANNEL};
    mgl_declared_list(r, r->root, "modules_to_not_convert", &out->ignore);
    out->ignore_parts = true;
}

/* ---- the object ------------------------------------------------------------------------------ */

/*  quant_method of layouts that are not supported */
static const struct {
    const char *method, *name;
} foreign[] = {
    {"bitsandbytes", "bitsandbytes"},
    {"hqq", "HQQ"},
    {"aqlm", "AQLM"},
    {"quanto", "Quanto"},
    {"eetq", "EETQ"},
    {"higgs", "HIGGS"},
    {"vptq", "VPTQ"},
    {"spqr", "SpQR"},
    {"bitnet", "BitNet"},
    {"torchao", "torchao"},
    {"mxfp4", "MXFP4"},
    {"modelopt", "ModelOpt"},
    {"quark", "Quark"},
    {"auto-round", "AutoRound"},
    {"exl2", "EXL2"},
    {"exl3", "EXL3"},
    {"marlin", "Marlin"},
};

static void reject_method(mgl_config_reader *r, const char *method)
{
    const char *name = method;
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        if (!strcasecmp(foreign[i].method, method))
            name = foreign[i].name;
    mgl_config_refuse(
        r, "quant_method",
        "quantization by %.80s is not supported; supported: compressed-tensors, gptq, "
        "awq, fp8 and fbgemm_fp8; " USE_ORIGINAL,
        name);
}

/* Reads the object at r->root. `assumed`: the quantizer if the object does not name one. */
static void read_object(mgl_config_reader *r, mgl_quantizer assumed, mgl_quantization *out)
{
    const char *method = mgl_config_string(r, r->root, "quant_method");
    mgl_quantizer quantizer = method ? MGL_QUANTIZER_NONE : assumed;
    for (int i = MGL_QUANTIZER_NONE + 1; i < MGL_QUANTIZER_COUNT && method; i++)
        if (!strcmp(names[i], method))
            quantizer = (mgl_quantizer)i;
    if (!method && cJSON_IsTrue(mgl_json_member(r->root, "load_in_4bit")))
        method = "bitsandbytes";
    if (!method && cJSON_IsTrue(mgl_json_member(r->root, "load_in_8bit")))
        method = "bitsandbytes";
    out->quantizer = quantizer;
    if (quantizer == MGL_QUANTIZER_COMPRESSED)
        mgl_declared_read_compressed(r, out);
    else if (quantizer == MGL_QUANTIZER_GPTQ)
        read_gptq(r, out);
    else if (quantizer == MGL_QUANTIZER_AWQ)
        read_awq(r, out);
    else if (quantizer == MGL_QUANTIZER_FP8)
        read_fp8(r, out);
    else if (quantizer == MGL_QUANTIZER_FBGEMM)
        read_fbgemm(r, out);
    else if (method)
        reject_method(r, method);
    else
        mgl_config_refuse(r, "quant_method",
                          "the key is missing; it must name the layout: compressed-tensors, gptq, "
                          "awq, fp8 or fbgemm_fp8");
}

static mgl_status read_member(const mgl_json *json, const cJSON *object, const char *path,
                              mgl_quantizer assumed, mgl_quantization *out, mgl_reasons *reasons,
                              mgl_error *err)
{
    mgl_config_reader r = {
        .json = json, .root = object, .path = path, .reasons = reasons, .err = err};
    const size_t before = reasons->count;
    if (!cJSON_IsObject(object))
        mgl_config_refuse(&r, "quant_method", "the quantization must be an object");
    else
        read_object(&r, assumed, out);
    out->rejected = reasons->count > before;
    return r.status;
}

/* Finds a member of config.json that is not empty, or of its text_config. */
static const cJSON *find_member(const mgl_json *config, const char *key)
{
    const cJSON *text = mgl_json_member(config->root, "text_config");
    const cJSON *own = mgl_json_member(config->root, key);
    if (mgl_is_neutral(own, MGL_NEUTRAL_OFF) && cJSON_IsObject(text))
        own = mgl_json_member(text, key);
    return mgl_is_neutral(own, MGL_NEUTRAL_OFF) ? NULL : own;
}

mgl_status mgl_quantization_read(const mgl_json *config, mgl_quantization *out,
                                 mgl_reasons *reasons, mgl_error *err)
{
    *out = (mgl_quantization){0};
    if (!cJSON_IsObject(config->root))
        return MGL_OK;
    const cJSON *object = find_member(config, "quantization_config");
    const cJSON *older = find_member(config, "compression_config");
    if (object)
        return read_member(config, object, "quantization_config.", MGL_QUANTIZER_NONE, out, reasons,
                           err);
    return older ? read_member(config, older, "compression_config.", MGL_QUANTIZER_COMPRESSED, out,
                               reasons, err)
                 : MGL_OK;
}

mgl_status mgl_quantization_read_beside(const mgl_model_files *files, mgl_quantization *out,
                                        mgl_reasons *reasons, mgl_error *err)
{
    static const struct {
        const char *file;
        mgl_quantizer assumed;
    } beside[] = {{"quantize_config.json", MGL_QUANTIZER_GPTQ},
                  {"quant_config.json", MGL_QUANTIZER_AWQ}};
    mgl_status status = MGL_OK;
    *out = (mgl_quantization){0};
    for (size_t i = 0; i < 2 && !status && !out->beside.root; i++) {
        status = mgl_model_files_parse(files, beside[i].file, MAX_BESIDE, false,
                                       mgl_json_parse_python, &out->beside, err);
        if (!status && out->beside.root)
            status = read_member(&out->beside, out->beside.root, "", beside[i].assumed, out,
                                 reasons, err);
    }
    return status;
}

void mgl_quantization_clear(mgl_quantization *quantization)
{
    for (size_t i = 0; i < quantization->count; i++)
        mgl_module_list_clear(&quantization->groups[i].targets);
    mgl_free(quantization->groups);
    mgl_module_list_clear(&quantization->ignore);
    mgl_json_clear(&quantization->beside);
    *quantization = (mgl_quantization){0};
}
