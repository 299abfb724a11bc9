/* Implements eval.h: splits texts into windows, scores each window, and sums log-likelihoods. */
#include "eval/eval.h"

#include "base/error.h"
#include "base/format.h"
#include "base/memory.h"

#include <math.h>

/* ---- windows --------------------------------------------------------------------------------- */

bool mgl_eval_window_next(mgl_eval_window *window, size_t count, size_t capacity, size_t stride)
{
    bool first = window->end == 0;
    size_t begin = first ? 0 : window->begin + stride;
    size_t fresh = window->end; /* first token that no window has read */
    if (fresh >= count)
        return false;
    window->begin = begin;
    window->scored = fresh > begin ? fresh : begin + 1;
    window->end = count - begin > capacity ? begin + capacity : count;
    return true;
}

size_t mgl_eval_count_read(size_t count, size_t capacity, size_t stride)
{
    size_t sum = 0;
    mgl_eval_window window = {0};
    if (!stride || stride > capacity || count <= capacity)
        return count;
    while (mgl_eval_window_next(&window, count, capacity, stride))
        sum += window.end - window.begin;
    return sum;
}

/* ---- scoring --------------------------------------------------------------------------------- */

static mgl_status fail_long(size_t count, size_t capacity, mgl_error *err)
{
    return mgl_fail(err, MGL_BAD_INPUT, NULL,
                    "%zu tokens are more than the %zu position%s of the KV cache (the capacity, at "
                    "most max_position_embeddings or sliding_window); `eval --stride N` reads "
                    "longer texts through a "
                    "window",
                    count, capacity, mgl_plural(capacity));
}

mgl_status mgl_eval_check_fit(size_t count, size_t capacity, mgl_error *err)
{
    return count <= capacity ? MGL_OK : fail_long(count, capacity, err);
}

mgl_status mgl_eval_check_stride(size_t count, size_t capacity, size_t stride, mgl_error *err)
{
    if (count <= capacity || (stride && stride <= capacity))
        return MGL_OK;
    if (!stride)
        return fail_long(count, capacity, err);
    return mgl_fail(err, MGL_USAGE, "stride",
                    "%zu is more than the %zu position%s of the window (the capacity): tokens "
                    "between two windows would be left out",
                    stride, capacity, mgl_plural(capacity));
}

mgl_status mgl_eval_name_text(size_t index, size_t begin, const mgl_error *cause, mgl_error *err)
{
    if (cause->code == MGL_USAGE) /* an error of the call, not of a text */
        return mgl_fail(err, cause->code, cause->where, "%s", cause->message);
    if (begin)
        return mgl_fail(err, cause->code, cause->where, "text %zu, from token %zu on: %s", index,
                        begin, cause->message);
    return mgl_fail(err, cause->code, cause->where, "text %zu: %s", index, cause->message);
}

mgl_status mgl_eval_fail_nothing(mgl_error *err)
{
    return mgl_fail(err, MGL_BAD_INPUT, NULL,
                    "there is nothing to score: no text has two tokens or more");
}

/* An evaluation in progress. */
typedef struct evaluation {
    const mgl_eval_model *model;
    const mgl_eval_options *options;
    float *logprob; /* (capacity) log-probabilities of a window */
    size_t begin;   /* begin of the last window in its text */
    mgl_eval_result sums;
} evaluation;

static mgl_status score_window(evaluation *e, const mgl_ids *text, const mgl_eval_window *window,
                               mgl_error *err)
{
    size_t count = window->end - window->begin;
    e->begin = window->begin;
    mgl_status status =
        e->model->score(e->model->user, text->ids + window->begin, count, e->logprob, err);
    for (size_t i = window->scored; i < window->end && !status; i++) {
        e->sums.nll -= (double)e->logprob[i - window->begin];
        e->sums.tokens++;
    }
    e->sums.windows++;
    if (status || !e->options->progress || e->options->progress(e->options->user, count))
        return status;
    return mgl_fail_interrupted(err);
}

/* Adds one text to the sums. */
static mgl_status score_text(evaluation *e, const mgl_ids *text, mgl_error *err)
{
    size_t capacity = e->sums.capacity, stride = e->options->stride;
    mgl_eval_window window = {0};
    mgl_status status = mgl_eval_check_stride(text->count, capacity, stride, err);
    if (text->count < 2) /* the first token has no context to score it */
        return MGL_OK;
    while (!status && mgl_eval_window_next(&window, text->count, capacity, stride))
        status = score_window(e, text, &window, err);
    return status;
}

static mgl_status score_all(evaluation *e, const mgl_ids *texts, size_t count, mgl_error *err)
{
    for (size_t i = 0; i < count; i++) {
        mgl_error cause = {0};
        e->begin = 0;
        if (score_text(e, &texts[i], &cause))
            return mgl_eval_name_text(i, e->begin, &cause, err);
    }
    return e->sums.tokens ? MGL_OK : mgl_eval_fail_nothing(err);
}

mgl_status mgl_eval_score(const mgl_eval_model *model, const mgl_ids *texts, size_t count,
                          const mgl_eval_options *options, mgl_eval_result *out, mgl_error *err)
{
    static const mgl_eval_options plain;
    evaluation e = {.model = model,
                    .options = options ? options : &plain,
                    .sums = {.texts = count, .capacity = model->capacity}};
    mgl_status status;
    e.logprob = mgl_alloc(e.sums.capacity * sizeof *e.logprob);
    status = e.logprob ? score_all(&e, texts, count, err)
                       : mgl_fail_memory(err, e.sums.capacity * sizeof *e.logprob);
    mgl_free(e.logprob);
    if (status)
        return status;
    e.sums.perplexity = exp(e.sums.nll / (double)e.sums.tokens);
    *out = e.sums;
    return MGL_OK;
}
