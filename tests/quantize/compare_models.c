/*
 * Prints the log-likelihood of texts under a model and under copies of it, and the mean KL
 * divergence of each copy from the model, in nats a token. For the table of methods in
 * paper/results/quantize.
 *
 *     compare_models TEXTS.json MODEL COPY...
 */
#include "base/json.h"
#include "importer/checkpoint.h"
#include "megalith.h"
#include "tests/quantize/divergence.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TEXTS = 1000 };

static mgl_error err;

static void check(mgl_status status)
{
    if (!status)
        return;
    fprintf(stderr, "%s: %s\n", err.where, err.message);
    exit(1);
}

static void load(const char *path, mgl_checkpoint **checkpoint, whole_model *model)
{
    check(mgl_import(path, checkpoint, &err));
    check(whole_model_load((*checkpoint)->graph, model, &err));
}

static size_t read_texts(const char *file, const char *model, mgl_ids *texts)
{
    mgl_tokenizer *tokenizer;
    mgl_json json = {0};
    size_t count = 0;
    const cJSON *item;
    check(mgl_tokenizer_open(model, &tokenizer, &err));
    check(mgl_json_read_file(file, 1 << 28, &json, &err));
    cJSON_ArrayForEach(item, json.root) if (count < MAX_TEXTS)
    {
        const char *text = item->valuestring;
        check(mgl_tokenizer_encode(tokenizer, text, strlen(text), true, &texts[count++], &err));
    }
    mgl_json_clear(&json);
    mgl_tokenizer_close(tokenizer);
    return count;
}

int main(int argc, char **argv)
{
    static mgl_ids texts[MAX_TEXTS];
    static float *reference[MAX_TEXTS];
    const mgl_blas *blas;
    const size_t count = argc > 2 ? read_texts(argv[1], argv[2], texts) : 0;
    check(mgl_blas_open(&blas, &err));
    for (int m = 2; m < argc; m++) {
        mgl_checkpoint *checkpoint;
        whole_model model;
        double likelihood = 0, divergence = 0, tokens = 0, scored = 0;
        load(argv[m], &checkpoint, &model);
        const size_t vocab = (size_t)checkpoint->graph->geometry.vocab;
        for (size_t i = 0; i < count; i++) {
            float *now;
            check(whole_model_run(&model, blas, texts[i].ids, texts[i].count, &now, &err));
            if (m == 2)
                reference[i] = now;
            for (size_t k = 0; k < texts[i].count * vocab; k++)
                divergence +=
                    exp((double)reference[i][k]) * ((double)reference[i][k] - (double)now[k]);
            for (size_t r = 0; r + 1 < texts[i].count; r++, scored++)
                likelihood -= (double)now[r * vocab + (size_t)texts[i].ids[r + 1]];
            tokens += (double)texts[i].count;
            if (m > 2)
                free(now);
        }
        printf("%-24s nll %.4f  tokens %.0f  kl %.4e\n", argv[m], likelihood, scored,
               divergence / tokens);
        whole_model_clear(&model);
        mgl_checkpoint_close(checkpoint);
    }
    return 0;
}
