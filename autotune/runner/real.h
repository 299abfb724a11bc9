/*
 * The check on the real checkpoint: compares the default and the winner of a campaign on the user's
 * own weights. Trials use synthetic weights, which show whether a program computes the model; this
 * check confirms it on the real weights.
 *
 * Both programs continue the same prompts greedily and score the same texts. The text is built into
 * the binary and encoded by the model's tokenizer. Tokens and likelihoods come from a worker
 * (runner_real.c) and are compared in the campaign's process. Called by campaign_final.c.
 */
#ifndef MGL_AUTOTUNE_RUNNER_REAL_H
#define MGL_AUTOTUNE_RUNNER_REAL_H

#include "autotune/candidates/gate.h"
#include "base/json_out.h"
#include "eval/paired_bench.h"

/* largest allowed error of a candidate with other number formats, as a multiple of the default's
 * error */
#define MGL_ERROR_SHARE 1.25

enum {
    MGL_REAL_TEXTS = MGL_MAX_ROWS, /* one for each row of an epoch of the first list */
    MGL_REAL_LENGTH = 64,          /* tokens of a text, at most */
    MGL_REAL_PROMPT = 16           /* prompt length in tokens; the reply continues it */
};

/*
 * Allowed differences of the two programs. tests/vm/test_golden.c allows a machine with bf16
 * weights and f32 sums a difference of 3e-3 in the mean negative log-likelihood (nats a token). It
 * allows other greedy tokens if the f32 logits of both are within 0.2. Default and winner may each
 * differ from f32 by as much, in any direction, so twice these values are allowed between them. A
 * winner with other number formats may have 1.25 times the default's error (MGL_ERROR_SHARE).
 */
#define MGL_REAL_NLL 3e-3
#define MGL_REAL_GAP 0.2

/* The input of both programs. */
typedef struct mgl_real_texts {
    const char *path;                              /* path of the checkpoint; borrowed */
    int32_t ids[MGL_REAL_TEXTS * MGL_REAL_LENGTH]; /* (MGL_REAL_TEXTS, length) */
    int32_t length;                                /* tokens of a text */
} mgl_real_texts;

/* Encodes the texts. An error such as MGL_BAD_INPUT explains why the checkpoint cannot be used. */
mgl_status mgl_real_open(const char *path, const mgl_subject *subject, mgl_real_texts *out,
                         mgl_error *err);

/* The results of each mgl_side; the default uses MGL_INCUMBENT. All are (texts, length). */
typedef float mgl_real_scores[MGL_REAL_TEXTS * MGL_REAL_LENGTH];
typedef struct mgl_real_numbers {
    /* the prompt and the generated tokens */
    int32_t made[MGL_SIDES][MGL_REAL_TEXTS * MGL_REAL_LENGTH];
    mgl_real_scores scores[MGL_SIDES]; /* ln p of each token of the texts; [0] of a text is 0 */
    /* ln p of `made` under the default, computed only if the replies differ */
    mgl_real_scores of_made[MGL_SIDES];
} mgl_real_numbers;

/* Summary of the check. */
typedef struct mgl_real_facts {
    bool checked; /* both programs ran on the checkpoint */
    /* replies of all programs; replies that differ at tokens with close likelihoods */
    int texts, parted;
    double nll, nll_default;           /* nats a token, the mean over all programs */
    char note[MGL_MAX_DIAGNOSTIC + 1]; /* why nothing was checked; "": there is no checkpoint */
} mgl_real_facts;

/* Compares one program for a number of sequences, and adds the result to the facts. The verdict is
 * MGL_OUTCOME_OK or MGL_OUTCOME_MODEL_MISMATCH. */
void mgl_real_compare(const mgl_real_texts *texts, const mgl_real_numbers *numbers, int sequences,
                      bool changes_format, mgl_real_facts *facts, mgl_trial_verdict *verdict);

/* Writes the JSON member "checkpoint": checked, replies, parted, nll, nll_default, note. */
void mgl_real_put(mgl_json_out *out, const mgl_real_facts *facts);

#endif
