/*
 * Conversations in the hands of a verb: the messages, each kept as the JSON that it came as, so
 * that numbers and the order of keys survive, and what renders them: the model's chat template, or
 * another one, and the variables that flags give it.
 */
#ifndef MGL_CLI_GENERATE_CONVERSATION_H
#define MGL_CLI_GENERATE_CONVERSATION_H

#include "cli/cli.h"

/* What says how a conversation is rendered. */
#define MGL_CLI_TEMPLATE_OPTIONS(X)                                                                \
    X(file, tools, "--tools", "F.json", 0, 0, "a JSON array of the tools that there are")          \
    X(file, template, "--template", "FILE", 0, 0, "a template in place of the model's own")        \
    X(text, template_name, "--template-name", "NAME", 0, 0,                                        \
      "of a model with several templates, this one")                                               \
    X(text, template_args, "--template-args", "JSON", 0, 0,                                        \
      "an object of further variables, such as {\"enable_thinking\": false}")

typedef struct mgl_cli_template_options {
    MGL_CLI_TEMPLATE_OPTIONS(MGL_CLI_FIELD)
} mgl_cli_template_options;

/* The flag of the table that was given; NULL: none. */
const char *mgl_cli_template_flag(const mgl_cli_template_options *options);

/* A JSON text for the library, which knows where it ends by its 0. Release *out with mgl_free. */
mgl_status mgl_cli_read_json_text(const char *path, char **out, mgl_error *err);

/* ---- messages -------------------------------------------------------------------------------- */

/* Zero-initialise; release with mgl_cli_messages_clear. */
typedef struct mgl_cli_messages {
    char **items; /* (count) owned: JSON of each */
    size_t count, capacity;
    bool system; /* the first is the system message */
} mgl_cli_messages;

/* Takes the elements of an array by mgl_json_parse_values. `where` is its place, for messages. */
mgl_status mgl_cli_messages_take(mgl_cli_messages *messages, cJSON *array, const char *where,
                                 mgl_error *err);
mgl_status mgl_cli_messages_read(mgl_cli_messages *messages, const char *path, mgl_error *err);
/* Appends {"role": role, "content": text (length bytes)}. */
mgl_status mgl_cli_messages_add(mgl_cli_messages *messages, const char *role, const char *text,
                                size_t length, mgl_error *err);
/* In front of the others, in the place of the system message if there is one. */
mgl_status mgl_cli_messages_set_system(mgl_cli_messages *messages, const char *text,
                                       mgl_error *err);
/* Drops those from `count` on. */
void mgl_cli_messages_cut(mgl_cli_messages *messages, size_t count);
/* As an array, one a line; out->failed where memory ran out. */
void mgl_cli_messages_print(const mgl_cli_messages *messages, mgl_text *out);
void mgl_cli_messages_clear(mgl_cli_messages *messages);

/* ---- rendering ------------------------------------------------------------------------------- */

/* Zero-initialise; release with mgl_cli_renderer_close. */
typedef struct mgl_cli_renderer {
    mgl_chat_template *chat;
    char *tools;                   /* owned */
    mgl_conversation conversation; /* all but the messages */
} mgl_cli_renderer;

/* `path`: of a model, as mgl_model_find has it. */
mgl_status mgl_cli_renderer_open(const char *path, const mgl_cli_template_options *options,
                                 mgl_cli_renderer *out, mgl_error *err);
/* The text of a prompt. `name`: what errors call the messages. Release *out with mgl_text_free. */
mgl_status mgl_cli_render(const mgl_cli_renderer *renderer, const mgl_cli_messages *messages,
                          const char *name, char **out, size_t *length, mgl_error *err);
void mgl_cli_renderer_close(mgl_cli_renderer *renderer);

#endif
