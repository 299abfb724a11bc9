/*
 * Reads generation_config.json. See generation.h. A sampling value that cannot be used is an
 * error only when a reply is sampled with the file's values. Other keys that change which token
 * is drawn are in one table with their neutral value.
 */
#include "importer/generation.h"

#include "base/memory.h"
#include "importer/neutral.h"

#include <float.h>
#include <stdio.h>

/*  keys that change which token is drawn and are not supported, with their neutral value */
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

/* Inserts an id in ascending order, or adds its source if the id is already present. */
static void add_id(int32_t *ids, unsigned char *sources, size_t *count, int32_t id,
                   unsigned char source)
{
    size_t at = 0;
    while (at < *count && ids[at] < id)
        at++;
    if (at < *count && ids[at] == id) {
        sources[at] |= source;
        return;
    }
    for (size_t i = (*count)++; i > at; i--) {
        ids[i] = ids[i - 1];
        sources[i] = sources[i - 1];
    }
    ids[at] = id;
    sources[at] = source;
}

static void add_end(mgl_generation *out, int32_t id, unsigned char source, int32_t vocab)
{
    if (id >= 0 && id < vocab)
        add_id(out->end_tokens, out->end_sources, &out->end_count, id, source);
    else
        add_id(out->beyond_tokens, out->beyond_sources, &out->beyond_count, id, source);
}

/* Returns the first item of eos_token_id, which is missing, null, one id, or a list. */
static const cJSON *find_ends(const mgl_json *json, size_t *count)
{
    const cJSON *value = mgl_json_member(json->root, "eos_token_id");
    bool list = cJSON_IsArray(value);
    *count = !value || cJSON_IsNull(value) ? 0 : list ? (size_t)cJSON_GetArraySize(value) : 1;
    return list ? value->child : value;
}

static mgl_status read_end_tokens(const mgl_json *json, unsigned char source, int32_t vocab,
                                  mgl_generation *out, mgl_error *err)
{
    size_t count;
    const cJSON *item = find_ends(json, &count);
    mgl_status status = MGL_OK;
    for (size_t i = 0; i < count && !status; i++, item = item->next) {
        int64_t id;
        status = mgl_json_item_int(json, item, "eos_token_id", INT32_MIN, INT32_MAX, &id, err);
        if (!status)
            add_end(out, (int32_t)id, source, vocab);
    }
    return status;
}

/* Reads the union of both files. */
static mgl_status read_all_ends(const mgl_json *generation, const mgl_json *config, int32_t vocab,
                                mgl_generation *out, mgl_error *err)
{
    size_t counts[2] = {0, 0};
    if (generation)
        find_ends(generation, &counts[0]);
    find_ends(config, &counts[1]);
    size_t room = counts[0] + counts[1];
    out->end_tokens = mgl_alloc_zero(room + 1, sizeof *out->end_tokens);
    out->end_sources = mgl_alloc_zero(room + 1, sizeof *out->end_sources);
    out->beyond_tokens = mgl_alloc_zero(room + 1, sizeof *out->beyond_tokens);
    out->beyond_sources = mgl_alloc_zero(room + 1, sizeof *out->beyond_sources);
    if (!out->end_tokens || !out->end_sources || !out->beyond_tokens || !out->beyond_sources)
        return mgl_fail_memory(err, room * sizeof *out->end_tokens);
    mgl_status status = MGL_OK;
    if (generation)
        status = read_end_tokens(generation, MGL_END_OF_GENERATION, vocab, out, err);
    return status ? status : read_end_tokens(config, MGL_END_OF_CONFIG, vocab, out, err);
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
                        "temperature is %g, top_p is %g and min_p is %g: temperature must be "
                        "between 0 and 1,000,000, the others between 0 and 1",
                        temperature, top_p, min_p);
    out->temperature = (float)temperature;
    out->top_k = (int32_t)top_k;
    out->top_p = mgl_explicit_top_p(top_p);
    out->min_p = (float)min_p;
    out->repeat = (float)repeat;
    return MGL_OK;
}

/* Reads the sampling values. An invalid value sets the field `invalid`, and the defaults stay. */
static mgl_status take_sampling(const mgl_json *json, mgl_generation *out, mgl_error *err)
{
    mgl_error why = {0};
    mgl_status status = read_sampling(json, out, &why);
    if (!status)
        return MGL_OK;
    out->invalid = mgl_alloc(sizeof *out->invalid);
    if (!out->invalid)
        return mgl_fail_memory(err, sizeof *out->invalid);
    *out->invalid = why;
    return MGL_OK;
}

/* Records the first key of the table that is not neutral. */
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
    mgl_status status = MGL_OK;
    *out = (mgl_generation){.temperature = 1, .top_k = 50, .top_p = 1, .repeat = 1};
    if (generation && !cJSON_IsObject(generation->root))
        return mgl_fail(err, MGL_BAD_INPUT, generation->file, "must be a JSON object");
    if (generation) {
        status = take_sampling(generation, out, err);
        if (!status)
            status = note_foreign(generation, out, err);
    }
    if (!status)
        status = read_all_ends(generation, config, vocab, out, err);
    if (status)
        mgl_generation_clear(out);
    return status;
}

void mgl_generation_clear(mgl_generation *generation)
{
    mgl_free(generation->end_tokens);
    mgl_free(generation->end_sources);
    mgl_free(generation->beyond_tokens);
    mgl_free(generation->beyond_sources);
    mgl_free(generation->invalid);
    mgl_free(generation->unsupported);
    *generation = (mgl_generation){0};
}
