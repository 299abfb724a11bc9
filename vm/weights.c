/* Implements weights.h. Cuts the weights of a program into pieces: segments at row groups, tables
 * at rows. Packs the pieces from a graph or copies them from resident weights. Writes or verifies
 * them in parallel. */
#include "vm/weights.h"

#include <string.h>

#include "base/assert.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/parallel.h"

int mgl_weights_parts(const mgl_program *program)
{
    return program->queue_count + program->buffer_count;
}

/* Whether a segment's tensor decodes to the numbers of a table: it is the same tensor, or, as the
 * head of a tied quantized model, the same tensor of the checkpoint with its scales on the tape,
 * while the table has the decoded numbers in f32. */
static bool has_numbers(const mgl_program_tensor *of_segment, const mgl_program_tensor *of_table,
                        mgl_dtype table)
{
    if (of_segment == of_table)
        return mgl_weight_format_is(of_table->format, table);
    return table == MGL_F32 && mgl_weight_format_is(of_table->format, MGL_F32) &&
           mgl_weight_format_is_scaled(of_segment->format) &&
           !mgl_weight_format_has_factors(of_segment->format) && of_segment->order < 0 &&
           of_segment->rows == of_table->rows && of_segment->cols == of_table->cols &&
           !strcmp(of_segment->checkpoint, of_table->checkpoint);
}

bool mgl_weights_has_rows(const mgl_program *program, const mgl_segment *segment,
                          const mgl_buffer *table)
{
    return table->source == MGL_SOURCE_TENSOR && segment->tensor >= 0 && segment->row_lo >= 0 &&
           segment->row_lo < segment->row_hi && segment->layout == MGL_LAYOUT_G8 &&
           segment->col_lo == 0 && segment->col_hi == program->tensors[table->tensor].cols &&
           has_numbers(&program->tensors[segment->tensor], &program->tensors[table->tensor],
                       table->dtype);
}

/* Whether the tapes hold as many rows of a table's tensor as the table has: a necessary condition
 * for holding each row once. This check comes first because it bounds the work of is_on_tapes, even
 * for a program that has not been validated. */
static bool has_as_many_rows(const mgl_program *program, const mgl_buffer *table)
{
    int64_t rows = program->tensors[table->tensor].rows, there = 0;
    for (int i = 0; i < program->segment_count && there <= rows; i++)
        if (mgl_weights_has_rows(program, &program->segments[i], table))
            there += mgl_segment_rows(&program->segments[i]);
    return there == rows;
}

/* Whether every row of a table is on a tape. `groups` has room for all row groups of the table. */
static bool is_on_tapes(const mgl_program *program, const mgl_buffer *table, bool *groups)
{
    int64_t rows = program->tensors[table->tensor].rows;
    int64_t count = (rows + MGL_ROW_GROUP - 1) / MGL_ROW_GROUP;
    memset(groups, 0, (size_t)count);
    for (int i = 0; i < program->segment_count; i++) {
        const mgl_segment *s = &program->segments[i];
        if (mgl_weights_has_rows(program, s, table) && s->row_hi <= rows)
            for (int64_t row = s->row_lo; row < s->row_hi; row += MGL_ROW_GROUP)
                groups[row / MGL_ROW_GROUP] = true;
    }
    for (int64_t i = 0; i < count; i++)
        if (!groups[i])
            return false;
    return true;
}

/* Sets the size of tables that are also on the tapes to 0 (CPU targets only). False when memory ran
 * out. */
static bool leave_out_tables(const mgl_program *program, size_t *sizes)
{
    bool good = true;
    for (int b = 0; b < program->buffer_count && good; b++) {
        const mgl_buffer *table = &program->buffers[b];
        if (table->source != MGL_SOURCE_TENSOR || program->tensors[table->tensor].rank != 2 ||
            !has_as_many_rows(program, table))
            continue;
        size_t groups = (size_t)program->tensors[table->tensor].rows / MGL_ROW_GROUP + 1;
        bool *seen = mgl_alloc(groups);
        good = seen != NULL;
        if (good && is_on_tapes(program, table, seen))
            sizes[program->queue_count + b] = 0;
        mgl_free(seen);
    }
    return good;
}

