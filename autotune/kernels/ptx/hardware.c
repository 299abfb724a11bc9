/* Implements hardware.h: filters the table by target and by the instructions of micro-kernels. */
#include "autotune/kernels/ptx/hardware.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    int since, until;
    const char *instruction, *feature, *use;
} features[] = {
#define MGL_PTX_FEATURE(name, since, until, instruction, feature, use)                             \
    {name, since, until, instruction, feature, use},
#include "autotune/kernels/ptx/hardware.def"
};

int mgl_ptx_target_number(const char *target)
{
    const char *digits = strpbrk(target, "0123456789");
    return digits ? atoi(digits) : 0;
}

/* Whether a micro-kernel may contain the instruction, by its first word. */
static bool is_allowed(const char *instruction)
{
    static const char *const words[] = {
#define MGL_ASM(name, needs, without) name,
#include "autotune/kernels/ptx/asm.def"
    };
    size_t length = strcspn(instruction, ".");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (mgl_text_is(instruction, length, words[i]))
            return true;
    return false;
}

void mgl_ptx_hardware_put(const char *target, bool unit, mgl_text *out)
{
    int number = mgl_ptx_target_number(target);
    for (size_t i = 0; i < sizeof features / sizeof *features; i++)
        if (features[i].since <= number && number <= features[i].until &&
            (!unit || is_allowed(features[i].instruction)))
            mgl_text_format(out, "%s (%s, %s): %s\n", features[i].name, features[i].instruction,
                            features[i].feature, features[i].use);
}
