/*
 * Implements the relaxed-memory model of flag words (words.h). While a task runs, memory holds its
 * stores as if they were visible at once, and `hidden` holds the previous contents. After the task,
 * mgl_words_end swaps the two; mgl_words_show then makes each piece visible.
 */
#include "tests/vm/explore/words.h"

#include <string.h>

#include "base/draw.h"
#include "base/memory.h"

/* Last writer of a granule; task -1: none since the last clear. */
struct label {
    int task, epoch;
};

/* State of a flagged buffer; all NULL for other buffers. */
struct sheet {
    struct label *labels; /* one per granule of all sets */
    char *hidden;         /* (bytes of all sets) hidden stores; while the task runs: previous
                             contents */
};

/* Contiguous stores that become visible together. */
struct piece {
    int buffer;
    size_t lo, hi; /* bytes of the buffer, including all sets */
    int queue, task, epoch;
    uint32_t clock; /* clock of the queue at the store */
};

struct mgl_words {
    const mgl_machine *machine;
    const mgl_shadow *shadow;
    struct sheet *sheets; /* (buffers) */
    struct piece *pieces; /* hidden pieces; those of the running task come last */
    size_t piece_capacity;
    int piece_count, shown_until; /* pieces below this index belong to completed tasks */
    uint64_t random;
};

static const struct label nobody = {-1, -1};

/* ---- opening -------------------------------------------------------------------------------- */

static bool is_flagged(const mgl_program *p, int buffer)
{
    for (int i = 0; i < p->region_count; i++)
        if (p->regions[i].buffer == buffer && p->regions[i].flag)
            return true;
    return p->buffers[buffer].sets > 1;
}

static size_t bytes_of(const mgl_words *words, int buffer)
{
    const mgl_buffer *b = &words->machine->program->buffers[buffer];
    return mgl_buffer_bytes(b) * (size_t)b->sets;
}

static bool open_sheets(mgl_words *words)
{
    const mgl_program *p = words->machine->program;
    for (int i = 0; i < p->buffer_count; i++) {
        struct sheet *sheet = &words->sheets[i];
        if (!is_flagged(p, i))
            continue;
        size_t bytes = bytes_of(words, i);
        sheet->labels = mgl_alloc((bytes / MGL_GRANULE_BYTES + 1) * sizeof *sheet->labels);
        sheet->hidden = mgl_alloc(bytes);
        if (!sheet->labels || !sheet->hidden)
            return false;
    }
    return true;
}

mgl_status mgl_words_open(const mgl_machine *machine, const mgl_shadow *shadow, mgl_words **out,
                          mgl_error *err)
{
    *out = NULL;
    const mgl_program *p = machine->program;
    mgl_words *words = mgl_alloc_zero(1, sizeof *words);
    if (!words)
        return mgl_fail_memory(err, sizeof *words);
    words->machine = machine;
    words->shadow = shadow;
    words->sheets = mgl_alloc_zero((size_t)p->buffer_count, sizeof *words->sheets);
    if (!words->sheets || !open_sheets(words)) {
        mgl_words_close(words);
        return mgl_fail_memory(err, 0);
    }
    *out = words;
    return MGL_OK;
}

void mgl_words_close(mgl_words *words)
{
    if (!words)
        return;
    for (int i = 0; words->sheets && i < words->machine->program->buffer_count; i++) {
        mgl_free(words->sheets[i].labels);
        mgl_free(words->sheets[i].hidden);
    }
    mgl_free(words->sheets);
    mgl_free(words->pieces);
    mgl_free(words);
}

void mgl_words_reset(mgl_words *words, uint64_t seed)
{
    const mgl_program *p = words->machine->program;
    words->piece_count = words->shown_until = 0;
    words->random = seed;
    for (int i = 0; i < p->buffer_count; i++)
        for (size_t g = 0; words->sheets[i].labels && g <= bytes_of(words, i) / MGL_GRANULE_BYTES;
             g++)
            words->sheets[i].labels[g] = nobody;
}

