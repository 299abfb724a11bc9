/*
 * megalith template MODEL: renders a conversation to the text of a prompt with the model's chat
 * template.
 */
#include "cli/cli.h"
#include "cli/generate/conversation.h"
#include "cli/generate/tokenizer.h"

#include "base/memory.h"
#include "importer/checkpoint.h"

#include <unistd.h>

#define TEMPLATE_OPTIONS(X)                                                                        \
    X(file, messages, "--messages", "F.json", 0, 0,                                                \
      "the conversation: a JSON array of objects with role and content")                           \
    MGL_CLI_TEMPLATE_OPTIONS(X)                                                                    \
    X(flag, no_generation_prompt, "--no-generation-prompt", NULL, 0, 0,                            \
      "leave out the beginning of the assistant's reply")                                          \
    MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(TEMPLATE_OPTIONS)

/* The ids of a text, or null if the model has no tokenizer. */
static mgl_status put_ids(mgl_json_out *out, const char *folder, const char *text, size_t length,
                          mgl_error *err)
{
    mgl_tokenizer *tokenizer = NULL;
    mgl_ids ids = {0};
    mgl_status status = mgl_cli_open_tokenizer("template", folder, false, &tokenizer, err);
    if (!status && !tokenizer)
        mgl_json_out_null(out, "ids");
    if (status || !tokenizer)
        return status;
    status = mgl_tokenizer_encode(tokenizer, text, length, false, &ids, err);
    if (!status)
        mgl_json_out_ids(out, "ids", ids.ids, ids.count);
    mgl_ids_clear(&ids);
    mgl_tokenizer_close(tokenizer);
    return status;
}

static mgl_status print_json(const char *folder, const char *text, size_t length, mgl_error *err)
{
    mgl_json_out out = {0};
    mgl_json_out_begin(&out, "megalith.template/1");
    mgl_json_out_text(&out, "text", text, length);
    mgl_status status = put_ids(&out, folder, text, length, err);
    return mgl_cli_finish_json(&out, status);
}

/* Prints exactly the prompt's text. On a terminal, a line end follows. */
static void print_text(const char *text, size_t length)
{
    mgl_cli_print(text, length);
    if (isatty(STDOUT_FILENO) && length && text[length - 1] != '\n')
        mgl_cli_put("\n");
}

static mgl_status render(const char *folder, const struct options *o, const char *messages,
                         mgl_error *err)
{
    mgl_cli_renderer renderer = {0};
    char *text = NULL;
    size_t length;
    mgl_cli_template_options flags = {MGL_CLI_TEMPLATE_OPTIONS(MGL_CLI_COPY)};
    mgl_status status = mgl_cli_renderer_open(folder, &flags, &renderer, err);
    mgl_conversation conversation = renderer.conversation;
    conversation.messages = messages;
    conversation.messages_name = o->messages.value;
    conversation.no_generation_prompt = o->no_generation_prompt.given;
    if (!status)
        status = mgl_chat_template_render(renderer.chat, &conversation, &text, &length, err);
    if (!status && o->json.given)
        status = print_json(folder, text, length, err);
    else if (!status)
        print_text(text, length);
    mgl_text_free(text);
    mgl_cli_renderer_close(&renderer);
    return status;
}

static mgl_status template(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    char *folder = NULL, *messages = NULL;
    if (!o->messages.given)
        return mgl_fail(err, MGL_USAGE, NULL,
                        "--messages is missing; give a file with the conversation");
    mgl_status status = mgl_model_resolve_path(operand, &folder, err);
    if (!status)
        status = mgl_cli_read_json_text(o->messages.value, &messages, err);
    if (!status)
        status = render(folder, o, messages, err);
    mgl_free(messages);
    mgl_free(folder);
    return status;
}

const mgl_cli_verb mgl_cli_template_verb = {
    .name = "template",
    .operand = "MODEL",
    .summary = "renders a conversation as the text of a prompt, by the model's chat template",
    .example = "  megalith template org/name --messages conversation.json --tools tools.json",
    MGL_CLI_VERB_OPTIONS,
    .run = template,
};
