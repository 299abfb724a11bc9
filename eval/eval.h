/*
 * How well a model tells texts: teacher-forced negative log-likelihood and perplexity, through the
 * public interface alone.
 *
 *     nll = - sum over texts, over i >= 1, of ln p(token i | tokens 0 .. i-1)
 *     perplexity = exp(nll / tokens)
 *
 * as Hugging Face's documentation of perplexity has it: each text with the tokenizer's own special
 * tokens, its first token not scored. A text longer than the capacity is read through a window, as
 * the strided evaluation of that page moves it: window w begins at token w * stride, has as many
 * tokens as the capacity, and counts those that no window before it had. So each token counts once,
 * with capacity - stride tokens before it at least, but for those of the first window. (The page
 * weighs a window's mean by one token less than it counted; here each token weighs the same.)
 */
#ifndef MGL_EVAL_EVAL_H
#define MGL_EVAL_EVAL_H

#include "megalith.h"

typedef struct mgl_eval_result {
    size_t texts;
    size_t tokens;   /* that were scored */
    size_t windows;  /* launches: one a text that fits */
    size_t capacity; /* tokens of a window, at most */
    double nll, perplexity;
} mgl_eval_result;

/* What is read in one launch: tokens [begin, end) of a text, of which [scored, end) count. */
typedef struct mgl_eval_window {
    size_t begin, scored, end;
} mgl_eval_window;

/* From one window of a text of `count` tokens to the next; false: there is none. A zeroed window is
 * the place before the first. 1 <= stride <= capacity. A window of stride == capacity begins where
 * the one before it ended: nothing is known before its first token, which is not scored. */
bool mgl_eval_window_next(mgl_eval_window *window, size_t count, size_t capacity, size_t stride);

/* Tokens that a text of `count` has in all of its windows; stride 0: `count`. */
size_t mgl_eval_count_read(size_t count, size_t capacity, size_t stride);

/* Called behind each window with the tokens that it had; may be NULL. False ends the evaluation. */
typedef bool mgl_eval_progress_fn(void *user, size_t tokens);

typedef struct mgl_eval_options {
    size_t stride; /* of the window through which longer texts are read; 0: they are refused */
    mgl_eval_progress_fn *progress;
    void *user; /* for progress */
} mgl_eval_options;

/* MGL_BAD_INPUT for a text of `count` tokens that does not fit the model's capacity; the message
 * says what reads it. */
mgl_status mgl_eval_check_fit(const mgl_model *model, size_t count, mgl_error *err);

/* Scores `count` texts of token ids, each window in a launch of its own. `options` may be NULL.
 * Fails with MGL_BAD_INPUT for a text that does not fit the model's capacity where there is no
 * stride, for a likelihood that is not a number, and when there is nothing to score; with MGL_USAGE
 * for a stride longer than the capacity, which would leave tokens out. */
mgl_status mgl_eval_score(mgl_model *model, const mgl_ids *texts, size_t count,
                          const mgl_eval_options *options, mgl_eval_result *out, mgl_error *err);

#endif
