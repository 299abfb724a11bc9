/* Implements weight_flags.h. */
#include "eval/weight_flags.h"

#include <string.h>

#include "schedule/tape.h"

bool mgl_weight_flag_find(const char *name, size_t length, mgl_weight_code *out)
{
    static const struct {
        const char *name;
        mgl_weight_code code;
    } codes[] = {{"bf16", MGL_CODE_BF16},
                 {"int8", MGL_CODE_INT8},
                 {"int4", MGL_CODE_INT4},
                 {"fp8", MGL_CODE_E4M3}};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (strlen(codes[i].name) == length && !strncmp(codes[i].name, name, length))
            return *out = codes[i].code, true;
    return false;
}

mgl_status mgl_weight_flag_read(const char *flag, const char *name, size_t length,
                                mgl_weight_code *out, mgl_error *err)
{
    if (mgl_weight_flag_find(name, length, out))
        return MGL_OK;
    return mgl_fail(err, MGL_USAGE, flag,
                    "unknown format: \"%.*s\"; supported: bf16, int8, int4, fp8",
                    (int)(length < 40 ? length : 40), name);
}

mgl_weight_format mgl_weight_flag_format(mgl_weight_code code, int group)
{
    const int preset = code == MGL_CODE_INT4 ? 128 : MGL_GROUP_ALL;
    if (!mgl_weight_code_get(code)->scaled)
        return (mgl_weight_format){0};
    group = group ? group : preset;
    return (mgl_weight_format){.code = code,
                               .scales = code != MGL_CODE_E4M3 && group ? MGL_F16 : MGL_F32,
                               .group = group,
                               .group_rows = code == MGL_CODE_E4M3 && group ? group : 1};
}

mgl_status mgl_weight_flag_check_group(int group, bool any_scaled, mgl_error *err)
{
    if (group % MGL_PART_COLUMNS && group != MGL_PART_COLUMNS / 2)
        return mgl_fail(err, MGL_USAGE, "--group", "neither %d nor a multiple of %d: %d",
                        MGL_PART_COLUMNS / 2, MGL_PART_COLUMNS, group);
    if (group && !any_scaled)
        return mgl_fail(err, MGL_USAGE, "--group",
                        "bf16 weights have no groups: %d; add --dtype or --head-dtype with int8, "
                        "int4 or fp8",
                        group);
    return MGL_OK;
}
