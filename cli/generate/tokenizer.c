/*
 * Opens the tokenizer of a model, and prints facts about it as text or JSON. Distinguishes a
 * missing tokenizer from an unusable one. Implements tokenizer.h.
 */
#include "cli/generate/tokenizer.h"

#include "base/file.h"
#include "cli/cli.h"
#include "importer/checkpoint.h"
#include "importer/layout.h"
#include "importer/tokenizer/facts.h"

#include <string.h>

/* Opens the tokenizer if there is one. *why has a message if it cannot be used. */
static mgl_status try_tokenizer(const char *path, mgl_tokenizer **out, mgl_error *why,
                                mgl_error *err)
{
    bool has;
    *out = NULL;
    *why = (mgl_error){0};
    mgl_status status = mgl_model_has_tokenizer(path, &has, err);
    if (status || !has)
        return status;
    status = mgl_tokenizer_open(path, out, why);
    if (status && status != MGL_BAD_INPUT && err)
        *err = *why;
    return status == MGL_BAD_INPUT ? MGL_OK : status;
}

/* Calls try_tokenizer. In a folder without tokenizer.json, *why also has a message if there is a
 * tokenizer in another format. */
static mgl_status look_for_tokenizer(const char *path, mgl_tokenizer **out, mgl_error *why,
                                     mgl_error *err)
{
    bool is_folder;
    mgl_status status = try_tokenizer(path, out, why, err);
    if (!status)
        status = mgl_folder_stands(path, &is_folder, err);
    if (!status && is_folder && !*out && !why->message[0] &&
        mgl_layout_check_tokenizer(path, why) && strcmp(why->where, path) != 0)
        *why = (mgl_error){0}; /* no tokenizer in any format */
    return status;
}

mgl_status mgl_cli_open_tokenizer(const char *verb, const char *path, bool needed,
                                  mgl_tokenizer **out, mgl_error *err)
{
    mgl_error why;
    if (needed)
        return mgl_tokenizer_open(path, out, err);
    mgl_status status = try_tokenizer(path, out, &why, err);
    if (!status && why.message[0])
        mgl_cli_say(verb, "the tokenizer cannot be used: %s: %s", why.where, why.message);
    return status;
}

static void print_facts(const mgl_tokenizer_facts *facts)
{
    mgl_cli_printf("%-14sBPE, ids 0 to %zu, %zu added tokens\n", "tokenizer",
                   facts->ids ? facts->ids - 1 : 0, facts->added);
    if (facts->llama)
        mgl_cli_printf("%-14sclass LlamaTokenizer replaces normalizer, pre-tokenizer and decoder "
                       "of tokenizer.json\n",
                       "");
    if (facts->truncation)
        mgl_cli_printf("%-14struncation of tokenizer.json is ignored: no text is truncated\n", "");
    if (facts->padding)
        mgl_cli_printf("%-14spadding of tokenizer.json is ignored: no text is padded\n", "");
    if (facts->model_ids && facts->ids > facts->model_ids)
        mgl_cli_printf(
            "%-14sa text with a token of the ids %zu to %zu is an error: the model has no "
            "such ids\n",
            "", facts->model_ids, facts->ids - 1);
}

mgl_status mgl_cli_print_tokenizer(const char *path, bool *usable, mgl_error *err)
{
    mgl_tokenizer *tokenizer;
    mgl_error why;
    mgl_status status = look_for_tokenizer(path, &tokenizer, &why, err);
    if (status)
        return status;
    *usable = tokenizer != NULL;
    if (tokenizer) {
        mgl_tokenizer_facts facts = mgl_tokenizer_get_facts(tokenizer);
        print_facts(&facts);
    } else if (why.message[0]) {
        mgl_cli_printf("%-14scannot be used; run the model with token ids (--prompt-ids): %s: %s\n",
                       "tokenizer", why.where, why.message);
    } else {
        mgl_cli_printf("%-14snone; run the model with token ids (--prompt-ids)\n", "tokenizer");
    }
    mgl_tokenizer_close(tokenizer);
    return MGL_OK;
}

static void put_facts(mgl_json_out *out, const mgl_tokenizer_facts *facts)
{
    mgl_json_out_object(out, "tokenizer");
    mgl_json_out_int(out, "ids", (int64_t)facts->ids);
    mgl_json_out_int(out, "added_tokens", (int64_t)facts->added);
    mgl_json_out_string(out, "class", facts->llama ? "LlamaTokenizer" : NULL);
    mgl_json_out_bool(out, "truncation_ignored", facts->truncation);
    mgl_json_out_bool(out, "padding_ignored", facts->padding);
    mgl_json_out_close_object(out);
}

mgl_status mgl_cli_put_tokenizer(mgl_json_out *out, const char *path, mgl_error *err)
{
    mgl_tokenizer *tokenizer;
    mgl_error why;
    mgl_status status = look_for_tokenizer(path, &tokenizer, &why, err);
    if (status)
        return status;
    if (tokenizer) {
        mgl_tokenizer_facts facts = mgl_tokenizer_get_facts(tokenizer);
        put_facts(out, &facts);
    } else if (why.message[0]) {
        mgl_json_out_object(out, "tokenizer");
        mgl_json_out_string(out, "error", why.message);
        mgl_json_out_string(out, "where", why.where);
        mgl_json_out_close_object(out);
    } else {
        mgl_json_out_null(out, "tokenizer");
    }
    mgl_tokenizer_close(tokenizer);
    return MGL_OK;
}
