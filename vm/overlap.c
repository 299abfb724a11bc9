/* Implements overlap.h: binary search over the resident segments, sorted by content, then by first
 * row. */
#include "vm/overlap.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "vm/weights.h"

/* A resident segment. */
typedef struct entry {
    mgl_segment segment; /* tensor indices are those of the wanted program */
    int queue;
} entry;

struct mgl_overlap {
    const mgl_program *resident, *wanted;
    size_t *sizes;  /* owned (parts of the resident program) */
    int *tensors;   /* owned (resident tensors) index in the wanted program, or -1 */
    entry *entries; /* owned (count), sorted */
    int count;
};

void mgl_overlap_close(mgl_overlap *overlap)
{
    if (!overlap)
        return;
    mgl_free(overlap->sizes);
    mgl_free(overlap->tensors);
    mgl_free(overlap->entries);
    mgl_free(overlap);
}

/* ---- segments ------------------------------------------------------------------------------- */

static int compare_numbers(int64_t a, int64_t b)
{
    return a < b ? -1 : a > b;
}

/* Orders segments by everything that determines the bytes of a row group, except the rows. */
static int compare_content(const mgl_segment *a, const mgl_segment *b)
{
    const int64_t pairs[][2] = {{a->tensor, b->tensor},
                                {a->tensor2, b->tensor2},
                                {a->layout, b->layout},
                                {a->col_lo, b->col_lo},
                                {a->col_hi, b->col_hi}};
    int order = 0;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs && order == 0; i++)
        order = compare_numbers(pairs[i][0], pairs[i][1]);
    return order;
}

static int compare_entries(const void *a, const void *b)
{
    const mgl_segment *first = &((const entry *)a)->segment, *second = &((const entry *)b)->segment;
    int order = compare_content(first, second);
    return order ? order : compare_numbers(first->row_lo, second->row_lo);
}

/* Whether both are the same weights in the same format. */
static bool is_same_tensor(const mgl_program_tensor *a, const mgl_program_tensor *b)
{
    return mgl_weight_format_equal(a->format, b->format) && a->rank == b->rank &&
           a->rows == b->rows && a->cols == b->cols && !strcmp(a->checkpoint, b->checkpoint);
}

static int find_tensor(const mgl_program *program, const mgl_program_tensor *tensor)
{
    for (int i = 0; i < program->tensor_count; i++)
        if (is_same_tensor(&program->tensors[i], tensor))
            return i;
    return -1;
}

static void add_segment(mgl_overlap *o, int queue, const mgl_segment *segment)
{
    entry *e = &o->entries[o->count];
    *e = (entry){*segment, queue};
    e->segment.tensor = o->tensors[segment->tensor];
    e->segment.tensor2 = segment->tensor2 < 0 ? -1 : o->tensors[segment->tensor2];
    bool known = e->segment.tensor >= 0 && (segment->tensor2 < 0 || e->segment.tensor2 >= 0);
    if (known && segment->row_lo % MGL_ROW_GROUP == 0 && segment->row_lo < segment->row_hi)
        o->count++;
}

static void add_queue(mgl_overlap *o, int queue)
{
    const mgl_program *p = o->resident;
    const mgl_run *tasks = &p->queues[queue].tasks;
    for (int t = tasks->first; t < tasks->first + tasks->count; t++) {
        const mgl_run *run = &p->tasks[t].segments;
        for (int s = run->first; s < run->first + run->count; s++)
            add_segment(o, queue, &p->segments[s]);
    }
}

