/*
 * Map from the columns of a buffer to values: a sorted list of disjoint intervals, each a run of
 * columns of one node of the graph. Neighbors that continue each other are merged. So a value that
 * many tasks write slice by slice becomes one interval when the last slice is written. meaning.c
 * uses it.
 */
#include "validator/check.h"

#include "base/assert.h"
#include "base/memory.h"

#include <string.h>

/* The first interval that ends after `column`. */
static size_t find(const mgl_columns *columns, int64_t column)
{
    size_t lo = 0, hi = columns->count;
    while (lo < hi) {
        size_t middle = lo + (hi - lo) / 2;
        if (columns->items[middle].hi > column)
            hi = middle;
        else
            lo = middle + 1;
    }
    return lo;
}

static bool continues(const mgl_interval *a, const mgl_interval *b)
{
    return a->hi == b->lo && a->node == b->node && a->shift == b->shift;
}

/* Replaces `gone` intervals from `at` on by `count` others. */
static bool splice(mgl_columns *columns, size_t at, size_t gone, const mgl_interval *items,
                   size_t count)
{
    while (columns->count - gone + count > columns->capacity)
        if (!mgl_grow((void **)&columns->items, &columns->capacity, columns->capacity,
                      sizeof *columns->items))
            return false;
    memmove(columns->items + at + count, columns->items + at + gone,
            (columns->count - at - gone) * sizeof *items);
    memcpy(columns->items + at, items, count * sizeof *items);
    columns->count += count - gone;
    return true;
}

/* Whether the intervals are ascending and not empty. */
static bool is_sorted(const mgl_columns *columns)
{
    bool sorted = true;
    for (size_t i = 0; i < columns->count && sorted; i++)
        sorted = columns->items[i].lo < columns->items[i].hi &&
                 (i == 0 || columns->items[i - 1].hi <= columns->items[i].lo);
    return sorted;
}

bool mgl_columns_set(mgl_columns *columns, int64_t lo, int64_t hi, int node, int64_t node_lo)
{
    MGL_ASSERT(lo < hi && is_sorted(columns));
    mgl_interval pieces[3];
    size_t count = 0, first = find(columns, lo), last = first;
    mgl_interval whole = {lo, hi, node, node_lo - lo};
    if (!columns->items &&
        !mgl_grow((void **)&columns->items, &columns->capacity, 0, sizeof *columns->items))
        return false;
    if (first < columns->count && columns->items[first].lo < lo) {
        pieces[count] = columns->items[first];
        pieces[count++].hi = lo;
    } else if (first > 0 && continues(&columns->items[first - 1], &whole)) {
        pieces[count++] = columns->items[--first];
    }
    while (last < columns->count && columns->items[last].lo < hi)
        last++;
    if (count && continues(&pieces[count - 1], &whole))
        pieces[count - 1].hi = hi;
    else
        pieces[count++] = whole;
    if (last > 0 && last > first && columns->items[last - 1].hi > hi) {
        mgl_interval rest = columns->items[last - 1];
        rest.lo = hi;
        if (continues(&pieces[count - 1], &rest))
            pieces[count - 1].hi = rest.hi;
        else
            pieces[count++] = rest;
    } else if (last < columns->count && continues(&pieces[count - 1], &columns->items[last])) {
        pieces[count - 1].hi = columns->items[last++].hi;
    }
    return splice(columns, first, last - first, pieces, count);
}

bool mgl_columns_get(const mgl_columns *columns, int64_t lo, int64_t hi, int *node,
                     int64_t *node_lo)
{
    size_t at = find(columns, lo);
    if (at == columns->count || columns->items[at].lo > lo || columns->items[at].hi < hi)
        return false;
    *node = columns->items[at].node;
    *node_lo = lo + columns->items[at].shift;
    return true;
}
