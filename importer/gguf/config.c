/*
 * Writes config.json from the metadata of a GGUF file. A table maps
 * keys. A key of the architecture in no table is rejected, because it may change what the model
 * computes.
 */
#include "importer/gguf/gguf.h"

#include "base/json_out.h"
#include "base/memory.h"

#include <inttypes.h>
#include <stdio.h>

enum { KEY = 160, MOST = 1 << 28 };

static const struct architecture {
    const char *name, *class, *model_type;
    bool permuted; /* the rows of q and k are in the order of neighboring pairs */
} architectures[] = {
    {"llama", "LlamaForCausalLM", "llama", true},
    {"qwen2", "Qwen2ForCausalLM", "qwen2", false},
    {"qwen3", "Qwen3ForCausalLM", "qwen3", false},
};
enum { ARCHITECTURES = sizeof architectures / sizeof *architectures };

/*  key after "llama.", key of config.json; required */
static const struct size_row {
    const char *key, *to;
    bool required;
} sizes[] = {
    {"embedding_length", "hidden_size", true},
    {"block_count", "num_hidden_layers", true},
    {"feed_forward_length", "intermediate_size", true},
    {"attention.head_count", "num_attention_heads", true},
    {"attention.head_count_kv", "num_key_value_heads", false},
    {"attention.key_length", "head_dim", false},
    {"context_length", "max_position_embeddings", true},
};
enum { SIZES = sizeof sizes / sizeof *sizes };

/*  keys that are read elsewhere, or that do not change what the model computes */
static const char *const others[] = {
    "vocab_size",
    "tensor_data_layout",
    "attention.layer_norm_rms_epsilon",
    "attention.value_length",
    "attention.sliding_window",
    "attention.causal",
    "rope.dimension_count",
    "rope.freq_base",
    "rope.scale_linear",
    "rope.scaling.type",
    "rope.scaling.factor",
    "rope.scaling.original_context_length",
    "rope.scaling.finetuned",
    "expert_count",
    "expert_used_count",
};
enum { OTHERS = sizeof others / sizeof *others };

/* The metadata of one file, being written. */
typedef struct writer {
    const mgl_gguf *gguf;
    const struct architecture *architecture;
    mgl_json_out out;
    mgl_error *err;
} writer;

/* ---- keys ------------------------------------------------------------------------------------ */

static const struct architecture *find_architecture(mgl_gguf_string name)
{
    for (int i = 0; i < ARCHITECTURES; i++)
        if (mgl_gguf_is(name, architectures[i].name))
            return &architectures[i];
    return NULL;
}

static mgl_status read_architecture(writer *w)
{
    mgl_gguf_string name = {"", 0}, type = {"model", 5};
    mgl_status status = mgl_gguf_get_string(w->gguf, "general.architecture", &name, w->err);
    if (!status)
        status = mgl_gguf_get_string(w->gguf, "general.type", &type, w->err);
    if (!status && !mgl_gguf_is(type, "model"))
        return mgl_fail(w->err, MGL_BAD_INPUT, w->gguf->file,
                        "unsupported kind of file: general.type = \"%.*s\"; name the file of a "
                        "whole model",
                        (int)(type.length < 80 ? type.length : 80), type.bytes);
    w->architecture = status ? NULL : find_architecture(name);
    if (status || w->architecture)
        return status;
    return mgl_fail(w->err, MGL_BAD_INPUT, w->gguf->file,
                    "unsupported architecture: general.architecture = \"%.*s\"; supported in GGUF "
                    "files: llama, qwen2 and qwen3; other architectures may be supported in "
                    "Hugging Face layout",
                    (int)(name.length < 80 ? name.length : 80), name.bytes);
}

/* Writes "llama.<key>". Returns `to`. */
static const char *full_key(const writer *w, const char *key, char to[KEY])
{
    snprintf(to, KEY, "%s.%s", w->architecture->name, key);
    return to;
}

static bool has(const writer *w, const char *key)
{
    char full[KEY];
    return mgl_gguf_find(w->gguf, full_key(w, key, full)) != NULL;
}

static mgl_status get_int(const writer *w, const char *key, int64_t low, int64_t *out)
{
    char full[KEY];
    return mgl_gguf_get_int(w->gguf, full_key(w, key, full), low, MOST, out, w->err);
}

static mgl_status get_float(const writer *w, const char *key, double *out)
{
    char full[KEY];
    return mgl_gguf_get_float(w->gguf, full_key(w, key, full), out, w->err);
}

static mgl_status fail(const writer *w, const char *key, const char *problem)
{
    return mgl_fail(w->err, MGL_BAD_INPUT, w->gguf->file, "%s.%s: %s", w->architecture->name, key,
                    problem);
}

