/* megalith kernel: the verb whose subcommands (kernel.h) show micro-kernels and pass new texts of
 * micro-kernels through the gates. This file only lists the subcommands. */
#include "cli/kernel/kernel.h"

static const mgl_cli_verb *const words[] = {
#define MGL_X(name) &mgl_cli_kernel_##name##_verb,
    MGL_CLI_KERNEL_WORDS(MGL_X)
#undef MGL_X
};

const mgl_cli_verb mgl_cli_kernel_verb = {
    .name = "kernel",
    .summary = "shows micro-kernels, and checks new texts of micro-kernels",
    .example = "  megalith kernel show merge\n"
               "  megalith kernel verify merge --text merge.cuh",
    .words = words,
    .word_count = sizeof words / sizeof *words,
};
