/* Implements unpack.h. */
#include "schedule/unpack.h"

void mgl_unpack_row(const mgl_program *program, const mgl_segment *segment, const void *tape,
                    int which, int64_t row, float *to)
{
    const mgl_weight_format format = mgl_segment_format(program, segment);
    const int64_t columns = mgl_weight_code_columns(format.code);
    const int64_t width = segment->col_hi - segment->col_lo;
    const int64_t blocks = mgl_segment_blocks(program, segment);
    int64_t group = row / MGL_ROW_GROUP;
    if (segment->layout == MGL_LAYOUT_G8X2)
        group = 2 * group + which;
    const char *scales =
        (const char *)tape + segment->offset + group * mgl_segment_group_bytes(program, segment);
    const char *from =
        scales + mgl_tape_scale_bytes(format, width) + row % MGL_ROW_GROUP * MGL_BLOCK_ROW_BYTES;
    for (int64_t b = 0, done = 0; b < blocks; b++, done += columns) {
        const char *at =
            from + (int64_t)mgl_tape_place_of_block((int)blocks, program->exec.warps, (int)b) *
                       MGL_BLOCK_BYTES;
        const size_t count = (size_t)(width - done < columns ? width - done : columns);
        float decoded[MGL_FORMAT_COLUMNS];
        if (!mgl_weight_format_is_scaled(format)) {
            mgl_weight_code_decode(format.code, to + done, at, count);
            continue;
        }
        mgl_tape_decode(format, decoded, at, scales, mgl_tape_scale_groups(format, width), b,
                        (int)(row % MGL_ROW_GROUP));
        memcpy(to + done, decoded, count * sizeof *to);
    }
}
