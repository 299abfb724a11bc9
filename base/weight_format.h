/*
 * Weight formats: how the weights of a tensor are stored. A format is a code
 * (base/weight_codes.def) and, for scaled codes, which weights share a scale:
 *
 *     weight (r, c) = number(code(r, c), zero) * scale             rounded once to f32
 *     weight (r, c) = number(code(r, c)) * scale + minimum         uint4: product and sum are each
 *                                                                  rounded to f32
 *
 * where the scale, and the zero point or minimum, belong to group c / `group` of row r. The product
 * of a uint4 code and a scale of 16 bits is exact in f32, so such a weight is rounded once. The
 * importer finds the format of each tensor of a checkpoint. A program gives each of its tensors the
 * format on the tape. Codes, scales and zero points of a checkpoint are never changed.
 */
#ifndef MGL_BASE_WEIGHT_FORMAT_H
#define MGL_BASE_WEIGHT_FORMAT_H

#include "base/dtype.h"

typedef enum mgl_weight_code {
#define MGL_WEIGHT_CODE(id, ...) MGL_CODE_##id,
#include "base/weight_codes.def"
    MGL_CODE_COUNT
} mgl_weight_code;

typedef struct mgl_weight_code_info {
    const char *name;
    int bits;          /* bits of a weight */
    bool scaled;       /* weights have scales */
    mgl_dtype numbers; /* unscaled: the dtype of the weights */
} mgl_weight_code_info;

/* The row of a code. Inline, so that a compile-time constant code costs nothing. */
static inline const mgl_weight_code_info *mgl_weight_code_get(mgl_weight_code code)
{
    static const mgl_weight_code_info codes[] = {
#define MGL_WEIGHT_CODE(id, name, bits, scaled, numbers) {name, bits, scaled, MGL_##numbers},
#include "base/weight_codes.def"
    };
    return &codes[code];
}

static inline const char *mgl_weight_code_name(mgl_weight_code code)
{
    return mgl_weight_code_get(code)->name;
}

bool mgl_weight_code_parse(const char *name, mgl_weight_code *out); /* parses "bf16" */

enum {
    MGL_GROUP_ALL = 0,          /* `group`: a scale for all columns; `group_rows`: for all rows */
    MGL_GROUP_UNIT = 16,        /* other values of both are multiples of this */
    MGL_MAX_WEIGHT_GROUP = 1024 /* and at most this */
};

typedef struct mgl_weight_format {
    mgl_weight_code code;
    /* The rest is zero for unscaled codes. */
    mgl_dtype scales;   /* dtype of the scales: F32, BF16 or F16 */
    int32_t group;      /* columns that share a scale, or MGL_GROUP_ALL */
    int32_t group_rows; /* rows that share a scale: 1, or as `group` */
    bool zeros;         /* each scale has a zero point; int8 and int4 only */
} mgl_weight_format;

/* The format of unscaled numbers of a dtype, which is not MGL_I32. */
mgl_weight_format mgl_weight_format_of(mgl_dtype dtype);
/* Whether the weights are unscaled numbers of this dtype. */
bool mgl_weight_format_is(mgl_weight_format format, mgl_dtype dtype);
static inline bool mgl_weight_format_is_scaled(mgl_weight_format format)
{
    return mgl_weight_code_get(format.code)->scaled;
}
/* Whether each scale has a minimum, of the dtype of the scales. */
static inline bool mgl_weight_format_has_minimums(mgl_weight_format format)
{
    return format.code == MGL_CODE_UINT4;
}
/* Whether all fields are equal. */
bool mgl_weight_format_equal(mgl_weight_format a, mgl_weight_format b);
/* Whether the fields form a format. Any bytes are allowed. */
bool mgl_weight_format_valid(mgl_weight_format format);
/* A number that differs for different formats; for unscaled formats the number of the code. */
int64_t mgl_weight_format_number(mgl_weight_format format);

enum { MGL_WEIGHT_FORMAT_TEXT = 64 };
/* Prints a format as in the text form: "bf16", "int8 row f32", "e4m3 tensor f32", "int4 group 128
 * f16 zeros", "uint4 group 32 f16", "e4m3 block 128 128 f32" (rows, columns). Returns `to`. */
const char *mgl_weight_format_print(mgl_weight_format format, char to[MGL_WEIGHT_FORMAT_TEXT]);

/* What is wrong where a format was expected. */
typedef enum mgl_format_fault {
    MGL_FORMAT_READ,       /* nothing */
    MGL_FORMAT_NO_CODE,    /* the word is no code */
    MGL_FORMAT_NO_SHARING, /* the word is none of row, tensor, group and block */
    MGL_FORMAT_NO_GROUP,   /* the word is no number up to MGL_MAX_WEIGHT_GROUP */
    MGL_FORMAT_NO_DTYPE,   /* the word is no dtype */
    MGL_FORMAT_NO_SUCH_ONE /* the fields form no format */
} mgl_format_fault;
/* Reads a printed format from *at, before `end`: words of [a-z0-9_.-] behind blanks. Moves *at past
 * the format, or to the word that is wrong. */
mgl_format_fault mgl_weight_format_read(const char **at, const char *end, mgl_weight_format *out);

/* Scales of a row of `columns` columns. Unscaled: 0. */
int64_t mgl_weight_format_groups(mgl_weight_format format, int64_t columns);
/* Bits of a weight of `columns` columns, with its shares of a scale and a minimum or a zero point
 * of 8 bits, as printed by `info`. */
double mgl_weight_format_bits(mgl_weight_format format, int64_t rows, int64_t columns);

/* Bytes of `count` weights without scales. The result must be a whole number of bytes. */
static inline int64_t mgl_weight_code_bytes(mgl_weight_code code, int64_t count)
{
    return count * mgl_weight_code_get(code)->bits / 8;
}

/* The zero point of an integer code without stored zero points: 2^(bits - 1), or 0 of uint4. */
static inline int mgl_weight_code_zero(mgl_weight_code code)
{
    return code == MGL_CODE_UINT4 ? 0 : 1 << (mgl_weight_code_get(code)->bits - 1);
}

/* The number of a scaled code: u - zero, or the e4m3 number of the bits (`zero` is ignored). */
float mgl_weight_code_number(mgl_weight_code code, unsigned bits, int zero);

#endif
