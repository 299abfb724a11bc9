/*
 * One place of a micro-kernel's text that is asked for: a unit's text, the one region of it that
 * may be edited, and the instruction. A site is a feedback loop whose task is made of the prompts
 * of autotune/kernels/methods/prompts, and whose judge puts what was taken into the text: an answer
 * is the body of the region, or the whole text with its marks, of which no byte outside of the
 * region may differ (REGION_VIOLATION). Where broken texts are allowed, that is all that is looked
 * at.
 */
#ifndef MGL_AUTOTUNE_KERNELS_METHODS_EDIT_SPAN_H
#define MGL_AUTOTUNE_KERNELS_METHODS_EDIT_SPAN_H

#include "autotune/kernels/gates/unit.h"
#include "autotune/kernels/methods/feedback.h"
#include "autotune/kernels/methods/transformation.h"

/* What every site of a run has. Everything is lent, and outlives the site. */
typedef struct mgl_work {
    const char *unit, *op, *arch;
    const char *context; /* operands, budgets, hardware: data, in words */
    const char *model;   /* of the endpoint */
    int max_tokens;      /* 0: MGL_FEEDBACK_TOKENS */
    uint64_t seed;
    mgl_loop_judge judge; /* of whole texts */
    void (*on_call)(void *user, const mgl_feedback_call *call);
    void *user;
} mgl_work;

/* Where a site stands in a transformation. */
typedef struct mgl_place {
    const mgl_transformation *transformation; /* NULL: none, the instruction stands for itself */
    int pass, region;                         /* of the transformation, from 0 */
} mgl_place;

typedef struct mgl_edit_span mgl_edit_span;
/* The text is copied. `calls`: at most; 0: MGL_FEEDBACK_CALLS. `broken`: nothing but the region is
 * looked at. MGL_BAD_INPUT: the text has no such region. */
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
/* The text that it began with. */
const char *mgl_edit_span_before(const mgl_edit_span *span, size_t *length);
/* The whole text with what was taken; NULL: nothing good was so far. */
const char *mgl_edit_span_text(const mgl_edit_span *span, size_t *length);

#endif
