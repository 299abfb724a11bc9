/*
 * The real checkpoint: what the default and the winner of a campaign make of it, compared. Trials
 * run on synthetic weights, which say whether a program computes what the model does; the user's
 * own weights say it once more where it counts.
 *
 * Both programs continue the same prompts greedily, and score the same texts. A text that stands in
 * the binary is encoded by the model's own tokenizer, so that nobody has to bring one. Tokens and
 * likelihoods come from a worker (runner_real.c); they are judged here, by whoever started it.
 */
#ifndef MGL_AUTOTUNE_RUNNER_REAL_H
#define MGL_AUTOTUNE_RUNNER_REAL_H

#include "autotune/search/gate.h"
#include "base/json_out.h"
#include "eval/paired_bench.h"

enum {
    MGL_REAL_TEXTS = MGL_MAX_ROWS, /* so that all rows of an epoch of the first list have one */
    MGL_REAL_LENGTH = 64,          /* tokens of a text, at most */
    MGL_REAL_PROMPT = 16           /* of these, what a reply continues */
};

/*
 * How far two programs may be from each other. tests/vm/test_golden.c allows a machine of bf16
 * weights and f32 sums 3e-3 of the likelihood of a token (nats, the mean of all), and other greedy
 * tokens where the f32 logits of both are within 0.2. Default and winner are each as far from f32,
 * in whatever direction, so that the sum of both is allowed between them. A winner of other number
 * formats may have 1.25 of the default's error (MGL_ERROR_SHARE).
 */
#define MGL_REAL_NLL 3e-3
#define MGL_REAL_GAP 0.2

/* What both programs are given. */
typedef struct mgl_real_texts {
    const char *path;                              /* of the checkpoint; lent */
    int32_t ids[MGL_REAL_TEXTS * MGL_REAL_LENGTH]; /* (MGL_REAL_TEXTS, length) */
    int32_t length;                                /* tokens of a text */
} mgl_real_texts;

/* Encodes the texts. MGL_BAD_INPUT and the like: the checkpoint can not be looked at, and why. */
mgl_status mgl_real_open(const char *path, const mgl_subject *subject, mgl_real_texts *out,
                         mgl_error *err);

/* What came out, of each mgl_side: the default's stands at MGL_INCUMBENT. All are (texts, length).
 */
typedef float mgl_real_scores[MGL_REAL_TEXTS * MGL_REAL_LENGTH];
typedef struct mgl_real_numbers {
    /* the prompt and the tokens that were made behind it */
    int32_t made[MGL_SIDES][MGL_REAL_TEXTS * MGL_REAL_LENGTH];
    mgl_real_scores scores[MGL_SIDES];  /* ln p of each token of the texts; [0] of a text is 0 */
    mgl_real_scores of_made[MGL_SIDES]; /* likewise of `made`, by the default; where replies part */
} mgl_real_numbers;

/* What is told of it. */
typedef struct mgl_real_facts {
    bool checked;            /* both programs ran on the checkpoint */
    int texts, parted;       /* replies of all programs; those that part where tokens are close */
    double nll, nll_default; /* nats a token, the mean of all programs */
    char note[MGL_MAX_DIAGNOSTIC + 1]; /* why nothing was checked; "": there was no checkpoint */
} mgl_real_facts;

/* Judges one program, of so many sequences, and adds it to the facts. MGL_OUTCOME_OK, or
 * MGL_OUTCOME_MODEL_MISMATCH with a diagnostic. */
mgl_outcome mgl_real_judge(const mgl_real_texts *texts, const mgl_real_numbers *numbers,
                           int sequences, bool narrow, mgl_real_facts *facts,
                           char diagnostic[MGL_MAX_DIAGNOSTIC + 1]);

/* As the member "checkpoint" of an object: checked, replies, parted, nll, nll_default, note. */
void mgl_real_put(mgl_json_out *out, const mgl_real_facts *facts);

#endif
