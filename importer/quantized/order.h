/*
 * Orders of columns: what a map of columns to groups (g_idx, weight_g_idx) stands for. Activation
 * order (desc_act, actorder "group") quantizes columns in another order than the order in which
 * they are stored, so that the columns of a group are scattered. Programs need them side by side:
 * the columns are sorted by group. Used by bind.c and compare.c.
 */
#ifndef MGL_IMPORTER_QUANTIZED_ORDER_H
#define MGL_IMPORTER_QUANTIZED_ORDER_H

#include "importer/compare.h"

/* A map of a matrix. */
typedef struct mgl_column_map {
    const int64_t *group_of; /* (columns) */
    int64_t columns, groups;
    int64_t size;       /* columns of a group; the last group has the rest */
    bool zeros_ignored; /* a map of zeros stands for no map */
} mgl_column_map;

/* Sorts the columns by group. A group of -1 stands for k / size. If the map reorders columns,
 * *order becomes a new array (columns): the columns, group by group; the columns of a group keep
 * their order. Else *order becomes NULL. Fails with `name` if the map is not valid. */
mgl_status mgl_column_map_sort(const mgl_column_map *map, const char *name, int32_t **order,
                               mgl_error *err);

/* Applies the orders of all matrices. The inputs of down projections are relabeled: the rows of
 * gate and up, and of their biases, get the order of the columns of down. The graph then stands for
 * a model with the same results, in which the columns of a group of down are side by side. Other
 * tensors of the graph become `reordered`. */
void mgl_orders_apply(mgl_comparison *comparison);

#endif
