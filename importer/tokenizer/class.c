/* Finds the tokenizer's class. See class.h. Source: tokenization_auto.py and
 * tokenization_llama.py of Transformers 5.24. */
#include "importer/tokenizer/class.h"

#include "base/memory.h"
#include "base/text.h"

#include <string.h>

/* Model types for which AutoTokenizer of Transformers 5 ignores a LlamaTokenizer in the files.
 * It maps them to a class that reads tokenizer.json unchanged, or to their own class. */
static const char *const unchanged[] = {
    "arctic",      "ernie4_5",    "ernie4_5_moe",  "flex_olmo",   "glm",
    "glm4",        "glm4_moe",    "gpt_bigcode",   "granite",     "granitemoe",
    "hyperclovax", "internlm2",   "internlm3",     "iquestcoder", "granitemoehybrid",
    "jamba",       "kimi_linear", "llava",         "llava_next",  "minicpm3",
    "minicpmv",    "minimax_m2",  "ministral",     "ministral3",  "mistral",
    "mistral3",    "mixtral",     "mimo_v2_flash", "molmo",       "nemotron",
    "olmo2",       "olmo3",       "olmo_hybrid",   "phi3",        "phimoe",
    "persimmon",   "pixtral",     "qwen2",         "smolvlm",     "granitemoeshared",
    "stablelm",    "vipllava",    "voxtral",
};

static bool is_unchanged(const char *model_type)
{
    for (size_t i = 0; i < sizeof unchanged / sizeof *unchanged; i++)
        if (!strcmp(model_type, unchanged[i]))
            return true;
    return false;
}

/* Returns whether the value contains a component of this type, at any depth. */
static bool has_type(const cJSON *value, const char *type)
{
    const cJSON *own = cJSON_IsObject(value) ? mgl_json_member(value, "type") : NULL;
    if (cJSON_IsString(own) && !strcmp(own->valuestring, type))
        return true;
    for (const cJSON *item = value ? value->child : NULL; item; item = item->next)
        if (has_type(item, type))
            return true;
    return false;
}

static bool is_byte_level(const cJSON *root)
{
    static const char *const parts[] = {"normalizer", "pre_tokenizer", "post_processor", "decoder"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (has_type(mgl_json_member(root, parts[i]), "ByteLevel"))
            return true;
    return false;
}

/* Reads a string of a file that may not exist; "" if there is none. */
static mgl_status read_name(const mgl_json *json, const char *key, const char **out, mgl_error *err)
{
    *out = "";
    return json->root ? mgl_json_get_string(json, json->root, key, false, out, err) : MGL_OK;
}

static mgl_status read_flag(const mgl_json *json, const char *key, bool *out, mgl_error *err)
{
    return json->root ? mgl_json_get_bool(json, json->root, key, false, out, err) : MGL_OK;
}

/* Rejects options that would change ids or texts. */
static mgl_status reject_options(const mgl_json *config, mgl_error *err)
{
    static const char *const keys[] = {
        "split_special_tokens",
        "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        bool set = false;
        mgl_status status = read_flag(config, keys[i], &set, err);
        if (status)
            return status;
        if (set)
            return mgl_fail(err, MGL_BAD_INPUT, config->file,
                            "unsupported tokenizer option: %s = true; supported: false", keys[i]);
    }
    return MGL_OK;
}

mgl_status mgl_tokenizer_class_read(const mgl_tokenizer_files *files, mgl_tokenizer_class *out,
                                    mgl_error *err)
{
    const char *name = "", *model_type = "";
    bool legacy = false, prefix = true;
    *out = (mgl_tokenizer_class){0};
    mgl_status status = reject_options(&files->config, err);
    if (!status) /* special_tokens_map.json is merged into an old configuration */
        status = reject_options(&files->special, err);
    if (!status)
        status = read_name(&files->config, "tokenizer_class", &name, err);
    if (!status && !*name)
        status = read_name(&files->model, "tokenizer_class", &name, err);
    const bool is_code =
        !strcmp(name, "CodeLlamaTokenizer") || !strcmp(name, "CodeLlamaTokenizerFast");
    if (status || (!is_code && strcmp(name, "LlamaTokenizer") != 0 &&
                   strcmp(name, "LlamaTokenizerFast") != 0))
        return status;
    status = read_name(&files->model, "model_type", &model_type, err);
    if (status || is_unchanged(model_type) || is_byte_level(files->tokenizer.root))
        return status;
    status = read_flag(&files->config, "legacy", &legacy, err);
    if (!status)
        status = read_flag(&files->config, "add_prefix_space", &prefix, err);
    out->llama = true;
    /* CodeLlamaTokenizer does not read `legacy`. */
    out->scheme = !prefix ? "never" : legacy && !is_code ? "always" : "first";
    return status;
}

mgl_status mgl_tokenizer_class_parts(const mgl_tokenizer_class *class, const char *file,
                                     mgl_json *out, mgl_error *err)
{
    mgl_text text = {0};
    mgl_text_format(&text,
                    "{\"pre_tokenizer\": {\"type\": \"Metaspace\", \"replacement\": \"\u2581\", "
                    "\"prepend_scheme\": \"%s\", \"split\": false}, "
                    "\"decoder\": {\"type\": \"Sequence\", \"decoders\": ["
                    "{\"type\": \"Replace\", \"pattern\": {\"String\": \"\u2581\"}, "
                    "\"content\": \" \"}, {\"type\": \"ByteFallback\"}, {\"type\": \"Fuse\"}%s]}}",
                    class->scheme,
                    strcmp(class->scheme, "never") != 0
                        ? ", {\"type\": \"Strip\", \"content\": \" \", \"start\": 1, \"stop\": 0}"
                        : "");
    if (text.failed)
        return mgl_fail_memory(err, sizeof *class);
    mgl_status status = mgl_json_parse(text.bytes, text.length, text.length, file, out, err);
    mgl_text_clear(&text);
    return status;
}
