/*
 * Parser of the text form of a program (*.mls). text.c has the grammar and the printer.
 *
 * A recursive-descent parser in one pass over the bytes, without a tokenizer pass. Every function
 * reads one construct at the cursor and returns whether it is present. The first failure fills the
 * error with its location and sets the status. The parser rejects text that cannot be a program:
 * unknown or repeated names, wrong ranks and operand counts, overflows. The validator checks
 * bounds, edges and coverage.
 */
#include "schedule/text/parse.h"

#include "schedule/variants.h"

#include "base/aliases.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

#define SECOND "second" /* begins the second list, and the names of its items */

enum { MAX_ITEMS = 1 << 24 }; /* limit for each of tasks, regions, ... */

typedef mgl_text_parser parser;

static bool fail_memory(parser *p)
{
    return mgl_scan_fail_memory(p->scan, sizeof(mgl_task));
}

/* ---- names ---------------------------------------------------------------------------------- */

/* The name with its first part renamed (base/aliases.def), if `w` is an old name of the second
 * list; else, or if the new name would be too long, the name. */
static const char *renamed(const parser *p, mgl_word w, char out[MGL_SCAN_NAME + 1])
{
    const char *dot = memchr(w.at, '.', (size_t)w.length), *word = NULL;
    if (p->first && dot)
        word = mgl_alias_new(MGL_ALIAS_WORD, w.at, (size_t)(dot - w.at));
    const int prefix = word ? (int)strlen(word) : 0, rest = word ? w.length - (int)(dot - w.at) : 0;
    if (word && prefix + rest <= MGL_SCAN_NAME)
        snprintf(out, MGL_SCAN_NAME + 1, "%s%.*s", word, rest, dot);
    else
        snprintf(out, MGL_SCAN_NAME + 1, "%.*s", w.length, w.at);
    return out;
}

/* Reads a new name for a declaration. */
static bool read_new_name(parser *p, const mgl_names *names, const char *what, int count,
                          char out[MGL_SCAN_NAME + 1])
{
    mgl_word w;
    char wanted[64];
    snprintf(wanted, sizeof wanted, "the %s's name", what);
    if (!mgl_scan_word(p->scan, wanted, &w))
        return false;
    renamed(p, w, out);
    if (mgl_names_find(names, w.at, (size_t)w.length) >= 0 ||
        mgl_names_find(names, out, strlen(out)) >= 0)
        return mgl_scan_fail(p->scan, w.at, p->scan->at, "%s `%.*s` is declared twice", what,
                             w.length, w.at);
    if (count >= MAX_ITEMS)
        return mgl_scan_fail(p->scan, w.at, p->scan->at, "more than %d declarations of %s",
                             MAX_ITEMS, what);
    return true;
}

/* Reads the name of a declared item. Sets its index. */
static bool read_name(parser *p, const mgl_names *names, const char *what, int *out)
{
    mgl_word w;
    char wanted[64];
    snprintf(wanted, sizeof wanted, "the %s's name", what);
    if (!mgl_scan_word(p->scan, wanted, &w))
        return false;
    *out = mgl_names_find(names, w.at, (size_t)w.length);
    if (*out < 0) {
        char name[MGL_SCAN_NAME + 1];
        renamed(p, w, name);
        *out = mgl_names_find(names, name, strlen(name));
    }
    if (*out < 0)
        return mgl_scan_fail(p->scan, w.at, p->scan->at,
                             "no %s is called `%.*s`: declare it above the first queue", what,
                             w.length, w.at);
    return true;
}

/* Records the name of the item just added at `index`, which is -1 if memory ran out. */
static bool note_name(parser *p, mgl_names *names, const char *name, int index)
{
    return index >= 0 && mgl_names_add(names, name, index) ? true : fail_memory(p);
}

/* ---- declarations --------------------------------------------------------------------------- */

