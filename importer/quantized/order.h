/*
 * Column orders of quantized matrices. Activation order (desc_act, actorder "group") quantizes the
 * columns of a matrix in another order than they are stored in, so the columns of a group are not
 * adjacent. A stored map (g_idx, weight_g_idx) has the group of each column. Programs need the
 * columns of a group to be adjacent: the importer sorts the columns by group. Used by bind.c and
 * compare.c.
 */
#ifndef MGL_IMPORTER_QUANTIZED_ORDER_H
#define MGL_IMPORTER_QUANTIZED_ORDER_H

#include "importer/compare.h"

/* The map of the columns of a matrix to groups. */
typedef struct mgl_column_map {
    const int64_t *group_of; /* (columns), not owned; -1: no group */
    int64_t columns, groups;
    int64_t size;       /* columns of a group; the last group may have fewer */
    bool zeros_ignored; /* a map whose entries are all 0 reorders nothing */
} mgl_column_map;

/* Sorts the columns by group. A map with k / size or -1 for every column k reorders nothing, and
 * *order becomes NULL. For another map, *order becomes a new array (columns), which the caller
 * frees with mgl_free: the columns of group 0, then of group 1, and so on. The columns of a group
 * keep their order. Fails if the map is not valid; `name` is the stored tensor in the error. */
mgl_status mgl_column_map_sort(const mgl_column_map *map, const char *name, int32_t **order,
                               mgl_error *err);

/* Applies the column orders of all matrices. The inputs of down projections are relabeled: the rows
 * of gate and up, and the elements of their biases, get the order of the columns of down. The graph
 * then describes an equivalent model, in which the columns of a group of down are adjacent. Other
 * matrices with an order become `reordered`. The orders stay owned by `comparison->quantized`. */
void mgl_orders_apply(mgl_comparison *comparison);

#endif
