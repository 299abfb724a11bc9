/*
 * Comparison of a model with a reference of the same vocabulary: teacher-forced on texts, position
 * by position, and on greedy replies. The caller gives both models as functions. cli/ calls it for
 * `eval --compare`.
 *
 * p is the distribution of the reference and q that of the other model, both softmax(logits) at the
 * same position. For n scored tokens (eval.h says which tokens are scored):
 *
 *     nll         - sum of ln q(token)
 *     perplexity  exp(nll / n)
 *     KL          sum over the vocabulary of p (ln p - ln q), in nats; at least 0
 *     KL mean     mean of the n values of KL
 *     KL 99.9 %   the value of rank ceil(0.999 n) of the n values in ascending order
 *     top-1       share of the n positions where p and q have the same largest logit (the lowest id
 *                 of equal ones)
 *
 * Logits are f32; sums are f64 in the order of ids and positions.
 */
#ifndef MGL_EVAL_COMPARE_H
#define MGL_EVAL_COMPARE_H

#include "eval/eval.h"

/* A model to compare. */
typedef struct mgl_eval_reader {
    void *user;             /* passed to the functions */
    size_t vocab, capacity; /* ids, and maximum tokens of a text or window */
    /* As mgl_model_score_logits. */
    mgl_status (*read)(void *user, const int32_t *ids, size_t count, size_t begin, float *logits,
                       mgl_error *err);
} mgl_eval_reader;

typedef struct mgl_eval_comparison {
    size_t texts, tokens, windows, capacity; /* as in mgl_eval_result */
    double reference_nll, reference_perplexity;
    double nll, perplexity;
    double kl_mean, kl_quantile; /* nats */
    size_t agreed;               /* positions with the same most likely token */
} mgl_eval_comparison;

/* Reads `count` texts with both models in step, at most MGL_EVAL_ROWS positions at a time, so the
 * memory for logits is 2 * MGL_EVAL_ROWS * vocab floats. The models must have the same vocabulary
 * and capacity. `options` may be NULL; its progress is called with the tokens of a window after
 * both models have read it. Errors as in mgl_eval_score. */
enum { MGL_EVAL_ROWS = 16 };
mgl_status mgl_eval_compare(const mgl_eval_reader *reference, const mgl_eval_reader *other,
                            const mgl_ids *texts, size_t count, const mgl_eval_options *options,
                            mgl_eval_comparison *out, mgl_error *err);

/* KL divergence in nats of two rows of logits (vocab). */
double mgl_eval_divergence(const float *reference, const float *other, size_t vocab);

/* The number of equal tokens at the begin of two greedy replies: the length if they are equal. */
size_t mgl_eval_equal_tokens(const mgl_ids *reference, const mgl_ids *other);

#endif
