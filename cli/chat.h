/*
 * The verb `chat`: a conversation with a model, message by message. What its files share: the
 * conversation, the turn that asks for a reply (chat_reply.c), and the commands (chat_commands.c).
 */
#ifndef MGL_CLI_CHAT_H
#define MGL_CLI_CHAT_H

#include "cli/conversation.h"
#include "cli/lines.h"
#include "cli/prompts.h"

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

/* X(name, argument, help); where there is no help, another name for the one above. */
#define MGL_CLI_CHAT_COMMANDS(X)                                                                   \
    X(help, "", "what can be said here")                                                           \
    X(clear, "", "a new conversation")                                                             \
    X(system, "TEXT", "its system message")                                                        \
    X(save, "FILE", "its messages, as JSON")                                                       \
    X(exit, "", "leaves; so does Ctrl-D")                                                          \
    X(quit, "", NULL)                                                                              \
    X(bye, "", NULL)

/* Does what a line asks for that begins with a slash. *leave: it was the last. Fails as
 * mgl_cli_chat_reply does. */
mgl_status mgl_cli_chat_command(mgl_cli_chat *chat, const char *line, bool *leave, mgl_error *err);

/* Says on standard error what is no reply. */
void mgl_cli_chat_say(const mgl_error *err);

#endif
