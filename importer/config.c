/*
 * Reads config.json: family, sizes, biases, activation and windows. config_rope.c reads rope.
 * Keys that other models use to compute something else are in one table with their neutral
 * value. A key with its neutral value is accepted; any other value is a reason against the
 * checkpoint. Keys in no table are ignored, because they do not change what these models
 * compute.
 */
#include "importer/config_reader.h"

#include "base/format.h"
#include "base/text.h"
#include "importer/neutral.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MAX_POSITIONS = 1 << 28, DEFAULT_WINDOW_LAYERS = 28 };

/*  key                          neutral  why any other value is rejected */
static const struct forbidden {
    const char *key;
    mgl_neutral neutral;
    const char *why;
} forbidden[] = {
    {"use_bias", MGL_NEUTRAL_OFF,
     "no such key of this architecture; attention_bias and mlp_bias are known"},
    {"qkv_bias", MGL_NEUTRAL_OFF,
     "no such key of this architecture; Qwen2ForCausalLM has biases of q, k and v"},
    {"partial_rotary_factor", MGL_NEUTRAL_ONE, "rope on a part of each head cannot be represented"},
    {"rotary_pct", MGL_NEUTRAL_ONE, "rope on a part of each head cannot be represented"},
    {"rope_interleaved", MGL_NEUTRAL_OFF, "interleaved rope cannot be represented"},
    {"no_rope_layers", MGL_NEUTRAL_OFF, "layers without rope cannot be represented"},
    {"no_rope_layer_interval", MGL_NEUTRAL_OFF, "layers without rope cannot be represented"},
    {"alibi", MGL_NEUTRAL_OFF, "ALiBi positions cannot be represented"},
    {"qk_norm", MGL_NEUTRAL_OFF,
     "no such key of this architecture; Qwen3ForCausalLM has norms of q and k"},
    {"use_qk_norm", MGL_NEUTRAL_OFF,
     "no such key of this architecture; Qwen3ForCausalLM has norms of q and k"},
    {"qk_layernorm", MGL_NEUTRAL_OFF, "norms of q and k other than Qwen3's cannot be represented"},
    {"clip_qkv", MGL_NEUTRAL_OFF, "clipped q, k and v cannot be represented"},
    {"attention_multiplier", MGL_NEUTRAL_OFF,
     "attention is scaled by 1 / sqrt(head_dim) and nothing else"},
    {"query_pre_attn_scalar", MGL_NEUTRAL_OFF,
     "attention is scaled by 1 / sqrt(head_dim) and nothing else"},
    {"attention_chunk_size", MGL_NEUTRAL_OFF, "chunked attention cannot be represented"},
    {"attn_logit_softcapping", MGL_NEUTRAL_OFF, "soft caps cannot be represented"},
    {"final_logit_softcapping", MGL_NEUTRAL_OFF, "soft caps cannot be represented"},
    {"embedding_multiplier", MGL_NEUTRAL_ONE, "scaled embeddings cannot be represented"},
    {"scale_emb", MGL_NEUTRAL_ONE, "scaled embeddings cannot be represented"},
    {"residual_multiplier", MGL_NEUTRAL_ONE, "scaled residuals cannot be represented"},
    {"scale_depth", MGL_NEUTRAL_OFF, "scaled residuals cannot be represented"},
    {"logits_scaling", MGL_NEUTRAL_ONE, "scaled logits cannot be represented"},
    {"logit_scale", MGL_NEUTRAL_ONE, "scaled logits cannot be represented"},
    {"num_local_experts", MGL_NEUTRAL_OFF, "mixtures of experts cannot be represented"},
    {"num_experts", MGL_NEUTRAL_OFF, "mixtures of experts cannot be represented"},
    {"n_routed_experts", MGL_NEUTRAL_OFF, "mixtures of experts cannot be represented"},
    {"num_experts_per_tok", MGL_NEUTRAL_OFF, "mixtures of experts cannot be represented"},
    {"is_causal", MGL_NEUTRAL_TRUE, "attention to later tokens cannot be represented"},
    {"is_encoder_decoder", MGL_NEUTRAL_OFF, "encoders cannot be represented"},
    {"add_cross_attention", MGL_NEUTRAL_OFF, "cross attention cannot be represented"},
};

