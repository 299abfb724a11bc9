/* Executes the slash commands of `chat`. */
#include "cli/generate/chat.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Rejects an existing file that is not a conversation, because /save would overwrite it. */
static mgl_status check_place(const char *path, mgl_error *err)
{
    bool stands;
    struct stat facts;
    mgl_json json = {0};
    mgl_status status = mgl_file_look(path, &stands, &facts, err);
    if (status || !stands || !S_ISREG(facts.st_mode) || facts.st_size == 0)
        return status;
    status = mgl_json_read_file(path, MGL_CLI_MAX_TEXT, &json, err);
    bool good = !status && cJSON_IsArray(json.root);
    mgl_json_clear(&json);
    return good ? MGL_OK
                : mgl_fail(err, MGL_BAD_INPUT, path,
                           "exists and is not a conversation, so it is not overwritten; name "
                           "another file");
}

static mgl_status do_save(mgl_cli_chat *chat, const char *path, bool *leave, mgl_error *err)
{
    mgl_text text = {0};
    (void)leave;
    if (!*path)
        return mgl_fail(err, MGL_USAGE, "/save", "needs the name of a file");
    mgl_status status = check_place(path, err);
    mgl_cli_messages_print(&chat->messages, &text);
    mgl_text_put(&text, "\n");
    if (!status)
        status = mgl_cli_write_text(path, &text, err);
    if (!status)
        mgl_cli_say("chat", "%zu message%s in %s", chat->messages.count,
                    chat->messages.count == 1 ? "" : "s", path);
    mgl_text_clear(&text);
    return status;
}

static mgl_status do_clear(mgl_cli_chat *chat, const char *rest, bool *leave, mgl_error *err)
{
    (void)rest;
    (void)leave;
    (void)err;
    mgl_cli_messages_cut(&chat->messages, chat->messages.system);
    return MGL_OK;
}

static mgl_status do_system(mgl_cli_chat *chat, const char *text, bool *leave, mgl_error *err)
{
    (void)leave;
    if (!*text)
        return mgl_fail(err, MGL_USAGE, "/system", "needs a text");
    return mgl_cli_messages_set_system(&chat->messages, text, err);
}

const mgl_cli_typed mgl_cli_chat_lines[MGL_CLI_CHAT_LINE_COUNT] = {
#define MGL_X(name, argument, help) {"/" #name, argument, help},
    MGL_CLI_CHAT_COMMANDS(MGL_X)
#undef MGL_X
#define MGL_X(name, help) {name, "", help},
        MGL_CLI_CHAT_KEYS(MGL_X)
#undef MGL_X
};

/* The lines have fewer than 40 columns. */
static mgl_status do_help(mgl_cli_chat *chat, const char *rest, bool *leave, mgl_error *err)
{
    (void)chat;
    (void)rest;
    (void)leave;
    (void)err;
    for (size_t i = 0; i < MGL_CLI_CHAT_LINE_COUNT; i++) {
        const mgl_cli_typed *line = &mgl_cli_chat_lines[i];
        char left[32];
        snprintf(left, sizeof left, "%s %s", line->name, line->argument);
        fprintf(stderr, "%-13s %s\n", left, line->help);
    }
    return MGL_OK;
}

static mgl_status do_exit(mgl_cli_chat *chat, const char *rest, bool *leave, mgl_error *err)
{
    (void)chat;
    (void)rest;
    (void)err;
    *leave = true;
    return MGL_OK;
}

typedef mgl_status command_fn(mgl_cli_chat *chat, const char *rest, bool *leave, mgl_error *err);

static command_fn *find(const char *name, size_t length)
{
    static const struct {
        const char *name;
        command_fn *work;
    } commands[] = {
#define MGL_X(name, argument, help) {#name, do_##name},
        MGL_CLI_CHAT_COMMANDS(MGL_X)
#undef MGL_X
#define MGL_X(name, as) {#name, do_##as},
            MGL_CLI_CHAT_NAMES(MGL_X)
#undef MGL_X
    };
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (mgl_text_is(name, length, commands[i].name))
            return commands[i].work;
    return NULL;
}

mgl_status mgl_cli_chat_command(mgl_cli_chat *chat, const char *line, bool *leave, mgl_error *err)
{
    mgl_error why = {0};
    mgl_status status = MGL_OK;
    size_t length = strcspn(line + 1, " \t");
    const char *rest = line + 1 + length + strspn(line + 1 + length, " \t");
    command_fn *work = find(line + 1, length);
    if (work)
        status = work(chat, rest, leave, &why);
    else
        status = mgl_fail(&why, MGL_USAGE, NULL,
                          "unknown command: /%.*s; /help lists the commands. Enclose a message "
                          "that begins with a slash in \"\"\"",
                          (int)(length < 40 ? length : 40), line + 1);
    if (!status)
        return MGL_OK;
    if (status == MGL_NO_MEMORY) {
        *err = why;
        return status;
    }
    chat->failed = true;
    mgl_cli_chat_say(&why);
    return MGL_OK;
}
