/*
 * Edit span: one region of a micro-kernel's text that a model rewrites. Input: the text of a unit,
 * the one editable region, and an instruction. Output: the whole text with the new body. An edit
 * span is a feedback loop. Its task is built from the prompt templates in
 * autotune/kernels/methods/prompts. Its evaluator puts the answer into the text and evaluates the
 * result.
 *
 * An answer is the body of the region, or the whole text with its region marks. In a whole text, no
 * byte outside the region may differ (REGION_VIOLATION). If `broken` is set, this is the only
 * check.
 *
 * The pass engine and the rounds open edit spans.
 */
#ifndef MGL_AUTOTUNE_KERNELS_METHODS_EDIT_SPAN_H
#define MGL_AUTOTUNE_KERNELS_METHODS_EDIT_SPAN_H

#include "autotune/kernels/gates/unit.h"
#include "autotune/kernels/methods/feedback.h"
#include "autotune/kernels/methods/transformation.h"

/* Options shared by all edit spans of a run. All pointers are borrowed and outlive the span. */
typedef struct mgl_work {
    const char *unit, *op, *arch;
    const char *context; /* description of operands and budgets */
    const char *known;   /* lines of background.h, quoted as data; NULL: none */
    const char *model;   /* model name of the endpoint */
    uint64_t seed;
    mgl_evaluator evaluator; /* evaluates whole texts */
    void (*on_call)(void *user, const mgl_feedback_call *call);
    void *user;
} mgl_work;

/* The position of an edit span in a transformation. */
typedef struct mgl_place {
    const mgl_transformation *transformation; /* NULL: none, the instruction is complete in
                                               * itself */
    int pass, region;                         /* indices of the pass and of its region in the
                                               * transformation */
} mgl_place;

typedef struct mgl_edit_span mgl_edit_span;
/* The text is copied. `calls`: limit of calls; 0: MGL_FEEDBACK_CALLS. `broken`: only changes
 * outside the region are rejected. MGL_BAD_INPUT: the text has no such region. */
typedef struct mgl_edit_span_options {
    const mgl_work *work;
    const char *text; /* (length) */
    size_t length;
    const char *instruction;
    mgl_kernel_region region;
    mgl_place place;
    int calls;
    bool broken;
} mgl_edit_span_options;
mgl_status mgl_edit_span_open(const mgl_edit_span_options *options, mgl_edit_span **out,
                              mgl_error *err);
void mgl_edit_span_close(mgl_edit_span *span); /* NULL is fine */

mgl_feedback *mgl_edit_span_loop(mgl_edit_span *span);
/* The text at the start. */
const char *mgl_edit_span_before(const mgl_edit_span *span, size_t *length);
/* The whole text with the accepted body; NULL: no good body so far. */
const char *mgl_edit_span_text(const mgl_edit_span *span, size_t *length);

#endif
