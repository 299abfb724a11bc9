/*
 * Checks each task against the CUDA machine (encode.h): operand shapes that the kernel assumes, and
 * the variants, because a kernel contains only one panel variant. Program-wide limits are checked
 * in limits.c. machine.c, vm/image.c and api/ call mgl_cuda_check_program before a program is
 * encoded.
 */
#include "vm/cuda/encode.h"

#include <stdio.h>

#include "base/text.h"
#include "schedule/schedule.h"
#include "schedule/variants.h"

/* MGL_BAD_INPUT that shows the task's line. */
static mgl_status refuse(const mgl_program *program, int task, const char *why, mgl_error *err)
{
    char where[64];
    mgl_text text = {0};
    if (program->tasks[task].line)
        snprintf(where, sizeof where, "line %d", program->tasks[task].line);
    else
        snprintf(where, sizeof where, "task %d", task);
    mgl_schedule_print_task(program, task, &text);
    mgl_status status =
        mgl_fail(err, MGL_BAD_INPUT, where, "the CUDA machine cannot run this task: %s\n%s", why,
                 text.bytes ? text.bytes : "");
    mgl_text_clear(&text);
    return status;
}

/* Checks attention partials. Flagged partials are read in words of four head dimensions. */
static const char *check_partials(const mgl_program *program, const mgl_region *part)
{
    const int d = program->geometry.head_dim;
    const mgl_extent *extents = program->buffers[part->buffer].extents;
    if (extents[1].count * extents[2].count > INT32_MAX / extents[3].count)
        return "a split of its partials has too many floats";
    if (d % 2 || d > 256)
        return "it takes head_dim even and at most 256";
    return part->flag && (d % 4 || program->buffers[part->buffer].extents[3].count != d + 4)
               ? "it takes flagged partials of head_dim + 4 floats, head_dim a multiple of 4"
               : NULL;
}

static const char *check_linear(const mgl_program *program, const mgl_task *task)
{
    const mgl_region *in = mgl_task_operand(program, task, MGL_PRODUCT_INPUT);
    const mgl_region *out = mgl_task_result(program, task);
    int64_t rows = 0, columns = mgl_task_inputs(program, task);
    const mgl_dtype dtype = program->buffers[in->buffer].dtype;
    if (dtype != MGL_F32 && dtype != program->weight_dtype)
        return "its input is neither f32 nor of the numbers of the weights";
    const char *why = task->op == MGL_OP_MERGE_ADD ? check_partials(program, in) : NULL;
    if (why)
        return why;
    if (in->flag && task->op != MGL_OP_MERGE_ADD &&
        columns % (MGL_GRANULE_BYTES / (int64_t)mgl_dtype_size(program->weight_dtype)))
        return "its input is flagged, and the columns are not whole granules of 16 bytes of the "
               "weights' format";
    if (mgl_op_get(task->op)->layout == MGL_LAYOUT_G8X2 && task->segments.count != 1)
        return "it has not exactly one segment";
    for (int i = 0; i < task->segments.count; i++) {
        const mgl_segment *s = &program->segments[task->segments.first + i];
        if (s->col_lo != 0 || s->col_hi != columns)
            return "a segment has not the columns of the input";
        if (s->offset % MGL_BLOCK_BYTES)
            return "a segment does not begin at a multiple of 512 bytes";
        if (s->layout != mgl_op_get(task->op)->layout)
            return "a segment has not the op's layout";
        if (out->flag && i + 1 < task->segments.count && mgl_segment_rows(s) % 2)
            return "a segment before the last has an odd number of rows; flagged columns go in "
                   "pairs";
        rows += mgl_segment_rows(s);
    }
    return rows == mgl_region_width(out, 1) ? NULL
                                            : "the segments' rows are not the output's columns";
}

/* Checks a gamma-scaled product, whose segments passed check_linear. Its row groups must be
 * contiguous, because the loader copies them as one range. */
static const char *check_panel(const mgl_program *program, const mgl_task *task)
{
    const mgl_region *in = mgl_task_operand(program, task, MGL_PRODUCT_INPUT);
    if (!program->buffers[in->buffer].paged || program->weight_dtype != MGL_BF16)
        return "its input is not paged, or is not bf16";
    if (mgl_region_width(in, 1) != program->buffers[in->buffer].extents[1].count)
        return "its input is not all columns of its buffer";
    for (int i = 0; i + 1 < task->segments.count; i++)
        if (mgl_segment_rows(&program->segments[task->segments.first + i]) % MGL_ROW_GROUP)
            return "a segment before the last has rows that are not whole row groups";
    return NULL;
}

static const char *check_attention(const mgl_program *program, const mgl_task *task)
{
    const mgl_geometry *m = &program->geometry;
    int64_t group = (int64_t)(m->heads / m->kv_heads) * m->head_dim;
    const mgl_attention_operands *o = mgl_op_attention(task->op);
    if (m->head_dim % 2 || m->head_dim > 256)
        return "it takes head_dim even and at most 256";
    const mgl_region *part = mgl_task_result(program, task);
    if (o->part != MGL_NO_OPERAND && o->k_now != MGL_NO_OPERAND &&
        part->ranges[0].hi != program->buffers[part->buffer].extents[0].count)
        return "the split that appends is not the last one";
    return mgl_region_width(mgl_task_operand(program, task, o->q), 1) == group
               ? NULL
               : "q is not the heads of one kv head";
}

