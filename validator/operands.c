/*
 * MG1xx, second half: every task against the row of its op in ops.def. First each operand for
 * itself (mgl_check_operands), then, when bounds.c has found every region inside its buffer, how
 * the operands of one task fit each other and the model (mgl_check_relations), and which buffer
 * plays which part between enter and sample.
 *
 * Legality is what is listed here: the table of relations is made from ops.def, and an op without
 * one does not compile.
 */
#include "validator/check.h"

#include "base/memory.h"
#include "schedule/pages.h"
#include "schedule/variants.h"

#include <inttypes.h>
#include <string.h>

/* ---- one operand ---- */

/* The dtype that an operand must have; of EXCHANGE the one beside f32, of EMBEDDING the first of
 * those that the program takes. */
static mgl_dtype wanted_dtype(const mgl_program *p, mgl_operand_dtype dtype)
{
    switch (dtype) {
    case MGL_OPERAND_I32:
        return MGL_I32;
    case MGL_OPERAND_EMBEDDING:
        return p->embedding_dtype;
    case MGL_OPERAND_EXCHANGE:
        return p->exchange_dtype;
    case MGL_OPERAND_CACHE:
        return p->kv_dtype;
    case MGL_OPERAND_F32:
        break;
    }
    return MGL_F32;
}

/* Whether a range is what a letter of ops.def says; NULL, or what it should be. */
static const char *range_fault(char letter, const mgl_range *range, const mgl_extent *extent)
{
    bool fixed = range->kind == MGL_RANGE_FIXED && extent->symbol != MGL_ROWS;
    switch (letter) {
    case 'R':
        return range->kind == MGL_RANGE_ROWS && extent->symbol == MGL_ROWS ? NULL : "[:rows]";
    case 'A':
        return fixed && range->lo == 0 && range->hi == extent->count ? NULL : "the whole extent";
    case 'S':
        return fixed ? NULL : "a slice [lo:hi]";
    case '1':
        return fixed && range->lo < range->hi && range->hi - 1 == range->lo ? NULL
                                                                            : "one index [i:i+1]";
    case 'P':
        return range->kind == MGL_RANGE_PAST && extent->symbol == MGL_CAPACITY ? NULL : "[:pos]";
    case 'N':
        return range->kind == MGL_RANGE_NOW && extent->symbol == MGL_CAPACITY ? NULL : "[pos]";
    case 'H':
        return range->kind == MGL_RANGE_SHARE && extent->symbol == MGL_ROWS
                   ? NULL
                   : "a share of the rows, [:rows i/n]";
    case '*':
        return range_fault(extent->symbol == MGL_ROWS ? 'R' : 'S', range, extent);
    default:
        return "a range that ops.def lists";
    }
}

/* What is wrong with an operand's `flag`, or NULL: it stands where the buffer is flagged and the
 * task is no clear, and nowhere else. */
static const char *flag_fault(mgl_op op, const mgl_region *region, const mgl_buffer *buffer)
{
    bool flagged = mgl_buffer_is_flagged(buffer);
    if (op == MGL_OP_CLEAR)
        return region->flag
                   ? "is a flag region, but clear neither waits for words nor writes values"
               : !flagged ? "is of a buffer without sets: it has no flag words to clear"
                          : NULL;
    if (region->flag == flagged)
        return NULL;
    return flagged
               ? "must be a flag region: its buffer has sets, and no other edge orders its words"
               : "is a flag region, but its buffer has no sets: write `sets 2` behind the buffer";
}

static void check_flag(mgl_check *check, int t, const mgl_operand *operand, int index)
{
    const mgl_program *p = check->program;
    const mgl_region *region = &p->regions[index];
    const mgl_buffer *buffer = &p->buffers[region->buffer];
    const mgl_range *last = &region->ranges[buffer->rank - 1];
    int64_t granule = mgl_granule_elements(buffer->dtype);
    const char *fault = flag_fault(p->tasks[t].op, region, buffer);
    char task[MGL_NAME_TEXT], place[MGL_NAME_TEXT];
    if (fault)
        mgl_check_report(check, 120, t, 0, "%s: operand %s, %s, %s", mgl_check_task(check, t, task),
                         operand->name, mgl_check_region(check, index, place), fault);
    else if (mgl_buffer_is_flagged(buffer) && (last->lo % granule || last->hi % granule))
        mgl_check_report(check, 122, t, 0,
                         "%s: operand %s, %s, must begin and end at multiples of %d bytes, which "
                         "are %" PRId64 " columns",
                         mgl_check_task(check, t, task), operand->name,
                         mgl_check_region(check, index, place), MGL_GRANULE_BYTES, granule);
}

static void report_type(mgl_check *check, int t, const mgl_operand *operand,
                        const mgl_buffer *buffer)
{
    const char *dtype = mgl_dtype_name(wanted_dtype(check->program, operand->dtype));
    bool either = operand->dtype == MGL_OPERAND_EXCHANGE;
    char task[MGL_NAME_TEXT];
    mgl_check_report(check, 107, t, 0, "%s: operand %s must be %s %s%s, but buffer %.64s is %s %s",
                     mgl_check_task(check, t, task), operand->name, mgl_space_name(operand->space),
                     either ? "f32 or " : "", dtype, buffer->name, mgl_space_name(buffer->space),
                     mgl_dtype_name(buffer->dtype));
}

