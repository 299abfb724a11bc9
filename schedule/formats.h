/*
 * Weight formats (schedule/formats.def): bits of a weight on the tape, columns of a block, and the
 * dtype that weights decode to. Sizes are counted in bits, so that a weight may take less than a
 * byte.
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
    int bits;          /* bits of a weight */
    int columns;       /* columns of a block */
    int scale_bytes;   /* bytes of scales of a block; 0: unscaled numbers */
    mgl_dtype numbers; /* dtype that a weight decodes to */
} mgl_weight_format_info;

enum {
    /* maximum columns of a block: whole blocks of every format, because columns are powers of 2 */
    MGL_FORMAT_COLUMNS = sizeof(union {
#define MGL_FORMAT(id, name, bits, columns, scales, numbers) char id[columns];
#include "schedule/formats.def"
    })
};

/* The row of a format. Inline, so that a compile-time constant format costs nothing. */
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

bool mgl_weight_format_parse(const char *name, mgl_weight_format *out); /* parses "bf16" */

/* Whether weights of the format are unscaled numbers of this dtype. */
bool mgl_weight_format_is(mgl_weight_format format, mgl_dtype dtype);
/* The format whose weights are unscaled numbers of this dtype. False: there is none. */
bool mgl_weight_format_of(mgl_dtype dtype, mgl_weight_format *out);

/* Bytes of `count` weights without scales. The result must be a whole number of bytes. */
int64_t mgl_weight_format_bytes(mgl_weight_format format, int64_t count);
/* Bytes of a row group of `blocks` k blocks: the blocks, then their scales padded to whole
 * blocks. */
int64_t mgl_weight_format_group_bytes(mgl_weight_format format, int64_t blocks);

/* Converts `count` numbers to weights of the format, and weights to floats. Unaligned memory is
 * allowed. */
void mgl_weight_format_encode(mgl_weight_format format, void *to, const void *from,
                              mgl_dtype from_dtype, size_t count);
void mgl_weight_format_decode(mgl_weight_format format, float *to, const void *from, size_t count);

#endif
