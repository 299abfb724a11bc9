/*
 * Loads vocabulary and merges of tokenizer.json. These are the large parts of the file (a
 * hundred thousand entries are normal), so each list is walked once.
 */
#include "importer/tokenizer/tokenizer.h"

#include "base/memory.h"

#include <math.h>
#include <string.h>

static mgl_status load_vocab(mgl_tokenizer *tokenizer, const mgl_json *json, const cJSON *vocab,
                             mgl_error *err)
{
    mgl_vocab *out = &tokenizer->bpe.vocab;
    size_t count = (size_t)cJSON_GetArraySize(vocab);
    if (!mgl_vocab_reserve(out, count))
        return mgl_fail_memory(err, count * sizeof *out->entries);
    for (const cJSON *item = vocab->child; item; item = item->next) {
        size_t length = strlen(item->string), other_length = 0;
        double id = item->valuedouble;
        if (!cJSON_IsNumber(item) || !(id >= 0 && id <= MGL_VOCAB_MAX_ID) || floor(id) != id)
            return mgl_fail(err, MGL_BAD_INPUT, json->file,
                            "model.vocab: the id of \"%.100s\" must be a whole number from 0 to %d",
                            item->string, MGL_VOCAB_MAX_ID);
        const char *other = mgl_vocab_text(out, (int32_t)id, &other_length);
        switch (mgl_vocab_add(out, item->string, length, (int32_t)id)) {
        case MGL_VOCAB_ADDED:
            break;
        case MGL_VOCAB_NO_MEMORY:
            return mgl_fail_memory(err, length);
        case MGL_VOCAB_SAME_TEXT:
            return mgl_fail(err, MGL_BAD_INPUT, json->file,
                            "model.vocab: the token \"%.100s\" is given twice", item->string);
        case MGL_VOCAB_SAME_ID:
            return mgl_fail(err, MGL_BAD_INPUT, json->file,
                            "model.vocab: \"%.100s\" and \"%.*s\" have the same id %d",
                            item->string, other_length < 100 ? (int)other_length : 100, other,
                            (int)id);
        }
    }
    return MGL_OK;
}

/* Splits a merge into its two sides: "a b" or ["a", "b"]. */
static mgl_status merge_sides(const mgl_json *json, const cJSON *item, const char *side[2],
                              size_t length[2], mgl_error *err)
{
    if (cJSON_IsString(item)) {
        const char *space = strchr(item->valuestring, ' ');
        if (space && !strchr(space + 1, ' ')) {
            side[0] = item->valuestring;
            length[0] = (size_t)(space - item->valuestring);
            side[1] = space + 1;
            length[1] = strlen(side[1]);
            return MGL_OK;
        }
        return mgl_fail(err, MGL_BAD_INPUT, json->file,
                        "model.merges: \"%.100s\" is not two tokens with a space between",
                        item->valuestring);
    }
    const cJSON *left = cJSON_IsArray(item) ? item->child : NULL;
    const cJSON *right = left ? left->next : NULL;
    if (!right || right->next || !cJSON_IsString(left) || !cJSON_IsString(right))
        return mgl_fail(err, MGL_BAD_INPUT, json->file,
                        "model.merges: an entry is neither \"a b\" nor [\"a\", \"b\"]");
    side[0] = left->valuestring;
    side[1] = right->valuestring;
    length[0] = strlen(side[0]);
    length[1] = strlen(side[1]);
    return MGL_OK;
}

static mgl_status need_token(mgl_tokenizer *tokenizer, const char *text, size_t length, int32_t *id,
                             mgl_error *err)
{
    *id = mgl_vocab_find(&tokenizer->bpe.vocab, text, length);
    if (*id >= 0)
        return MGL_OK;
    return mgl_fail(err, MGL_BAD_INPUT, tokenizer->file,
                    "model.merges: the token \"%.*s\" is not in the vocabulary",
                    length < 200 ? (int)length : 200, text);
}

static mgl_status load_merge(mgl_tokenizer *tokenizer, const mgl_json *json, const cJSON *item,
                             uint32_t rank, mgl_text *joined, mgl_error *err)
{
    const char *side[2] = {"", ""};
    size_t length[2] = {0};
    int32_t left, right, merged;
    mgl_status status = merge_sides(json, item, side, length, err);
    if (!status)
        status = need_token(tokenizer, side[0], length[0], &left, err);
    if (!status)
        status = need_token(tokenizer, side[1], length[1], &right, err);
    if (status)
        return status;
    joined->length = 0;
    mgl_text_append(joined, side[0], length[0]);
    mgl_text_append(joined, side[1], length[1]);
    if (joined->failed)
        return mgl_fail_memory(err, length[0] + length[1]);
    status = need_token(tokenizer, joined->bytes, joined->length, &merged, err);
    if (!status)
        mgl_bpe_add_merge(&tokenizer->bpe, left, right, rank, merged);
    return status;
}

