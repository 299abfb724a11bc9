/*
 * A conversation with an instruct model: each line of standard input is a message, and only what is
 * new of the conversation is read.
 *
 *     printf '%s\n' "Who are you?" "Why?" | ./chat MODEL [TEMPLATE]
 */
#include <megalith.h>

#include <stdio.h>
#include <string.h>

typedef struct session {
    mgl_tokenizer *tokenizer;
    mgl_chat_template *chat;
    mgl_model *model;
    char *messages; /* JSON; NULL before the first */
} session;

static bool print_text(void *user, const char *text, size_t length)
{
    (void)user;
    return fwrite(text, 1, length, stdout) == length && fflush(stdout) == 0;
}

/* The reply's text, as a message of the conversation. */
static mgl_status keep_reply(session *s, const mgl_ids *output, mgl_error *err)
{
    char *text;
    size_t length;
    mgl_status status =
        mgl_tokenizer_decode(s->tokenizer, output->ids, output->count, true, &text, &length, err);
    if (!status)
        status = mgl_messages_add(&s->messages, "assistant", text, length, err);
    mgl_text_free(text);
    return status;
}

static mgl_status reply(session *s, const char *message, mgl_error *err)
{
    mgl_ids prompt = {0};
    mgl_result result = {.size = sizeof result};
    mgl_conversation conversation = {.size = sizeof conversation};
    mgl_request request = {.size = sizeof request, .max_tokens = 256, .reuse_prefix = 1, .chat = 1};
    mgl_status status = mgl_messages_add(&s->messages, "user", message, strlen(message), err);
    conversation.messages = s->messages;
    if (!status)
        status = mgl_chat_template_encode(s->chat, s->tokenizer, &conversation, &prompt, err);
    request.prompt = prompt.ids;
    request.prompt_count = prompt.count;
    if (!status)
        status = mgl_model_generate_text(s->model, s->tokenizer, &request, print_text, NULL,
                                         &result, err);
    if (!status)
        status = keep_reply(s, &result.output, err);
    if (!status)
        printf("\n(%zu tokens of %zu read)\n", prompt.count - (size_t)result.reused, prompt.count);
    mgl_result_clear(&result);
    mgl_ids_clear(&prompt);
    return status;
}

int main(int argc, char **argv)
{
    char line[4096];
    mgl_error err = {0};
    session s = {0};
    if (argc < 2) {
        fprintf(stderr, "usage: chat MODEL [TEMPLATE]\n");
        return MGL_USAGE;
    }
    mgl_status status = mgl_chat_template_open(argv[1], argc > 2 ? argv[2] : NULL, &s.chat, &err);
    if (!status)
        status = mgl_tokenizer_open(argv[1], &s.tokenizer, &err);
    if (!status)
        status = mgl_model_open(argv[1], NULL, &s.model, &err);
    while (!status && fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\r\n")] = 0;
        status = reply(&s, line, &err);
    }
    if (status)
        fprintf(stderr, "%s: %s\n", err.where, err.message);
    mgl_text_free(s.messages);
    mgl_model_close(s.model);
    mgl_tokenizer_close(s.tokenizer);
    mgl_chat_template_close(s.chat);
    return (int)status;
}
