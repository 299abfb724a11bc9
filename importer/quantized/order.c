/* Column orders of quantized matrices (order.h). Columns are sorted by a counting sort, which is
 * stable. */
#include "importer/quantized/order.h"

#include "base/memory.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DOWN ".mlp.down_proj.weight"

/* ---- maps ------------------------------------------------------------------------------------ */

static bool is_all_zeros(const mgl_column_map *map)
{
    for (int64_t k = 0; k < map->columns; k++)
        if (map->group_of[k])
            return false;
    return true;
}

/* Checks the range of the groups. *moved: the first column k whose group is neither k / size nor
 * -1. *unset: the first column with the group -1. Each is -1 if there is no such column. */
static mgl_status scan(const mgl_column_map *map, const char *name, int64_t *moved, int64_t *unset,
                       mgl_error *err)
{
    *moved = *unset = -1;
    for (int64_t k = 0; k < map->columns; k++) {
        const int64_t group = map->group_of[k];
        if (group < -1 || group >= map->groups)
            return mgl_fail(err, MGL_BAD_INPUT, name,
                            "column %" PRId64 " has group %" PRId64
                            "; the groups are 0 to %" PRId64,
                            k, group, map->groups - 1);
        if (group == -1 && *unset < 0)
            *unset = k;
        if (group >= 0 && group != k / map->size && *moved < 0)
            *moved = k;
    }
    if (*moved < 0 || *unset < 0)
        return MGL_OK;
    return mgl_fail(err, MGL_BAD_INPUT, name,
                    "column %" PRId64 " has no group (-1), but column %" PRId64
                    " has group %" PRId64 "; either all columns or no column may have the group "
                    "-1: download the model again",
                    *unset, *moved, map->group_of[*moved]);
}

/* Writes the index of the first column of each group in the sorted columns to places (groups),
 * which contains zeros. Every group must have as many columns as without a map. */
static mgl_status place_groups(const mgl_column_map *map, const char *name, int64_t *places,
                               mgl_error *err)
{
    for (int64_t k = 0; k < map->columns; k++)
        places[map->group_of[k]]++;
    for (int64_t g = 0; g < map->groups; g++) {
        const int64_t first = g * map->size, left = map->columns - first;
        const int64_t size = left < map->size ? left : map->size;
        if (places[g] != size)
            return mgl_fail(err, MGL_BAD_INPUT, name,
                            "group %" PRId64 " has %" PRId64 " columns instead of %" PRId64
                            "; groups of different sizes are not supported: use a checkpoint "
                            "without reordered columns",
                            g, places[g], size);
        places[g] = first;
    }
    return MGL_OK;
}

mgl_status mgl_column_map_sort(const mgl_column_map *map, const char *name, int32_t **order,
                               mgl_error *err)
{
    int64_t moved, unset;
    *order = NULL;
    if (map->zeros_ignored && is_all_zeros(map))
        return MGL_OK;
    mgl_status status = scan(map, name, &moved, &unset, err);
    if (status || moved < 0)
        return status;
    int64_t *places = mgl_alloc_zero((size_t)map->groups, sizeof *places);
    int32_t *sorted = mgl_alloc((size_t)map->columns * sizeof *sorted);
    status = places && sorted ? place_groups(map, name, places, err)
                              : mgl_fail_memory(err, (size_t)map->columns * sizeof *sorted);
    for (int64_t k = 0; k < map->columns && !status; k++)
        sorted[places[map->group_of[k]]++] = (int32_t)k;
    mgl_free(places);
    if (status)
        mgl_free(sorted);
    else
        *order = sorted;
    return status;
}

/* ---- relabeling ----------------------------------------------------------------------------- */

/* Gives the rows of a tensor `order`, which is not copied. The tensor belongs to the same layer as
 * the down projection `down`, and its name ends with `suffix`. The graph may lack the tensor. */
static void relabel(mgl_comparison *c, const char *down, const char *suffix, const int32_t *order)
{
    char name[160];
    snprintf(name, sizeof name, "%.*s%s", (int)(strlen(down) - strlen(DOWN)), down, suffix);
    const int index = mgl_graph_find_tensor(c->graph, name);
    if (index < 0)
        return;
    mgl_quantized *q = &c->quantized[index];
    mgl_tensor *tensor = &c->graph->tensors[index];
    c->views[index].order = order;
    if (!mgl_tensor_is_quantized(tensor))
        return;
    q->view.order = order;
    /* Rows that share scales are no longer adjacent, so each row gets a copy of its scales. */
    if (q->format.group_rows > 1)
        q->format.group_rows = tensor->quantized.group_rows = 1;
}

void mgl_orders_apply(mgl_comparison *c)
{
    static const char *const suffixes[] = {".mlp.gate_proj.weight", ".mlp.up_proj.weight",
                                           ".mlp.gate_proj.bias", ".mlp.up_proj.bias"};
    for (int i = 0; i < c->graph->tensor_count; i++) {
        const char *name = c->graph->tensors[i].name;
        mgl_quantized *q = &c->quantized[i];
        if (!q->order)
            continue;
        if (!mgl_text_ends(name, DOWN)) {
            c->graph->tensors[i].reordered = true;
            c->graph->tensors[i].order = q->order;
            continue;
        }
        q->relabeled = true;
        for (size_t s = 0; s < sizeof suffixes / sizeof *suffixes; s++)
            relabel(c, name, suffixes[s], q->order);
    }
}
