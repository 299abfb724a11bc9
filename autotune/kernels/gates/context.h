/*
 * Context of an op's micro-kernels: the data from which an isolated test is made. The source is
 * instructions/<op>/context.json. Sizes, bytes and operations are expressions
 * (schedule/expression.h) over the op's scalars and tunables. A condition is an expression that
 * holds if its value is above 0. The gates and the trial read contexts.
 */
#ifndef MGL_AUTOTUNE_KERNELS_GATES_CONTEXT_H
#define MGL_AUTOTUNE_KERNELS_GATES_CONTEXT_H

#include "autotune/kernels/gates/unit.h"
#include "base/json.h"
#include "schedule/expression.h"
#include "vm/cuda/sources.h"

enum {
    MGL_CONTEXT_NAME = 32,
    MGL_CONTEXT_NAMES = 16,     /* maximum of scalars and tunables together */
    MGL_CONTEXT_VALUES = 32,    /* per scalar or tunable */
    MGL_CONTEXT_TENSORS = 16,   /* inputs; outputs */
    MGL_CONTEXT_CONDITIONS = 8, /* per kind */
    MGL_CONTEXT_HARNESSES = 8
};

/* A scalar has a range or a list of values; a tunable has a list. */
typedef struct mgl_context_name {
    char name[MGL_CONTEXT_NAME];
    int64_t from, to; /* bounds of the range, or smallest and largest value of the list */
    int64_t values[MGL_CONTEXT_VALUES];
    int value_count; /* 0: from and to are a range */
} mgl_context_name;

typedef struct mgl_context_tensor {
    char name[MGL_CONTEXT_NAME];
    char type[MGL_CONTEXT_NAME]; /* "f32", or the number format of "exchange", "weight" or
                                  * "cache" */
    char init[MGL_CONTEXT_NAME]; /* how inputs are filled: "normal", "partials", "positions" */
    mgl_expression size;         /* elements */
} mgl_context_tensor;

/* The program in which a unit is compiled. */
typedef struct mgl_context_harness {
    char variant[MGL_CONTEXT_NAME];
    char shape[MGL_CONTEXT_NAME]; /* a shape of eval/synthetic.h */
    char dtype[8];
    char config[128]; /* knobs of a ScheduleConfig; "": the default */
    int sequences, capacity;
} mgl_context_harness;

typedef struct mgl_context_budget {
    int64_t registers, shared, spill, global; /* resource limits of the whole kernel */
} mgl_context_budget;

typedef struct mgl_kernel_context {
    mgl_json json;
    const char *meaning;
    mgl_context_name names[MGL_CONTEXT_NAMES]; /* first the scalars (scalar_count), then the
                                                * tunables */
    int scalar_count, name_count;
    mgl_expression valid_args[MGL_CONTEXT_CONDITIONS], valid_config[MGL_CONTEXT_CONDITIONS];
    int valid_args_count, valid_config_count;
    mgl_context_tensor inputs[MGL_CONTEXT_TENSORS], outputs[MGL_CONTEXT_TENSORS];
    int input_count, output_count;
    mgl_expression bytes, flops;
    double tolerance_f32, tolerance_bf16, tolerance_f16;
    mgl_context_budget budget;
    mgl_context_harness harnesses[MGL_CONTEXT_HARNESSES];
    int harness_count;
} mgl_kernel_context;

/* Built-in contexts; the file name is the key. */
extern const mgl_cuda_source mgl_kernel_context_sources[];
extern const int mgl_kernel_context_source_count;

/* Reads the context of a unit's op. Release with mgl_kernel_context_clear. */
mgl_status mgl_kernel_context_read(const mgl_kernel_unit *unit, mgl_kernel_context *out,
                                   mgl_error *err);
mgl_status mgl_kernel_context_parse(const char *text, size_t length, const char *file,
                                    mgl_kernel_context *out, mgl_error *err);
void mgl_kernel_context_clear(mgl_kernel_context *context);

/* The harness of the unit's variant, else the first harness. */
const mgl_context_harness *mgl_kernel_context_harness(const mgl_kernel_context *context,
                                                      const mgl_kernel_unit *unit);

/* Whether these values (name_count) are in the ranges and meet all conditions. */
bool mgl_kernel_context_holds(const mgl_kernel_context *context, const int64_t *values);

#endif
