/* An open model as a model to evaluate (eval/eval.h). */
#ifndef MGL_TESTS_SCORING_H
#define MGL_TESTS_SCORING_H

#include "eval/eval.h"

#include <check.h>

static inline mgl_status scoring_call(void *user, const int32_t *ids, size_t count, float *logprob,
                                      mgl_error *err)
{
    return mgl_model_score(user, ids, count, logprob, err);
}

static inline mgl_eval_model scoring_model(mgl_model *model)
{
    mgl_model_facts facts = {.size = sizeof facts};
    ck_assert_int_eq(mgl_model_get_facts(model, &facts, NULL), MGL_OK);
    return (mgl_eval_model){model, (size_t)facts.capacity, scoring_call};
}

/* mgl_eval_score of an open model. */
static inline mgl_status score_texts(mgl_model *model, const mgl_ids *texts, size_t count,
                                     const mgl_eval_options *options, mgl_eval_result *out,
                                     mgl_error *err)
{
    const mgl_eval_model scored = scoring_model(model);
    return mgl_eval_score(&scored, texts, count, options, out, err);
}

#endif
