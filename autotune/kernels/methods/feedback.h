/*
 * The feedback loop: a model is asked, what it wrote is judged, and the verdict goes into the next
 * request, until the first text that is good, or until the calls are used up.
 *
 * A request has the role and the contract first and the clean task last. Between them stand the
 * last two attempts that failed, the error of each (MGL_MAX_DIAGNOSTIC bytes) before its text; no
 * other attempt, and no log. Where the model repeats a text that it has written before, the text is
 * not judged again: the next request has a higher temperature and room for an answer half as long
 * again.
 *
 * The loop is a machine that is turned from outside (body, take), so that an answer may come a day
 * later from another process; run turns it to its end. The same answers give the same requests.
 */
#ifndef MGL_AUTOTUNE_KERNELS_METHODS_FEEDBACK_H
#define MGL_AUTOTUNE_KERNELS_METHODS_FEEDBACK_H

#include "autotune/kernels/methods/fixups.h"
#include "autotune/kernels/methods/judge.h"
#include "autotune/kernels/methods/model_client.h"
#include "base/json_out.h"

enum {
    MGL_FEEDBACK_CALLS = 15,
    MGL_FEEDBACK_MOST_CALLS = 64,
    MGL_FEEDBACK_TOKENS = 4000, /* of an answer */
    MGL_FEEDBACK_SHOWN = 2,     /* attempts that a request tells of */
    MGL_FEEDBACK_MAX_CODE = 256 << 10
};

/* One call, as it is told when it ended. Everything is lent. */
typedef struct mgl_feedback_call {
    int number;          /* of the loop's calls, from 1; a request that failed has the number of the
                          * call that it was made for */
    const char *request; /* the body; NULL: the answer was handed in without one */
    const mgl_reply *reply;
    const char *code; /* (code_length) what was taken and mended; NULL: none */
    size_t code_length;
    mgl_fixups fixups;
    const mgl_loop_verdict *verdict;
    double temperature;
    int max_tokens;
    double wait_s; /* before the next try, where the endpoint failed */
} mgl_feedback_call;

typedef struct mgl_feedback_options {
    const char *model;         /* of the endpoint */
    const char *system, *task; /* role and contract; the clean task */
    const char *tag;           /* of the fence; NULL: "cuda" */
    int calls, max_tokens;     /* 0: MGL_FEEDBACK_CALLS, MGL_FEEDBACK_TOKENS */
    uint64_t seed;             /* draws the borders around data */
    mgl_loop_judge judge;
    void (*on_call)(void *user, const mgl_feedback_call *call); /* may be NULL */
    void *user;
} mgl_feedback_options;

typedef struct mgl_feedback mgl_feedback;
/* The texts of the options must outlive it. */
mgl_status mgl_feedback_open(const mgl_feedback_options *options, mgl_feedback **out,
                             mgl_error *err);
void mgl_feedback_close(mgl_feedback *feedback); /* NULL is fine */

/* The body of the next request. */
mgl_status mgl_feedback_body(const mgl_feedback *feedback, mgl_text *out, mgl_error *err);
/* What the next request asks for, as one text, for a proposer that is no endpoint. */
mgl_status mgl_feedback_prompt(const mgl_feedback *feedback, mgl_text *out, mgl_error *err);
/* Judges an answer. `request` is told to on_call alone. Answers of an endpoint that failed count
 * as no call. */
mgl_status mgl_feedback_take(mgl_feedback *feedback, const char *request, const mgl_reply *reply,
                             mgl_error *err);
/* Turns it until it ends. Endpoints that fail are asked again, after a while; *stopped is
 * MGL_OUTCOME_OK, or the PROPOSER_ outcome for which the asking ended early. */
mgl_status mgl_feedback_run(mgl_feedback *feedback, mgl_model_client *model_client,
                            const mgl_waiter *waiter, mgl_outcome *stopped, mgl_error *err);

int mgl_feedback_count(const mgl_feedback *feedback); /* calls so far */
bool mgl_feedback_ended(const mgl_feedback *feedback);
/* The text that is good, with its verdict; NULL: none was found so far. */
const char *mgl_feedback_code(const mgl_feedback *feedback, size_t *length);
/* Of the last call; NULL before the first. */
const mgl_loop_verdict *mgl_feedback_verdict(const mgl_feedback *feedback);

/* What it remembers, as a member of an object, and back: of a loop that was just opened. */
void mgl_feedback_write(const mgl_feedback *feedback, mgl_json_out *out, const char *key);
mgl_status mgl_feedback_read(mgl_feedback *feedback, const mgl_json *json, const cJSON *object,
                             mgl_error *err);

#endif
