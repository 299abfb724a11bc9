/*
 * How well a model tells texts: teacher-forced negative log-likelihood and perplexity, through the
 * public interface alone.
 *
 *     nll = - sum over texts, over i >= 1, of ln p(token i | tokens 0 .. i-1)
 *     perplexity = exp(nll / tokens)
 *
 * as Hugging Face's documentation of perplexity has it for texts that fit the context: each text
 * with the tokenizer's own special tokens, its first token not scored.
 */
#ifndef MGL_EVAL_EVAL_H
#define MGL_EVAL_EVAL_H

#include "megalith.h"

typedef struct mgl_eval_result {
    size_t texts;
    size_t tokens; /* that were scored */
    double nll, perplexity;
} mgl_eval_result;

/* Called behind each text with how many are done; may be NULL. False ends the evaluation. */
typedef bool mgl_eval_progress_fn(void *user, size_t done, size_t count);

/* Scores `count` texts of token ids, each in a launch of its own. Fails with MGL_BAD_INPUT for a
 * text that does not fit the model's capacity, for a likelihood that is not a number, and when
 * there is nothing to score. */
mgl_status mgl_eval_score(mgl_model *model, const mgl_ids *texts, size_t count,
                          mgl_eval_progress_fn *progress, void *user, mgl_eval_result *out,
                          mgl_error *err);

#endif
