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

/* Judges a text (length). A fault of the text is a verdict. The function fails only if memory
 * runs out or the judge itself cannot work. The caller presets *out to zeros. */
typedef mgl_status mgl_judge_fn(void *user, const char *text, size_t length,
                                const mgl_tunable_value *values, int count, mgl_trial_verdict *out,
                                mgl_error *err);
typedef struct mgl_loop_judge {
    mgl_judge_fn *judge;
    void *user;
} mgl_loop_judge;

/* Identifies a text by its words: the amount of whitespace does not matter. */
typedef struct mgl_digest {
    char hex[MGL_SHA256_HEX];
} mgl_digest;
mgl_digest mgl_digest_text(const char *text, size_t length);

#endif
