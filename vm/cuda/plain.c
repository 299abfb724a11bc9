/*
 * Programs that decode one row by flags alone: of the kernel's ways, they need one for products and one for
 * attention. The others are left out, which takes the compiler half as long.
 */
#include "vm/cuda/device/ways.h"
#include "vm/cuda/encode.h"

enum { BLOCK_COLUMNS = 32, MOST_HEADS = 4 /* of a kv head, in one pass */ };

static bool is_flagged(const mgl_program *program, const mgl_region *region)
{
    return region->flag && program->buffers[region->buffer].dtype == MGL_F32;
}

static int blocks_of(int64_t columns)
{
    return (int)((columns + BLOCK_COLUMNS - 1) / BLOCK_COLUMNS);
}

static bool is_plain_product(const mgl_program *program, const mgl_task *task)
{
    const mgl_geometry *m = &program->geometry;
    const mgl_few_shape shape = {blocks_of(m->hidden), blocks_of((int64_t)m->heads * m->head_dim),
                                 blocks_of(m->ffn), program->exec.stage_bytes};
    const mgl_region *x = &program->regions[task->in.first];
    const bool normed = task->op != MGL_OP_LINEAR_ADD;
    const bool low = normed || program->buffers[x->buffer].dtype == MGL_F32;
    const mgl_range *columns = &x->ranges[1];
    return mgl_goes_few(&shape, x->flag, 1, low, blocks_of(columns->hi - columns->lo));
}

/* q, k and v of this epoch, and the result: flagged f32; a partial with two words behind. */
static bool is_plain_attention(const mgl_program *program, const mgl_task *task)
{
    const int current = task->op == MGL_OP_ATTEND_PAST ? 1 : 3;
    const mgl_region *in = &program->regions[task->in.first];
    const mgl_region *out = &program->regions[task->out.first];
    const mgl_buffer *to = &program->buffers[out->buffer];
    for (int i = 0; i < current; i++)
        if (!is_flagged(program, &in[i]))
            return false;
    return is_flagged(program, out) &&
           (task->op == MGL_OP_ATTEND ||
            to->extents[to->rank - 1].count == program->geometry.head_dim + 4);
}

static bool is_plain_task(const mgl_program *program, const mgl_task *task)
{
    if (mgl_op_get(task->op)->layout != MGL_LAYOUT_NONE)
        return is_plain_product(program, task);
    if (task->op == MGL_OP_ATTEND || task->op == MGL_OP_ATTEND_TAIL ||
        task->op == MGL_OP_ATTEND_PAST)
        return is_plain_attention(program, task);
    return true;
}

bool mgl_cuda_is_plain(const mgl_program *program)
{
    const mgl_geometry *m = &program->geometry;
    const mgl_exec *exec = &program->exec;
    if (program->limits.rows != 1 || program->dtype == MGL_F32 || program->kv_dtype == MGL_F32 ||
        m->head_dim % 16 != 0 || m->head_dim > 128 || m->heads / m->kv_heads > MOST_HEADS ||
        !MGL_RING_GOES_FEW(exec->ring_pages, exec->page_bytes / MGL_BLOCK_BYTES, exec->warps))
        return false;
    for (int i = 0; i < program->task_count; i++)
        if (!is_plain_task(program, &program->tasks[i]))
            return false;
    return true;
}
