/*
 * Model quality on texts: teacher-forced negative log-likelihood and perplexity. The caller gives
 * the model as functions. cli/ calls it for `eval`; compare.h compares two models.
 *
 *     nll = - sum over texts, over i >= 1, of ln p(token i | tokens 0 .. i-1)
 *     perplexity = exp(nll / tokens)
 *
 * The definition follows Hugging Face's documentation of perplexity. Each text includes the
 * tokenizer's special tokens, and its first token is not scored. A text longer than the capacity is
 * read through a sliding window, as in the strided evaluation of that page. Window w begins at
 * token w * stride, has as many tokens as the capacity, and scores the tokens that no earlier
 * window had. Each token thus counts once, with at least capacity - stride tokens before it, except
 * in the first window. (That page weights a window's mean by one token less than it scored; here
 * each token has the same weight.)
 */
#ifndef MGL_EVAL_EVAL_H
#define MGL_EVAL_EVAL_H

#include "megalith.h"

/* A model to evaluate. */
typedef struct mgl_eval_model {
    void *user;      /* passed to the functions */
    size_t capacity; /* maximum tokens of a text or window */
    /* As mgl_model_score. */
    mgl_status (*score)(void *user, const int32_t *ids, size_t count, float *logprob,
                        mgl_error *err);
} mgl_eval_model;

typedef struct mgl_eval_result {
    size_t texts;
    size_t tokens;   /* scored tokens */
    size_t windows;  /* launches; one for a text that fits */
    size_t capacity; /* maximum tokens of a window */
    double nll, perplexity;
} mgl_eval_result;

/* Tokens of one launch: [begin, end) of a text are read, [scored, end) are scored. */
typedef struct mgl_eval_window {
    size_t begin, scored, end;
} mgl_eval_window;

/* Moves to the next window of a text of `count` tokens; false at the end. A zeroed window precedes
 * the first. 1 <= stride <= capacity. With stride == capacity, a window begins where the previous
 * one ended; its first token has no context and is not scored. */
bool mgl_eval_window_next(mgl_eval_window *window, size_t count, size_t capacity, size_t stride);

/* Tokens read in all windows of a text of `count` tokens; `count` if stride is 0. */
size_t mgl_eval_count_read(size_t count, size_t capacity, size_t stride);

/* Called after each window with its number of tokens; may be NULL. Returns false to end the
 * evaluation. */
typedef bool mgl_eval_progress_fn(void *user, size_t tokens);

typedef struct mgl_eval_options {
    size_t stride; /* stride of the sliding window for longer texts; 0: they are rejected */
    mgl_eval_progress_fn *progress;
    void *user; /* passed to progress */
} mgl_eval_options;

/* MGL_BAD_INPUT if a text of `count` tokens does not fit the capacity. The message names the option
 * that reads it. */
mgl_status mgl_eval_check_fit(size_t count, size_t capacity, mgl_error *err);

/* Same, with a stride (0: none) for longer texts. MGL_USAGE: the stride is longer than the
 * capacity, which would skip tokens. */
mgl_status mgl_eval_check_stride(size_t count, size_t capacity, size_t stride, mgl_error *err);

/* Adds the index of a text, and `begin` of its window (0: the first), to an error: err receives
 * `cause`, whose positions are relative to the window. Returns the code. */
mgl_status mgl_eval_name_text(size_t index, size_t begin, const mgl_error *cause, mgl_error *err);

/* MGL_BAD_INPUT: no text has a token to score. */
mgl_status mgl_eval_fail_nothing(mgl_error *err);

/* Scores `count` texts of token ids, with one launch per window. `options` may be NULL.
 * MGL_BAD_INPUT: a text does not fit the model's capacity and no stride is given, a likelihood is
 * NaN, or there is nothing to score. MGL_USAGE: the stride is longer than the capacity, which would
 * skip tokens. */
mgl_status mgl_eval_score(const mgl_eval_model *model, const mgl_ids *texts, size_t count,
                          const mgl_eval_options *options, mgl_eval_result *out, mgl_error *err);

#endif
