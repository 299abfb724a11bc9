/*
 * Addresses as functions of the thread: how many bytes (or elements) a value grows from one thread,
 * lane or warp to the next, whether an exclusive or takes part (a swizzle), and whether something
 * else does that is not the same for all threads. The x dimension alone is looked at.
 */
#ifndef MGL_AUTOTUNE_KERNELS_PTX_FORM_H
#define MGL_AUTOTUNE_KERNELS_PTX_FORM_H

#include "autotune/kernels/ptx/flow.h"
#include "base/text.h"

typedef struct mgl_ptx_form {
    int64_t constant; /* added; all of it where the rest is 0 */
    int64_t thread, lane, warp;
    int64_t part; /* of a part of their bits: tid & 7, lane / 4 */
    bool swizzled;
    bool base;  /* of parameters and the grid: the same for all threads of a block */
    bool other; /* from memory, or what was not understood */
} mgl_ptx_form;

typedef struct mgl_ptx_forms {
    const mgl_ptx_flow *flow;
    mgl_ptx_form *forms;  /* (registers) */
    unsigned char *state; /* (registers) 0: not known yet, 1: being worked out, 2: known */
} mgl_ptx_forms;

mgl_status mgl_ptx_forms_make(const mgl_ptx_flow *flow, mgl_ptx_forms *out, mgl_error *err);
void mgl_ptx_forms_clear(mgl_ptx_forms *forms);
mgl_ptx_form mgl_ptx_form_of(mgl_ptx_forms *forms, const mgl_ptx_operand *operand);
/* "lane*16+warp*512^", "uniform". */
void mgl_ptx_form_write(const mgl_ptx_form *form, mgl_text *out);

#endif