static bool read_tensor(parser *p)
{
    mgl_program *program = p->program;
    char name[MGL_SCAN_NAME + 1], checkpoint[MGL_SCAN_STRING + 1];
    mgl_weight_format format;
    int64_t rows = 1, cols;
    int rank = 1;
    if (!read_new_name(p, &p->tensors, "tensor", program->tensor_count, name) ||
        !mgl_text_read_format(p, &format) || !mgl_scan_expect(p->scan, '[') ||
        !mgl_scan_number(p->scan, "a size", MGL_SCAN_NUMBER, &cols))
        return false;
    if (mgl_scan_take(p->scan, ',')) {
        rank = 2;
        rows = cols;
        if (!mgl_scan_number(p->scan, "a size", MGL_SCAN_NUMBER, &cols))
            return false;
    }
    if (!mgl_scan_expect(p->scan, ']') ||
        !mgl_scan_string(p->scan, "the tensor's name in the checkpoint, in quotes", checkpoint))
        return false;
    int index = mgl_program_add_tensor(program, name, checkpoint, format, rank, rows, cols);
    if (index < 0)
        return fail_memory(p);
    program->tensors[index].line = p->scan->source.number;
    return note_name(p, &p->tensors, program->tensors[index].name, index);
}

static bool read_space(parser *p, mgl_space *out)
{
    mgl_word w;
    if (!mgl_scan_word(p->scan, "a space (const, act, kv, io)", &w))
        return false;
    for (int i = 0; i < MGL_SPACE_COUNT; i++)
        if (mgl_word_is(w, mgl_space_name((mgl_space)i)))
            return *out = (mgl_space)i, true;
    return mgl_scan_fail(p->scan, w.at, p->scan->at,
                         "unknown space `%.*s`; known: const, act, kv, io", w.length, w.at);
}

static bool read_extent(parser *p, mgl_extent *out)
{
    const mgl_limits *limits = &p->program->limits;
    if (mgl_scan_take_word(p->scan, "rows"))
        *out = (mgl_extent){MGL_ROWS, limits->rows};
    else if (mgl_scan_take_word(p->scan, "sequences"))
        *out = (mgl_extent){MGL_SEQUENCES, limits->sequences};
    else if (mgl_scan_take_word(p->scan, "capacity"))
        *out = (mgl_extent){MGL_CAPACITY, limits->capacity};
    else
        return mgl_scan_number(p->scan, "an extent: a number, rows, sequences or capacity",
                               MGL_SCAN_NUMBER, &out->count);
    return true;
}

/* "[" extent {"," extent} "]" */
static bool read_shape(parser *p, mgl_buffer *buffer)
{
    if (!mgl_scan_expect(p->scan, '['))
        return false;
    do {
        if (buffer->rank == MGL_MAX_RANK)
            return mgl_scan_fail_expected(p->scan, "`]`: a buffer has at most 4 dimensions");
        if (!read_extent(p, &buffer->extents[buffer->rank++]))
            return false;
    } while (mgl_scan_take(p->scan, ','));
    return mgl_scan_expect(p->scan, ']');
}

static bool read_buffer_source(parser *p, mgl_buffer *buffer)
{
    if (mgl_scan_take_word(p->scan, "rope")) {
        buffer->source = MGL_SOURCE_ROPE;
    } else if (mgl_scan_take_word(p->scan, "tensor")) {
        buffer->source = MGL_SOURCE_TENSOR;
        return read_name(p, &p->tensors, "tensor", &buffer->tensor);
    } else if (mgl_scan_take_word(p->scan, "scales")) {
        buffer->source = MGL_SOURCE_SCALES;
        return read_name(p, &p->tensors, "tensor", &buffer->tensor);
    } else if (mgl_scan_take_word(p->scan, "order")) {
        buffer->source = MGL_SOURCE_ORDER;
        return read_name(p, &p->tensors, "tensor", &buffer->tensor);
    }
    return true;
}

static bool read_sets(parser *p, int *sets)
{
    if (!mgl_scan_take_word(p->scan, "sets"))
        return true;
    mgl_scan_skip_blanks(p->scan);
    const char *from = p->scan->at;
    if (!mgl_scan_int(p->scan, "a number of sets", sets))
        return false;
    return *sets >= 1 || mgl_scan_fail(p->scan, from, p->scan->at, "a buffer has at least 1 set");
}

