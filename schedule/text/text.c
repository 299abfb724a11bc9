/*
 * Printer of the text form of a program (*.mls). parse.c is the inverse: parse(print(p)) equals p,
 * and print(parse(t)) is the canonical form of t.
 *
 * One statement a line. `#` starts a comment that ends with the line. Blank lines, and the number
 * of spaces and tabs between words, have no meaning. NAME is [a-z0-9_.-]+, at most 128 bytes;
 * tensors, buffers and counters have separate name spaces. N is a decimal number without a sign, at
 * most 2^53 for sizes and below 2^31 for the rest. The grammar in EBNF:
 */
/* clang-format off */
/*
 *   program  = "megalith" "1"
 *              "target" NAME "queues" N "shared" N
 *              "model" "hidden" N "layers" N "heads" N "kv_heads" N "head_dim" N "ffn" N "vocab" N
 *                      "eps" FLOAT
 *              "limits" "rows" N ["second_rows" N] "sequences" N "capacity" N ["share" N]
 *                       ["unsplit" N]
 *              "exec" "page" N "ring" N "warps" N "stage" N
 *                     ["flight" N "pending" N "prefetch" N]   default: as in a default config
 *              "types" "weights" FORMAT ["embedding" DTYPE] ["exchange" DTYPE] "cache" DTYPE
 *                                                             default: the numbers of the weights
 *              ["tuned" NAME NAME]                            the tuned entry used for lowering,
 *                                                             and the entry's SHA-256
 *              { tensor | buffer | counter }                  in any order, before their use
 *              { queue { task } }                             numbered 0, 1, 2 ...
 *              ["second" { buffer | counter } { queue { task } }]
 *                                                             the second list, if "limits" has
 *                                                             "second_rows"
 *   tensor   = "tensor" NAME FORMAT "[" [N ","] N "]" STRING  STRING: its name in the checkpoint
 *   buffer   = "buffer" NAME SPACE DTYPE "[" extent {"," extent} "]" [source] ["sets" N] ["paged"]
 *   extent   = N | "rows" | "sequences" | "capacity"          a word has the value of the limits
 *   source   = ("tensor" | "scales" | "order") NAME | "rope"   content of a const buffer
 *   counter  = "counter" NAME
 *   queue    = "queue" N ["tape" N "pad" N]                   bytes of the tape, and padding in it;
 *                                                             omitted in the second list
 *   task     = OP ["." VARIANT] ["in" regions] ["tape" segments] ["out" regions] ["wait" waits]
 *              ["signal" NAME {"," NAME}]
 *   regions  = region {"," region}
 *   region   = ["flag"] NAME "[" range {"," range} "]"        one range for each dimension
 *   range    = N ":" N | ":rows" ["unsplit" | "split" | N "/" N] | ":pos"
 *              | "pos" ["unsplit" | "split"]                 half-open
 *   segments = segment {"," segment}
 *   segment  = NAME ["|" NAME] "[" N ":" N "," N ":" N "]" "@" LAYOUT ["+" N]
 *                                                             rows, columns, byte on the tape,
 *                                                             which the second list omits
 *   waits    = NAME ">=" N {"," NAME ">=" N}
 */
/* clang-format on */
/*
 * OP is a name of instructions/ops.def. VARIANT is a name of schedule/variants.def
 * (`norm_linear.skinny`), omitted for general. SPACE is a name of MGL_SPACES, DTYPE of MGL_DTYPES,
 * FORMAT of base/weight_codes.def; a scaled one goes on with
 * row | tensor | group N | block ROWS COLUMNS, the DTYPE of its scales, and zeros. LAYOUT is g8, or
 * g8x2 for two tensors, joined by `|`. A STRING is in double quotes, with \" and \\ for these two
 * characters and \xNN for control bytes. FLOAT is the shortest decimal that reads back as the same
 * float.
 */
#include "schedule/schedule.h"
#include "schedule/variants.h"

static void put_number(mgl_text *out, int64_t number)
{
    char digits[24], *at = digits + sizeof digits;
    uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    do
        *--at = (char)('0' + rest % 10);
    while (rest /= 10);
    if (number < 0)
        *--at = '-';
    mgl_text_append(out, at, (size_t)(digits + sizeof digits - at));
}

/* " key number" */
static void put_field(mgl_text *out, const char *key, int64_t number)
{
    mgl_text_put(out, " ");
    mgl_text_put(out, key);
    mgl_text_put(out, " ");
    put_number(out, number);
}

static void put_string(mgl_text *out, const char *string)
{
    mgl_text_put(out, "\"");
    for (const char *at = string; *at; at++) {
        unsigned char byte = (unsigned char)*at;
        if (byte < 0x20 || byte == 0x7F)
            mgl_text_format(out, "\\x%02x", byte);
        else if (byte == '"' || byte == '\\')
            mgl_text_format(out, "\\%c", byte);
        else
            mgl_text_append(out, at, 1);
    }
    mgl_text_put(out, "\"");
}