bool mgl_words_has(const mgl_words *words, int buffer)
{
    return words->sheets[buffer].labels != NULL;
}

/* ---- regions -------------------------------------------------------------------------------- */

static const mgl_task *task_of(const mgl_words *words, int q)
{
    return &words->machine->program->tasks[mgl_machine_task(words->machine, q)];
}

/* Offset of the buffer set that the next task of queue q uses: the set of its epoch, or, for a
 * clear, that of the next epoch. */
static size_t set_of(const mgl_words *words, int q, int buffer)
{
    const mgl_buffer *b = &words->machine->program->buffers[buffer];
    int clear = task_of(words, q)->op == MGL_OP_CLEAR;
    return (size_t)((words->machine->queues[q].rows.turn + clear) % b->sets) * mgl_buffer_bytes(b);
}

/* A region of a task as runs of bytes that are contiguous in the last dimension. */
struct runs {
    size_t base;  /* byte offset of the first run in the buffer */
    size_t bytes; /* bytes per run */
    int64_t count;
    int64_t counts[MGL_MAX_RANK]; /* 1 for the last dimension and beyond the rank */
    size_t strides[MGL_MAX_RANK]; /* in bytes */
};

/* Runs of a region in the next task of queue q: this epoch's rows, or all rows for a clear. */
static struct runs runs_of(const mgl_words *words, int q, const mgl_region *region)
{
    const mgl_buffer *b = &words->machine->program->buffers[region->buffer];
    bool clears = task_of(words, q)->op == MGL_OP_CLEAR;
    struct runs runs = {.base = set_of(words, q, region->buffer), .count = 1};
    for (int i = 0; i < MGL_MAX_RANK; i++) {
        const mgl_range *range = &region->ranges[i];
        bool part = range->kind == MGL_RANGE_FIXED;
        int64_t lo = part ? range->lo : 0;
        int64_t hi = part     ? range->hi
                     : clears ? b->extents[i].count
                              : words->machine->queues[q].rows.rows;
        runs.counts[i] = 1;
        if (i >= b->rank)
            continue;
        runs.strides[i] = (size_t)mgl_buffer_stride(b, i) * mgl_dtype_size(b->dtype);
        runs.base += (size_t)lo * runs.strides[i];
        runs.bytes = (size_t)(hi - lo) * runs.strides[i];
        if (i < b->rank - 1)
            runs.count *= runs.counts[i] = hi - lo;
    }
    return runs;
}

/* Whether the region has the row of run i. Row r is a split row if its sequence has more than
 * limits.unsplit positions from earlier epochs, else an unsplit row. */
static bool has_run(const mgl_words *words, int q, const mgl_region *region,
                    const struct runs *runs, int64_t i)
{
    const mgl_machine *m = words->machine;
    const int32_t *table = m->queues[q].rows.table;
    for (int dim = MGL_MAX_RANK - 1; dim >= 0; dim--) {
        const mgl_range *range = &region->ranges[dim];
        const int index = (int)(i % runs->counts[dim]);
        i /= runs->counts[dim];
        if (range->kind != MGL_RANGE_ROW_KIND)
            continue;
        const int first = mgl_step_first_row(table, index);
        const int earlier = table[first * MGL_TABLE_WORDS + MGL_TABLE_POSITION];
        if ((earlier > m->program->limits.unsplit) != (range->lo == MGL_ROWS_SPLIT))
            return false;
    }
    return true;
}

/* Byte range [*lo, *hi) of run i in the buffer. */
static void bytes_of_run(const struct runs *runs, int64_t i, size_t *lo, size_t *hi)
{
    *lo = runs->base;
    for (int dim = MGL_MAX_RANK - 1; dim >= 0; dim--) {
        *lo += (size_t)(i % runs->counts[dim]) * runs->strides[dim];
        i /= runs->counts[dim];
    }
    *hi = *lo + runs->bytes;
}

