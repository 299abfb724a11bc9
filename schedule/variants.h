/*
 * Kernel variants: which code of an op runs a task. schedule/variants.def lists them. The variant
 * is part of the program: lowering or an editor of the text sets it, the text form prints it, the
 * validator checks it, the cost model prices it, and the kernel runs it. This module alone decides
 * whether a variant accepts a task. Rows, formats, edges and architecture are columns of the
 * variant's row. Resource needs are expressions over the task's dimensions. Callers: lowering,
 * validator, cost model and the CUDA host.
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

/* Allowed formats or edges: values of columns in variants.def. */
typedef enum mgl_variant_takes {
    MGL_TAKES_ANY,
    MGL_TAKES_HALF,           /* 16 bits */
    MGL_TAKES_HALF_OR_SCALED, /* 16 bits, or scaled in a program of 16-bit values */
    MGL_TAKES_F32,            /* f32 */
    MGL_TAKES_PARTED,         /* f32 if the input is split into two parts, else 16 bits */
    MGL_TAKES_FLAGS           /* a flag region */
} mgl_variant_takes;

/* One need of a variant. */
typedef struct mgl_variant_need {
    mgl_need need;
    const char *text; /* the expression */
} mgl_variant_need;

typedef struct mgl_variant_info {
    const char *name;
    mgl_family family; /* MGL_FAMILY_COUNT: every op has it */
    int rows;          /* maximum rows of an epoch */
    mgl_variant_takes weights, exchange, cache, edges;
    int arch;                      /* oldest architecture: 80 means sm_80 */
    const char *when;              /* an expression; the variant is chosen only if the value is
                                      above 0 */
    const mgl_variant_need *needs; /* (need_count) */
    int need_count;
} mgl_variant_info;

/* The row of a variant. An invalid number gives the row of `general`. */
const mgl_variant_info *mgl_variant_get(mgl_variant variant);
bool mgl_variant_parse(const char *name, size_t length, mgl_variant *out);
/* Whether the op has the variant, for any shape. */
bool mgl_op_has_variant(mgl_op op, mgl_variant variant);
const char *mgl_dimension_name(mgl_dimension dimension);

/* ---- what a task needs ---------------------------------------------------------------------- */

/* The values that expressions use: one for each MGL_DIMENSION. */
typedef struct mgl_dimensions {
    int64_t of[MGL_DIMENSION_COUNT];
} mgl_dimensions;

/* Whether a product splits its input, because 16 bits do not hold it: into high and low parts, or
 * into the digits of integer products. False for tasks that are not products, and for f32
 * weights. */
bool mgl_product_is_parted(const mgl_program *program, const mgl_task *task);

/* Whether a product multiplies integer codes by digits of its input
 * (vm/cuda/device/linear/scaled_input.cuh): always if it splits its input; for 16-bit input only in
 * programs of one row, without a column map, and if registers hold the digits and the groups of
 * weights are aligned with the runs of the warps. */
bool mgl_product_takes_digits(const mgl_program *program, const mgl_task *task);

/* Sets the dimensions of a program, with 0 for those of a task. */
void mgl_dimensions_of_program(const mgl_program *program, mgl_dimensions *out);

/* Adds the dimensions of a product's input of `columns` columns, each split into `parts` parts,
 * before a task exists. */
void mgl_dimensions_of_input(const mgl_program *program, int64_t columns, int parts,
                             mgl_dimensions *dimensions);

/* Whether the rows and resource needs of a variant fit. Ignores formats and edges. */
bool mgl_variant_fits(mgl_variant variant, const mgl_dimensions *dimensions);

/* How much of a resource a variant needs; 0 if the variant does not list it. Returns false if
 * the expression has no value. */
bool mgl_variant_needs(mgl_variant variant, mgl_need need, const mgl_dimensions *dimensions,
                       int64_t *out);

/* The first reason why a variant rejects a task. */
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
    char text[MGL_FAULT_TEXT]; /* what is wrong, and the values */
} mgl_variant_fault;

/* Whether a variant accepts a task of a program whose operands match their op. `dimensions`:
 * those of the program. `fault` may be NULL. */
bool mgl_variant_takes_task(const mgl_program *program, const mgl_task *task, mgl_variant variant,
                            const mgl_dimensions *dimensions, mgl_variant_fault *fault);

/* Cache of dimensions whose needs a variant meets, for loops over tasks: a schedule has
 * thousands of tasks and few shapes. A zeroed cache is empty. */
enum { MGL_MET_SHAPES = 16 };
typedef struct mgl_variant_met {
    mgl_variant variants[MGL_MET_SHAPES]; /* MGL_VARIANT_GENERAL: none */
    mgl_dimensions dimensions[MGL_MET_SHAPES];
} mgl_variant_met;

/* The same as mgl_variant_takes_task, with a cache of accepted shapes. */
bool mgl_variant_takes_next(const mgl_program *program, const mgl_task *task, mgl_variant variant,
                            const mgl_dimensions *dimensions, mgl_variant_met *met,
                            mgl_variant_fault *fault);

/* How a product of variant SKINNY, BATCH or BY_ROWS runs, by the rows of the epoch: as skinny up
 * to `skinny` rows, else as a batch from MGL_BATCH_LEAST(whether the weights are scaled) up to
 * `batch` rows, else as general. */
typedef struct mgl_row_ranges {
    int skinny, batch; /* 0: never */
} mgl_row_ranges;
mgl_row_ranges mgl_variant_row_ranges(const mgl_program *program, const mgl_task *task,
                                      const mgl_dimensions *dimensions);

/* Sets the variant of each task: the first variant of its op that accepts it and whose `when` is
 * above 0. Either all attention tasks get `ring`, or none. */
void mgl_variants_choose(mgl_program *program);

/* Sets the warpgroup variant for all products of gamma_scaled values in a second list.
 * MGL_BAD_INPUT if a task does not allow this; the caller then discards the list. */
mgl_status mgl_variants_name_warpgroups(mgl_program *second, mgl_error *err);

/* The only architecture with warpgroup instructions. */
#define MGL_WARPGROUP_ARCH "sm_90a"

/* Whether a variant multiplies gamma_scaled values on a GPU, panel by panel. */
bool mgl_variant_is_panels(mgl_variant variant);
/* Whether each task has the variant that mgl_variants_choose would set. */
bool mgl_variants_are_chosen(const mgl_program *program);
/* Sets new variants only for tasks that their current variant rejects. */
void mgl_variants_mend(mgl_program *program);

/* The number of an architecture: 90 for "sm_90a" and "compute_90"; 0 if it is no GPU. */
int mgl_arch_number(const char *arch);

#endif
