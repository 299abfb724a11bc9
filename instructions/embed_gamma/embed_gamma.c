/* Reference of embed_gamma: embed, and its columns gamma_scaled by the norm of the first
 * layer. */
#include "instructions/embed/embed.h"

void mgl_reference_embed_gamma(const mgl_call *call)
{
    const mgl_region *y = MGL_CALL(call, embed_gamma, y);
    mgl_reference_gather(call, y, NULL);
    mgl_call_scale_by_gamma(call, y, MGL_CALL(call, embed_gamma, g), MGL_CALL(call, embed_gamma, n),
                            MGL_CALL(call, embed_gamma, s));
}
