/*
 * Runs a turn of `chat`. The whole conversation with the new message is rendered and tokenized. The
 * machine skips the prefix that its KV cache holds from earlier turns.
 *
 * A reply that Ctrl-C ends is kept up to that point. If a reply fails, or is ended before its first
 * word, the message is removed too, and the conversation is unchanged.
 */
#include "cli/generate/chat.h"

#include "cli/signals.h"
#include "cli/wrap.h"

#include "base/memory.h"

#include <pthread.h>

/* ---- interruption ---------------------------------------------------------------------------- */

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static bool replying; /* guarded by `turn` */

bool mgl_cli_chat_end_reply(void)
{
    pthread_mutex_lock(&turn);
    bool there = replying;
    if (there)
        mgl_cancel_set(mgl_cli_cancel());
    pthread_mutex_unlock(&turn);
    return there;
}

static void set_replying(bool now)
{
    pthread_mutex_lock(&turn);
    replying = now;
    if (!now)
        mgl_cancel_reset(mgl_cli_cancel());
    pthread_mutex_unlock(&turn);
}

/* ---- the reply ------------------------------------------------------------------------------- */

/* A reply in progress. */
typedef struct reply {
    mgl_cli_chat *chat;
    mgl_cli_prompt prompt;
    mgl_text text;
    mgl_cli_wrap wrap; /* wraps the text on a terminal */
    mgl_result result;
} reply;

static bool on_text(void *user, const char *text, size_t length)
{
    reply *r = user;
    mgl_text_append(&r->text, text, length);
    if (!r->chat->json)
        mgl_cli_wrap_print(&r->wrap, text, length);
    return mgl_cli_flush() && !r->text.failed;
}

static mgl_status generate(reply *r, mgl_error *err)
{
    mgl_cli_chat *chat = r->chat;
    mgl_request request =
        mgl_cli_prompt_request(&r->prompt, chat->tokenizer, chat->sample, chat->facts.capacity);
    request.reuse_prefix = 1;
    request.chat = 1;
    r->result.size = sizeof r->result;
    mgl_cli_wrap_start(&r->wrap);
    set_replying(true);
    mgl_status status = mgl_model_generate_text(chat->model, chat->tokenizer, &request, on_text, r,
                                                &r->result, err);
    set_replying(false);
    if (!status && r->text.failed)
        status = mgl_fail_memory(err, r->text.capacity);
    mgl_cli_wrap_end(&r->wrap);
    if (!chat->json && (r->text.length || !status))
        mgl_cli_put("\n");
    mgl_cli_flush();
    return status;
}

/* Renders and tokenizes the current conversation. */
static mgl_status encode(reply *r, mgl_error *err)
{
    mgl_cli_chat *chat = r->chat;
    char *text = NULL;
    size_t length, room = (size_t)chat->facts.capacity;
    mgl_status status =
        mgl_cli_render(&chat->renderer, &chat->messages, "conversation", &text, &length, err);
    if (!status)
        status = mgl_tokenizer_encode(chat->tokenizer, text, length, false, &r->prompt.ids, err);
    mgl_text_free(text);
    if (!status && r->prompt.ids.count >= room)
        return mgl_fail(err, MGL_BAD_INPUT, NULL,
                        "the KV cache is full: with this message the conversation has %zu tokens; "
                        "at most %zu fit together with a reply. The message was not sent; /save "
                        "FILE keeps the conversation, /clear begins a new one",
                        r->prompt.ids.count, room);
    if (!status)
        status = mgl_cli_prompt_choose_seed(
            &r->prompt, chat->sample || mgl_cli_reply_samples(&r->prompt.reply), err);
    return status;
}

/* ---- messages about a reply ------------------------------------------------------------------ */

static const char *const stop_names[] = {[MGL_STOP_EOS] = "eos",
                                         [MGL_STOP_LENGTH] = "length",
                                         [MGL_STOP_INTERRUPTED] = "interrupted",
                                         [MGL_STOP_TEXT] = "stop"};

static void put_reply(const reply *r)
{
    mgl_json_out *out = &r->chat->out;
    mgl_json_out_object(out, NULL);
    mgl_json_out_ids(out, "prompt_ids", r->prompt.ids.ids, r->prompt.ids.count);
    mgl_json_out_int(out, "reused", r->result.reused);
    mgl_json_out_ids(out, "output_ids", r->result.output.ids, r->result.output.count);
    mgl_json_out_text(out, "text", r->text.bytes ? r->text.bytes : "", r->text.length);
    mgl_json_out_string(out, "stop", stop_names[r->result.stop]);
    if (r->prompt.sampled)
        mgl_json_out_int(out, "seed", (int64_t)r->prompt.seed);
    else
        mgl_json_out_null(out, "seed");
    mgl_json_out_int(out, "launches", r->result.launches);
    mgl_json_out_object(out, "timing");
    mgl_json_out_real(out, "prefill_s", r->result.prefill_s);
    mgl_json_out_real(out, "decode_s", r->result.decode_s);
    mgl_json_out_close_object(out);
    mgl_json_out_close_object(out);
}

