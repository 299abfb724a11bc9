/* Implements the replacement of kernel variants in a program. See row_paths.h. */
#include "tests/tools/bench/row_paths.h"

#include <stdio.h>
#include <string.h>

#include "base/format.h"
#include "base/memory.h"
#include "validator/validator.h"

/* ---- rows ------------------------------------------------------------------------------------ */

bool row_parse(const char *text, int tokens, row *out)
{
    int end = 0;
    *out = (row){.batch = 0};
    if (strlen(text) >= ROW_TEXT ||
        sscanf(text, "%31[^:]:%d:%d%n", out->shape, &out->batch, &out->context, &end) != 3)
        return false;
    memcpy(out->text, text, strlen(text) + 1);
    out->capacity = out->context + tokens + 1;
    if (text[end] != 0 && (text[end] != ':' || sscanf(text + end, ":%d", &out->capacity) != 1))
        return false;
    return out->batch > 0 && out->context >= 0 && out->capacity > out->context + tokens;
}

mgl_status row_lower(const row *of, const mgl_target *target, mgl_graph **graph, mgl_program **out,
                     mgl_error *err)
{
    mgl_config model;
    mgl_schedule_config config;
    mgl_lower_options options = {
        .dtype = MGL_BF16, .capacity = of->capacity, .sequences = of->batch};
    mgl_schedule_config_default(&config);
    *graph = NULL;
    mgl_status status = mgl_synthetic_find_shape(of->shape, &model, err);
    if (!status)
        status = mgl_synthetic_open(&model, 1, graph, err);
    return status ? status : mgl_schedule_lower(*graph, target, &options, &config, out, err);
}

/* ---- variants of a program ------------------------------------------------------------------- */

static mgl_family family_of(const mgl_task *task)
{
    return mgl_op_get(task->op)->family;
}

const char *path_family_name(mgl_family family)
{
    static const char *const names[MGL_FAMILY_COUNT] = {
#define MGL_FAMILY(id, name, ...) #name,
#include "instructions/ops.def"
    };
    return names[family];
}

/* The number of tasks of a family that have a variant. */
static int count_tasks(const mgl_program *program, mgl_family family, mgl_variant variant)
{
    int count = 0;
    for (int i = 0; i < program->task_count; i++)
        count += family_of(&program->tasks[i]) == family && program->tasks[i].variant == variant;
    return count;
}

void kernel_path_names(const mgl_program *program, mgl_family family, char to[PATH_NAMES])
{
    size_t length = 0;
    to[0] = 0;
    for (int v = MGL_VARIANT_COUNT - 1; v >= 0; v--)
        if (count_tasks(program, family, (mgl_variant)v) > 0 && length < PATH_NAMES)
            length += (size_t)snprintf(to + length, PATH_NAMES - length, "%s%s", length ? "+" : "",
                                       mgl_variant_get((mgl_variant)v)->name);
}

static void name_all(mgl_program *program, mgl_family family, mgl_variant variant)
{
    for (int i = 0; i < program->task_count; i++)
        if (family_of(&program->tasks[i]) == family)
            program->tasks[i].variant = variant;
}

void path_apply(const way *of, mgl_program *program)
{
    name_all(program, of->family, of->variant);
    mgl_variants_mend(program);
}

/* ---- replacements ---------------------------------------------------------------------------- */

/* The variants of all tasks. */
static void save(const mgl_program *program, mgl_variant *variants)
{
    for (int i = 0; i < program->task_count; i++)
        variants[i] = program->tasks[i].variant;
}

static void restore(mgl_program *program, const mgl_variant *variants)
{
    for (int i = 0; i < program->task_count; i++)
        program->tasks[i].variant = variants[i];
}

static bool is_as(const mgl_program *program, const mgl_variant *variants)
{
    for (int i = 0; i < program->task_count; i++)
        if (program->tasks[i].variant != variants[i])
            return false;
    return true;
}

/* The first diagnostic: of a task of the replaced family, or of the program. */
static void note_reason(const mgl_program *program, const mgl_verdict *verdict, bool of_family,
                        way *out)
{
    for (int i = 0; i < verdict->count && !out->code; i++) {
        const mgl_diagnostic *d = &verdict->diagnostics[i];
        if (of_family && (d->task < 0 || family_of(&program->tasks[d->task]) != out->family))
            continue;
        out->code = d->code;
        mgl_format_into(out->reason, sizeof out->reason, "%s", d->message);
    }
}

static mgl_status check(const mgl_program *program, const mgl_graph *graph, bool of_family,
                        bool *accepted, way *out, mgl_error *err)
{
    mgl_verdict verdict = {0};
    mgl_status status = mgl_validator_check(program, graph, &verdict, err);
    *accepted = !status && verdict.accepted;
    note_reason(program, &verdict, of_family, out);
    mgl_verdict_clear(&verdict);
    return status;
}

static void name_beside(const mgl_program *program, way *out)
{
    const mgl_family other =
        out->family == MGL_FAMILY_PRODUCT ? MGL_FAMILY_ATTENTION : MGL_FAMILY_PRODUCT;
    kernel_path_names(program, other, out->beside);
}

/* Gives all tasks of the family the variant; the validator rejects those that do not fit it, which
 * then get another variant. `chosen`: the variants of the default. */
static mgl_status find_kernel_path(mgl_program *program, const mgl_graph *graph,
                                   const mgl_variant *chosen, way *out, mgl_error *err)
{
    bool accepted = false;
    for (int v = 0; v < MGL_VARIANT_COUNT; v++)
        out->all += count_tasks(program, out->family, (mgl_variant)v);
    name_all(program, out->family, out->variant);
    mgl_status status = check(program, graph, true, &accepted, out, err);
    if (status)
        return status;
    restore(program, chosen);
    path_apply(out, program);
    out->tasks = count_tasks(program, out->family, out->variant);
    name_beside(program, out);
    out->kind = PATH_REFUSED;
    if (out->tasks == 0)
        return MGL_OK;
    status = check(program, graph, false, &accepted, out, err);
    if (accepted)
        out->kind = is_as(program, chosen) ? PATH_CHOSEN : PATH_PERMITTED;
    return status;
}

mgl_status row_find_paths(mgl_program *program, const mgl_graph *graph, row_paths *out,
                          mgl_error *err)
{
    static const mgl_family families[] = {MGL_FAMILY_PRODUCT, MGL_FAMILY_ATTENTION};
    const size_t bytes = (size_t)program->task_count * sizeof(mgl_variant);
    mgl_variant *chosen = mgl_alloc(bytes);
    mgl_status status = chosen ? MGL_OK : mgl_fail_memory(err, bytes);
    *out = (row_paths){.count = 0};
    if (chosen)
        save(program, chosen);
    for (size_t f = 0; f < sizeof families / sizeof *families; f++)
        for (int v = 0; v < MGL_VARIANT_COUNT && !status; v++) {
            const mgl_family family = mgl_variant_get((mgl_variant)v)->family;
            if (v != MGL_VARIANT_GENERAL && family != families[f])
                continue;
            way *one = &out->list[out->count++];
            *one = (way){.family = families[f], .variant = (mgl_variant)v};
            status = find_kernel_path(program, graph, chosen, one, err);
            restore(program, chosen);
        }
    mgl_free(chosen);
    return status;
}
