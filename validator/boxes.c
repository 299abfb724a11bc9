/*
 * The distinct rectangles (boxes) that the operands of a program name, per buffer, in an implicit
 * balanced bounding-volume tree. A program has many operands but few rectangles (every reader of x
 * reads all of it), so the passes that compare accesses compare rectangles. Their work grows with
 * operands times rectangles of a buffer, not with pairs of operands.
 *
 * The boxes of a buffer are sorted. In the tree over a sorted run, the middle box is the root of
 * the boxes on its left and right, and keeps the bounds of all of them. A search for the boxes that
 * overlap a region skips subtrees whose bounds do not.
 */
#include "validator/check.h"

#include "base/assert.h"
#include "base/memory.h"

#include <stdlib.h>

static int compare(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* Orders regions by buffer, then by ranges. */
static int compare_regions(const void *a, const void *b)
{
    const mgl_region *x = *(const mgl_region *const *)a, *y = *(const mgl_region *const *)b;
    int order = compare(x->buffer, y->buffer);
    for (int d = 0; d < MGL_MAX_RANK && order == 0; d++) {
        const mgl_range *r = &x->ranges[d], *s = &y->ranges[d];
        order = compare(r->kind, s->kind);
        if (order == 0 && mgl_range_has_numbers(r)) {
            order = compare(r->lo, s->lo);
            order = order ? order : compare(r->hi, s->hi);
        }
    }
    return order;
}

/* Numbers the sorted regions: equal ones share a box. */
static void number(mgl_check *check, const mgl_region *const *sorted, int count)
{
    const mgl_program *p = check->program;
    mgl_boxes *boxes = &check->boxes;
    int buffer = 0;
    for (int i = 0; i < count; i++) {
        int region = (int)(sorted[i] - p->regions);
        if (i == 0 || compare_regions(&sorted[i - 1], &sorted[i]) != 0) {
            for (; buffer <= sorted[i]->buffer; buffer++)
                boxes->first[buffer] = boxes->count;
            boxes->boxes[boxes->count++].region = region;
        }
        boxes->of_region[region] = boxes->count - 1;
    }
    for (; buffer <= p->buffer_count; buffer++)
        boxes->first[buffer] = boxes->count;
}

/* Widens `to` so that it covers `range`. A range that is not fixed covers everything. */
static void widen(mgl_range *to, const mgl_range *range)
{
    if (to->kind != MGL_RANGE_FIXED || range->kind != MGL_RANGE_FIXED) {
        *to = (mgl_range){.kind = MGL_RANGE_ROWS};
        return;
    }
    to->lo = range->lo < to->lo ? range->lo : to->lo;
    to->hi = range->hi > to->hi ? range->hi : to->hi;
}

/* Fills the bounds of boxes [first, last) and returns their root; -1 if there is none. The
 * recursion depth is the logarithm of the number of boxes. */
static int plant(mgl_check *check, int first, int last)
{
    if (first >= last)
        return -1;
    mgl_box *boxes = check->boxes.boxes;
    int root = first + (last - first) / 2;
    const int children[2] = {plant(check, first, root), plant(check, root + 1, last)};
    mgl_region *bounds = &boxes[root].bounds;
    *bounds = check->program->regions[boxes[root].region];
    for (int i = 0; i < 2; i++)
        for (int d = 0; d < MGL_MAX_RANK && children[i] >= 0; d++)
            widen(&bounds->ranges[d], &boxes[children[i]].bounds.ranges[d]);
    return root;
}

/* A walk over the tree of a buffer's boxes. */
struct walk {
    const mgl_check *check;
    const mgl_region *region;
    int rank;
    int *to; /* (count) boxes that overlap the region */
    int count;
    int64_t left; /* nodes that may still be visited; below 0: the walk was cut short */
};

/* Appends the boxes of [first, last) that overlap the region, in order. */
static void gather(struct walk *w, int first, int last)
{
    const mgl_box *boxes = w->check->boxes.boxes;
    while (first < last && --w->left >= 0) {
        int root = first + (last - first) / 2;
        if (!mgl_region_overlaps(w->region, &boxes[root].bounds, w->rank))
            return;
        gather(w, first, root);
        if (last - first == 1 ||
            mgl_region_overlaps(w->region, &w->check->program->regions[boxes[root].region],
                                w->rank))
            w->to[w->count++] = root;
        first = root + 1;
    }
}

const int *mgl_boxes_overlapping(mgl_check *check, const mgl_region *region, int *count)
{
    const mgl_boxes *boxes = &check->boxes;
    int buffer = region->buffer;
    MGL_ASSERT(buffer >= 0 && buffer < check->program->buffer_count && boxes->first);
    int64_t most = MGL_MAX_STEPS + 1 - check->steps;
    struct walk walk = {.check = check,
                        .region = region,
                        .rank = check->program->buffers[buffer].rank,
                        .to = boxes->overlapping,
                        .left = most};
    gather(&walk, boxes->first[buffer], boxes->first[buffer + 1]);
    MGL_ASSERT(walk.count <= boxes->first[buffer + 1] - boxes->first[buffer]);
    *count = mgl_check_spend(check, 1 + (size_t)(most - walk.left)) ? walk.count : 0;
    return boxes->overlapping;
}

void mgl_boxes_make(mgl_check *check)
{
    const mgl_program *p = check->program;
    mgl_boxes *boxes = &check->boxes;
    size_t regions = (size_t)p->region_count;
    const mgl_region **sorted = mgl_check_alloc(check, regions, sizeof *sorted);
    boxes->of_region = mgl_check_alloc(check, regions, sizeof *boxes->of_region);
    boxes->boxes = mgl_check_alloc(check, regions, sizeof *boxes->boxes);
    boxes->overlapping = mgl_check_alloc(check, regions, sizeof *boxes->overlapping);
    boxes->first = mgl_check_alloc(check, (size_t)p->buffer_count + 1, sizeof *boxes->first);
    if (check->no_memory) {
        mgl_free(sorted);
        return;
    }
    int count = 0;
    for (int i = 0; i < p->region_count; i++) {
        boxes->of_region[i] = -1;
        if (p->buffers[p->regions[i].buffer].space != MGL_SPACE_CONST)
            sorted[count++] = &p->regions[i];
    }
    qsort(sorted, (size_t)count, sizeof *sorted, compare_regions);
    number(check, sorted, count);
    mgl_free(sorted);
    for (int i = 0; i < p->buffer_count; i++)
        plant(check, boxes->first[i], boxes->first[i + 1]);
}
