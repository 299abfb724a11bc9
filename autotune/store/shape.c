/*
 * Implements shape.h: prints a config in the form of a config.json, parses it, and names it by its
 * hash.
 */
#include "autotune/store/shape.h"

#include "base/json_out.h"
#include "base/sha256.h"

#include <stdio.h>
#include <string.h>

enum { MAX_SHAPE = 1 << 16, SHOWN_DIGITS = 12 };

static const char *const rope_names[] = {
#define MGL_X(id, name) name,
    MGL_ROPE_TYPES(MGL_X)
#undef MGL_X
};

/* Writes the parameters of yarn and longrope, except the factor. */
static void print_scaled(const mgl_rope *rope, int32_t half, mgl_json_out *out)
{
    mgl_json_out_real(out, "original_max_position_embeddings", rope->original_max_positions);
    mgl_json_out_real(out, "attention_factor", rope->attention_factor);
    if (rope->type == MGL_ROPE_YARN) {
        mgl_json_out_real(out, "beta_fast", rope->beta_fast);
        mgl_json_out_real(out, "beta_slow", rope->beta_slow);
        mgl_json_out_bool(out, "truncate", rope->truncate);
        return;
    }
    mgl_json_out_array(out, "short_factor");
    for (int32_t i = 0; i < half; i++)
        mgl_json_out_float(out, NULL, rope->short_factor[i]);
    mgl_json_out_close_array(out);
    mgl_json_out_array(out, "long_factor");
    for (int32_t i = 0; i < half; i++)
        mgl_json_out_float(out, NULL, rope->long_factor[i]);
    mgl_json_out_close_array(out);
}

static void print_rope(const mgl_rope *rope, int32_t half, mgl_json_out *out)
{
    mgl_json_out_object(out, "rope_parameters");
    mgl_json_out_string(out, "rope_type", rope_names[rope->type]);
    mgl_json_out_real(out, "rope_theta", rope->theta);
    if (rope->type != MGL_ROPE_DEFAULT)
        mgl_json_out_real(out, "factor", rope->factor);
    if (rope->type == MGL_ROPE_YARN || rope->type == MGL_ROPE_LONGROPE)
        print_scaled(rope, half, out);
    if (rope->type == MGL_ROPE_LLAMA3) {
        mgl_json_out_real(out, "low_freq_factor", rope->low_freq_factor);
        mgl_json_out_real(out, "high_freq_factor", rope->high_freq_factor);
        mgl_json_out_real(out, "original_max_position_embeddings", rope->original_max_positions);
    }
    mgl_json_out_close_object(out);
}

/* Writes the architecture name whose models have these biases and norms, and the flags of its
 * optional biases. */
static void print_family(unsigned extras, mgl_json_out *out)
{
    const bool qkv = extras & MGL_EXTRA_QKV_BIAS, o = extras & MGL_EXTRA_O_BIAS;
    const bool mlp = extras & MGL_EXTRA_MLP_BIAS;
    const char *type = extras & MGL_EXTRA_QK_NORM     ? "qwen3"
                       : extras == MGL_EXTRA_QKV_BIAS ? "qwen2"
                       : qkv != o                     ? "seed_oss"
                                                      : "llama";
    const bool every = !strcmp(type, "seed_oss");
    mgl_json_out_string(out, "model_type", type);
    if (every || o)
        mgl_json_out_bool(out, "attention_bias", qkv);
    if (every)
        mgl_json_out_bool(out, "attention_out_bias", o);
    if (mlp)
        mgl_json_out_bool(out, "mlp_bias", true);
}

/* Writes the weight formats. Versions that cannot read them reject this key. */
static void print_formats(const mgl_config *config, mgl_json_out *out)
{
    char text[MGL_WEIGHT_FORMAT_TEXT];
    if (!mgl_synthetic_is_quantized(config))
        return;
    mgl_json_out_object(out, MGL_SYNTHETIC_FORMATS);
    mgl_json_out_string(out, "quant_method", MGL_SYNTHETIC_METHOD);
    mgl_json_out_string(out, "layers", mgl_synthetic_print_format(config->layers, text));
    mgl_json_out_string(out, "head", mgl_synthetic_print_format(config->head, text));
    mgl_json_out_close_object(out);
}

void mgl_shape_print(const mgl_config *config, mgl_text *out)
{
    mgl_json_out to = {0};
    mgl_json_out_begin(&to, "megalith.shape/1");
    print_family(config->extras, &to);
    for (int i = 0; i < MGL_GEOMETRY_FACT_COUNT; i++) {
        const double value = mgl_fact_value(&config->geometry, &mgl_geometry_facts[i]);
        if (mgl_geometry_facts[i].is_float)
            mgl_json_out_float(&to, mgl_geometry_facts[i].key, (float)value);
        else
            mgl_json_out_int(&to, mgl_geometry_facts[i].key, (int)value);
    }
    mgl_json_out_string(&to, "hidden_act", "silu");
    mgl_json_out_int(&to, "max_position_embeddings", config->max_positions);
    mgl_json_out_bool(&to, "tie_word_embeddings", config->tied);
    print_rope(&config->rope, config->geometry.head_dim / 2, &to);
    print_formats(config, &to);
    mgl_json_out_close(&to);
    out->failed |= to.text.failed;
    if (to.text.bytes)
        mgl_text_append(out, to.text.bytes, to.text.length);
    mgl_text_clear(&to.text);
}

mgl_status mgl_shape_parse(const char *text, mgl_config *out, mgl_error *err)
{
    mgl_json json;
    mgl_reasons reasons = {0};
    mgl_status status = mgl_json_parse(text, strlen(text), MAX_SHAPE, "shape", &json, err);
    if (status)
        return status;
    status = mgl_config_read(&json, out, &reasons, err);
    if (!status)
        status = mgl_reasons_fail(&reasons, err);
    if (!status)
        status = mgl_synthetic_parse_formats(&json, out, err);
    mgl_reasons_clear(&reasons);
    mgl_json_clear(&json);
    return status;
}

const char *mgl_shape_weights(const char *text, char to[MGL_SYNTHETIC_TEXT])
{
    mgl_config config;
    to[0] = 0;
    if (text && !mgl_shape_parse(text, &config, NULL))
        mgl_synthetic_print_formats(&config, to);
    return to;
}

mgl_status mgl_shape_name(const mgl_config *config, char out[MGL_SHAPE_NAME], mgl_error *err)
{
    mgl_text text = {0};
    unsigned char hash[MGL_SHA256_BYTES];
    char digits[MGL_SHA256_HEX];
    mgl_shape_print(config, &text);
    if (text.failed) {
        mgl_text_clear(&text);
        return mgl_fail_memory(err, text.capacity);
    }
    mgl_sha256_of(text.bytes, text.length, hash);
    mgl_text_clear(&text);
    mgl_sha256_hex(hash, digits);
    snprintf(out, MGL_SHAPE_NAME, "model-%.*s", SHOWN_DIGITS, digits);
    return MGL_OK;
}
