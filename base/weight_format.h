/*
 * Weight formats: how the weights of a tensor are stored. A format is a code
 * (base/weight_codes.def) and, for codes with scales, which weights share a scale.
 *
 *     unscaled    the weights are numbers of a dtype
 *
 * The importer gives each tensor of a checkpoint its format. A program gives each of its tensors
 * the format on the tape.
 */
#ifndef MGL_BASE_WEIGHT_FORMAT_H
#define MGL_BASE_WEIGHT_FORMAT_H

#include "base/dtype.h"

typedef enum mgl_weight_code {
#define MGL_CODE(id, ...) MGL_CODE_##id,
#include "base/weight_codes.def"
    MGL_CODE_COUNT
} mgl_weight_code;

typedef struct mgl_weight_code_info {
    const char *name;
    int bits;          /* bits of a weight */
    mgl_dtype numbers; /* dtype of the numbers that the codes stand for */
} mgl_weight_code_info;

/* The row of a code. Inline, so that a compile-time constant code costs nothing. */
static inline const mgl_weight_code_info *mgl_weight_code_get(mgl_weight_code code)
{
    static const mgl_weight_code_info codes[] = {
#define MGL_CODE(id, name, bits, numbers) {name, bits, MGL_##numbers},
#include "base/weight_codes.def"
    };
    return &codes[code];
}

static inline const char *mgl_weight_code_name(mgl_weight_code code)
{
    return mgl_weight_code_get(code)->name;
}

bool mgl_weight_code_parse(const char *name, mgl_weight_code *out); /* parses "bf16" */

typedef struct mgl_weight_format {
    mgl_weight_code code;
} mgl_weight_format;

/* The format of unscaled numbers of a dtype, which is not MGL_I32. */
mgl_weight_format mgl_weight_format_of(mgl_dtype dtype);
/* Whether the weights are unscaled numbers of this dtype. */
bool mgl_weight_format_is(mgl_weight_format format, mgl_dtype dtype);
/* Whether all fields are equal. */
bool mgl_weight_format_equal(mgl_weight_format a, mgl_weight_format b);
/* Whether the fields form a format. Any bytes are allowed. */
bool mgl_weight_format_valid(mgl_weight_format format);

enum { MGL_WEIGHT_FORMAT_TEXT = 64 };
/* Prints a format as in the text form: "bf16". Returns `to`. */
const char *mgl_weight_format_print(mgl_weight_format format, char to[MGL_WEIGHT_FORMAT_TEXT]);

/* Bytes of `count` weights without scales. The result must be a whole number of bytes. */
static inline int64_t mgl_weight_code_bytes(mgl_weight_code code, int64_t count)
{
    return count * mgl_weight_code_get(code)->bits / 8;
}

#endif
