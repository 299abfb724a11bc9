/* Prints the log-probability of each token of a text, and the ids that end a reply of the model.
 * Uses only the public header.
 *     cc tokens.c $(pkg-config --cflags --libs megalith) -o tokens
 *     ./tokens tests/models/tales-5m "Once there was a small fox" */
#include <megalith.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A token may end within a character, so bytes other than ASCII are printed as numbers. */
static void print_bytes(const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        printf(bytes[i] >= 32 && bytes[i] < 127 ? "%c" : "\\x%02X", (unsigned char)bytes[i]);
}

static mgl_status print_token(const mgl_tokenizer *tokenizer, int32_t id, float logprob,
                              mgl_error *err)
{
    char *bytes;
    size_t length;
    mgl_status status = mgl_tokenizer_token(tokenizer, id, &bytes, &length, err);
    if (status)
        return status;
    printf("%6d  %9.4f  ", (int)id, (double)logprob);
    print_bytes(bytes, length);
    printf("\n");
    mgl_text_free(bytes);
    return MGL_OK;
}

static mgl_status print_scores(mgl_model *model, const mgl_tokenizer *tokenizer, const mgl_ids *ids,
                               mgl_error *err)
{
    float *logprob = calloc(ids->count + 1, sizeof *logprob); /* the first token has none: 0 */
    mgl_status status = logprob ? MGL_OK : MGL_NO_MEMORY;
    if (!status)
        status = mgl_model_score(model, ids->ids, ids->count, logprob, err);
    for (size_t i = 0; i < ids->count && !status; i++)
        status = print_token(tokenizer, ids->ids[i], logprob[i], err);
    free(logprob);
    return status;
}

static mgl_status print_ends(const mgl_model *model, const mgl_tokenizer *tokenizer, mgl_error *err)
{
    mgl_ids ends = {0};
    mgl_status status = mgl_model_get_end_ids(model, &ends, err);
    if (!status)
        printf("%zu tokens; a reply ends with", mgl_tokenizer_size(tokenizer));
    for (size_t i = 0; i < ends.count && !status; i++)
        printf(" %d", (int)ends.ids[i]);
    printf("\n");
    mgl_ids_clear(&ends);
    return status;
}

int main(int argc, char **argv)
{
    mgl_error err = {0};
    mgl_tokenizer *tokenizer = NULL;
    mgl_model *model = NULL;
    mgl_ids ids = {0};
    if (argc != 3)
        return fprintf(stderr, "usage: tokens MODEL TEXT\n"), MGL_USAGE;
    mgl_status status = mgl_tokenizer_open(argv[1], &tokenizer, &err);
    if (!status)
        status = mgl_tokenizer_encode(tokenizer, argv[2], strlen(argv[2]), true, &ids, &err);
    if (!status)
        status = mgl_model_open(argv[1], NULL, &model, &err);
    if (!status)
        status = print_ends(model, tokenizer, &err);
    if (!status)
        status = print_scores(model, tokenizer, &ids, &err);
    if (status)
        fprintf(stderr, "%s: %s\n", err.where, err.message);
    mgl_model_close(model);
    mgl_ids_clear(&ids);
    mgl_tokenizer_close(tokenizer);
    return (int)status;
}
