/* megalith kernel guard: lists the subcommands, which run or test the gates before the compiler. */
#include "cli/kernel/kernel.h"

static const mgl_cli_verb *const words[] = {
#define MGL_X(name) &mgl_cli_kernel_guard_##name##_verb,
    MGL_CLI_KERNEL_GUARD_WORDS(MGL_X)
#undef MGL_X
};

const mgl_cli_verb mgl_cli_kernel_guard_verb = {
    .name = "kernel guard",
    .summary = "scans a text with the gates before the compiler, and tests these gates",
    .example = "  megalith kernel guard scan merge.cuh",
    .words = words,
    .word_count = sizeof words / sizeof *words,
};