static bool type_fits(const mgl_program *p, const mgl_operand *operand, const mgl_buffer *buffer)
{
    return buffer->space == operand->space &&
           (buffer->dtype == wanted_dtype(p, operand->dtype) ||
            (operand->dtype == MGL_OPERAND_EXCHANGE && buffer->dtype == MGL_F32) ||
            (operand->dtype == MGL_OPERAND_EMBEDDING && mgl_program_takes_table(p, buffer->dtype)));
}

/* The letter of a dimension: "*" stands for as many as there are. */
static char range_letter(const mgl_operand *operand, int dimension)
{
    return operand->ranges[0] == '*' ? '*' : operand->ranges[dimension];
}

static void check_operand(mgl_check *check, int t, const mgl_operand *operand, int index)
{
    const mgl_program *p = check->program;
    const mgl_region *region = &p->regions[index];
    const mgl_buffer *buffer = &p->buffers[region->buffer];
    char task[MGL_NAME_TEXT];
    if (!type_fits(p, operand, buffer)) {
        report_type(check, t, operand, buffer);
        return;
    }
    int rank = operand->ranges[0] == '*' ? buffer->rank : (int)strlen(operand->ranges);
    if (buffer->rank != rank) {
        mgl_check_report(
            check, 107, t, 0, "%s: operand %s has %d dimensions, but buffer %.64s has %d",
            mgl_check_task(check, t, task), operand->name, rank, buffer->name, buffer->rank);
        return;
    }
    for (int d = 0; d < rank; d++) {
        const char *fault =
            range_fault(range_letter(operand, d), &region->ranges[d], &buffer->extents[d]);
        char name[MGL_NAME_TEXT];
        if (fault)
            mgl_check_report(check, 107, t, 0, "%s: dimension %d of operand %s, %s, must be %s",
                             mgl_check_task(check, t, task), d, operand->name,
                             mgl_check_region(check, index, name), fault);
    }
    check_flag(check, t, operand, index);
}

static void check_segments(mgl_check *check, int t)
{
    const mgl_program *p = check->program;
    const mgl_task *task = &p->tasks[t];
    const mgl_op_info *op = mgl_op_get(task->op);
    int most = op->segment_most, count = task->segments.count;
    char name[MGL_NAME_TEXT];
    if (count > most || count < (most > 0))
        mgl_check_report(check, 108, t, 0, "%s has %d segments; %s takes %d to %d",
                         mgl_check_task(check, t, name), count, op->name, most > 0, most);
    for (int i = 0; i < count; i++) {
        const mgl_segment *s = &p->segments[task->segments.first + i];
        if (s->layout != op->layout || (s->tensor2 >= 0) != (op->layout == MGL_LAYOUT_G8X2))
            mgl_check_report(check, 108, t, 0, "%s: segment %d has layout %s; %s streams %s",
                             mgl_check_task(check, t, name), i, mgl_layout_name(s->layout),
                             op->name, mgl_layout_name(op->layout));
        for (int j = 0; j < 2; j++) {
            int index = j ? s->tensor2 : s->tensor;
            const mgl_program_tensor *tensor = index < 0 ? NULL : &p->tensors[index];
            if (tensor && (tensor->rank != 2 || !mgl_program_takes_format(p, tensor->format)))
                mgl_check_report(check, 105, t, 0,
                                 "%s: tensor %.64s is rank %d %s; a tape holds matrices of the "
                                 "types line's %s, or in f32 on a CPU of any format",
                                 mgl_check_task(check, t, name), tensor->name, tensor->rank,
                                 mgl_weight_format_name(tensor->format),
                                 mgl_weight_format_name(p->weight_format));
        }
        if (s->tensor2 >= 0 && p->tensors[s->tensor].format != p->tensors[s->tensor2].format)
            mgl_check_report(
                check, 105, t, 0,
                "%s: tensors %.64s and %.64s share a segment, so they need one format, "
                "and they are %s and %s",
                mgl_check_task(check, t, name), p->tensors[s->tensor].name,
                p->tensors[s->tensor2].name, mgl_weight_format_name(p->tensors[s->tensor].format),
                mgl_weight_format_name(p->tensors[s->tensor2].format));
    }
}

/* Whether the operand is what products of weighed values multiply: bulk copies bring that on a GPU.
 */
static bool is_copied(mgl_op op, int operand)
{
    return (mgl_op_get(op)->family == MGL_FAMILY_PANEL && operand == MGL_PRODUCT_INPUT) ||
           (op == MGL_OP_SCALED_SWIGLU && operand == MGL_OPERAND(scaled_swiglu, y)) ||
           (op == MGL_OP_LINEAR_ADD_WEIGHED && operand == MGL_OPERAND(linear_add_weighed, n)) ||
           (op == MGL_OP_EMBED_WEIGHED && operand == MGL_OPERAND(embed_weighed, n));
}

