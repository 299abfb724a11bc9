/* Code of head that the reference and the CPU VM's fast code share: penalties and the best
 * logit. */
#ifndef MGL_INSTRUCTIONS_HEAD_HEAD_H
#define MGL_INSTRUCTIONS_HEAD_HEAD_H

#include "instructions/reference/reference.h"

/* Whether row r wants logits. */
static inline bool mgl_head_wants(const mgl_call *call, int r)
{
    return mgl_call_table(call, r)[MGL_TABLE_WANT] != MGL_WANT_NOTHING;
}

/* Writes the best value and id of row r, whose logits are complete, and its penalized logits if
 * the task has them. */
void mgl_head_best(const mgl_call *call, int r);

#endif
