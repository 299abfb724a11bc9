/*
 * Reads the rope parameters of a config: rope_parameters of Transformers 5, or rope_scaling and
 * rope_theta of the older form. Defaults and priorities follow RotaryEmbeddingConfigMixin in
 * Hugging Face's modeling_rope_utils.py, and Phi3Config for Phi-3.
 */
#include "importer/config_reader.h"
#include "importer/neutral.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef mgl_config_reader reader;

#define BIT(type) (1u << MGL_ROPE_##type)

/*  keys of a rope object, other than rope_type and type, with the types that use them;
    the last three are allowed in any object, because Hugging Face and publishers write them */
static const struct {
    const char *key;
    unsigned types;
} rope_keys[] = {
    {"factor", BIT(LINEAR) | BIT(LLAMA3) | BIT(DYNAMIC) | BIT(YARN) | BIT(LONGROPE)},
    {"low_freq_factor", BIT(LLAMA3)},
    {"high_freq_factor", BIT(LLAMA3)},
    {"attention_factor", BIT(YARN) | BIT(LONGROPE)},
    {"beta_fast", BIT(YARN)},
    {"beta_slow", BIT(YARN)},
    {"mscale", BIT(YARN)},
    {"mscale_all_dim", BIT(YARN)},
    {"truncate", BIT(YARN)},
    {"short_factor", BIT(LONGROPE)},
    {"long_factor", BIT(LONGROPE)},
    {"original_max_position_embeddings", ~0u},
    {"rope_theta", ~0u},
    {"finetuned", ~0u},
};

/* One rope object; if `object` is NULL, only rope_theta. */
typedef struct source {
    const char *key; /* of the object */
    const cJSON *object;
    int32_t positions; /* max_position_embeddings */
} source;

static bool find_type(const reader *r, const char *name, mgl_rope_type *type)
{
    static const char *const names[] = {
#define MGL_X(id, name) name,
        MGL_ROPE_TYPES(MGL_X)
#undef MGL_X
    };
    if (r->family->longrope) {
        *type = strcmp(name, "default") ? MGL_ROPE_LONGROPE : MGL_ROPE_DEFAULT;
        return !strcmp(name, "default") || !strcmp(name, "longrope") || !strcmp(name, "su") ||
               !strcmp(name, "yarn");
    }
    for (int i = 0; i < MGL_ROPE_TYPE_COUNT; i++)
        if (!strcmp(names[i], name))
            return *type = (mgl_rope_type)i, true;
    return false;
}

static void refuse_in(reader *r, const source *s, const char *key, const char *why)
{
    char path[160], value[64];
    const cJSON *item = mgl_json_member(s->object, key);
    snprintf(path, sizeof path, "%s.%.80s", s->key, key);
    if (item)
        mgl_config_refuse(r, path, "%s: %s", mgl_value_print(item, value, sizeof value), why);
    else
        mgl_config_refuse(r, path, "the key is missing: %s", why);
}

static void check_keys(reader *r, const source *s, mgl_rope_type type)
{
    char path[160];
    for (const cJSON *item = s->object->child; item; item = item->next) {
        size_t i = 0, count = sizeof rope_keys / sizeof *rope_keys;
        if (!strcmp(item->string, "rope_type") || !strcmp(item->string, "type") ||
            cJSON_IsNull(item))
            continue;
        if (!strcmp(item->string, "partial_rotary_factor")) {
            if (!mgl_is_neutral(item, MGL_NEUTRAL_ONE))
                refuse_in(r, s, item->string, "rope on a part of each head cannot be represented");
            continue;
        }
        snprintf(path, sizeof path, "%s.%.80s", s->key, item->string);
        while (i < count && strcmp(rope_keys[i].key, item->string) != 0)
            i++;
        if (i == count || !(rope_keys[i].types & 1u << type))
            mgl_config_refuse(r, path, "the key means nothing for this type of rope; remove it");
    }
}

/* Reads original_max_position_embeddings: the key beside the object overrides the key in it. */
static double read_original(reader *r, const source *s)
{
    static const char key[] = "original_max_position_embeddings";
    double inner = mgl_config_number(r, s->object, key, false, s->positions);
    double original = mgl_config_number(r, r->root, key, false, r->family->longrope ? 4096 : inner);
    if (!(original >= 1) || original > 1 << 28)
        mgl_config_refuse(r, key, "%g is not supported; it must be at least 1", original);
    return original;
}

