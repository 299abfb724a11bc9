/*
 * Formats of weights, as schedule/formats.def lists them: how many bits a weight has on the tape,
 * how many columns a block, and what numbers it is decoded to. Sizes are counted in bits, so that
 * a format may have less than a byte a weight.
 */
#ifndef MGL_SCHEDULE_FORMATS_H
#define MGL_SCHEDULE_FORMATS_H

#include "base/dtype.h"
#include "schedule/tape.h"

typedef enum mgl_weight_format {
#define MGL_FORMAT(id, ...) MGL_FORMAT_##id,
#include "schedule/formats.def"
    MGL_FORMAT_COUNT
} mgl_weight_format;

typedef struct mgl_weight_format_info {
    const char *name;
    int bits;          /* of a weight */
    int columns;       /* of a block */
    int scale_bytes;   /* of a block; 0: a weight is a number as it stands */
    mgl_dtype numbers; /* what a weight is decoded to */
} mgl_weight_format_info;

enum {
    /* the most columns that a block has: whole blocks of any format, as columns are powers of 2 */
    MGL_FORMAT_COLUMNS = sizeof(union {
#define MGL_FORMAT(id, name, bits, columns, scales, numbers) char id[columns];
#include "schedule/formats.def"
    })
};

/* The row of a format. In the header, so that a format that the compiler knows costs nothing. */
static inline const mgl_weight_format_info *mgl_weight_format_get(mgl_weight_format format)
{
    static const mgl_weight_format_info formats[] = {
#define MGL_FORMAT(id, name, bits, columns, scales, numbers)                                       \
    {name, bits, columns, scales, MGL_##numbers},
#include "schedule/formats.def"
    };
    return &formats[format];
}

static inline const char *mgl_weight_format_name(mgl_weight_format format)
{
    return mgl_weight_format_get(format)->name;
}

bool mgl_weight_format_parse(const char *name, mgl_weight_format *out); /* "bf16" */

/* Whether weights of the format are numbers of this dtype as they stand. */
bool mgl_weight_format_is(mgl_weight_format format, mgl_dtype dtype);
/* The format of which that is so; false: there is none. */
bool mgl_weight_format_of(mgl_dtype dtype, mgl_weight_format *out);

/* Bytes of so many weights, scales not counted; a count that is whole bytes. */
int64_t mgl_weight_format_bytes(mgl_weight_format format, int64_t count);
/* Bytes of a row group of so many k blocks: the blocks, and their scales in whole blocks. */
int64_t mgl_weight_format_group_bytes(mgl_weight_format format, int64_t blocks);

/* `count` numbers as weights of the format, and weights as floats. Unaligned memory is fine. */
void mgl_weight_format_encode(mgl_weight_format format, void *to, const void *from,
                              mgl_dtype from_dtype, size_t count);
void mgl_weight_format_decode(mgl_weight_format format, float *to, const void *from, size_t count);

#endif