/* Whether the op's code on a GPU knows pages there. */
static bool takes_pages(mgl_op op, int operand)
{
    return is_copied(op, operand) || (op == MGL_OP_ATTEND && operand == MGL_OPERAND(attend, y)) ||
           (op == MGL_OP_ATTEND_ROWS && operand == MGL_OPERAND(attend_rows, y));
}

/* MG131: on a GPU what is copied is bf16 in pages, and nothing else lies in pages; who writes a
 * part of a page's row writes whole quarters of it. `panels`: the list has products of weighed
 * values. */
static void check_paged(mgl_check *check, int t, bool panels)
{
    const mgl_program *p = check->program;
    const mgl_task *task = &p->tasks[t];
    char name[MGL_NAME_TEXT];
    for (int i = 0; i < task->in.count + task->out.count; i++) {
        const int operand = mgl_task_operand_at(task, i);
        const mgl_region *region = &p->regions[mgl_task_region(task, i)];
        const mgl_buffer *b = &p->buffers[region->buffer];
        const char *what = mgl_op_get(task->op)->operands[operand].name;
        if (is_copied(task->op, operand) && (!b->paged || b->dtype != MGL_BF16))
            mgl_check_report(check, 131, t, 0,
                             "%s: on a GPU %s is bf16 and lies in pages, and buffer %.64s %s",
                             mgl_check_task(check, t, name), what, b->name,
                             b->paged ? "is not bf16" : "does not lie in pages");
        else if (b->paged && (!panels || !takes_pages(task->op, operand)))
            mgl_check_report(check, 131, t, 0,
                             "%s: on a GPU %s can not lie in pages, as buffer %.64s does%s",
                             mgl_check_task(check, t, name), what, b->name,
                             panels ? "" : ": the list has no products of weighed values");
        else if (b->paged && task->op == MGL_OP_EMBED_WEIGHED &&
                 (region->ranges[1].lo % MGL_PAGE_QUARTER_COLUMNS ||
                  region->ranges[1].hi % MGL_PAGE_QUARTER_COLUMNS))
            mgl_check_report(check, 131, t, 0,
                             "%s: on a GPU its columns begin and end at multiples of %d",
                             mgl_check_task(check, t, name), MGL_PAGE_QUARTER_COLUMNS);
    }
}

/* MG131: weighed values are the second list's; on a GPU by the variant that has code of them. */
static void check_place(mgl_check *check, int t)
{
    const mgl_program *p = check->program;
    const mgl_op op = p->tasks[t].op;
    const bool product = mgl_op_get(op)->family == MGL_FAMILY_PANEL;
    const bool cpu = !strcmp(p->target.arch, "cpu");
    const mgl_variant_info *panels = mgl_variant_get(MGL_VARIANT_PANELS);
    char name[MGL_NAME_TEXT];
    if (!product && op != MGL_OP_EMBED_WEIGHED)
        return;
    if (!p->second || (!cpu && mgl_arch_number(p->target.arch) < panels->arch))
        mgl_check_report(check, 131, t, 0,
                         "%s: ops of weighed values are for the second list, on a CPU or a GPU of "
                         "sm_%d or newer, but here it is the %s list of a program for %s",
                         mgl_check_task(check, t, name), panels->arch,
                         p->second ? "second" : "first", p->target.arch);
    else if (product && !cpu && p->tasks[t].variant != MGL_VARIANT_PANELS)
        mgl_check_report(check, 131, t, 0,
                         "%s: on a GPU products of weighed values have one variant, %s.%s",
                         mgl_check_task(check, t, name), mgl_op_get(op)->name, panels->name);
}

/* MG133: attention of shares of the rows is the second list's, without flags; on a GPU by the
 * variant that has code of it. */
static void check_shared(mgl_check *check, int t)
{
    const mgl_program *p = check->program;
    const mgl_task *task = &p->tasks[t];
    const bool cpu = !strcmp(p->target.arch, "cpu");
    const mgl_variant_info *flash = mgl_variant_get(MGL_VARIANT_FLASH);
    char name[MGL_NAME_TEXT];
    if (task->op != MGL_OP_ATTEND_ROWS)
        return;
    if (!p->second)
        mgl_check_report(check, 133, t, 0,
                         "%s: it is an op of the second list, and this is the first",
                         mgl_check_task(check, t, name));
    else if (!cpu && task->variant != MGL_VARIANT_FLASH)
        mgl_check_report(check, 133, t, 0, "%s: on a GPU it has one variant, attend_rows.%s",
                         mgl_check_task(check, t, name), flash->name);
    for (int i = 0; i < task->in.count + task->out.count; i++)
        if (p->regions[mgl_task_region(task, i)].flag)
            mgl_check_report(check, 133, t, 0, "%s: none of its operands is a flag region",
                             mgl_check_task(check, t, name));
}

