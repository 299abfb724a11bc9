/* Collects the facts of a function: each instruction adds rows of feature, value and count.
 * condense.c calls it. */
#ifndef MGL_AUTOTUNE_KERNELS_PTX_COLLECT_H
#define MGL_AUTOTUNE_KERNELS_PTX_COLLECT_H

#include "autotune/kernels/ptx/facts.h"
#include "autotune/kernels/ptx/form.h"

void mgl_ptx_collect(const mgl_ptx_flow *flow, mgl_ptx_forms *forms, mgl_ptx_facts *facts);

#endif