static mgl_status load_merges(mgl_tokenizer *tokenizer, const mgl_json *json, const cJSON *merges,
                              mgl_error *err)
{
    mgl_text joined = {0};
    mgl_status status = MGL_OK;
    uint32_t rank = 0;
    size_t count = (size_t)cJSON_GetArraySize(merges);
    const cJSON *first = merges->child;
    if (!mgl_bpe_reserve_merges(&tokenizer->bpe, count))
        return mgl_fail_memory(err, count * sizeof *tokenizer->bpe.merges);
    for (const cJSON *item = first; item && !status; item = item->next) {
        if (cJSON_IsString(item) != cJSON_IsString(first))
            status =
                mgl_fail(err, MGL_BAD_INPUT, json->file, "model.merges has both strings and pairs");
        else if (cJSON_IsString(item) && !strncmp(item->valuestring, "#version", 8))
            continue; /* the first line of a merges.txt */
        else
            status = load_merge(tokenizer, json, item, rank++, &joined, err);
    }
    mgl_text_clear(&joined);
    return status;
}

/* Rejects options of BPE that are not implemented. */
static mgl_status refuse_options(const mgl_json *json, const cJSON *model, mgl_error *err)
{
    static const char *const texts[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    double dropout = 0;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *text = NULL;
        mgl_status status = mgl_json_get_string(json, model, texts[i], false, &text, err);
        if (status)
            return status;
        if (text && *text)
            return mgl_fail(err, MGL_BAD_INPUT, json->file,
                            "model.%s is \"%.100s\"; only models without one are supported",
                            texts[i], text);
    }
    mgl_status status = mgl_json_get_double(json, model, "dropout", false, &dropout, err);
    if (!status && dropout != 0)
        return mgl_fail(err, MGL_BAD_INPUT, json->file,
                        "model.dropout is %g; only models without dropout are supported", dropout);
    return status;
}

static mgl_status load_options(mgl_bpe *bpe, const mgl_json *json, const cJSON *model,
                               mgl_error *err)
{
    mgl_status status = refuse_options(json, model, err);
    if (!status)
        status = mgl_json_get_bool(json, model, "fuse_unk", false, &bpe->fuse_unk, err);
    if (!status)
        status = mgl_json_get_bool(json, model, "byte_fallback", false, &bpe->byte_fallback, err);
    if (!status)
        status = mgl_json_get_bool(json, model, "ignore_merges", false, &bpe->ignore_merges, err);
    return status;
}

mgl_status mgl_tokenizer_load_model(mgl_tokenizer *tokenizer, const mgl_json *json,
                                    const cJSON *value, mgl_error *err)
{
    mgl_bpe *bpe = &tokenizer->bpe;
    const char *type = NULL, *unknown = NULL;
    const cJSON *vocab, *merges;
    bpe->file = tokenizer->file;
    mgl_status status = mgl_json_get_string(json, value, "type", false, &type, err);
    if (status)
        return status;
    /* Older files without a type are BPE if they have merges. */
    if (type ? strcmp(type, "BPE") != 0 : !mgl_json_member(value, "merges"))
        return mgl_fail(
            err, MGL_BAD_INPUT, json->file,
            "the model \"%.100s\" is not supported; supported: BPE; give ids instead of texts",
            type ? type : "(without a type)");
    status = load_options(bpe, json, value, err);
    if (!status)
        status = mgl_json_get_object(json, value, "vocab", true, &vocab, err);
    if (!status)
        status = load_vocab(tokenizer, json, vocab, err);
    if (!status)
        status = mgl_json_get_array(json, value, "merges", true, &merges, err);
    if (!status)
        status = load_merges(tokenizer, json, merges, err);
    if (!status)
        status = mgl_json_get_string(json, value, "unk_token", false, &unknown, err);
    if (status)
        return status;
    bpe->unknown = MGL_BPE_NO_UNKNOWN;
    if (unknown) {
        bpe->unknown = mgl_vocab_find(&bpe->vocab, unknown, strlen(unknown));
        if (bpe->unknown < 0)
            bpe->unknown = MGL_BPE_UNKNOWN_MISSING;
    }
    return mgl_bpe_finish(bpe) ? MGL_OK : mgl_fail_memory(err, sizeof *bpe);
}
