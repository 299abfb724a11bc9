/*
 * megalith chat MODEL: reads messages from a terminal or a pipe and prints a reply to each. On a
 * terminal Ctrl-C ends the reply, not the chat. From a pipe each line is a message, so programs can
 * use it too.
 *
 *     >>> Hello
 *     Hello! How can I help?
 *     >>> A line that ends with a backslash \
 *     ... continues on the next line, and so does text between two
 *     >>> """
 *     ... such quotes.
 *     ... """
 */
#include "cli/generate/chat.h"

#include "cli/progress.h"
#include "cli/signals.h"

#include "base/memory.h"
#include "importer/checkpoint.h"

#include <inttypes.h>
#include <string.h>

#define CHAT_OPTIONS(X)                                                                            \
    X(text, system, "--system", "TEXT", 0, 0, "the system message")                                \
    X(file, messages, "--messages", "F.json", 0, 0,                                                \
      "a saved conversation to continue (JSON, as /save writes it)")                               \
    MGL_CLI_TEMPLATE_OPTIONS(X)                                                                    \
    MGL_CLI_TALK_OPTIONS(X)                                                                        \
    MGL_CLI_DEVICE_OPTION(X)                                                                       \
    MGL_CLI_DTYPE_OPTION(X)                                                                        \
    X(flag, sample, "--sample", NULL, 0, 0, "sample with generation_config.json's values")         \
    X(int, capacity, "--capacity", "N", 1, 1 << 20,                                                \
      "positions of the KV cache (4,096, within the model's limit)")                               \
    MGL_CLI_CONFIG_OPTION(X)                                                                       \
    MGL_CLI_SCHEDULE_OPTION(X)                                                                     \
    MGL_CLI_STRICT_OPTION(X)                                                                       \
    MGL_CLI_TUNED_OPTION(X)                                                                        \
    MGL_CLI_CPU_OPTIONS(X)                                                                         \
    MGL_CLI_QUIET_OPTION(X)                                                                        \
    MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(CHAT_OPTIONS)

enum { LONG_TURN = 512 }; /* length in tokens of a long message, for which the model is lowered */
#define QUOTES "\"\"\""

/* ---- reading a message ----------------------------------------------------------------------- */

typedef enum message_kind { MESSAGE, COMMAND, LEFT, LEFT_BY_SIGNAL } message_kind;

/* Whether the last line, which begins at `start`, ends with the quotes. */
static bool ends_with_quotes(const mgl_text *text, size_t start)
{
    size_t length = text->length - start;
    return length >= 3 && !memcmp(text->bytes + text->length - 3, QUOTES, 3);
}

/* True for an odd number of backslashes at the end: the last one escapes the line end. */
static bool goes_on(const mgl_text *text)
{
    size_t count = 0;
    while (count < text->length && text->bytes[text->length - 1 - count] == '\\')
        count++;
    return count % 2;
}

/* Removes the quotes and the line ends beside them; `closed`: there are closing quotes. */
static void unquote(mgl_text *text, bool closed)
{
    text->length -= closed ? 3 : 0;
    size_t skip = text->length > 3 && text->bytes[3] == '\n' ? 4 : 3;
    text->length -= text->length > skip && text->bytes[text->length - 1] == '\n';
    text->length -= skip < text->length ? skip : text->length;
    memmove(text->bytes, text->bytes + skip, text->length);
    text->bytes[text->length] = 0;
}

/* Reads the continuation lines of a first line. */
static mgl_status read_rest(mgl_cli_lines *lines, mgl_text *text, mgl_cli_line *kind,
                            mgl_error *err)
{
    mgl_status status = MGL_OK;
    bool quoted = text->length >= 3 && !memcmp(text->bytes, QUOTES, 3);
    size_t start = quoted ? 3 : 0;
    while (!status && *kind == MGL_CLI_LINE &&
           (quoted ? !ends_with_quotes(text, start) : goes_on(text))) {
        text->length -= !quoted;
        mgl_text_put(text, "\n");
        start = text->length;
        status = mgl_cli_lines_read(lines, true, text, kind, err);
    }
    if (!status && quoted)
        unquote(text, *kind == MGL_CLI_LINE);
    return status;
}

static bool is_blank(const mgl_text *text)
{
    size_t i = 0;
    while (i < text->length && strchr(" \t", text->bytes[i]))
        i++;
    return i == text->length;
}

/* Whether the chat ends: a second Ctrl-C at an empty prompt ends it. Ctrl-C after typed text only
 * drops the text. */
static bool leaves(mgl_cli_line kind, bool begun, bool *once)
{
    bool again = kind == MGL_CLI_LINE_INTERRUPTED && !begun && *once;
    *once = kind == MGL_CLI_LINE_INTERRUPTED && !begun;
    if (*once && !again)
        mgl_cli_say("chat", "press Ctrl-C again to leave, or use Ctrl-D or /exit");
    return again;
}

