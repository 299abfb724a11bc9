/*
 * config.json. The architectures that can be represented stand in one table, each with what its
 * configuration class in Hugging Face Transformers gives a key that is missing. The sizes and the
 * activation are read one by one; keys that other models use to compute something else stand in one
 * table with their neutral value, so that "present but switched off" is fine and everything else is
 * a reason. Keys that no table knows are left alone: they do not change what these models compute.
 */
#include "importer/config.h"

#include "base/format.h"
#include "base/text.h"
#include "importer/neutral.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Largest sizes that are believed: some ten times those of any model of the family. */
enum {
    MAX_HIDDEN = 1 << 17,
    MAX_LAYERS = 1 << 10,
    MAX_HEADS = 1 << 10,
    MAX_HEAD_DIM = 1 << 10,
    MAX_FFN = 1 << 20,
    MAX_VOCAB = 1 << 22,
    MAX_POSITIONS = 1 << 28,
};

/* What a config's sliding_window means. */
enum window {
    WINDOW_FOREIGN, /* nothing to Hugging Face's class; refused, but where use_sliding_window is
                     * false
                     */
    WINDOW_ALWAYS,  /* attention in all layers; 4096 where the key is missing, null: none */
    WINDOW_SWITCHED /* use_sliding_window switches it on, by default for the layers from
                       max_window_layers (28) on */
};

enum { DEFAULT_WINDOW = 4096, DEFAULT_WINDOW_LAYERS = 28 };

static const struct family {
    const char *architecture, *model_type;
    unsigned extras;         /* that every such model has */
    unsigned attention_bias; /* extras that the key attention_bias adds */
    unsigned mlp_bias;       /* and the key mlp_bias */
    int32_t head_dim;        /* where the key is missing; 0: hidden_size / num_attention_heads */
    int32_t kv_heads;        /* the same; 0: num_attention_heads */
    int32_t max_positions;
    enum window window;
} families[] = {
    {"LlamaForCausalLM", "llama", MGL_EXTRA_NONE, MGL_EXTRA_QKV_BIAS | MGL_EXTRA_O_BIAS,
     MGL_EXTRA_MLP_BIAS, 0, 0, 2048, WINDOW_FOREIGN},
    {"MistralForCausalLM", "mistral", MGL_EXTRA_NONE, 0, 0, 0, 8, 131072, WINDOW_ALWAYS},
    {"Qwen2ForCausalLM", "qwen2", MGL_EXTRA_QKV_BIAS, 0, 0, 0, 32, 32768, WINDOW_SWITCHED},
    {"Qwen3ForCausalLM", "qwen3", MGL_EXTRA_QK_NORM, MGL_EXTRA_QKV_BIAS | MGL_EXTRA_O_BIAS, 0, 128,
     32, 32768, WINDOW_SWITCHED},
};

