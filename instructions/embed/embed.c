/* Reference of embed: gathers the embedding rows of the epoch's tokens. */
#include "instructions/embed/embed.h"

void mgl_reference_gather(const mgl_call *call, const mgl_region *y, const mgl_region *copy)
{
    const mgl_region *from = MGL_CALL(call, embed, embedding);
    const mgl_buffer *embedding = mgl_call_buffer(call, from);
    int64_t row_bytes = embedding->extents[1].count * (int64_t)mgl_dtype_size(embedding->dtype);
    int64_t width = mgl_region_width(from, 1);
    const char *rows =
        mgl_call_at(call, from); /* (vocab, hidden), starting at the slice's first column */
    for (int r = 0; r < call->epoch->rows; r++) {
        mgl_convert(call->scratch, MGL_F32,
                    rows + mgl_call_table(call, r)[MGL_TABLE_TOKEN] * row_bytes, embedding->dtype,
                    (size_t)width);
        mgl_call_store(call, y, r, 0, width, call->scratch);
        if (copy)
            mgl_call_store(call, copy, r, 0, width, call->scratch);
    }
}

void mgl_reference_embed(const mgl_call *call)
{
    mgl_reference_gather(call, MGL_CALL(call, embed, y), MGL_CALL(call, embed, copy));
}
