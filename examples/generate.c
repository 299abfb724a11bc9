/*
 * A reply in thirty lines, with the public header alone:
 *     cc generate.c $(pkg-config --cflags --libs megalith) -o generate
 *     ./generate tests/models/tales-5m "Once there was a small fox named"
 */
#include <megalith.h>
#include <stdio.h>
#include <string.h>

static bool print_token(void *detokenizer, int32_t token)
{
    const char *text;
    size_t length;
    if (mgl_detokenizer_next(detokenizer, token, &text, &length, NULL))
        return false;
    return fwrite(text, 1, length, stdout) == length && fflush(stdout) == 0;
}

int main(int argc, char **argv)
{
    const char *folder = argc > 1 ? argv[1] : ".", *prompt = argc > 2 ? argv[2] : "Once";
    mgl_error err = {0};
    mgl_tokenizer *tokenizer = NULL;
    mgl_detokenizer *stream = NULL;
    mgl_model *model = NULL;
    mgl_ids ids = {0};
    mgl_result result = {0};
    mgl_status status = mgl_tokenizer_open(folder, &tokenizer, &err);
    if (!status)
        status = mgl_tokenizer_encode(tokenizer, prompt, strlen(prompt), true, &ids, &err);
    if (!status)
        status = mgl_detokenizer_open(tokenizer, true, &stream, &err);
    if (!status)
        status = mgl_model_open(folder, &(mgl_open_options){.capacity = 256}, &model, &err);
    mgl_request request = {.prompt = ids.ids, .prompt_count = ids.count, .max_tokens = 64};
    if (!status)
        status = mgl_model_generate(model, &request, print_token, stream, &result, &err);
    if (status)
        fprintf(stderr, "%s: %s\n", err.where, err.message);
    else
        printf("\n%d launch, %zu tokens\n", (int)result.launches, result.output.count);
    mgl_result_clear(&result);
    mgl_model_close(model);
    mgl_detokenizer_close(stream);
    mgl_ids_clear(&ids);
    mgl_tokenizer_close(tokenizer);
    return (int)status;
}
