#include "eval/eval.h"

#include "base/error.h"
#include "base/memory.h"

#include <math.h>

/* Adds one text to the sums. */
static mgl_status score_text(mgl_model *model, const mgl_ids *text, size_t number,
                             mgl_eval_result *sums, mgl_error *err)
{
    if (text->count < 2)
        return MGL_OK;
    mgl_error cause;
    float *logprob = mgl_alloc(text->count * sizeof *logprob);
    if (!logprob)
        return mgl_fail_memory(err, text->count * sizeof *logprob);
    mgl_status status = mgl_model_score(model, text->ids, text->count, logprob, &cause);
    for (size_t i = 1; i < text->count && !status; i++)
        sums->nll -= (double)logprob[i];
    mgl_free(logprob);
    if (status)
        return mgl_fail(err, status, cause.where, "text %zu: %s", number, cause.message);
    sums->tokens += text->count - 1;
    return MGL_OK;
}

mgl_status mgl_eval_score(mgl_model *model, const mgl_ids *texts, size_t count,
                          mgl_eval_progress_fn *progress, void *user, mgl_eval_result *out,
                          mgl_error *err)
{
    mgl_eval_result sums = {.texts = count};
    for (size_t i = 0; i < count; i++) {
        mgl_status status = score_text(model, &texts[i], i, &sums, err);
        if (status)
            return status;
        if (progress && !progress(user, i + 1, count))
            return mgl_fail(err, MGL_INTERRUPTED, NULL, "interrupted after %zu of %zu texts", i + 1,
                            count);
    }
    if (!sums.tokens)
        return mgl_fail(err, MGL_BAD_INPUT, NULL,
                        "there is nothing to score: no text has two tokens or more");
    sums.perplexity = exp(sums.nll / (double)sums.tokens);
    *out = sums;
    return MGL_OK;
}
