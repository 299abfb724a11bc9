/*
 * megalith tokenize MODEL: converts texts from --text, --texts or standard input to token ids,
 * including the special tokens that the tokenizer adds. Prints one line of ids a text, or JSON.
 */
#include "cli/cli.h"
#include "cli/generate/prompts.h"
#include "cli/signals.h"

#include "base/file.h"
#include "base/json_out.h"
#include "base/memory.h"
#include "importer/checkpoint.h"

#include <string.h>

#define TOKENIZE_OPTIONS(X)                                                                        \
    X(text, text, "--text", "T", 0, 0, "the text (standard input, to its end)")                    \
    X(file, texts, "--texts", "F.json", 0, 0,                                                      \
      "a JSON array or JSON Lines of texts: one array of ids each")                                \
    MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(TOKENIZE_OPTIONS)

static void print_ids(const mgl_ids *ids)
{
    for (size_t i = 0; i < ids->count; i++)
        mgl_cli_printf("%s%d", i ? "," : "", (int)ids->ids[i]);
    mgl_cli_put("\n");
}

static mgl_status encode_one(const mgl_tokenizer *tokenizer, const char *text, size_t length,
                             bool json, mgl_error *err)
{
    mgl_ids ids = {0};
    mgl_status status = mgl_tokenizer_encode(tokenizer, text, length, true, &ids, err);
    if (!status && json) {
        mgl_json_out out = {0};
        mgl_json_out_begin(&out, "megalith.tokenize/1");
        mgl_json_out_ids(&out, "ids", ids.ids, ids.count);
        mgl_cli_end_json(&out);
    } else if (!status) {
        print_ids(&ids);
    }
    mgl_ids_clear(&ids);
    return status;
}

static mgl_status encode_item(const mgl_tokenizer *tokenizer, const mgl_cli_prompts *texts,
                              size_t index, mgl_ids *out, mgl_error *err)
{
    char name[200];
    const mgl_cli_prompt *item = &texts->items[index];
    mgl_cli_prompt_name(texts, index, name, sizeof name);
    if (!item->text)
        return mgl_fail(err, MGL_BAD_INPUT, name, "has ids; tokenize needs a text");
    mgl_status status = mgl_tokenizer_encode(tokenizer, item->text, item->length, true, out, err);
    if (status == MGL_BAD_INPUT)
        mgl_error_name(err, name);
    return status;
}

/* Encodes all texts before printing, so that an error leaves no partial list. */
static mgl_status encode_many(const mgl_tokenizer *tokenizer, const mgl_cli_prompts *texts,
                              bool json, mgl_error *err)
{
    mgl_ids *lists = mgl_alloc_zero(texts->count ? texts->count : 1, sizeof *lists);
    mgl_status status = lists ? MGL_OK : mgl_fail_memory(err, texts->count * sizeof *lists);
    for (size_t i = 0; i < texts->count && !status; i++) {
        status = encode_item(tokenizer, texts, i, &lists[i], err);
        if (!status)
            status = mgl_cli_check_cancel(err);
    }
    if (!status && json) {
        mgl_json_out out = {0};
        mgl_json_out_begin(&out, "megalith.tokenize/1");
        mgl_json_out_array(&out, "ids");
        for (size_t i = 0; i < texts->count; i++)
            mgl_json_out_ids(&out, NULL, lists[i].ids, lists[i].count);
        mgl_json_out_close_array(&out);
        mgl_cli_end_json(&out);
    }
    for (size_t i = 0; lists && i < texts->count; i++) {
        if (!status && !json)
            print_ids(&lists[i]);
        mgl_ids_clear(&lists[i]);
    }
    mgl_free(lists);
    return status;
}

static mgl_status encode_stdin(const mgl_tokenizer *tokenizer, bool json, mgl_error *err)
{
    char *text = NULL;
    size_t length = 0;
    mgl_status status = mgl_file_read(MGL_STDIN, MGL_CLI_MAX_TEXT, &text, &length, err);
    if (!status)
        status = encode_one(tokenizer, text, length, json, err);
    mgl_free(text);
    return status;
}

static mgl_status encode_texts(const mgl_tokenizer *tokenizer, const struct options *o,
                               mgl_error *err)
{
    mgl_cli_prompts texts = {0};
    mgl_status status = mgl_cli_texts_read(o->texts.value, &texts, err);
    if (!status)
        status = encode_many(tokenizer, &texts, o->json.given, err);
    mgl_cli_prompts_clear(&texts);
    return status;
}

static mgl_status tokenize(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    mgl_tokenizer *tokenizer = NULL;
    char *folder = NULL;
    if (o->text.given && o->texts.given)
        return mgl_fail(err, MGL_USAGE, NULL, "only one of --text and --texts can be given");
    mgl_status status = mgl_model_resolve_path(operand, &folder, err);
    if (!status)
        status = mgl_tokenizer_open(folder, &tokenizer, err);
    if (!status && o->texts.given)
        status = encode_texts(tokenizer, o, err);
    else if (!status && o->text.given)
        status = encode_one(tokenizer, o->text.value, strlen(o->text.value), o->json.given, err);
    else if (!status)
        status = encode_stdin(tokenizer, o->json.given, err);
    mgl_tokenizer_close(tokenizer);
    mgl_free(folder);
    return status;
}

const mgl_cli_verb mgl_cli_tokenize_verb = {
    .name = "tokenize",
    .operand = "MODEL",
    .summary = "converts text to token ids; a folder that holds only tokenizer.json is enough",
    .example = "  megalith tokenize tests/models/tales-5m --text \"Hello world\"",
    MGL_CLI_VERB_OPTIONS,
    .run = tokenize,
};