static void check_task(mgl_check *check, int t, bool gpu, bool panels)
{
    const mgl_task *task = &check->program->tasks[t];
    const mgl_op_info *op = mgl_op_get(task->op);
    char name[MGL_NAME_TEXT];
    const int most = op->in_count + op->extra_count;
    if (task->in.count < op->in_count || task->in.count > most || task->out.count < op->out_least ||
        task->out.count > op->out_count) {
        mgl_check_report(check, 106, t, 0,
                         "%s has %d inputs and %d outputs; %s takes %d to %d and %d to %d",
                         mgl_check_task(check, t, name), task->in.count, task->out.count, op->name,
                         op->in_count, most, op->out_least, op->out_count);
        return;
    }
    for (int i = 0; i < task->in.count + task->out.count; i++)
        check_operand(check, t, &op->operands[mgl_task_operand_at(task, i)],
                      mgl_task_region(task, i));
    check_segments(check, t);
    check_place(check, t);
    check_shared(check, t);
    if (gpu)
        check_paged(check, t, panels);
}

/* ---- the shape of a queue ---- */

static void check_queues(mgl_check *check)
{
    const mgl_program *p = check->program;
    int samples = 0;
    for (int q = 0; q < p->queue_count; q++) {
        const mgl_run *run = &p->queues[q].tasks;
        if (run->count == 0 || p->tasks[run->first].op != MGL_OP_ENTER)
            mgl_check_report(check, 110, run->count ? run->first : -1, p->queues[q].line,
                             "queue %d does not open with enter", q);
        for (int i = 0; i < run->count; i++) {
            int t = run->first + i;
            char name[MGL_NAME_TEXT];
            if (i > 0 && p->tasks[t].op == MGL_OP_ENTER)
                mgl_check_report(check, 110, t, 0, "%s stands behind the first task of its queue",
                                 mgl_check_task(check, t, name));
            if (p->tasks[t].op != MGL_OP_SAMPLE)
                continue;
            samples++;
            check->sample = t;
            if (i != run->count - 1)
                mgl_check_report(check, 111, t, 0, "%s is not the last task of its queue",
                                 mgl_check_task(check, t, name));
        }
    }
    if (samples != 1)
        mgl_check_report(check, 111, samples ? check->sample : -1, 0,
                         "the program has %d sample tasks; an epoch ends with exactly one",
                         samples);
}

void mgl_check_operands(mgl_check *check)
{
    const mgl_program *p = check->program;
    const bool gpu = strcmp(p->target.arch, "cpu") != 0;
    bool panels = false;
    for (int t = 0; t < p->task_count && !panels; t++)
        panels = mgl_op_get(p->tasks[t].op)->family == MGL_FAMILY_PANEL;
    for (int t = 0; t < p->task_count; t++)
        check_task(check, t, gpu, panels);
    check_queues(check);
}

/* ---- operands of one task together ---- */

/* What the relations of one task are stated over. */
struct view {
    mgl_check *check;
    int task;
    const mgl_geometry *model;
    const mgl_segment *segments; /* of the task */
};

static bool has(const struct view *v, int operand)
{
    return mgl_task_place(&v->check->program->tasks[v->task], operand) >= 0;
}

/* The region of an operand that the task has. */
static const mgl_region *region_of(const struct view *v, int operand)
{
    return mgl_task_operand(v->check->program, &v->check->program->tasks[v->task], operand);
}

static const mgl_range *range(const struct view *v, int operand, int dimension)
{
    return &region_of(v, operand)->ranges[dimension];
}

/* Columns of a rank-2 operand's slice. */
static int64_t columns(const struct view *v, int operand)
{
    return mgl_range_length(range(v, operand, 1));
}

static const mgl_buffer *buffer_of(const struct view *v, int operand)
{
    return &v->check->program->buffers[region_of(v, operand)->buffer];
}

static int64_t extent(const struct view *v, int operand, int dimension)
{
    return buffer_of(v, operand)->extents[dimension].count;
}

static void equal(const struct view *v, const char *what, int64_t is, const char *of,
                  int64_t wanted)
{
    char name[MGL_NAME_TEXT];
    if (is != wanted)
        mgl_check_report(v->check, 109, v->task, 0, "%s: %s is %" PRId64 ", but %s is %" PRId64,
                         mgl_check_task(v->check, v->task, name), what, is, of, wanted);
}

static void demand(const struct view *v, bool condition, const char *what)
{
    char name[MGL_NAME_TEXT];
    if (!condition)
        mgl_check_report(v->check, 109, v->task, 0, "%s: %s",
                         mgl_check_task(v->check, v->task, name), what);
}

static int64_t group_width(const struct view *v)
{
    return (int64_t)(v->model->heads / v->model->kv_heads) * v->model->head_dim;
}

/* Segments stream whole rows of tensors (rows, cols); 0: any number of rows. */
static void check_tensors(const struct view *v, int64_t rows, int64_t cols)
{
    const mgl_program *p = v->check->program;
    int count = p->tasks[v->task].segments.count;
    for (int i = 0; i < count; i++)
        for (int j = 0; j < 2; j++) {
            int index = j ? v->segments[i].tensor2 : v->segments[i].tensor;
            if (index < 0)
                continue;
            const mgl_program_tensor *tensor = &p->tensors[index];
            equal(v, "the tensor's number of columns", tensor->cols, "the input's width", cols);
            if (rows)
                equal(v, "the tensor's number of rows", tensor->rows, "the output's width", rows);
            equal(v, "the first streamed column", v->segments[i].col_lo, "the tensor's first", 0);
            equal(v, "the end of the streamed columns", v->segments[i].col_hi, "the tensor's",
                  tensor->cols);
        }
}

