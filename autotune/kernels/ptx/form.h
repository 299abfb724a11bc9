/*
 * Affine address analysis: the form of a value as a function of the thread. It contains the
 * increment (bytes or elements) per thread, lane and warp, whether an exclusive or occurs (a
 * swizzle), and whether unknown values that differ between threads occur. Only the x dimension is
 * analyzed. The fact collector (collect.c) uses it.
 */
#ifndef MGL_AUTOTUNE_KERNELS_PTX_FORM_H
#define MGL_AUTOTUNE_KERNELS_PTX_FORM_H

#include "autotune/kernels/ptx/flow.h"
#include "base/text.h"

typedef struct mgl_ptx_form {
    int64_t constant; /* additive constant; the whole value if everything else is 0 */
    int64_t thread, lane, warp;
    int64_t part; /* factor of a value made of some bits of the thread number, such as tid & 7 */
    bool swizzled;
    bool base;  /* parameters or the grid position are added; they are equal for all threads of a
                 * block */
    bool other; /* a part of the value is loaded from memory or not understood */
} mgl_ptx_form;

typedef struct mgl_ptx_forms {
    const mgl_ptx_flow *flow;
    mgl_ptx_form *forms;  /* (registers) */
    unsigned char *state; /* (registers) 0: unknown, 1: in progress, 2: known */
} mgl_ptx_forms;

mgl_status mgl_ptx_forms_make(const mgl_ptx_flow *flow, mgl_ptx_forms *out, mgl_error *err);
void mgl_ptx_forms_clear(mgl_ptx_forms *forms);
mgl_ptx_form mgl_ptx_form_of(mgl_ptx_forms *forms, const mgl_ptx_operand *operand);
/* For example "lane*16+warp*512^", "uniform". */
void mgl_ptx_form_write(const mgl_ptx_form *form, mgl_text *out);

#endif