static void read_llama3(reader *r, const source *s, mgl_rope *rope)
{
    rope->low_freq_factor = mgl_config_number(r, s->object, "low_freq_factor", true, 1);
    rope->high_freq_factor = mgl_config_number(r, s->object, "high_freq_factor", true, 4);
    rope->original_max_positions = read_original(r, s);
    if (!(rope->low_freq_factor > 0) || !(rope->high_freq_factor > rope->low_freq_factor))
        mgl_config_refuse(r, s->key, "low_freq_factor must be above 0 and below high_freq_factor");
}

/* The magnitude scaling of YaRN (https://arxiv.org/abs/2309.00071, section 3.4). */
static double yarn_scale(double factor, double mscale)
{
    return factor <= 1 ? 1 : 0.1 * mscale * log(factor) + 1;
}

static void read_attention_factor(reader *r, const source *s, double missing, mgl_rope *rope)
{
    rope->attention_factor = mgl_config_number(r, s->object, "attention_factor", false, missing);
    if (!(rope->attention_factor > 0) || rope->attention_factor > 1e6)
        refuse_in(r, s, "attention_factor", "it must be above 0 and at most 1,000,000");
}

static void read_yarn(reader *r, const source *s, mgl_rope *rope)
{
    rope->original_max_positions = read_original(r, s);
    const bool is_null = cJSON_IsNull(mgl_json_member(s->object, "factor"));
    rope->factor = mgl_config_number(r, s->object, "factor", !is_null,
                                     s->positions / rope->original_max_positions);
    double mscale = mgl_config_number(r, s->object, "mscale", false, 0);
    double all = mgl_config_number(r, s->object, "mscale_all_dim", false, 0);
    const bool has_both = (mscale < 0 || mscale > 0) && (all < 0 || all > 0);
    read_attention_factor(r, s,
                          has_both
                              ? yarn_scale(rope->factor, mscale) / yarn_scale(rope->factor, all)
                              : yarn_scale(rope->factor, 1),
                          rope);
    /* 0 means the default, as in the reference. */
    rope->beta_fast = mgl_config_number(r, s->object, "beta_fast", false, 0);
    rope->beta_slow = mgl_config_number(r, s->object, "beta_slow", false, 0);
    rope->beta_fast = rope->beta_fast < 0 || rope->beta_fast > 0 ? rope->beta_fast : 32;
    rope->beta_slow = rope->beta_slow < 0 || rope->beta_slow > 0 ? rope->beta_slow : 1;
    /* A null means false, as in the reference. */
    rope->truncate = !cJSON_IsNull(mgl_json_member(s->object, "truncate")) &&
                     mgl_config_flag(r, s->object, "truncate", true);
    if (!(rope->beta_slow > 0) || !(rope->beta_fast >= rope->beta_slow))
        mgl_config_refuse(r, s->key, "beta_slow must be above 0 and at most beta_fast");
    if (!(rope->theta > 1))
        mgl_config_refuse(r, s->key, "yarn needs a rope_theta above 1");
}

/* Reads a list of head_dim / 2 factors. */
static void read_factors(reader *r, const source *s, const char *key, float *to)
{
    const cJSON *list = mgl_json_member(s->object, key), *item;
    const int32_t count = r->config->geometry.head_dim / 2;
    int32_t i = 0;
    char why[80];
    snprintf(why, sizeof why, "it must be a list of head_dim / 2 = %d numbers above 0", (int)count);
    cJSON_ArrayForEach(item, list)
    {
        const bool is_number = cJSON_IsNumber(item) && isfinite(item->valuedouble);
        if (i < count && i < MGL_ROPE_FACTORS && is_number)
            to[i] = (float)item->valuedouble;
        if (!is_number || i >= count || !(to[i] > 0)) {
            refuse_in(r, s, key, why);
            return;
        }
        i++;
    }
    if (!cJSON_IsArray(list) || i != count)
        refuse_in(r, s, key, why);
}