static int64_t streamed_rows(const struct view *v)
{
    int64_t rows = 0;
    for (int i = 0; i < v->check->program->tasks[v->task].segments.count; i++)
        rows += mgl_segment_rows(&v->segments[i]);
    return rows;
}

/* A bias for each of the tape's tensors, or none. */
static void check_biases(const struct view *v, int first)
{
    const mgl_program *p = v->check->program;
    const mgl_task *task = &p->tasks[v->task];
    int tensors = 0, biases = task->in.count - mgl_op_get(task->op)->in_count;
    for (int i = 0; i < task->segments.count; i++)
        for (int j = 0; j < 2; j++) {
            int index = j ? v->segments[i].tensor2 : v->segments[i].tensor;
            if (index < 0 || tensors++ >= biases)
                continue;
            const int bias = first + tensors - 1;
            equal(v, "the width of a bias", extent(v, bias, 0), "its tensor's number of rows",
                  p->tensors[index].rows);
            demand(v, buffer_of(v, bias)->source == MGL_SOURCE_TENSOR,
                   "a bias must come from a tensor");
        }
    if (biases)
        equal(v, "the number of biases", biases, "the number of tensors on its tape", tensors);
}

/* x (rows, hidden) and its norm g (hidden). */
static void check_normed(const struct view *v, int x, int g)
{
    equal(v, "the width of x", extent(v, x, 1), "hidden", v->model->hidden);
    equal(v, "the width of g", extent(v, g, 0), "hidden", v->model->hidden);
    demand(v, buffer_of(v, g)->source == MGL_SOURCE_TENSOR, "g must come from a tensor");
}

static void check_enter(const struct view *v)
{
    const mgl_program *p = v->check->program;
    const mgl_task *sample = &p->tasks[v->check->sample];
    int control = mgl_task_operand(p, sample, MGL_OPERAND(sample, control))->buffer;
    int table = mgl_task_operand(p, sample, MGL_OPERAND(sample, table))->buffer;
    char name[MGL_NAME_TEXT];
    if (region_of(v, MGL_OPERAND(enter, control))->buffer != control ||
        region_of(v, MGL_OPERAND(enter, table))->buffer != table)
        mgl_check_report(v->check, 112, v->task, 0,
                         "%s does not read the control and table that sample writes (%.48s, %.48s)",
                         mgl_check_task(v->check, v->task, name), p->buffers[control].name,
                         p->buffers[table].name);
}

/* Two operands must be the same columns of their buffers. */
static void check_columns(const struct view *v, int one, int other, const char *what)
{
    demand(v,
           range(v, one, 1)->lo == range(v, other, 1)->lo &&
               range(v, one, 1)->hi == range(v, other, 1)->hi,
           what);
}

/* y and its copy, if the task has one. */
static void check_copy(const struct view *v, int y, int copy)
{
    if (has(v, copy))
        check_columns(v, y, copy, "y and copy must have the same columns");
}

/* y of embed or embed_weighed, whose table is its first operand. */
static void check_gathered(const struct view *v, int y)
{
    const int embedding = MGL_OPERAND(embed, embedding);
    equal(v, "the embedding's number of rows", extent(v, embedding, 0), "vocab", v->model->vocab);
    equal(v, "the embedding's width", extent(v, embedding, 1), "hidden", v->model->hidden);
    equal(v, "the width of y", columns(v, y), "that of the embedding's slice",
          columns(v, embedding));
    demand(v, buffer_of(v, embedding)->source == MGL_SOURCE_TENSOR,
           "the embedding must come from a tensor");
}

static void check_embed(const struct view *v)
{
    check_gathered(v, MGL_OPERAND(embed, y));
    check_copy(v, MGL_OPERAND(embed, y), MGL_OPERAND(embed, copy));
}

/* y of norm_linear, or of scaled_linear, and what is behind it. */
static void check_linear(const struct view *v, int y, int bias)
{
    check_tensors(v, 0, v->model->hidden);
    equal(v, "the width of y", columns(v, y), "the number of streamed rows", streamed_rows(v));
    check_biases(v, bias);
}

static void check_norm_linear(const struct view *v)
{
    check_normed(v, MGL_OPERAND(norm_linear, x), MGL_OPERAND(norm_linear, g));
    check_linear(v, MGL_OPERAND(norm_linear, y), MGL_OPERAND(norm_linear, bias));
}

static void check_rope(const struct view *v, int rope)
{
    demand(v, buffer_of(v, rope)->source == MGL_SOURCE_ROPE, "rope must be the rope table");
}