/*  key                          neutral  why any other value is refused */
static const struct forbidden {
    const char *key;
    mgl_neutral neutral;
    const char *why;
} forbidden[] = {
    {"use_bias", MGL_NEUTRAL_OFF,
     "no such key of this architecture; attention_bias and mlp_bias are known"},
    {"qkv_bias", MGL_NEUTRAL_OFF,
     "no such key of this architecture; Qwen2ForCausalLM has biases of q, k and v"},
    {"quantization_config", MGL_NEUTRAL_OFF,
     "quantized checkpoints are not supported; use the original one"},
    {"compression_config", MGL_NEUTRAL_OFF,
     "compressed checkpoints are not supported; use the original one"},
    {"partial_rotary_factor", MGL_NEUTRAL_ONE,
     "rope on a part of each head can not be represented"},
    {"rotary_pct", MGL_NEUTRAL_ONE, "rope on a part of each head can not be represented"},
    {"rope_interleaved", MGL_NEUTRAL_OFF, "interleaved rope can not be represented"},
    {"no_rope_layers", MGL_NEUTRAL_OFF, "layers without rope can not be represented"},
    {"no_rope_layer_interval", MGL_NEUTRAL_OFF, "layers without rope can not be represented"},
    {"alibi", MGL_NEUTRAL_OFF, "ALiBi positions can not be represented"},
    {"qk_norm", MGL_NEUTRAL_OFF,
     "no such key of this architecture; Qwen3ForCausalLM has norms of q and k"},
    {"use_qk_norm", MGL_NEUTRAL_OFF,
     "no such key of this architecture; Qwen3ForCausalLM has norms of q and k"},
    {"qk_layernorm", MGL_NEUTRAL_OFF, "norms of q and k other than Qwen3's can not be represented"},
    {"clip_qkv", MGL_NEUTRAL_OFF, "clipped q, k and v can not be represented"},
    {"attention_multiplier", MGL_NEUTRAL_OFF,
     "attention is scaled by 1 / sqrt(head_dim) and nothing else"},
    {"query_pre_attn_scalar", MGL_NEUTRAL_OFF,
     "attention is scaled by 1 / sqrt(head_dim) and nothing else"},
    {"attention_chunk_size", MGL_NEUTRAL_OFF, "chunked attention can not be represented"},
    {"attn_logit_softcapping", MGL_NEUTRAL_OFF, "soft caps can not be represented"},
    {"final_logit_softcapping", MGL_NEUTRAL_OFF, "soft caps can not be represented"},
    {"embedding_multiplier", MGL_NEUTRAL_ONE, "scaled embeddings can not be represented"},
    {"scale_emb", MGL_NEUTRAL_ONE, "scaled embeddings can not be represented"},
    {"residual_multiplier", MGL_NEUTRAL_ONE, "scaled residuals can not be represented"},
    {"scale_depth", MGL_NEUTRAL_OFF, "scaled residuals can not be represented"},
    {"logits_scaling", MGL_NEUTRAL_ONE, "scaled logits can not be represented"},
    {"logit_scale", MGL_NEUTRAL_ONE, "scaled logits can not be represented"},
    {"num_local_experts", MGL_NEUTRAL_OFF, "mixtures of experts can not be represented"},
    {"num_experts", MGL_NEUTRAL_OFF, "mixtures of experts can not be represented"},
    {"n_routed_experts", MGL_NEUTRAL_OFF, "mixtures of experts can not be represented"},
    {"num_experts_per_tok", MGL_NEUTRAL_OFF, "mixtures of experts can not be represented"},
    {"is_encoder_decoder", MGL_NEUTRAL_OFF, "encoders can not be represented"},
    {"add_cross_attention", MGL_NEUTRAL_OFF, "cross attention can not be represented"},
};

/* ---- reading with reasons ------------------------------------------------------------------- */

typedef struct reader {
    const mgl_json *json;
    const struct family *family;
    mgl_config *config;
    mgl_reasons *reasons;
    mgl_status status; /* the first failure that is no reason */
    mgl_error *err;
} reader;

