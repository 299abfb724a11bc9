/*
 * MG1xx, second half: every task against the row of its op in ops.def, each operand alone.
 * relations.c checks after bounds.c how the operands of one task fit each other. Also checks the
 * ops of gamma-scaled values (MG131) and attention of rows (MG133) against list and target. Every
 * queue must begin with enter (MG110), and one queue ends with sample (MG111).
 */
#include "validator/check.h"

#include "schedule/pages.h"
#include "schedule/variants.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- one operand ---- */

/* The dtype that an operand must have. EXCHANGE: the dtype besides f32; EMBEDDING: the first of
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

/* Compares a range with a letter of ops.def. Returns NULL, or what the range should be. */
static const char *range_fault(char letter, const mgl_range *range, const mgl_extent *extent)
{
    bool fixed = range->kind == MGL_RANGE_FIXED && extent->symbol != MGL_ROWS;
    switch (letter) {
    case 'R':
        return range->kind == MGL_RANGE_ROWS && extent->symbol == MGL_ROWS ? NULL : "[:rows]";
    case 'V':
        return (range->kind == MGL_RANGE_ROWS || range->kind == MGL_RANGE_ROW_KIND) &&
                       extent->symbol == MGL_ROWS
                   ? NULL
                   : "[:rows], [:rows unsplit] or [:rows split]";
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
        return range->kind == MGL_RANGE_NOW && extent->symbol == MGL_CAPACITY
                   ? NULL
                   : "[pos], [pos unsplit] or [pos split]";
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

/* Returns what is wrong with an operand's `flag`, or NULL. An operand must have `flag` if and only
 * if the buffer is flagged and the task is no clear. */
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

/* The letter of a dimension: "*" means any number of dimensions. */
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
    char name[MGL_NAME_TEXT], format[2][MGL_WEIGHT_FORMAT_TEXT];
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
                                 "types line's %s and of scaled formats, and on a CPU of f32, or "
                                 "in f32 of any format",
                                 mgl_check_task(check, t, name), tensor->name, tensor->rank,
                                 mgl_weight_format_print(tensor->format, format[0]),
                                 mgl_dtype_name(p->weight_dtype));
        }
        if (s->tensor2 >= 0 &&
            !mgl_weight_format_equal(p->tensors[s->tensor].format, p->tensors[s->tensor2].format))
            mgl_check_report(
                check, 105, t, 0,
                "%s: tensors %.64s and %.64s share a segment, so they need one format, "
                "and they are %s and %s",
                mgl_check_task(check, t, name), p->tensors[s->tensor].name,
                p->tensors[s->tensor2].name,
                mgl_weight_format_print(p->tensors[s->tensor].format, format[0]),
                mgl_weight_format_print(p->tensors[s->tensor2].format, format[1]));
    }
}

/* Whether the operand is the input of products of gamma-scaled values, which a GPU loads by bulk
 * copies. */
static bool is_copied(mgl_op op, int operand)
{
    return (mgl_op_get(op)->family == MGL_FAMILY_PANEL && operand == MGL_PRODUCT_INPUT) ||
           (op == MGL_OP_RMS_SWIGLU && operand == MGL_OPERAND(rms_swiglu, y)) ||
           (op == MGL_OP_LINEAR_ADD_GAMMA && operand == MGL_OPERAND(linear_add_gamma, n)) ||
           (op == MGL_OP_EMBED_GAMMA && operand == MGL_OPERAND(embed_gamma, n));
}

/* Whether the op's GPU code supports a paged buffer as this operand. */
static bool takes_pages(mgl_op op, int operand)
{
    return is_copied(op, operand) || (op == MGL_OP_ATTEND && operand == MGL_OPERAND(attend, y)) ||
           (op == MGL_OP_ATTEND_ROWS && operand == MGL_OPERAND(attend_rows, y));
}

/* MG131: on a GPU a bulk-copied operand is bf16 and paged, and no other operand is paged. A task
 * that writes a part of a page's row writes whole quarters of it. `panels`: the list has products
 * of gamma-scaled values. */
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
                             b->paged ? "is not bf16" : "is not paged");
        else if (b->paged && (!panels || !takes_pages(task->op, operand)))
            mgl_check_report(check, 131, t, 0,
                             "%s: on a GPU %s cannot be paged, but buffer %.64s is%s",
                             mgl_check_task(check, t, name), what, b->name,
                             panels ? "" : ": the list has no products of gamma-scaled values");
        else if (b->paged && task->op == MGL_OP_EMBED_GAMMA &&
                 (region->ranges[1].lo % MGL_PAGE_QUARTER_COLUMNS ||
                  region->ranges[1].hi % MGL_PAGE_QUARTER_COLUMNS))
            mgl_check_report(check, 131, t, 0,
                             "%s: on a GPU its columns begin and end at multiples of %d",
                             mgl_check_task(check, t, name), MGL_PAGE_QUARTER_COLUMNS);
    }
}

