/*
 * Implements digest.h: digests of programs (SHA-256).
 *
 * mgl_program_digest identifies a program in a history of programs. It hashes all fields of the
 * text form (schedule/text/text.c) in order, as varints. Tensors, buffers and counters are
 * represented by their indices, so their names do not matter. A tensor's name in the checkpoint
 * selects its weights and is hashed. Each list is preceded by its length, so that different
 * programs have different bytes. Lines of the text and the tuned entry are not hashed.
 *
 * mgl_program_layout identifies which bytes of the model are where on the tapes and in the const
 * buffers, and in which format. Weights packed for one program fit another program with the same
 * layout digest.
 */
#include "schedule/digest.h"

#include "base/assert.h"
#include <string.h>

#define VERSION        "megalith.program/2"
#define LAYOUT_VERSION "megalith.layout/1"

/* Buffer in front of the hash, because a program has many short fields. */
struct sink {
    mgl_sha256 hash;
    size_t length;
    unsigned char bytes[4096];
};

static void put_bytes(struct sink *s, const void *bytes, size_t length)
{
    MGL_ASSERT(s->length <= sizeof s->bytes);
    if (s->length + length > sizeof s->bytes) {
        mgl_sha256_add(&s->hash, s->bytes, s->length);
        s->length = 0;
    }
    if (length > sizeof s->bytes) {
        mgl_sha256_add(&s->hash, bytes, length);
        return;
    }
    memcpy(s->bytes + s->length, bytes, length);
    s->length += length;
}

/* Writes a zigzag varint: seven bits a byte, lowest first; small numbers of either sign are
 * short. */
static void put(struct sink *s, int64_t number)
{
    unsigned char bytes[10];
    size_t n = 0;
    uint64_t left = (uint64_t)number << 1 ^ (number < 0 ? UINT64_MAX : 0);
    for (; left > 0x7F; left >>= 7)
        bytes[n++] = (unsigned char)(left | 0x80);
    bytes[n++] = (unsigned char)left;
    put_bytes(s, bytes, n);
}

static void put_string(struct sink *s, const char *string)
{
    size_t length = strlen(string);
    put(s, (int64_t)length);
    put_bytes(s, string, length);
}

/* The weight format, and in higher bytes the dtypes of the embedding and of exchanged values if
 * they differ from the weight format's numbers. Programs without such a difference keep their
 * established digests. */
static int64_t dtypes_of(const mgl_program *p)
{
    enum { DTYPES = 1 << 8 };
    const mgl_dtype numbers = p->weight_dtype;
    const int64_t embedding = p->embedding_dtype == numbers ? 0 : 1 + (int64_t)p->embedding_dtype;
    const int64_t exchange = p->exchange_dtype == numbers ? 0 : 1 + (int64_t)p->exchange_dtype;
    return (exchange * DTYPES + embedding) * DTYPES + (int64_t)p->weight_dtype;
}

static void put_settings(struct sink *s, const mgl_program *p)
{
    const mgl_exec *e = &p->exec;
    const int64_t numbers[] = {p->limits.rows,    p->limits.sequences, p->limits.capacity,
                               e->page_bytes,     e->ring_pages,       e->warps,
                               e->stage_bytes,    e->flight_bytes,     e->pending_bytes,
                               e->prefetch_bytes, dtypes_of(p),        p->kv_dtype,
                               p->tensor_count,   p->buffer_count,     p->counter_count,
                               p->queue_count};
    put_string(s, p->target.arch);
    put(s, p->target.queues);
    put(s, p->target.shared_bytes);
    for (int i = 0; i < MGL_GEOMETRY_FACT_COUNT; i++)
        put(s, mgl_fact_bits(&p->geometry, &mgl_geometry_facts[i]));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        put(s, numbers[i]);
    if (p->limits.share != 0) /* programs without a share keep their established digests */
        put(s, p->limits.share);
    if (p->limits.unsplit != 0)
        put(s, -(int64_t)p->limits.unsplit); /* negative, unlike a share */
}

static void put_tensors(struct sink *s, const mgl_program *p)
{
    for (int i = 0; i < p->tensor_count; i++) {
        const mgl_program_tensor *t = &p->tensors[i];
        put_string(s, t->checkpoint);
        put(s, mgl_weight_format_number(t->format));
        put(s, t->rank);
        put(s, t->rows);
        put(s, t->cols);
    }
}

enum { PAGED = 256 }; /* added to a dtype */

static void put_declarations(struct sink *s, const mgl_program *p)
{
    put_tensors(s, p);
    for (int i = 0; i < p->buffer_count; i++) {
        const mgl_buffer *b = &p->buffers[i];
        /* programs without pages keep their established digests */
        const int64_t dtype = b->dtype + (b->paged ? PAGED : 0);
        const int64_t numbers[] = {b->space, dtype, b->source, b->tensor, b->sets, b->rank};
        for (size_t j = 0; j < sizeof numbers / sizeof *numbers; j++)
            put(s, numbers[j]);
        for (int d = 0; d < b->rank; d++) {
            put(s, b->extents[d].symbol);
            put(s, b->extents[d].count);
        }
    }
}

