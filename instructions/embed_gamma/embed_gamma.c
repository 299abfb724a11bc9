/* Reference of embed_weighed: embed, and its columns gamma_scaled by the norm of the first
 * layer. */
#include "instructions/embed/embed.h"

void mgl_reference_embed_weighed(const mgl_call *call)
{
    const mgl_region *y = MGL_CALL(call, embed_weighed, y);
    mgl_reference_gather(call, y, NULL);
    for (int r = 0; r < call->epoch->rows; r++)
        mgl_call_scale_by_gamma(call, r, y, MGL_CALL(call, embed_weighed, g),
                                MGL_CALL(call, embed_weighed, n), MGL_CALL(call, embed_weighed, s),
                                call->scratch);
}
