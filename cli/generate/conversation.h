/*
 * Declares conversations for `run`, `chat` and `template`. Each message is kept as its original
 * JSON text, which preserves numbers and the order of keys. A renderer turns messages into a prompt
 * with the model's chat template, or another template, and the variables of the flags.
 */
#ifndef MGL_CLI_GENERATE_CONVERSATION_H
#define MGL_CLI_GENERATE_CONVERSATION_H

#include "cli/cli.h"

/* Options of rendering. */
#define MGL_CLI_TEMPLATE_OPTIONS(X)                                                                \
    X(file, tools, "--tools", "F.json", 0, 0,                                                      \
      "the tools that the model can call, as a JSON array")                                        \
    X(file, template, "--template", "FILE", 0, 0, "a chat template in place of the model's own")   \
    X(text, template_name, "--template-name", "NAME", 0, 0,                                        \
      "choose one of several templates of a model")                                                \
    X(text, template_args, "--template-args", "JSON", 0, 0,                                        \
      "further variables of the template, such as {\"enable_thinking\": false}")

typedef struct mgl_cli_template_options {
    MGL_CLI_TEMPLATE_OPTIONS(MGL_CLI_FIELD)
} mgl_cli_template_options;

/* The first flag of this table that was given; NULL: none. */
const char *mgl_cli_template_flag(const mgl_cli_template_options *options);

/* Reads a JSON text that ends with a 0 byte, for the library. Release *out with mgl_free. */
mgl_status mgl_cli_read_json_text(const char *path, char **out, mgl_error *err);

/* ---- messages -------------------------------------------------------------------------------- */

/* Zero-initialize; release with mgl_cli_messages_clear. */
typedef struct mgl_cli_messages {
    char **items; /* (count) owned: the JSON of each message */
    size_t count, capacity;
    bool system; /* the first is a system message */
} mgl_cli_messages;

/* Moves the elements of an array parsed by mgl_json_parse_values. Errors name `where` as the
 * place. */
mgl_status mgl_cli_messages_take(mgl_cli_messages *messages, cJSON *array, const char *where,
                                 mgl_error *err);
mgl_status mgl_cli_messages_read(mgl_cli_messages *messages, const char *path, mgl_error *err);
/* Appends {"role": role, "content": text (length bytes)}. */
mgl_status mgl_cli_messages_add(mgl_cli_messages *messages, const char *role, const char *text,
                                size_t length, mgl_error *err);
/* Puts a system message first, or replaces the one there. */
mgl_status mgl_cli_messages_set_system(mgl_cli_messages *messages, const char *text,
                                       mgl_error *err);
/* Removes the messages from `count` on. */
void mgl_cli_messages_cut(mgl_cli_messages *messages, size_t count);
/* Prints the messages as an array, one per line. Sets out->failed if memory runs out. */
void mgl_cli_messages_print(const mgl_cli_messages *messages, mgl_text *out);
void mgl_cli_messages_clear(mgl_cli_messages *messages);

/* ---- rendering ------------------------------------------------------------------------------- */

/* Zero-initialize; release with mgl_cli_renderer_close. */
typedef struct mgl_cli_renderer {
    mgl_chat_template *chat;
    char *tools;                   /* owned */
    mgl_conversation conversation; /* without messages */
} mgl_cli_renderer;

/* `path`: of a model, as for mgl_model_find. */
mgl_status mgl_cli_renderer_open(const char *path, const mgl_cli_template_options *options,
                                 mgl_cli_renderer *out, mgl_error *err);
/* Renders the messages to the text of a prompt. Errors call the messages `name`. Release *out with
 * mgl_text_free. */
mgl_status mgl_cli_render(const mgl_cli_renderer *renderer, const mgl_cli_messages *messages,
                          const char *name, char **out, size_t *length, mgl_error *err);
void mgl_cli_renderer_close(mgl_cli_renderer *renderer);

#endif