/* The first label in bytes [lo, hi) whose epoch differs from `epoch` (-1: unwritten), or NULL. */
static const struct label *other_label(const mgl_words *words, int buffer, size_t lo, size_t hi,
                                       int epoch)
{
    const struct label *labels = words->sheets[buffer].labels;
    for (size_t g = lo / MGL_GRANULE_BYTES; g < (hi + MGL_GRANULE_BYTES - 1) / MGL_GRANULE_BYTES;
         g++)
        if (labels[g].epoch != epoch)
            return &labels[g];
    return NULL;
}

static void write_labels(mgl_words *words, int buffer, size_t lo, size_t hi, struct label label)
{
    struct label *labels = words->sheets[buffer].labels;
    for (size_t g = lo / MGL_GRANULE_BYTES; g < (hi + MGL_GRANULE_BYTES - 1) / MGL_GRANULE_BYTES;
         g++)
        labels[g] = label;
}

/* ---- pieces --------------------------------------------------------------------------------- */

int mgl_words_hidden(const mgl_words *words)
{
    return words->piece_count;
}

mgl_stale mgl_words_show(mgl_words *words, int i)
{
    struct piece piece = words->pieces[i];
    char *memory = words->machine->buffers[piece.buffer];
    const struct label *before = other_label(words, piece.buffer, piece.lo, piece.hi, -1);
    mgl_stale stale = {.buffer = piece.buffer, .task = piece.task, .epoch = piece.epoch};
    words->pieces[i] = words->pieces[--words->piece_count];
    words->shown_until = words->piece_count;
    if (before) {
        stale.kind = before->epoch == piece.epoch ? MGL_WRITTEN_TWICE : MGL_NOT_CLEARED;
        stale.other = before->task;
        stale.other_epoch = before->epoch;
        return stale;
    }
    memcpy(memory + piece.lo, words->sheets[piece.buffer].hidden + piece.lo, piece.hi - piece.lo);
    write_labels(words, piece.buffer, piece.lo, piece.hi, (struct label){piece.task, piece.epoch});
    return stale;
}

/* Whether a task of queue q accesses the buffer set of a piece. */
static bool touches(const mgl_words *words, int q, const mgl_run *run, const struct piece *piece)
{
    const mgl_program *p = words->machine->program;
    size_t set = set_of(words, q, piece->buffer);
    if (piece->lo < set || piece->lo >= set + mgl_buffer_bytes(&p->buffers[piece->buffer]))
        return false;
    for (int i = run->first; i < run->first + run->count; i++)
        if (p->regions[i].buffer == piece->buffer)
            return true;
    return false;
}

/* Makes visible all pieces that the next task of queue q accesses and is ordered after. */
static mgl_stale show_ordered(mgl_words *words, int q)
{
    const mgl_task *task = task_of(words, q);
    for (int i = words->piece_count - 1; i >= 0; i--) {
        const struct piece *piece = &words->pieces[i];
        if (!mgl_shadow_is_after(words->shadow, q, piece->queue, piece->clock) ||
            !(touches(words, q, &task->in, piece) || touches(words, q, &task->out, piece)))
            continue;
        mgl_stale stale = mgl_words_show(words, i);
        if (stale.kind != MGL_NO_STALE)
            return stale;
    }
    return (mgl_stale){.kind = MGL_NO_STALE};
}

static bool add_piece(mgl_words *words, int q, int buffer, size_t lo, size_t hi)
{
    const mgl_machine *m = words->machine;
    if (lo == hi)
        return true;
    if (!mgl_grow((void **)&words->pieces, &words->piece_capacity, (size_t)words->piece_count,
                  sizeof *words->pieces))
        return false;
    words->pieces[words->piece_count++] = (struct piece){buffer,
                                                         lo,
                                                         hi,
                                                         q,
                                                         mgl_machine_task(m, q),
                                                         m->queues[q].epoch,
                                                         mgl_shadow_clock(words->shadow, q)};
    memcpy(words->sheets[buffer].hidden + lo, (char *)m->buffers[buffer] + lo, hi - lo);
    return true;
}