static bool read_buffer(parser *p)
{
    mgl_program *program = p->program;
    char name[MGL_SCAN_NAME + 1];
    mgl_buffer buffer = {.name = name, .tensor = -1, .sets = 1, .line = p->scan->source.number};
    if (!read_new_name(p, &p->buffers, "buffer", program->buffer_count, name) ||
        !read_space(p, &buffer.space) || !mgl_text_read_dtype(p, &buffer.dtype) ||
        !read_shape(p, &buffer) || !read_buffer_source(p, &buffer) || !read_sets(p, &buffer.sets))
        return false;
    buffer.paged = mgl_scan_take_word(p->scan, "paged");
    int index = mgl_program_add_buffer(program, &buffer);
    return note_name(p, &p->buffers, index < 0 ? NULL : program->buffers[index].name, index);
}

static bool read_counter(parser *p)
{
    mgl_program *program = p->program;
    char name[MGL_SCAN_NAME + 1];
    if (!read_new_name(p, &p->counters, "counter", program->counter_count, name))
        return false;
    int index = mgl_program_add_counter(program, name);
    if (index < 0)
        return fail_memory(p);
    program->counters[index].line = p->scan->source.number;
    return note_name(p, &p->counters, program->counters[index].name, index);
}

/* ---- queues and tasks ----------------------------------------------------------------------- */

static bool read_queue(parser *p)
{
    mgl_program *program = p->program;
    int number;
    mgl_scan_skip_blanks(p->scan);
    const char *from = p->scan->at;
    if (!mgl_scan_int(p->scan, "the queue's number", &number))
        return false;
    if (number != program->queue_count)
        return mgl_scan_fail(p->scan, from, p->scan->at,
                             "queues are numbered in order: this is queue %d",
                             program->queue_count);
    if (number >= MAX_ITEMS)
        return mgl_scan_fail(p->scan, from, p->scan->at, "more than %d queues", MAX_ITEMS);
    int index = mgl_program_add_queue(program);
    if (index < 0)
        return fail_memory(p);
    mgl_queue *queue = &program->queues[index];
    queue->line = p->scan->source.number;
    return p->first ? true
                    : mgl_text_read_size_field(p, "tape", &queue->tape_bytes) &&
                          mgl_text_read_size_field(p, "pad", &queue->tape_pad);
}

/* Reads an optional `unsplit` or `split` into a range of kind `kind`. */
static bool take_split(parser *p, mgl_range_kind kind, mgl_range *out)
{
    const bool unsplit = mgl_scan_take_word(p->scan, "unsplit");
    if (!unsplit && !mgl_scan_take_word(p->scan, "split"))
        return false;
    *out = (mgl_range){kind, unsplit ? MGL_ROWS_UNSPLIT : MGL_ROWS_SPLIT, MGL_ROWS_KINDS};
    return true;
}

/* Reads the optional part of the rows after `:rows`: `unsplit`, `split`, or a share i/n. */
static bool read_part_of_rows(parser *p, mgl_range *out)
{
    if (mgl_scan_at_line_end(p->scan)) /* the text may end here */
        return true;
    if (take_split(p, MGL_RANGE_ROW_KIND, out))
        return true;
    const char *from = p->scan->at;
    if (*from < '0' || *from > '9')
        return true;
    out->kind = MGL_RANGE_SHARE;
    if (!mgl_scan_number(p->scan, "the number of a share", MGL_MAX_SECOND_ROWS, &out->lo) ||
        !mgl_scan_expect(p->scan, '/') ||
        !mgl_scan_number(p->scan, "how many shares there are", MGL_MAX_SECOND_ROWS, &out->hi))
        return false;
    return out->lo < out->hi ||
           mgl_scan_fail(p->scan, from, p->scan->at, "shares are numbered from 0");
}