/* ---- reading, with reasons ------------------------------------------------------------------- */

typedef mgl_config_reader reader;

void mgl_config_refuse(reader *r, const char *key, const char *format, ...)
{
    char message[512];
    mgl_text where = {0};
    va_list args;
    va_start(args, format);
    mgl_format_list(message, sizeof message, format, args);
    va_end(args);
    mgl_text_format(&where, "%s: %s%s", r->json->file, r->path, key);
    mgl_reasons_add(r->reasons, where.failed ? key : where.bytes, "%s", message);
    mgl_text_clear(&where);
}

void mgl_config_take(reader *r, mgl_status status, const mgl_error *cause)
{
    status = mgl_reasons_take(r->reasons, status, cause, r->err);
    if (status && !r->status)
        r->status = status;
}

/* Returns the name of a key in the config: the usual name, or the family's alias. */
static const char *name_of(reader *r, const char *key)
{
    const char *alias = mgl_model_family_alias(r->family, key);
    const cJSON *own = mgl_json_member(r->root, key);
    const cJSON *other = alias ? mgl_json_member(r->root, alias) : NULL;
    if (own && other && !cJSON_Compare(own, other, true))
        mgl_config_refuse(r, alias, "contradicts %s; keep one of the two", key);
    return other && !own ? alias : key;
}

/* Reads a size within [1, most]. `missing`: the value of a missing key; 0: the key is required. */
static int32_t read_size(reader *r, const char *key, int32_t most, int32_t missing)
{
    int64_t value = missing;
    mgl_error cause;
    mgl_config_take(
        r, mgl_json_get_int(r->json, r->root, name_of(r, key), !missing, 1, most, &value, &cause),
        &cause);
    return (int32_t)value;
}

double mgl_config_number(reader *r, const cJSON *object, const char *key, bool required,
                         double missing)
{
    double value = missing;
    mgl_error cause;
    mgl_config_take(r, mgl_json_get_double(r->json, object, key, required, &value, &cause), &cause);
    return value;
}

bool mgl_config_flag(reader *r, const cJSON *object, const char *key, bool missing)
{
    bool value = missing;
    mgl_error cause;
    mgl_config_take(r, mgl_json_get_bool(r->json, object, key, false, &value, &cause), &cause);
    return value;
}

const char *mgl_config_string(reader *r, const cJSON *object, const char *key)
{
    const char *value = NULL;
    mgl_error cause;
    mgl_config_take(r, mgl_json_get_string(r->json, object, key, false, &value, &cause), &cause);
    return value;
}

/* ---- family and sizes ----------------------------------------------------------------------- */

/* Finds the family. `architectures` is a list, normally of one entry: the first unsupported
 * entry is reported, and the last supported entry is used. Without a list, model_type selects
 * the family. */
