/*
 * Micro-kernels: which text of the kernel may be edited, and in which parts.
 *
 * A unit is one source file of the kernel, which the machine's own compiler takes as it stands: an
 * op's own file ("merge", "norm_linear"), or that of a variant of the op's family
 * ("norm_linear.skinny", "attend.waves"). Units of one family share the files of its variants. The
 * list is autotune/kernels/gates/units.def.
 *
 * A unit's text is marked into regions by lines of their own:
 *
 *     / * region: launch * /     declared needs and tunables (launch.h), a comment
 *     / * region: macros * /     #define, enums and constants
 *     / * region: device * /     functions
 *     / * region: end * /
 *
 * (without the blanks in the marks). What stands before the first mark and behind the last one is
 * the frame, which nobody edits.
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
    MGL_KERNEL_REGION_ANY = MGL_KERNEL_REGION_COUNT /* of a candidate: each of the three */
} mgl_kernel_region;

const char *mgl_kernel_region_name(mgl_kernel_region region);
bool mgl_kernel_region_parse(const char *name, mgl_kernel_region *out); /* false: no such region */

typedef struct mgl_kernel_unit {
    const char *name;    /* "norm_linear.skinny" */
    mgl_op op;           /* whose tasks run it */
    mgl_variant variant; /* that they name; MGL_VARIANT_GENERAL: any, or none */
    const char *file;    /* as the kernel includes it */
} mgl_kernel_unit;

/* Whether its text is the op's own file, which all variants of the op share. */
bool mgl_kernel_unit_is_own(const mgl_kernel_unit *unit);

int mgl_kernel_unit_count(void);
const mgl_kernel_unit *mgl_kernel_unit_get(int index);
/* NULL: there is no such unit. */
const mgl_kernel_unit *mgl_kernel_unit_find(const char *name);
/* The text that the program was built with; static storage. */
const char *mgl_kernel_unit_text(const mgl_kernel_unit *unit, size_t *length);

/* Where the regions of a text stand: bytes [first, end) behind the line of the mark. A region that
 * the text does not have is empty (0, 0). */
typedef struct mgl_kernel_regions {
    struct {
        size_t first, end;
    } of[MGL_KERNEL_REGION_COUNT];
} mgl_kernel_regions;

/* MGL_BAD_INPUT, with the line: a mark that is none, stands twice, or is not closed. A text without
 * marks has no regions, and that is an error as well. */
mgl_status mgl_kernel_regions_find(const char *text, size_t length, mgl_kernel_regions *out,
                                   mgl_error *err);

/* The text with another body in one region; a line end is added where the body has none. */
mgl_status mgl_kernel_region_replace(const char *text, size_t length, mgl_kernel_region region,
                                     const char *body, size_t body_length, mgl_text *out,
                                     mgl_error *err);

/* MGL_BAD_INPUT, with the line of `after`: a byte outside of the region differs. */
mgl_status mgl_kernel_regions_compare(const char *before, size_t before_length, const char *after,
                                      size_t after_length, mgl_kernel_region region,
                                      mgl_error *err);

#endif