static bool is_known(mgl_gguf_string key)
{
    for (int i = 0; i < SIZES; i++)
        if (mgl_gguf_is(key, sizes[i].key))
            return true;
    for (int i = 0; i < OTHERS; i++)
        if (mgl_gguf_is(key, others[i]))
            return true;
    return false;
}

/* Rejects unknown keys of the architecture. */
static mgl_status check_keys(const writer *w)
{
    const size_t length = strlen(w->architecture->name);
    for (size_t i = 0; i < w->gguf->value_count; i++) {
        mgl_gguf_string key = w->gguf->values[i].key;
        if (key.length <= length || key.bytes[length] != '.' ||
            memcmp(key.bytes, w->architecture->name, length) != 0)
            continue;
        key.bytes += length + 1;
        key.length -= length + 1;
        if (!is_known(key))
            return mgl_fail(w->err, MGL_BAD_INPUT, w->gguf->file,
                            "unsupported key: %s.%.*s, which may change what the model computes; "
                            "use the model in Hugging Face layout",
                            w->architecture->name, (int)key.length, key.bytes);
    }
    return MGL_OK;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

/* Reads a size, which may be an array with one equal number a layer. */
static mgl_status read_size(const writer *w, const char *key, int64_t *out)
{
    char full[KEY];
    const mgl_gguf_value *value = mgl_gguf_find(w->gguf, full_key(w, key, full));
    int64_t *layers = NULL;
    size_t count = 0;
    if (!value || !value->is_array)
        return get_int(w, key, 1, out);
    mgl_status status = mgl_gguf_get_ints(w->gguf, full, &layers, &count, w->err);
    for (size_t i = 0; i < count && !status; i++)
        if (layers[i] != layers[0] || layers[i] < 1 || layers[i] > MOST)
            status = fail(w, key, "layers of different sizes are not supported");
    if (!status && !count)
        status = fail(w, key, "is an empty array; download the file again");
    if (!status)
        *out = layers[0];
    mgl_free(layers);
    return status;
}

static mgl_status write_sizes(writer *w)
{
    mgl_status status = MGL_OK;
    for (int i = 0; i < SIZES && !status; i++) {
        int64_t value = 0;
        status = read_size(w, sizes[i].key, &value);
        if (!status && !value && sizes[i].required)
            status = fail(w, sizes[i].key, "the key is missing; download the file again");
        if (!status && value)
            mgl_json_out_int(&w->out, sizes[i].to, value);
        if (!status && !value && !strcmp(sizes[i].to, "num_key_value_heads")) {
            status = read_size(w, "attention.head_count", &value);
            mgl_json_out_int(&w->out, sizes[i].to, value);
        }
    }
    return status;
}

/* The width of a head. */
static mgl_status read_head(const writer *w, int64_t *out)
{
    int64_t hidden = 0, heads = 1;
    mgl_status status = get_int(w, "embedding_length", 1, &hidden);
    if (!status)
        status = read_size(w, "attention.head_count", &heads);
    *out = hidden / heads;
    return status ? status : get_int(w, "attention.key_length", 1, out);
}

/* Checks keys of which only one value is supported. */
static mgl_status check_values(const writer *w)
{
    int64_t head = 0, value = 0, rotated = 0, experts = 0, parts = 0;
    bool causal = true;
    char full[KEY];
    mgl_status status = read_head(w, &head);
    value = rotated = head;
    if (!status)
        status = get_int(w, "attention.value_length", 0, &value);
    if (!status)
        status = get_int(w, "rope.dimension_count", 0, &rotated);
    if (!status)
        status = get_int(w, "expert_count", 0, &experts);
    if (!status)
        status = mgl_gguf_get_int(w->gguf, "split.count", 0, MOST, &parts, w->err);
    if (!status)
        status = mgl_gguf_get_bool(w->gguf, full_key(w, "attention.causal", full), &causal, w->err);
    if (status)
        return status;
    if (parts > 1)
        return mgl_fail(w->err, MGL_BAD_INPUT, w->gguf->file,
                        "is one of %" PRId64 " parts of a model, which are not read; join them "
                        "with `llama-gguf-split --merge`",
                        parts);
    if (experts)
        return fail(w, "expert_count", "mixtures of experts cannot be represented");
    if (value != head)
        return fail(w, "attention.value_length", "must equal attention.key_length");
    if (rotated != head)
        return fail(w, "rope.dimension_count", "rope on a part of each head cannot be represented");
    if (!causal)
        return fail(w, "attention.causal", "attention to later tokens cannot be represented");
    return MGL_OK;
}

/* ---- rope ------------------------------------------------------------------------------------ */

/* Reads rope_freqs.weight: a divisor for each frequency, as Llama 3.1 has. */
static mgl_status read_factors(const writer *w, int64_t head, float **out)
{
    const mgl_gguf_tensor *t = mgl_gguf_find_tensor(w->gguf, "rope_freqs.weight");
    mgl_map *map = NULL;
    *out = NULL;
    if (!t)
        return MGL_OK;
    if (strcmp(t->type, "F32") != 0 || t->rank != 1 || t->shape[0] != head / 2)
        return mgl_fail(w->err, MGL_BAD_INPUT, w->gguf->file,
                        "tensor rope_freqs.weight: must be %" PRId64 " numbers of type F32; "
                        "download the file again",
                        head / 2);
    mgl_status status = mgl_map_open(w->gguf->file, &map, w->err);
    if (status)
        return status;
    *out = mgl_alloc(t->bytes);
    status = *out ? mgl_map_read(map, w->gguf->data + t->offset, t->bytes, *out, w->err)
                  : mgl_fail_memory(w->err, t->bytes);
    mgl_map_close(map);
    return status;
}

/* Writes the factors as lists of the rope type "longrope", which uses such divisors; the scale of
 * its attention is 1. */
static mgl_status write_factors(writer *w, int64_t head, const float *factors)
{
    static const char *const keys[] = {"short_factor", "long_factor"};
    int64_t positions = 1;
    mgl_status status = get_int(w, "context_length", 1, &positions);
    mgl_json_out_string(&w->out, "rope_type", "longrope");
    for (int k = 0; k < 2; k++) {
        mgl_json_out_array(&w->out, keys[k]);
        for (int64_t i = 0; i < head / 2; i++)
            mgl_json_out_float(&w->out, NULL, factors[i]);
        mgl_json_out_close_array(&w->out);
    }
    mgl_json_out_int(&w->out, "original_max_position_embeddings", positions);
    mgl_json_out_int(&w->out, "attention_factor", 1);
    return status;
}

static mgl_status write_scaling(writer *w)
{
    mgl_gguf_string type = {"none", 4};
    double factor = 1;
    int64_t original = 0;
    char full[KEY];
    mgl_status status =
        mgl_gguf_get_string(w->gguf, full_key(w, "rope.scaling.type", full), &type, w->err);
    if (!status)
        status = get_float(w, "rope.scaling.factor", &factor);
    if (!status && has(w, "rope.scale_linear") && !has(w, "rope.scaling.type")) {
        type = (mgl_gguf_string){"linear", 6};
        status = get_float(w, "rope.scale_linear", &factor);
    }
    if (!status)
        status = get_int(w, "rope.scaling.original_context_length", 1, &original);
    if (status)
        return status;
    const bool is_linear = mgl_gguf_is(type, "linear"), is_yarn = mgl_gguf_is(type, "yarn");
    if (!is_linear && !is_yarn && !mgl_gguf_is(type, "none"))
        return mgl_fail(w->err, MGL_BAD_INPUT, w->gguf->file,
                        "unsupported scaling of rope: %s = \"%.*s\"; supported: none, linear and "
                        "yarn",
                        full_key(w, "rope.scaling.type", full),
                        (int)(type.length < 80 ? type.length : 80), type.bytes);
    mgl_json_out_string(&w->out, "rope_type", is_linear ? "linear" : is_yarn ? "yarn" : "default");
    if (is_linear || is_yarn)
        mgl_json_out_double(&w->out, "factor", factor);
    if (is_yarn && original)
        mgl_json_out_int(&w->out, "original_max_position_embeddings", original);
    return MGL_OK;
}

static mgl_status write_rope(writer *w)
{
    int64_t head = 0;
    float *factors = NULL;
    double theta = 10000;
    mgl_status status = read_head(w, &head);
    if (!status)
        status = get_float(w, "rope.freq_base", &theta);
    if (!status)
        status = read_factors(w, head, &factors);
    mgl_json_out_object(&w->out, "rope_parameters");
    mgl_json_out_double(&w->out, "rope_theta", theta);
    if (!status)
        status = factors ? write_factors(w, head, factors) : write_scaling(w);
    mgl_json_out_close_object(&w->out);
    mgl_free(factors);
    return status;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Writes the number of tokens, which is the number of rows of the table. */
static mgl_status write_vocabulary(writer *w)
{
    const mgl_gguf_tensor *t = mgl_gguf_find_tensor(w->gguf, "token_embd.weight");
    if (!t || t->rank != 2)
        return mgl_fail(w->err, MGL_BAD_INPUT, w->gguf->file,
                        "tensor token_embd.weight: %s; name the file of a whole model",
                        t ? "must have two dimensions" : "the tensor is missing");
    mgl_json_out_int(&w->out, "vocab_size", t->shape[0]);
    return MGL_OK;
}

/* Whether the largest tensor is quantized. */
static bool is_quantized(const mgl_gguf *gguf)
{
    const mgl_gguf_tensor *largest = &gguf->tensors[0];
    mgl_dtype dtype;
    for (size_t i = 1; i < gguf->tensor_count; i++)
        if (gguf->tensors[i].bytes > largest->bytes)
            largest = &gguf->tensors[i];
    return !mgl_dtype_parse_safetensors(largest->type, &dtype);
}

static mgl_status write_attention(writer *w)
{
    double eps = 0;
    int64_t window = 0;
    mgl_status status = get_float(w, "attention.layer_norm_rms_epsilon", &eps);
    if (!status && !(eps > 0))
        status = fail(w, "attention.layer_norm_rms_epsilon",
                      "the key is missing or not above 0; download the file again");
    if (!status)
        status = get_int(w, "attention.sliding_window", 0, &window);
    mgl_json_out_double(&w->out, "rms_norm_eps", eps);
    if (window) { /* in all layers */
        mgl_json_out_int(&w->out, "sliding_window", window);
        mgl_json_out_bool(&w->out, "use_sliding_window", true);
        mgl_json_out_int(&w->out, "max_window_layers", 0);
    }
    return status;
}

/* Writes the end tokens: the end of a text, and of a turn. */
static mgl_status write_ends(writer *w)
{
    static const char *const keys[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                       "tokenizer.ggml.eom_token_id"};
    int64_t ids[3] = {-1, -1, -1};
    mgl_status status = MGL_OK;
    for (int i = 0; i < 3 && !status; i++)
        status = mgl_gguf_get_int(w->gguf, keys[i], 0, MOST, &ids[i], w->err);
    if (ids[0] < 0 && ids[1] < 0 && ids[2] < 0)
        return status;
    mgl_json_out_array(&w->out, "eos_token_id");
    for (int i = 0; i < 3; i++)
        if (ids[i] >= 0 && (i < 1 || ids[i] != ids[0]) && (i < 2 || ids[i] != ids[1]))
            mgl_json_out_int(&w->out, NULL, ids[i]);
    mgl_json_out_close_array(&w->out);
    return status;
}

static void write_names(writer *w)
{
    mgl_json_out_array(&w->out, "architectures");
    mgl_json_out_string(&w->out, NULL, w->architecture->class);
    mgl_json_out_close_array(&w->out);
    mgl_json_out_string(&w->out, "model_type", w->architecture->model_type);
    if (is_quantized(w->gguf)) /* of activations and the cache on a GPU */
        mgl_json_out_string(&w->out, "dtype", "bfloat16");
    mgl_json_out_bool(&w->out, "tie_word_embeddings",
                      !mgl_gguf_find_tensor(w->gguf, "output.weight"));
    if (strcmp(w->architecture->name, "llama") != 0)
        return;
    mgl_json_out_bool(&w->out, "attention_bias",
                      mgl_gguf_find_tensor(w->gguf, "blk.0.attn_q.bias") != NULL);
    mgl_json_out_bool(&w->out, "mlp_bias",
                      mgl_gguf_find_tensor(w->gguf, "blk.0.ffn_up.bias") != NULL);
}

mgl_status mgl_gguf_write_config(const mgl_gguf *gguf, mgl_text *out, mgl_error *err)
{
    writer w = {.gguf = gguf, .err = err};
    mgl_status status = read_architecture(&w);
    if (!status)
        status = check_keys(&w);
    mgl_json_out_object(&w.out, NULL);
    if (!status)
        write_names(&w);
    if (!status)
        status = write_sizes(&w);
    if (!status)
        status = check_values(&w);
    if (!status)
        status = write_vocabulary(&w);
    if (!status)
        status = write_attention(&w);
    if (!status)
        status = write_rope(&w);
    if (!status)
        status = write_ends(&w);
    mgl_json_out_close_object(&w.out);
    *out = w.out.text;
    return status;
}

mgl_rope_pairs mgl_gguf_rope_pairs(const mgl_gguf *gguf)
{
    mgl_gguf_string name = {"", 0};
    const bool found = !mgl_gguf_get_string(gguf, "general.architecture", &name, NULL);
    const struct architecture *architecture = found ? find_architecture(name) : NULL;
    return architecture && architecture->permuted ? MGL_PAIRS_NEIGHBORS : MGL_PAIRS_HALVES;
}