/* Splits each run into two pieces at a random granule. */
static bool add_pieces(mgl_words *words, int q, const mgl_region *region)
{
    struct runs runs = runs_of(words, q, region);
    for (int64_t i = 0; i < runs.count; i++) {
        size_t lo, hi;
        if (!has_run(words, q, region, &runs, i))
            continue;
        bytes_of_run(&runs, i, &lo, &hi);
        size_t cut =
            lo + mgl_draw(&words->random) % ((hi - lo) / MGL_GRANULE_BYTES + 1) * MGL_GRANULE_BYTES;
        if (!add_piece(words, q, region->buffer, lo, cut) ||
            !add_piece(words, q, region->buffer, cut, hi))
            return false;
    }
    return true;
}

void mgl_words_end(mgl_words *words)
{
    for (; words->shown_until < words->piece_count; words->shown_until++) {
        const struct piece *piece = &words->pieces[words->shown_until];
        char *memory = words->machine->buffers[piece->buffer];
        char *hidden = words->sheets[piece->buffer].hidden;
        for (size_t i = piece->lo; i < piece->hi; i++) {
            char before = hidden[i];
            hidden[i] = memory[i];
            memory[i] = before;
        }
    }
}

/* ---- accesses ------------------------------------------------------------------------------- */

/* Checks that flag words read by a task belong to its epoch. */
static mgl_stale check_reads(const mgl_words *words, int q)
{
    const mgl_machine *m = words->machine;
    const mgl_run *run = &task_of(words, q)->in;
    mgl_stale stale = {.task = mgl_machine_task(m, q), .epoch = m->queues[q].epoch};
    for (int i = run->first; i < run->first + run->count; i++) {
        const mgl_region *region = &m->program->regions[i];
        struct runs runs = runs_of(words, q, region);
        for (int64_t r = 0; region->flag && r < runs.count; r++) {
            size_t lo, hi;
            if (!has_run(words, q, region, &runs, r))
                continue;
            bytes_of_run(&runs, r, &lo, &hi);
            const struct label *label = other_label(words, region->buffer, lo, hi, stale.epoch);
            if (!label)
                continue;
            stale.kind = MGL_STALE_READ;
            stale.buffer = region->buffer;
            stale.other = label->task;
            stale.other_epoch = label->epoch;
            return stale;
        }
    }
    return stale;
}

/* Labels words that a task clears, or that it stores to a flagged buffer without flags. */
static void write_plainly(mgl_words *words, int q, const mgl_region *region)
{
    const mgl_machine *m = words->machine;
    struct runs runs = runs_of(words, q, region);
    struct label label = {mgl_machine_task(m, q), m->queues[q].epoch};
    for (int64_t i = 0; i < runs.count; i++) {
        size_t lo, hi;
        if (!has_run(words, q, region, &runs, i))
            continue;
        bytes_of_run(&runs, i, &lo, &hi);
        write_labels(words, region->buffer, lo, hi,
                     task_of(words, q)->op == MGL_OP_CLEAR ? nobody : label);
    }
}

bool mgl_words_begin(mgl_words *words, int q, mgl_stale *stale)
{
    const mgl_program *p = words->machine->program;
    const mgl_run *run = &task_of(words, q)->out;
    *stale = show_ordered(words, q);
    if (stale->kind == MGL_NO_STALE)
        *stale = check_reads(words, q);
    for (int i = run->first; stale->kind == MGL_NO_STALE && i < run->first + run->count; i++) {
        const mgl_region *region = &p->regions[i];
        if (!mgl_words_has(words, region->buffer))
            continue;
        if (!region->flag)
            write_plainly(words, q, region);
        else if (!add_pieces(words, q, region))
            return false;
    }
    return true;
}
