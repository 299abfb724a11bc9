/*
 * Collects end tokens. A reply ends at the ids of generation_config.json and config.json. A reply
 * of a chat also ends at eos_token of tokenizer_config.json. api/generate.c uses the chat ids;
 * mgl_model_get_end_ids and mgl_model_get_chat_end_ids return copies to callers.
 */
#include "api/model.h"

#include "base/memory.h"
#include "schedule/step.h"

#include <string.h>

_Static_assert((int)MGL_MOST_END_TOKENS == (int)MGL_MAX_ENDS, "the kernel has room for as many");

/* A copy of ids (count), with room for one more. */
static mgl_status copy_ids(const int32_t *ids, size_t count, mgl_ids *out, mgl_error *err)
{
    size_t bytes = count * sizeof *ids;
    int32_t *copy = mgl_alloc(bytes + sizeof *ids);
    if (!copy)
        return mgl_fail_memory(err, bytes);
    if (bytes)
        memcpy(copy, ids, bytes);
    mgl_ids_clear(out);
    *out = (mgl_ids){copy, count};
    return MGL_OK;
}

/* Inserts an id in ascending order, unless it is present. */
static void insert_id(mgl_ids *ids, int32_t id)
{
    size_t at = 0;
    while (at < ids->count && ids->ids[at] < id)
        at++;
    if (at < ids->count && ids->ids[at] == id)
        return;
    memmove(ids->ids + at + 1, ids->ids + at, (ids->count - at) * sizeof *ids->ids);
    ids->ids[at] = id;
    ids->count++;
}

mgl_status mgl_model_find_chat_ends(mgl_model *model, const mgl_tokenizer *tokenizer,
                                    mgl_error *err)
{
    const mgl_generation *generation = &model->checkpoint->generation;
    mgl_ids ids = {0};
    char *text = NULL;
    if (model->chat_ends.ids)
        return MGL_OK;
    mgl_status status = mgl_end_token_read(model->checkpoint, &text, err);
    if (!status)
        status = copy_ids(generation->end_tokens, generation->end_count, &ids, err);
    int32_t id = status || !text ? -1 : mgl_end_token_find(tokenizer, text);
    if (id >= 0 && id < model->program->geometry.vocab) /* others cannot occur */
        insert_id(&ids, id);
    if (!status && ids.count > MGL_MOST_END_TOKENS)
        status = mgl_fail(err, MGL_BAD_INPUT, "eos_token_id",
                          "%zu end tokens in generation_config.json, config.json and "
                          "tokenizer_config.json; at most %d are allowed",
                          ids.count, MGL_MOST_END_TOKENS);
    if (status)
        mgl_ids_clear(&ids);
    mgl_free(text);
    model->chat_ends = ids;
    return status;
}

mgl_status mgl_model_get_end_ids(const mgl_model *model, mgl_ids *out, mgl_error *err)
{
    if (!model || !out)
        return mgl_fail_null(err, __func__, model ? "out" : "model");
    const mgl_generation *generation = &model->checkpoint->generation;
    return copy_ids(generation->end_tokens, generation->end_count, out, err);
}

mgl_status mgl_model_get_chat_end_ids(mgl_model *model, const mgl_tokenizer *tokenizer,
                                      mgl_ids *out, mgl_error *err)
{
    if (!model || !tokenizer || !out)
        return mgl_fail_null(err, __func__, !model ? "model" : !tokenizer ? "tokenizer" : "out");
    mgl_status status = mgl_model_find_chat_ends(model, tokenizer, err);
    return status ? status : copy_ids(model->chat_ends.ids, model->chat_ends.count, out, err);
}
