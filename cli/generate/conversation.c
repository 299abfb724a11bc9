/*
 * Implements the messages of a conversation and their rendering with a chat template. See
 * conversation.h.
 */
#include "cli/generate/conversation.h"

#include "base/file.h"
#include "base/memory.h"
#include "importer/layout.h"

#include <string.h>

#define SYSTEM "system"

const char *mgl_cli_template_flag(const mgl_cli_template_options *options)
{
#define MGL_X(kind, field, flag, argument, lo, hi, help)                                           \
    if (options->field.given)                                                                      \
        return flag;
    MGL_CLI_TEMPLATE_OPTIONS(MGL_X)
#undef MGL_X
    return NULL;
}

mgl_status mgl_cli_read_json_text(const char *path, char **out, mgl_error *err)
{
    size_t length;
    mgl_status status = mgl_file_read(path, MGL_CLI_MAX_TEXT, out, &length, err);
    if (!status && strlen(*out) < length) {
        mgl_free(*out);
        *out = NULL;
        return mgl_fail(err, MGL_BAD_INPUT, path, "is not JSON: it contains a zero byte");
    }
    return status;
}

/* ---- messages -------------------------------------------------------------------------------- */

/* Takes the JSON of a message and inserts it at `at`. */
static mgl_status insert(mgl_cli_messages *messages, size_t at, mgl_json_out *json, mgl_error *err)
{
    void *items = messages->items;
    if (json->text.failed ||
        !mgl_grow(&items, &messages->capacity, messages->count, sizeof *messages->items)) {
        size_t bytes = json->text.capacity;
        mgl_text_clear(&json->text);
        return mgl_fail_memory(err, bytes);
    }
    messages->items = items;
    memmove(messages->items + at + 1, messages->items + at,
            (messages->count - at) * sizeof *messages->items);
    messages->items[at] = json->text.bytes;
    messages->count++;
    return MGL_OK;
}

static bool is_system(const cJSON *message)
{
    const cJSON *role = cJSON_IsObject(message) ? mgl_json_member(message, "role") : NULL;
    return cJSON_IsString(role) && !strcmp(role->valuestring, SYSTEM);
}

mgl_status mgl_cli_messages_take(mgl_cli_messages *messages, cJSON *array, const char *where,
                                 mgl_error *err)
{
    mgl_status status = MGL_OK;
    if (!cJSON_IsArray(array))
        return mgl_fail(err, MGL_BAD_INPUT, where,
                        "must be a JSON array of messages, objects with role and content");
    if (!array->child)
        return mgl_fail(err, MGL_BAD_INPUT, where,
                        "the conversation is empty; give at least one message");
    for (cJSON *item = array->child; item && !status; item = item->next) {
        mgl_json_out json = {0};
        messages->system |= !messages->count && is_system(item);
        mgl_json_out_value(&json, NULL, item);
        status = insert(messages, messages->count, &json, err);
    }
    return status;
}

mgl_status mgl_cli_messages_read(mgl_cli_messages *messages, const char *path, mgl_error *err)
{
    mgl_json json = {0};
    char *text = NULL;
    size_t length;
    mgl_status status = mgl_file_read(path, MGL_CLI_MAX_TEXT, &text, &length, err);
    if (!status)
        status = mgl_json_parse_values(text, length, MGL_CLI_MAX_TEXT, path, &json, err);
    if (!status)
        status = mgl_cli_messages_take(messages, json.root, path, err);
    mgl_json_clear(&json);
    mgl_free(text);
    return status;
}

static mgl_json_out make_message(const char *role, const char *text, size_t length)
{
    mgl_json_out json = {0};
    mgl_json_out_object(&json, NULL);
    mgl_json_out_string(&json, "role", role);
    mgl_json_out_text(&json, "content", text, length);
    mgl_json_out_close_object(&json);
    return json;
}

mgl_status mgl_cli_messages_add(mgl_cli_messages *messages, const char *role, const char *text,
                                size_t length, mgl_error *err)
{
    mgl_json_out json = make_message(role, text, length);
    return insert(messages, messages->count, &json, err);
}

mgl_status mgl_cli_messages_set_system(mgl_cli_messages *messages, const char *text, mgl_error *err)
{
    mgl_json_out json = make_message(SYSTEM, text, strlen(text));
    if (messages->system && !json.text.failed) {
        mgl_free(messages->items[0]);
        messages->items[0] = json.text.bytes;
        return MGL_OK;
    }
    mgl_status status = insert(messages, 0, &json, err);
    messages->system |= !status;
    return status;
}

void mgl_cli_messages_cut(mgl_cli_messages *messages, size_t count)
{
    while (messages->count > count)
        mgl_free(messages->items[--messages->count]);
    messages->system &= messages->count > 0;
}

void mgl_cli_messages_print(const mgl_cli_messages *messages, mgl_text *out)
{
    mgl_text_put(out, "[");
    for (size_t i = 0; i < messages->count; i++) {
        mgl_text_put(out, i ? ",\n " : "");
        mgl_text_put(out, messages->items[i]);
    }
    mgl_text_put(out, "]");
}

void mgl_cli_messages_clear(mgl_cli_messages *messages)
{
    mgl_cli_messages_cut(messages, 0);
    mgl_free(messages->items);
    *messages = (mgl_cli_messages){0};
}

/* ---- rendering ------------------------------------------------------------------------------- */

/* If a folder has neither a template nor a tokenizer, the message names the kind of folder. */
static mgl_status open_template(const char *path, const char *file, mgl_chat_template **out,
                                mgl_error *err)
{
    struct stat facts;
    bool stands;
    mgl_error why = {0};
    mgl_status status = mgl_chat_template_open(path, file, out, &why);
    if (status == MGL_BAD_INPUT && !strcmp(why.where, path) &&
        !mgl_file_look(path, &stands, &facts, NULL) && stands && S_ISDIR(facts.st_mode))
        (void)mgl_layout_check_tokenizer(path, &why);
    if (status)
        *err = why;
    return status;
}

mgl_status mgl_cli_renderer_open(const char *path, const mgl_cli_template_options *options,
                                 mgl_cli_renderer *out, mgl_error *err)
{
    *out = (mgl_cli_renderer){0};
    mgl_status status = open_template(path, options->template.value, &out->chat, err);
    if (!status && options->tools.given)
        status = mgl_cli_read_json_text(options->tools.value, &out->tools, err);
    out->conversation = (mgl_conversation){.size = sizeof out->conversation,
                                           .tools = out->tools,
                                           .tools_name = options->tools.value,
                                           .args = options->template_args.value,
                                           .template_name = options->template_name.value};
    return status;
}

mgl_status mgl_cli_render(const mgl_cli_renderer *renderer, const mgl_cli_messages *messages,
                          const char *name, char **out, size_t *length, mgl_error *err)
{
    mgl_text text = {0};
    mgl_conversation conversation = renderer->conversation;
    *out = NULL;
    mgl_cli_messages_print(messages, &text);
    conversation.messages = text.bytes;
    conversation.messages_name = name;
    mgl_status status =
        text.failed ? mgl_fail_memory(err, text.capacity)
                    : mgl_chat_template_render(renderer->chat, &conversation, out, length, err);
    mgl_text_clear(&text);
    return status;
}

void mgl_cli_renderer_close(mgl_cli_renderer *renderer)
{
    mgl_chat_template_close(renderer->chat);
    mgl_free(renderer->tools);
    *renderer = (mgl_cli_renderer){0};
}
