/*
 * Encodes programs for the kernel (encode.h). Each region becomes an address with strides, each
 * segment a run of blocks on the tape, each edge a counter index. A queue has one record per task,
 * in queue order (device/record.h); most `clear` tasks share the preceding record.
 */
#include "vm/cuda/encode.h"

#include <string.h>

#include "base/memory.h"
#include "schedule/formats.h"
#include "schedule/lists.h"
#include "schedule/variants.h"

_Static_assert(MGL_MAX_CAPACITY <= 1 << 25, "a position times 64 splits must fit 32 bits");
_Static_assert(sizeof(mgl_record) % 16 == 0 && sizeof(mgl_device_operand) % 16 == 0,
               "operands stand behind the record");

/* ---- contents of a record ------------------------------------------------------------------- */

/* Number of operands in the record of a task. A `clear` has none, and biases are not counted. */
static int count_operands(const mgl_task *task)
{
    return task->op == MGL_OP_CLEAR ? 0 : task->in.count + task->out.count - mgl_task_biases(task);
}

/* Whether the weights of a product have row factors. */
static bool has_factors(const mgl_program *program, const mgl_task *task)
{
    return task->segments.count > 0 && mgl_weight_format_has_factors(mgl_segment_format(
                                           program, &program->segments[task->segments.first]));
}

static bool has_scales(const mgl_program *program, const mgl_task *task)
{
    return task->segments.count > 0 && mgl_weight_format_is_scaled(mgl_segment_format(
                                           program, &program->segments[task->segments.first]));
}

size_t mgl_cuda_record_bytes(const mgl_program *program, const mgl_task *task)
{
    const int clears = task->op == MGL_OP_CLEAR ? task->out.count : 0;
    const int factors =
        has_factors(program, task) ? task->segments.count * 2 + 1 : has_scales(program, task);
    return sizeof(mgl_record) + (size_t)count_operands(task) * sizeof(mgl_device_operand) +
           (size_t)task->segments.count * sizeof(mgl_device_segment) +
           (size_t)mgl_task_biases(task) * sizeof(mgl_device_vector) +
           (size_t)factors * sizeof(mgl_device_vector) +
           (size_t)task->waits.count * sizeof(mgl_device_wait) +
           (size_t)task->signals.count * sizeof(uint32_t) + 30 + /* padding */
           (size_t)clears * sizeof(mgl_device_clear);
}

/* A `clear` is stored in the record of the preceding task, unless the clear has edges, that task is
 * a clear too, or its record has no room. */
static bool has_record(const mgl_program *program, int task)
{
    const mgl_task *t = &program->tasks[task];
    if (t->op != MGL_OP_CLEAR || t->waits.count > 0 || t->signals.count > 0 || task == 0)
        return true;
    const size_t bytes = (size_t)t->out.count * sizeof(mgl_device_clear);
    return t[-1].op == MGL_OP_CLEAR ||
           mgl_cuda_record_bytes(program, &t[-1]) + bytes > MGL_RECORD_BYTES;
}

/* The `clear` that is stored in the record of a task, or -1. */
static int clear_behind(const mgl_program *program, int task)
{
    return task + 1 < program->task_count && !has_record(program, task + 1) ? task + 1 : -1;
}

/* Number of regions that the record of a task resets. */
static int count_clears(const mgl_program *program, int task)
{
    int behind = clear_behind(program, task);
    return (program->tasks[task].op == MGL_OP_CLEAR ? program->tasks[task].out.count : 0) +
           (behind >= 0 ? program->tasks[behind].out.count : 0);
}

bool mgl_cuda_find_clear(const mgl_program *program, const mgl_region *region,
                         mgl_device_clear *out, int64_t *first)
{
    const mgl_buffer *b = &program->buffers[region->buffer];
    int64_t stride = (int64_t)mgl_dtype_size(b->dtype), run = 1;
    int rows = 0;
    bool whole = true; /* the dimensions after the current one are complete */
    while (rows < b->rank && b->extents[rows].symbol != MGL_ROWS)
        rows++;
    if (rows > 1 || rows + 1 >= b->rank)
        return false;
    *first = 0;
    *out = (mgl_device_clear){.outer = 1, .sets = (unsigned short)b->sets};
    for (int i = b->rank - 1; i >= 0; i--) {
        const mgl_range *range = &region->ranges[i];
        int64_t length = range->hi - range->lo;
        if (i > rows) {
            if (!whole)
                return false;
            whole = length == b->extents[i].count;
            run = length * stride;
        } else if (i == rows) {
            if (run > INT32_MAX || stride > INT32_MAX)
                return false;
            out->bytes = (unsigned)run;
            out->row_bytes = (unsigned)stride;
        } else {
            out->outer = (unsigned)length;
            out->outer_bytes = (uint64_t)stride;
        }
        *first += i == rows ? 0 : range->lo * stride;
        stride *= b->extents[i].count;
    }
    out->set_bytes = (uint64_t)stride;
    return true;
}

