/*
 * Verdicts: the results of a gate, a measurement or a whole trial of a candidate. The outcomes
 * (enum, names, exit codes and hints) are generated from the list in autotune/store/verdict.def.
 * Every result of a gate contains one mgl_trial_verdict. Used by the campaign, the runner, the
 * micro-kernels, the store, the reports and the commands.
 */
#ifndef MGL_AUTOTUNE_STORE_VERDICT_H
#define MGL_AUTOTUNE_STORE_VERDICT_H

#include "base/json.h"
#include "base/json_out.h"

enum { MGL_MAX_DIAGNOSTIC = 300 /* bytes; proposers read diagnostics */ };

typedef enum mgl_outcome {
#define MGL_OUTCOME(id, name, exit, hint) MGL_OUTCOME_##id,
#include "autotune/store/verdict.def"
    MGL_OUTCOME_COUNT
} mgl_outcome;

enum {
    MGL_EXIT_KEPT = 0,
    MGL_EXIT_NOT_KEPT = 10,
    MGL_EXIT_REFUSED = 11,
    MGL_EXIT_INCORRECT = 12,
    MGL_EXIT_UNMEASURED = 13,
    MGL_EXIT_FROZEN = 14
};

const char *mgl_outcome_name(mgl_outcome outcome); /* "NO_GAIN" */
int mgl_outcome_exit(mgl_outcome outcome);         /* MGL_EXIT_... */
const char *mgl_outcome_hint(mgl_outcome outcome); /* one sentence, at most 300 bytes */
/* Returns the hint for authors of micro-kernels: one sentence. */
const char *mgl_outcome_kernel_hint(mgl_outcome outcome);
/* False: no such name. */
bool mgl_outcome_parse(const char *name, mgl_outcome *out);

/* Whether the candidate ran and computed the model's result, kept or not, timed or not. */
bool mgl_outcome_is_correct(mgl_outcome outcome);
/* Whether further work may start from the candidate: it is correct, or it passed all gates and no
 * device was available. */
bool mgl_outcome_is_good(mgl_outcome outcome);

/* ---- the verdict ----------------------------------------------------------------------------- */

/* Measured numbers about the text of a micro-kernel. 0: unknown. */
typedef struct mgl_facts {
    double time_us;                   /* measured time of the op, in the measured context */
    double predicted_us;              /* time predicted by the cost model */
    double floor_us;                  /* lower bound from bytes and flops */
    double gain, gain_lo, gain_hi;    /* paired log ratio against the incumbent, with its confidence
                                       * interval; all 0: not timed */
    double registers;                 /* per thread */
    double spill_bytes, shared_bytes; /* spilled bytes per thread, shared bytes per block; valid if
                                       * `registers` is not 0 */
} mgl_facts;

/* Zero-initialized: MGL_OUTCOME_OK without a message. */
typedef struct mgl_trial_verdict {
    mgl_outcome outcome;
    int code; /* code of the validator if MGL_OUTCOME_REJECTED: 203 for MG203; else 0 */
    int line; /* line in the proposed text, from 1; 0: unknown */
    char diagnostic[MGL_MAX_DIAGNOSTIC + 1]; /* the first diagnostic, one line; "": none */
    mgl_facts
        facts; /* used only for micro-kernels; a campaign's trial stores its numbers elsewhere */
} mgl_trial_verdict;

/* Sets outcome and diagnostic; a long diagnostic is shortened in the middle. */
void mgl_trial_verdict_set(mgl_trial_verdict *verdict, mgl_outcome outcome, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Converts an error to a one-line diagnostic. Additional lines, such as a compiler's log, are
 * joined as far as there is room, without lines that only contain carets. A long single sentence is
 * shortened in the middle. */
void mgl_diagnostic_of(const mgl_error *why, char out[MGL_MAX_DIAGNOSTIC + 1]);
/* Sets the outcome of a failed step, with the error as the diagnostic. */
void mgl_trial_verdict_fail(mgl_trial_verdict *verdict, mgl_outcome outcome, const mgl_error *why);
/* Converts the status of a step that may have failed because of the candidate to a verdict. Lack of
 * memory and an interruption stay errors. */
mgl_status mgl_trial_verdict_of(mgl_trial_verdict *verdict, mgl_status status, mgl_outcome outcome,
                                const mgl_error *why, mgl_error *err);

/* Appends the verdict as a line without its end: "<CODE>: <diagnostic>". */
void mgl_trial_verdict_print(const mgl_trial_verdict *verdict, mgl_text *out);
/* Writes the members "outcome" and "diagnostic" of the open object, and reads them. */
void mgl_trial_verdict_put(mgl_json_out *out, const mgl_trial_verdict *verdict);
mgl_status mgl_trial_verdict_read(const mgl_json *json, const cJSON *object, mgl_trial_verdict *out,
                                  mgl_error *err);
/* The name of an outcome in a member "outcome". MGL_BAD_INPUT: missing, or no such outcome. */
mgl_status mgl_outcome_read(const mgl_json *json, const cJSON *object, mgl_outcome *out,
                            mgl_error *err);

#endif