static bool read_range(parser *p, mgl_range *out)
{
    *out = (mgl_range){0};
    if (mgl_scan_take(p->scan, ':')) {
        out->kind = MGL_RANGE_ROWS;
        if (mgl_scan_take_word(p->scan, "rows"))
            return read_part_of_rows(p, out);
        out->kind = MGL_RANGE_PAST;
        return mgl_scan_take_word(p->scan, "pos") ||
               mgl_scan_fail_expected(p->scan, "`rows` or `pos`");
    }
    out->kind = MGL_RANGE_NOW;
    if (mgl_scan_take_word(p->scan, "pos")) {
        take_split(p, MGL_RANGE_NOW, out);
        return true;
    }
    out->kind = MGL_RANGE_FIXED;
    mgl_scan_skip_blanks(p->scan);
    const char *from = p->scan->at;
    if (!mgl_scan_number(p->scan, "a range: lo:hi, :rows, :pos or pos", MGL_SCAN_NUMBER,
                         &out->lo) ||
        !mgl_scan_expect(p->scan, ':') ||
        !mgl_scan_number(p->scan, "the range's end", MGL_SCAN_NUMBER, &out->hi))
        return false;
    return out->lo <= out->hi ||
           mgl_scan_fail(p->scan, from, p->scan->at, "the range ends before it starts");
}

static bool read_region(parser *p, mgl_region *out)
{
    *out = (mgl_region){.buffer = -1};
    mgl_scan_skip_blanks(p->scan);
    const char *from = p->scan->at;
    if (mgl_scan_take_word(p->scan, "flag")) {
        out->flag = !mgl_scan_take(p->scan, '['); /* a buffer may be named flag */
        p->scan->at = out->flag ? p->scan->at : from;
    }
    mgl_scan_skip_blanks(p->scan);
    from = p->scan->at;
    if (!read_name(p, &p->buffers, "buffer", &out->buffer) || !mgl_scan_expect(p->scan, '['))
        return false;
    const mgl_buffer *buffer = &p->program->buffers[out->buffer];
    int rank = 0;
    do {
        if (rank == buffer->rank)
            return mgl_scan_fail(p->scan, from, p->scan->at,
                                 "`%s` has %d dimensions, this region has more", buffer->name,
                                 rank);
        if (!read_range(p, &out->ranges[rank++]))
            return false;
    } while (mgl_scan_take(p->scan, ','));
    if (!mgl_scan_expect(p->scan, ']'))
        return false;
    return rank == buffer->rank ||
           mgl_scan_fail(p->scan, from, p->scan->at, "`%s` has %d dimensions, this region %d",
                         buffer->name, buffer->rank, rank);
}

/* Reads [key region {"," region}], with as many regions as the op requires. */
static bool read_regions(parser *p, const mgl_op_info *op, bool out)
{
    const char *key = out ? "out" : "in";
    int most = out ? op->out_count : op->in_count + op->extra_count, count = 0;
    int least = out ? op->out_least : op->in_count;
    if (mgl_scan_take_word(p->scan, key)) {
        do {
            mgl_region region;
            mgl_scan_skip_blanks(p->scan);
            const char *from = p->scan->at;
            if (!read_region(p, &region))
                return false;
            if (count++ == most)
                return mgl_scan_fail(p->scan, from, p->scan->at,
                                     "%s has %d `%s` regions, this is one more", op->name, most,
                                     key);
            if (p->program->region_count >= MAX_ITEMS)
                return mgl_scan_fail(p->scan, from, p->scan->at, "more than %d regions", MAX_ITEMS);
            if ((out ? mgl_program_add_out(p->program, &region)
                     : mgl_program_add_in(p->program, &region)) < 0)
                return fail_memory(p);
        } while (mgl_scan_take(p->scan, ','));
    }
    if (count >= least)
        return true;
    const char *next = op->operands[(out ? op->in_count : 0) + count].name;
    mgl_scan_skip_blanks(p->scan);
    return mgl_scan_fail(p->scan, p->scan->at, mgl_scan_found_end(p->scan),
                         "%s has %d `%s` regions, but only %d are given: `%s` is missing", op->name,
                         least, key, count, next);
}