/* ---- records -------------------------------------------------------------------------------- */

struct encoder {
    const mgl_program *program; /* both lists */
    const mgl_program *list;    /* current list */
    const mgl_cuda_addresses *addresses;
    mgl_dimensions dimensions; /* of the current list */
    const uint32_t *signals;   /* (counter_count) signals in an epoch of the current list */
    const uint32_t *others;    /* and in an epoch of the other list */
    unsigned char *records;
    size_t length, capacity; /* of records */
    size_t before;           /* offset of the queue's previous record */
    unsigned short *kinds;   /* (buffer) bits 1 << MGL_KV_... of the rows of its writers */
    int first_task;          /* first task of the list in the program */
    bool failed;             /* memory ran out */
};

/* Appends `bytes` zeroed bytes; NULL when memory ran out. */
static void *append(struct encoder *e, size_t bytes)
{
    if (e->failed)
        return NULL;
    if (e->length + bytes > e->capacity) {
        size_t wanted = 2 * e->capacity + bytes + 65536;
        unsigned char *grown = mgl_realloc(e->records, wanted);
        if (!grown) {
            e->failed = true;
            return NULL;
        }
        e->records = grown;
        e->capacity = wanted;
    }
    void *at = e->records + e->length;
    memset(at, 0, bytes);
    e->length += bytes;
    return at;
}

/* Aligns the next item to 16 bytes. */
static void align(struct encoder *e)
{
    append(e, (16 - e->length % 16) % 16);
}

/* first0 or first1 of an operand: the start of a fixed range, the number of a share, or the rows of
 * a range of rows (MGL_KV_...). */
static int first_of(const mgl_range *range)
{
    _Static_assert(MGL_KV_UNSPLIT == MGL_ROWS_UNSPLIT + 1 && MGL_KV_SPLIT == MGL_ROWS_SPLIT + 1,
                   "MGL_KV_ALL is 0, and the kinds of rows follow");
    if (mgl_range_has_row_kind(range))
        return (int)range->lo + 1;
    return mgl_range_has_numbers(range) ? (int)range->lo : 0;
}

static void add_operand(struct encoder *e, const mgl_region *region)
{
    const mgl_buffer *b = &e->program->buffers[region->buffer];
    mgl_device_operand *o = append(e, sizeof *o);
    int64_t strides[MGL_MAX_RANK] = {0}, stride = 1, first = 0;
    if (!o)
        return;
    for (int i = b->rank - 1; i >= 0; i--) {
        const mgl_range *range = &region->ranges[i];
        bool is_fixed = range->kind == MGL_RANGE_FIXED;
        strides[i] = stride;
        stride *= b->extents[i].count;
        first += is_fixed ? range->lo * strides[i] : 0;
        if (i < 3)
            o->count[i] = (int)(is_fixed ? range->hi - range->lo : b->extents[i].count);
    }
    o->at = e->addresses->buffers[region->buffer] + (uint64_t)first * mgl_dtype_size(b->dtype);
    o->set_bytes = (uint64_t)stride * mgl_dtype_size(b->dtype);
    o->sets = (uint8_t)b->sets;
    o->flag = region->flag;
    o->dtype = (uint8_t)b->dtype;
    o->stride0 = strides[0];
    o->stride1 = (int)strides[1];
    o->stride2 = (int)strides[2];
    o->extent0 = (int)b->extents[0].count;
    o->first0 = first_of(&region->ranges[0]);
    if (region->ranges[0].kind == MGL_RANGE_SHARE)
        o->extent0 = (int)region->ranges[0].hi;
    o->first1 = b->rank > 1 ? first_of(&region->ranges[1]) : 0;
    o->paged = b->paged;
    if (b->paged) /* the place of a column depends on its index in the buffer */
        o->at = e->addresses->buffers[region->buffer];
}

