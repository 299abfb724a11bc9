/* megalith template MODEL: a conversation to the text of a prompt, by the model's chat template. */
#include "cli/cli.h"

#include "base/file.h"
#include "base/memory.h"
#include "importer/checkpoint.h"

#include <string.h>
#include <unistd.h>

#define TEMPLATE_OPTIONS(X)                                                                        \
    X(file, messages, "--messages", "F.json", 0, 0,                                                \
      "the conversation: a JSON array of objects with role and content")                           \
    X(file, tools, "--tools", "F.json", 0, 0, "a JSON array of the tools that there are")          \
    X(file, template, "--template", "FILE", 0, 0, "a template in place of the model's own")        \
    X(text, args, "--template-args", "JSON", 0, 0,                                                 \
      "an object of further variables, such as {\"enable_thinking\": false}")                      \
    X(flag, no_generation_prompt, "--no-generation-prompt", NULL, 0, 0,                            \
      "leave out what begins the assistant's reply")                                               \
    MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(TEMPLATE_OPTIONS)

/* The ids of a text, or null where the model has no tokenizer. */
static mgl_status put_ids(mgl_json_out *out, const char *folder, const char *text, size_t length,
                          mgl_error *err)
{
    mgl_tokenizer *tokenizer = NULL;
    mgl_ids ids = {0};
    bool has;
    mgl_status status = mgl_model_has_tokenizer(folder, &has, err);
    if (!status && !has)
        mgl_json_out_null(out, "ids");
    if (status || !has)
        return status;
    status = mgl_tokenizer_open(folder, &tokenizer, err);
    if (!status)
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
    if (status)
        mgl_text_clear(&out.text);
    else
        mgl_cli_end_json(&out);
    return status;
}

/* The text and nothing else, so that a file of it is the prompt; a person's next line is kept
 * apart. */
static void print_text(const char *text, size_t length)
{
    mgl_cli_print(text, length);
    if (isatty(STDOUT_FILENO) && length && text[length - 1] != '\n')
        mgl_cli_put("\n");
}

static mgl_status render(const char *folder, const struct options *o,
                         const mgl_conversation *conversation, mgl_error *err)
{
    mgl_chat_template *chat;
    char *text = NULL;
    size_t length;
    mgl_status status = mgl_chat_template_open(folder, o->template.value, &chat, err);
    if (status)
        return status;
    status = mgl_chat_template_render(chat, conversation, &text, &length, err);
    if (!status && o->json.given)
        status = print_json(folder, text, length, err);
    else if (!status)
        print_text(text, length);
    mgl_text_free(text);
    mgl_chat_template_close(chat);
    return status;
}

static mgl_status read_text(const mgl_cli_file *file, char **out, mgl_error *err)
{
    size_t length;
    mgl_status status = mgl_file_read(file->value, MGL_CLI_MAX_TEXT, out, &length, err);
    if (!status && strlen(*out) < length) {
        mgl_free(*out);
        *out = NULL;
        return mgl_fail(err, MGL_BAD_INPUT, file->value, "is no JSON: it holds a byte 0");
    }
    return status;
}

static mgl_status template(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    char *folder = NULL, *messages = NULL, *tools = NULL;
    if (!o->messages.given)
        return mgl_fail(err, MGL_USAGE, NULL, "--messages is missing: the conversation, a file");
    mgl_status status = mgl_model_resolve_path(operand, &folder, err);
    if (!status)
        status = read_text(&o->messages, &messages, err);
    if (!status && o->tools.given)
        status = read_text(&o->tools, &tools, err);
    mgl_conversation conversation = {.size = sizeof conversation,
                                     .messages = messages,
                                     .tools = tools,
                                     .args = o->args.value,
                                     .messages_name = o->messages.value,
                                     .tools_name = o->tools.value,
                                     .no_generation_prompt = o->no_generation_prompt.given};
    if (!status)
        status = render(folder, o, &conversation, err);
    mgl_free(tools);
    mgl_free(messages);
    mgl_free(folder);
    return status;
}

const mgl_cli_verb mgl_cli_template_verb = {
    .name = "template",
    .operand = "MODEL",
    .summary = "a conversation to the text of a prompt, by the model's chat template",
    .example = "  megalith template org/name --messages conversation.json --tools tools.json",
    MGL_CLI_VERB_OPTIONS,
    .run = template,
};