enum { WEIGHTS_TEXT = MGL_WEIGHT_FORMAT_TEXT + 120 };

/* Writes the end of the message, ", whose weights have 16 bits; these weights are int4 group 128
 * f16", if the variant `panels` rejects the scaled weights of the task; else "". Returns `to`. */
static const char *describe_weights(const mgl_program *p, const mgl_task *task,
                                    char to[WEIGHTS_TEXT])
{
    mgl_dimensions dimensions;
    mgl_variant_fault fault;
    char format[MGL_WEIGHT_FORMAT_TEXT];
    to[0] = 0;
    if (!task->segments.count)
        return to;
    const mgl_weight_format own = mgl_segment_format(p, &p->segments[task->segments.first]);
    mgl_dimensions_of_program(p, &dimensions);
    if (mgl_weight_format_is_scaled(own) &&
        !mgl_variant_takes_task(p, task, MGL_VARIANT_PANELS, &dimensions, &fault) &&
        fault.kind == MGL_FAULT_FORMAT)
        snprintf(to, WEIGHTS_TEXT, ", whose weights have 16 bits; these weights are %s",
                 mgl_weight_format_print(own, format));
    return to;
}

/* MG131: gamma-scaled values are for the second list. On a GPU their products need a variant with
 * code for them, and all of a list use one variant: the one of `first`. */
static void check_place(mgl_check *check, int t, const mgl_task *first)
{
    const mgl_program *p = check->program;
    const mgl_op op = p->tasks[t].op;
    const bool product = mgl_op_get(op)->family == MGL_FAMILY_PANEL;
    const bool cpu = !strcmp(p->target.arch, "cpu");
    const mgl_variant_info *panels = mgl_variant_get(MGL_VARIANT_PANELS);
    char name[MGL_NAME_TEXT], weights[WEIGHTS_TEXT];
    if (!product && op != MGL_OP_EMBED_GAMMA)
        return;
    if (!p->is_second || (!cpu && mgl_arch_number(p->target.arch) < panels->arch))
        mgl_check_report(
            check, 131, t, 0,
            "%s: ops of gamma-scaled values need the second list, on a CPU or a GPU of "
            "sm_%d or newer; this is the %s list of a program for %s",
            mgl_check_task(check, t, name), panels->arch, p->is_second ? "second" : "first",
            p->target.arch);
    else if (product && !cpu && !mgl_variant_is_panels(p->tasks[t].variant))
        mgl_check_report(
            check, 131, t, 0,
            "%s: on a GPU products of gamma-scaled values have two variants, %s.%s and "
            "%s.%s%s",
            mgl_check_task(check, t, name), mgl_op_get(op)->name, panels->name,
            mgl_op_get(op)->name, mgl_variant_get(MGL_VARIANT_WARPGROUPS)->name,
            describe_weights(p, &p->tasks[t], weights));
    else if (product && !cpu && p->tasks[t].variant != first->variant)
        mgl_check_report(
            check, 131, t, 0,
            "%s: on a GPU all products of gamma-scaled values of a list have one variant, "
            "and the first one's is %s",
            mgl_check_task(check, t, name), mgl_variant_get(first->variant)->name);
}

/* MG133: attention of shares of the rows is for the second list and has no flags. On a GPU it needs
 * the variant with code for it. */
static void check_shared(mgl_check *check, int t)
{
    const mgl_program *p = check->program;
    const mgl_task *task = &p->tasks[t];
    const bool cpu = !strcmp(p->target.arch, "cpu");
    const mgl_variant_info *flash = mgl_variant_get(MGL_VARIANT_FLASH);
    char name[MGL_NAME_TEXT];
    if (task->op != MGL_OP_ATTEND_ROWS)
        return;
    if (!p->is_second)
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

/* `first`: the list's first product of gamma-scaled values; NULL: none. */
static void check_task(mgl_check *check, int t, bool gpu, const mgl_task *first)
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
    check_place(check, t, first);
    check_shared(check, t);
    if (gpu)
        check_paged(check, t, first != NULL);
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
                mgl_check_report(check, 110, t, 0, "%s is not the first task of its queue",
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
    const mgl_task *first = NULL;
    for (int t = 0; t < p->task_count && !first; t++)
        first = mgl_op_get(p->tasks[t].op)->family == MGL_FAMILY_PANEL ? &p->tasks[t] : NULL;
    for (int t = 0; t < p->task_count; t++)
        check_task(check, t, gpu, first);
    check_queues(check);
}
