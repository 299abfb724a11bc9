/*
 * Programs that decode one row by flags alone: of the kernel's ways, they need one for products and
 * one for attention. The others are left out, which takes the compiler half as long. Where
 * attention has splits, its keys and values come through the ring then.
 */
#include <stdlib.h>
#include <string.h>

#include "schedule/ways.h"
#include "vm/cuda/encode.h"

enum {
    MOST_HEADS = 4,        /* of a kv head, in one pass */
    FIRST_BULK_COPIES = 90 /* sm_90 */
};

static bool is_flagged(const mgl_program *program, const mgl_region *region)
{
    return region->flag && program->buffers[region->buffer].dtype == MGL_F32;
}

static int blocks_of(int64_t columns)
{
    return mgl_tape_blocks((int)columns, 16);
}

static bool is_plain_product(const mgl_program *program, const mgl_task *task)
{
    const mgl_geometry *m = &program->geometry;
    const mgl_skinny_shape shape = {blocks_of(m->hidden),
                                    blocks_of((int64_t)m->heads * m->head_dim), blocks_of(m->ffn),
                                    program->exec.stage_bytes};
    const mgl_region *x = mgl_task_operand(program, task, MGL_PRODUCT_INPUT);
    const bool normed = task->op != MGL_OP_LINEAR_ADD;
    const bool low = normed || program->buffers[x->buffer].dtype == MGL_F32;
    const mgl_range *columns = &x->ranges[1];
    return mgl_goes_skinny(&shape, x->flag, 1, low, blocks_of(columns->hi - columns->lo));
}

/* q, k and v of this epoch, and the result: flagged f32; a partial with two words behind. */
static bool is_plain_attention(const mgl_program *program, const mgl_task *task)
{
    const mgl_attention_operands *o = mgl_op_attention(task->op);
    const int current[] = {o->q, o->k, o->v};
    const mgl_region *out = mgl_task_result(program, task);
    const mgl_buffer *to = &program->buffers[out->buffer];
    for (int i = 0; i < 3; i++)
        if (current[i] != MGL_NO_OPERAND &&
            !is_flagged(program, mgl_task_operand(program, task, current[i])))
            return false;
    return is_flagged(program, out) &&
           (o->part == MGL_NO_OPERAND ||
            to->extents[to->rank - 1].count == program->geometry.head_dim + 4);
}

static bool is_plain_task(const mgl_program *program, const mgl_task *task)
{
    if (mgl_op_get(task->op)->layout != MGL_LAYOUT_NONE)
        return is_plain_product(program, task);
    if (mgl_op_is_attention(task->op))
        return is_plain_attention(program, task);
    return true;
}

bool mgl_cuda_is_plain(const mgl_program *program)
{
    const mgl_geometry *m = &program->geometry;
    const mgl_exec *exec = &program->exec;
    if (program->limits.rows != 1 ||
        mgl_weight_format_get(program->weight_format)->numbers == MGL_F32 ||
        program->kv_dtype == MGL_F32 || m->head_dim % 16 != 0 || m->head_dim > 128 ||
        m->heads / m->kv_heads > MOST_HEADS ||
        !MGL_RING_GOES_SKINNY(exec->ring_pages, exec->page_bytes / MGL_BLOCK_BYTES, exec->warps))
        return false;
    for (int i = 0; i < program->task_count; i++)
        if (!is_plain_task(program, &program->tasks[i]))
            return false;
    return true;
}

/* The most earlier positions that a split has; 0: attention has none. */
static int64_t largest_split(const mgl_program *program)
{
    int64_t largest = 0;
    for (int i = 0; i < program->task_count; i++) {
        const mgl_task *task = &program->tasks[i];
        if (task->op != MGL_OP_ATTEND_PAST)
            continue;
        const mgl_region *part = mgl_task_operand(program, task, MGL_OPERAND(attend_past, part));
        int64_t splits = program->buffers[part->buffer].extents[0].count;
        int64_t positions = (program->limits.capacity + splits - 1) / splits;
        largest = positions > largest ? positions : largest;
    }
    return largest;
}

static bool attends_whole(const mgl_program *program)
{
    for (int i = 0; i < program->task_count; i++)
        if (program->tasks[i].op == MGL_OP_ATTEND)
            return true;
    return false;
}

/* The most attentions that a queue has. */
static int most_attentions(const mgl_program *program)
{
    int most = 0;
    for (int q = 0; q < program->queue_count; q++) {
        const mgl_run *tasks = &program->queues[q].tasks;
        int count = 0;
        for (int i = tasks->first; i < tasks->first + tasks->count; i++)
            count += mgl_op_is_attention(program->tasks[i].op);
        most = count > most ? count : most;
    }
    return most;
}

/* The most pages of the ring in an epoch, where a page has the keys or values of `run` positions.
 */
static int64_t most_pages(const mgl_program *program, int64_t run)
{
    int64_t most = 0,
            split = attends_whole(program) ? program->limits.capacity : largest_split(program);
    for (int q = 0; q < program->queue_count; q++) {
        int64_t pages = program->queues[q].tape_bytes / program->exec.page_bytes;
        most = pages > most ? pages : most;
    }
    return most + most_attentions(program) * (2 * ((split + run - 1) / run) + 1);
}

bool mgl_cuda_streams_kv(const mgl_program *program, const char *arch)
{
    const char *number = strchr(arch, '_');
    const int head_dim = program->geometry.head_dim, warps = program->exec.warps;
    if (!number || strtol(number + 1, NULL, 10) < FIRST_BULK_COPIES ||
        !mgl_cuda_is_plain(program) || largest_split(program) <= MGL_KV_REGISTERS(head_dim, warps))
        return false;
    const int64_t run = MGL_KV_PAGE_POSITIONS(head_dim, program->exec.page_bytes);
    return run > 0 && run / MGL_KV_SPAN(head_dim) <= warps &&
           most_pages(program, run) * (program->limits.capacity + 2) < UINT32_MAX;
}

bool mgl_cuda_swizzles_kv(const mgl_program *program, const char *arch)
{
    return MGL_KV_SWIZZLED(program->geometry.head_dim) && mgl_cuda_streams_kv(program, arch);
}
