/* The list of units, and their built-in texts. See unit.h. */
#include "autotune/kernels/gates/unit.h"
#include "base/aliases.h"

#include <string.h>

#include "vm/cuda/sources.h"

static const mgl_kernel_unit units[] = {
#define MGL_KERNEL_UNIT(name, op, variant, file) {name, MGL_OP_##op, MGL_VARIANT_##variant, file},
#include "autotune/kernels/gates/units.def"
};
enum { UNITS = sizeof units / sizeof *units };

bool mgl_kernel_unit_is_own(const mgl_kernel_unit *unit)
{
    static const char ops[] = "instructions/";
    return !strncmp(unit->file, ops, sizeof ops - 1);
}

int mgl_kernel_unit_count(void)
{
    return UNITS;
}

const mgl_kernel_unit *mgl_kernel_unit_get(int index)
{
    return index >= 0 && index < UNITS ? &units[index] : NULL;
}

const mgl_kernel_unit *mgl_kernel_unit_find(const char *name)
{
    for (int i = 0; i < UNITS; i++)
        if (!strcmp(units[i].name, name))
            return &units[i];
    const char *renamed = mgl_alias_new(MGL_ALIAS_UNIT, name, strlen(name));
    return renamed ? mgl_kernel_unit_find(renamed) : NULL;
}

const char *mgl_kernel_unit_text(const mgl_kernel_unit *unit, size_t *length)
{
    for (int i = 0; i < mgl_cuda_source_count; i++)
        if (!strcmp(mgl_cuda_sources[i].name, unit->file)) {
            const char *text = (const char *)mgl_cuda_sources[i].text;
            *length = strlen(text);
            return text;
        }
    *length = 0; /* a row of units.def names a file that the kernel does not include */
    return "";
}

static const char *const region_names[MGL_KERNEL_REGION_COUNT] = {
#define MGL_X(id, name) #name,
    MGL_KERNEL_REGIONS(MGL_X)
#undef MGL_X
};

const char *mgl_kernel_region_name(mgl_kernel_region region)
{
    return (unsigned)region < MGL_KERNEL_REGION_COUNT ? region_names[region] : "any";
}

bool mgl_kernel_region_parse(const char *name, mgl_kernel_region *out)
{
    for (int i = 0; i < MGL_KERNEL_REGION_COUNT; i++)
        if (!strcmp(region_names[i], name)) {
            *out = (mgl_kernel_region)i;
            return true;
        }
    return false;
}
