/*
 * Feedback loop (generate, check, repair): sends a request to a model, evaluates the text of the
 * answer, and puts the verdict into the next request. The loop ends at the first good text, or
 * when the calls are used up. Edit spans run one loop each.
 *
 * A request starts with the role and the contract, and ends with the task. Between them are the
 * last two failed attempts. An attempt consists of its error (at most MGL_MAX_DIAGNOSTIC bytes)
 * and then its text. Other attempts and logs are not sent. If the model repeats an earlier text,
 * the text is not evaluated again. The next request then has a higher temperature and a token
 * limit 1.5 times as large.
 *
 * The loop is a state machine: `body` makes a request and `take` consumes an answer. The answer
 * may therefore come a day later from another process. `run` executes the loop to its end. The
 * same answers give the same requests.
 */
#ifndef MGL_AUTOTUNE_KERNELS_METHODS_FEEDBACK_H
#define MGL_AUTOTUNE_KERNELS_METHODS_FEEDBACK_H

#include "autotune/kernels/gates/fixups.h"
#include "autotune/kernels/methods/evaluator.h"
#include "autotune/kernels/methods/model_client.h"
#include "base/json_out.h"

enum {
    MGL_FEEDBACK_CALLS = 15,
    MGL_FEEDBACK_MOST_CALLS = 64,
    MGL_FEEDBACK_TOKENS = 4000, /* per answer */
    MGL_FEEDBACK_SHOWN = 2,     /* failed attempts shown in a request */
    MGL_FEEDBACK_MAX_CODE = 256 << 10
};

/* One call, reported when it has ended. All pointers are borrowed. */
typedef struct mgl_feedback_call {
    int number;          /* number of the call in the loop, from 1; a failed request and its retry
                          * have the same number */
    const char *request; /* the body; NULL: the answer was handed in without a request */
    const mgl_reply *reply;
    mgl_fixups fixups;
    const mgl_trial_verdict *verdict;
    double temperature;
    int max_tokens;
    double wait_s; /* delay before the next try after an endpoint failure */
} mgl_feedback_call;

typedef struct mgl_feedback_options {
    const char *model; /* model name of the endpoint */
    const char *system,
        *task;     /* system: the role and the contract; task: the task without attempts */
    int calls;     /* 0: MGL_FEEDBACK_CALLS */
    uint64_t seed; /* seeds the delimiters around quoted data */
    mgl_evaluator evaluator;
    void (*on_call)(void *user, const mgl_feedback_call *call); /* may be NULL */
    void *user;
} mgl_feedback_options;

typedef struct mgl_feedback mgl_feedback;
/* The texts of the options must outlive the loop. */
mgl_status mgl_feedback_open(const mgl_feedback_options *options, mgl_feedback **out,
                             mgl_error *err);
void mgl_feedback_close(mgl_feedback *feedback); /* NULL is fine */

/* The body of the next request. */
mgl_status mgl_feedback_body(const mgl_feedback *feedback, mgl_text *out, mgl_error *err);
/* The next request as one text, for a proposer that is not an endpoint. */
mgl_status mgl_feedback_prompt(const mgl_feedback *feedback, mgl_text *out, mgl_error *err);
/* Evaluates an answer. `request` is only passed on to on_call. An answer of an endpoint that failed
 * does not count as a call. */
mgl_status mgl_feedback_take(mgl_feedback *feedback, const char *request, const mgl_reply *reply,
                             mgl_error *err);
/* Runs the loop to its end. Retries a failed endpoint after a delay. *stopped is MGL_OUTCOME_OK,
 * or the PROPOSER_ outcome that stopped the loop early. */
mgl_status mgl_feedback_run(mgl_feedback *feedback, mgl_model_client *model_client,
                            const mgl_waiter *waiter, mgl_outcome *stopped, mgl_error *err);

int mgl_feedback_count(const mgl_feedback *feedback); /* calls so far */
bool mgl_feedback_ended(const mgl_feedback *feedback);
/* The good text; NULL: none so far. */
const char *mgl_feedback_code(const mgl_feedback *feedback);
/* The verdict of the last call; NULL before the first call. */
const mgl_trial_verdict *mgl_feedback_verdict(const mgl_feedback *feedback);

/* Writes the state of the loop as a member of an object, and reads it into a newly opened loop. */
void mgl_feedback_write(const mgl_feedback *feedback, mgl_json_out *out, const char *key);
mgl_status mgl_feedback_read(mgl_feedback *feedback, const mgl_json *json, const cJSON *object,
                             mgl_error *err);

#endif
