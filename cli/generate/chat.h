/*
 * The verb `chat`: a conversation with a model, message by message. What its files share: the
 * conversation, the turn that asks for a reply (chat_reply.c), and the commands (chat_commands.c).
 */
#ifndef MGL_CLI_GENERATE_CHAT_H
#define MGL_CLI_GENERATE_CHAT_H

#include "cli/generate/conversation.h"
#include "cli/generate/prompts.h"
#include "cli/lines.h"

#include "base/json_out.h"

/* A conversation in progress. */
typedef struct mgl_cli_chat {
    mgl_model *model;
    mgl_tokenizer *tokenizer;
    mgl_model_facts facts;
    mgl_cli_renderer renderer;
    mgl_cli_messages messages;
    mgl_cli_reply_options reply; /* how replies are made */
    bool sample;                 /* by generation_config.json's values */
    bool json;                   /* nothing is streamed */
    mgl_cli_lines lines;
    mgl_json_out out; /* with `json`: the object, open in its array of replies */
    bool failed;      /* a message had no reply */
    /* of all replies */
    size_t replies;
    int64_t made, read, reused; /* tokens of replies, of prompts, and of these not read again */
} mgl_cli_chat;

/* The reply to a message of the user (length bytes): made, printed, and put behind the message. A
 * message that has no reply is not kept either, and why is said. Fails where the chat can not go
 * on. */
mgl_status mgl_cli_chat_reply(mgl_cli_chat *chat, const char *text, size_t length, mgl_error *err);
/* From the signals' thread: ends the reply in progress, with what was said so far; false: there is
 * none. */
bool mgl_cli_chat_end_reply(void);

/* X(name, argument, help): lines that begin with a slash. */
#define MGL_CLI_CHAT_COMMANDS(X)                                                                   \
    X(help, "", "what can be said here")                                                           \
    X(clear, "", "a new conversation")                                                             \
    X(system, "TEXT", "its system message")                                                        \
    X(save, "FILE", "its messages, as JSON")                                                       \
    X(exit, "", "leaves; /quit and /bye too")

/* X(name, as): other names of those. */
#define MGL_CLI_CHAT_NAMES(X)                                                                      \
    X(quit, exit)                                                                                  \
    X(bye, exit)

/* X(name, help): what else can be typed. */
#define MGL_CLI_CHAT_KEYS(X)                                                                       \
    X("\\ at the end", "the line goes on")                                                         \
    X("\"\"\"", "around several lines")                                                            \
    X("Ctrl-C", "ends a reply")                                                                    \
    X("Ctrl-D", "leaves")

#define MGL_CLI_CHAT_COUNT_COMMAND(name, argument, help) +1
#define MGL_CLI_CHAT_COUNT_KEY(name, help)               +1
enum {
    MGL_CLI_CHAT_LINE_COUNT =
        MGL_CLI_CHAT_COMMANDS(MGL_CLI_CHAT_COUNT_COMMAND) MGL_CLI_CHAT_KEYS(MGL_CLI_CHAT_COUNT_KEY)
};
#undef MGL_CLI_CHAT_COUNT_COMMAND
#undef MGL_CLI_CHAT_COUNT_KEY
extern const mgl_cli_typed mgl_cli_chat_lines[MGL_CLI_CHAT_LINE_COUNT];

/* Does what a line asks for that begins with a slash. *leave: it was the last. Fails as
 * mgl_cli_chat_reply does. */
mgl_status mgl_cli_chat_command(mgl_cli_chat *chat, const char *line, bool *leave, mgl_error *err);

/* Says on standard error what is no reply. */
void mgl_cli_chat_say(const mgl_error *err);

#endif