/* The last task of the queue that has segments, or its first task. */
static const mgl_task *last_product(const mgl_program *program, const mgl_queue *queue)
{
    const mgl_task *last = &program->tasks[queue->tasks.first];
    for (int i = 0; i < queue->tasks.count; i++) {
        const mgl_task *task = &program->tasks[queue->tasks.first + i];
        if (task->segments.count > 0)
            last = task;
    }
    return last;
}

/* Whether an attention task follows a task before the next one that has segments. */
static bool attends_next(const mgl_program *program, const mgl_queue *queue, const mgl_task *task)
{
    const mgl_task *end = &program->tasks[queue->tasks.first] + queue->tasks.count;
    for (task++; task < end && task->segments.count == 0; task++)
        if (mgl_op_is_attention(task->op))
            return true;
    return false;
}

/* The tape page up to which the consumer frees pages after a segment. After the queue's last
 * product: the end of the tape. If an attention follows: the page after the segment's last page,
 * because that page's rest is loaded again. Otherwise: the first page of the next segment. */
static uint32_t end_page(const struct encoder *e, const mgl_queue *queue, const mgl_task *task,
                         int segment)
{
    const mgl_program *program = e->program;
    const mgl_segment *s = &program->segments[segment];
    const int64_t page = program->exec.page_bytes;
    const bool last = segment == task->segments.first + task->segments.count - 1;
    int64_t end = s->offset + mgl_segment_bytes(program, s);
    if (last && task == last_product(program, queue))
        end = queue->tape_bytes;
    else if (last && e->addresses->kv_ring && attends_next(program, queue, task))
        end += page - 1;
    return (uint32_t)(end / page);
}

static mgl_device_segment device_segment(const struct encoder *e, const mgl_queue *queue,
                                         const mgl_task *task, int segment)
{
    const mgl_program *program = e->program;
    const mgl_segment *s = &program->segments[segment];
    int tensors = s->layout == MGL_LAYOUT_G8X2 ? 2 : 1;
    return (mgl_device_segment){
        .block = (uint32_t)(s->offset / MGL_BLOCK_BYTES),
        .kblocks = (int)mgl_segment_blocks(program, s),
        .groups = (int)((mgl_segment_rows(s) + MGL_ROW_GROUP - 1) / MGL_ROW_GROUP) * tensors,
        .rows = (int)mgl_segment_rows(s),
        .columns = (int)(s->col_hi - s->col_lo),
        .end = end_page(e, queue, task, segment),
    };
}

/* Whether two segments of a task are contiguous on the tape in whole row groups, so that their rows
 * form one segment. */
static bool continues(const mgl_program *program, const mgl_segment *first,
                      const mgl_segment *second)
{
    return first->layout == MGL_LAYOUT_G8 && second->layout == MGL_LAYOUT_G8 &&
           first->col_lo == second->col_lo && first->col_hi == second->col_hi &&
           mgl_segment_rows(first) % MGL_ROW_GROUP == 0 &&
           first->offset + mgl_segment_bytes(program, first) == second->offset;
}

/* Adds a task's segments, contiguous ones merged. Returns the number of merged segments. */
static int add_segments(struct encoder *e, const mgl_queue *queue, const mgl_task *task)
{
    const mgl_segment *s = &e->program->segments[task->segments.first];
    int count = 0;
    mgl_device_segment part = {0};
    for (int i = 0; i < task->segments.count; i++) {
        const mgl_device_segment next = device_segment(e, queue, task, task->segments.first + i);
        if (i == 0 || !continues(e->program, &s[i - 1], &s[i])) {
            part = next;
            count++;
        } else {
            part.groups += next.groups;
            part.rows += next.rows;
            part.end = next.end;
            e->length -= e->failed ? 0 : sizeof part;
        }
        mgl_device_segment *to = append(e, sizeof *to);
        if (to)
            *to = part;
    }
    return count;
}

/* Appends a vector for each tensor of a task: its biases, or its row factors. Returns the number of
 * vectors. */