/* A reason at `key`, which may be a path. */
static void refuse(reader *r, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void refuse(reader *r, const char *key, const char *format, ...)
{
    char message[512];
    mgl_text where = {0};
    va_list args;
    va_start(args, format);
    mgl_format_list(message, sizeof message, format, args);
    va_end(args);
    mgl_text_format(&where, "%s: %s", r->json->file, key);
    mgl_reasons_add(r->reasons, where.failed ? key : where.bytes, "%s", message);
    mgl_text_clear(&where);
}

static void take(reader *r, mgl_status status, const mgl_error *cause)
{
    status = mgl_reasons_take(r->reasons, status, cause, r->err);
    if (status && !r->status)
        r->status = status;
}

/* A size within [1, most]; `missing` where the key is not there, 0 meaning that it must be. */
static int32_t read_size(reader *r, const char *key, int32_t most, int32_t missing)
{
    int64_t value = missing;
    mgl_error cause;
    take(r, mgl_json_get_int(r->json, r->json->root, key, !missing, 1, most, &value, &cause),
         &cause);
    return (int32_t)value;
}

static double read_number(reader *r, const cJSON *object, const char *key, bool required,
                          double missing)
{
    double value = missing;
    mgl_error cause;
    take(r, mgl_json_get_double(r->json, object, key, required, &value, &cause), &cause);
    return value;
}

static bool read_flag(reader *r, const char *key)
{
    bool value = false;
    mgl_error cause;
    take(r, mgl_json_get_bool(r->json, r->json->root, key, false, &value, &cause), &cause);
    return value;
}

static const char *read_string(reader *r, const cJSON *object, const char *key)
{
    const char *value = NULL;
    mgl_error cause;
    take(r, mgl_json_get_string(r->json, object, key, false, &value, &cause), &cause);
    return value;
}

/* ---- what the model is ---------------------------------------------------------------------- */

/* "LlamaForCausalLM, MistralForCausalLM, ..." */
static const char *list_architectures(mgl_text *text)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        mgl_text_format(text, "%s%s", i ? ", " : "", families[i].architecture);
    return text->failed ? families[0].architecture : text->bytes;
}

/* The family of an architecture, or of a model_type where there is no architecture; or NULL. */
static const struct family *find_family(const char *architecture, const char *type)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (!strcmp(architecture ? families[i].architecture : families[i].model_type,
                    architecture ? architecture : type))
            return &families[i];
    return NULL;
}

/* The first of `architectures` that is not supported is told, and the last that is is taken: a list
 * has one entry. Without a list model_type says it. */
static void read_architecture(reader *r)
{
    const cJSON *list = mgl_json_member(r->json->root, "architectures"), *item;
    const char *type = read_string(r, r->json->root, "model_type");
    const struct family *found = NULL;
    const bool listed = cJSON_IsArray(list) && list->child;
    bool known = true;
    mgl_text names = {0};
    cJSON_ArrayForEach(item, list)
    {
        const char *name = cJSON_IsString(item) ? item->valuestring : "an entry that is no string";
        const struct family *family = find_family(name, NULL);
        if (family && (!found || found == family)) {
            found = family;
            continue;
        }
        if (family)
            refuse(r, "architectures", "%s and %s; keep the one that the weights are of",
                   found->architecture, name);
        else
            refuse(r, "architectures",
                   "%.100s is not supported; these architectures can be represented: %s", name,
                   list_architectures(&names));
        known = false;
    }
    if (!listed && type)
        found = find_family(NULL, type);
    if (known && type && (!found || strcmp(type, found->model_type) != 0))
        refuse(r, "model_type", "\"%.100s\" is not supported%s%s%s", type, found ? "; with " : "",
               found ? found->architecture : "", found ? " it must be that architecture's" : "");
    if (!type && !listed)
        refuse(r, "architectures", "the key is missing; it must be one of: %s",
               list_architectures(&names));
    mgl_text_clear(&names);
    r->family = found ? found : &families[0];
}

static void read_extras(reader *r)
{
    const struct family *f = r->family;
    unsigned extras = f->extras;
    if (f->attention_bias && read_flag(r, "attention_bias"))
        extras |= f->attention_bias;
    if (f->mlp_bias && read_flag(r, "mlp_bias"))
        extras |= f->mlp_bias;
    r->config->extras = extras;
}

static void read_head_dim(reader *r)
{
    mgl_geometry *g = &r->config->geometry;
    const cJSON *given = mgl_json_member(r->json->root, "head_dim");
    const int32_t missing = given ? 0 : r->family->head_dim; /* null is not missing */
    if ((!given || cJSON_IsNull(given)) && !missing && g->hidden % g->heads)
        refuse(r, "num_attention_heads",
               "hidden_size %d is no multiple of %d heads, and head_dim is not given", g->hidden,
               g->heads);
    else
        g->head_dim = read_size(r, "head_dim", MAX_HEAD_DIM,
                                missing                 ? missing
                                : g->hidden >= g->heads ? g->hidden / g->heads
                                                        : 1);
}