size_t *mgl_weights_sizes(const mgl_program *program)
{
    size_t *sizes = mgl_alloc_zero((size_t)mgl_weights_parts(program) + 1, sizeof *sizes);
    for (int q = 0; sizes && q < program->queue_count; q++)
        sizes[q] = (size_t)program->queues[q].tape_bytes;
    for (int b = 0; sizes && b < program->buffer_count; b++)
        if (program->buffers[b].space == MGL_SPACE_CONST)
            sizes[program->queue_count + b] = mgl_buffer_bytes(&program->buffers[b]);
    if (!sizes || strcmp(program->target.arch, "cpu") != 0 || leave_out_tables(program, sizes))
        return sizes;
    mgl_free(sizes);
    return NULL;
}

void mgl_weights_close(mgl_weights *weights)
{
    if (!weights)
        return;
    if (weights->close && weights->source)
        weights->close(weights->source);
    mgl_free(weights->source);
    mgl_free(weights->sizes);
    mgl_free(weights->pieces);
    mgl_free(weights);
}

bool mgl_weights_add(mgl_weights *weights, int part, size_t offset, size_t bytes)
{
    MGL_ASSERT(weights->count == 0 || weights->pieces[weights->count - 1].part <= part);
    void *items = weights->pieces;
    bool grown = mgl_grow(&items, &weights->capacity, weights->count, sizeof *weights->pieces);
    weights->pieces = items;
    if (!grown)
        return false;
    weights->pieces[weights->count++] = (mgl_piece){part, offset, bytes, {.part = MGL_ORIGIN_NONE}};
    if (bytes > weights->largest)
        weights->largest = bytes;
    return true;
}

/* ---- packing -------------------------------------------------------------------------------- */

/* Source of a packed piece. */
typedef struct cut {
    int segment;    /* -1: a const buffer; -2: zeros */
    int64_t lo, hi; /* rows of the segment's tensor, or of the buffer */
} cut;

enum { CUT_CONST = -1, CUT_ZEROS = -2 };

typedef struct packing {
    const mgl_graph *graph;
    const mgl_resident *from;   /* resident weights, or NULL */
    const mgl_overlap *overlap; /* overlap with `from`; used only while the pieces are cut */
    cut *cuts;                  /* owned (the weights' count), one per piece */
    size_t capacity;
} packing;

static void close_packing(void *source)
{
    mgl_free(((packing *)source)->cuts);
}

typedef struct copy {
    void *to;
    const void *from;
    size_t bytes;
} copy;

static void copy_bytes(void *user)
{
    const copy *c = user;
    memcpy(c->to, c->from, c->bytes);
}

/* Copies the bytes at an origin. They may be in the map of a file that was truncated since. */
static mgl_status copy_resident(const mgl_resident *from, const mgl_piece *piece, void *to,
                                mgl_error *err)
{
    const char *part = from->parts[piece->origin.part];
    bool copied = mgl_map_guard(copy_bytes, &(copy){to, part + piece->origin.offset, piece->bytes});
    mgl_status status = from->mapped ? from->mapped->check(from->mapped, err) : MGL_OK;
    if (!status && !copied)
        status = mgl_fail(err, MGL_SYSTEM, NULL,
                          "the disk could not deliver the weights; look at the system's log");
    return status;
}

static mgl_status make_packed(const mgl_weights *weights, size_t piece, void *to, mgl_error *err)
{
    const packing *p = weights->source;
    const cut *c = &p->cuts[piece];
    const mgl_piece *at = &weights->pieces[piece];
    const mgl_program *program = weights->program;
    if (at->origin.part >= 0 && p->from->parts && p->from->parts[at->origin.part])
        return copy_resident(p->from, at, to, err);
    if (c->segment >= 0)
        return mgl_pack_rows(program, p->graph, &program->segments[c->segment], c->lo, c->hi, to,
                             err);
    if (c->segment == CUT_CONST)
        return mgl_pack_const_part(program, p->graph, at->part - program->queue_count, c->lo, c->hi,
                                   to, err);
    memset(to, 0, at->bytes);
    return MGL_OK;
}

static bool add_cut(mgl_weights *weights, int part, size_t offset, size_t bytes, cut made,
                    mgl_origin origin)
{
    packing *p = weights->source;
    void *cuts = p->cuts;
    bool grown = mgl_grow(&cuts, &p->capacity, weights->count, sizeof *p->cuts);
    p->cuts = cuts;
    if (!grown)
        return false;
    p->cuts[weights->count] = made;
    if (!mgl_weights_add(weights, part, offset, bytes))
        return false;
    weights->pieces[weights->count - 1].origin = origin;
    return true;
}

