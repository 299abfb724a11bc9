/*
 * Runs a GPU tool (tests/tools) on the emulator, and checks that it compares, counts and finds no
 * difference.
 */
#include <stdlib.h>

#include "tests/emulator/emulator.h"

int tool_main(int argc, char **argv);

enum { SKIP = 77 };

int main(int argc, char **argv)
{
    if (!emu_install(MGL_TOOL))
        return SKIP;
    setenv("MEGALITH_CACHE", MGL_BINARY_DIR "/tests/emulator/kernels", 1);
    return tool_main(argc, argv);
}