static void read_longrope(reader *r, const source *s, mgl_rope *rope)
{
    static const char partial[] =
        "partial_rotary_factor"; /* rejected elsewhere: its lists are short */
    if (!mgl_is_neutral(mgl_json_member(r->root, partial), MGL_NEUTRAL_ONE) ||
        !mgl_is_neutral(mgl_json_member(s->object, partial), MGL_NEUTRAL_ONE))
        return;
    read_factors(r, s, "short_factor", rope->short_factor);
    read_factors(r, s, "long_factor", rope->long_factor);
    rope->original_max_positions = read_original(r, s);
    rope->factor = mgl_config_number(r, s->object, "factor", false,
                                     s->positions / rope->original_max_positions);
    const bool is_scaled = rope->factor > 1 && rope->original_max_positions > 1;
    read_attention_factor(
        r, s, is_scaled ? sqrt(1 + log(rope->factor) / log(rope->original_max_positions)) : 1,
        rope);
}

/* Reads the rope type of an object; false: it was rejected. */
static bool read_type(reader *r, const source *s, mgl_rope_type *type)
{
    const char *name = mgl_config_string(r, s->object, "rope_type");
    if (!name)
        name = mgl_config_string(r, s->object, "type");
    if (!name || find_type(r, name, type))
        return true;
    mgl_config_refuse(r, s->key, "the rope type \"%.80s\" is not supported; %s are", name,
                      r->family->longrope ? "default, longrope, su and yarn"
                                          : "default, linear, llama3, dynamic, yarn and longrope");
    return false;
}

static void read_theta(reader *r, const source *s, mgl_rope *rope)
{
    const cJSON *own = s->object ? mgl_json_member(s->object, "rope_theta") : NULL;
    double inner = r->family->theta;
    if (s->object)
        inner = mgl_config_number(r, s->object, "rope_theta", false, inner);
    rope->theta = mgl_config_number(r, r->root, "rope_theta", false, inner);
    if (own && !cJSON_IsNull(own) && (rope->theta < inner || rope->theta > inner))
        mgl_config_refuse(r, "rope_theta", "%g contradicts %s.rope_theta, %g; keep one",
                          rope->theta, s->key, inner);
}

/* Reads one rope object of either form. */
static mgl_rope read_object(reader *r, const source *s)
{
    mgl_rope rope = {.factor = 1, .attention_factor = 1};
    read_theta(r, s, &rope);
    if (!s->object || !read_type(r, s, &rope.type))
        return rope;
    check_keys(r, s, rope.type);
    if (rope.type == MGL_ROPE_LINEAR || rope.type == MGL_ROPE_LLAMA3 ||
        rope.type == MGL_ROPE_DYNAMIC)
        rope.factor = mgl_config_number(r, s->object, "factor", true, 1);
    if (rope.type == MGL_ROPE_LLAMA3)
        read_llama3(r, s, &rope);
    else if (rope.type == MGL_ROPE_YARN)
        read_yarn(r, s, &rope);
    else if (rope.type == MGL_ROPE_LONGROPE)
        read_longrope(r, s, &rope);
    double original =
        mgl_config_number(r, s->object, "original_max_position_embeddings", false, -1);
    if (rope.type == MGL_ROPE_DYNAMIC && original > 0 &&
        (original < s->positions || original > s->positions))
        mgl_config_refuse(
            r, s->key,
            "dynamic rope with its own original_max_position_embeddings is not supported");
    if (!(rope.factor > 0) || rope.factor > 1e9)
        mgl_config_refuse(r, s->key, "factor must be above 0");
    return rope;
}

void mgl_config_read_rope(reader *r, int32_t positions)
{
    static const char *const keys[] = {"rope_parameters", "rope_scaling"};
    mgl_rope *rope = &r->config->rope;
    bool has_object = false;
    mgl_error cause;
    for (int i = 0; i < 2; i++) {
        source s = {.key = keys[i], .positions = positions};
        mgl_config_take(r, mgl_json_get_object(r->json, r->root, keys[i], false, &s.object, &cause),
                        &cause);
        if (!s.object || !s.object->child)
            continue;
        const mgl_rope read = read_object(r, &s);
        if (has_object && !mgl_rope_equal(rope, &read))
            mgl_config_refuse(r, keys[0], "contradicts %s; keep one of the two", keys[1]);
        *rope = read;
        has_object = true;
    }
    if (!has_object)
        *rope = read_object(r, &(source){.key = keys[0], .positions = positions});
    if (!(rope->theta > 0) || rope->theta > 1e30)
        mgl_config_refuse(r, "rope_theta", "%g is not supported; it must be above 0", rope->theta);
}
