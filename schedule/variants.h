/*
 * Variants: which code of an op runs a task, as schedule/variants.def lists them. A thing of the
 * program: named by lowering or an editor of the text, printed, checked, priced, and obeyed by the
 * kernel. Whether a variant takes a task is decided here alone, for lowering, validator, cost model
 * and the CUDA host: rows, formats, edges and architecture by the columns of its row, and its needs
 * by the expressions there, over the task's dimensions.
 */
#ifndef MGL_SCHEDULE_VARIANTS_H
#define MGL_SCHEDULE_VARIANTS_H

#include "schedule/program.h"

/* ---- the table ------------------------------------------------------------------------------ */

typedef enum mgl_dimension {
#define MGL_DIMENSION(id, ...) MGL_DIMENSION_##id,
#include "schedule/variants.def"
    MGL_DIMENSION_COUNT
} mgl_dimension;

typedef enum mgl_need {
#define MGL_NEED(id, ...) MGL_NEED_##id,
#include "schedule/variants.def"
    MGL_NEED_COUNT
} mgl_need;

/* What a format or an edge may be: columns of variants.def. */
typedef enum mgl_variant_takes {
    MGL_TAKES_ANY,
    MGL_TAKES_HALF,   /* 16 bits */
    MGL_TAKES_F32,    /* f32 */
    MGL_TAKES_PARTED, /* f32 where it is split into two parts, 16 bits else */
    MGL_TAKES_FLAGS   /* a flag region */
} mgl_variant_takes;

/* One need of a variant. */
typedef struct mgl_variant_need {
    mgl_need need;
    const char *text; /* the expression */
} mgl_variant_need;

typedef struct mgl_variant_info {
    const char *name;
    mgl_family family; /* MGL_FAMILY_COUNT: of every op */
    int rows;          /* of an epoch, at most */
    mgl_variant_takes weights, exchange, cache, edges;
    int arch;                      /* the oldest: 80 for sm_80 */
    const char *when;              /* an expression */
    const mgl_variant_need *needs; /* (need_count) */
    int need_count;
    const char *what;
} mgl_variant_info;

/* The row of a variant; of a number that is none, that of general. */
const mgl_variant_info *mgl_variant_get(mgl_variant variant);
bool mgl_variant_parse(const char *name, size_t length, mgl_variant *out);
/* Whether the op has the variant, whatever the shape. */
bool mgl_op_has_variant(mgl_op op, mgl_variant variant);
const char *mgl_dimension_name(mgl_dimension dimension);

/* ---- what a task needs ---------------------------------------------------------------------- */

/* What expressions are about: a value for each MGL_DIMENSION. */
typedef struct mgl_dimensions {
    int64_t of[MGL_DIMENSION_COUNT];
} mgl_dimensions;

/* Those of a program, those of its tasks 0; and, into the same, those of a task. */
void mgl_dimensions_of_program(const mgl_program *program, mgl_dimensions *out);
void mgl_dimensions_of_task(const mgl_program *program, const mgl_task *task,
                            mgl_dimensions *dimensions);

/* The same of a product's input of so many columns, each split into so many parts, where there is
 * no task yet. */
void mgl_dimensions_of_input(const mgl_program *program, int64_t columns, int parts,
                             mgl_dimensions *dimensions);

/* Whether a variant has what it needs for a shape, and enough rows: formats and edges aside. */
bool mgl_variant_fits(mgl_variant variant, const mgl_dimensions *dimensions);

/* How much of a resource a variant needs; 0 of those that it has no need of. False: the expression
 * has no value. */
bool mgl_variant_needs(mgl_variant variant, mgl_need need, const mgl_dimensions *dimensions,
                       int64_t *out);

/* The first reason why a variant does not take a task. */
typedef enum mgl_variant_fault_kind {
    MGL_FAULT_NONE,
    MGL_FAULT_OP,
    MGL_FAULT_ROWS,
    MGL_FAULT_FORMAT,
    MGL_FAULT_EDGE,
    MGL_FAULT_ARCH,
    MGL_FAULT_NEED
} mgl_variant_fault_kind;

enum { MGL_FAULT_TEXT = 256 };

typedef struct mgl_variant_fault {
    mgl_variant_fault_kind kind;
    char text[MGL_FAULT_TEXT]; /* what is wrong, and by how much */
} mgl_variant_fault;

/* Whether a variant takes a task of a program whose operands fit their op. `dimensions`: of the
 * program. `fault` may be NULL. */
bool mgl_variant_takes_task(const mgl_program *program, const mgl_task *task, mgl_variant variant,
                            const mgl_dimensions *dimensions, mgl_variant_fault *fault);

/* Dimensions whose needs a variant met, for one who asks of task after task: a schedule has
 * thousands of tasks and few shapes. Zeroed, it knows none. */
enum { MGL_MET_SHAPES = 16 };
typedef struct mgl_variant_met {
    mgl_variant variants[MGL_MET_SHAPES]; /* MGL_VARIANT_GENERAL: none */
    mgl_dimensions dimensions[MGL_MET_SHAPES];
} mgl_variant_met;

/* The same as mgl_variant_takes_task; adds to what was met. */
bool mgl_variant_takes_next(const mgl_program *program, const mgl_task *task, mgl_variant variant,
                            const mgl_dimensions *dimensions, mgl_variant_met *met,
                            mgl_variant_fault *fault);

/* By an epoch's rows, how a product runs that names skinny, batch or ladder: as skinny up to so
 * many rows, else as a batch from MGL_BATCH_LEAST up to so many, else as general. */
typedef struct mgl_row_ranges {
    int skinny, batch; /* 0: never */
} mgl_row_ranges;
mgl_row_ranges mgl_variant_row_ranges(const mgl_program *program, const mgl_task *task,
                                      const mgl_dimensions *dimensions);

/* Names the variant of each task: the first of its op that takes it and is worth it. The ring is
 * named for all attentions or for none. */
void mgl_variants_choose(mgl_program *program);

/* Has warpgroups multiply all weighed values of a second list. MGL_BAD_INPUT: one of its tasks does
 * not allow that; then the list is worth nothing. */
mgl_status mgl_variants_name_warpgroups(mgl_program *many, mgl_error *err);

/* The one architecture that has warpgroups. */
#define MGL_WARPGROUP_ARCH "sm_90a"

/* Whether a variant is one that multiplies weighed values on a GPU, panel by panel. */
bool mgl_variant_is_panels(mgl_variant variant);
/* Whether each task has the variant that mgl_variants_choose would name. */
bool mgl_variants_are_chosen(const mgl_program *program);
/* Names new variants for those tasks alone that theirs does not take. */
void mgl_variants_mend(mgl_program *program);

/* The number of an architecture, 90 of "sm_90a" and "compute_90"; 0: of no GPU. */
int mgl_arch_number(const char *arch);

#endif