static bool read_fixed_range(parser *p, int64_t *lo, int64_t *hi)
{
    mgl_scan_skip_blanks(p->scan);
    const char *from = p->scan->at;
    if (!mgl_scan_number(p->scan, "a range: lo:hi", MGL_SCAN_NUMBER, lo) ||
        !mgl_scan_expect(p->scan, ':') ||
        !mgl_scan_number(p->scan, "the range's end", MGL_SCAN_NUMBER, hi))
        return false;
    return *lo <= *hi ||
           mgl_scan_fail(p->scan, from, p->scan->at, "the range ends before it starts");
}

static bool read_layout(parser *p, mgl_segment *segment)
{
    mgl_word w;
    if (!mgl_scan_word(p->scan, "a layout (g8, g8x2)", &w))
        return false;
    if (!mgl_word_is(w, "g8") && !mgl_word_is(w, "g8x2"))
        return mgl_scan_fail(p->scan, w.at, p->scan->at, "unknown layout `%.*s`; known: g8, g8x2",
                             w.length, w.at);
    segment->layout = mgl_word_is(w, "g8") ? MGL_LAYOUT_G8 : MGL_LAYOUT_G8X2;
    if ((segment->layout == MGL_LAYOUT_G8X2) != (segment->tensor2 >= 0))
        return mgl_scan_fail(p->scan, w.at, p->scan->at,
                             "g8 is the layout of one tensor, g8x2 of two: a|b");
    return true;
}

/* Reads "+" N, which the second list omits, because it has no tape. */
static bool read_offset(parser *p, int64_t *offset)
{
    mgl_scan_skip_blanks(p->scan);
    const char *from = p->scan->at;
    if (!p->first)
        return mgl_scan_expect(p->scan, '+') &&
               mgl_scan_number(p->scan, "the segment's byte on the tape", MGL_SCAN_NUMBER, offset);
    return !mgl_scan_take(p->scan, '+') ||
           mgl_scan_fail(p->scan, from, p->scan->at,
                         "the second list has no tapes: its segments are parts of the first "
                         "list's, without an offset");
}

static bool read_segment(parser *p, mgl_segment *out)
{
    *out = (mgl_segment){.tensor2 = -1};
    if (!read_name(p, &p->tensors, "tensor", &out->tensor) ||
        (mgl_scan_take(p->scan, '|') && !read_name(p, &p->tensors, "tensor", &out->tensor2)))
        return false;
    return mgl_scan_expect(p->scan, '[') && read_fixed_range(p, &out->row_lo, &out->row_hi) &&
           mgl_scan_expect(p->scan, ',') && read_fixed_range(p, &out->col_lo, &out->col_hi) &&
           mgl_scan_expect(p->scan, ']') && mgl_scan_expect(p->scan, '@') && read_layout(p, out) &&
           read_offset(p, &out->offset);
}

static bool read_segments(parser *p)
{
    if (!mgl_scan_take_word(p->scan, "tape"))
        return true;
    do {
        mgl_segment segment;
        if (!read_segment(p, &segment))
            return false;
        if (p->program->segment_count >= MAX_ITEMS)
            return mgl_scan_fail(p->scan, p->scan->at, p->scan->at, "more than %d segments",
                                 MAX_ITEMS);
        if (mgl_program_add_segment(p->program, &segment) < 0)
            return fail_memory(p);
    } while (mgl_scan_take(p->scan, ','));
    return true;
}

static bool read_waits(parser *p)
{
    if (!mgl_scan_take_word(p->scan, "wait"))
        return true;
    do {
        int counter;
        int64_t threshold;
        if (!read_name(p, &p->counters, "counter", &counter))
            return false;
        if (!mgl_scan_take(p->scan, '>') || !mgl_scan_take(p->scan, '='))
            return mgl_scan_fail_expected(p->scan, "`>=`");
        if (!mgl_scan_number(p->scan, "a threshold", MGL_SCAN_NUMBER, &threshold))
            return false;
        if (p->program->wait_count >= MAX_ITEMS)
            return mgl_scan_fail(p->scan, p->scan->at, p->scan->at, "more than %d waits",
                                 MAX_ITEMS);
        if (mgl_program_add_wait(p->program, counter, threshold) < 0)
            return fail_memory(p);
    } while (mgl_scan_take(p->scan, ','));
    return true;
}

