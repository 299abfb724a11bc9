/* Prints a reply of a model to a prompt. Uses only the public header.
 *     cc generate.c $(pkg-config --cflags --libs megalith) -o generate
 *     ./generate tests/models/tales-5m "Once there was a small fox named" */
#include <megalith.h>
#include <stdio.h>
#include <string.h>

/* The state of printing a reply. A callback can only ask to stop, so it stores its error here. */
typedef struct printer {
    mgl_detokenizer *stream;
    mgl_error err; /* of the detokenizer */
} printer;

static bool print(const char *text, size_t length)
{
    return fwrite(text, 1, length, stdout) == length && !fflush(stdout);
}

static bool print_token(void *user, int32_t token)
{
    printer *to = user;
    const char *text;
    size_t length;
    return !mgl_detokenizer_next(to->stream, token, &text, &length, &to->err) &&
           print(text, length);
}

/* Prints the bytes that the detokenizer held back, for whatever reason the reply ended. */
static mgl_status print_end(printer *to, const mgl_result *result, mgl_error *err)
{
    const char *text;
    size_t length;
    mgl_status status = mgl_detokenizer_finish(to->stream, &text, &length, err);
    if (!status && to->err.code)
        *err = to->err;
    else if (!status && (!print(text, length) || ferror(stdout)))
        *err = (mgl_error){.code = MGL_SYSTEM, .message = "standard output cannot be written"};
    printf("\n%d launch, %zu tokens\n", (int)result->launches, result->output.count);
    if (!status && !err->code && result->stop == MGL_STOP_INTERRUPTED)
        *err = (mgl_error){.code = MGL_INTERRUPTED, .message = "the reply was interrupted"};
    return err->code;
}

int main(int argc, char **argv)
{
    const char *folder = argc > 1 ? argv[1] : ".", *text = argc > 2 ? argv[2] : "Once";
    mgl_open_options options = {.size = sizeof options, .capacity = 256};
    mgl_request request = {.size = sizeof request, .max_tokens = 64};
    mgl_result result = {.size = sizeof result};
    mgl_error err = {0};
    mgl_tokenizer *tokenizer = NULL;
    mgl_model *model = NULL;
    mgl_ids prompt = {0};
    printer to = {0};
    mgl_status status = mgl_tokenizer_open(folder, &tokenizer, &err);
    if (!status)
        status = mgl_tokenizer_encode(tokenizer, text, strlen(text), true, &prompt, &err);
    if (!status)
        status = mgl_detokenizer_open(tokenizer, true, &to.stream, &err);
    if (!status)
        status = mgl_detokenizer_prime(to.stream, prompt.ids, prompt.count, &err);
    if (!status)
        status = mgl_model_open(folder, &options, &model, &err);
    request.prompt = prompt.ids;
    request.prompt_count = prompt.count;
    if (!status)
        status = mgl_model_generate(model, &request, print_token, &to, &result, &err);
    if (!status)
        status = print_end(&to, &result, &err);
    if (status)
        fprintf(stderr, "%s%s%s\n", err.where, err.where[0] ? ": " : "", err.message);
    mgl_result_clear(&result);
    mgl_model_close(model);
    mgl_detokenizer_close(to.stream);
    mgl_ids_clear(&prompt);
    mgl_tokenizer_close(tokenizer);
    return (int)status;
}
