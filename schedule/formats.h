/*
 * The place of a weight format on the tape (schedule/tape.h): columns of a block, bytes of a row
 * group, and the conversion between numbers and the weights of a block.
 */
#ifndef MGL_SCHEDULE_FORMATS_H
#define MGL_SCHEDULE_FORMATS_H

#include "base/weight_format.h"
#include "schedule/tape.h"

enum {
    /* Maximum columns of a block: whole blocks of every code, because columns are powers of 2. */
    MGL_FORMAT_COLUMNS = sizeof(union {
#define MGL_CODE(id, name, bits, numbers) char id[MGL_BLOCK_ROW_BYTES * 8 / (bits)];
#include "base/weight_codes.def"
    })
};

/* Columns of a block. */
static inline int mgl_weight_code_columns(mgl_weight_code code)
{
    return mgl_tape_columns(mgl_weight_code_get(code)->bits);
}

/* Bytes of a row group of `blocks` k blocks. */
int64_t mgl_weight_format_group_bytes(mgl_weight_format format, int64_t blocks);

/* Converts `count` numbers to weights of an unscaled code, and weights to floats. Unaligned memory
 * is allowed. */
void mgl_weight_code_encode(mgl_weight_code code, void *to, const void *from, mgl_dtype from_dtype,
                            size_t count);
void mgl_weight_code_decode(mgl_weight_code code, float *to, const void *from, size_t count);

#endif
