/* A reply by the public header alone.
 *     cc generate.c $(pkg-config --cflags --libs megalith) -o generate
 *     ./generate tests/models/tales-5m "Once there was a small fox named" */
#include <megalith.h>
#include <stdio.h>
#include <string.h>

static bool print_token(void *stream, int32_t token)
{
    const char *text;
    size_t length;
    return !mgl_detokenizer_next(stream, token, &text, &length, NULL) &&
           fwrite(text, 1, length, stdout) == length && !fflush(stdout);
}

int main(int argc, char **argv)
{
    const char *folder = argc > 1 ? argv[1] : ".", *text = argc > 2 ? argv[2] : "Once";
    mgl_error err = {0};
    mgl_tokenizer *tokenizer = NULL;
    mgl_detokenizer *stream = NULL;
    mgl_model *model = NULL;
    mgl_ids prompt = {0};
    mgl_result result = {0};
    if (mgl_tokenizer_open(folder, &tokenizer, &err) ||
        mgl_tokenizer_encode(tokenizer, text, strlen(text), true, &prompt, &err) ||
        mgl_detokenizer_open(tokenizer, true, &stream, &err) ||
        mgl_model_open(folder, &(mgl_open_options){.capacity = 256}, &model, &err) ||
        mgl_model_generate(model, &(mgl_request){prompt.ids, prompt.count, .max_tokens = 64},
                           print_token, stream, &result, &err))
        fprintf(stderr, "%s: %s", err.where, err.message);
    printf("\n%d launch, %zu tokens\n", (int)result.launches, result.output.count);
    mgl_result_clear(&result);
    mgl_model_close(model);
    mgl_detokenizer_close(stream);
    mgl_ids_clear(&prompt);
    mgl_tokenizer_close(tokenizer);
    return (int)err.code;
}
