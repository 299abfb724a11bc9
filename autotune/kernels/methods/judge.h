/*
 * Judge interface of the loops. A loop hands in a text and gets an outcome, a diagnostic and facts.
 * The loops contain no compiler and no device code. The judge behind the interface is gates.h, or a
 * table in a test.
 */
#ifndef MGL_AUTOTUNE_KERNELS_METHODS_JUDGE_H
#define MGL_AUTOTUNE_KERNELS_METHODS_JUDGE_H

#include "autotune/store/record.h"
#include "base/sha256.h"

/* The value of a tunable: tunable `tile` is TUNE_TILE in the text. */
typedef struct mgl_tunable_value {
    const char *name;
    int64_t value;
} mgl_tunable_value;

/* Facts about a text besides the outcome. Unmeasured numbers are NAN. */
typedef struct mgl_facts {
    double time_us;      /* of the op, in the measured context */
    double predicted_us; /* by the cost model */
    double gain, gain_lo,
        gain_hi;     /* paired log ratio against the incumbent, with its confidence interval */
    double floor_us; /* lower bound from bytes and flops */
    double registers, spill_bytes, shared_bytes; /* per thread, per thread, per block */
} mgl_facts;
mgl_facts mgl_facts_unknown(void);

typedef struct mgl_loop_verdict {
    mgl_outcome outcome;
    char diagnostic[MGL_MAX_DIAGNOSTIC + 1]; /* first diagnostic: file, line, what; "": none */
    mgl_facts facts;
} mgl_loop_verdict;

/* Judges a text (length). A fault of the text is an outcome. The function fails only if memory
 * runs out or the judge itself cannot work. The caller presets *out to OK with unknown facts. */
typedef mgl_status mgl_judge_fn(void *user, const char *text, size_t length,
                                const mgl_tunable_value *values, int count, mgl_loop_verdict *out,
                                mgl_error *err);
typedef struct mgl_loop_judge {
    mgl_judge_fn *judge;
    void *user;
} mgl_loop_judge;

/* Whether a loop may continue from the text: the text is correct, or it passed all gates and no
 * device was available. */
bool mgl_outcome_is_good(mgl_outcome outcome);

/* One sentence for authors of micro-kernels. Replaces mgl_outcome_hint where that hint is about
 * schedules. */
const char *mgl_loop_hint(mgl_outcome outcome);

/* Identifies a text by its words: the amount of whitespace does not matter. */
typedef struct mgl_digest {
    char hex[MGL_SHA256_HEX];
} mgl_digest;
mgl_digest mgl_digest_text(const char *text, size_t length);

#endif
