/*
 * The part of a region that the union of some boxes does not cover (rectangle subtraction). The
 * region starts as one part. Each box is cut out of the parts, and a cut leaves the slabs on its
 * sides. Boxes of a buffer come sorted, so adjacent slices leave one part, not many. If a share of
 * the rows is cut out of all rows, the other shares of the same count remain; other columns may
 * have another share count. Likewise, if the unsplit rows are cut out of all rows, the split rows
 * remain, and the other way round. flags.c and init.c use these functions.
 */
#include "validator/check.h"

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"

#include <inttypes.h>

static void add_part(mgl_cover *c, const mgl_region *part)
{
    if (mgl_grow((void **)&c->parts, &c->part_capacity, c->part_count, sizeof *part))
        c->parts[c->part_count++] = *part;
    else
        c->check->no_memory = true;
}

/* Share 0 of 1 is all rows. */
static mgl_region simplify(const mgl_region *region, int rank)
{
    mgl_region out = *region;
    for (int d = 0; d < rank; d++)
        if (out.ranges[d].kind == MGL_RANGE_SHARE && out.ranges[d].hi == 1)
            out.ranges[d] = (mgl_range){.kind = MGL_RANGE_ROWS};
    return out;
}

/* Whether a box can be cut out of a part. A share of the rows, the unsplit rows and the split rows
 * can each be cut out of all rows or out of the same range, but not out of other ranges. */
static bool can_be_cut(const mgl_region *part, const mgl_region *box, int rank)
{
    for (int d = 0; d < rank; d++) {
        const mgl_range *p = &part->ranges[d], *b = &box->ranges[d];
        if (mgl_range_is_part_of_rows(b) && p->kind != MGL_RANGE_ROWS &&
            (p->kind != b->kind || p->lo != b->lo || p->hi != b->hi))
            return false;
    }
    return true;
}

/* Adds the shares of a part's rows other than `cut`, and reduces the part to `cut`. */
static void add_shares(mgl_cover *c, mgl_region *part, int d, const mgl_range *cut)
{
    for (int64_t i = 0; i < cut->hi; i++) {
        mgl_region slab = *part;
        slab.ranges[d] = (mgl_range){cut->kind, i, cut->hi};
        if (i != cut->lo)
            add_part(c, &slab);
    }
    part->ranges[d] = *cut;
}

/* Adds the slabs of a part on both sides of `cut`, and reduces the part to `cut`. */
static void add_slabs(mgl_cover *c, mgl_region *part, int d, const mgl_range *cut)
{
    mgl_region slab = *part;
    if (part->ranges[d].lo < cut->lo) {
        slab.ranges[d].hi = cut->lo;
        add_part(c, &slab);
        part->ranges[d].lo = cut->lo;
    }
    slab = *part;
    if (part->ranges[d].hi > cut->hi) {
        slab.ranges[d].lo = cut->hi;
        add_part(c, &slab);
        part->ranges[d].hi = cut->hi;
    }
}

/* Adds the parts of `part` outside `box`: the slabs on either side, dimension by dimension, and
 * then the other shares of the rows. In this order, columns beside the box keep all of their rows,
 * which other tasks may write in another number of shares. */
static void add_outside(mgl_cover *c, mgl_region part, const mgl_region *box, int rank)
{
    for (int d = 0; d < rank; d++)
        if (part.ranges[d].kind == MGL_RANGE_FIXED && box->ranges[d].kind == MGL_RANGE_FIXED)
            add_slabs(c, &part, d, &box->ranges[d]);
    for (int d = 0; d < rank; d++)
        if (part.ranges[d].kind == MGL_RANGE_ROWS && mgl_range_is_part_of_rows(&box->ranges[d]))
            add_shares(c, &part, d, &box->ranges[d]);
}

/* Subtracts the box from all parts. */
static void subtract(mgl_cover *c, const mgl_region *box, int rank)
{
    size_t count = c->part_count, kept = 0;
    if (!mgl_check_spend(c->check, count))
        return;
    for (size_t i = 0; i < count; i++) {
        mgl_region part = c->parts[i];
        if (mgl_region_overlaps(&part, box, rank) && can_be_cut(&part, box, rank))
            add_outside(c, part, box, rank);
        else
            c->parts[kept++] = part;
        if (c->check->no_memory)
            return;
    }
    /* Move the parts that were added after the old parts up to the kept parts. */
    for (size_t i = count; i < c->part_count; i++)
        c->parts[kept++] = c->parts[i];
    MGL_ASSERT(kept <= c->part_count);
    c->part_count = kept;
}

bool mgl_cover_all(mgl_cover *cover, const bool *marked, const mgl_region *region)
{
    mgl_check *check = cover->check;
    const mgl_program *p = check->program;
    int rank = p->buffers[region->buffer].rank, count;
    const int *boxes = mgl_boxes_overlapping(check, region, &count);
    const mgl_region whole = simplify(region, rank);
    cover->part_count = 0;
    add_part(cover, &whole);
    for (int i = 0; i < count && cover->part_count > 0 && mgl_check_goes_on(check); i++)
        if (marked[boxes[i]]) {
            const mgl_region box = simplify(&p->regions[check->boxes.boxes[boxes[i]].region], rank);
            subtract(cover, &box, rank);
        }
    return cover->part_count == 0;
}

void mgl_cover_witness(const mgl_cover *cover, const char *what)
{
    mgl_check *check = cover->check;
    for (size_t i = 0; i < cover->part_count && i < 8; i++) {
        const mgl_region *part = &cover->parts[i];
        const mgl_buffer *buffer = &check->program->buffers[part->buffer];
        mgl_text text = {0};
        for (int d = 0; d < buffer->rank; d++) {
            const mgl_range *range = &part->ranges[d];
            if (range->kind == MGL_RANGE_FIXED)
                mgl_text_format(&text, "%s%" PRId64 ":%" PRId64, d ? "," : "", range->lo,
                                range->hi);
            else if (range->kind == MGL_RANGE_ROW_KIND)
                mgl_text_format(&text, "%s:rows %s", d ? "," : "", mgl_row_kind_name(range));
            else if (range->kind == MGL_RANGE_SHARE)
                mgl_text_format(&text, "%s:rows %" PRId64 "/%" PRId64, d ? "," : "", range->lo,
                                range->hi);
            else
                mgl_text_format(&text, "%s:rows", d ? "," : "");
        }
        if (text.failed)
            check->no_memory = true;
        else
            mgl_check_witness(check, "%s: %.48s[%s]", what, buffer->name, text.bytes);
        mgl_text_clear(&text);
    }
}