static int add_vectors(struct encoder *e, const mgl_task *task, bool factors)
{
    const mgl_program *program = e->program;
    const mgl_op_info *info = mgl_op_get(task->op);
    int count = 0, column = 0;
    align(e);
    for (int i = 0; i < task->segments.count; i++) {
        const mgl_segment *s = &program->segments[task->segments.first + i];
        for (int j = 0; j < (s->tensor2 < 0 ? 1 : 2); j++, count++) {
            const int buffer =
                factors ? program->tensors[j ? s->tensor2 : s->tensor].factors
                        : program->regions[task->in.first + info->in_count + count].buffer;
            mgl_device_vector *to = append(e, sizeof *to);
            if (to)
                *to = (mgl_device_vector){.at = e->addresses->buffers[buffer] +
                                                (uint64_t)(s->row_lo - column) * sizeof(float),
                                          .end = column + (int)mgl_segment_rows(s)};
        }
        column += (int)mgl_segment_rows(s);
    }
    return count;
}

/* Appends the column map of a task's tensors, which have the same one, or an address of 0. */
static void add_column_map(struct encoder *e, const mgl_task *task)
{
    const mgl_program *program = e->program;
    const int order = program->tensors[program->segments[task->segments.first].tensor].order;
    align(e);
    mgl_device_vector *to = append(e, sizeof *to);
    if (to && order >= 0)
        to->at = e->addresses->buffers[order];
}

/* Adds a task's biases, then its row factors or its column map, in the order of its tensors. */
static void add_biases(struct encoder *e, const mgl_task *task, size_t record)
{
    const int biases = mgl_task_biases(task) > 0 ? add_vectors(e, task, false) : 0;
    if (has_factors(e->program, task)) {
        add_vectors(e, task, true);
        append(e, sizeof(mgl_device_vector)); /* address 0: the end of the list */
    } else if (has_scales(e->program, task)) {
        add_column_map(e, task);
    }
    if (!e->failed)
        ((mgl_record *)(e->records + record))->biases = (uint8_t)biases;
}

static void add_edges(struct encoder *e, const mgl_task *task, size_t record)
{
    const mgl_program *program = e->program;
    align(e);
    uint32_t wait_at = (uint32_t)(e->length - record);
    for (int i = 0; i < task->waits.count; i++) {
        const mgl_wait *wait = &program->waits[task->waits.first + i];
        mgl_device_wait *to = append(e, sizeof *to);
        if (to)
            *to = (mgl_device_wait){.counter = (uint32_t)wait->counter,
                                    .threshold = (uint32_t)wait->threshold,
                                    .per_epoch = e->signals[wait->counter],
                                    .per_other = e->others[wait->counter]};
    }
    uint32_t signal_at = (uint32_t)(e->length - record);
    for (int i = 0; i < task->signals.count; i++) {
        uint32_t *to = append(e, sizeof *to);
        if (to)
            *to = (uint32_t)program->signals[task->signals.first + i];
    }
    if (e->failed)
        return;
    mgl_record *r = (mgl_record *)(e->records + record);
    r->wait_at = wait_at;
    r->signal_at = signal_at;
}

static void add_clears_of(struct encoder *e, int task)
{
    const mgl_run *out = &e->program->tasks[task].out;
    for (int i = out->first; i < out->first + out->count; i++) {
        const mgl_region *region = &e->program->regions[i];
        mgl_device_clear *c = append(e, sizeof *c);
        int64_t first = 0;
        if (c && mgl_cuda_find_clear(e->program, region, c, &first)) {
            c->at = e->addresses->buffers[region->buffer] + (uint64_t)first;
            c->kinds = e->kinds[region->buffer];
        }
    }
}

static void add_clears(struct encoder *e, int index, size_t record)
{
    const mgl_program *program = e->program;
    int behind = clear_behind(program, index);
    size_t at = e->length - record;
    if (program->tasks[index].op == MGL_OP_CLEAR)
        add_clears_of(e, index);
    if (behind >= 0)
        add_clears_of(e, behind);
    align(e);
    if (e->failed)
        return;
    mgl_record *r = (mgl_record *)(e->records + record);
    r->clears = count_clears(program, index);
    r->clear_at = (uint32_t)at;
}

/* Tape offset of the queue after a task, given the offset `at` before the task. */
static int64_t tape_behind(const mgl_program *program, const mgl_queue *queue, const mgl_task *task,
                           int64_t at)
{
    if (task->segments.count == 0)
        return at;
    const mgl_segment *last = &program->segments[task->segments.first + task->segments.count - 1];
    return task == last_product(program, queue) ? queue->tape_bytes
                                                : last->offset + mgl_segment_bytes(program, last);
}

/* Places an attention at byte `at` of the tape, in pages. The rest of the page at `at` is loaded
 * again after the attention (device/roles/loader.cuh), unless another attention follows
 * directly. */
