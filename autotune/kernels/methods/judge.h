/*
 * The judge of a loop: who proposes hands in text, and reads back an outcome, a diagnostic, and
 * facts. The loops know no compiler and no device; what stands behind the judge may be the gates of
 * micro-kernels, or a table of a test.
 */
#ifndef MGL_AUTOTUNE_KERNELS_METHODS_JUDGE_H
#define MGL_AUTOTUNE_KERNELS_METHODS_JUDGE_H

#include "autotune/store/record.h"
#include "base/sha256.h"

/* A tunable's value: of `tile` the text has TUNE_TILE. */
typedef struct mgl_tunable_value {
    const char *name;
    int64_t value;
} mgl_tunable_value;

/* What is known of a text beside its outcome. Numbers that nobody measured are NAN. */
typedef struct mgl_facts {
    double time_us;      /* of the op, in the context that was measured */
    double predicted_us; /* by the cost model */
    double gain, gain_lo,
        gain_hi;     /* of the paired log ratio against the incumbent, with interval */
    double floor_us; /* that bytes and flops take at least */
    double registers, spill_bytes, shared_bytes; /* of a thread, of a thread, of a block */
} mgl_facts;
mgl_facts mgl_facts_unknown(void);

typedef struct mgl_loop_verdict {
    mgl_outcome outcome;
    char diagnostic[MGL_MAX_DIAGNOSTIC + 1]; /* first diagnostic: file, line, what; "": none */
    mgl_facts facts;
} mgl_loop_verdict;

/* Judges a text (length). Fails only where memory runs out, or the judge itself can not work: what
 * is wrong with the text is an outcome. *out is filled with unknown facts and OK before. */
typedef mgl_status mgl_judge_fn(void *user, const char *text, size_t length,
                                const mgl_tunable_value *values, int count, mgl_loop_verdict *out,
                                mgl_error *err);
typedef struct mgl_loop_judge {
    mgl_judge_fn *judge;
    void *user;
} mgl_loop_judge;

/* Whether a loop may stand on the text: it is correct, or passed all gates where nobody can
 * measure. */
bool mgl_outcome_is_good(mgl_outcome outcome);

/* One sentence for whoever writes texts of micro-kernels: mgl_outcome_hint, but where that speaks
 * of schedules. */
const char *mgl_loop_hint(mgl_outcome outcome);

/* Names a text by its words: blanks and line ends between them do not count. */
typedef struct mgl_digest {
    char hex[MGL_SHA256_HEX];
} mgl_digest;
mgl_digest mgl_digest_text(const char *text, size_t length);

#endif