/* Fields equal to the numbers of the weights are omitted. */
static void put_types(const mgl_program *program, mgl_text *out)
{
    mgl_text_format(out, "\ntypes weights %s", mgl_dtype_name(program->weight_dtype));
    if (program->embedding_dtype != program->weight_dtype)
        mgl_text_format(out, " embedding %s", mgl_dtype_name(program->embedding_dtype));
    if (program->exchange_dtype != program->weight_dtype)
        mgl_text_format(out, " exchange %s", mgl_dtype_name(program->exchange_dtype));
    mgl_text_format(out, " cache %s\n", mgl_dtype_name(program->kv_dtype));
}

static void put_header(const mgl_program *program, mgl_text *out)
{
    mgl_text_put(out, "megalith 1\ntarget ");
    mgl_text_put(out, program->target.arch);
    put_field(out, "queues", program->target.queues);
    put_field(out, "shared", program->target.shared_bytes);
    mgl_text_put(out, "\nmodel");
    for (int i = 0; i < MGL_GEOMETRY_FACT_COUNT; i++) {
        const double value = mgl_fact_value(&program->geometry, &mgl_geometry_facts[i]);
        mgl_text_format(out, " %s ", mgl_geometry_facts[i].name);
        if (mgl_geometry_facts[i].is_float)
            mgl_text_put_float(out, (float)value, 1);
        else
            mgl_text_format(out, "%d", (int)value);
    }
    mgl_text_put(out, "\nlimits");
    put_field(out, "rows", program->limits.rows);
    if (program->limits.second_rows > 0)
        put_field(out, "second_rows", program->limits.second_rows);
    put_field(out, "sequences", program->limits.sequences);
    put_field(out, "capacity", program->limits.capacity);
    if (program->limits.share != 0)
        put_field(out, "share", program->limits.share);
    if (program->limits.unsplit != 0)
        put_field(out, "unsplit", program->limits.unsplit);
    mgl_text_put(out, "\nexec");
    put_field(out, "page", program->exec.page_bytes);
    put_field(out, "ring", program->exec.ring_pages);
    put_field(out, "warps", program->exec.warps);
    put_field(out, "stage", program->exec.stage_bytes);
    put_field(out, "flight", program->exec.flight_bytes);
    put_field(out, "pending", program->exec.pending_bytes);
    put_field(out, "prefetch", program->exec.prefetch_bytes);
    put_types(program, out);
    if (program->tuned[0])
        mgl_text_format(out, "tuned %s %s\n", program->tuned, program->tuned_digest);
}

static void put_tensor(const mgl_program_tensor *tensor, mgl_text *out)
{
    char format[MGL_WEIGHT_FORMAT_TEXT];
    mgl_text_format(out, "tensor %s %s [", tensor->name,
                    mgl_weight_format_print(tensor->format, format));
    if (tensor->rank == 2) {
        put_number(out, tensor->rows);
        mgl_text_put(out, ",");
    }
    put_number(out, tensor->cols);
    mgl_text_put(out, "] ");
    put_string(out, tensor->checkpoint);
    mgl_text_put(out, "\n");
}

static void put_extent(const mgl_extent *extent, mgl_text *out)
{
    static const char *const symbols[] = {
        [MGL_ROWS] = "rows", [MGL_SEQUENCES] = "sequences", [MGL_CAPACITY] = "capacity"};
    if (extent->symbol == MGL_FIXED)
        put_number(out, extent->count);
    else
        mgl_text_put(out, symbols[extent->symbol]);
}

static void put_buffer(const mgl_program *program, const mgl_buffer *buffer, mgl_text *out)
{
    mgl_text_format(out, "buffer %s %s %s [", buffer->name, mgl_space_name(buffer->space),
                    mgl_dtype_name(buffer->dtype));
    for (int i = 0; i < buffer->rank; i++) {
        mgl_text_put(out, i ? "," : "");
        put_extent(&buffer->extents[i], out);
    }
    mgl_text_put(out, "]");
    if (buffer->source == MGL_SOURCE_TENSOR)
        mgl_text_format(out, " tensor %s", program->tensors[buffer->tensor].name);
    else if (buffer->source == MGL_SOURCE_SCALES)
        mgl_text_format(out, " scales %s", program->tensors[buffer->tensor].name);
    else if (buffer->source == MGL_SOURCE_ORDER)
        mgl_text_format(out, " order %s", program->tensors[buffer->tensor].name);
    else if (buffer->source == MGL_SOURCE_ROPE)
        mgl_text_put(out, " rope");
    if (buffer->sets != 1)
        put_field(out, "sets", buffer->sets);
    if (buffer->paged)
        mgl_text_put(out, " paged");
    mgl_text_put(out, "\n");
}