static void place_kv(const struct encoder *e, const mgl_queue *queue, const mgl_task *task,
                     int64_t at, mgl_record *r)
{
    const int64_t page = e->program->exec.page_bytes;
    r->kv_page = (uint32_t)((at + page - 1) / page);
    r->kv_again = at % page != 0 && !attends_next(e->program, queue, task);
}

/* Device address of position 0 of a task's keys or values. */
static uint64_t kv_address(const struct encoder *e, const mgl_task *task, int operand)
{
    const mgl_region *region = mgl_task_operand(e->program, task, operand);
    const mgl_buffer *b = &e->program->buffers[region->buffer];
    int64_t element = 0;
    for (int i = 0; i < b->rank; i++) {
        const mgl_range *range = &region->ranges[i];
        element = element * b->extents[i].count + (range->kind == MGL_RANGE_FIXED ? range->lo : 0);
    }
    return e->addresses->buffers[region->buffer] + (uint64_t)element * mgl_dtype_size(b->dtype);
}

static mgl_device_kv device_kv(const struct encoder *e, const mgl_task *task, int64_t tape_at)
{
    const mgl_attention_operands *o = mgl_op_attention(task->op);
    mgl_device_kv kv = {.keys = kv_address(e, task, o->k_past),
                        .values = kv_address(e, task, o->v_past),
                        .stop = (uint32_t)(tape_at / MGL_BLOCK_BYTES),
                        .splits = 1};
    if (o->part != MGL_NO_OPERAND) {
        const mgl_region *part = mgl_task_operand(e->program, task, o->part);
        kv.split = (uint32_t)part->ranges[0].lo;
        kv.splits = (uint32_t)e->program->buffers[part->buffer].extents[0].count;
        kv.rows = (uint32_t)first_of(&part->ranges[1]);
    } else {
        kv.rows = (uint32_t)first_of(&mgl_task_result(e->program, task)->ranges[0]);
    }
    return kv;
}

/* Adds the queue's attention tasks for the loader, after its records. */
static void add_kv(struct encoder *e, const mgl_queue *queue, mgl_device_queue *out)
{
    int64_t tape_at = 0;
    out->kv_at = (uint32_t)e->length;
    for (int i = queue->tasks.first; i < queue->tasks.first + queue->tasks.count; i++) {
        const mgl_task *task = &e->program->tasks[i];
        mgl_device_kv *to = mgl_op_is_attention(task->op) ? append(e, sizeof *to) : NULL;
        if (to) {
            *to = device_kv(e, task, tape_at);
            out->kv_count++;
        }
        tape_at = tape_behind(e->program, queue, task, tape_at);
    }
}

/* The blocks of scales before the k blocks of a row group. *scaled: 1 if the format is scaled. */
static uint32_t scale_blocks(const mgl_program *program, int segment, uint32_t *scaled)
{
    const mgl_segment *s = &program->segments[segment];
    const mgl_weight_format format = mgl_segment_format(program, s);
    *scaled = mgl_weight_format_is_scaled(format);
    return (uint32_t)(mgl_tape_scale_bytes(format, s->col_hi - s->col_lo) / MGL_BLOCK_BYTES);
}

/* Adds the queue's gamma-scaled products and row attentions (with 0 row groups) for the loader,
 * after its records. The second list has the segments of the first, in the same order
 * (mgl_cuda_check_order). */
static void add_panels(struct encoder *e, const mgl_queue *queue, mgl_device_queue *out)
{
    out->kv_at = (uint32_t)e->length;
    for (int i = queue->tasks.first; i < queue->tasks.first + queue->tasks.count; i++) {
        const mgl_task *task = &e->program->tasks[i];
        const mgl_family family = mgl_op_get(task->op)->family;
        if (family != MGL_FAMILY_PANEL && family != MGL_FAMILY_ATTEND_ROWS)
            continue;
        mgl_device_panel panel = {.heads = mgl_op_heads(task->op)};
        if (task->segments.count > 0)
            panel.tape = out->tape + (uint64_t)e->program->segments[task->segments.first].offset;
        for (int s = 0; s < task->segments.count; s++) {
            const mgl_device_segment part =
                device_segment(e, queue, task, task->segments.first + s);
            panel.groups += (uint32_t)part.groups;
            panel.kblocks = (uint32_t)part.kblocks;
            panel.scales = scale_blocks(e->program, task->segments.first + s, &panel.scaled);
        }
        mgl_device_panel *to = append(e, sizeof *to);
        if (to)
            *to = panel;
        out->kv_count++;
    }
}