/* Adds pieces of zeros (padding) up to offset `end`. */
static bool cut_zeros(mgl_weights *weights, int part, size_t offset, size_t end)
{
    bool good = true;
    for (; offset < end && good; offset += MGL_PIECE_BYTES) {
        size_t bytes = end - offset < MGL_PIECE_BYTES ? end - offset : MGL_PIECE_BYTES;
        good = add_cut(weights, part, offset, bytes, (cut){.segment = CUT_ZEROS},
                       (mgl_origin){.part = MGL_ORIGIN_ZEROS});
    }
    return good;
}

/* Number of units of `unit` bytes that fit in a piece, at least 1. */
static int64_t units_of_piece(size_t unit)
{
    return unit < MGL_PIECE_BYTES ? (int64_t)(MGL_PIECE_BYTES / (unit ? unit : 1)) : 1;
}

static bool cut_segment(mgl_weights *weights, int part, int index)
{
    const mgl_segment *segment = &weights->program->segments[index];
    const packing *p = weights->source;
    int64_t groups = (mgl_segment_rows(segment) + MGL_ROW_GROUP - 1) / MGL_ROW_GROUP;
    if (groups < 1)
        return true;
    size_t unit = (size_t)(mgl_segment_bytes(weights->program, segment) / groups);
    int64_t step = units_of_piece(unit) * MGL_ROW_GROUP;
    bool good = true;
    for (int64_t row = segment->row_lo, hi; row < segment->row_hi && good; row = hi) {
        mgl_origin origin;
        hi = mgl_overlap_find_rows(p->overlap, segment, row, &origin);
        hi = hi - row > step ? row + step : hi;
        int64_t group = (row - segment->row_lo) / MGL_ROW_GROUP;
        int64_t end = (hi - segment->row_lo + MGL_ROW_GROUP - 1) / MGL_ROW_GROUP;
        good = add_cut(weights, part, (size_t)segment->offset + (size_t)group * unit,
                       (size_t)(end - group) * unit, (cut){index, row, hi}, origin);
    }
    return good;
}

/* The segments of a queue are in order on its tape; bytes between and after them are zero. */
static bool cut_tape(mgl_weights *weights, int queue)
{
    const mgl_program *program = weights->program;
    const mgl_queue *q = &program->queues[queue];
    size_t end = 0;
    bool good = true;
    for (int t = q->tasks.first; t < q->tasks.first + q->tasks.count && good; t++) {
        const mgl_run *run = &program->tasks[t].segments;
        for (int s = run->first; s < run->first + run->count && good; s++) {
            size_t start = (size_t)program->segments[s].offset;
            good = cut_zeros(weights, queue, end, start) && cut_segment(weights, queue, s);
            end = start + (size_t)mgl_segment_bytes(program, &program->segments[s]);
        }
    }
    return good && cut_zeros(weights, queue, end, (size_t)q->tape_bytes);
}

static bool cut_const(mgl_weights *weights, int buffer)
{
    int part = weights->program->queue_count + buffer;
    size_t bytes = weights->sizes[part];
    int64_t rows = mgl_pack_const_rows(weights->program, buffer);
    if (bytes == 0 || rows < 1)
        return true;
    size_t unit = bytes / (size_t)rows;
    int64_t step = units_of_piece(unit);
    mgl_origin origin = mgl_overlap_find_const(((const packing *)weights->source)->overlap, buffer);
    bool good = true;
    for (int64_t row = 0; row < rows && good; row += step) {
        int64_t end = row + step < rows ? row + step : rows;
        size_t offset = (size_t)row * unit;
        good = add_cut(weights, part, offset, (size_t)(end - row) * unit,
                       (cut){CUT_CONST, row, end}, (mgl_origin){origin.part, offset});
    }
    return good;
}

static bool cut_all(mgl_weights *weights)
{
    bool good = true;
    for (int q = 0; q < weights->program->queue_count && good; q++)
        good = cut_tape(weights, q);
    for (int b = 0; b < weights->program->buffer_count && good; b++)
        good = cut_const(weights, b);
    return good;
}

