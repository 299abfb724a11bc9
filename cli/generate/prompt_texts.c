/* Converts prompts to token ids: chat template, then tokenizer. If an entry of a list has an error,
 * the error is kept with the entry. */
#include "cli/generate/prompts.h"
#include "cli/generate/tokenizer.h"
#include "cli/signals.h"

#include <stdio.h>

/* ---- conversations --------------------------------------------------------------------------- */

/* A text becomes the user's message; ids are used unchanged. */
static mgl_status make_messages(mgl_cli_prompt *prompt, const mgl_cli_prompts_conversation *how,
                                mgl_error *err)
{
    mgl_status status = MGL_OK;
    if (how->chat && prompt->text)
        status = mgl_cli_messages_add(&prompt->messages, "user", prompt->text, prompt->length, err);
    if (status || !prompt->messages.count || !how->system)
        return status;
    if (prompt->messages.system)
        return mgl_fail(err, MGL_USAGE, "--system",
                        "the conversation already has a system message; leave out one of the two");
    return mgl_cli_messages_set_system(&prompt->messages, how->system, err);
}

static mgl_status render_prompt(mgl_cli_prompts *prompts, size_t index, const char *file,
                                const mgl_cli_renderer *renderer, mgl_error *err)
{
    char name[200] = "prompt 0";
    mgl_cli_prompt *prompt = &prompts->items[index];
    if (prompts->list)
        mgl_cli_prompt_name(prompts, index, name, sizeof name);
    mgl_status status = mgl_cli_render(renderer, &prompt->messages, file ? file : name,
                                       &prompt->rendered, &prompt->rendered_length, err);
    prompt->text = prompt->rendered;
    prompt->length = prompt->rendered_length;
    return mgl_cli_prompt_end(prompts, index, status, err);
}

/* Without a chat template, each conversation has that error. */
static mgl_status render_all(mgl_cli_prompts *prompts, const char *path,
                             const mgl_cli_prompts_conversation *how, mgl_error *err)
{
    mgl_cli_renderer renderer = {0};
    mgl_error why = {0};
    const mgl_status opened = mgl_cli_renderer_open(path, how->flags, &renderer, &why);
    mgl_status status = MGL_OK;
    for (size_t i = 0; i < prompts->count && !status; i++) {
        if (prompts->items[i].error || !prompts->items[i].messages.count)
            continue;
        if (opened)
            *err = why;
        status = opened ? mgl_cli_prompt_end(prompts, i, opened, err)
                        : render_prompt(prompts, i, how->messages, &renderer, err);
    }
    mgl_cli_renderer_close(&renderer);
    return status;
}

mgl_status mgl_cli_prompts_render(mgl_cli_prompts *prompts, const char *path,
                                  const mgl_cli_prompts_conversation *how, mgl_error *err)
{
    const char *flag = how->system ? "--system" : mgl_cli_template_flag(how->flags);
    mgl_status status = MGL_OK;
    bool any = false;
    for (size_t i = 0; i < prompts->count && !status; i++) {
        if (!prompts->items[i].error)
            status =
                mgl_cli_prompt_end(prompts, i, make_messages(&prompts->items[i], how, err), err);
        any |= prompts->items[i].messages.count > 0;
    }
    if (!status && !any && flag && mgl_cli_prompts_count_errors(prompts) < prompts->count)
        return mgl_fail(err, MGL_USAGE, flag,
                        "needs a conversation; add --chat, or give prompts with messages");
    return status || !any ? status : render_all(prompts, path, how, err);
}

/* ---- ids ------------------------------------------------------------------------------------- */

static bool needs_tokenizer(const mgl_cli_prompt *prompt)
{
    return !prompt->error && (prompt->text || prompt->reply.stop.count);
}

/* The model has no usable tokenizer: entries that need one get the error. */
static mgl_status end_texts(mgl_cli_prompts *prompts, const char *path, mgl_tokenizer **out,
                            mgl_error *err)
{
    mgl_error why = {0};
    mgl_status status = MGL_OK, opened = MGL_OK;
    for (size_t i = 0; i < prompts->count && !status; i++) {
        if (!needs_tokenizer(&prompts->items[i]))
            continue;
        if (!opened)
            opened = mgl_tokenizer_open(path, out, &why);
        *err = why;
        status = mgl_cli_prompt_end(prompts, i, opened, err);
    }
    return status;
}

mgl_status mgl_cli_prompts_tokenize(mgl_cli_prompts *prompts, const char *path, mgl_tokenizer **out,
                                    mgl_error *err)
{
    bool needed = !prompts->list && needs_tokenizer(&prompts->items[0]);
    mgl_status status = mgl_cli_open_tokenizer("run", path, needed, out, err);
    if (!status && !*out)
        status = end_texts(prompts, path, out, err);
    for (size_t i = 0; i < prompts->count && !status; i++) {
        mgl_cli_prompt *prompt = &prompts->items[i];
        if (prompt->text && !prompt->error)
            status = mgl_cli_prompt_end(prompts, i,
                                        mgl_tokenizer_encode(*out, prompt->text, prompt->length,
                                                             !prompt->rendered, &prompt->ids, err),
                                        err);
        if (!status)
            status = mgl_cli_check_cancel(err);
    }
    return status;
}
