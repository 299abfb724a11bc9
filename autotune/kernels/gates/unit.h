/*
 * Units of micro-kernels: which source files of the kernel may be edited, and in which regions.
 *
 * A unit is one source file of the kernel, which the machine's compiler uses unchanged. It is an
 * op's file ("merge", "norm_linear"), or the file of a variant of the op's family
 * ("norm_linear.skinny", "attend.kv_rounds"). Units of one family share the files of the variants.
 * The list of units is autotune/kernels/gates/units.def.
 *
 * Marker lines divide a unit's text into regions:
 *
 *     / * region: launch * /     declared needs and tunables (launch.h), a comment
 *     / * region: macros * /     #define, enums and constants
 *     / * region: device * /     functions
 *     / * region: end * /
 *
 * (without the blanks in the comment marks). The text before the first mark and after the last mark
 * is the frame, which must not be edited.
 */
#ifndef MGL_AUTOTUNE_KERNELS_GATES_UNIT_H
#define MGL_AUTOTUNE_KERNELS_GATES_UNIT_H

#include "autotune/store/record.h"
#include "base/text.h"

#define MGL_KERNEL_REGIONS(X)                                                                      \
    X(LAUNCH, launch)                                                                              \
    X(MACROS, macros)                                                                              \
    X(DEVICE, device)

typedef enum mgl_kernel_region {
#define MGL_X(id, name) MGL_KERNEL_REGION_##id,
    MGL_KERNEL_REGIONS(MGL_X)
#undef MGL_X
        MGL_KERNEL_REGION_COUNT,
    MGL_KERNEL_REGION_ANY = MGL_KERNEL_REGION_COUNT /* for a candidate: all three regions */
} mgl_kernel_region;

const char *mgl_kernel_region_name(mgl_kernel_region region);
bool mgl_kernel_region_parse(const char *name, mgl_kernel_region *out); /* false: no such region */

typedef struct mgl_kernel_unit {
    const char *name;    /* "norm_linear.skinny" */
    mgl_op op;           /* its tasks run the unit */
    mgl_variant variant; /* the variant of the tasks; MGL_VARIANT_GENERAL: any, or none */
    const char *file;    /* path in the kernel's #include */
} mgl_kernel_unit;

/* Whether the unit is the op's own file, which all variants of the op share. */
bool mgl_kernel_unit_is_own(const mgl_kernel_unit *unit);

int mgl_kernel_unit_count(void);
const mgl_kernel_unit *mgl_kernel_unit_get(int index);
/* NULL: no such unit. */
const mgl_kernel_unit *mgl_kernel_unit_find(const char *name);
/* The built-in text; static storage. */
const char *mgl_kernel_unit_text(const mgl_kernel_unit *unit, size_t *length);

/* Positions of the regions: bytes [first, end) after the marker line. A missing region is empty
 * (0, 0). */
typedef struct mgl_kernel_regions {
    struct {
        size_t first, end;
    } of[MGL_KERNEL_REGION_COUNT];
} mgl_kernel_regions;

/* MGL_BAD_INPUT with the line: a mark is unknown, duplicate or not closed. A text without marks
 * is an error too. */
mgl_status mgl_kernel_regions_find(const char *text, size_t length, mgl_kernel_regions *out,
                                   mgl_error *err);

/* Replaces the body of one region; adds a line end if the body has none. */
mgl_status mgl_kernel_region_replace(const char *text, size_t length, mgl_kernel_region region,
                                     const char *body, size_t body_length, mgl_text *out,
                                     mgl_error *err);

/* MGL_BAD_INPUT with the line in `after`: a byte outside the region differs. */
mgl_status mgl_kernel_regions_compare(const char *before, size_t before_length, const char *after,
                                      size_t after_length, mgl_kernel_region region,
                                      mgl_error *err);

#endif