/* Reads the next message or command. A message cut off by the end of input is used as is. */
static mgl_status read_message(mgl_cli_chat *chat, mgl_text *text, message_kind *kind,
                               mgl_error *err)
{
    bool once = false;
    for (;;) {
        mgl_cli_line line;
        text->length = 0;
        mgl_status status = mgl_cli_lines_read(&chat->lines, false, text, &line, err);
        bool command = !status && text->length && text->bytes[0] == '/';
        bool first = !status && line == MGL_CLI_LINE;
        if (first && !command)
            status = read_rest(&chat->lines, text, &line, err);
        if (!status)
            status = mgl_cli_check_cancel(err);
        if (status)
            return status;
        if (line == MGL_CLI_LINE_INTERRUPTED || line == MGL_CLI_LINE_DROPPED) {
            *kind = LEFT_BY_SIGNAL;
            if (leaves(line, first, &once))
                return MGL_OK;
            continue;
        }
        *kind = line == MGL_CLI_LINE_END && !first ? LEFT : command ? COMMAND : MESSAGE;
        if (*kind == LEFT || !is_blank(text))
            return text->failed ? mgl_fail_memory(err, text->capacity) : MGL_OK;
        once = false;
    }
}

/* ---- signals --------------------------------------------------------------------------------- */

static mgl_cli_lines *waiting; /* set before the signal thread calls back */

static void answer(bool ends)
{
    if (ends || !mgl_cli_chat_end_reply())
        mgl_cli_lines_interrupt(waiting);
}

/* ---- the conversation ------------------------------------------------------------------------ */

static mgl_status talk(mgl_cli_chat *chat, mgl_error *err)
{
    mgl_text text = {0};
    mgl_status status = MGL_OK;
    bool leave = false;
    while (!status && !leave) {
        message_kind kind = MESSAGE;
        status = read_message(chat, &text, &kind, err);
        if (status)
            break;
        if (kind == LEFT_BY_SIGNAL)
            status = mgl_fail(err, MGL_INTERRUPTED, NULL, "%s", "");
        else if (kind == LEFT)
            leave = true;
        else if (kind == COMMAND)
            status = mgl_cli_chat_command(chat, text.bytes, &leave, err);
        else
            status = mgl_cli_chat_reply(chat, text.bytes, text.length, err);
    }
    mgl_text_clear(&text);
    return status;
}

/* ---- opening and closing --------------------------------------------------------------------- */

static mgl_status check_options(const struct options *o, mgl_error *err)
{
    const char *other, *reader = mgl_cli_reader(&mgl_cli_chat_verb, NULL, o, &other);
    mgl_cli_reply_options reply = {MGL_CLI_TALK_OPTIONS(MGL_CLI_COPY)};
    if (reader)
        return mgl_fail(err, MGL_USAGE, reader,
                        "the chat reads its messages from standard input; give a file");
    if (o->sample.given && mgl_cli_reply_shapes(&reply))
        return mgl_fail(err, MGL_USAGE, "--sample",
                        "reads temperature, top-k, top-p and min-p from generation_config.json; "
                        "leave out either --sample or those flags");
    return mgl_cli_reply_check(&reply, err);
}

static mgl_status begin_messages(mgl_cli_chat *chat, const struct options *o, mgl_error *err)
{
    mgl_status status = MGL_OK;
    if (o->messages.given)
        status = mgl_cli_messages_read(&chat->messages, o->messages.value, err);
    if (!status && o->system.given)
        status = mgl_cli_messages_set_system(&chat->messages, o->system.value, err);
    return status;
}

static mgl_status open_model(mgl_cli_chat *chat, const char *path, const struct options *o,
                             mgl_error *err)
{
    mgl_open_options open = {MGL_CLI_OPEN_MEMBERS(o), .strict_formats = o->strict_formats.given,
                             .penalties = mgl_cli_reply_penalizes(&chat->reply) ? 1
                                          : o->sample.given                     ? 2
                                                                                : 0,
                             .prompt = LONG_TURN, .on_stage = mgl_cli_show_stage};
    mgl_status status = mgl_model_open(path, &open, &chat->model, err);
    chat->facts.size = sizeof chat->facts;
    return status ? status : mgl_model_get_facts(chat->model, &chat->facts, err);
}

/* If a model has no end tokens, its replies do not end by themselves. */
static mgl_status check_ends(const mgl_cli_chat *chat, mgl_error *err)
{
    mgl_ids ids = {0};
    mgl_status status = mgl_model_get_chat_end_ids(chat->model, chat->tokenizer, &ids, err);
    if (!status && !ids.count && !chat->reply.ignore_eos.given)
        mgl_cli_say("chat", "warning: no end token is known from generation_config.json, "
                            "config.json and tokenizer_config.json; replies end at --max-tokens or "
                            "--stop");
    mgl_ids_clear(&ids);
    return status;
}

