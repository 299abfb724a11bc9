/* Lookup of device costs by device name or architecture (cost.h). The values are in costs.def. */
#include "schedule/cost/cost.h"

#include <string.h>

static const struct {
    const char *name, *arch;
    mgl_costs costs;
} devices[] = {
#define MGL_COST_DEVICE(name, arch, ...) {name, arch, {__VA_ARGS__}},
#include "schedule/cost/costs.def"
};
enum { DEVICES = sizeof devices / sizeof *devices };

#define MGL_COST_DEVICE(name, arch, ...) ", " name
static const char known[] =
#include "schedule/cost/costs.def"
    ; /* starts with ", " */

static mgl_status fail_unknown(const char *where, mgl_error *err)
{
    return mgl_fail(err, MGL_BAD_INPUT, where,
                    "the costs of steps have not been measured; devices with costs: %s", known + 2);
}

static int find_device(const char *name)
{
    for (int i = 0; i < DEVICES; i++)
        if (!strcmp(devices[i].name, name))
            return i;
    return -1;
}

/* The first device of the architecture. */
static int find_architecture(const char *arch)
{
    for (int i = 0; i < DEVICES; i++)
        if (!strcmp(devices[i].arch, arch))
            return i;
    return -1;
}

mgl_status mgl_costs_find(const char *device, mgl_costs *out, mgl_error *err)
{
    int found = find_device(device);
    if (found < 0)
        return fail_unknown(device, err);
    *out = devices[found].costs;
    return MGL_OK;
}

mgl_status mgl_costs_find_for(const mgl_target *target, const char *name, const char **device,
                              mgl_costs *out, mgl_error *err)
{
    int found = name ? find_device(name) : find_architecture(target->arch);
    if (found < 0)
        return fail_unknown(name ? name : target->arch, err);
    if (strcmp(devices[found].arch, target->arch) != 0)
        return mgl_fail(err, MGL_BAD_INPUT, name, "the device is an %s, the target an %s",
                        devices[found].arch, target->arch);
    *device = devices[found].name;
    *out = devices[found].costs;
    return MGL_OK;
}