static void put_regions(struct sink *s, const mgl_program *p, mgl_run run)
{
    put(s, run.count);
    for (int i = run.first; i < run.first + run.count; i++) {
        const mgl_region *region = &p->regions[i];
        put(s, region->buffer);
        put(s, region->flag);
        for (int d = 0; d < p->buffers[region->buffer].rank; d++) {
            const mgl_range *range = &region->ranges[d];
            put(s, range->kind);
            if (mgl_range_has_numbers(range)) {
                put(s, range->lo);
                put(s, range->hi);
            }
        }
    }
}

static void put_segments(struct sink *s, const mgl_program *p, mgl_run run)
{
    put(s, run.count);
    for (int i = run.first; i < run.first + run.count; i++) {
        const mgl_segment *segment = &p->segments[i];
        const int64_t numbers[] = {segment->tensor, segment->tensor2, segment->layout,
                                   segment->row_lo, segment->row_hi,  segment->col_lo,
                                   segment->col_hi, segment->offset};
        for (size_t j = 0; j < sizeof numbers / sizeof *numbers; j++)
            put(s, numbers[j]);
    }
}

static void put_task(struct sink *s, const mgl_program *p, const mgl_task *task)
{
    put(s, task->op);
    put(s, task->variant);
    put_regions(s, p, task->in);
    put_segments(s, p, task->segments);
    put_regions(s, p, task->out);
    put(s, task->waits.count);
    for (int i = task->waits.first; i < task->waits.first + task->waits.count; i++) {
        put(s, p->waits[i].counter);
        put(s, p->waits[i].threshold);
    }
    put(s, task->signals.count);
    for (int i = task->signals.first; i < task->signals.first + task->signals.count; i++)
        put(s, p->signals[i]);
}

static void end(struct sink *s, unsigned char out[MGL_SHA256_BYTES])
{
    mgl_sha256_add(&s->hash, s->bytes, s->length);
    mgl_sha256_end(&s->hash, out);
}

static void put_list(struct sink *s, const mgl_program *program)
{
    put_settings(s, program);
    put_declarations(s, program);
    for (int q = 0; q < program->queue_count; q++) {
        const mgl_queue *queue = &program->queues[q];
        put(s, queue->tape_bytes);
        put(s, queue->tape_pad);
        put(s, queue->tasks.count);
        for (int i = 0; i < queue->tasks.count; i++)
            put_task(s, program, &program->tasks[queue->tasks.first + i]);
    }
}

mgl_status mgl_program_digest(const mgl_program *program, unsigned char out[MGL_SHA256_BYTES],
                              mgl_error *err)
{
    (void)err;
    struct sink s = {.length = 0};
    mgl_sha256_start(&s.hash);
    put_string(&s, VERSION);
    put_list(&s, program);
    if (program->second)
        put_list(&s, program->second);
    end(&s, out);
    return MGL_OK;
}

/* ---- the layout of the weights --------------------------------------------------------------- */

/* The source of a const buffer. Other buffers hold no weights. */
static void put_constant(struct sink *s, const mgl_buffer *b)
{
    bool constant = b->space == MGL_SPACE_CONST;
    put(s, constant);
    if (!constant)
        return;
    put(s, b->dtype);
    put(s, b->source);
    put(s, b->tensor);
    put(s, b->rank);
    for (int d = 0; d < b->rank; d++)
        put(s, b->extents[d].count);
}

void mgl_program_layout(const mgl_program *program, unsigned char out[MGL_SHA256_BYTES])
{
    struct sink s = {.length = 0};
    mgl_sha256_start(&s.hash);
    put_string(&s, LAYOUT_VERSION);
    put_string(&s, program->target.arch);
    const int64_t numbers[] = {program->exec.warps, program->geometry.head_dim,
                               program->tensor_count, program->buffer_count, program->queue_count};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        put(&s, numbers[i]);
    put_tensors(&s, program);
    for (int i = 0; i < program->buffer_count; i++)
        put_constant(&s, &program->buffers[i]);
    for (int q = 0; q < program->queue_count; q++) {
        const mgl_run *tasks = &program->queues[q].tasks;
        put(&s, program->queues[q].tape_bytes);
        for (int i = tasks->first; i < tasks->first + tasks->count; i++)
            if (program->tasks[i].segments.count > 0)
                put_segments(&s, program, program->tasks[i].segments);
        put(&s, 0); /* end mark: no task has 0 segments here */
    }
    end(&s, out);
}
