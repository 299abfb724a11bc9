/*
 * Declares what the files of the verb `chat` share: the conversation (chat.c), the turn that
 * generates a reply (chat_reply.c), and the slash commands (chat_commands.c).
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
    mgl_cli_reply_options reply; /* options of generation */
    bool sample;                 /* use the values of generation_config.json */
    bool json;                   /* print no tokens while they arrive */
    mgl_cli_lines lines;
    mgl_json_out out; /* with `json`: the object, with its array of replies open */
    bool failed;      /* a message got no reply */
    /* totals over all replies */
    size_t replies;
    int64_t made, read, reused; /* tokens of replies, of prompts, and of prompts from the cache */
} mgl_cli_chat;

/* Generates and prints the reply to a message of the user (length bytes), and appends both to the
 * conversation. If there is no reply, the message is dropped and the reason is printed. Fails if
 * the chat cannot continue. */
mgl_status mgl_cli_chat_reply(mgl_cli_chat *chat, const char *text, size_t length, mgl_error *err);
/* Called by the signal thread: ends the reply in progress and keeps its text so far; false: no
 * reply is in progress. */
bool mgl_cli_chat_end_reply(void);

/* X(name, argument, help): commands, typed after a slash. */
#define MGL_CLI_CHAT_COMMANDS(X)                                                                   \
    X(help, "", "lists the commands")                                                              \
    X(clear, "", "begins a new conversation")                                                      \
    X(system, "TEXT", "sets the system message")                                                   \
    X(save, "FILE", "saves the messages, as JSON")                                                 \
    X(exit, "", "leaves, as do /quit and /bye")

/* X(name, as): aliases of commands. */
#define MGL_CLI_CHAT_NAMES(X)                                                                      \
    X(quit, exit)                                                                                  \
    X(bye, exit)

/* X(name, help): other input than commands. */
#define MGL_CLI_CHAT_KEYS(X)                                                                       \
    X("\\ at the end", "continues the message on the next line")                                   \
    X("\"\"\"", "encloses a message of several lines")                                             \
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

/* Executes the command of a line that begins with a slash. *leave: the chat ends. Fails as
 * mgl_cli_chat_reply does. */
mgl_status mgl_cli_chat_command(mgl_cli_chat *chat, const char *line, bool *leave, mgl_error *err);

/* Prints an error on standard error. */
void mgl_cli_chat_say(const mgl_error *err);

#endif
