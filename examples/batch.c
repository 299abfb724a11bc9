/* Prints two replies of a model from one launch. Each has its own sampling options. Uses only the
 * public header.
 *     cc batch.c $(pkg-config --cflags --libs megalith) -o batch
 *     ./batch tests/models/tales-5m "Once there was a small fox named" "Once" */
#include <megalith.h>
#include <stdio.h>
#include <string.h>

enum { COUNT = 2 };

static mgl_status print_ids(mgl_detokenizer *stream, const mgl_ids *ids, mgl_error *err)
{
    const char *text;
    mgl_status status = MGL_OK;
    for (size_t i = 0; i <= ids->count && !status; i++) {
        status = i < ids->count ? mgl_detokenizer_next(stream, ids->ids[i], &text, NULL, err)
                                : mgl_detokenizer_finish(stream, &text, NULL, err);
        printf("%s", status ? "" : text);
    }
    printf("\n");
    return status;
}

/* Prints the text of a reply that follows `prompt`. */
static mgl_status print_reply(const mgl_tokenizer *tokenizer, const mgl_ids *prompt,
                              const mgl_ids *reply, mgl_error *err)
{
    mgl_detokenizer *stream = NULL;
    mgl_status status = mgl_detokenizer_open(tokenizer, true, &stream, err);
    if (!status)
        status = mgl_detokenizer_prime(stream, prompt->ids, prompt->count, err);
    if (!status)
        status = print_ids(stream, reply, err);
    mgl_detokenizer_close(stream);
    return status;
}

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
        printf("%d:", i);
        status = print_reply(tokenizer, &prompts[i], &results[i].output, &err);
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
