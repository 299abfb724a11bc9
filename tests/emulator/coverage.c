/* Records and checks the coverage of ops, kernel variants and kernel paths. See coverage.h. */
#include "coverage.h"

#include <stdio.h>
#include <string.h>

#include "schedule/schedule.h"
#include "schedule/variant_shapes.h"
#include "schedule/variants.h"
#include "tests/vm/cuda/cuda_support.h"

/* Kernel paths that variants.def does not name: X(ID, name, what). Those of panels and warpgroups
 * are ranges of the rows that the second list may have. */
#define PATHS(X)                                                                                   \
    X(COPY_BULK, "copy.bulk", "sm_90 and later")                                                   \
    X(COPY_ASYNC, "copy.async", "sm_80")                                                           \
    X(F32, "f32", "weights and exchanged values")                                                  \
    X(BF16, "bf16", "the same")                                                                    \
    X(F16, "f16", "the same")                                                                      \
    X(COUNTERS, "edges.counters", "edges of the first list")                                       \
    X(FLAGS, "edges.flags", "the same")                                                            \
    X(BIAS, "bias", "extra operands of products")                                                  \
    X(QK_NORM, "qk_norm", "extra operands of attention")                                           \
    X(SECOND_LIST, "second_list", "a second list without panels")                                  \
    X(PANELS_32, "panels.rows_32", "at most MGL_SMALL_M_ROWS rows")                                \
    X(PANELS_64, "panels.rows_64", "at most MGL_SMALL_N_ROWS rows")                                \
    X(PANELS_128, "panels.rows_128", "more rows")                                                  \
    X(WARPGROUPS_64, "warpgroups.rows_64", "at most MGL_SMALL_N_ROWS rows")                        \
    X(WARPGROUPS_128, "warpgroups.rows_128", "more rows")                                          \
    X(SMALL_PANELS, "panels.small_tasks", "few row groups, 33 to 64 rows (linear/swap_ab.cuh)")    \
    X(SMALL_WARPGROUPS, "warpgroups.small_tasks", "few row groups, more (linear/small_n.cuh)")

typedef enum kernel_path {
#define ENUM_OF(id, name, what) PATH_##id,
    PATHS(ENUM_OF)
#undef ENUM_OF
        PATH_COUNT
} kernel_path;

static const char *const path_names[PATH_COUNT] = {
#define NAME_OF(id, name, what) name,
    PATHS(NAME_OF)
#undef NAME_OF
};

static bool covered_variants[MGL_OP_COUNT][MGL_VARIANT_COUNT];
static bool covered_paths[PATH_COUNT];

static kernel_path panel_path(mgl_variant variant, int rows)
{
    if (variant == MGL_VARIANT_WARPGROUPS)
        return rows <= MGL_SMALL_N_ROWS ? PATH_WARPGROUPS_64 : PATH_WARPGROUPS_128;
    return rows <= MGL_SMALL_M_ROWS   ? PATH_PANELS_32
           : rows <= MGL_SMALL_N_ROWS ? PATH_PANELS_64
                                      : PATH_PANELS_128;
}

/* Whether a panel has so few row groups that the kernel divides k among the warps (split-K). */
static bool is_small(const mgl_program *list, const mgl_task *task)
{
    enum { TILES = MGL_SMALL_N_ROWS / 8 }; /* of 8 activation rows */
    const int most = mgl_small_m_groups(list->exec.warps) * 2 / TILES;
    int64_t groups = 0;
    for (int i = 0; i < task->segments.count; i++) {
        const mgl_segment *segment = &list->segments[task->segments.first + i];
        groups += (segment->row_hi - segment->row_lo + MGL_ROW_GROUP - 1) / MGL_ROW_GROUP;
    }
    return groups <= most && !mgl_op_heads(task->op);
}

static void record_panel(const mgl_program *list, const mgl_task *task)
{
    const int rows = list->limits.rows;
    const bool grouped = task->variant == MGL_VARIANT_WARPGROUPS;
    covered_paths[panel_path(task->variant, rows)] = true;
    if (is_small(list, task) && rows > (grouped ? MGL_SMALL_N_ROWS : MGL_SMALL_M_ROWS))
        covered_paths[grouped ? PATH_SMALL_WARPGROUPS : PATH_SMALL_PANELS] = true;
}

/* Records the tasks of a list. Returns whether some are panels. */
static bool record_tasks(const mgl_program *list)
{
    bool panels = false;
    for (int i = 0; i < list->task_count; i++) {
        const mgl_task *task = &list->tasks[i];
        covered_variants[task->op][task->variant] = true;
        if (mgl_op_get(task->op)->family == MGL_FAMILY_PANEL) {
            panels = true;
            record_panel(list, task);
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

static void record_program(const mgl_program *program, const device_options *options)
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
    record_tasks(program);
    if (program->second)
        covered_paths[PATH_SECOND_LIST] |= !record_tasks(program->second);
}

void coverage_start(void)
{
    memset(covered_variants, 0, sizeof covered_variants);
    memset(covered_paths, 0, sizeof covered_paths);
    on_device_vm_open = record_program;
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

/* Pairs of op and variant that no program has, because the variant's requirements exclude the
 * op. */
static const struct {
    mgl_op op;
    mgl_variant variant;
} impossible[] = {
    {MGL_OP_ATTEND, MGL_VARIANT_RING},       /* it requires split attention */
    {MGL_OP_MERGE_ADD, MGL_VARIANT_BATCH},   /* its input is not merged */
    {MGL_OP_MERGE_ADD, MGL_VARIANT_BY_ROWS}, /* likewise */
};

static bool is_possible(mgl_op op, mgl_variant variant)
{
    const mgl_family family = mgl_op_get(op)->family;
    for (size_t i = 0; i < sizeof impossible / sizeof *impossible; i++)
        if (impossible[i].op == op && impossible[i].variant == variant)
            return false;
    if (variant == MGL_VARIANT_GENERAL) /* on a GPU, panels and shared rows have no general code */
        return family != MGL_FAMILY_PANEL && family != MGL_FAMILY_ATTEND_ROWS;
    return mgl_op_has_variant(op, variant);
}

/* Calls for each possible pair of op and variant, and each path. */
bool coverage_is_complete(void)
{
    int missing = 0;
    for (int op = 0; op < MGL_OP_COUNT; op++)
        for (int v = 0; v < MGL_VARIANT_COUNT; v++)
            if (!covered_variants[op][v] && is_possible((mgl_op)op, (mgl_variant)v)) {
                printf("not covered: %s.%s\n", mgl_op_get((mgl_op)op)->name,
                       mgl_variant_get((mgl_variant)v)->name);
                missing++;
            }
    for (int i = 0; i < PATH_COUNT; i++)
        if (!covered_paths[i]) {
            printf("not covered: path %s\n", path_names[i]);
            missing++;
        }
    return missing == 0;
}