static void read_family(reader *r)
{
    const cJSON *list = mgl_json_member(r->root, "architectures"), *item;
    const char *type = mgl_config_string(r, r->root, "model_type");
    if (!type)
        type = r->text_type;
    const mgl_model_family *found = NULL;
    const bool listed = cJSON_IsArray(list) && list->child;
    bool known = true;
    mgl_text names = {0};
    cJSON_ArrayForEach(item, list)
    {
        const char *name =
            cJSON_IsString(item) ? item->valuestring : "an entry that is not a string";
        const mgl_model_family *family = mgl_model_family_find(name, NULL);
        if (family && (!found || found == family)) {
            found = family;
            continue;
        }
        if (family)
            mgl_config_refuse(r, "architectures",
                              "%s and %s; keep the one that matches the weights",
                              found->architecture, name);
        else
            mgl_config_refuse(r, "architectures",
                              "%.100s is not supported; these architectures can be represented: %s",
                              name, mgl_model_family_list(&names));
        known = false;
    }
    if (!listed && type)
        found = mgl_model_family_find(NULL, type);
    if (known && type && (!found || strcmp(type, found->model_type) != 0))
        mgl_config_refuse(r, "model_type", "\"%.100s\" is not supported%s%s%s", type,
                          found ? "; with " : "", found ? found->architecture : "",
                          found ? " it must be that architecture's" : "");
    if (!type && !listed)
        mgl_config_refuse(r, "architectures", "the key is missing; it must be one of: %s",
                          mgl_model_family_list(&names));
    mgl_text_clear(&names);
    r->family = found ? found : mgl_model_family_default();
}

/* Returns the wrapper that the file describes, or NULL. */
static const mgl_wrapper *find_wrapper(const cJSON *root)
{
    const cJSON *list = mgl_json_member(root, "architectures");
    const cJSON *type = mgl_json_member(root, "model_type");
    if (cJSON_IsArray(list) && list->child)
        return !list->child->next && cJSON_IsString(list->child)
                   ? mgl_wrapper_find(list->child->valuestring, NULL)
                   : NULL;
    return cJSON_IsString(type) ? mgl_wrapper_find(NULL, type->valuestring) : NULL;
}

/* Enters text_config if the file describes a wrapper. Returns whether the wrapper's own keys tie
 * the head to the embedding. */
static bool enter_wrapper(reader *r)
{
    const mgl_wrapper *wrapper = find_wrapper(r->root);
    const cJSON *text = NULL;
    mgl_error cause;
    r->config->wrapped = wrapper != NULL;
    if (!wrapper)
        return false;
    const bool tied = mgl_config_flag(r, r->root, "tie_word_embeddings", wrapper->tied);
    mgl_config_take(r, mgl_json_get_object(r->json, r->root, "text_config", true, &text, &cause),
                    &cause);
    if (text) {
        r->root = text;
        r->path = "text_config.";
        r->text_type = mgl_json_member(text, "architectures") ? NULL : wrapper->text_type;
    }
    return tied;
}

static void read_extras(reader *r)
{
    const mgl_model_family *f = r->family;
    r->config->extras = f->extras;
    for (int i = 0; i < MGL_FAMILY_BIAS_KEYS && f->biases[i].key; i++)
        if (mgl_config_flag(r, r->root, name_of(r, f->biases[i].key), f->biases[i].missing))
            r->config->extras |= f->biases[i].extras;
}

static int32_t read_fact(reader *r, int index, int32_t missing)
{
    const mgl_geometry_fact *fact = &mgl_geometry_facts[index];
    return *mgl_fact_size(&r->config->geometry, fact) =
               read_size(r, fact->key, fact->most, missing);
}

static void read_head_dim(reader *r)
{
    const mgl_geometry *g = &r->config->geometry;
    const cJSON *given = mgl_json_member(r->root, "head_dim");
    const int32_t missing = given ? 0 : r->family->head_dim; /* null is not missing */
    if ((!given || cJSON_IsNull(given)) && !missing && g->hidden % g->heads)
        mgl_config_refuse(r, "num_attention_heads",
                          "hidden_size %d is not a multiple of %d heads, and head_dim is not given",
                          g->hidden, g->heads);
    else
        read_fact(r, MGL_FACT_head_dim,
                  missing                 ? missing
                  : g->hidden >= g->heads ? g->hidden / g->heads
                                          : 1);
    const int32_t most = mgl_geometry_facts[MGL_FACT_head_dim].most;
    if (g->head_dim > most || g->head_dim % 2)
        mgl_config_refuse(r, "head_dim", "%d is not supported; it must be even and at most %d",
                          g->head_dim, most);
}