/* The cache operands of one kv head: the same head of k and of v, read and appended. */
static void check_cache(const struct view *v, const mgl_attention_operands *o)
{
    int64_t head = range(v, o->k_past, 1)->lo;
    demand(v, region_of(v, o->k_past)->buffer != region_of(v, o->v_past)->buffer,
           "k and v need caches of their own");
    equal(v, "the kv head of v_past", range(v, o->v_past, 1)->lo, "that of k_past", head);
    if (o->k_now == MGL_NO_OPERAND || !has(v, o->k_now) || !has(v, o->v_now))
        return;
    equal(v, "the kv head of k_now", range(v, o->k_now, 1)->lo, "that of k_past", head);
    equal(v, "the kv head of v_now", range(v, o->v_now, 1)->lo, "that of k_past", head);
    demand(v,
           region_of(v, o->k_now)->buffer == region_of(v, o->k_past)->buffer &&
               region_of(v, o->v_now)->buffer == region_of(v, o->v_past)->buffer,
           "k_now and v_now must be the buffers of k_past and v_past");
}

static void check_query(const struct view *v, const mgl_attention_operands *o)
{
    equal(v, "the width of q", columns(v, o->q), "that of a group of heads", group_width(v));
    if (o->k == MGL_NO_OPERAND)
        return;
    equal(v, "the width of k", columns(v, o->k), "head_dim", v->model->head_dim);
    equal(v, "the width of v", columns(v, o->v), "head_dim", v->model->head_dim);
}

/* The norm of q's or k's heads. */
static void check_head_norm(const struct view *v, int g)
{
    equal(v, "the width of a norm of q or k", extent(v, g, 0), "head_dim", v->model->head_dim);
    demand(v, buffer_of(v, g)->source == MGL_SOURCE_TENSOR,
           "a norm of q or k must come from a tensor");
}

static void check_head_norms(const struct view *v, const mgl_attention_operands *o)
{
    if (has(v, o->q_g))
        check_head_norm(v, o->q_g);
    if (o->k_g == MGL_NO_OPERAND)
        return;
    if (has(v, o->k_g))
        check_head_norm(v, o->k_g);
    demand(v, has(v, o->q_g) == has(v, o->k_g), "it has a norm of q and none of k");
}

/* part (splits, rows, heads, head_dim + 2 or + 4); `heads` of it, or 0 for any. */
static void check_part(const struct view *v, int part, int64_t heads)
{
    int64_t splits = extent(v, part, 0);
    demand(v, splits >= 2 && splits <= MGL_MAX_SPLITS, "part must have 2 to 64 splits");
    equal(v, "the number of heads of part", extent(v, part, 2), "heads", v->model->heads);
    int64_t beyond = extent(v, part, 3) - v->model->head_dim;
    demand(v, beyond == 2 || beyond == 4, "the last extent of part must be head_dim + 2 or + 4");
    if (heads)
        equal(v, "the number of heads in the slice of part", mgl_range_length(range(v, part, 2)),
              "that of a group", heads);
}

/* What the ops of attention have in common. */
static void check_attention(const struct view *v)
{
    const mgl_attention_operands *o = mgl_op_attention(v->check->program->tasks[v->task].op);
    check_query(v, o);
    check_rope(v, o->rope);
    check_head_norms(v, o);
    check_cache(v, o);
    if (o->part != MGL_NO_OPERAND)
        check_part(v, o->part, v->model->heads / v->model->kv_heads);
}

static void check_attend(const struct view *v)
{
    check_attention(v);
    equal(v, "the width of y", columns(v, MGL_OPERAND(attend, y)), "that of q",
          columns(v, MGL_OPERAND(attend, q)));
}

static void check_attend_tail(const struct view *v)
{
    check_attention(v);
}

static void check_attend_past(const struct view *v)
{
    check_attention(v);
}

static void check_attend_rows(const struct view *v)
{
    const int q = MGL_OPERAND(attend_rows, q), y = MGL_OPERAND(attend_rows, y);
    check_attention(v);
    equal(v, "the width of y", columns(v, y), "that of q", columns(v, q));
    demand(v, range(v, q, 0)->lo == range(v, y, 0)->lo && range(v, q, 0)->hi == range(v, y, 0)->hi,
           "q and y must be of the same share of the rows");
    demand(v, has(v, MGL_OPERAND(attend_rows, k_now)) == has(v, MGL_OPERAND(attend_rows, v_now)),
           "it has k_now and v_now, or neither");
}

static void check_merge(const struct view *v)
{
    check_part(v, MGL_OPERAND(merge, part), 0);
    equal(v, "the width of y", columns(v, MGL_OPERAND(merge, y)),
          "heads in the slice of part x head_dim",
          mgl_range_length(range(v, MGL_OPERAND(merge, part), 2)) * v->model->head_dim);
}

/* y and what is made of it: n of the same columns, by the same columns of g, and s of one task. */
static void check_weighed(const struct view *v, int y, int g, int n, int s)
{
    equal(v, "the width of g", extent(v, g, 0), "hidden", v->model->hidden);
    demand(v, buffer_of(v, g)->source == MGL_SOURCE_TENSOR, "g must come from a tensor");
    equal(v, "the width of n's buffer", extent(v, n, 1), "hidden", v->model->hidden);
    check_columns(v, y, n, "y and n must have the same columns");
    demand(v, range(v, g, 0)->lo == range(v, y, 1)->lo && range(v, g, 0)->hi == range(v, y, 1)->hi,
           "y and g must have the same columns");
    demand(v,
           region_of(v, s)->buffer != region_of(v, y)->buffer &&
               region_of(v, s)->buffer != region_of(v, n)->buffer,
           "s needs a buffer of its own");
}