static void read_geometry(reader *r)
{
    mgl_geometry *g = &r->config->geometry;
    g->hidden = read_size(r, "hidden_size", MAX_HIDDEN, 0);
    g->layers = read_size(r, "num_hidden_layers", MAX_LAYERS, 0);
    g->heads = read_size(r, "num_attention_heads", MAX_HEADS, 0);
    g->ffn = read_size(r, "intermediate_size", MAX_FFN, 0);
    g->vocab = read_size(r, "vocab_size", MAX_VOCAB, 0);
    if (g->heads) {
        const bool is_null = cJSON_IsNull(mgl_json_member(r->json->root, "num_key_value_heads"));
        const int32_t missing = is_null ? 0 : r->family->kv_heads;
        g->kv_heads = read_size(r, "num_key_value_heads", MAX_HEADS, missing ? missing : g->heads);
    }
    if (g->heads && g->hidden)
        read_head_dim(r);
    if (g->head_dim > MAX_HEAD_DIM || g->head_dim % 2)
        refuse(r, "head_dim", "%d is not supported; it must be even and at most %d", g->head_dim,
               MAX_HEAD_DIM);
    if (g->kv_heads && g->heads % g->kv_heads)
        refuse(r, "num_key_value_heads", "%d heads can not share %d key and value heads evenly",
               g->heads, g->kv_heads);
    /* Hugging Face's defaults for these two. */
    r->config->max_positions =
        read_size(r, "max_position_embeddings", MAX_POSITIONS, r->family->max_positions);
    double eps = read_number(r, r->json->root, "rms_norm_eps", false, 1e-6);
    g->eps = (float)eps;
    if (!(g->eps > 0) || eps >= 1)
        refuse(r, "rms_norm_eps", "%g is not supported; it must be above 0 and below 1", eps);
    r->config->tied = read_flag(r, "tie_word_embeddings");
}

static void check_activation(reader *r)
{
    const char *name = read_string(r, r->json->root, "hidden_act");
    if (name && strcmp(name, "silu") != 0 && strcmp(name, "swish") != 0)
        refuse(r, "hidden_act", "the activation \"%.100s\" is not supported; it must be \"silu\"",
               name);
}

/* The window of the layers that have one, in positions; 0: no layer has one. `given`: the key. */
static int64_t window_of(reader *r, const cJSON *given)
{
    int64_t window = DEFAULT_WINDOW;
    mgl_error cause;
    if (r->family->window == WINDOW_SWITCHED && !read_flag(r, "use_sliding_window"))
        return 0;
    if (r->family->window == WINDOW_FOREIGN &&
        (!given || cJSON_IsFalse(mgl_json_member(r->json->root, "use_sliding_window"))))
        return 0;
    if (cJSON_IsNull(given) || cJSON_IsFalse(given))
        return 0;
    take(r,
         mgl_json_get_int(r->json, r->json->root, "sliding_window", false, 0, INT64_MAX >> 11,
                          &window, &cause),
         &cause);
    return window;
}

/* Whether layer_types, which stands before max_window_layers, gives a layer a window. Types that
 * are neither full nor over a window are refused. */
static bool list_has_window(reader *r, const cJSON *list)
{
    char value[64];
    const cJSON *type;
    bool sliding = false;
    cJSON_ArrayForEach(type, list)
    {
        const char *name = cJSON_IsString(type) ? type->valuestring : "";
        if (!strcmp(name, "sliding_attention") && r->family->window != WINDOW_FOREIGN) {
            sliding = true;
        } else if (strcmp(name, "full_attention") != 0) {
            refuse(r, "layer_types", "%s is not supported; every layer must have full_attention",
                   mgl_value_print(type, value, sizeof value));
            return false;
        }
    }
    return sliding;
}