/* Appends one task, at byte `tape_at` of the tape. Returns the length of its record. */
static uint32_t add_task(struct encoder *e, const mgl_queue *queue, int index, int64_t tape_at)
{
    const mgl_task *task = &e->program->tasks[index];
    size_t at = e->length;
    mgl_record *r = append(e, sizeof *r);
    if (!r)
        return 0;
    const mgl_row_ranges row_ranges =
        mgl_variant_row_ranges(e->list, &e->list->tasks[index - e->first_task], &e->dimensions);
    r->op = (int)task->op;
    r->variant = (unsigned char)task->variant;
    r->skinny_rows = (unsigned char)row_ranges.skinny;
    r->batch_rows = (unsigned char)row_ranges.batch;
    r->task = index;
    r->outputs = task->out.count;
    r->waits = task->waits.count;
    r->signals = task->signals.count;
    if (mgl_op_is_attention(task->op))
        place_kv(e, queue, task, tape_at, r);
    else
        r->format = (uint32_t)mgl_cuda_format_of(e->program, task);
    const mgl_op_info *info = mgl_op_get(task->op);
    const int extra = mgl_task_biases(task) > 0 ? 0 : info->extra_count;
    for (int i = 0; i < info->in_count + info->out_count + extra; i++) {
        const int place = mgl_task_place(task, i);
        if (place >= 0 && task->op != MGL_OP_CLEAR)
            add_operand(e, &e->program->regions[task->in.first + place]);
    }
    size_t segments = e->length - at;
    const int parts = add_segments(e, queue, task);
    add_biases(e, task, at);
    add_edges(e, task, at);
    align(e);
    add_clears(e, index, at);
    if (e->failed)
        return 0;
    r = (mgl_record *)(e->records + at);
    r->segment_at = (uint32_t)segments;
    r->segments = parts;
    return (uint32_t)(e->length - at);
}

/* Links the record at `at`, of `bytes` bytes, to the previous record. */
static void link_record(struct encoder *e, size_t at, uint32_t bytes)
{
    if (e->failed)
        return;
    mgl_record *before = (mgl_record *)(e->records + e->before);
    before->next = (uint32_t)at;
    before->next_bytes = bytes;
    e->before = at;
}

/* Appends empty clears to a queue of `count` records, up to the minimum for programs with two
 * lists. */
static void add_padding(struct encoder *e, const mgl_queue *queue, int count)
{
    for (; count < MGL_LEAST_RECORDS && !e->failed; count++) {
        const size_t at = e->length;
        mgl_record *r = append(e, sizeof *r);
        if (!r)
            return;
        *r = (mgl_record){.op = MGL_OP_CLEAR, .task = queue->tasks.first + queue->tasks.count - 1};
        link_record(e, at, sizeof *r);
    }
}

/* Adds a queue's tasks of the current list. Both lists use the tape of the first. */
static void add_queue(struct encoder *e, int index, const mgl_run *tasks, mgl_device_queue *out)
{
    const mgl_program *program = e->program;
    mgl_queue queue = program->queues[index];
    int64_t tape_at = 0;
    int count = 0;
    queue.tasks = *tasks;
    *out = (mgl_device_queue){.tape = e->addresses->tapes[index],
                              .pages = (uint32_t)(queue.tape_bytes / program->exec.page_bytes),
                              .first = (uint32_t)e->length,
                              .tasks = (uint32_t)queue.tasks.count};
    for (int i = queue.tasks.first; i < queue.tasks.first + queue.tasks.count && !e->failed; i++) {
        size_t at = e->length;
        if (!has_record(program, i))
            continue;
        uint32_t bytes = add_task(e, &queue, i, tape_at);
        tape_at = tape_behind(program, &queue, &program->tasks[i], tape_at);
        if (count++ == 0) {
            out->first_bytes = bytes;
            e->before = at;
        } else {
            link_record(e, at, bytes);
        }
    }
    if (e->program->limits.second_rows > 0)
        add_padding(e, &queue, count);
    if (e->failed)
        return;
    mgl_record *last = (mgl_record *)(e->records + e->before);
    last->next = out->first;
    last->next_bytes = out->first_bytes;
    if (e->list->is_second)
        add_panels(e, &queue, out);
    else if (e->addresses->kv_ring)
        add_kv(e, &queue, out);
}

