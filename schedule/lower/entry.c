/*
 * Lowers a graph to a program: choices, declarations, tasks, then the variants of the tasks. If
 * lowering adds a second list that the kernel does not support, it lowers again without
 * gamma-scaled values.
 */
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "schedule/lower/lower.h"
#include "schedule/variants.h"

/* Whether memory ran out in either list. */
static bool has_failed(const mgl_program *program)
{
    return mgl_program_failed(program) ||
           (program->limits.second_rows > 0 &&
            (!program->second || mgl_program_failed(program->second)));
}

/* Whether the embedding is quantized: programs for a GPU then have its decoded numbers, in f32. */
static bool has_quantized_table(const mgl_graph *graph)
{
    const int table = mgl_graph_find_tensor(graph, MGL_TENSOR_EMBEDDING);
    return table >= 0 && mgl_tensor_is_quantized(&graph->tensors[table]);
}

/* Lowers with a given config. */
static mgl_status lower_as(const mgl_graph *graph, const mgl_target *target,
                           const mgl_lower_options *options, const mgl_schedule_config *config,
                           mgl_program **out_program, mgl_error *err)
{
    *out_program = NULL;
    mgl_program *program;
    mgl_lowering w = {.graph = graph, .err = err, .prefix = "", .penalties = options->penalties};
    mgl_status status = mgl_schedule_choose(graph, target, options, config, &w.choices, err);
    if (!status)
        status = mgl_program_new(&program, err);
    if (status)
        return status;
    program->target = *target;
    program->geometry = graph->geometry;
    program->limits = (mgl_limits){.rows = w.choices.rows,
                                   .sequences = options->sequences,
                                   .capacity = options->capacity,
                                   .second_rows = w.choices.second_rows,
                                   .share = w.choices.share,
                                   .unsplit = w.choices.unsplit};
    program->exec = w.choices.exec;
    if (!strcmp(target->arch, "cpu")) /* one reader wants the blocks of a row group in order */
        program->exec.warps = 1;
    mgl_program_set_dtype(program, options->dtype);
    if (strcmp(target->arch, "cpu") != 0 && has_quantized_table(graph))
        program->embedding_dtype = MGL_F32;
    w.program = program;
    w.layers = mgl_alloc_zero((size_t)graph->geometry.layers, sizeof *w.layers);
    if (w.layers)
        mgl_lowering_emit(&w);
    if (!w.status && (!w.layers || has_failed(program)))
        w.status = mgl_fail_memory(err, 0);
    mgl_free(w.layers);
    if (!w.status) {
        mgl_variants_choose(program);
        if (w.choices.warpgroups == MGL_WARPGROUPS_YES)
            w.status = mgl_variants_name_warpgroups(program->second, err);
        else if (w.choices.warpgroups != MGL_WARPGROUPS_NO)
            (void)mgl_variants_name_warpgroups(program->second, NULL); /* on failure the warp teams
                                                                        remain */
    }
    MGL_ASSERT(w.status || program->queue_count == target->queues);
    if (w.status)
        mgl_program_free(program);
    else
        *out_program = program;
    return w.status;
}

/* Whether each product of gamma_scaled values has a variant besides general. */
static bool has_panels(const mgl_program *list)
{
    for (int t = 0; t < list->task_count; t++)
        if (mgl_op_get(list->tasks[t].op)->family == MGL_FAMILY_PANEL &&
            list->tasks[t].variant == MGL_VARIANT_GENERAL)
            return false;
    return true;
}

mgl_status mgl_schedule_lower(const mgl_graph *graph, const mgl_target *target,
                              const mgl_lower_options *options, const mgl_schedule_config *config,
                              mgl_program **out_program, mgl_error *err)
{
    mgl_schedule_config filled = *config, bare = *config;
    mgl_schedule_fill_second(graph, target, options, &filled);
    if (filled.second_rows == config->second_rows)
        return lower_as(graph, target, options, config, out_program, err);
    mgl_status status = lower_as(graph, target, options, &filled, out_program, err);
    if (status == MGL_NO_MEMORY || (!status && has_panels((*out_program)->second)))
        return status;
    if (!status)
        mgl_program_free(*out_program);
    /* lowering added the second list, and the kernel does not support it */
    bare.gamma_scaled = MGL_GAMMA_NO;
    return lower_as(graph, target, options, &bare, out_program, err);
}