static void put_range(const mgl_range *range, mgl_text *out)
{
    static const char *const symbols[] = {[MGL_RANGE_ROWS] = ":rows",
                                          [MGL_RANGE_PAST] = ":pos",
                                          [MGL_RANGE_NOW] = "pos",
                                          [MGL_RANGE_ROW_KIND] = ":rows"};
    if (!mgl_range_has_numbers(range)) {
        mgl_text_put(out, symbols[range->kind]);
        return;
    }
    if (mgl_range_has_row_kind(range)) {
        mgl_text_format(out, "%s %s", symbols[range->kind], mgl_row_kind_name(range));
        return;
    }
    const bool share = range->kind == MGL_RANGE_SHARE;
    mgl_text_put(out, share ? ":rows " : "");
    put_number(out, range->lo);
    mgl_text_put(out, share ? "/" : ":");
    put_number(out, range->hi);
}

static void put_regions(const mgl_program *program, const char *key, mgl_run run, mgl_text *out)
{
    for (int i = 0; i < run.count; i++) {
        const mgl_region *region = &program->regions[run.first + i];
        const mgl_buffer *buffer = &program->buffers[region->buffer];
        mgl_text_put(out, i ? ", " : key);
        mgl_text_put(out, region->flag ? "flag " : "");
        mgl_text_put(out, buffer->name);
        for (int d = 0; d < buffer->rank; d++) {
            mgl_text_put(out, d ? "," : "[");
            put_range(&region->ranges[d], out);
        }
        mgl_text_put(out, "]");
    }
}

static void put_segments(const mgl_program *program, mgl_run run, mgl_text *out)
{
    for (int i = 0; i < run.count; i++) {
        const mgl_segment *segment = &program->segments[run.first + i];
        mgl_text_put(out, i ? ", " : " tape ");
        mgl_text_put(out, program->tensors[segment->tensor].name);
        if (segment->tensor2 >= 0) {
            mgl_text_put(out, "|");
            mgl_text_put(out, program->tensors[segment->tensor2].name);
        }
        mgl_text_put(out, "[");
        put_number(out, segment->row_lo);
        mgl_text_put(out, ":");
        put_number(out, segment->row_hi);
        mgl_text_put(out, ",");
        put_number(out, segment->col_lo);
        mgl_text_put(out, ":");
        put_number(out, segment->col_hi);
        mgl_text_put(out, "]@");
        mgl_text_put(out, mgl_layout_name(segment->layout));
        if (program->is_second)
            continue;
        mgl_text_put(out, "+");
        put_number(out, segment->offset);
    }
}

void mgl_schedule_print_task(const mgl_program *program, int task, mgl_text *out)
{
    const mgl_task *t = &program->tasks[task];
    mgl_text_put(out, mgl_op_get(t->op)->name);
    if (t->variant != MGL_VARIANT_GENERAL) {
        mgl_text_put(out, ".");
        mgl_text_put(out, mgl_variant_get(t->variant)->name);
    }
    put_regions(program, " in ", t->in, out);
    put_segments(program, t->segments, out);
    put_regions(program, " out ", t->out, out);
    for (int i = 0; i < t->waits.count; i++) {
        const mgl_wait *wait = &program->waits[t->waits.first + i];
        mgl_text_put(out, i ? ", " : " wait ");
        mgl_text_put(out, program->counters[wait->counter].name);
        mgl_text_put(out, ">=");
        put_number(out, wait->threshold);
    }
    for (int i = 0; i < t->signals.count; i++) {
        mgl_text_put(out, i ? ", " : " signal ");
        mgl_text_put(out, program->counters[program->signals[t->signals.first + i]].name);
    }
}

/* Prints the buffers and counters from index `buffers` and `counters` on. For the second list
 * these are the numbers of the first list, whose declarations come first. */
static void put_declarations(const mgl_program *program, int buffers, int counters, mgl_text *out)
{
    for (int i = buffers; i < program->buffer_count; i++) {
        mgl_text_put(out, i > buffers ? "" : "\n");
        put_buffer(program, &program->buffers[i], out);
    }
    for (int i = counters; i < program->counter_count; i++) {
        mgl_text_put(out, i > counters ? "counter " : "\ncounter ");
        mgl_text_put(out, program->counters[i].name);
        mgl_text_put(out, "\n");
    }
}

static void put_queues(const mgl_program *program, mgl_text *out)
{
    for (int q = 0; q < program->queue_count; q++) {
        const mgl_queue *queue = &program->queues[q];
        mgl_text_put(out, "\nqueue ");
        put_number(out, q);
        if (!program->is_second) {
            put_field(out, "tape", queue->tape_bytes);
            put_field(out, "pad", queue->tape_pad);
        }
        mgl_text_put(out, "\n");
        for (int i = 0; i < queue->tasks.count; i++) {
            mgl_schedule_print_task(program, queue->tasks.first + i, out);
            mgl_text_put(out, "\n");
        }
    }
}

void mgl_schedule_print(const mgl_program *program, mgl_text *out)
{
    put_header(program, out);
    for (int i = 0; i < program->tensor_count; i++) {
        mgl_text_put(out, i ? "" : "\n");
        put_tensor(&program->tensors[i], out);
    }
    put_declarations(program, 0, 0, out);
    put_queues(program, out);
    if (!program->second)
        return;
    mgl_text_put(out, "\nsecond\n");
    put_declarations(program->second, program->buffer_count, program->counter_count, out);
    put_queues(program->second, out);
}
