/*
 * Weight formats of synthetic models by the values of the flags --dtype, --group and --head-dtype,
 * for `bench` and `tune`.
 */
#ifndef MGL_EVAL_WEIGHT_FLAGS_H
#define MGL_EVAL_WEIGHT_FLAGS_H

#include "base/error.h"
#include "base/weight_format.h"

/* The names: value syntax of the flags. */
#define MGL_WEIGHT_FLAG_NAMES "bf16|int8|int4|fp8"

/* Finds the code of a name of `length` bytes. */
bool mgl_weight_flag_find(const char *name, size_t length, mgl_weight_code *out);
/* Same. MGL_USAGE, with the flag's name: there is none. */
mgl_status mgl_weight_flag_read(const char *flag, const char *name, size_t length,
                                mgl_weight_code *out, mgl_error *err);

/* The format of a code with the group of --group; 0: the default group (int4: 128; int8 and fp8: a
 * row). Unscaled codes: {0}. */
mgl_weight_format mgl_weight_flag_format(mgl_weight_code code, int group);

/* The message for these flags with a quantized model. */
#define MGL_WEIGHT_FLAGS_NEED_NONE                                                                 \
    "the model is quantized, and its own formats are used; leave out these flags, or give the "    \
    "unquantized model"

/* MGL_USAGE: --group is neither 0, 16 nor a multiple of 32, or no format is scaled (`any_scaled`).
 */
mgl_status mgl_weight_flag_check_group(int group, bool any_scaled, mgl_error *err);

#endif