/* Checks that head and sample tasks have all operands of penalties or none, like the kernel. */
static const char *check_penalties(const mgl_program *program, const mgl_task *task, bool penalties)
{
    const mgl_op_info *info = mgl_op_get(task->op);
    const int in = task->in.count - info->in_count, out = task->out.count - info->out_least;
    if (in != (penalties ? info->extra_count : 0) ||
        out != (penalties ? info->out_count - info->out_least : 0))
        return "some tasks have the operands of penalties, and others do not";
    if (!penalties || task->op == MGL_OP_SAMPLE)
        return NULL;
    const int64_t columns = mgl_region_width(mgl_task_result(program, task), 1);
    return mgl_region_width(mgl_task_operand(program, task, MGL_OPERAND(head, penalized)), 1) ==
                       columns &&
                   mgl_region_width(mgl_task_operand(program, task, MGL_OPERAND(head, counts)),
                                    1) == columns
               ? NULL
               : "its penalized logits or its counts differ in number from its logits";
}

/* Checks optional operands. The kernel normalizes q and k in all tasks or in none, and has
 * penalties in all or in none. A task has all of its biases or none. */
static const char *check_extras(const mgl_program *program, const mgl_task *task, bool norms,
                                bool penalties)
{
    const mgl_op_info *info = mgl_op_get(task->op);
    const int extra = task->in.count - info->in_count;
    int tensors = 0;
    if (mgl_op_heads(task->op) || task->op == MGL_OP_SAMPLE)
        return check_penalties(program, task, penalties);
    for (int i = 0; i < task->segments.count; i++) {
        const mgl_segment *s = &program->segments[task->segments.first + i];
        const int pair[2] = {s->tensor, s->tensor2};
        for (int j = 0; j < 2 && pair[j] >= 0; j++, tensors++) {
            const mgl_region *bias =
                mgl_task_operand(program, task, info->in_count + info->out_count + tensors);
            if (bias && mgl_region_width(bias, 0) != program->tensors[pair[j]].rows)
                return "a bias does not have one value for each row of its tensor";
        }
    }
    if (tensors > 0)
        return extra == 0 || extra == tensors ? NULL : "it has biases for only some of its tensors";
    if (!mgl_op_attends(task->op))
        return NULL;
    if (extra != (norms ? info->extra_count : 0))
        return "q and k have norms in some tasks, but not in others";
    for (int i = info->in_count; i < task->in.count; i++)
        if (mgl_region_width(&program->regions[task->in.first + i], 0) !=
            program->geometry.head_dim)
            return "a norm of q or k does not have head_dim values";
    return NULL;
}

/* Whether the last dimension of a region begins and ends at multiples of 16 bytes in every row. */
static bool is_flaggable(const mgl_program *program, const mgl_region *region)
{
    const mgl_buffer *b = &program->buffers[region->buffer];
    int64_t size = (int64_t)mgl_dtype_size(b->dtype);
    const mgl_range *last = &region->ranges[b->rank - 1];
    return last->kind == MGL_RANGE_FIXED && last->lo * size % 16 == 0 &&
           last->hi * size % 16 == 0 && b->extents[b->rank - 1].count * size % 16 == 0;
}

/* Reason why the machine cannot run the task, or NULL. */
static const char *check_task(const mgl_program *program, const mgl_task *task)
{
    const mgl_op_info *info = mgl_op_get(task->op);
    if (!mgl_op_is_known(task->op))
        return "it has no such op";
    if (task->in.count < info->in_count || task->in.count > info->in_count + info->extra_count ||
        task->out.count < info->out_least || task->out.count > info->out_count)
        return "its operands do not match the op";
    for (int i = 0; i < task->in.count + task->out.count; i++) {
        const mgl_region *region = &program->regions[task->in.first + i];
        const mgl_buffer *buffer = &program->buffers[region->buffer];
        if (buffer->sets > MGL_MAX_SETS)
            return "it has a buffer of more than 8 sets";
        if ((region->flag || task->op == MGL_OP_CLEAR) != (buffer->sets > 1))
            return "a flagged region is not of a buffer with sets, or the other way round";
        if (buffer->sets > 1 && !is_flaggable(program, region))
            return "a flagged region is not of whole 16 bytes";
    }
    if (mgl_cuda_record_bytes(program, task) > MGL_RECORD_BYTES)
        return "it has too many waits, signals or clears (about 30 edges fit)";
    mgl_device_clear clear;
    int64_t first;
    for (int i = 0; task->op == MGL_OP_CLEAR && i < task->out.count; i++)
        if (!mgl_cuda_find_clear(program, &program->regions[task->out.first + i], &clear, &first))
            return "it resets a region that is not one run of bytes a row, or is too large";
    if (info->layout != MGL_LAYOUT_NONE) {
        const char *why = check_linear(program, task);
        return why || info->family != MGL_FAMILY_PANEL ? why : check_panel(program, task);
    }
    if (mgl_op_attends(task->op))
        return check_attention(program, task);
    return NULL;
}

