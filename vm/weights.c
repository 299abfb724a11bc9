/* Weights in pieces: see weights.h. Packing cuts a segment at row groups and a table at rows. */
#include "vm/weights.h"

#include <string.h>

#include "base/memory.h"
#include "base/parallel.h"

int mgl_weights_parts(const mgl_program *program)
{
    return program->queue_count + program->buffer_count;
}

size_t mgl_weights_bytes(const mgl_program *program, int part)
{
    if (part < program->queue_count)
        return (size_t)program->queues[part].tape_bytes;
    const mgl_buffer *buffer = &program->buffers[part - program->queue_count];
    return buffer->space == MGL_SPACE_CONST ? mgl_buffer_bytes(buffer) : 0;
}

void mgl_weights_close(mgl_weights *weights)
{
    if (!weights)
        return;
    if (weights->close && weights->source)
        weights->close(weights->source);
    mgl_free(weights->source);
    mgl_free(weights->pieces);
    mgl_free(weights);
}

bool mgl_weights_add(mgl_weights *weights, int part, size_t offset, size_t bytes)
{
    void *items = weights->pieces;
    bool grown = mgl_grow(&items, &weights->capacity, weights->count, sizeof *weights->pieces);
    weights->pieces = items;
    if (!grown)
        return false;
    weights->pieces[weights->count++] = (mgl_piece){part, offset, bytes};
    if (bytes > weights->largest)
        weights->largest = bytes;
    return true;
}

/* ---- packing -------------------------------------------------------------------------------- */

/* What a piece is packed from. */
typedef struct cut {
    int segment;    /* -1: a const buffer; -2: zeros */
    int64_t lo, hi; /* rows of the segment's tensor, or of the buffer */
} cut;

enum { CUT_CONST = -1, CUT_ZEROS = -2 };

typedef struct packing {
    const mgl_graph *graph;
    cut *cuts; /* owned (the weights' count) */
    size_t capacity;
} packing;

static void close_packing(void *source)
{
    mgl_free(((packing *)source)->cuts);
}

static mgl_status make_packed(const mgl_weights *weights, size_t piece, void *to, mgl_error *err)
{
    const packing *p = weights->source;
    const cut *c = &p->cuts[piece];
    const mgl_piece *at = &weights->pieces[piece];
    const mgl_program *program = weights->program;
    if (c->segment >= 0)
        return mgl_pack_rows(program, p->graph, &program->segments[c->segment], c->lo, c->hi, to,
                             err);
    if (c->segment == CUT_CONST)
        return mgl_pack_const_part(program, p->graph, at->part - program->queue_count, c->lo, c->hi,
                                   to, err);
    memset(to, 0, at->bytes);
    return MGL_OK;
}

static bool add_cut(mgl_weights *weights, int part, size_t offset, size_t bytes, cut made)
{
    packing *p = weights->source;
    void *cuts = p->cuts;
    bool grown = mgl_grow(&cuts, &p->capacity, weights->count, sizeof *p->cuts);
    p->cuts = cuts;
    if (!grown)
        return false;
    p->cuts[weights->count] = made;
    return mgl_weights_add(weights, part, offset, bytes);
}

/* Zeros up to offset `end`: padding. */
static bool cut_zeros(mgl_weights *weights, int part, size_t offset, size_t end)
{
    bool good = true;
    for (; offset < end && good; offset += MGL_PIECE_BYTES) {
        size_t bytes = end - offset < MGL_PIECE_BYTES ? end - offset : MGL_PIECE_BYTES;
        good = add_cut(weights, part, offset, bytes, (cut){.segment = CUT_ZEROS});
    }
    return good;
}

/* Steps of as many units, each of `unit` bytes, as make a piece; one at least. */
static int64_t units_of_piece(size_t unit)
{
    return unit < MGL_PIECE_BYTES ? (int64_t)(MGL_PIECE_BYTES / (unit ? unit : 1)) : 1;
}

static bool cut_segment(mgl_weights *weights, int part, int index)
{
    const mgl_segment *segment = &weights->program->segments[index];
    int64_t groups = (mgl_segment_rows(segment) + MGL_ROW_GROUP - 1) / MGL_ROW_GROUP;
    if (groups < 1)
        return true;
    size_t unit = (size_t)(mgl_segment_bytes(weights->program, segment) / groups);
    int64_t step = units_of_piece(unit);
    bool good = true;
    for (int64_t group = 0; group < groups && good; group += step) {
        int64_t end = group + step < groups ? group + step : groups;
        int64_t hi = segment->row_lo + end * MGL_ROW_GROUP;
        cut made = {index, segment->row_lo + group * MGL_ROW_GROUP,
                    hi < segment->row_hi ? hi : segment->row_hi};
        good = add_cut(weights, part, (size_t)segment->offset + (size_t)group * unit,
                       (size_t)(end - group) * unit, made);
    }
    return good;
}

/* The segments of a queue lie one behind the other; what is between or behind them is zero. */
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
    size_t bytes = mgl_weights_bytes(weights->program, part);
    int64_t rows = mgl_pack_const_rows(weights->program, buffer);
    if (bytes == 0 || rows < 1)
        return true;
    size_t unit = bytes / (size_t)rows;
    int64_t step = units_of_piece(unit);
    bool good = true;
    for (int64_t row = 0; row < rows && good; row += step) {
        int64_t end = row + step < rows ? row + step : rows;
        good = add_cut(weights, part, (size_t)row * unit, (size_t)(end - row) * unit,
                       (cut){CUT_CONST, row, end});
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

mgl_status mgl_weights_pack(const mgl_program *program, const mgl_graph *graph, mgl_weights **out,
                            mgl_error *err)
{
    mgl_weights *weights = mgl_alloc_zero(1, sizeof *weights);
    packing *p = mgl_alloc_zero(1, sizeof *p);
    if (!weights || !p) {
        mgl_free(weights);
        mgl_free(p);
        return mgl_fail_memory(err, sizeof *weights);
    }
    p->graph = graph;
    *weights =
        (mgl_weights){.program = program, .make = make_packed, .source = p, .close = close_packing};
    if (!cut_all(weights)) {
        mgl_weights_close(weights);
        return mgl_fail_memory(err, sizeof(mgl_piece));
    }
    *out = weights;
    return MGL_OK;
}

/* ---- a part in memory ----------------------------------------------------------------------- */

typedef struct target {
    const mgl_weights *weights;
    size_t first; /* piece of the part */
    char *to;
} target;

static mgl_status write_piece(void *user, int worker, size_t item, mgl_error *err)
{
    const target *t = user;
    size_t piece = t->first + item;
    (void)worker;
    return t->weights->make(t->weights, piece, t->to + t->weights->pieces[piece].offset, err);
}

/* The first piece of a part or of a later one. */
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

mgl_status mgl_weights_write(const mgl_weights *weights, int part, void *to, mgl_error *err)
{
    target t = {weights, find_part(weights, part), to};
    size_t count = find_part(weights, part + 1) - t.first;
    return mgl_parallel(mgl_parallel_threads(), count, write_piece, &t, err);
}
