/* Coverage of kernel variants: see coverage.h. */
#include "coverage.h"

#include <stdio.h>
#include <string.h>

#include "cuda_support.h"
#include "schedule/schedule.h"
#include "schedule/variants.h"
#include "schedule/ways.h"

/* Kernel paths that variants.def does not name. */
typedef enum path {
    PATH_COPY_BULK,  /* sm_90 and later */
    PATH_COPY_ASYNC, /* sm_80 */
    PATH_F32,        /* formats of weights and exchanged values */
    PATH_BF16,
    PATH_F16,
    PATH_COUNTERS, /* edges of the first list */
    PATH_FLAGS,
    PATH_BIAS,             /* extra operands of products */
    PATH_QK_NORM,          /* extra operands of attention */
    PATH_SECOND_LIST,      /* a second list without panels */
    PATH_PANELS_SMALL_M,   /* panels of up to MGL_SLIM_ROWS rows */
    PATH_PANELS_MEDIUM_M,  /* of up to MGL_NARROW_ROWS rows */
    PATH_PANELS_LARGE_M,   /* of more rows */
    PATH_WARPGROUPS_SMALL, /* warpgroups of up to MGL_NARROW_ROWS rows */
    PATH_WARPGROUPS_LARGE, /* of more rows */
    PATH_COUNT
} path;

static const char *const path_names[PATH_COUNT] = {"copy.bulk",
                                                   "copy.async",
                                                   "f32",
                                                   "bf16",
                                                   "f16",
                                                   "edges.counters",
                                                   "edges.flags",
                                                   "bias",
                                                   "qk_norm",
                                                   "second_list",
                                                   "panels.small_m",
                                                   "panels.medium_m",
                                                   "panels.large_m",
                                                   "warpgroups.small_m",
                                                   "warpgroups.large_m"};

static bool covered_variants[MGL_OP_COUNT][MGL_VARIANT_COUNT];
static bool covered_paths[PATH_COUNT];

static path panel_path(mgl_variant variant, int rows)
{
    if (variant == MGL_VARIANT_WARPGROUPS)
        return rows <= MGL_NARROW_ROWS ? PATH_WARPGROUPS_SMALL : PATH_WARPGROUPS_LARGE;
    return rows <= MGL_SLIM_ROWS     ? PATH_PANELS_SMALL_M
           : rows <= MGL_NARROW_ROWS ? PATH_PANELS_MEDIUM_M
                                     : PATH_PANELS_LARGE_M;
}

/* Adds the tasks of a list; true if some are panels. */
static bool add_tasks(const mgl_program *list)
{
    bool panels = false;
    for (int i = 0; i < list->task_count; i++) {
        const mgl_task *task = &list->tasks[i];
        covered_variants[task->op][task->variant] = true;
        if (mgl_op_get(task->op)->family == MGL_FAMILY_PANEL) {
            panels = true;
            covered_paths[panel_path(task->variant, list->limits.rows)] = true;
        }
    }
    return panels;
}

static bool has_flags(const mgl_program *program)
{
    for (int i = 0; i < program->task_count; i++)
        if (program->tasks[i].op == MGL_OP_CLEAR)
            return true;
    return false;
}

static void add_program(const mgl_program *program, const device_options *options)
{
    const bool sm_80 = options->arch && !strcmp(options->arch, "compute_80");
    const unsigned biases = MGL_EXTRA_QKV_BIAS | MGL_EXTRA_O_BIAS | MGL_EXTRA_MLP_BIAS;
    covered_paths[sm_80 ? PATH_COPY_ASYNC : PATH_COPY_BULK] = true;
    covered_paths[options->dtype == MGL_F16    ? PATH_F16
                  : options->dtype == MGL_BF16 ? PATH_BF16
                                               : PATH_F32] = true;
    covered_paths[has_flags(program) ? PATH_FLAGS : PATH_COUNTERS] = true;
    covered_paths[PATH_BIAS] |= (options->extras & biases) != 0;
    covered_paths[PATH_QK_NORM] |= (options->extras & MGL_EXTRA_QK_NORM) != 0;
    add_tasks(program);
    if (program->many)
        covered_paths[PATH_SECOND_LIST] |= !add_tasks(program->many);
}

void coverage_start(void)
{
    memset(covered_variants, 0, sizeof covered_variants);
    memset(covered_paths, 0, sizeof covered_paths);
    device_vm_opened = add_program;
}

void coverage_print(void)
{
    printf("covered:");
    for (int op = 0; op < MGL_OP_COUNT; op++)
        for (int v = 0; v < MGL_VARIANT_COUNT; v++)
            if (covered_variants[op][v])
                printf(" %s.%s", mgl_op_get((mgl_op)op)->name,
                       mgl_variant_get((mgl_variant)v)->name);
    for (int i = 0; i < PATH_COUNT; i++)
        if (covered_paths[i])
            printf(" %s", path_names[i]);
    printf("\n");
}

/* Each op that the kernel runs as a task, each variant with some op, and each path. */
bool coverage_is_complete(void)
{
    bool variants[MGL_VARIANT_COUNT] = {false}, complete = true;
    for (int op = 0; op < MGL_OP_COUNT; op++) {
        bool ran = false;
        for (int v = 0; v < MGL_VARIANT_COUNT; v++) {
            ran |= covered_variants[op][v];
            variants[v] |= covered_variants[op][v];
        }
        if (!ran)
            printf("not covered: op %s\n", mgl_op_get((mgl_op)op)->name);
        complete &= ran;
    }
    for (int v = 0; v < MGL_VARIANT_COUNT; v++) {
        if (!variants[v])
            printf("not covered: variant %s\n", mgl_variant_get((mgl_variant)v)->name);
        complete &= variants[v];
    }
    for (int i = 0; i < PATH_COUNT; i++) {
        if (!covered_paths[i])
            printf("not covered: path %s\n", path_names[i]);
        complete &= covered_paths[i];
    }
    return complete;
}
