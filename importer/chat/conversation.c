/*
 * Converts a conversation to the variables that Hugging Face's apply_chat_template passes to
 * templates. Null keys of messages are removed. The assistant's reasoning is stored under every
 * name that templates read, whichever name it had.
 */
#include "importer/chat/chat.h"

#include "base/json_out.h"
#include "base/memory.h"

#include <string.h>

static mgl_status parse(const char *text, const char *name, mgl_json *out, mgl_error *err)
{
    return mgl_json_parse_values(text, strlen(text), MGL_CHAT_CAP, name, out, err);
}

/* ---- checks ---------------------------------------------------------------------------------- */

static mgl_status check_objects(const mgl_json *json, const char *what, mgl_error *err)
{
    size_t i = 0;
    if (!cJSON_IsArray(json->root))
        return mgl_fail(err, MGL_BAD_INPUT, json->file, "must be a JSON array of %s", what);
    for (const cJSON *item = json->root->child; item; item = item->next, i++)
        if (!cJSON_IsObject(item))
            return mgl_fail(err, MGL_BAD_INPUT, json->file,
                            "element %zu is not an object; expected a JSON array of %s", i, what);
    return MGL_OK;
}

static mgl_status check_messages(const mgl_json *json, mgl_error *err)
{
    size_t i = 0;
    mgl_status status = check_objects(json, "messages, objects with role and content", err);
    if (!status && !json->root->child)
        return mgl_fail(err, MGL_BAD_INPUT, json->file,
                        "the conversation is empty; it needs a message");
    for (const cJSON *item = status ? NULL : json->root->child; item; item = item->next, i++)
        if (!cJSON_IsString(mgl_json_member(item, "role")))
            return mgl_fail(err, MGL_BAD_INPUT, json->file,
                            "message %zu has no role; it must be a string such as \"user\"", i);
    return status;
}

/* ---- messages -------------------------------------------------------------------------------- */

static void drop_nulls(cJSON *message)
{
    for (cJSON *item = message->child, *next; item; item = next) {
        next = item->next;
        if (cJSON_IsNull(item))
            cJSON_Delete(cJSON_DetachItemViaPointer(message, item));
    }
}

/* Inserts a member at the front of an object. */
static bool put_first(cJSON *message, cJSON *item, const char *key)
{
    if (!item->string)
        item->string = mgl_strdup(key);
    return item->string && cJSON_InsertItemInArray(message, 0, item);
}

/* Makes {"thinking": thought, ...message, "reasoning_content": thought}. */
static mgl_status name_thought(cJSON *message, mgl_error *err)
{
    static const char *const names[] = {"reasoning_content", "thinking", "reasoning"};
    cJSON *thought = NULL, *first, *last;
    for (size_t i = 0; i < sizeof names / sizeof *names && !thought; i++)
        thought = cJSON_GetObjectItemCaseSensitive(message, names[i]);
    if (!thought)
        return MGL_OK;
    last =
        cJSON_GetObjectItemCaseSensitive(message, names[0]) ? NULL : cJSON_Duplicate(thought, true);
    bool good = last != NULL || thought == cJSON_GetObjectItemCaseSensitive(message, names[0]);
    first = cJSON_GetObjectItemCaseSensitive(message, names[1]);
    if (good && first)
        good = put_first(message, cJSON_DetachItemViaPointer(message, first), names[1]);
    else if (good && (first = cJSON_Duplicate(thought, true)) != NULL) {
        mgl_free(first->string);
        first->string = NULL;
        good = put_first(message, first, names[1]);
        if (!good)
            cJSON_Delete(first);
    } else {
        good = false;
    }
    if (good && last)
        good = cJSON_AddItemToObject(message, names[0], last);
    if (!good)
        cJSON_Delete(last);
    return good ? MGL_OK : mgl_fail_memory(err, 0);
}

/* ---- variables ------------------------------------------------------------------------------- */

/* Moves the root of a parsed text into the object. */
static mgl_status move_root(cJSON *variables, const char *key, mgl_json *json, mgl_error *err)
{
    if (!cJSON_AddItemToObject(variables, key, json->root))
        return mgl_fail_memory(err, 0);
    json->root = NULL;
    return MGL_OK;
}

static mgl_status add_messages(const mgl_conversation *conversation, cJSON *variables,
                               mgl_error *err)
{
    mgl_json json = {0};
    const char *name = conversation->messages_name ? conversation->messages_name : "messages";
    mgl_status status = parse(conversation->messages, name, &json, err);
    if (!status)
        status = check_messages(&json, err);
    for (cJSON *item = status ? NULL : json.root->child; item && !status; item = item->next) {
        drop_nulls(item);
        status = name_thought(item, err);
    }
    if (!status)
        status = move_root(variables, "messages", &json, err);
    mgl_json_clear(&json);
    return status;
}

