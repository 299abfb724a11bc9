/* Implements calibration.h. */
#include "cli/generate/calibration.h"

#include "base/memory.h"
#include "cli/generate/tokenizer.h"
#include "importer/checkpoint.h"
#include "quantize/quantize.h"

#include <string.h>

static mgl_status take_defaults(mgl_cli_corpus *corpus, const mgl_tokenizer *tokenizer,
                                mgl_error *err)
{
    size_t count;
    const char *const *texts = mgl_quantize_texts(&count);
    mgl_status status = mgl_cli_corpus_make(corpus, count, err);
    for (size_t i = 0; i < count && !status; i++)
        status = mgl_cli_corpus_encode(corpus, tokenizer, texts[i], strlen(texts[i]), err);
    return status;
}

/* Reads the texts as token ids. */
static mgl_status read_corpus(const char *path, const char *file, mgl_cli_corpus *corpus,
                              mgl_error *err)
{
    mgl_cli_prompts list = {0};
    mgl_tokenizer *tokenizer = NULL;
    mgl_status status = file ? mgl_cli_texts_read(file, &list, err) : MGL_OK;
    if (!status)
        status = mgl_cli_open_tokenizer(
            "quantize", path, !file || mgl_cli_corpus_needs_tokenizer(&list), &tokenizer, err);
    if (!status)
        status = file ? mgl_cli_corpus_take_list(corpus, &list, tokenizer, err)
                      : take_defaults(corpus, tokenizer, err);
    mgl_tokenizer_close(tokenizer);
    mgl_cli_prompts_clear(&list);
    return status;
}

/* Counts the runs of the corpus, and writes those that are chosen from `all` runs. */
static size_t cut(const mgl_cli_corpus *corpus, size_t length, size_t all, size_t most,
                  mgl_ids *samples)
{
    size_t runs = 0, taken = 0;
    for (size_t i = 0; i < corpus->count; i++)
        for (size_t at = 0; at < corpus->texts[i].count; at += length, runs++) {
            const size_t left = corpus->texts[i].count - at;
            if (!samples || taken == most || runs != taken * all / most)
                continue;
            samples[taken++] = (mgl_ids){corpus->texts[i].ids + at, left < length ? left : length};
        }
    return runs;
}

/* Limits the length of a sample to the positions of the model, and reads the size of its
 * vocabulary. */
static mgl_status read_limits(const char *path, size_t *length, int32_t *vocab, mgl_error *err)
{
    mgl_checkpoint *checkpoint = NULL;
    mgl_status status = mgl_import(path, &checkpoint, err);
    if (status)
        return status;
    const size_t positions = (size_t)checkpoint->graph->max_positions;
    *length = *length < positions ? *length : positions;
    *vocab = checkpoint->graph->geometry.vocab;
    mgl_checkpoint_close(checkpoint);
    return MGL_OK;
}

mgl_status mgl_cli_calibration_read(const char *model, const char *file, size_t most, size_t length,
                                    mgl_cli_calibration *out, mgl_error *err)
{
    char *path = NULL;
    int32_t vocab = 0;
    mgl_status status = mgl_model_find(model, &path, err);
    if (!status)
        status = read_limits(path, &length, &vocab, err);
    if (!status)
        status = read_corpus(path, file, &out->corpus, err);
    if (!status)
        status = mgl_cli_corpus_check(&out->corpus, vocab, file, err);
    mgl_free(path);
    if (status)
        return status;
    const size_t all = cut(&out->corpus, length, 0, 0, NULL);
    out->count = all < most ? all : most;
    if (!all)
        return mgl_fail(err, MGL_BAD_INPUT, file, "holds 0 texts; at least one is needed");
    out->samples = mgl_alloc_zero(out->count, sizeof *out->samples);
    if (!out->samples)
        return mgl_fail_memory(err, out->count * sizeof *out->samples);
    cut(&out->corpus, length, all, out->count, out->samples);
    for (size_t i = 0; i < out->count; i++)
        out->tokens += out->samples[i].count;
    return MGL_OK;
}

void mgl_cli_calibration_clear(mgl_cli_calibration *calibration)
{
    mgl_free(calibration->samples);
    mgl_cli_corpus_clear(&calibration->corpus);
    *calibration = (mgl_cli_calibration){0};
}
