/*
 * Implements variants.h: the table of variants.def with its expressions parsed once, the dimensions
 * of programs and tasks, the check whether a variant accepts a task, and the choice of variants.
 */
#include "schedule/variants.h"
#include "base/aliases.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "schedule/expression.h"
#include "schedule/variant_shapes.h"

/* ---- the table ------------------------------------------------------------------------------ */

#define NEEDS(...)     __VA_ARGS__
#define NEED(id, text) {MGL_NEED_##id, text},
#define MGL_VARIANT(id, name, family, rows, weights, exchange, cache, edges, arch, when, needs,    \
                    what)                                                                          \
    static const mgl_variant_need needs_##id[] = {needs};
#include "schedule/variants.def"

static const mgl_variant_info variants[MGL_VARIANT_COUNT] = {
    {.name = "general", .family = MGL_FAMILY_COUNT, .rows = MGL_MAX_SECOND_ROWS, .when = "1"},
#define MGL_VARIANT(id, name, family, rows, weights, exchange, cache, edges, arch, when, needs,    \
                    what)                                                                          \
    {#name,                                                                                        \
     MGL_FAMILY_##family,                                                                          \
     rows,                                                                                         \
     MGL_TAKES_##weights,                                                                          \
     MGL_TAKES_##exchange,                                                                         \
     MGL_TAKES_##cache,                                                                            \
     MGL_TAKES_##edges,                                                                            \
     arch,                                                                                         \
     when,                                                                                         \
     needs_##id,                                                                                   \
     (int)(sizeof needs_##id / sizeof *needs_##id)},
#include "schedule/variants.def"
};

static const struct {
    const char *what, *limit;
} needs[MGL_NEED_COUNT] = {
#define MGL_NEED(id, what, limit) {what, limit},
#include "schedule/variants.def"
};

static const char *const dimension_names[MGL_DIMENSION_COUNT] = {
#define MGL_DIMENSION(id, name, what) #name,
#include "schedule/variants.def"
};

static const struct {
    const char *name, *text;
} terms[] = {
#define MGL_TERM(name, text, what) {#name, text},
#include "schedule/variants.def"
};

/* All expressions, parsed. */
enum { MOST_NEEDS = 12, TERMS = sizeof terms / sizeof *terms };
static struct {
    mgl_expression_term terms[TERMS];
    int term_count; /* a term may use the terms above it */
    mgl_expression limits[MGL_NEED_COUNT];
    mgl_expression needs[MGL_VARIANT_COUNT][MOST_NEEDS];
    mgl_expression whens[MGL_VARIANT_COUNT];
    bool of_family[MGL_FAMILY_COUNT + 1]; /* whether ops of the family have variants besides
                                             `general` */
} parsed;
static pthread_once_t parsing = PTHREAD_ONCE_INIT;

/* A table text that is no expression gets no steps and therefore no value: its variant rejects
 * every task. */
static void parse(const char *text, mgl_expression *out)
{
    const mgl_expression_names names = {.values = dimension_names,
                                        .value_count = MGL_DIMENSION_COUNT,
                                        .terms = parsed.terms,
                                        .term_count = parsed.term_count};
    if (mgl_expression_parse_terms(text, &names, out, NULL))
        *out = (mgl_expression){0};
    MGL_ASSERT(out->count > 0);
}

static void parse_all(void)
{
    for (int i = 0; i < TERMS; i++) {
        parsed.terms[i].name = terms[i].name;
        parse(terms[i].text, &parsed.terms[i].value);
        parsed.term_count++;
    }
    for (int i = 0; i < MGL_NEED_COUNT; i++)
        parse(needs[i].limit, &parsed.limits[i]);
    for (int v = 0; v < MGL_VARIANT_COUNT; v++) {
        parse(variants[v].when, &parsed.whens[v]);
        parsed.of_family[variants[v].family] = v != MGL_VARIANT_GENERAL;
        MGL_ASSERT(variants[v].need_count <= MOST_NEEDS);
        for (int i = 0; i < variants[v].need_count; i++)
            parse(variants[v].needs[i].text, &parsed.needs[v][i]);
    }
}

const mgl_variant_info *mgl_variant_get(mgl_variant variant)
{
    return &variants[(unsigned)variant < MGL_VARIANT_COUNT ? variant : MGL_VARIANT_GENERAL];
}

bool mgl_variant_parse(const char *name, size_t length, mgl_variant *out)
{
    for (int i = 0; i < MGL_VARIANT_COUNT; i++)
        if (mgl_text_is(name, length, variants[i].name)) {
            *out = (mgl_variant)i;
            return true;
        }
    const char *renamed = mgl_alias_new(MGL_ALIAS_VARIANT, name, length);
    return renamed && mgl_variant_parse(renamed, strlen(renamed), out);
}

bool mgl_op_has_variant(mgl_op op, mgl_variant variant)
{
    return variant == MGL_VARIANT_GENERAL ||
           ((unsigned)variant < MGL_VARIANT_COUNT && mgl_op_is_known(op) &&
            variants[variant].family == mgl_op_get(op)->family);
}

const char *mgl_dimension_name(mgl_dimension dimension)
{
    return dimension_names[dimension];
}

int mgl_arch_number(const char *arch)
{
    const char *digits = !strncmp(arch, "sm_", 3)        ? arch + 3
                         : !strncmp(arch, "compute_", 8) ? arch + 8
                                                         : "";
    size_t length = strspn(digits, "0123456789");
    return length > 0 && length <= 4 ? (int)strtol(digits, NULL, 10) : 0;
}

/* ---- dimensions ----------------------------------------------------------------------------- */

enum { FILE_WORDS = 65536, MOST_LANE_WORDS = 255, LANES = 32 }; /* registers of an SM */

/* Limits a number of an unchecked program to 2^40, so that sums of such numbers fit in 64 bits. */
static int64_t bounded(int64_t number)
{
    const int64_t most = INT64_C(1) << 40;
    return number < 0 ? 0 : number < most ? number : most;
}

/* The format of the weights of a task; without segments, of the program. */
static mgl_weight_format format_of(const mgl_program *program, const mgl_task *task)
{
    return task->segments.count > 0
               ? mgl_segment_format(program, &program->segments[task->segments.first])
               : mgl_weight_format_of(program->weight_dtype);
}

static mgl_weight_code weights_of(const mgl_program *program, const mgl_task *task)
{
    return format_of(program, task).code;
}

static int64_t blocks_of(int64_t columns, mgl_weight_code weights)
{
    const int width = mgl_weight_code_columns(weights);
    return (columns + width - 1) / width;
}

static int64_t distance(int64_t a, int64_t b)
{
    return a < b ? b - a : a - b;
}

static int64_t over(int64_t number, int64_t by)
{
    return by > 0 ? number / by : 0;
}

/* Number of splits of an attention task; 1: not split. */
static int64_t splits_of(const mgl_program *program, const mgl_task *task)
{
    const int part = mgl_op_attention(task->op)->part;
    if (part == MGL_NO_OPERAND)
        return 1;
    return bounded(
        program->buffers[mgl_task_operand(program, task, part)->buffer].extents[0].count);
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Whether the task attends with the unsplit rows only. */
static bool is_of_unsplit_rows(const mgl_program *program, const mgl_task *task)
{
    const mgl_range *rows = &mgl_task_result(program, task)->ranges[0];
    return mgl_range_has_row_kind(rows) && rows->lo == MGL_ROWS_UNSPLIT;
}

static void measure_attention(const mgl_program *program, const mgl_task *task, int64_t *d)
{
    const int64_t splits = splits_of(program, task), capacity = program->limits.capacity;
    const int64_t even = splits > 0 ? (capacity + splits - 1) / splits : capacity;
    const int64_t unsplit = bounded(program->limits.unsplit);
    int64_t positions = splits > 1 ? larger(even, bounded(program->limits.share)) : even;
    if (is_of_unsplit_rows(program, task) && unsplit < positions)
        positions = unsplit;
    if (task->op == MGL_OP_ATTEND_PAST)
        d[MGL_DIMENSION_SHARE] = larger(d[MGL_DIMENSION_SHARE], positions);
    d[MGL_DIMENSION_REACH] = larger(d[MGL_DIMENSION_REACH], positions);
}

/* Whether a task is incompatible with the `ring` variant of attention, which runs only with
 * `skinny` products and other `ring` attention. */
static bool is_incompatible(const mgl_task *task)
{
    const mgl_family family = mgl_op_get(task->op)->family;
    return (family == MGL_FAMILY_PRODUCT && task->variant != MGL_VARIANT_SKINNY) ||
           (family == MGL_FAMILY_ATTENTION && task->variant != MGL_VARIANT_RING);
}

/* The same for a second list. Its panels and attention of rows are compatible, because they have
 * memory of their own. */
static int64_t incompatible_of_second(const mgl_program *second)
{
    int64_t count = 0;
    for (int i = 0; i < second->task_count; i++) {
        const mgl_family family = mgl_op_get(second->tasks[i].op)->family;
        count += family == MGL_FAMILY_PRODUCT || family == MGL_FAMILY_ATTENTION;
    }
    return count;
}

static void measure_queues(const mgl_program *program, int64_t *d)
{
    if (program->second)
        d[MGL_DIMENSION_INCOMPATIBLE] += incompatible_of_second(program->second);
    for (int q = 0; q < program->queue_count; q++) {
        const mgl_run *tasks = &program->queues[q].tasks;
        int64_t attentions = 0;
        for (int i = tasks->first; i < tasks->first + tasks->count; i++) {
            const mgl_task *task = &program->tasks[i];
            d[MGL_DIMENSION_INCOMPATIBLE] += is_incompatible(task);
            if (!mgl_op_is_attention(task->op))
                continue;
            attentions++;
            measure_attention(program, task, d);
        }
        d[MGL_DIMENSION_ATTENTIONS] = larger(d[MGL_DIMENSION_ATTENTIONS], attentions);
        d[MGL_DIMENSION_TAPE_PAGES] =
            larger(d[MGL_DIMENSION_TAPE_PAGES],
                   over(program->queues[q].tape_bytes, program->exec.page_bytes));
    }
}

void mgl_dimensions_of_program(const mgl_program *program, mgl_dimensions *out)
{
    const mgl_geometry *m = &program->geometry;
    const mgl_exec *exec = &program->exec;
    int64_t *d = out->of, lane = over(FILE_WORDS, ((int64_t)exec->warps + MGL_OTHER_WARPS) * LANES);
    *out = (mgl_dimensions){0};
    d[MGL_DIMENSION_ROWS] = program->limits.rows;
    d[MGL_DIMENSION_FEWEST] = 1;
    d[MGL_DIMENSION_SEQUENCES] = program->limits.sequences;
    d[MGL_DIMENSION_CAPACITY] = program->limits.capacity;
    d[MGL_DIMENSION_WARPS] = exec->warps;
    d[MGL_DIMENSION_STAGE] = exec->stage_bytes;
    d[MGL_DIMENSION_PAGE_BLOCKS] = exec->page_bytes / MGL_BLOCK_BYTES;
    d[MGL_DIMENSION_RING_BLOCKS] = (int64_t)exec->ring_pages * d[MGL_DIMENSION_PAGE_BLOCKS];
    d[MGL_DIMENSION_LANE_WORDS] = lane < MOST_LANE_WORDS ? lane : MOST_LANE_WORDS;
    d[MGL_DIMENSION_PARTIAL_WORDS] = MGL_PARTIAL_BYTES / 4;
    d[MGL_DIMENSION_HEADS] = over(m->heads, m->kv_heads);
    d[MGL_DIMENSION_HEAD_DIM] = m->head_dim;
    d[MGL_DIMENSION_HOPPER] = !strcmp(program->target.arch, MGL_WARPGROUP_ARCH);
    d[MGL_DIMENSION_SPAN] = MGL_KV_SPAN(m->head_dim);
    d[MGL_DIMENSION_NEAR] = MGL_KV_REGISTERS(m->head_dim, (int64_t)exec->warps);
    d[MGL_DIMENSION_PAGE_POSITIONS] =
        m->head_dim > 0 ? MGL_KV_PAGE_POSITIONS((int64_t)m->head_dim, exec->page_bytes) : 0;
    measure_queues(program, d);
}

bool mgl_product_is_parted(const mgl_program *program, const mgl_task *task)
{
    if (mgl_op_get(task->op)->family != MGL_FAMILY_PRODUCT ||
        weights_of(program, task) == MGL_CODE_F32)
        return false;
    const mgl_region *x = mgl_task_operand(program, task, MGL_PRODUCT_INPUT);
    return task->op != MGL_OP_LINEAR_ADD || program->buffers[x->buffer].dtype == MGL_F32;
}

static void measure_input(const mgl_program *program, mgl_weight_format format, int64_t columns,
                          int64_t *d)
{
    const mgl_weight_code weights = format.code;
    const bool grouped = mgl_weight_format_is_scaled(format) && format.group != MGL_GROUP_ALL;
    const mgl_geometry *m = &program->geometry;
    const int64_t attended = (int64_t)m->heads * m->head_dim, blocks = blocks_of(columns, weights);
    d[MGL_DIMENSION_COLUMNS] = columns;
    d[MGL_DIMENSION_KBLOCKS] = blocks;
    d[MGL_DIMENSION_BLOCK_COLUMNS] = mgl_weight_code_columns(weights);
    d[MGL_DIMENSION_RUN] = over(blocks + program->exec.warps - 1, program->exec.warps);
    d[MGL_DIMENSION_SCALED] = mgl_weight_format_is_scaled(format);
    d[MGL_DIMENSION_GROUP] = grouped ? format.group : 1;
    d[MGL_DIMENSION_OFF_HIDDEN] = distance(blocks, blocks_of(m->hidden, weights));
    d[MGL_DIMENSION_OFF_ATTENDED] = distance(blocks, blocks_of(attended, weights));
    d[MGL_DIMENSION_OFF_FFN] = distance(blocks, blocks_of(m->ffn, weights));
}

static bool has_column_map(const mgl_program *program, const mgl_task *task)
{
    for (int i = 0; i < task->segments.count; i++)
        if (program->tensors[program->segments[task->segments.first + i].tensor].order >= 0)
            return true;
    return false;
}

/* Whether registers of a lane can hold the digits of a warp's run of `columns` columns: a register
 * for each part of 32 columns and for each group of weights. The groups must be aligned with the
 * runs, because only the general variant takes other groups. */
static bool holds_digits(int64_t columns, int group)
{
    if (group == MGL_GROUP_ALL)
        return columns / MGL_PART_COLUMNS + 1 <= MGL_RUN_REGISTERS;
    return (columns % group == 0 || group % columns == 0) &&
           columns / MGL_PART_COLUMNS + over(columns + group - 1, group) <= MGL_RUN_REGISTERS;
}

bool mgl_product_takes_digits(const mgl_program *program, const mgl_task *task)
{
    if (mgl_op_get(task->op)->family != MGL_FAMILY_PRODUCT)
        return false;
    const mgl_weight_format format = format_of(program, task);
    if (!mgl_weight_format_is_scaled(format) || format.code == MGL_CODE_E4M3)
        return false;
    const int64_t blocks = blocks_of(bounded(mgl_task_inputs(program, task)), format.code);
    const int64_t run = over(blocks + program->exec.warps - 1, program->exec.warps);
    return mgl_product_is_parted(program, task) ||
           (mgl_limits_most(&program->limits) == 1 && !has_column_map(program, task) &&
            holds_digits(run * mgl_weight_code_columns(format.code), format.group));
}

static void measure_task(const mgl_program *program, const mgl_task *task,
                         mgl_dimensions *dimensions)
{
    int64_t *d = dimensions->of;
    if (mgl_op_get(task->op)->layout == MGL_LAYOUT_NONE)
        return;
    measure_input(program, format_of(program, task), bounded(mgl_task_inputs(program, task)), d);
    d[MGL_DIMENSION_PARTS] = mgl_product_is_parted(program, task) ? 2 : 1;
    d[MGL_DIMENSION_MERGES] = task->op == MGL_OP_MERGE_ADD;
}

void mgl_dimensions_of_input(const mgl_program *program, int64_t columns, int parts,
                             mgl_dimensions *dimensions)
{
    measure_input(program, mgl_weight_format_of(program->weight_dtype), columns, dimensions->of);
    dimensions->of[MGL_DIMENSION_PARTS] = parts;
    dimensions->of[MGL_DIMENSION_MERGES] = 0;
}

/* ---- whether a variant accepts a task -------------------------------------------------------- */

/* Writes the reason, and returns false. */
#define REFUSE(fault, why, ...)                                                                    \
    ((fault)                                                                                       \
         ? ((fault)->kind = (why), snprintf((fault)->text, MGL_FAULT_TEXT, __VA_ARGS__), false)    \
         : false)

/* Unscaled 16-bit weights. */
static bool is_half(mgl_weight_code weights)
{
    return mgl_weight_code_get(weights)->bits == 16;
}

/* Whether a column allows a dtype. `parted`: whether the input is split, for MGL_TAKES_PARTED. */
static bool allows(mgl_variant_takes takes, mgl_dtype dtype, bool parted)
{
    switch (takes) {
    case MGL_TAKES_HALF:
        return mgl_dtype_size(dtype) == 2;
    case MGL_TAKES_F32:
        return dtype == MGL_F32;
    case MGL_TAKES_PARTED:
        return (mgl_dtype_size(dtype) == 2) != parted;
    case MGL_TAKES_ANY:
    case MGL_TAKES_HALF_OR_SCALED:
    case MGL_TAKES_FLAGS:
        break;
    }
    return true;
}

static const char *name_of(mgl_variant_takes takes, bool parted)
{
    return takes == MGL_TAKES_F32 || (takes == MGL_TAKES_PARTED && parted) ? "f32" : "16 bits";
}

/* The operands that the columns `exchange` and `edges` describe. Returns their number. */
static int exchanged(const mgl_task *task, int out[4])
{
    int count = 0;
    if (mgl_op_get(task->op)->layout != MGL_LAYOUT_NONE) {
        out[count++] = MGL_PRODUCT_INPUT;
    } else if (mgl_op_is_attention(task->op)) {
        const mgl_attention_operands *o = mgl_op_attention(task->op);
        const int all[] = {o->q, o->k, o->v, mgl_op_get(task->op)->in_count /* the result */};
        for (int i = 0; i < 4; i++)
            if (all[i] != MGL_NO_OPERAND)
                out[count++] = all[i];
    }
    return count;
}

/* Whether a variant accepts the format of a task's weights. Scaled weights also need a program of
 * 16-bit values. */
static bool takes_weights(const mgl_program *program, const mgl_variant_info *v,
                          const mgl_task *task, mgl_variant_fault *fault)
{
    const mgl_weight_format format = format_of(program, task);
    if (v->weights == MGL_TAKES_ANY || is_half(format.code))
        return true;
    if (has_column_map(program, task))
        return REFUSE(fault, MGL_FAULT_FORMAT, "takes no weights with a column map (`order`)");
    if (v->weights == MGL_TAKES_HALF || !mgl_weight_format_is_scaled(format))
        return REFUSE(fault, MGL_FAULT_FORMAT, "takes 16-bit weights, and the program's are %s",
                      mgl_weight_code_name(format.code));
    if (mgl_dtype_size(program->weight_dtype) != 2)
        return REFUSE(fault, MGL_FAULT_FORMAT,
                      "takes %s weights in a program of 16-bit values, and the program's are %s",
                      mgl_weight_code_name(format.code), mgl_dtype_name(program->weight_dtype));
    return true;
}

static bool takes_formats(const mgl_program *program, const mgl_variant_info *v, const int64_t *d,
                          const mgl_task *task, mgl_variant_fault *fault)
{
    const bool parted = d[MGL_DIMENSION_PARTS] == 2;
    int operands[4];
    if (!takes_weights(program, v, task, fault))
        return false;
    if (!allows(v->cache, program->kv_dtype, false))
        return REFUSE(fault, MGL_FAULT_FORMAT, "takes a cache of %s, and the program's is %s",
                      name_of(v->cache, false), mgl_dtype_name(program->kv_dtype));
    for (int i = 0, n = exchanged(task, operands); i < n; i++) {
        const mgl_region *region = mgl_task_operand(program, task, operands[i]);
        const mgl_dtype dtype = program->buffers[region->buffer].dtype;
        if (!allows(v->exchange, dtype, parted))
            return REFUSE(fault, MGL_FAULT_FORMAT, "takes %s of %s, but the program's is %s",
                          mgl_op_get(task->op)->operands[operands[i]].name,
                          name_of(v->exchange, parted), mgl_dtype_name(dtype));
    }
    return true;
}

static bool takes_edges(const mgl_program *program, const mgl_variant_info *v, const mgl_task *task,
                        mgl_variant_fault *fault)
{
    int operands[4];
    for (int i = 0, n = exchanged(task, operands); i < n && v->edges == MGL_TAKES_FLAGS; i++)
        if (!mgl_task_operand(program, task, operands[i])->flag)
            return REFUSE(fault, MGL_FAULT_EDGE,
                          "takes a flag region as %s, but the program's is not one",
                          mgl_op_get(task->op)->operands[operands[i]].name);
    return true;
}

/* Reports how much more is needed than available. */
static bool refuse_need(mgl_need need, int64_t wanted, int64_t there, mgl_variant_fault *fault)
{
    if (!strcmp(needs[need].limit, "0"))
        return REFUSE(fault, MGL_FAULT_NEED, "finds %lld %s, and takes none", (long long)wanted,
                      needs[need].what);
    return REFUSE(fault, MGL_FAULT_NEED, "needs %lld %s; there are %lld, %lld too few",
                  (long long)wanted, needs[need].what, (long long)there,
                  (long long)(wanted - there));
}

static bool takes_needs(mgl_variant variant, const mgl_dimensions *d, mgl_variant_fault *fault)
{
    const mgl_variant_info *v = &variants[variant];
    for (int i = 0; i < v->need_count; i++) {
        const mgl_need need = v->needs[i].need;
        int64_t wanted, there;
        if (!mgl_expression_value(&parsed.needs[variant][i], d->of, &wanted) ||
            !mgl_expression_value(&parsed.limits[need], d->of, &there))
            return REFUSE(fault, MGL_FAULT_NEED, "has no number of %s for this shape",
                          needs[need].what);
        if (wanted > there)
            return refuse_need(need, wanted, there, fault);
    }
    return true;
}

/* The same, with a cache of accepted shapes (may be NULL). */
static bool takes_shape(mgl_variant variant, const mgl_dimensions *d, mgl_variant_met *met,
                        mgl_variant_fault *fault)
{
    const int64_t shape = d->of[MGL_DIMENSION_KBLOCKS] + 5 * d->of[MGL_DIMENSION_PARTS];
    const size_t at = (size_t)(shape + variant) % MGL_MET_SHAPES;
    if (met && met->variants[at] == variant && !memcmp(&met->dimensions[at], d, sizeof *d))
        return true;
    if (!takes_needs(variant, d, fault))
        return false;
    if (met) {
        met->variants[at] = variant;
        met->dimensions[at] = *d;
    }
    return true;
}

/* The same, given the task's dimensions. */
static bool takes(const mgl_program *program, const mgl_task *task, mgl_variant variant,
                  const mgl_dimensions *d, mgl_variant_met *met, mgl_variant_fault *fault)
{
    const mgl_variant_info *v = mgl_variant_get(variant);
    const int rows = (int)d->of[MGL_DIMENSION_ROWS];
    if (!mgl_op_has_variant(task->op, variant))
        return REFUSE(fault, MGL_FAULT_OP, "is not a variant of %s", mgl_op_get(task->op)->name);
    if (variant == MGL_VARIANT_GENERAL)
        return true;
    if (mgl_arch_number(program->target.arch) < v->arch)
        return REFUSE(fault, MGL_FAULT_ARCH, "is for sm_%d and newer, and the target is %s",
                      v->arch, program->target.arch);
    if (rows > v->rows)
        return REFUSE(fault, MGL_FAULT_ROWS,
                      "runs epochs of %d rows at most; the program has %d, %d too many", v->rows,
                      rows, rows - v->rows);
    return takes_formats(program, v, d->of, task, fault) && takes_edges(program, v, task, fault) &&
           takes_shape(variant, d, met, fault);
}

bool mgl_variant_takes_next(const mgl_program *program, const mgl_task *task, mgl_variant variant,
                            const mgl_dimensions *dimensions, mgl_variant_met *met,
                            mgl_variant_fault *fault)
{
    mgl_dimensions d = *dimensions;
    pthread_once(&parsing, parse_all);
    if (fault)
        *fault = (mgl_variant_fault){.kind = MGL_FAULT_NONE};
    measure_task(program, task, &d);
    return takes(program, task, variant, &d, met, fault);
}

bool mgl_variant_takes_task(const mgl_program *program, const mgl_task *task, mgl_variant variant,
                            const mgl_dimensions *dimensions, mgl_variant_fault *fault)
{
    return mgl_variant_takes_next(program, task, variant, dimensions, NULL, fault);
}

bool mgl_variant_fits(mgl_variant variant, const mgl_dimensions *dimensions)
{
    pthread_once(&parsing, parse_all);
    return dimensions->of[MGL_DIMENSION_ROWS] <= variants[variant].rows &&
           takes_needs(variant, dimensions, NULL);
}

bool mgl_variant_needs(mgl_variant variant, mgl_need need, const mgl_dimensions *dimensions,
                       int64_t *out)
{
    pthread_once(&parsing, parse_all);
    *out = 0;
    for (int i = 0; i < mgl_variant_get(variant)->need_count; i++)
        if (variants[variant].needs[i].need == need)
            return mgl_expression_value(&parsed.needs[variant][i], dimensions->of, out);
    return true;
}

/* The maximum rows, from `fewest` to `most`, for which a variant accepts a task. 0: none. */
static int most_rows(const mgl_program *program, const mgl_task *task, mgl_variant variant,
                     mgl_dimensions *d, int fewest, int most)
{
    int rows = most;
    d->of[MGL_DIMENSION_FEWEST] = fewest;
    for (; rows >= fewest; rows--) {
        d->of[MGL_DIMENSION_ROWS] = rows;
        if (takes(program, task, variant, d, NULL, NULL))
            return rows;
    }
    return 0;
}

mgl_row_ranges mgl_variant_row_ranges(const mgl_program *program, const mgl_task *task,
                                      const mgl_dimensions *dimensions)
{
    const int rows = program->limits.rows, skinny_rows = mgl_variant_get(MGL_VARIANT_SKINNY)->rows,
              some = mgl_variant_get(MGL_VARIANT_BATCH)->rows;
    mgl_dimensions d = *dimensions;
    pthread_once(&parsing, parse_all);
    if (task->variant == MGL_VARIANT_SKINNY)
        return (mgl_row_ranges){rows, 0};
    if (task->variant != MGL_VARIANT_BATCH && task->variant != MGL_VARIANT_BY_ROWS)
        return (mgl_row_ranges){0, 0};
    measure_task(program, task, &d);
    const int skinny = most_rows(program, task, MGL_VARIANT_SKINNY, &d, 1,
                                 rows < skinny_rows ? rows : skinny_rows);
    const int batch =
        most_rows(program, task, MGL_VARIANT_BATCH, &d, MGL_BATCH_LEAST(d.of[MGL_DIMENSION_SCALED]),
                  rows < some ? rows : some);
    return (mgl_row_ranges){skinny, batch};
}

/* ---- choosing ------------------------------------------------------------------------------- */

/* Whether a variant accepts a task and its `when` is above 0, given the task's dimensions. */
static bool is_chosen(const mgl_program *program, const mgl_task *task, mgl_variant variant,
                      const mgl_dimensions *d)
{
    int64_t when;
    return takes(program, task, variant, d, NULL, NULL) &&
           mgl_expression_value(&parsed.whens[variant], d->of, &when) && when > 0;
}

/* The first variant that is_chosen, or general. */
static mgl_variant choose(const mgl_program *program, const mgl_task *task,
                          const mgl_dimensions *dimensions)
{
    if (!parsed.of_family[mgl_op_get(task->op)->family])
        return MGL_VARIANT_GENERAL;
    mgl_dimensions d = *dimensions;
    measure_task(program, task, &d);
    for (int v = MGL_VARIANT_GENERAL + 1; v < MGL_VARIANT_COUNT; v++)
        if (is_chosen(program, task, (mgl_variant)v, &d))
            return (mgl_variant)v;
    return MGL_VARIANT_GENERAL;
}

/* The program's dimensions with one task that is incompatible with the ring. Ring attention is
 * chosen for all attention tasks or none, so the choice for single tasks excludes it. */
static mgl_dimensions dimensions_alone(const mgl_program *program)
{
    mgl_dimensions alone;
    pthread_once(&parsing, parse_all);
    mgl_dimensions_of_program(program, &alone);
    alone.of[MGL_DIMENSION_INCOMPATIBLE] = 1;
    return alone;
}

static bool is_product(const mgl_task *task)
{
    return mgl_op_get(task->op)->family == MGL_FAMILY_PRODUCT;
}

/* Whether all attention tasks accept the `ring` variant and its `when` is above 0, if all
 * products are skinny. Never in a second list, which has several rows. If there is a second
 * list, the first list may use the ring only if no task of the second is incompatible: then the
 * loader handles the lists separately. */
static bool attention_rings(const mgl_program *program, const mgl_dimensions *alone)
{
    mgl_dimensions among = *alone;
    if (program->is_second || (program->second && incompatible_of_second(program->second) > 0))
        return false;
    among.of[MGL_DIMENSION_INCOMPATIBLE] = 0;
    for (int i = 0; i < program->task_count; i++) {
        const mgl_task *task = &program->tasks[i];
        if (mgl_op_is_attention(task->op) && !is_chosen(program, task, MGL_VARIANT_RING, &among))
            return false;
    }
    return true;
}

void mgl_variants_choose(mgl_program *program)
{
    const mgl_dimensions alone = dimensions_alone(program);
    bool skinny = true;
    if (program->second)
        mgl_variants_choose(program->second);
    for (int i = 0; i < program->task_count; i++) {
        mgl_task *task = &program->tasks[i];
        task->variant = choose(program, task, &alone);
        skinny &= !is_product(task) || task->variant == MGL_VARIANT_SKINNY;
    }
    const bool ring = skinny && attention_rings(program, &alone);
    for (int i = 0; i < program->task_count && ring; i++)
        if (mgl_op_is_attention(program->tasks[i].op))
            program->tasks[i].variant = MGL_VARIANT_RING;
}

bool mgl_variant_is_panels(mgl_variant variant)
{
    return variant == MGL_VARIANT_PANELS || variant == MGL_VARIANT_WARPGROUPS;
}

mgl_status mgl_variants_name_warpgroups(mgl_program *second, mgl_error *err)
{
    mgl_dimensions dimensions;
    mgl_variant_fault fault;
    mgl_dimensions_of_program(second, &dimensions);
    for (int i = 0; i < second->task_count; i++) {
        const mgl_task *task = &second->tasks[i];
        if (mgl_op_get(task->op)->family != MGL_FAMILY_PANEL)
            continue;
        if (!mgl_variant_takes_task(second, task, MGL_VARIANT_WARPGROUPS, &dimensions, &fault))
            return mgl_fail(err, MGL_BAD_INPUT, "warpgroups", "%s.%s %s",
                            mgl_op_get(task->op)->name,
                            mgl_variant_get(MGL_VARIANT_WARPGROUPS)->name, fault.text);
    }
    for (int i = 0; i < second->task_count; i++)
        if (mgl_op_get(second->tasks[i].op)->family == MGL_FAMILY_PANEL)
            second->tasks[i].variant = MGL_VARIANT_WARPGROUPS;
    return MGL_OK;
}

bool mgl_variants_are_chosen(const mgl_program *program)
{
    const mgl_dimensions alone = dimensions_alone(program);
    bool skinny = true;
    for (int i = 0; i < program->task_count; i++) {
        const mgl_task *task = &program->tasks[i];
        if (!mgl_op_is_attention(task->op) && task->variant != choose(program, task, &alone))
            return false;
        skinny &= !is_product(task) || task->variant == MGL_VARIANT_SKINNY;
    }
    const bool ring = skinny && attention_rings(program, &alone);
    for (int i = 0; i < program->task_count; i++) {
        const mgl_task *task = &program->tasks[i];
        if (mgl_op_is_attention(task->op) &&
            task->variant != (ring ? MGL_VARIANT_RING : choose(program, task, &alone)))
            return false;
    }
    return !program->second || mgl_variants_are_chosen(program->second);
}

/* Sets new variants for tasks that reject theirs. Returns false if there are none. */
static bool mend(mgl_program *program, const mgl_dimensions *alone)
{
    bool mended = false;
    mgl_dimensions all;
    mgl_dimensions_of_program(program, &all);
    for (int i = 0; i < program->task_count; i++) {
        mgl_task *task = &program->tasks[i];
        if (mgl_variant_takes_task(program, task, task->variant, &all, NULL))
            continue;
        task->variant = choose(program, task, alone);
        mended = true;
    }
    return mended;
}

/* A new variant may be incompatible with the ring; then the next round changes the ring's tasks.
 * No variant is set that depends on incompatible tasks, so the third round changes nothing. */
void mgl_variants_mend(mgl_program *program)
{
    const mgl_dimensions alone = dimensions_alone(program);
    if (program->second)
        mgl_variants_mend(program->second);
    while (mend(program, &alone))
        ;
}
