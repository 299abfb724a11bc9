/*
 * The place of a weight format on the tape (schedule/tape.h). A row group of a segment is
 *
 *     [scales, then zero points or minimums, padded to whole blocks][its k blocks]
 *
 * The scales of a row group are in the order of their groups, then of its rows: one for each row,
 * or one for all rows if rows share scales. The zero points, a byte each, and the minimums, of the
 * dtype of the scales, have the same order.
 * Formats without scales, and formats with one scale for each row and no zero points, have no
 * scales on the tape: the latter are row factors, which multiply the outputs
 * (mgl_weight_format_has_factors).
 *
 * A row of a block has MGL_BLOCK_ROW_BYTES. Codes of 8 and 4 bits are interleaved, so that each of
 * its quarters of 16 bytes holds columns 8 q .. 8 q + 7 of every part of MGL_PART_COLUMNS columns,
 * as a block of 16-bit weights does:
 *
 *     8 bits    byte 16 q + 8 j + i            column 32 j + 8 q + i
 *     4 bits    nibble p of bytes 16 q + 4 j   column 32 j + 8 q + (0, 2, 4, 6, 1, 3, 5, 7)[p]
 */
#ifndef MGL_SCHEDULE_FORMATS_H
#define MGL_SCHEDULE_FORMATS_H

#include "base/weight_format.h"
#include "schedule/tape.h"

enum {
    /* Maximum columns of a block: whole blocks of every code, because columns are powers of 2. */
    MGL_FORMAT_COLUMNS = sizeof(union {
#define MGL_WEIGHT_CODE(id, name, bits, scaled, numbers) char id[MGL_BLOCK_ROW_BYTES * 8 / (bits)];
#include "base/weight_codes.def"
    })
};

/* Columns of a block. */
static inline int mgl_weight_code_columns(mgl_weight_code code)
{
    return mgl_tape_columns(mgl_weight_code_get(code)->bits);
}

/* Whether the scales are row factors: not on the tape, and multiplied with the outputs. */
static inline bool mgl_weight_format_has_factors(mgl_weight_format format)
{
    return mgl_weight_format_is_scaled(format) && format.group == MGL_GROUP_ALL && !format.zeros &&
           !mgl_weight_format_has_minimums(format);
}

/* Groups of a row of `columns` columns whose scales are on the tape. */
static inline int64_t mgl_tape_scale_groups(mgl_weight_format format, int64_t columns)
{
    return mgl_weight_format_has_factors(format) ? 0 : mgl_weight_format_groups(format, columns);
}

/* Scales of a group in a row group: one for each row, or one for all. */
static inline int mgl_tape_scale_rows(mgl_weight_format format)
{
    return format.group_rows == 1 ? MGL_ROW_GROUP : 1;
}

/* Bytes of the scales, zero points and minimums of a row group of `columns` columns, padded to
 * whole blocks. */
int64_t mgl_tape_scale_bytes(mgl_weight_format format, int64_t columns);
/* Bytes of a row group of `columns` columns: scales, then blocks. */
int64_t mgl_tape_group_bytes(mgl_weight_format format, int64_t columns);

/* The scale and the zero point of a row in the scales of its row group, which have `groups` groups.
 * Without stored zero points: mgl_weight_code_zero. */
float mgl_tape_scale(mgl_weight_format format, const void *scales, int64_t group, int row);
int mgl_tape_zero(mgl_weight_format format, const void *scales, int64_t groups, int64_t group,
                  int row);
/* The minimum of a row, for formats that have minimums. */
float mgl_tape_minimum(mgl_weight_format format, const void *scales, int64_t groups, int64_t group,
                       int row);
/* Stores them. A row that shares its scale stores it for all rows. `scale` is exact in the format's
 * dtype of scales, and so is `minimum`. */
void mgl_tape_put_scale(mgl_weight_format format, void *scales, int64_t group, int row,
                        float scale);
void mgl_tape_put_zero(mgl_weight_format format, void *scales, int64_t groups, int64_t group,
                       int row, int zero);

void mgl_tape_put_minimum(mgl_weight_format format, void *scales, int64_t groups, int64_t group,
                          int row, float minimum);

/* Packs `count` codes, one a byte, into a row of a block, and unpacks all codes of the row. Codes
 * after `count` are 0. */
void mgl_tape_pack_codes(mgl_weight_code code, void *row, const uint8_t *codes, int count);
void mgl_tape_unpack_codes(mgl_weight_code code, uint8_t *codes, const void *row);

/* Converts `count` numbers to weights of an unscaled code, and weights to floats. Unaligned memory
 * is allowed. */
void mgl_weight_code_encode(mgl_weight_code code, void *to, const void *from, mgl_dtype from_dtype,
                            size_t count);
void mgl_weight_code_decode(mgl_weight_code code, float *to, const void *from, size_t count);

/* Decodes a row of a scaled block to MGL_FORMAT_COLUMNS or fewer floats, the columns of the block:
 * (code - zero) * scale, code * scale + minimum, or code - zero if the scales are row factors.
 * `scales`: of the row group; `groups`: groups of the segment; `block`: index of the k block;
 * `row`: in the row group. Columns past the last group are 0. */
void mgl_tape_decode(mgl_weight_format format, float *to, const void *from, const void *scales,
                     int64_t groups, int64_t block, int row);

#endif
