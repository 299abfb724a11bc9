/*
 * Implements mgl_chat_template of the public header: opens a model's templates, and renders
 * conversations.
 */
#include "importer/chat/chat.h"

#include "base/memory.h"
#include "base/sized.h"
#include "base/text.h"
#include "importer/checkpoint.h"

#include <string.h>

mgl_status mgl_chat_template_open(const char *path, const char *file, mgl_chat_template **out,
                                  mgl_error *err)
{
    if (out)
        *out = NULL;
    if (!path || !out)
        return mgl_fail_null(err, __func__, path ? "out" : "path");
    mgl_chat_template *chat = mgl_alloc_zero(1, sizeof *chat);
    if (!chat)
        return mgl_fail_memory(err, sizeof *chat);
    mgl_status status = mgl_model_resolve_path(path, &chat->path, err);
    if (!status)
        status = mgl_chat_template_load(chat, file, err);
    if (status)
        mgl_chat_template_close(chat);
    else
        *out = chat;
    return status;
}

void mgl_chat_template_close(mgl_chat_template *chat)
{
    if (!chat)
        return;
    for (size_t i = 0; i < chat->count; i++) {
        mgl_jinja_free(chat->templates[i].jinja);
        mgl_free(chat->templates[i].name);
    }
    mgl_free(chat->templates);
    cJSON_Delete(chat->tokens);
    mgl_free(chat->path);
    mgl_free(chat);
}

static const mgl_named_template *find_template(const mgl_chat_template *chat, const char *name)
{
    for (size_t i = 0; i < chat->count; i++)
        if (!strcmp(chat->templates[i].name, name))
            return &chat->templates[i];
    return NULL;
}

static mgl_status fail_unnamed(const mgl_chat_template *chat, const char *wanted, mgl_error *err)
{
    mgl_text names = {0};
    for (size_t i = 0; i < chat->count; i++)
        mgl_text_format(&names, "%s%s", i ? ", " : "", chat->templates[i].name);
    mgl_status status =
        names.failed ? mgl_fail_memory(err, 0)
                     : mgl_fail(err, MGL_BAD_INPUT, chat->path,
                                "none of the model's chat templates is called %.80s: it has "
                                "%.400s; name one of these (--template-name NAME), or a file "
                                "(--template FILE)",
                                wanted, names.bytes);
    mgl_text_clear(&names);
    return status;
}

/* Chooses the template of the given name. Without a name: tool_use if there are tools and such a
 * template, else the default. */
static mgl_status choose_template(const mgl_chat_template *chat, const char *name, bool tools,
                                  const mgl_named_template **out, mgl_error *err)
{
    const mgl_named_template *chosen = tools && !name ? find_template(chat, "tool_use") : NULL;
    const char *wanted = name ? name : "default";
    *out = chosen = chosen ? chosen : find_template(chat, wanted);
    if (!chosen)
        return fail_unnamed(chat, wanted, err);
    if (!chosen->jinja && err)
        *err = chosen->failure;
    return chosen->jinja ? MGL_OK : MGL_BAD_INPUT;
}

/* Adds the special tokens as variables; the other variables override them. */
static mgl_status add_tokens(const mgl_chat_template *chat, cJSON **variables, mgl_error *err)
{
    cJSON *all = cJSON_Duplicate(chat->tokens, true);
    if (!all)
        return mgl_fail_memory(err, 0);
    for (cJSON *item; (item = (*variables)->child) != NULL;) {
        cJSON_DetachItemViaPointer(*variables, item);
        if (!cJSON_AddItemToObject(all, item->string, item)) {
            cJSON_Delete(item);
            cJSON_Delete(all);
            return mgl_fail_memory(err, 0);
        }
    }
    cJSON_Delete(*variables);
    *variables = all;
    return MGL_OK;
}

mgl_status mgl_chat_template_render(const mgl_chat_template *chat,
                                    const mgl_conversation *conversation, char **out,
                                    size_t *length, mgl_error *err)
{
    mgl_conversation r;
    const mgl_named_template *chosen;
    cJSON *variables = NULL;
    size_t unused;
    if (out)
        *out = NULL;
    if (!chat || !conversation || !out)
        return mgl_fail_null(err, __func__,
                             !chat           ? "chat"
                             : !conversation ? "conversation"
                                             : "out");
    mgl_status status = mgl_sized_read(&r, sizeof r, conversation, "mgl_conversation", err);
    if (!status && !r.messages)
        status = mgl_fail_null(err, __func__, "conversation->messages");
    if (!status)
        status = choose_template(chat, r.template_name, r.tools != NULL, &chosen, err);
    if (!status)
        status = mgl_conversation_read(&r, &variables, err);
    if (!status)
        status = add_tokens(chat, &variables, err);
    if (!status)
        status = mgl_jinja_render(chosen->jinja, variables, out, length ? length : &unused, err);
    cJSON_Delete(variables);
    return status;
}

mgl_status mgl_chat_template_encode(const mgl_chat_template *chat, const mgl_tokenizer *tokenizer,
                                    const mgl_conversation *conversation, mgl_ids *out,
                                    mgl_error *err)
{
    char *text = NULL;
    size_t length;
    if (!tokenizer || !out)
        return mgl_fail_null(err, __func__, tokenizer ? "out" : "tokenizer");
    mgl_status status = mgl_chat_template_render(chat, conversation, &text, &length, err);
    if (!status)
        status = mgl_tokenizer_encode(tokenizer, text, length, false, out, err);
    mgl_text_free(text);
    return status;
}
