/*
 * The evaluator interface of the loops that change a micro-kernel (pass engine, script engine). A
 * loop passes a text to the evaluator and gets a verdict. The loops contain no compiler and no
 * device code. The evaluator behind the interface is gate_evaluator.h, or a table in a test. This
 * header also declares the digest that identifies a text.
 */
#ifndef MGL_AUTOTUNE_KERNELS_METHODS_EVALUATOR_H
#define MGL_AUTOTUNE_KERNELS_METHODS_EVALUATOR_H

#include "autotune/kernels/gates/kernel.h"
#include "base/sha256.h"

/* Evaluates a text (length) with values of tunables (count). A fault of the text is a verdict. The
 * function fails only if memory runs out or the evaluator itself cannot work. The caller presets
 * *out to zeros. */
typedef mgl_status mgl_evaluate_fn(void *user, const char *text, size_t length,
                                   const mgl_kernel_value *values, int count,
                                   mgl_trial_verdict *out, mgl_error *err);
typedef struct mgl_evaluator {
    mgl_evaluate_fn *evaluate;
    void *user;
} mgl_evaluator;

/* Identifies a text by its words: the amount of whitespace does not matter. */
typedef struct mgl_digest {
    char hex[MGL_SHA256_HEX];
} mgl_digest;
mgl_digest mgl_digest_text(const char *text, size_t length);

#endif
