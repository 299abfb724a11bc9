/* Implements compare.h: reads windows of texts with two models in step, and compares the logits row
 * by row. */
#include "eval/compare.h"

#include "base/error.h"
#include "base/memory.h"

#include <math.h>
#include <stdlib.h>

/* ---- two rows of logits ---------------------------------------------------------------------- */

/* Index of the largest logit: the lowest id of equal ones. */
static size_t find_best(const float *logits, size_t vocab)
{
    size_t best = 0;
    for (size_t i = 1; i < vocab; i++)
        best = logits[i] > logits[best] ? i : best;
    return best;
}

/* ln of the sum of exp(logit). */
static double log_sum(const float *logits, size_t vocab)
{
    const double max = (double)logits[find_best(logits, vocab)];
    double sum = 0;
    for (size_t i = 0; i < vocab; i++)
        sum += exp((double)logits[i] - max);
    return max + log(sum);
}

/* KL divergence, with the logarithms of both sums. Rounding could make it less than 0. */
static double diverge(const float *p, double log_p, const float *q, double log_q, size_t vocab)
{
    double sum = 0;
    for (size_t i = 0; i < vocab; i++) {
        const double ln_p = (double)p[i] - log_p, ln_q = (double)q[i] - log_q;
        sum += exp(ln_p) * (ln_p - ln_q);
    }
    return sum > 0 ? sum : 0;
}

double mgl_eval_divergence(const float *reference, const float *other, size_t vocab)
{
    return diverge(reference, log_sum(reference, vocab), other, log_sum(other, vocab), vocab);
}

size_t mgl_eval_equal_tokens(const mgl_ids *reference, const mgl_ids *other)
{
    size_t n = 0;
    while (n < reference->count && n < other->count && reference->ids[n] == other->ids[n])
        n++;
    return n;
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* A comparison in progress. */
typedef struct comparison {
    const mgl_eval_reader *reference, *other;
    const mgl_eval_options *options;
    float *p, *q;       /* owned (MGL_EVAL_ROWS, vocab): logits of the reference and the other */
    double *divergence; /* owned (sums.tokens) */
    size_t room;        /* allocated values of `divergence` */
    size_t begin;       /* begin of the last window in its text */
    mgl_eval_comparison sums;
} comparison;

static mgl_status add_row(comparison *c, const float *p, const float *q, int32_t token,
                          mgl_error *err)
{
    const size_t vocab = c->reference->vocab;
    const double log_p = log_sum(p, vocab), log_q = log_sum(q, vocab);
    if (!mgl_grow((void **)&c->divergence, &c->room, c->sums.tokens, sizeof *c->divergence))
        return mgl_fail_memory(err, sizeof *c->divergence);
    c->divergence[c->sums.tokens++] = diverge(p, log_p, q, log_q, vocab);
    c->sums.reference_nll -= (double)p[token] - log_p;
    c->sums.nll -= (double)q[token] - log_q;
    c->sums.agreed += find_best(p, vocab) == find_best(q, vocab);
    return MGL_OK;
}

/* Reads the logits of tokens [first, end) of a window, ids, with both models, and compares them. */
static mgl_status compare_rows(comparison *c, const int32_t *ids, size_t first, size_t end,
                               mgl_error *err)
{
    const size_t vocab = c->reference->vocab;
    mgl_status status = c->reference->read(c->reference->user, ids, end, first - 1, c->p, err);
    if (!status)
        status = c->other->read(c->other->user, ids, end, first - 1, c->q, err);
    for (size_t i = first; i < end && !status; i++)
        status = add_row(c, c->p + (i - first) * vocab, c->q + (i - first) * vocab, ids[i], err);
    return status;
}

static mgl_status compare_window(comparison *c, const mgl_ids *text, const mgl_eval_window *window,
                                 mgl_error *err)
{
    const size_t end = window->end - window->begin;
    mgl_status status = MGL_OK;
    c->begin = window->begin;
    for (size_t i = window->scored - window->begin; i < end && !status; i += MGL_EVAL_ROWS)
        status = compare_rows(c, text->ids + window->begin, i,
                              end - i > MGL_EVAL_ROWS ? i + MGL_EVAL_ROWS : end, err);
    c->sums.windows++;
    if (status || !c->options->progress || c->options->progress(c->options->user, end))
        return status;
    return mgl_fail_interrupted(err);
}

static mgl_status compare_text(comparison *c, const mgl_ids *text, mgl_error *err)
{
    const size_t capacity = c->sums.capacity, stride = c->options->stride;
    mgl_eval_window window = {0};
    mgl_status status = mgl_eval_check_stride(text->count, capacity, stride, err);
    if (text->count < 2) /* the first token has no context to score it */
        return MGL_OK;
    while (!status && mgl_eval_window_next(&window, text->count, capacity, stride))
        status = compare_window(c, text, &window, err);
    return status;
}

static mgl_status compare_all(comparison *c, const mgl_ids *texts, size_t count, mgl_error *err)
{
    for (size_t i = 0; i < count; i++) {
        mgl_error cause = {0};
        c->begin = 0;
        if (compare_text(c, &texts[i], &cause))
            return mgl_eval_name_text(i, c->begin, &cause, err);
    }
    return c->sums.tokens ? MGL_OK : mgl_eval_fail_nothing(err);
}

/* ---- results --------------------------------------------------------------------------------- */

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Index of the value of rank ceil(0.999 n), counted from 1, in ascending order. */
static size_t quantile_index(size_t n)
{
    return n - n / 1000 - 1;
}

static void finish(comparison *c, mgl_eval_comparison *out)
{
    const size_t n = c->sums.tokens;
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += c->divergence[i];
    qsort(c->divergence, n, sizeof *c->divergence, compare_doubles);
    *out = c->sums;
    out->kl_mean = sum / (double)n;
    out->kl_quantile = c->divergence[quantile_index(n)];
    out->reference_perplexity = exp(c->sums.reference_nll / (double)n);
    out->perplexity = exp(c->sums.nll / (double)n);
}

mgl_status mgl_eval_compare(const mgl_eval_reader *reference, const mgl_eval_reader *other,
                            const mgl_ids *texts, size_t count, const mgl_eval_options *options,
                            mgl_eval_comparison *out, mgl_error *err)
{
    static const mgl_eval_options plain;
    const size_t bytes = MGL_EVAL_ROWS * reference->vocab * sizeof(float);
    comparison c = {.reference = reference,
                    .other = other,
                    .options = options ? options : &plain,
                    .p = mgl_alloc(bytes),
                    .q = mgl_alloc(bytes),
                    .sums = {.texts = count, .capacity = reference->capacity}};
    mgl_status status =
        c.p && c.q ? compare_all(&c, texts, count, err) : mgl_fail_memory(err, 2 * bytes);
    if (!status)
        finish(&c, out);
    mgl_free(c.p);
    mgl_free(c.q);
    mgl_free(c.divergence);
    return status;
}