static void read_geometry(reader *r)
{
    mgl_geometry *g = &r->config->geometry;
    const mgl_geometry_fact *fact = &mgl_geometry_facts[MGL_FACT_eps];
    /* A text_config may omit a key whose value equals the default of its class. */
    const mgl_model_family none = {0}, *class = r->root == r->json->root ? &none : r->family;
    read_fact(r, MGL_FACT_hidden, class->sizes.hidden);
    read_fact(r, MGL_FACT_layers, class->sizes.layers);
    read_fact(r, MGL_FACT_heads, class->sizes.heads);
    read_fact(r, MGL_FACT_ffn, class->sizes.ffn);
    read_fact(r, MGL_FACT_vocab, class->sizes.vocab);
    if (g->heads) {
        const bool is_null = cJSON_IsNull(mgl_json_member(r->root, "num_key_value_heads"));
        const int32_t missing = is_null ? 0 : r->family->kv_heads;
        read_fact(r, MGL_FACT_kv_heads, missing ? missing : g->heads);
    }
    if (g->heads && g->hidden)
        read_head_dim(r);
    if (g->kv_heads && g->heads % g->kv_heads)
        mgl_config_refuse(r, "num_key_value_heads",
                          "%d heads cannot share %d key and value heads evenly", g->heads,
                          g->kv_heads);
    const char *key = name_of(r, fact->key);
    double eps = mgl_config_number(r, r->root, key, false, r->family->eps);
    g->eps = (float)eps;
    if (!(g->eps > 0) || eps >= fact->most)
        mgl_config_refuse(r, key, "%g is not supported; it must be above 0 and below 1", eps);
}

static void check_activation(reader *r)
{
    const char *key = name_of(r, "hidden_act"), *name = mgl_config_string(r, r->root, key);
    if (name && strcmp(name, "silu") != 0 && strcmp(name, "swish") != 0)
        mgl_config_refuse(r, key, "the activation \"%.100s\" is not supported; it must be \"silu\"",
                          name);
}

/* ---- windows -------------------------------------------------------------------------------- */

/* Returns the window of the layers that have one, in positions; 0: no window. */
static int64_t read_window(reader *r)
{
    int64_t window = r->family->window_size;
    mgl_error cause;
    const cJSON *given = mgl_json_member(r->root, "sliding_window");
    const mgl_window_rule rule = r->family->window;
    if (rule == MGL_WINDOW_SWITCHED && !mgl_config_flag(r, r->root, "use_sliding_window", false))
        return 0;
    if (rule == MGL_WINDOW_UNREAD && cJSON_IsFalse(mgl_json_member(r->root, "use_sliding_window")))
        return 0;
    if (cJSON_IsNull(given) || cJSON_IsFalse(given))
        return 0;
    /* A window of 0 is rejected, except for a class that does not read the key. */
    mgl_config_take(r,
                    mgl_json_get_int(r->json, r->root, "sliding_window", false,
                                     rule == MGL_WINDOW_ALWAYS, INT64_MAX >> 11, &window, &cause),
                    &cause);
    return window;
}

/* Returns whether layer_types, which overrides max_window_layers, gives a layer a window. Other
 * types than full and sliding attention are rejected. */
static bool list_has_window(reader *r, const cJSON *list)
{
    char value[64];
    const cJSON *type;
    bool sliding = false;
    cJSON_ArrayForEach(type, list)
    {
        const char *name = cJSON_IsString(type) ? type->valuestring : "";
        if (!strcmp(name, "sliding_attention")) {
            sliding = true;
        } else if (strcmp(name, "full_attention") != 0) {
            mgl_config_refuse(
                r, "layer_types",
                "%s is not supported; a layer has full_attention or sliding_attention",
                mgl_value_print(type, value, sizeof value));
            return false;
        }
    }
    return sliding;
}