/* Windows that are declared but not in use, or that no position reaches the end of, are fine. */
static void check_windows(reader *r)
{
    char value[64];
    const cJSON *given = mgl_json_member(r->json->root, "sliding_window");
    const cJSON *list = mgl_json_member(r->json->root, "layer_types");
    const bool listed = cJSON_IsArray(list) && list->child;
    const int64_t window = window_of(r, given);
    bool active = listed ? list_has_window(r, list) : window > 0;
    if (active && !listed && r->family->window == WINDOW_SWITCHED)
        active = read_size(r, "max_window_layers", MAX_LAYERS, DEFAULT_WINDOW_LAYERS) <
                 r->config->geometry.layers;
    if (r->family->window == WINDOW_ALWAYS)
        active = active || window > 0;
    if (r->family->window != WINDOW_FOREIGN && window >= r->config->max_positions)
        return;
    if (active && listed && window == 0)
        refuse(r, "layer_types",
               "a layer has sliding_attention, and there is no window; every layer must have "
               "full_attention");
    else if (active)
        refuse(r, "sliding_window",
               "%s: attention over a sliding window can not be represented; it may be null, or at "
               "least max_position_embeddings (%d)",
               given ? mgl_value_print(given, value, sizeof value) : "missing, which means 4096",
               r->config->max_positions);
}

static void check_forbidden(reader *r)
{
    char value[64];
    for (size_t i = 0; i < sizeof forbidden / sizeof *forbidden; i++) {
        const struct forbidden *f = &forbidden[i];
        const cJSON *item = mgl_json_member(r->json->root, f->key);
        if (!mgl_is_neutral(item, f->neutral))
            refuse(r, f->key, "%s: %s", mgl_value_print(item, value, sizeof value), f->why);
    }
}

/* ---- rope ----------------------------------------------------------------------------------- */

/*  keys of a rope object, beyond rope_type and type, with the types that they mean something for;
    the last two may stand in any, as Hugging Face writes them */
static const struct {
    const char *key;
    unsigned types; /* bits 1 << mgl_rope_type */
} rope_keys[] = {
    {"factor", 1u << MGL_ROPE_LINEAR | 1u << MGL_ROPE_LLAMA3 | 1u << MGL_ROPE_DYNAMIC},
    {"low_freq_factor", 1u << MGL_ROPE_LLAMA3},
    {"high_freq_factor", 1u << MGL_ROPE_LLAMA3},
    {"original_max_position_embeddings", ~0u},
    {"rope_theta", ~0u},
};

static bool find_rope_type(const char *name, mgl_rope_type *type)
{
    static const char *const names[] = {
#define MGL_X(id, name) name,
        MGL_ROPE_TYPES(MGL_X)
#undef MGL_X
    };
    for (int i = 0; i < MGL_ROPE_TYPE_COUNT; i++)
        if (!strcmp(names[i], name))
            return *type = (mgl_rope_type)i, true;
    return false;
}

static void check_rope_keys(reader *r, const char *object_key, const cJSON *object)
{
    char key[128], value[64];
    for (const cJSON *item = object->child; item; item = item->next) {
        size_t i = 0, count = sizeof rope_keys / sizeof *rope_keys;
        if (!strcmp(item->string, "rope_type") || !strcmp(item->string, "type") ||
            cJSON_IsNull(item))
            continue;
        snprintf(key, sizeof key, "%s.%.80s", object_key, item->string);
        if (!strcmp(item->string, "partial_rotary_factor")) {
            if (!mgl_is_neutral(item, MGL_NEUTRAL_ONE))
                refuse(r, key, "%s: rope on a part of each head can not be represented",
                       mgl_value_print(item, value, sizeof value));
            continue;
        }
        while (i < count && strcmp(rope_keys[i].key, item->string) != 0)
            i++;
        if (i == count || !(rope_keys[i].types & 1u << r->config->rope.type))
            refuse(r, key, "the key means nothing for this type of rope; remove it");
    }
}

