/* Looks up micro-kernels by name, and prints a unit's text, regions, hash and context as JSON.
 * The command line and the agents' tools call it. */
#ifndef MGL_AUTOTUNE_KERNELS_GATES_KERNEL_SHOW_H
#define MGL_AUTOTUNE_KERNELS_GATES_KERNEL_SHOW_H

#include "autotune/kernels/gates/context.h"
#include "autotune/kernels/gates/kernel.h"
#include "base/json_out.h"

/* MGL_USAGE with the list of units if `name` is unknown. */
mgl_status mgl_kernel_find(const char *name, const mgl_kernel_unit **out, mgl_error *err);
/* "launch", "macros", "device"; NULL: any. MGL_USAGE for other names. */
mgl_status mgl_kernel_find_region(const char *name, mgl_kernel_region *out, mgl_error *err);

/* The view of a unit. Release with mgl_kernel_view_clear. */
typedef struct mgl_kernel_view {
    const mgl_kernel_unit *unit;
    const char *text; /* (length) */
    size_t length;
    mgl_kernel_regions regions;
    char hash[MGL_SHA256_HEX];
    mgl_kernel_context context;
} mgl_kernel_view;
mgl_status mgl_kernel_view_open(const mgl_kernel_unit *unit, mgl_kernel_view *out, mgl_error *err);
void mgl_kernel_view_clear(mgl_kernel_view *view);
/* The first line of a region, from 1. */
int mgl_kernel_view_line(const mgl_kernel_view *view, mgl_kernel_region region);

/* Write members of the open object. */
void mgl_kernel_put_units(mgl_json_out *out);
void mgl_kernel_put_view(mgl_json_out *out, const mgl_kernel_view *view);

#endif