/* Checks the variants of a program whose operands fit their ops. Gamma-scaled products exist only
 * as panels, and a kernel contains one panel variant. */
static mgl_status check_variants(const mgl_program *program, mgl_error *err)
{
    mgl_dimensions dimensions;
    mgl_variant_fault fault;
    mgl_variant panels = MGL_VARIANT_GENERAL; /* variant of the list's gamma-scaled products */
    mgl_dimensions_of_program(program, &dimensions);
    for (int i = 0; i < program->task_count; i++) {
        const mgl_task *task = &program->tasks[i];
        const bool panel = mgl_op_get(task->op)->family == MGL_FAMILY_PANEL;
        const bool bare = panel && !mgl_variant_is_panels(task->variant);
        const mgl_variant variant = bare ? MGL_VARIANT_PANELS : task->variant;
        if (!mgl_variant_takes_task(program, task, variant, &dimensions, &fault))
            return refuse(program, i, fault.text, err);
        if (bare)
            return refuse(program, i, "a product of gamma-scaled values does not use panels", err);
        if (panel && panels != MGL_VARIANT_GENERAL && panels != variant)
            return refuse(program, i,
                          "some products of gamma-scaled values use warp teams, and others use "
                          "warpgroups",
                          err);
        panels = panel ? variant : panels;
    }
    return MGL_OK;
}

static bool has_attention_of_rows(const mgl_program *program)
{
    bool has = false;
    for (int i = 0; i < program->task_count; i++)
        has |= mgl_op_get(program->tasks[i].op)->family == MGL_FAMILY_ATTEND_ROWS;
    return has;
}

static bool writes_pages(const mgl_program *program, const mgl_task *task)
{
    bool writes = false;
    for (int i = 0; i < task->out.count; i++)
        writes |= program->buffers[program->regions[task->out.first + i].buffer].paged;
    return writes;
}

/* Whether paged results have the number of columns that the kernel's code of the op assumes, on
 * which the place of a column depends. */
static bool has_columns_of_op(const mgl_program *program, const mgl_task *task)
{
    const mgl_geometry *m = &program->geometry;
    const int64_t columns = task->op == MGL_OP_RMS_SWIGLU ? m->ffn
                            : mgl_op_get(task->op)->family == MGL_FAMILY_ATTEND_ROWS
                                ? (int64_t)m->heads * m->head_dim
                                : m->hidden;
    bool has = true;
    for (int i = 0; i < task->out.count; i++) {
        const mgl_buffer *b = &program->buffers[program->regions[task->out.first + i].buffer];
        has &= !b->paged || b->extents[1].count == columns;
    }
    return has;
}

/* Checks tasks that write pages. If the program has row attention, which writes pages itself, the
 * kernel's other attention code does not support pages (VIEWS_PAGED). That code assumes no number
 * of columns. */
static mgl_status check_pages(const mgl_program *program, mgl_error *err)
{
    const bool rows = has_attention_of_rows(program);
    for (int i = 0; i < program->task_count; i++) {
        const mgl_task *task = &program->tasks[i];
        const mgl_family family = mgl_op_get(task->op)->family;
        if (rows && family != MGL_FAMILY_PANEL && family != MGL_FAMILY_ATTEND_ROWS &&
            task->op != MGL_OP_EMBED_GAMMA && writes_pages(program, task))
            return refuse(program, i, "it writes pages beside attention of rows", err);
        if (task->op != MGL_OP_ATTEND && !has_columns_of_op(program, task))
            return refuse(program, i, "what it writes in pages has other columns too", err);
    }
    return MGL_OK;
}

/* Checks one list. `norms`: the kernel normalizes q and k; `penalties`: it has penalties. */
static mgl_status check_list(const mgl_program *program, bool norms, bool penalties, mgl_error *err)
{
    mgl_status status = mgl_cuda_check_limits(program, err);
    for (int i = 0; i < program->task_count && !status; i++) {
        const char *why = check_task(program, &program->tasks[i]);
        why = why ? why : check_extras(program, &program->tasks[i], norms, penalties);
        if (why)
            status = refuse(program, i, why, err);
    }
    if (!status)
        status = check_pages(program, err);
    return status ? status : check_variants(program, err);
}

mgl_status mgl_cuda_check_program(const mgl_program *program, mgl_error *err)
{
    const bool norms = mgl_cuda_has_norms(program), penalties = mgl_program_has_penalties(program);
    mgl_status status = check_list(program, norms, penalties, err);
    if (status || !program->second)
        return status;
    status = check_list(program->second, norms, penalties, err);
    return status ? status : mgl_cuda_check_order(program, err);
}
