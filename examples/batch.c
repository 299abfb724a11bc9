/* Two replies in one launch, each with its own way to choose, by the public header alone.
 *     cc batch.c $(pkg-config --cflags --libs megalith) -o batch
 *     ./batch tests/models/tales-5m "Once there was a small fox named" "Once" */
#include <megalith.h>
#include <stdio.h>
#include <string.h>

enum { COUNT = 2 };

int main(int argc, char **argv)
{
    const char *folder = argc > 1 ? argv[1] : ".";
    mgl_open_options options = {.size = sizeof options, .capacity = 256, .sequences = COUNT};
    mgl_request requests[COUNT] = {
        {.size = sizeof(mgl_request), .max_tokens = 64},
        {.size = sizeof(mgl_request), .max_tokens = 32, .temperature = 0.8F, .seed = 7}};
    mgl_error err = {0};
    mgl_tokenizer *tokenizer = NULL;
    mgl_model *model = NULL;
    mgl_ids prompts[COUNT] = {0};
    mgl_result results[COUNT] = {{.size = sizeof(mgl_result)}, {.size = sizeof(mgl_result)}};
    mgl_status status = mgl_tokenizer_open(folder, &tokenizer, &err);
    for (int i = 0; i < COUNT && !status; i++) {
        const char *text = argc > 2 + i ? argv[2 + i] : "Once";
        status = mgl_tokenizer_encode(tokenizer, text, strlen(text), true, &prompts[i], &err);
        requests[i].prompt = prompts[i].ids;
        requests[i].prompt_count = prompts[i].count;
    }
    if (!status)
        status = mgl_model_open(folder, &options, &model, &err);
    if (!status)
        status = mgl_model_generate_batch(model, requests, COUNT, NULL, NULL, results, &err);
    for (int i = 0; i < COUNT && !status; i++) {
        char *text = NULL;
        status = mgl_tokenizer_decode(tokenizer, results[i].output.ids, results[i].output.count,
                                      true, &text, NULL, &err);
        printf("%d:%s\n", i, text ? text : "");
        mgl_text_free(text);
    }
    if (status)
        fprintf(stderr, "%s%s%s\n", err.where, err.where[0] ? ": " : "", err.message);
    for (int i = 0; i < COUNT; i++) {
        mgl_result_clear(&results[i]);
        mgl_ids_clear(&prompts[i]);
    }
    mgl_model_close(model);
    mgl_tokenizer_close(tokenizer);
    return (int)status;
}
