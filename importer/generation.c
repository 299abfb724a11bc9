/*
 * generation_config.json. Values that shape sampling are read one by one. Keys that change which
 * token is drawn in another way stand in one table with their neutral value.
 */
#include "importer/generation.h"

#include "base/memory.h"
#include "importer/neutral.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>

/*  key                       neutral: values that change which token is drawn, beyond those that
 * are read */
static const struct {
    const char *key;
    mgl_neutral neutral;
} foreign_sampling[] = {
    {"encoder_repetition_penalty", MGL_NEUTRAL_ONE},
    {"no_repeat_ngram_size", MGL_NEUTRAL_OFF},
    {"top_h", MGL_NEUTRAL_OFF},
    {"typical_p", MGL_NEUTRAL_ONE},
    {"epsilon_cutoff", MGL_NEUTRAL_OFF},
    {"eta_cutoff", MGL_NEUTRAL_OFF},
    {"penalty_alpha", MGL_NEUTRAL_OFF},
    {"num_beams", MGL_NEUTRAL_ONE},
    {"guidance_scale", MGL_NEUTRAL_ONE},
    {"bad_words_ids", MGL_NEUTRAL_OFF},
    {"force_words_ids", MGL_NEUTRAL_OFF},
    {"suppress_tokens", MGL_NEUTRAL_OFF},
    {"begin_suppress_tokens", MGL_NEUTRAL_OFF},
    {"forced_bos_token_id", MGL_NEUTRAL_OFF},
    {"forced_eos_token_id", MGL_NEUTRAL_OFF},
    {"sequence_bias", MGL_NEUTRAL_OFF},
    {"exponential_decay_length_penalty", MGL_NEUTRAL_OFF},
    {"min_length", MGL_NEUTRAL_OFF},
    {"min_new_tokens", MGL_NEUTRAL_OFF},
    {"stop_strings", MGL_NEUTRAL_OFF},
    {"dola_layers", MGL_NEUTRAL_OFF},
    {"watermarking_config", MGL_NEUTRAL_OFF},
};