static void read_llama3(reader *r, const char *object_key, const cJSON *object)
{
    mgl_rope *rope = &r->config->rope;
    rope->low_freq_factor = read_number(r, object, "low_freq_factor", true, 1);
    rope->high_freq_factor = read_number(r, object, "high_freq_factor", true, 4);
    rope->original_max_positions =
        read_number(r, object, "original_max_position_embeddings", true, 8192);
    if (!(rope->low_freq_factor > 0) || !(rope->high_freq_factor > rope->low_freq_factor))
        refuse(r, object_key, "low_freq_factor must be above 0 and below high_freq_factor");
    if (!(rope->original_max_positions >= 1))
        refuse(r, object_key, "original_max_position_embeddings must be at least 1");
}

/* One rope object, of either form. */
static void read_rope_object(reader *r, const char *object_key, const cJSON *object)
{
    mgl_rope *rope = &r->config->rope;
    const char *type = read_string(r, object, "rope_type");
    if (!type)
        type = read_string(r, object, "type");
    if (type && !find_rope_type(type, &rope->type)) {
        refuse(r, object_key,
               "the rope type \"%.80s\" is not supported; default, linear, llama3 and dynamic are",
               type);
        return;
    }
    check_rope_keys(r, object_key, object);
    if (rope->type != MGL_ROPE_DEFAULT) {
        rope->factor = read_number(r, object, "factor", true, 1);
        if (!(rope->factor > 0))
            refuse(r, object_key, "factor must be above 0");
    }
    if (rope->type == MGL_ROPE_LLAMA3)
        read_llama3(r, object_key, object);
    double original = read_number(r, object, "original_max_position_embeddings", false, -1);
    if (rope->type == MGL_ROPE_DYNAMIC && original > 0 &&
        (original < r->config->max_positions || original > r->config->max_positions))
        refuse(r, object_key,
               "dynamic rope with an original_max_position_embeddings of its own is not supported");
    double inner = read_number(r, object, "rope_theta", false, 10000);
    rope->theta = read_number(r, r->json->root, "rope_theta", false, inner);
    const cJSON *own = mgl_json_member(object, "rope_theta");
    if (own && !cJSON_IsNull(own) && (rope->theta < inner || rope->theta > inner))
        refuse(r, "rope_theta", "%g contradicts %s.rope_theta, %g; keep one", rope->theta,
               object_key, inner);
}

static void read_rope(reader *r)
{
    mgl_rope *rope = &r->config->rope;
    const cJSON *parameters = NULL, *scaling = NULL;
    mgl_error cause;
    take(r,
         mgl_json_get_object(r->json, r->json->root, "rope_parameters", false, &parameters, &cause),
         &cause);
    take(r, mgl_json_get_object(r->json, r->json->root, "rope_scaling", false, &scaling, &cause),
         &cause);
    if (parameters && scaling && !cJSON_Compare(parameters, scaling, true))
        refuse(r, "rope_parameters", "contradicts rope_scaling; keep one of the two");
    if (parameters)
        read_rope_object(r, "rope_parameters", parameters);
    else if (scaling)
        read_rope_object(r, "rope_scaling", scaling);
    else
        rope->theta = read_number(r, r->json->root, "rope_theta", false, 10000);
    if (!(rope->theta > 0) || rope->theta > 1e30)
        refuse(r, "rope_theta", "%g is not supported; it must be above 0", rope->theta);
}

mgl_status mgl_config_read(const mgl_json *json, mgl_config *out, mgl_reasons *reasons,
                           mgl_error *err)
{
    *out = (mgl_config){.rope = {.theta = 10000, .factor = 1}};
    reader r = {.json = json, .config = out, .reasons = reasons, .err = err};
    if (!cJSON_IsObject(json->root)) {
        mgl_reasons_add(reasons, json->file, "must be a JSON object");
        return MGL_OK;
    }
    read_architecture(&r);
    read_extras(&r);
    read_geometry(&r);
    check_activation(&r);
    check_windows(&r);
    check_forbidden(&r);
    read_rope(&r);
    if (!r.status && reasons->failed)
        return mgl_fail_memory(err, sizeof(mgl_reason));
    return r.status;
}