static bool read_signals(parser *p)
{
    if (!mgl_scan_take_word(p->scan, "signal"))
        return true;
    do {
        int counter;
        if (!read_name(p, &p->counters, "counter", &counter))
            return false;
        if (p->program->signal_count >= MAX_ITEMS)
            return mgl_scan_fail(p->scan, p->scan->at, p->scan->at, "more than %d signals",
                                 MAX_ITEMS);
        if (mgl_program_add_signal(p->program, counter) < 0)
            return fail_memory(p);
    } while (mgl_scan_take(p->scan, ','));
    return true;
}

/* "`enter`, `embed`, ...": the list of ops, for a message. */
static void list_ops(char *to, size_t size)
{
    size_t n = 0;
    for (int i = 0; i < MGL_OP_COUNT && n < size; i++)
        n += (size_t)snprintf(to + n, size - n, "%s%s", i ? ", " : "", mgl_op_get((mgl_op)i)->name);
}

/* The same for an op's variants. */
static void list_variants(mgl_op op, char *to, size_t size)
{
    size_t n = 0;
    for (int i = 0; i < MGL_VARIANT_COUNT && n < size; i++)
        if (mgl_op_has_variant(op, (mgl_variant)i))
            n += (size_t)snprintf(to + n, size - n, "%s%s", i ? ", " : "",
                                  mgl_variant_get((mgl_variant)i)->name);
}

/* Reads an op or "op.variant". The validator rejects a variant of another op. */
static bool read_op(parser *p, mgl_op *op, mgl_variant *variant)
{
    mgl_word w;
    char list[400];
    if (!mgl_scan_word(p->scan, "an op", &w))
        return false;
    const char *end = w.at + w.length, *dot = memchr(w.at, '.', (size_t)w.length);
    const char *op_end = dot ? dot : end;
    if (!mgl_op_parse(w.at, (size_t)(op_end - w.at), op)) {
        list_ops(list, sizeof list);
        return mgl_scan_fail(p->scan, w.at, op_end, "unknown op `%.*s`; known: %s",
                             (int)(op_end - w.at), w.at, list);
    }
    *variant = MGL_VARIANT_GENERAL;
    if (!dot || mgl_variant_parse(dot + 1, (size_t)(end - dot - 1), variant))
        return true;
    list_variants(*op, list, sizeof list);
    return mgl_scan_fail(p->scan, dot + 1, end, "unknown variant `%.*s` of %s; known: %s",
                         (int)(end - dot - 1), dot + 1, mgl_op_get(*op)->name, list);
}

static bool read_task(parser *p)
{
    mgl_op op;
    mgl_variant variant;
    const char *from = p->scan->at;
    if (!read_op(p, &op, &variant))
        return false;
    if (p->program->task_count >= MAX_ITEMS)
        return mgl_scan_fail(p->scan, from, p->scan->at, "more than %d tasks", MAX_ITEMS);
    int index = mgl_program_add_task(p->program, op);
    if (index < 0)
        return fail_memory(p);
    mgl_program_set_variant(p->program, variant);
    p->program->tasks[index].line = p->scan->source.number;
    const mgl_op_info *info = mgl_op_get(op);
    return read_regions(p, info, false) && read_segments(p) && read_regions(p, info, true) &&
           read_waits(p) && read_signals(p);
}

/* ---- the program ----------------------------------------------------------------------------- */

/* Starts the second list at "second". */
static bool begin_second(parser *p, const char *from)
{
    if (p->first)
        return mgl_scan_fail(p->scan, from, p->scan->at, "a program has two lists at most");
    if (p->program->limits.second_rows == 0)
        return mgl_scan_fail(p->scan, from, p->scan->at,
                             "the limits declare no second list: add `" MGL_TEXT_SECOND_ROWS " N`");
    mgl_error err;
    if (mgl_program_add_second(p->program, &err))
        return fail_memory(p);
    p->first = p->program;
    p->program = p->first->second;
    return true;
}

