/*
 * Launch region of a unit: declares the resources that the code needs and the tunables. Input: the
 * text of the region. Output: expressions and value lists. The gates (verify.c) and the trial read
 * it. The region consists of one-line comments:
 *
 *     / * need NAME: EXPRESSION * /         over tunables and the dimensions of variants.def
 *     / * tunable NAME: VALUE VALUE ... * / tunable `tile` is TUNE_TILE in the text; the first
 *                                        value is the default
 *
 * (without the blanks in the comment marks). Other one-line comments are ignored.
 */
#ifndef MGL_AUTOTUNE_KERNELS_GATES_LAUNCH_H
#define MGL_AUTOTUNE_KERNELS_GATES_LAUNCH_H

#include "autotune/kernels/gates/kernel.h"
#include "schedule/expression.h"
#include "schedule/variants.h"

/* enum, name, what */
#define MGL_KERNEL_NEEDS(X)                                                                        \
    X(REGISTERS, registers, "registers of a thread")                                               \
    X(SHARED, shared, "bytes of shared memory beside the machine's own")                           \
    X(STAGE, stage, "bytes of the activation buffer")                                              \
    X(PARTIALS, partials, "words for partial sums")                                                \
    X(RING, ring, "blocks of the ring")                                                            \
    X(WARPS, warps, "warps that compute")

typedef enum mgl_kernel_need {
#define MGL_X(id, name, what) MGL_KERNEL_NEED_##id,
    MGL_KERNEL_NEEDS(MGL_X)
#undef MGL_X
        MGL_KERNEL_NEED_COUNT
} mgl_kernel_need;
const char *mgl_kernel_need_name(mgl_kernel_need need);
const char *mgl_kernel_need_what(mgl_kernel_need need);

enum { MGL_KERNEL_TUNABLE_NAME = 32, MGL_KERNEL_TUNABLE_VALUES = 32 };

typedef struct mgl_kernel_tunable {
    char name[MGL_KERNEL_TUNABLE_NAME]; /* "tile" */
    int64_t values[MGL_KERNEL_TUNABLE_VALUES];
    int count;
} mgl_kernel_tunable;

/* The macro of a tunable in a text: "TUNE_TILE" for "tile". */
enum { MGL_KERNEL_TUNABLE_MACRO = 5 + MGL_KERNEL_TUNABLE_NAME };
void mgl_kernel_tunable_macro(const char *name, char to[MGL_KERNEL_TUNABLE_MACRO]);

typedef struct mgl_kernel_launch {
    mgl_expression needs[MGL_KERNEL_NEED_COUNT]; /* an expression without steps: not declared */
    int lines[MGL_KERNEL_NEED_COUNT];            /* line numbers in the text */
    mgl_kernel_tunable tunables[MGL_KERNEL_VALUES];
    int tunable_count;
} mgl_kernel_launch;

/* MGL_BAD_INPUT with "line N": a line is neither a comment nor blank, or a need or a tunable is
 * malformed. */
mgl_status mgl_kernel_launch_read(const char *text, size_t length, mgl_kernel_launch *out,
                                  mgl_error *err);

/* Chooses the tunables' values: the given value, else the first of the list. MGL_BAD_INPUT: a
 * given value is not in the list. */
mgl_status mgl_kernel_launch_choose(const mgl_kernel_launch *launch, const mgl_kernel_value *given,
                                    int given_count, int64_t chosen[MGL_KERNEL_VALUES],
                                    mgl_error *err);

/* The amount of a need for these values and dimensions (NULL: all 1). False: the need is not
 * declared, or the expression has no value. */
bool mgl_kernel_launch_needs(const mgl_kernel_launch *launch, mgl_kernel_need need,
                             const int64_t chosen[MGL_KERNEL_VALUES],
                             const mgl_dimensions *dimensions, int64_t *out);

#endif
