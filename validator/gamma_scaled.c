/*
 * MG710: gamma-scaled values, the function `gamma_scaled` of the formulas. RMSNorm can be computed
 * in two halves. The task that computes the norm's input y also stores two derived values: n =
 * gamma_scaled(y, g), columns of y times the norm's weight, and s = squares(y), a part of the sum
 * of squares of y. The task that needs the norm divides n by the root mean square from s:
 * rms_normalized(n, s). meaning.c calls these functions.
 *
 * A gamma-scaled value is no node. n and s have numbers above those of the nodes, so no operation
 * of the model accepts them: the number of n is derived from its norm, the number of s from y.
 * rms_normalized(n, s) is the norm if s has all parts of the norm's input, in order.
 */
#include "validator/meaning.h"

/* Numbers of values that are not nodes. */
static int gamma_of(const mgl_meaning *m, int norm)
{
    return m->graph->node_count + norm;
}

static int squares_of(const mgl_meaning *m, int node)
{
    return 2 * m->graph->node_count + node;
}

bool mgl_gamma_make(mgl_meaning *m, const mgl_node_value *y, const mgl_node_value *g,
                    mgl_node_value *out)
{
    const int in[3] = {y->index, -1, -1};
    const int norm = y->index < m->graph->node_count && g->is_tensor
                         ? mgl_meaning_find_node(m, MGL_NODE_NORM, in, g->index)
                         : -1;
    *out = *y;
    out->index = gamma_of(m, norm);
    return norm >= 0 ||
           mgl_meaning_fail(m, 710, "the model has no norm of that value with that weight");
}

bool mgl_gamma_is_squares(const mgl_graph *graph, int index)
{
    return index >= 2 * graph->node_count;
}

/* Whether s has the squares of all columns of the node, in order. */
static bool has_all_squares(mgl_meaning *m, const mgl_region *s, int node)
{
    const mgl_holding *holding = &m->holdings[s->buffer];
    int64_t column = 0, lo;
    int index;
    for (int64_t i = s->ranges[1].lo; i < s->ranges[1].hi; i++) {
        if (!holding->ends || !mgl_meaning_find(m, s, i, i + 1, &index, &lo) ||
            index != squares_of(m, node) || lo != column)
            return false;
        column = holding->ends[i];
    }
    return column == m->graph->nodes[node].width;
}

bool mgl_gamma_scale(mgl_meaning *m, const mgl_node_value *n, int s, mgl_node_value *out)
{
    const int norm = n->index - m->graph->node_count;
    if (n->is_tensor || norm < 0 || norm >= m->graph->node_count)
        return mgl_meaning_fail(m, 710, "its n is not a gamma-scaled value");
    *out = *n;
    out->index = norm;
    if (n->lo != 0 || n->hi != m->graph->nodes[norm].width)
        return mgl_meaning_fail(m, 704, "its input is not a whole value, column for column");
    return has_all_squares(m, mgl_meaning_region(m, s), m->graph->nodes[norm].in[0]) ||
           mgl_meaning_fail(
               m, 710, "its s does not have the squares of what n was made of, part after part");
}

bool mgl_gamma_squares(mgl_meaning *m, int operand, const mgl_node_value *y)
{
    const mgl_region *s = mgl_meaning_region(m, operand);
    mgl_holding *holding = &m->holdings[s->buffer];
    const int64_t part = s->ranges[1].lo;
    if (y->is_tensor || y->index >= m->graph->node_count)
        return mgl_meaning_fail(m, 710, "the value that it squares is not in the model's graph");
    if (!holding->ends)
        holding->ends =
            mgl_check_alloc(m->check, (size_t)m->program->buffers[s->buffer].extents[1].count,
                            sizeof *holding->ends);
    if (!holding->ends || !mgl_meaning_put(m, s, part, part + 1, squares_of(m, y->index), y->lo))
        return false;
    holding->ends[part] = y->hi;
    return true;
}