/* Fast checks run first. */
static mgl_status open_chat(mgl_cli_chat *chat, const char *name, const struct options *o,
                            mgl_error *err)
{
    char *path = NULL;
    mgl_cli_template_options flags = {MGL_CLI_TEMPLATE_OPTIONS(MGL_CLI_COPY)};
    mgl_status status = begin_messages(chat, o, err);
    if (!status)
        status = mgl_model_find(name, &path, err);
    if (!status)
        status = mgl_cli_renderer_open(path, &flags, &chat->renderer, err);
    if (!status)
        status = mgl_tokenizer_open(path, &chat->tokenizer, err);
    if (!status)
        status = open_model(chat, path, o, err);
    if (!status)
        status = check_ends(chat, err);
    mgl_free(path);
    return status;
}

static void greet(const mgl_cli_chat *chat, const char *name)
{
    mgl_cli_say_lines("chat", chat->facts.note);
    if (chat->lines.terminal)
        mgl_cli_say("chat", "%s on %s, %s, %d positions; /help lists commands, Ctrl-D leaves", name,
                    chat->facts.device, chat->facts.dtype, (int)chat->facts.capacity);
}

static void say_closing_line(const mgl_cli_chat *chat)
{
    mgl_cli_flush();
    mgl_cli_say("chat",
                "%zu repl%s, %" PRId64 " tokens; prompts of %" PRId64 " tokens, %" PRId64
                " of them read before",
                chat->replies, chat->replies == 1 ? "y" : "ies", chat->made, chat->read,
                chat->reused);
}

static void begin_json(mgl_cli_chat *chat, const char *name)
{
    mgl_json_out_begin(&chat->out, "megalith.chat/1");
    mgl_json_out_string(&chat->out, "model", name);
    mgl_json_out_string(&chat->out, "device", chat->facts.device);
    mgl_json_out_string(&chat->out, "dtype", chat->facts.dtype);
    mgl_json_out_int(&chat->out, "capacity", chat->facts.capacity);
    mgl_json_out_array(&chat->out, "replies");
}

static mgl_status end_json(mgl_cli_chat *chat, mgl_error *err)
{
    mgl_text text = {0};
    mgl_json json = {0};
    mgl_json_out_close_array(&chat->out);
    mgl_cli_messages_print(&chat->messages, &text);
    mgl_status status = text.failed ? mgl_fail_memory(err, text.capacity)
                                    : mgl_json_parse_values(text.bytes, text.length, text.length,
                                                            "messages", &json, err);
    if (!status) {
        mgl_json_out_value(&chat->out, "messages", json.root);
        mgl_cli_end_json(&chat->out);
    }
    mgl_json_clear(&json);
    mgl_text_clear(&text);
    return status;
}

static mgl_status work(mgl_cli_chat *chat, const char *name, const struct options *o,
                       mgl_error *err)
{
    mgl_status status = open_chat(chat, name, o, err);
    if (!status)
        status = mgl_cli_lines_open(&chat->lines, err);
    if (status)
        return status;
    if (!o->quiet.given)
        greet(chat, name);
    if (chat->json)
        begin_json(chat, name);
    waiting = &chat->lines;
    if (chat->lines.terminal) /* without it, Ctrl-C ends the verb */
        mgl_cli_signals_answer(answer);
    status = talk(chat, err);
    mgl_cli_signals_answer(NULL);
    if (!status && chat->json)
        status = end_json(chat, err);
    if (!status && !o->quiet.given && !chat->json)
        say_closing_line(chat);
    if (!status && chat->failed && !chat->lines.terminal)
        mgl_cli_end_with(MGL_BAD_INPUT);
    return status;
}

static mgl_status chat(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    mgl_cli_chat c = {.reply = {MGL_CLI_TALK_OPTIONS(MGL_CLI_COPY)},
                      .sample = o->sample.given,
                      .json = o->json.given,
                      .lines = {.wake = {-1, -1}}};
    mgl_status status = check_options(o, err);
    if (!status)
        status = work(&c, operand, o, err);
    mgl_cli_lines_close(&c.lines);
    mgl_text_clear(&c.out.text);
    mgl_model_close(c.model);
    mgl_tokenizer_close(c.tokenizer);
    mgl_cli_renderer_close(&c.renderer);
    mgl_cli_messages_clear(&c.messages);
    return status;
}

const mgl_cli_verb mgl_cli_chat_verb = {
    .name = "chat",
    .operand = "MODEL",
    .summary = "holds a conversation with an instruct model, by its chat template",
    .example = "  megalith chat org/name --system \"Be brief.\"\n"
               "  printf '%s\\n' \"Who are you?\" \"Why?\" | megalith chat org/name --json",
    .overlaid = true,
    .lines = mgl_cli_chat_lines,
    .line_count = MGL_CLI_CHAT_LINE_COUNT,
    MGL_CLI_VERB_OPTIONS,
    .run = chat,
};