/* Prints why a reply ended early: the token limit, or a full cache. */
static void say_end(const reply *r)
{
    size_t length = r->prompt.ids.count + r->result.output.count;
    if (r->result.stop != MGL_STOP_LENGTH)
        return;
    if (length >= (size_t)r->chat->facts.capacity)
        mgl_cli_say("chat", "the KV cache is full, so the reply ends here; /save FILE keeps the "
                            "conversation, /clear begins a new one");
    else
        mgl_cli_say("chat", "the reply ends at --max-tokens %d",
                    (int)r->chat->reply.max_tokens.value);
}

/* ---- the history ----------------------------------------------------------------------------- */

static size_t count_common(const reply *r, const mgl_ids *ids)
{
    const mgl_ids *prompt = &r->prompt.ids, *output = &r->result.output;
    size_t same = 0;
    while (same < ids->count && same < prompt->count && ids->ids[same] == prompt->ids[same])
        same++;
    if (same < prompt->count)
        return same;
    while (same < ids->count && same - prompt->count < output->count &&
           ids->ids[same] == output->ids[same - prompt->count])
        same++;
    return same;
}

/* The number of tokens that the conversation shares with the cache if the reply's message has this
 * text. 0: the template does not render it. */
static size_t count_reused(const reply *r, const char *text, size_t length)
{
    mgl_cli_chat *chat = r->chat;
    mgl_cli_renderer renderer = chat->renderer;
    mgl_error ignored;
    mgl_ids ids = {0};
    char *rendered = NULL;
    size_t size, same = 0, before = chat->messages.count;
    renderer.conversation.no_generation_prompt = true;
    if (mgl_cli_messages_add(&chat->messages, "assistant", text, length, &ignored))
        return 0;
    if (!mgl_cli_render(&renderer, &chat->messages, "conversation", &rendered, &size, &ignored) &&
        !mgl_tokenizer_encode(chat->tokenizer, rendered, size, false, &ids, &ignored))
        same = count_common(r, &ids);
    mgl_cli_messages_cut(&chat->messages, before);
    mgl_ids_clear(&ids);
    mgl_text_free(rendered);
    return same;
}

/* The text of the reply's message. Some templates put a space before a reply, and some tokenizers
 * add a space to the first word. The message has the space only once, so that the next turn can
 * use the cache. */
static const char *choose_message(const reply *r, size_t *length)
{
    const char *text = r->text.bytes ? r->text.bytes : "";
    *length = r->text.length;
    if (text[0] != ' ' || count_reused(r, text + 1, *length - 1) <= count_reused(r, text, *length))
        return text;
    --*length;
    return text + 1;
}

/* Appends the reply to the conversation. */
static mgl_status keep(reply *r, mgl_error *err)
{
    mgl_cli_chat *chat = r->chat;
    size_t length;
    const char *text = choose_message(r, &length);
    mgl_status status = mgl_cli_messages_add(&chat->messages, "assistant", text, length, err);
    if (status)
        return status;
    chat->replies++;
    chat->made += (int64_t)r->result.output.count;
    chat->read += (int64_t)r->prompt.ids.count;
    chat->reused += r->result.reused;
    if (chat->json)
        put_reply(r);
    say_end(r);
    return MGL_OK;
}

void mgl_cli_chat_say(const mgl_error *err)
{
    mgl_cli_say("chat", "%s%s%s", err->where, err->where[0] ? ": " : "", err->message);
}

/* ---- a turn ---------------------------------------------------------------------------------- */

static mgl_status make(reply *r, mgl_error *err)
{
    mgl_status status = encode(r, err);
    if (!status)
        status = generate(r, err);
    if (!status && r->result.stop == MGL_STOP_INTERRUPTED && !r->text.length)
        return mgl_fail(err, MGL_INTERRUPTED, NULL,
                        "ended before the reply began; the message is not kept");
    return status ? status : keep(r, err);
}

/* Whether the chat continues after a failed reply: on a terminal always, because a device error may
 * be temporary. A program that sends lines cannot judge, so only bad input and interruptions
 * continue. */
static bool goes_on(const mgl_cli_chat *chat, mgl_status status)
{
    return status == MGL_BAD_INPUT || status == MGL_INTERRUPTED || chat->lines.terminal;
}

mgl_status mgl_cli_chat_reply(mgl_cli_chat *chat, const char *text, size_t length, mgl_error *err)
{
    mgl_error why = {0}, late = {0};
    size_t before = chat->messages.count;
    reply r = {.chat = chat, .prompt = {.reply = chat->reply}};
    mgl_status status = mgl_cli_messages_add(&chat->messages, "user", text, length, &why);
    if (!status)
        status = make(&r, &why);
    mgl_ids_clear(&r.prompt.ids);
    mgl_result_clear(&r.result);
    mgl_text_clear(&r.text);
    if (status)
        mgl_cli_messages_cut(&chat->messages, before);
    mgl_status ended = mgl_cli_check_cancel(&late);
    if (!ended)
        ended = mgl_cli_output_end(&late);
    if (ended) {
        *err = late;
        return ended;
    }
    if (!status)
        return MGL_OK;
    if (!goes_on(chat, status)) {
        *err = why;
        return status;
    }
    chat->failed = true;
    mgl_cli_chat_say(&why);
    return MGL_OK;
}
