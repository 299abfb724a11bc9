/* megalith kernel: the micro-kernels, their texts, and the gates that a new text passes. */
#include "cli/kernel.h"

#include <stdio.h>

#include "base/text.h"

mgl_status mgl_cli_kernel_find(const char *name, const mgl_kernel_unit **out, mgl_error *err)
{
    mgl_text names = {0};
    *out = mgl_kernel_unit_find(name);
    if (*out)
        return MGL_OK;
    for (int i = 0; i < mgl_kernel_unit_count(); i++)
        mgl_text_format(&names, "%s%s", i ? ", " : "", mgl_kernel_unit_get(i)->name);
    mgl_status status = mgl_fail(err, MGL_USAGE, name, "is no micro-kernel; there are %s",
                                 names.failed ? "others" : names.bytes);
    mgl_text_clear(&names);
    return status;
}

mgl_status mgl_cli_kernel_region(const char *name, mgl_kernel_region *out, mgl_error *err)
{
    *out = MGL_KERNEL_REGION_ANY;
    if (!name || mgl_kernel_region_parse(name, out))
        return MGL_OK;
    return mgl_fail(err, MGL_USAGE, "--region",
                    "'%.40s' is no region; there are launch, macros and "
                    "device",
                    name);
}

static const mgl_cli_verb *const words[] = {
#define MGL_X(name) &mgl_cli_kernel_##name##_verb,
    MGL_CLI_KERNEL_WORDS(MGL_X)
#undef MGL_X
};

const mgl_cli_verb mgl_cli_kernel_verb = {
    .name = "kernel",
    .summary = "shows micro-kernels, and passes new texts of theirs through gates",
    .example = "  megalith kernel show merge\n"
               "  megalith kernel verify merge --text merge.cuh",
    .words = words,
    .word_count = sizeof words / sizeof *words,
};
