/* tests/tools/soak.c on the emulator: that it compares and counts, and finds nothing. */
#include <stdlib.h>

#include "tests/emulator/emulator.h"

int soak_main(int argc, char **argv);

enum { SKIP = 77 };

int main(int argc, char **argv)
{
    if (!emu_install("soak"))
        return SKIP;
    setenv("MEGALITH_CACHE", MGL_BINARY_DIR "/tests/emulator/kernels", 1);
    return soak_main(argc, argv);
}