/* Returns the first layer with a window. */
static int64_t read_window_layers(reader *r)
{
    int64_t first = DEFAULT_WINDOW_LAYERS;
    mgl_error cause;
    mgl_config_take(r,
                    mgl_json_get_int(r->json, r->root, "max_window_layers", false, 0,
                                     mgl_geometry_facts[MGL_FACT_layers].most, &first, &cause),
                    &cause);
    return first;
}

/* Applies the sliding window. While no sequence is longer than the window, such a layer computes
 * full attention. So the window limits the positions of the graph. */
static void read_windows(reader *r)
{
    const cJSON *list = mgl_json_member(r->root, "layer_types");
    const bool is_listed = cJSON_IsArray(list) && list->child;
    const int64_t window = read_window(r);
    bool is_active = is_listed ? list_has_window(r, list) : window > 0;
    if (!is_listed && is_active && r->family->window == MGL_WINDOW_SWITCHED)
        is_active = read_window_layers(r) < r->config->geometry.layers;
    /* Mistral's class does not read layer_types: a window applies to all layers. */
    if (r->family->window == MGL_WINDOW_ALWAYS)
        is_active = is_active || window > 0;
    if (is_active && window == 0)
        mgl_config_refuse(r, "layer_types",
                          "a layer has sliding_attention, but no window is given; every layer must "
                          "have full_attention");
    else if (is_active && window < r->config->max_positions)
        r->config->max_positions = r->config->window = (int32_t)window;
}

/* Returns whether the key is one of the family's bias keys, which read_extras reads. */
static bool is_bias_key(const mgl_model_family *family, const char *key)
{
    for (int i = 0; i < MGL_FAMILY_BIAS_KEYS && family->biases[i].key; i++) {
        const char *alias = mgl_model_family_alias(family, family->biases[i].key);
        if (!strcmp(family->biases[i].key, key) || (alias && !strcmp(alias, key)))
            return true;
    }
    return false;
}

static void check_forbidden(reader *r, const cJSON *object)
{
    char value[64];
    for (size_t i = 0; i < sizeof forbidden / sizeof *forbidden; i++) {
        const struct forbidden *f = &forbidden[i];
        const cJSON *item = mgl_json_member(object, f->key);
        if (!mgl_is_neutral(item, f->neutral) && !is_bias_key(r->family, f->key))
            mgl_config_refuse(r, f->key, "%s: %s", mgl_value_print(item, value, sizeof value),
                              f->why);
    }
}

mgl_status mgl_config_read(const mgl_json *json, mgl_config *out, mgl_reasons *reasons,
                           mgl_error *err)
{
    *out = (mgl_config){.rope = {.theta = 10000, .factor = 1, .attention_factor = 1}};
    reader r = {.json = json,
                .root = json->root,
                .path = "",
                .family = mgl_model_family_default(),
                .config = out,
                .reasons = reasons,
                .err = err};
    if (!cJSON_IsObject(json->root)) {
        mgl_reasons_add(reasons, json->file, "must be a JSON object");
        return MGL_OK;
    }
    const bool wrapper_ties = enter_wrapper(&r);
    read_family(&r);
    out->model_type = r.family->model_type;
    out->pairs = r.family->pairs;
    read_extras(&r);
    read_geometry(&r);
    out->tied = mgl_config_flag(&r, r.root, "tie_word_embeddings", r.family->tied) || wrapper_ties;
    out->max_positions =
        read_size(&r, "max_position_embeddings", MAX_POSITIONS, r.family->max_positions);
    check_activation(&r);
    check_forbidden(&r, r.root);
    if (r.root != json->root) {
        const char *path = r.path;
        r.path = "";
        check_forbidden(&r, json->root);
        r.path = path;
    }
    mgl_config_read_rope(&r, out->max_positions);
    read_windows(&r);
    if (!r.status && reasons->failed)
        return mgl_fail_memory(err, sizeof(mgl_reason));
    return r.status;
}