mgl_status mgl_overlap_open(const mgl_program *resident, const mgl_program *wanted,
                            mgl_overlap **out, mgl_error *err)
{
    mgl_overlap *o = mgl_alloc_zero(1, sizeof *o);
    *out = NULL;
    if (!o)
        return mgl_fail_memory(err, sizeof *o);
    *o = (mgl_overlap){.resident = resident,
                       .wanted = wanted,
                       .sizes = mgl_weights_sizes(resident),
                       .tensors = mgl_alloc_zero((size_t)resident->tensor_count + 1, sizeof(int)),
                       .entries =
                           mgl_alloc_zero((size_t)resident->segment_count + 1, sizeof(entry))};
    if (!o->sizes || !o->tensors || !o->entries) {
        mgl_overlap_close(o);
        return mgl_fail_memory(err, (size_t)resident->segment_count * sizeof(entry));
    }
    for (int i = 0; i < resident->tensor_count; i++)
        o->tensors[i] = find_tensor(wanted, &resident->tensors[i]);
    for (int q = 0; q < resident->queue_count && resident->exec.warps == wanted->exec.warps; q++)
        add_queue(o, q);
    qsort(o->entries, (size_t)o->count, sizeof *o->entries, compare_entries);
    *out = o;
    return MGL_OK;
}

/* Number of entries that sort before, or equal to, a segment with first row `row`. */
static int count_before(const mgl_overlap *o, const mgl_segment *segment, int64_t row)
{
    const entry wanted = {{.tensor = segment->tensor,
                           .tensor2 = segment->tensor2,
                           .layout = segment->layout,
                           .row_lo = row,
                           .col_lo = segment->col_lo,
                           .col_hi = segment->col_hi},
                          0};
    int low = 0, high = o->count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (compare_entries(&o->entries[middle], &wanted) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* End of the whole row groups from `row` on that are equal in both segments. A segment that ends
 * within a row group has zeros after its end, so this group is shared only if both end at that
 * row. */
static int64_t shared_end(const mgl_segment *a, const mgl_segment *b, int64_t row)
{
    int64_t end = a->row_hi < b->row_hi ? a->row_hi : b->row_hi;
    if (a->row_hi != b->row_hi)
        end -= end % MGL_ROW_GROUP;
    return end > row ? end : row;
}

int64_t mgl_overlap_find_rows(const mgl_overlap *o, const mgl_segment *segment, int64_t row,
                              mgl_origin *out)
{
    *out = (mgl_origin){.part = MGL_ORIGIN_NONE};
    MGL_ASSERT(row >= segment->row_lo && row < segment->row_hi);
    if (!o || segment->row_lo % MGL_ROW_GROUP != 0)
        return segment->row_hi;
    int next = count_before(o, segment, row);
    const entry *e = next > 0 ? &o->entries[next - 1] : NULL;
    if (e && !compare_content(&e->segment, segment)) {
        int64_t end = shared_end(&e->segment, segment, row);
        int64_t groups = (mgl_segment_rows(&e->segment) + MGL_ROW_GROUP - 1) / MGL_ROW_GROUP;
        int64_t unit = mgl_segment_bytes(o->wanted, &e->segment) / groups;
        int64_t group = (row - e->segment.row_lo) / MGL_ROW_GROUP;
        *out = (mgl_origin){e->queue, (size_t)(e->segment.offset + group * unit)};
        if (end > row)
            return end;
    }
    *out = (mgl_origin){.part = MGL_ORIGIN_NONE};
    e = next < o->count ? &o->entries[next] : NULL;
    bool goes_on =
        e && !compare_content(&e->segment, segment) && e->segment.row_lo < segment->row_hi;
    return goes_on ? e->segment.row_lo : segment->row_hi;
}

/* ---- const buffers -------------------------------------------------------------------------- */

static bool is_same_buffer(const mgl_overlap *o, const mgl_buffer *a, const mgl_buffer *b)
{
    bool same = a->space == b->space && a->dtype == b->dtype && a->rank == b->rank &&
                a->source == b->source &&
                (!mgl_source_has_tensor(a->source) || o->tensors[a->tensor] == b->tensor);
    for (int i = 0; i < a->rank && same; i++)
        same = a->extents[i].count == b->extents[i].count;
    return same;
}

mgl_origin mgl_overlap_find_const(const mgl_overlap *o, int buffer)
{
    const mgl_program *p = o ? o->resident : NULL;
    for (int i = 0; p && i < p->buffer_count; i++)
        if (o->sizes[p->queue_count + i] > 0 &&
            is_same_buffer(o, &p->buffers[i], &o->wanted->buffers[buffer]))
            return (mgl_origin){.part = p->queue_count + i};
    return (mgl_origin){.part = MGL_ORIGIN_NONE};
}