static void check_embed_weighed(const struct view *v)
{
    const int y = MGL_OPERAND(embed_weighed, y);
    check_gathered(v, y);
    check_weighed(v, y, MGL_OPERAND(embed_weighed, g), MGL_OPERAND(embed_weighed, n),
                  MGL_OPERAND(embed_weighed, s));
}

/* n (rows, hidden), and s of no more parts than it has columns. */
static void check_scaled(const struct view *v)
{
    equal(v, "the width of n", extent(v, MGL_PRODUCT_INPUT, 1), "hidden", v->model->hidden);
    demand(v, extent(v, MGL_PRODUCT_SQUARES, 1) <= v->model->hidden,
           "s has more parts than n has columns");
}

/* y, the sum of b and of the product of an input of that width. */
static void check_sum(const struct view *v, int64_t width, int y, int bias)
{
    check_tensors(v, v->model->hidden, width);
    equal(v, "the width of y", columns(v, y), "the number of streamed rows", streamed_rows(v));
    check_columns(v, MGL_OPERAND(linear_add, b), y, "b and y must have the same columns");
    check_biases(v, bias);
}

/* The same of linear_add, and its copy. */
static void check_add(const struct view *v, int64_t width)
{
    check_sum(v, width, MGL_OPERAND(linear_add, y), MGL_OPERAND(linear_add, bias));
    check_copy(v, MGL_OPERAND(linear_add, y), MGL_OPERAND(linear_add, copy));
}

/* What linear_add, or linear_add_weighed, multiplies: its width. */
static int64_t added_width(const struct view *v)
{
    int64_t width = extent(v, MGL_PRODUCT_INPUT, 1);
    demand(v, width == (int64_t)v->model->heads * v->model->head_dim || width == v->model->ffn,
           "a must be as wide as the attention's output or ffn");
    return width;
}

static void check_linear_add(const struct view *v)
{
    check_add(v, added_width(v));
}

static void check_linear_add_weighed(const struct view *v)
{
    const int y = MGL_OPERAND(linear_add_weighed, y);
    check_sum(v, added_width(v), y, MGL_OPERAND(linear_add_weighed, bias));
    check_weighed(v, y, MGL_OPERAND(linear_add_weighed, g), MGL_OPERAND(linear_add_weighed, n),
                  MGL_OPERAND(linear_add_weighed, s));
}

/* Its operands have the numbers of linear_add's. */
static void check_merge_add(const struct view *v)
{
    check_part(v, MGL_OPERAND(merge_add, part), 0);
    check_add(v, (int64_t)v->model->heads * v->model->head_dim);
}

/* y of norm_swiglu, or of scaled_swiglu, and what is behind it. */
static void check_swiglu(const struct view *v, int y, int bias)
{
    check_tensors(v, v->model->ffn, v->model->hidden);
    equal(v, "the width of y", columns(v, y), "the number of streamed rows", streamed_rows(v));
    check_biases(v, bias);
}

static void check_norm_swiglu(const struct view *v)
{
    check_normed(v, MGL_OPERAND(norm_swiglu, x), MGL_OPERAND(norm_swiglu, g));
    check_swiglu(v, MGL_OPERAND(norm_swiglu, y), MGL_OPERAND(norm_swiglu, bias));
}

static void check_scaled_linear(const struct view *v)
{
    check_scaled(v);
    check_linear(v, MGL_OPERAND(scaled_linear, y), MGL_OPERAND(scaled_linear, bias));
}

static void check_scaled_swiglu(const struct view *v)
{
    check_scaled(v);
    check_swiglu(v, MGL_OPERAND(scaled_swiglu, y), MGL_OPERAND(scaled_swiglu, bias));
}

/* The outputs of head, which have the same numbers in scaled_head. */
static void check_logits(const struct view *v)
{
    const int logits = MGL_OPERAND(head, logits);
    check_tensors(v, v->model->vocab, v->model->hidden);
    equal(v, "the width of the logits", extent(v, logits, 1), "vocab", v->model->vocab);
    equal(v, "the first column of the logits", range(v, logits, 1)->lo, "the first streamed row",
          v->segments[0].row_lo);
    equal(v, "the end of the columns of the logits", range(v, logits, 1)->hi,
          "that of the streamed rows", v->segments[0].row_hi);
    equal(v, "the part of best_id", range(v, MGL_OPERAND(head, best_id), 1)->lo,
          "that of best_value", range(v, MGL_OPERAND(head, best_value), 1)->lo);
}

/* The operand of the program's sample. */
static const mgl_region *sample_region(const struct view *v, int operand)
{
    const mgl_program *p = v->check->program;
    return mgl_task_operand(p, &p->tasks[v->check->sample], operand);
}

/* What the penalties of a head need, if sample counts tokens; the numbers are those of scaled_head
 * too. */
