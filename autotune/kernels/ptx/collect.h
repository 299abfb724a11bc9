/* What each instruction of a function adds to its facts. */
#ifndef MGL_AUTOTUNE_KERNELS_PTX_COLLECT_H
#define MGL_AUTOTUNE_KERNELS_PTX_COLLECT_H

#include "autotune/kernels/ptx/facts.h"
#include "autotune/kernels/ptx/form.h"

void mgl_ptx_collect(const mgl_ptx_flow *flow, mgl_ptx_forms *forms, mgl_ptx_facts *facts);
/* Buffers of a ring of cp.async, from how many groups may be open behind a wait; 0: there is none.
 */
int64_t mgl_ptx_count_stages(const mgl_ptx_flow *flow);

#endif