static mgl_status pack(const mgl_program *program, const packing *how, mgl_weights **out,
                       mgl_error *err)
{
    *out = NULL;
    mgl_weights *weights = mgl_alloc_zero(1, sizeof *weights);
    packing *p = mgl_alloc_zero(1, sizeof *p);
    if (!weights || !p) {
        mgl_free(weights);
        mgl_free(p);
        return mgl_fail_memory(err, sizeof *weights);
    }
    *p = *how;
    *weights =
        (mgl_weights){.program = program, .make = make_packed, .source = p, .close = close_packing};
    weights->sizes = mgl_weights_sizes(program);
    if (!weights->sizes || !cut_all(weights)) {
        mgl_weights_close(weights);
        return mgl_fail_memory(err, sizeof(mgl_piece));
    }
    p->overlap = NULL;
    *out = weights;
    return MGL_OK;
}

mgl_status mgl_weights_pack(const mgl_program *program, const mgl_graph *graph, mgl_weights **out,
                            mgl_error *err)
{
    return pack(program, &(packing){.graph = graph}, out, err);
}

mgl_status mgl_weights_carry(const mgl_program *program, const mgl_graph *graph,
                             const mgl_resident *from, mgl_weights **out, mgl_error *err)
{
    mgl_overlap *overlap;
    *out = NULL;
    mgl_status status = mgl_overlap_open(from->program, program, &overlap, err);
    if (status)
        return status;
    status = pack(program, &(packing){.graph = graph, .from = from, .overlap = overlap}, out, err);
    mgl_overlap_close(overlap);
    return status;
}

/* ---- writing parts to memory ---------------------------------------------------------------- */

typedef struct target {
    const mgl_weights *weights;
    mgl_weights_watch *watch;
    size_t first; /* first piece of the part */
    char *to;
    char *rooms[MGL_MAX_THREADS]; /* owned buffers, one per thread, used if `to` is NULL */
} target;

/* Adds `bytes` that `worker` has made. MGL_INTERRUPTED: the worker must stop. */
static mgl_status take_step(mgl_weights_watch *watch, int worker, size_t bytes, mgl_error *err)
{
    uint64_t done = atomic_fetch_add(&watch->done, bytes) + bytes;
    if (worker == 0 && watch->on_stage)
        watch->on_stage(watch->user, MGL_STAGE_WEIGHTS, done, watch->total);
    if (watch->abort && atomic_load(watch->abort))
        return mgl_fail(err, MGL_INTERRUPTED, NULL, "%s", "interrupted while loading");
    return MGL_OK;
}

static mgl_status write_piece(void *user, int worker, size_t item, mgl_error *err)
{
    const target *t = user;
    size_t piece = t->first + item;
    const mgl_piece *at = &t->weights->pieces[piece];
    void *to = t->to ? t->to + at->offset : t->rooms[worker];
    mgl_status status = t->weights->make(t->weights, piece, to, err);
    return status || !t->watch ? status : take_step(t->watch, worker, at->bytes, err);
}

/* First piece of `part`, or of a later part. */
static size_t find_part(const mgl_weights *weights, int part)
{
    size_t low = 0, high = weights->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (weights->pieces[middle].part < part)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

mgl_status mgl_weights_write(const mgl_weights *weights, int part, void *to,
                             mgl_weights_watch *watch, mgl_error *err)
{
    target t = {.weights = weights, .watch = watch, .first = find_part(weights, part), .to = to};
    size_t count = find_part(weights, part + 1) - t.first;
    return mgl_parallel(mgl_parallel_threads(), count, write_piece, &t, err);
}

mgl_status mgl_weights_verify(const mgl_weights *weights, mgl_weights_watch *watch, mgl_error *err)
{
    target t = {.weights = weights, .watch = watch};
    mgl_status status = MGL_OK;
    for (int i = 0; i < mgl_parallel_threads() && !status; i++)
        if (!(t.rooms[i] = mgl_alloc(weights->largest + 1)))
            status = mgl_fail_memory(err, weights->largest);
    if (!status)
        status = mgl_parallel(mgl_parallel_threads(), weights->count, write_piece, &t, err);
    for (int i = 0; i < MGL_MAX_THREADS; i++)
        mgl_free(t.rooms[i]);
    return status;
}