static void check_penalized(const struct view *v)
{
    const int penalized = MGL_OPERAND(head, penalized), counts = MGL_OPERAND(head, counts);
    const int sequence = MGL_OPERAND(head, sequence);
    const bool wanted = sample_region(v, MGL_OPERAND(sample, counts)) != NULL;
    demand(v, has(v, penalized) == wanted && has(v, counts) == wanted && has(v, sequence) == wanted,
           "it has penalized, counts and sequence where sample has counts, and else none of them");
    if (!has(v, penalized) || !has(v, sequence) || !wanted)
        return;
    equal(v, "the width of the penalized logits", extent(v, penalized, 1), "vocab",
          v->model->vocab);
    check_columns(v, MGL_OPERAND(head, logits), penalized,
                  "logits and penalized must have the same columns");
    check_columns(v, MGL_OPERAND(head, logits), counts,
                  "logits and counts must have the same columns");
    demand(v,
           region_of(v, counts)->buffer == sample_region(v, MGL_OPERAND(sample, counts))->buffer &&
               region_of(v, sequence)->buffer ==
                   sample_region(v, MGL_OPERAND(sample, sequence))->buffer,
           "counts and sequence must be those that sample writes");
}

static void check_head(const struct view *v)
{
    check_normed(v, MGL_OPERAND(head, x), MGL_OPERAND(head, g));
    check_logits(v);
    check_penalized(v);
}

static void check_scaled_head(const struct view *v)
{
    check_scaled(v);
    check_logits(v);
    check_penalized(v);
}

/* One io buffer of sample: its shape, and that it plays no other part. */
static void check_role(const struct view *v, int operand, int64_t first, int64_t second)
{
    const mgl_buffer *buffer = buffer_of(v, operand);
    const mgl_op_info *op = mgl_op_get(MGL_OP_SAMPLE);
    char name[MGL_NAME_TEXT];
    mgl_check_task(v->check, v->task, name);
    if (buffer->extents[0].count != first ||
        (buffer->rank > 1 && buffer->extents[1].count != second))
        mgl_check_report(v->check, 112, v->task, 0,
                         "%s: buffer %.64s has the wrong shape for %s; it must be %" PRId64
                         " by %" PRId64,
                         name, buffer->name, op->operands[operand].name, first, second);
    for (int other = 0; other < operand; other++)
        if (has(v, other) && region_of(v, other)->buffer == region_of(v, operand)->buffer &&
            !(other == MGL_OPERAND(sample, sequence) &&
              operand == MGL_OPERAND(sample, sequence_next)))
            mgl_check_report(v->check, 112, v->task, 0, "%s: buffer %.64s is both %s and %s", name,
                             buffer->name, op->operands[other].name, op->operands[operand].name);
}

static void check_sample(const struct view *v)
{
    const mgl_limits *limits = &v->check->program->limits;
    int64_t parts = extent(v, MGL_OPERAND(sample, best_value), 1), sequences = limits->sequences;
    check_role(v, MGL_OPERAND(sample, logits), limits->rows, v->model->vocab);
    check_role(v, MGL_OPERAND(sample, best_value), limits->rows, parts);
    check_role(v, MGL_OPERAND(sample, best_id), limits->rows, parts);
    check_role(v, MGL_OPERAND(sample, sequence), sequences, MGL_CHECK_SEQUENCE_WORDS);
    check_role(v, MGL_OPERAND(sample, prompt), sequences, limits->capacity);
    check_role(v, MGL_OPERAND(sample, control), MGL_CHECK_CONTROL_WORDS, 1);
    check_role(v, MGL_OPERAND(sample, table), mgl_limits_most(limits), MGL_CHECK_TABLE_WORDS);
    check_role(v, MGL_OPERAND(sample, sequence_next), sequences, MGL_CHECK_SEQUENCE_WORDS);
    check_role(v, MGL_OPERAND(sample, output), sequences, limits->capacity);
    check_role(v, MGL_OPERAND(sample, score), sequences, limits->capacity);
    demand(v, has(v, MGL_OPERAND(sample, counts)) == has(v, MGL_OPERAND(sample, penalized)),
           "it has counts and penalized, or neither");
    if (has(v, MGL_OPERAND(sample, counts)))
        check_role(v, MGL_OPERAND(sample, counts), sequences, v->model->vocab);
    if (has(v, MGL_OPERAND(sample, penalized)))
        check_role(v, MGL_OPERAND(sample, penalized), limits->rows, v->model->vocab);
    demand(v,
           region_of(v, MGL_OPERAND(sample, sequence))->buffer ==
               region_of(v, MGL_OPERAND(sample, sequence_next))->buffer,
           "sequence and sequence_next must be one buffer");
}

/* Its regions stand for themselves. */
static void check_clear(const struct view *v)
{
    (void)v;
}

typedef void relation_fn(const struct view *view);

static relation_fn *const relations[] = {
#define MGL_OP(id, name, ...) check_##name,
#include "instructions/ops.def"
};

void mgl_check_relations(mgl_check *check)
{
    const mgl_program *p = check->program;
    for (int t = 0; t < p->task_count; t++) {
        const mgl_task *task = &p->tasks[t];
        struct view view = {.check = check,
                            .task = t,
                            .model = &p->geometry,
                            .segments =
                                task->segments.count ? &p->segments[task->segments.first] : NULL};
        relations[task->op](&view);
    }
}