static mgl_status add_tools(const mgl_conversation *conversation, cJSON *variables, mgl_error *err)
{
    mgl_json json = {0};
    const char *name = conversation->tools_name ? conversation->tools_name : "tools";
    if (!conversation->tools)
        return cJSON_AddNullToObject(variables, "tools") ? MGL_OK : mgl_fail_memory(err, 0);
    mgl_status status = parse(conversation->tools, name, &json, err);
    if (!status)
        status = check_objects(&json, "tools, objects such as {\"type\": \"function\", ...}", err);
    if (!status)
        status = move_root(variables, "tools", &json, err);
    mgl_json_clear(&json);
    return status;
}

/* Checks additional variables. They may override special tokens, but no other variable. */
static mgl_status check_args(const mgl_json *json, mgl_error *err)
{
    static const char *const stated[] = {"messages", "tools", "add_generation_prompt"};
    if (!cJSON_IsObject(json->root))
        return mgl_fail(err, MGL_BAD_INPUT, json->file,
                        "must be a JSON object, such as {\"enable_thinking\": false}");
    for (size_t i = 0; i < sizeof stated / sizeof *stated; i++)
        if (mgl_json_member(json->root, stated[i]))
            return mgl_fail(err, MGL_BAD_INPUT, json->file,
                            "'%s' is a separate input and cannot be given here", stated[i]);
    return MGL_OK;
}

static mgl_status add_args(const mgl_conversation *conversation, cJSON *variables, mgl_error *err)
{
    mgl_json json = {0};
    if (!conversation->args)
        return MGL_OK;
    mgl_status status = parse(conversation->args, "template arguments", &json, err);
    if (!status)
        status = check_args(&json, err);
    while (!status && json.root->child) {
        cJSON *item = cJSON_DetachItemViaPointer(json.root, json.root->child);
        if (!cJSON_AddItemToObject(variables, item->string, item)) {
            cJSON_Delete(item);
            status = mgl_fail_memory(err, 0);
        }
    }
    mgl_json_clear(&json);
    return status;
}

mgl_status mgl_conversation_read(const mgl_conversation *conversation, cJSON **out, mgl_error *err)
{
    cJSON *variables = *out = cJSON_CreateObject();
    mgl_status status = variables ? MGL_OK : mgl_fail_memory(err, sizeof *variables);
    if (!status && (!cJSON_AddNullToObject(variables, "documents") ||
                    !cJSON_AddBoolToObject(variables, "add_generation_prompt",
                                           !conversation->no_generation_prompt)))
        status = mgl_fail_memory(err, 0);
    if (!status)
        status = add_messages(conversation, variables, err);
    if (!status)
        status = add_tools(conversation, variables, err);
    if (!status)
        status = add_args(conversation, variables, err);
    if (status) {
        cJSON_Delete(variables);
        *out = NULL;
    }
    return status;
}

/* ---- appending messages ---------------------------------------------------------------------- */

/* Measures an array up to its closing bracket; *empty: it has no element. The elements are
 * checked only when they are rendered. */
static mgl_status measure(const char *messages, size_t *length, bool *empty, mgl_error *err)
{
    static const char blanks[] = " \t\r\n";
    size_t start = strspn(messages, blanks), end = strlen(messages);
    while (end > start && strchr(blanks, messages[end - 1]))
        end--;
    if (end < start + 2 || messages[start] != '[' || messages[end - 1] != ']')
        return mgl_fail(err, MGL_BAD_INPUT, "messages", "must be a JSON array of messages");
    *length = end - 1;
    *empty = start + 1 + strspn(messages + start + 1, blanks) == end - 1;
    return MGL_OK;
}

mgl_status mgl_messages_add(char **messages, const char *role, const char *text, size_t length,
                            mgl_error *err)
{
    mgl_json_out out = {0};
    bool empty = true;
    size_t before = 0;
    if (!messages || !role || !text)
        return mgl_fail_null(err, __func__, !messages ? "messages" : !role ? "role" : "text");
    mgl_status status = *messages ? measure(*messages, &before, &empty, err) : MGL_OK;
    if (status)
        return status;
    mgl_text_append(&out.text, *messages ? *messages : "[", *messages ? before : 1);
    out.comma = !empty;
    mgl_json_out_object(&out, NULL);
    mgl_json_out_string(&out, "role", role);
    mgl_json_out_text(&out, "content", text, length);
    mgl_json_out_close_object(&out);
    mgl_json_out_close_array(&out);
    if (out.text.failed) {
        mgl_text_clear(&out.text);
        return mgl_fail_memory(err, before + length);
    }
    mgl_text_free(*messages);
    *messages = out.text.bytes;
    return MGL_OK;
}