static int by_id(const void *a, const void *b)
{
    const int32_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* eos_token_id: missing, null, one id, or a list. *given tells whether there is any. */
static mgl_status read_end_tokens(const mgl_json *json, int32_t vocab, mgl_generation *out,
                                  bool *given, mgl_error *err)
{
    const cJSON *value = mgl_json_member(json->root, "eos_token_id");
    *given = value && !cJSON_IsNull(value);
    if (!*given)
        return MGL_OK;
    size_t count = cJSON_IsArray(value) ? (size_t)cJSON_GetArraySize(value) : 1, kept = 0;
    out->end_tokens = mgl_alloc_zero(count, sizeof *out->end_tokens);
    if (!out->end_tokens)
        return mgl_fail_memory(err, count * sizeof *out->end_tokens);
    const cJSON *item = cJSON_IsArray(value) ? value->child : value;
    for (size_t i = 0; i < count; i++, item = item->next) {
        int64_t id;
        mgl_status status =
            mgl_json_item_int(json, item, "eos_token_id", INT32_MIN, INT32_MAX, &id, err);
        if (status)
            return status;
        if (id >= 0 && id < vocab)
            out->end_tokens[out->end_count++] = (int32_t)id;
    }
    if (out->end_count)
        qsort(out->end_tokens, out->end_count, sizeof *out->end_tokens, by_id);
    for (size_t i = 0; i < out->end_count; i++)
        if (!i || out->end_tokens[i] != out->end_tokens[i - 1])
            out->end_tokens[kept++] = out->end_tokens[i];
    out->end_count = kept;
    return MGL_OK;
}

/* Those that are not used, because there are others, have to be ids as well. */
static mgl_status check_end_tokens(const mgl_json *json, int32_t vocab, mgl_error *err)
{
    mgl_generation unused = {0};
    bool given;
    mgl_status status = read_end_tokens(json, vocab, &unused, &given, err);
    mgl_generation_clear(&unused);
    return status;
}

float mgl_explicit_top_p(double top_p)
{
    return top_p < (double)FLT_MIN ? FLT_MIN : (float)top_p;
}

static mgl_status read_sampling(const mgl_json *json, mgl_generation *out, mgl_error *err)
{
    double temperature = 1, top_p = 1, min_p = 0, repeat = 1;
    int64_t top_k = 50;
    mgl_status status =
        mgl_json_get_bool(json, json->root, "do_sample", false, &out->do_sample, err);
    if (!status)
        status = mgl_json_get_double(json, json->root, "temperature", false, &temperature, err);
    if (!status)
        status = mgl_json_get_int(json, json->root, "top_k", false, 0, INT32_MAX, &top_k, err);
    if (!status)
        status = mgl_json_get_double(json, json->root, "top_p", false, &top_p, err);
    if (!status)
        status = mgl_json_get_double(json, json->root, "min_p", false, &min_p, err);
    if (!status)
        status = mgl_json_get_double(json, json->root, "repetition_penalty", false, &repeat, err);
    if (status)
        return status;
    if (!(repeat > 0 && repeat <= 1e6))
        return mgl_fail(err, MGL_BAD_INPUT, json->file,
                        "repetition_penalty is %g: it must be above 0 and at most 1,000,000",
                        repeat);
    if (!(temperature >= 0 && temperature <= 1e6) || !(top_p >= 0 && top_p <= 1) ||
        !(min_p >= 0 && min_p <= 1))
        return mgl_fail(err, MGL_BAD_INPUT, json->file,
                        "temperature %g, top_p %g and min_p %g: they must be between 0 and "
                        "1,000,000, and between 0 and 1",
                        temperature, top_p, min_p);
    out->temperature = (float)temperature;
    out->top_k = (int32_t)top_k;
    out->top_p = mgl_explicit_top_p(top_p);
    out->min_p = (float)min_p;
    out->repeat = (float)repeat;
    return MGL_OK;
}

/* Notes the first key of the table that is not neutral. */
static mgl_status note_foreign(const mgl_json *json, mgl_generation *out, mgl_error *err)
{
    char value[64], text[160];
    for (size_t i = 0; i < sizeof foreign_sampling / sizeof *foreign_sampling; i++) {
        const char *key = foreign_sampling[i].key;
        const cJSON *item = mgl_json_member(json->root, key);
        if (mgl_is_neutral(item, foreign_sampling[i].neutral))
            continue;
        snprintf(text, sizeof text, "%s is %s", key, mgl_value_print(item, value, sizeof value));
        out->unsupported = mgl_strdup(text);
        return out->unsupported ? MGL_OK : mgl_fail_memory(err, sizeof text);
    }
    return MGL_OK;
}

mgl_status mgl_generation_read(const mgl_json *generation, const mgl_json *config, int32_t vocab,
                               mgl_generation *out, mgl_error *err)
{
    bool given = false;
    mgl_status status = MGL_OK;
    *out = (mgl_generation){.temperature = 1, .top_k = 50, .top_p = 1, .repeat = 1};
    if (generation && !cJSON_IsObject(generation->root))
        return mgl_fail(err, MGL_BAD_INPUT, generation->file, "must be a JSON object");
    if (generation) {
        status = read_sampling(generation, out, err);
        if (!status)
            status = note_foreign(generation, out, err);
        if (!status)
            status = read_end_tokens(generation, vocab, out, &given, err);
    }
    if (!status)
        status = given ? check_end_tokens(config, vocab, err)
                       : read_end_tokens(config, vocab, out, &given, err);
    if (status)
        mgl_generation_clear(out);
    return status;
}

void mgl_generation_clear(mgl_generation *generation)
{
    mgl_free(generation->end_tokens);
    mgl_free(generation->unsupported);
    *generation = (mgl_generation){0};
}
