/*
 * MG701 and MG702: the program is for this model. Geometry, eps and capacity match the graph, and
 * each tensor of the program exists in the checkpoint, by name and shape. meaning.c checks how the
 * tasks use them.
 */
#include "base/text.h"
#include "validator/check.h"

#include <inttypes.h>

static void check_tensor(mgl_check *check, int index)
{
    const mgl_program_tensor *tensor = &check->program->tensors[index];
    int found = mgl_graph_find_tensor(check->graph, tensor->checkpoint);
    check->graph_tensor[index] = found;
    if (found < 0) {
        mgl_check_report(check, 702, -1, tensor->line,
                         "tensor %.64s: the checkpoint has no \"%.160s\"", tensor->name,
                         tensor->checkpoint);
        return;
    }
    const mgl_tensor *real = &check->graph->tensors[found];
    if (real->rank != tensor->rank || real->rows != tensor->rows || real->cols != tensor->cols)
        mgl_check_report(check, 702, -1, tensor->line,
                         "tensor %.64s is rank %d, %" PRId64 " x %" PRId64
                         "; in the checkpoint \"%.160s\" is rank %d, %" PRId64 " x %" PRId64,
                         tensor->name, tensor->rank, tensor->rows, tensor->cols, real->name,
                         real->rank, real->rows, real->cols);
}

/* Adds a line of witness with every fact of a geometry. */
static void show_geometry(mgl_check *check, const char *whose, const mgl_geometry *geometry)
{
    mgl_text line = {0};
    for (int i = 0; i < MGL_GEOMETRY_FACT_COUNT; i++) {
        const mgl_geometry_fact *fact = &mgl_geometry_facts[i];
        mgl_text_format(&line, fact->is_float ? " %s %.9g" : " %s %.0f", fact->name,
                        mgl_fact_value(geometry, fact));
    }
    check->no_memory |= line.failed;
    mgl_check_witness(check, "%s%s", whose, line.failed ? "" : line.bytes);
    mgl_text_clear(&line);
}

void mgl_check_model(mgl_check *check)
{
    const mgl_program *p = check->program;
    const mgl_graph *graph = check->graph;
    if (!graph)
        return;
    if (!mgl_geometry_equal(&p->geometry, &graph->geometry)) {
        mgl_check_report(check, 701, -1, 0,
                         "the program's model line is not this model's geometry");
        show_geometry(check, "program:", &p->geometry);
        show_geometry(check, "model:  ", &graph->geometry);
    }
    if (p->limits.capacity > graph->max_positions)
        mgl_check_report(check, 701, -1, 0, "capacity %d exceeds the model's %d positions",
                         p->limits.capacity, graph->max_positions);
    check->graph_tensor =
        mgl_check_alloc(check, (size_t)p->tensor_count, sizeof *check->graph_tensor);
    for (int i = 0; i < p->tensor_count && !check->no_memory; i++)
        check_tensor(check, i);
}