/* Reads a line after the header. */
static bool read_statement(parser *p)
{
    static const struct {
        const char *key;
        bool (*read)(parser *p);
    } declarations[] = {
        {"tensor", read_tensor}, {"buffer", read_buffer}, {"counter", read_counter}};
    const char *from = p->scan->at;
    bool declaring = p->program->queue_count == 0;
    for (int i = p->first ? 1 : 0; i < 3; i++) {
        if (!mgl_scan_take_word(p->scan, declarations[i].key))
            continue;
        if (!declaring)
            return mgl_scan_fail(p->scan, from, p->scan->at,
                                 "a %s is declared above the first queue", declarations[i].key);
        return declarations[i].read(p);
    }
    if (mgl_scan_take_word(p->scan, "queue"))
        return read_queue(p);
    if (mgl_scan_take_word(p->scan, SECOND) ||
        mgl_scan_take_word(p->scan, mgl_alias_published(MGL_ALIAS_WORD, SECOND)))
        return begin_second(p, from);
    if (!declaring)
        return read_task(p);
    return mgl_scan_fail_expected(p->scan, p->first ? "`buffer`, `counter` or `queue`"
                                                    : "`tensor`, `buffer`, `counter` or `queue`");
}

static bool read_program(parser *p)
{
    if (!mgl_text_read_header(p))
        return false;
    for (bool first = true; mgl_scan_next_line(p->scan); first = false) {
        bool tuned = first && mgl_scan_take_word(p->scan, "tuned");
        if (!(tuned ? mgl_text_read_tuned(p) : read_statement(p)) || !mgl_scan_line_end(p->scan))
            return false;
    }
    return p->first || p->program->limits.second_rows == 0 ||
           mgl_scan_fail(p->scan, p->scan->at, p->scan->at,
                         "the text ends early: the limits declare a second list, but `" SECOND
                         "` is missing");
}

mgl_status mgl_schedule_parse(const char *text, size_t length, const char *file, mgl_program **out,
                              mgl_error *err)
{
    static const char compiled[] = "\x89MEGA"; /* the start of a compiled model (importer/mega.c) */
    *out = NULL;
    if (length >= sizeof compiled - 1 && !memcmp(text, compiled, sizeof compiled - 1))
        return mgl_fail(err, MGL_BAD_INPUT, file,
                        "is a compiled model, not the text of a schedule; `megalith lower MODEL "
                        "--target T -o F.mls` writes this text");
    if (length > MGL_SCHEDULE_MAX_TEXT)
        return mgl_fail(err, MGL_BAD_INPUT, file,
                        "the schedule text has %zu bytes; at most %d are read", length,
                        MGL_SCHEDULE_MAX_TEXT);
    text = length ? text : "";
    mgl_scan scan = {
        .source = {file ? file : "schedule", text + length, text, 1}, .at = text, .err = err};
    parser p = {.scan = &scan};
    mgl_status status = mgl_utf8_check_mark(text, length, file, err);
    if (!status)
        status = mgl_program_new(&p.program, err);
    if (status)
        return status;
    bool read = read_program(&p);
    mgl_names_clear(&p.tensors);
    mgl_names_clear(&p.buffers);
    mgl_names_clear(&p.counters);
    mgl_program *program = p.first ? p.first : p.program;
    if (!read) {
        mgl_program_free(program);
        return scan.status;
    }
    *out = program;
    return MGL_OK;
}

mgl_status mgl_schedule_read(const char *path, mgl_program **out, mgl_error *err)
{
    *out = NULL;
    char *text;
    size_t length;
    mgl_status status = mgl_file_read(path, MGL_SCHEDULE_MAX_TEXT, &text, &length, err);
    if (status)
        return status;
    status = mgl_schedule_parse(text, length, path, out, err);
    mgl_free(text);
    return status;
}