/* Signals of each counter in an epoch of a list; NULL when memory ran out. */
static uint32_t *count_signals(const mgl_program *list, int counters)
{
    uint32_t *signals = mgl_alloc_zero((size_t)counters + 1, sizeof *signals);
    for (int i = 0; signals && i < list->signal_count; i++)
        signals[list->signals[i]]++;
    return signals;
}

/* Finds the kinds of rows with which tasks write each buffer; NULL when memory ran out. */
static unsigned short *find_kinds(const mgl_program *program)
{
    unsigned short *kinds = mgl_alloc_zero((size_t)program->buffer_count + 1, sizeof *kinds);
    for (int t = 0; kinds && t < program->task_count; t++) {
        const mgl_task *task = &program->tasks[t];
        for (int i = task->out.first; i < task->out.first + task->out.count; i++) {
            const mgl_region *region = &program->regions[i];
            int kind = MGL_KV_ALL;
            for (int d = 0; d < program->buffers[region->buffer].rank; d++)
                if (region->ranges[d].kind == MGL_RANGE_ROW_KIND)
                    kind = first_of(&region->ranges[d]);
            if (task->op != MGL_OP_CLEAR)
                kinds[region->buffer] |= (unsigned short)(1 << kind);
        }
    }
    return kinds;
}

/* Switches to a list, whose tasks start at `first_task` in the program. */
static void begin_list(struct encoder *e, const mgl_program *list, int first_task)
{
    e->list = list;
    e->first_task = first_task;
    mgl_dimensions_of_program(list, &e->dimensions);
}

/* Adds all queues of the first list, then of the second. Entries of a queue are adjacent in
 * `out`. */
static void add_queues(struct encoder *e, const mgl_program *first, const mgl_run *second,
                       uint32_t *const *signals, mgl_device_queue *out)
{
    const int lists = mgl_cuda_lists(first);
    for (int list = 0; list < lists; list++) {
        begin_list(e, list ? first->second : first, list ? first->task_count : 0);
        e->signals = signals[list];
        e->others = signals[1 - list];
        for (int q = 0; q < first->queue_count && !e->failed; q++)
            add_queue(e, q, list ? &second[q] : &e->program->queues[q].tasks,
                      &out[q * lists + list]);
    }
}

/* `joined`: both lists, or empty. */
static mgl_status encode(const mgl_program *first, const mgl_joined *joined,
                         const mgl_cuda_addresses *addresses, mgl_cuda_tables *out, mgl_error *err)
{
    const mgl_program *whole = joined->program ? joined->program : first;
    struct encoder e = {.program = whole, .addresses = addresses, .kinds = find_kinds(whole)};
    uint32_t *signals[2];
    signals[0] = count_signals(first, whole->counter_count);
    signals[1] = first->second ? count_signals(first->second, whole->counter_count)
                               : mgl_alloc_zero((size_t)whole->counter_count + 1, sizeof **signals);
    out->queue_entries = first->queue_count * mgl_cuda_lists(first);
    out->queues = mgl_alloc_zero((size_t)out->queue_entries, sizeof *out->queues);
    if (!signals[0] || !signals[1] || !out->queues || !e.kinds)
        e.failed = true;
    else
        add_queues(&e, first, joined->second, signals, out->queues);
    mgl_free(signals[0]);
    mgl_free(signals[1]);
    mgl_free(e.kinds);
    out->records = e.records;
    out->record_bytes = e.length;
    if (!e.failed)
        return MGL_OK;
    mgl_cuda_tables_clear(out);
    return mgl_fail_memory(err, e.capacity);
}

mgl_status mgl_cuda_encode(const mgl_program *program, const mgl_cuda_addresses *addresses,
                           mgl_cuda_tables *out, mgl_error *err)
{
    mgl_joined joined = {0};
    *out = (mgl_cuda_tables){0};
    mgl_status status = program->second ? mgl_program_join(program, &joined, err) : MGL_OK;
    if (!status)
        status = encode(program, &joined, addresses, out, err);
    mgl_joined_clear(&joined);
    return status;
}

void mgl_cuda_tables_clear(mgl_cuda_tables *tables)
{
    mgl_free(tables->records);
    mgl_free(tables->queues);
    *tables = (mgl_cuda_tables){0};
}
