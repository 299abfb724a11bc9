/* What attend_past and attend_tail share: writing the partials of one split. */
#ifndef MGL_INSTRUCTIONS_ATTEND_PAST_PARTIAL_H
#define MGL_INSTRUCTIONS_ATTEND_PAST_PARTIAL_H

#include "instructions/reference.h"

/* part[i, r, h, :] of all rows and of the heads of region `part`; a->split and a->splits are taken
 * from that region. */
void mgl_attention_partial(const mgl_call *call, mgl_attention *a, const mgl_region *part);

#endif
