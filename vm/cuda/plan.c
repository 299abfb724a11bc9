/*
 * What the host derives from the variants that a program names (schedule/variants.def): which of
 * the kernel's ways are compiled in. Programs that decode one row by flags alone need one way for
 * products and one for attention; that leaves the others out, which takes the compiler half as
 * long.
 */
#include "schedule/variants.h"
#include "schedule/ways.h"
#include "vm/cuda/encode.h"

enum { FIRST_BULK_COPIES = 90 /* sm_90 */ };

/* Whether a task is of the kind that decoding one row by flags has. */
static bool is_plain_task(const mgl_task *task)
{
    switch (mgl_op_get(task->op)->family) {
    case MGL_FAMILY_PRODUCT:
        return task->variant == MGL_VARIANT_SKINNY;
    case MGL_FAMILY_ATTENTION:
        return task->variant == MGL_VARIANT_REGISTERS || task->variant == MGL_VARIANT_RING;
    default:
        return true;
    }
}

bool mgl_cuda_is_plain(const mgl_program *program)
{
    for (int i = 0; i < program->task_count; i++)
        if (!is_plain_task(&program->tasks[i]))
            return false;
    return program->limits.rows == 1;
}

static bool names_ring(const mgl_program *program)
{
    for (int i = 0; i < program->task_count; i++)
        if (program->tasks[i].variant == MGL_VARIANT_RING)
            return true;
    return false;
}

bool mgl_cuda_streams_kv(const mgl_program *program, const char *arch)
{
    return mgl_arch_number(arch) >= FIRST_BULK_COPIES && names_ring(program);
}

bool mgl_cuda_swizzles_kv(const mgl_program *program, const char *arch)
{
    return MGL_KV_SWIZZLED(program->geometry.head_dim) && mgl_cuda_streams_kv(program, arch);
}
